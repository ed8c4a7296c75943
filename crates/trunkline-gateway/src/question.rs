//! Labels a server's question with the server's name, or refuses it where the catalog forbids it.

use std::time::Duration;

use trunkline_proto::Timing;
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{InputRequest, InputRequired, meta};

use crate::catalog::plan::Questions;
use crate::client_profile;
use crate::pool::Profile;

/// Admits a question and adds the asking server's name, or says why not. Users see one server, the gateway, and
/// could not tell which server they answer.
pub(crate) fn admit(
    server: &str,
    allowed: Questions,
    method: Method,
    params: &mut Object,
) -> Result<(), ErrorObject> {
    if !is_allowed(allowed, method) {
        return Err(refusal(server, method));
    }
    let message = params.get("message").and_then(|it| it.to::<String>().ok());
    if let (Some(message), Method::ElicitationCreate) = (message, method) {
        params.set("message", Json::string(&named(server, &message)));
    }
    Ok(())
}

/// The same for the questions in an `input_required` result.
pub(crate) fn admit_all(
    server: &str,
    allowed: Questions,
    input: &mut InputRequired,
) -> Result<(), ErrorObject> {
    for (_, request) in &mut input.requests {
        let method = request.method();
        if !is_allowed(allowed, method) {
            return Err(refusal(server, method));
        }
        let params = request.params().and_then(|it| Object::parse(it.get()).ok());
        if let Some(mut params) = params {
            admit(server, allowed, method, &mut params)?;
            if let Ok(named) = InputRequest::read(method.name(), Some(&params.to_json())) {
                *request = named;
            }
        }
    }
    Ok(())
}

/// The profile declared to a server, without the questions that it may not ask.
pub(crate) fn offered(profile: Profile, allowed: Questions) -> Profile {
    let mut bits = profile.0;
    for (is_allowed, kind) in [
        (allowed.elicitation, client_profile::ELICITATION),
        (allowed.sampling, client_profile::ANY_SAMPLING),
        (allowed.roots, client_profile::ROOTS),
    ] {
        bits &= if is_allowed { u8::MAX } else { !kind };
    }
    Profile(bits)
}

/// The same for the envelope of a request of the stateless era.
pub(crate) fn offered_in(envelope: Option<Json>, allowed: Questions) -> Option<Json> {
    let mut object = Object::parse(envelope.as_ref()?.get()).ok()?;
    let Some(capabilities) = object.get(meta::CLIENT_CAPABILITIES) else { return envelope };
    let mut capabilities = Object::parse(capabilities.get()).ok()?;
    for (is_allowed, name) in [
        (allowed.elicitation, "elicitation"),
        (allowed.sampling, "sampling"),
        (allowed.roots, "roots"),
    ] {
        if !is_allowed {
            capabilities.take(name);
        }
    }
    object.set(meta::CLIENT_CAPABILITIES, capabilities.to_json());
    Some(object.to_json())
}

fn is_allowed(allowed: Questions, method: Method) -> bool {
    match method {
        Method::ElicitationCreate => allowed.elicitation,
        Method::SamplingCreateMessage => allowed.sampling,
        Method::RootsList => allowed.roots,
        _ => true,
    }
}

fn named(server: &str, message: &str) -> String {
    format!("[{server}] {message}")
}

fn refusal(server: &str, method: Method) -> ErrorObject {
    let message = format!(
        "`{server}` may not ask this (`{method}`) here. Add it to `questions` of that server to allow it."
    );
    let data = Json::of(&serde_json::json!({ "reason": "question_refused", "server": server }));
    ErrorObject::new(code::INVALID_REQUEST, message).with_data(data)
}

/// The same parameters or result, without the id of the server's task.
pub(crate) fn unrelated(mut object: Object) -> Object {
    if let Some(meta) = object.take("_meta") {
        match Object::parse(meta.get()) {
            Ok(mut rest) => {
                rest.take(meta::RELATED_TASK);
                if !rest.is_empty() {
                    object.set("_meta", rest.to_json());
                }
            }
            Err(_) => object.set("_meta", meta),
        }
    }
    object
}

/// How long a user may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// The deadlines of a question to a user.
pub(crate) const THINKING: Timing = Timing { idle: PATIENCE, hard: PATIENCE };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_its_server_and_a_forbidden_one_is_refused() {
        let mut params = Object::parse(r#"{"message":"Your name?"}"#).unwrap();
        let all = Questions::default();
        admit("talk", all, Method::ElicitationCreate, &mut params).unwrap();
        assert_eq!(params.get("message").unwrap().get(), r#""[talk] Your name?""#);
        let few = Questions { sampling: false, ..all };
        let told = admit("talk", few, Method::SamplingCreateMessage, &mut params).unwrap_err();
        assert!(told.message.contains("`questions`"), "{told}");
        assert!(admit("talk", few, Method::RootsList, &mut params).is_ok());
    }

    #[test]
    fn capabilities_that_a_server_may_not_use_are_not_declared() {
        let none = Questions { elicitation: false, sampling: false, roots: false };
        let left = offered(client_profile::ALL, none);
        assert!(
            !client_profile::can_be_asked(left) && !client_profile::has_roots(left),
            "{left:?}"
        );
        assert_eq!(offered(client_profile::ALL, Questions::default()), client_profile::ALL);
        let envelope = r#"{"io.modelcontextprotocol/clientCapabilities":{"sampling":{},"roots":{},"x":1},"a":2}"#;
        let few = Questions { sampling: false, ..Questions::default() };
        let told = offered_in(Some(Json::parse(envelope).unwrap()), few).unwrap();
        assert!(!told.get().contains("sampling") && told.get().contains("roots"), "{}", told.get());
        assert!(told.get().contains(r#""a":2"#) && told.get().contains(r#""x":1"#));
    }
}
