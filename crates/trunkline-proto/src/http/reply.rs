//! An answer → its HTTP status.

use http::StatusCode;
use trunkline_wire::code;
use trunkline_wire::jsonrpc::{ErrorObject, Message};
use trunkline_wire::revision::Era;

use crate::Outgoing;

/// The status of an answer sent as one JSON body. `dispatched` says whether a handler was called: an
/// earlier refusal is the client's fault.
pub fn status(answer: &Outgoing, era: Era, dispatched: bool) -> StatusCode {
    match answer {
        Outgoing::One(Message::Response { outcome: Err(error), .. }) => {
            of_error(error, era, dispatched)
        }
        _ => StatusCode::OK,
    }
}

fn of_error(error: &ErrorObject, era: Era, dispatched: bool) -> StatusCode {
    match (error.code, era) {
        (code::PARSE_ERROR | code::INVALID_REQUEST, _) if !dispatched => StatusCode::BAD_REQUEST,
        (code::INTERNAL_ERROR, _) if !dispatched && is_overload(error) => {
            StatusCode::TOO_MANY_REQUESTS
        }
        // In a session 404 means that the session is gone, so only the stateless era uses it for a
        // method.
        (code::METHOD_NOT_FOUND, Era::Stateless) if !dispatched => StatusCode::NOT_FOUND,
        (code::INVALID_PARAMS, Era::Stateless) if !dispatched => StatusCode::BAD_REQUEST,
        // In a session these codes mean whatever the handler means by them.
        (
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_REVISION,
            era,
        ) if !dispatched || era == Era::Stateless => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn is_overload(error: &ErrorObject) -> bool {
    #[derive(serde::Deserialize)]
    struct Data {
        reason: String,
    }
    let data = error.data.as_ref().and_then(|it| it.to::<Data>().ok());
    data.is_some_and(|it| it.reason == "overloaded")
}
