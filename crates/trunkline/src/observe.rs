//! What goes on in a server or a client → spans of `tracing` and numbers for a [`Meter`].
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
//! Where nobody listens and there is no meter, a call costs the two looks that find that out.

mod client;
mod metrics;
mod server;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_wire::revision::Revision;

pub use crate::trace::BadTraceparent;
pub(crate) use client::Outward;
pub use metrics::Metrics;
pub(crate) use server::{About, Inward};
pub(crate) use watch::{Watch, follow};

/// Is told of every operation that is over: a call that a server answered, a request of a client.
///
/// It is called where the call is, so it must neither block nor panic.
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
    /// An operation is over.
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

/// An operation that is over.
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
    /// On which side it was seen.
    pub role: Role,
    /// The method, such as `tools/call`.
    pub method: &'static str,
    /// The tool or prompt it is about. A server names those that are registered, and calls all
    /// others [`OTHER`], whatever clients write.
    pub target: Option<&'a str>,
    /// The revision that was spoken.
    pub revision: Revision,
    /// What carried it, if it is known.
    pub transport: Option<Transport>,
    /// What went wrong; `None` if it went well.
    pub error: Option<ErrorType>,
    /// How long it took.
    pub duration: Duration,
}

/// The name for what is not named, so that names stay few.
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
    /// It called.
    Client,
    /// It was called.
    Server,
}

/// What carries messages.
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
    /// HTTP, in either form.
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

/// What went wrong, as `error.type` has it.
///
/// ```
/// # use trunkline::observe::ErrorType;
/// assert_eq!(ErrorType::Tool.to_string(), "tool_error");
/// assert_eq!(ErrorType::Code(-32602).to_string(), "-32602");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorType {
    /// The tool says that it failed.
    Tool,
    /// The answer is a JSON-RPC error of this code.
    Code(i64),
    /// There was no answer in time.
    Timeout,
    /// Nobody wanted the answer any more: the caller cancelled, hung up, or dropped the call. On a
    /// server, also a call that took longer than its limits allow.
    Cancelled,
    /// The handler panicked.
    Panic,
    /// Refused before it was sent.
    Refused,
    /// The answer breaks the protocol, or is not what the method promises.
    Invalid,
    /// The connection ended first.
    Closed,
    /// Refused with this HTTP status.
    Http(u16),
    /// Nothing was found that lets the call in.
    Credentials,
    /// The server could not be reached.
    Unreachable,
    /// The answer was lost on its way.
    Lost,
    /// Something else.
    Other,
}

impl ErrorType {
    /// The code of the JSON-RPC error that the caller got.
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
