//! The configuration of a gate → whether it is valid, and if not, why.

use super::{Dpop, Misconfigured, Protect, Source};
use crate::address::{Guard, Reach};
use crate::metadata;
use crate::resource::present::is_token;
use crate::scope::{Scopes, is_scope};
use crate::url::shown;

impl Protect {
    /// Whether it is valid, and if not, why.
    pub(crate) fn check(&self) -> Result<(), Misconfigured> {
        let no = |why: String| Err(Misconfigured(why));
        let resource = &self.resource;
        let (origin, _) = metadata::split(resource).unwrap_or_default();
        let is_http = origin.starts_with("https://") || origin.starts_with("http://");
        if !is_http || origin.contains('@') || resource.contains('#') {
            return no(format!(
                "`{}` is not the URL of a resource; give the `https://` URL that clients use, without a user and without `#`.",
                shown(resource)
            ));
        }
        if resource.contains(|it: char| it.is_ascii_control() || it == ' ' || !it.is_ascii()) {
            return no(
                "The URL of the resource has a character that URLs cannot have; percent-encode it."
                    .into(),
            );
        }
        if self.issuers.is_empty() && self.introspection.is_none() && self.api_keys.is_empty() {
            return no(format!(
                "Nobody could get in at `{resource}`; add an issuer with `jwt`, or `introspection`, or an `api_key`."
            ));
        }
        self.check_issuers()?;
        self.check_api_keys()?;
        let keys = self.api_keys.iter().map(|it| &it.scopes);
        let scopes = [&self.required, &self.supported].into_iter().chain(keys);
        if let Some(bad) = scopes.flat_map(Scopes::as_slice).find(|it| !is_scope(it)) {
            return no(format!(
                "`{bad}` is not a scope; give scopes one by one, without spaces, quotes and backslashes."
            ));
        }
        if self.required.contains(OFFLINE) || self.supported.contains(OFFLINE) {
            return no(format!(
                "`{OFFLINE}` is not for a resource to ask for; leave it out, clients ask by themselves."
            ));
        }
        Ok(())
    }

    fn check_issuers(&self) -> Result<(), Misconfigured> {
        let no = |why: String| Err(Misconfigured(why));
        for (place, issuer) in self.issuers.iter().enumerate() {
            if self.issuers[..place].iter().any(|it| it.issuer == issuer.issuer) {
                return no(format!("The issuer `{}` is there twice; leave one.", issuer.issuer));
            }
            if issuer.rules.algorithms.is_empty() {
                return no(format!(
                    "No algorithm is allowed for the issuer `{}`; name one, such as `ES256`.",
                    issuer.issuer
                ));
            }
        }
        let keys = self.issuers.iter().filter_map(|it| match &it.source {
            Source::Discovered => Some(&it.issuer),
            Source::At(url) => Some(url),
            Source::Known(_) => None,
        });
        let questions = self.introspection.iter().map(|it| &it.url);
        // A name that is not a URL is fine if no request and no client is sent there.
        let named = self.authorization_servers.iter().filter(|it| it.starts_with("http://"));
        match keys.chain(questions).chain(named).find(|it| !is_safe(it)) {
            Some(bad) => no(format!(
                "What `{}` says could be changed on the way; give an `https://` URL, or an `http://` one on this machine or a private network.",
                shown(bad)
            )),
            None => Ok(()),
        }
    }

    fn check_api_keys(&self) -> Result<(), Misconfigured> {
        let no = |why: String| Err(Misconfigured(why));
        for (place, key) in self.api_keys.iter().enumerate() {
            if key.secret.len() < SHORTEST_KEY || !is_token(&key.secret) {
                return no(format!(
                    "The API key `{}` cannot be used; give it {SHORTEST_KEY} or more random letters and digits.",
                    key.name
                ));
            }
            if let Some(other) = self.api_keys[..place].iter().find(|it| it.secret == key.secret) {
                return no(format!(
                    "The API keys `{}` and `{}` are the same; give each its own.",
                    other.name, key.name
                ));
            }
            if self.dpop == Dpop::Require {
                return no(format!(
                    "The API key `{}` cannot be bound to a key of the client; use `Dpop::Accept`, or leave it out.",
                    key.name
                ));
            }
        }
        Ok(())
    }
}

/// Whether a response from there can be trusted: plain text can be tampered with, except on this
/// machine or a private network.
pub(crate) fn is_safe(url: &str) -> bool {
    url.starts_with("https://")
        || url.starts_with("http://") && Guard::for_server(url) != Guard::new(Reach::Public)
}

const SHORTEST_KEY: usize = 16;
const OFFLINE: &str = "offline_access";
