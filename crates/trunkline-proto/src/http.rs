//! The rules of Streamable HTTP for servers: a head and a body → where a message goes; an outcome → a
//! status and events. Pure functions and registers; start with [`classify`].

pub mod classify;
pub mod door;
pub mod event;
pub mod fields;
pub mod reply;
pub mod streams;

use http::StatusCode;
use trunkline_wire::code;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message};

/// A request that is refused: its status, and an error that says why.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: StatusCode,
    /// The error in the body.
    pub error: ErrorObject,
    /// The id of the request, if it could be read.
    pub id: Option<Id>,
    /// The methods that are allowed, for a 405.
    pub allow: Option<&'static str>,
    /// `WWW-Authenticate`: the challenge.
    pub challenge: Option<Box<str>>,
}

impl Refusal {
    /// A refusal of something that is no JSON-RPC request, or whose id is unknown.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let error = ErrorObject::new(code::INVALID_REQUEST, message);
        Self { status, error, id: None, allow: None, challenge: None }
    }

    /// A 400 that answers a request.
    pub fn bad_request(error: ErrorObject, id: Option<Id>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, id, allow: None, challenge: None }
    }

    /// A method that is not allowed; `allow` lists those that are.
    pub fn method(allow: &'static str) -> Self {
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, "This method is not served here.");
        Self { allow: Some(allow), ..refusal }
    }

    /// The body.
    pub fn message(self) -> Message {
        Message::Response { id: self.id, outcome: Err(self.error) }
    }
}
