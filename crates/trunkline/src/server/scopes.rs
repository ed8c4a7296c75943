//! The scopes that a request needs, and whether its caller has them.

use trunkline_proto::{Attached, Call};
use trunkline_wire::code;
use trunkline_wire::dialect;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::{CompleteParams, Reference, SubscriptionFilter};

use super::Inner;
use super::function::Signature;
use crate::caller::{Visible, call_by, may_see, principal};

impl Inner {
    /// The scopes that this request needs besides those that every request needs. What the caller
    /// cannot see needs none: there is nothing to ask for.
    pub(super) fn scopes(&self, method: &str, params: &Params, attached: &Attached) -> Vec<String> {
        let call = || call_by(attached, params.get("_meta"));
        match Method::of(method) {
            Some(Method::ToolsCall) => self.tool_scopes(text(params.get("name")).as_deref(), call),
            Some(Method::PromptsGet) => {
                self.prompt_scopes(text(params.get("name")).as_deref(), call)
            }
            Some(Method::ResourcesRead | Method::ResourcesSubscribe) => {
                self.uri_scopes(text(params.get("uri")).as_slice(), call)
            }
            Some(Method::SubscriptionsListen) => {
                let filter = params.get("notifications").map(|it| it.to::<SubscriptionFilter>());
                let uris = filter.and_then(Result::ok).map(|it| it.resource_subscriptions);
                self.uri_scopes(&uris.unwrap_or_default(), call)
            }
            Some(Method::CompletionComplete) => {
                let Params::Object(params) = params else { return Vec::new() };
                match params.to::<CompleteParams>().map(|it| it.reference) {
                    Ok(Reference::Prompt { name, .. }) => self.prompt_scopes(Some(&name), call),
                    Ok(Reference::Resource { uri }) => {
                        let found = self.templates.find(&uri);
                        found.map_or_else(Vec::new, |it| needed(&it.signature, &it.visible, call))
                    }
                    Err(_) => Vec::new(),
                }
            }
            _ if dialect::is_dialect(method) => {
                match dialect::Request::read(method, params.clone()) {
                    Ok(dialect::Request::Execute { tool, .. }) => {
                        self.tool_scopes(Some(&tool), call)
                    }
                    Ok(dialect::Request::Read { uri }) => self.uri_scopes(&[uri], call),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Whether anything here needs scopes.
    #[cfg(feature = "http")]
    pub(super) fn has_scopes(&self) -> bool {
        let any = |it: &Signature| !it.scopes.is_empty();
        self.tools.now().iter().any(|it| any(&it.signature))
            || self.prompts.now().iter().any(|it| any(&it.signature))
            || self.resources.now().iter().any(|it| any(&it.signature))
            || self.templates.now().iter().any(|it| any(&it.signature))
    }

    fn tool_scopes(&self, name: Option<&str>, call: impl FnOnce() -> Call) -> Vec<String> {
        let found = name.and_then(|it| self.tools.find(it));
        found.map_or_else(Vec::new, |it| needed(&it.signature, &it.visible, call))
    }

    fn prompt_scopes(&self, name: Option<&str>, call: impl FnOnce() -> Call) -> Vec<String> {
        let found = name.and_then(|it| self.prompts.find(it));
        found.map_or_else(Vec::new, |it| needed(&it.signature, &it.visible, call))
    }

    /// The scopes of all these resources, each resolved as a read would resolve it.
    fn uri_scopes(&self, uris: &[String], call: impl FnOnce() -> Call) -> Vec<String> {
        let call = call();
        let mut all = Vec::new();
        for uri in uris {
            let of_resource = self.resources.find(uri).filter(|it| may_see(&it.visible, &call));
            let scopes = match of_resource {
                Some(resource) => resource.signature.scopes.clone(),
                None => self.template_scopes(uri, &call),
            };
            all.extend(scopes);
        }
        all
    }

    fn template_scopes(&self, uri: &str, call: &Call) -> Vec<String> {
        let templates = self.templates.now();
        let fitting = templates.iter().filter(|it| may_see(&it.visible, call)).find(|it| {
            let parsed = it.parsed.as_ref();
            parsed.is_ok_and(|it| it.matches(uri).is_some())
        });
        fitting.map(|it| it.signature.scopes.clone()).unwrap_or_default()
    }
}

impl Signature {
    /// The error for an authenticated caller that lacks scopes for `name`. Other callers have no
    /// scopes and need none: the user who starts a server over a pipe may use all of it.
    pub(super) fn lacks_scopes(&self, name: &str, call: &Call) -> Option<ErrorObject> {
        if self.scopes.is_empty() {
            return None;
        }
        let principal = principal(&call.attached)?;
        // `may` includes implied scopes.
        if self.scopes.iter().all(|it| principal.may(it)) {
            return None;
        }
        let scope = self.scopes.join(" ");
        let why = format!("`{name}` takes the scope `{scope}`; ask for it and try again.");
        let data = serde_json::json!({ "reason": "insufficient_scope", "scope": scope });
        Some(ErrorObject::new(code::INVALID_REQUEST, why).with_data(Json::of(&data)))
    }
}

/// Whether a text is a valid scope token (RFC 6749 §3.3).
pub(super) fn is_scope(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_graphic() && it != b'"' && it != b'\\';
    !text.is_empty() && text.bytes().all(fits)
}

fn needed(signature: &Signature, visible: &Visible, call: impl FnOnce() -> Call) -> Vec<String> {
    if signature.scopes.is_empty() || (visible.is_some() && !may_see(visible, &call())) {
        return Vec::new();
    }
    signature.scopes.clone()
}

fn text(json: Option<&Json>) -> Option<String> {
    json?.to().ok()
}

#[cfg(test)]
mod tests {
    use super::is_scope;

    #[test]
    fn a_scope_is_one_word_that_needs_no_quotes() {
        for text in ["files:write", "https://example.com/auth/files", "a", "!", "~"] {
            assert!(is_scope(text), "{text}");
        }
        for text in ["", " ", "a b", "a\"", "a\\b", "ä", "a\n", "\u{7f}"] {
            assert!(!is_scope(text), "{text:?}");
        }
    }
}
