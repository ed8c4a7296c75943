//! A server's result in one revision → the same result for a client of another.
//!
//! Upward nothing is lost: newer revisions read what older ones write. Downward, drop or reshape what
//! the older one lacks. Between the eras a result gains or loses its envelope.

use serde::de::Error as _;

use super::stateful::{self, ResultBody};
use super::stateless::{self, Extras};
use crate::code;
use crate::json::Json;
use crate::json::glance::Members;
use crate::jsonrpc::{ErrorObject, Object};
use crate::method::Method;
use crate::model::meta::SERVER_INFO;
use crate::model::{
    CallToolResult, CompleteResult, GetPromptResult, InputRequest, ReadResourceResult,
};
use crate::revision::{Era, Revision};

/// A result of `method` as a client of `to` reads it. A part that both revisions spell alike is not
/// parsed, so it stays byte for byte. `schema` is the tool's output schema, if it has one.
///
/// ```
/// # use trunkline_wire::{era::carry, json::Json, method::Method, revision::Revision};
/// let said = Json::parse(r#"{"content":[{"type":"text","text":"4"}]}"#).unwrap();
/// let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
/// let told = carry::result(Method::ToolsCall, said.clone(), old, new, None).unwrap();
/// assert!(told.get().starts_with(r#"{"resultType":"complete","content":"#));
/// assert_eq!(carry::result(Method::ToolsCall, told, new, old, None).unwrap(), said);
/// ```
pub fn result(
    method: Method,
    said: Json,
    from: Revision,
    to: Revision,
    schema: Option<&Json>,
) -> Result<Json, serde_json::Error> {
    if from == to {
        return Ok(said);
    }
    match (from.era(), to.era()) {
        (Era::Stateful, Era::Stateless) => {
            let body = Object::parse(said.get())?;
            Ok(stateless::add_envelope(body, method == Method::ResourcesRead, &Extras::default()))
        }
        (Era::Stateful, Era::Stateful) if from < to => Ok(said),
        _ => match method {
            // The last stateful revision can express every result of the stateless one.
            Method::ToolsCall if to.profile().icons && is_plain(&said) => strip_envelope(&said),
            Method::PromptsGet | Method::ResourcesRead | Method::CompletionComplete
                if to.profile().icons =>
            {
                strip_envelope(&said)
            }
            Method::ToolsCall => {
                let mut result: CallToolResult = said.to()?;
                stateful::fit_output(&mut result, schema, to.profile());
                Ok(down(result, to))
            }
            Method::PromptsGet => Ok(down(said.to::<GetPromptResult>()?, to)),
            Method::ResourcesRead => Ok(down(said.to::<ReadResourceResult>()?, to)),
            Method::CompletionComplete => Ok(down(said.to::<CompleteResult>()?, to)),
            _ => strip_envelope(&said),
        },
    }
}

/// Whether a result has no structured content that only the stateless era allows: one that is no
/// object.
fn is_plain(said: &Json) -> bool {
    if !said.get().contains("structuredContent") {
        return true;
    }
    let object = Object::parse(said.get()).unwrap_or_default();
    object.get("structuredContent").is_none_or(Json::is_object)
}

fn down<T: ResultBody>(mut result: T, to: Revision) -> Json {
    let meta = result.take_meta().and_then(|it| without_server(it.get()));
    let body = stateful::encode_result(result, to.profile());
    match (meta, Object::parse(body.get())) {
        (Some(meta), Ok(mut object)) => {
            object.set("_meta", meta);
            object.to_json()
        }
        _ => body,
    }
}

/// A result without the members that the stateless era adds.
fn strip_envelope(said: &Json) -> Result<Json, serde_json::Error> {
    let odd = || serde_json::Error::custom("it is no object in which every name stands once");
    let mut members = Members::of(said.get()).ok_or_else(odd)?;
    for name in ["resultType", "ttlMs", "cacheScope"] {
        members.take(name);
    }
    let meta = members.take("_meta").and_then(without_server);
    Ok(members.write(meta.as_ref().map(|it| ("_meta", it))))
}

/// The `_meta` of a result without the server's info; `None` if it is then empty.
fn without_server(meta: &str) -> Option<Json> {
    let mut members = Members::of(meta)?;
    members.take(SERVER_INFO);
    (!members.is_empty()).then(|| members.write(None))
}

