//! Calls and requests → spans of `tracing` and measurements for a [`Meter`].
//!
//! Both follow the OpenTelemetry conventions for MCP. There is a span around every call that
//! reaches a handler of a server (target `trunkline::server`), around every request of a client
//! (`trunkline::client`) and around the work of every task (`trunkline::task`), all at level
//! `INFO`. They hold names and codes, and never an argument, a result, a message, a token or the
//! id of a session.
//!
//! ```
//! use trunkline::observe::Metrics;
//! use trunkline::{Client, Server, tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let metrics = Metrics::new();
//! let greet = tool("greet", async || "Hello!");
//! let server = Server::builder("example", "1.0.0").meter(metrics.clone()).tool(greet).build();
//! let client = Client::in_memory(&server).await?;
//! client.call_tool("greet", ()).await?;
//! assert!(metrics.render().contains(r#"gen_ai_tool_name="greet""#));
//! # Ok(())
//! # }
//! ```
//!
//! Without a subscriber and a meter, a call costs two checks.

mod client;
mod metrics;
mod server;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_wire::revision::Revision;

pub use crate::trace::BadTraceparent;
pub(crate) use client::ClientObserver;
pub use metrics::Metrics;
pub(crate) use server::{About, ServerObserver};
pub(crate) use watch::{Watch, follow};

/// Receives every finished operation: a call that a server answered, or a request of a client.
///
/// It runs in the task of the call, so it must neither block nor panic.
///
/// ```
/// use trunkline::Server;
/// use trunkline::observe::{Meter, Operation};
///
/// struct Slow;
///
/// impl Meter for Slow {
///     fn operation(&self, operation: &Operation<'_>) {
///         if operation.duration.as_secs() >= 5 {
///             eprintln!("{} took {:?}", operation.method, operation.duration);
///         }
///     }
/// }
///
/// let server = Server::builder("example", "1.0.0").meter(Slow).build();
/// ```
pub trait Meter: Send + Sync + 'static {
    /// An operation has finished.
    ///
    /// ```
    /// # use trunkline::{Client, Server, observe::{Meter, Operation}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// struct Tools;
    ///
    /// impl Meter for Tools {
    ///     fn operation(&self, operation: &Operation<'_>) {
    ///         assert!(operation.target.is_none_or(|it| it == "now"));
    ///     }
    /// }
    ///
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let client = Client::in_memory(&server.meter(Tools).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    fn operation(&self, operation: &Operation<'_>);
}

impl<M: Meter + ?Sized> Meter for Arc<M> {
    fn operation(&self, operation: &Operation<'_>) {
        (**self).operation(operation);
    }
}

/// A finished operation.
///
/// ```
/// use trunkline::observe::{Operation, Role};
///
/// fn is_failed_tool(operation: &Operation<'_>) -> bool {
///     operation.role == Role::Server && operation.target.is_some() && operation.error.is_some()
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// The side that observed it.
    pub role: Role,
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The tool or prompt. A server uses registered names only and [`OTHER`] for the rest, so
    /// clients cannot invent names.
    pub target: Option<&'a str>,
    /// The revision of the call.
    pub revision: Revision,
    /// The transport, if it is known.
    pub transport: Option<Transport>,
    /// The kind of failure; `None` on success.
    pub error: Option<ErrorType>,
    /// How long it took.
    pub duration: Duration,
}

/// The name of everything unregistered, which keeps cardinality low.
///
/// ```
/// assert_eq!(trunkline::observe::OTHER, "_other");
/// ```
pub const OTHER: &str = "_other";

/// A side of a conversation.
///
/// ```
/// # use trunkline::observe::Role;
/// assert_ne!(Role::Server, Role::Client);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// It sent the request.
    Client,
    /// It answered the request.
    Server,
}

/// A transport.
///
/// ```
/// # use trunkline::observe::Transport;
/// assert_eq!(Transport::Http.network(), "tcp");
/// assert_eq!(Transport::Stdio.network(), "pipe");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Transport {
    /// The stdin and stdout of a process.
    Stdio,
    /// HTTP, Streamable or with SSE.
    Http,
}

impl Transport {
    /// The value of `network.transport`.
    ///
    /// ```
    /// assert_eq!(trunkline::observe::Transport::Http.network(), "tcp");
    /// ```
    pub fn network(self) -> &'static str {
        match self {
            Self::Stdio => "pipe",
            Self::Http => "tcp",
        }
    }

    /// The value of `network.protocol.name`.
    fn protocol(self) -> Option<&'static str> {
        (self == Self::Http).then_some("http")
    }
}

/// The kind of failure, as in `error.type`.
///
/// ```
/// # use trunkline::observe::ErrorType;
/// assert_eq!(ErrorType::Tool.to_string(), "tool_error");
/// assert_eq!(ErrorType::Code(-32602).to_string(), "-32602");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorType {
    /// The tool reported an error.
    Tool,
    /// The answer is a JSON-RPC error with this code.
    Code(i64),
    /// No answer in time.
    Timeout,
    /// The caller cancelled, disconnected, or dropped the call. On a server, also a call that
    /// exceeded its time limits.
    Cancelled,
    /// The handler panicked.
    Panic,
    /// Refused before it was sent.
    Refused,
    /// The answer breaks the protocol, or does not match the method's result type.
    Invalid,
    /// The connection ended first.
    Closed,
    /// Refused with this HTTP status.
    Http(u16),
    /// No credentials were available.
    Credentials,
    /// The server could not be reached.
    Unreachable,
    /// The answer was lost on its way.
    Lost,
    /// Something else.
    Other,
}

impl ErrorType {
    /// The code of the JSON-RPC error that the client got.
    fn code(self) -> Option<i64> {
        match self {
            Self::Code(code) => Some(code),
            Self::Panic => Some(trunkline_wire::code::INTERNAL_ERROR),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool_error",
            Self::Code(code) => return code.fmt(f),
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Panic => "panic",
            Self::Refused => "refused",
            Self::Invalid => "invalid_answer",
            Self::Closed => "closed",
            Self::Http(status) => return status.fmt(f),
            Self::Credentials => "credentials",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
            Self::Other => "_OTHER",
        })
    }
}
