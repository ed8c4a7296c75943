//! The names that MCP reserves inside `_meta`, and one of ours.
//!
//! ```
//! use trunkline_wire::era::stateless::Envelope;
//! use trunkline_wire::model::{ClientCapabilities, meta};
//! use trunkline_wire::{jsonrpc::Object, revision::Revision};
//!
//! let envelope = Envelope::new(Revision::V2026_07_28, ClientCapabilities::new());
//! let sent = Object::parse(envelope.to_json().get()).unwrap();
//! assert_eq!(sent.get(meta::PROTOCOL_VERSION).unwrap().get(), r#""2026-07-28""#);
//! assert_eq!(sent.get(meta::CLIENT_INFO), None);
//! ```

/// The revision a request speaks; required on every request from 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's capabilities; required on every request from 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The client's name and version.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The least severe log message that the request wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server's name and version, on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The id of the `subscriptions/listen` request that a message belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The 2025-11-25 task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Text for the model while a 2025-11-25 task runs.
pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
/// The progress of a task in the answer to `tasks/get`. Ours, not MCP's: its tasks only have a message.
pub const TASK_PROGRESS: &str = "trunkline/progress";
/// Asks for progress notifications with this token.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// W3C Trace Context.
pub const TRACESTATE: &str = "tracestate";
/// W3C Baggage.
pub const BAGGAGE: &str = "baggage";

/// A fault in a request's `_meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaFault {
    /// It is not an object.
    NotAnObject,
    /// It has a duplicate name, so that two parsers could disagree.
    Repeated,
    /// A required member is missing, or `_meta` itself.
    Missing(&'static str),
    /// The value of this member is invalid.
    Wrong(&'static str),
}

impl MetaFault {
    /// Why a `_meta` could not be parsed.
    pub(crate) fn of(meta: &crate::json::Json) -> Self {
        if meta.is_object() { Self::Repeated } else { Self::NotAnObject }
    }
}

impl std::fmt::Display for MetaFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("`_meta` must be an object."),
            Self::Repeated => f.write_str("A member name stands twice in `_meta`."),
            Self::Missing(name) => write!(f, "`_meta` must hold `{name}`."),
            Self::Wrong(name) => write!(f, "The value of `{name}` in `_meta` is not valid."),
        }
    }
}

impl std::error::Error for MetaFault {}

impl From<MetaFault> for crate::jsonrpc::ErrorObject {
    fn from(fault: MetaFault) -> Self {
        match fault {
            MetaFault::Repeated => Self::invalid_request(fault.to_string()),
            _ => Self::invalid_params(fault.to_string()),
        }
    }
}