/// An error as a client of `to` understands it.
///
/// ```
/// # use trunkline_wire::{era::carry, jsonrpc::ErrorObject, method::Method, revision::Revision};
/// let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
/// let gone = ErrorObject::resource_not_found("file:///a", new);
/// let told = carry::error(Method::ResourcesRead, gone, new, old);
/// assert_eq!(told, ErrorObject::resource_not_found("file:///a", old));
/// ```
pub fn error(method: Method, mut said: ErrorObject, from: Revision, to: Revision) -> ErrorObject {
    if from.era() == to.era() {
        return said;
    }
    said.code = match (said.code, to.era()) {
        (code::RESOURCE_NOT_FOUND, Era::Stateless) => code::INVALID_PARAMS,
        (code::INVALID_PARAMS, Era::Stateful)
            if method == Method::ResourcesRead && names_a_resource(&said) =>
        {
            code::RESOURCE_NOT_FOUND
        }
        (code::MISSING_CLIENT_CAPABILITY, Era::Stateful) => code::INVALID_PARAMS,
        // Between us and that server: the client cannot do anything about it.
        (code::HEADER_MISMATCH | code::UNSUPPORTED_REVISION, _) => code::INTERNAL_ERROR,
        (code, _) => code,
    };
    said
}

fn names_a_resource(error: &ErrorObject) -> bool {
    let data = error.data.as_ref().and_then(|it| Object::parse(it.get()).ok());
    data.is_some_and(|it| it.get("uri").is_some())
}

/// A question as a client of `to` reads it, or why it cannot be asked.
///
/// ```
/// # use trunkline_wire::{era::carry, model::InputRequest, revision::Revision};
/// assert!(carry::question(InputRequest::Roots, Revision::V2024_11_05).is_ok());
/// ```
pub fn question(mut question: InputRequest, to: Revision) -> Result<InputRequest, stateful::Unfit> {
    use super::stateful::Fit;
    if to.era() == Era::Stateful {
        stateful::can_ask(&question, to.profile())?;
    }
    question.fit(to.profile());
    Ok(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":[1],"_meta":{"a":1},"odd":12345678901234567890}"#;

    #[test]
    fn results_that_need_no_change_are_carried_byte_for_byte() {
        for (from, to) in [
            (Revision::V2024_11_05, Revision::V2025_11_25),
            (Revision::V2026_07_28, Revision::V2026_07_28),
        ] {
            let said = Json::parse(TEXT).unwrap();
            assert_eq!(result(Method::ToolsCall, said, from, to, None).unwrap().get(), TEXT);
        }
    }

    #[test]
    fn downwards_what_is_lacking_is_left_out() {
        let said = Json::parse(TEXT).unwrap();
        let told =
            result(Method::ToolsCall, said, Revision::V2026_07_28, Revision::V2024_11_05, None);
        let told = told.unwrap();
        assert_eq!(told.get(), r#"{"content":[{"type":"text","text":"x"}],"_meta":{"a":1}}"#);
    }

    #[test]
    fn to_the_last_of_the_old_era_nothing_but_the_envelope_is_lost() {
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        let told = |said: &str| {
            let said = Json::parse(said).unwrap();
            result(Method::ToolsCall, said, new, old, None).unwrap().get().to_owned()
        };
        let said = r#"{"resultType":"complete","content":[],"structuredContent":{"a":1},"odd":2}"#;
        assert_eq!(told(said), r#"{"content":[],"structuredContent":{"a":1},"odd":2}"#);
        // One that is no object cannot be expressed there.
        let said = r#"{"resultType":"complete","content":[],"structuredContent":[1]}"#;
        assert!(!told(said).contains(r#""structuredContent":[1]"#));
    }

    #[test]
    fn an_envelope_is_put_on_and_taken_off() {
        let said = Json::parse(r#"{"contents":[]}"#).unwrap();
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        let told = result(Method::ResourcesRead, said.clone(), old, new, None).unwrap();
        let expected =
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#;
        assert_eq!(told.get(), expected);
        assert_eq!(result(Method::ResourcesRead, told, new, old, None).unwrap(), said);
    }

    #[test]
    fn codes_that_mean_something_else_there_are_changed() {
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        for (code, from, to, expected) in [
            (code::RESOURCE_NOT_FOUND, old, new, code::INVALID_PARAMS),
            (code::MISSING_CLIENT_CAPABILITY, new, old, code::INVALID_PARAMS),
            (code::HEADER_MISMATCH, new, old, code::INTERNAL_ERROR),
            (code::INVALID_PARAMS, new, old, code::INVALID_PARAMS),
            (code::RESOURCE_NOT_FOUND, old, Revision::V2024_11_05, code::RESOURCE_NOT_FOUND),
        ] {
            let told = error(Method::ResourcesRead, ErrorObject::new(code, "x"), from, to);
            assert_eq!(told.code, expected, "{code} from {from} to {to}");
        }
    }
}
