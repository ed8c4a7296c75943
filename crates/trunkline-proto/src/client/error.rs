//! Why a handshake failed, and what an HTTP status says about it.

use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{ClientCapabilities, ElicitParams, InputRequest};
use trunkline_wire::revision::{Revision, Revisions};

use crate::CallError;
use crate::input_required::missing_capability;

/// Why the handshake failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OpenError {
    /// The server answered with an error.
    Refused(ErrorObject),
    /// The server speaks none of our revisions.
    NoCommonRevision {
        /// The revisions we offered.
        ours: Revisions,
        /// The revisions it named, if any.
        theirs: Vec<String>,
    },
    /// It did not answer in time.
    TimedOut,
    /// Its answer breaks the protocol.
    Invalid(String),
    /// The server refused it with an HTTP status.
    Http(HttpError),
    /// No credentials were accepted; a sentence.
    Credentials(String),
    /// The server could not be reached, or the connection was lost; a sentence.
    Unreachable(String),
    /// The connection ended.
    Closed {
        /// Whether that followed `server/discover`, which some old servers do not survive.
        probing: bool,
    },
}

impl OpenError {
    /// Whether the failure says nothing about the server itself.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::TimedOut | Self::Unreachable(_) | Self::Closed { .. })
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "The server refused the handshake: {error}"),
            Self::NoCommonRevision { ours, theirs } => {
                let ours: Vec<_> = ours.iter().map(Revision::as_str).collect();
                let ours = ours.join(", ");
                match theirs.is_empty() {
                    true => write!(f, "The server speaks none of {ours}."),
                    false => write!(f, "The server speaks {}, we speak {ours}.", theirs.join(", ")),
                }
            }
            Self::TimedOut => f.write_str("The server did not answer the handshake in time."),
            Self::Invalid(why) => write!(f, "The server's handshake breaks the protocol: {why}"),
            Self::Http(error) => error.fmt(f),
            Self::Credentials(why) => f.write_str(why),
            Self::Unreachable(why) => write!(f, "The server cannot be reached: {why}"),
            Self::Closed { .. } => f.write_str("The server hung up during the handshake."),
        }
    }
}

impl std::error::Error for OpenError {}

/// A failed call fails the handshake in the same way.
impl From<CallError> for OpenError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Peer(error) | CallError::Refused(error) => Self::Refused(error),
            CallError::Invalid(why) => Self::Invalid(why),
            CallError::Http(error) => Self::Http(error),
            CallError::Credentials(why) => Self::Credentials(why),
            CallError::Unreachable(why) | CallError::Lost(why) => Self::Unreachable(why),
            CallError::TimedOut => Self::TimedOut,
            CallError::Cancelled | CallError::Closed => Self::Closed { probing: false },
        }
    }
}

/// An HTTP status without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpError {
    /// The status.
    pub status: u16,
    /// The server's message, if any; one line, safe to show.
    pub message: String,
    /// `WWW-Authenticate`: the challenge.
    pub challenge: Option<String>,
}

impl HttpError {
    /// A status and the message with it.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), challenge: None }
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "The server answered with HTTP status {}", self.status)?;
        match self.message.is_empty() {
            true => f.write_str("."),
            false => write!(f, ": {}", self.message),
        }
    }
}

impl std::error::Error for HttpError {}

/// The error for a request that the client does not support. Servers pass the text on to their callers,
/// who know it from other clients.
pub(super) fn unknown_method() -> ErrorObject {
    ErrorObject::new(trunkline_wire::code::METHOD_NOT_FOUND, "Method not found")
}

/// The same for a kind of question that the client did not declare.
pub(super) fn unsupported_question(
    method: &str,
    params: &Object,
    able: &ClientCapabilities,
) -> Option<ErrorObject> {
    let question = InputRequest::read(method, Some(&params.to_json())).ok()?;
    missing_capability(&question, able)?;
    Some(ErrorObject::invalid_params(match question {
        InputRequest::Elicit(ElicitParams::Url(_)) => {
            "Client does not support URL-mode elicitation requests"
        }
        InputRequest::Elicit(_) => "Client does not support form-mode elicitation requests",
        _ => "This client did not declare that it can be asked this way.",
    }))
}
