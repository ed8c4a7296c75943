//! The rules of Streamable HTTP, for servers: a head and a body → where a message goes, and what
//! was said → a status and events. Pure functions and registers; [`classify`] is the place to start.

pub mod classify;
pub mod door;
pub mod event;
pub mod reply;
pub mod streams;

use http::StatusCode;
use trunkline_wire::code;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message};

/// A request that is not served: its status, and an error that says why.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: StatusCode,
    /// What the body says.
    pub error: ErrorObject,
    /// The id of the request, if it could be read.
    pub id: Option<Id>,
}

impl Refusal {
    /// A refusal of something that is no JSON-RPC request, or whose id nobody has read.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, error: ErrorObject::new(code::INVALID_REQUEST, message), id: None }
    }

    /// A 400 that answers a request.
    pub fn bad_request(error: ErrorObject, id: Option<Id>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, id }
    }

    /// The body.
    pub fn message(self) -> Message {
        Message::Response { id: self.id, outcome: Err(self.error) }
    }
}
