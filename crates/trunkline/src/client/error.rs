//! Why a connection or a call failed: whose fault it is, and what to do.

use std::fmt;

use trunkline_proto::client::{HttpError, OpenError};
use trunkline_transport::child::{Exit, SpawnError};
use trunkline_wire::code;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::CallToolResult;

use super::layer::LayerError;

/// A server that could not be reached.
///
/// ```
/// # use trunkline::client::{Client, Command, ConnectCause};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let connecting = Client::builder("example", "1").connect(Command::new("no-such-server"));
/// let error = connecting.await.unwrap_err();
/// assert!(matches!(error.cause, ConnectCause::Spawn(_)));
/// assert!(error.to_string().contains("`no-such-server`"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[non_exhaustive]
pub struct ConnectError {
    /// The stage that failed, and why.
    pub cause: ConnectCause,
    /// The command line, if a process was started.
    pub command: Option<String>,
    /// The address of a server over HTTP.
    pub url: Option<String>,
    /// How the process ended, if it did.
    pub exit: Option<Exit>,
    /// The last lines it wrote to stderr, safe to show.
    pub stderr: Vec<String>,
}

/// What went wrong while connecting; the variant is the stage.
///
/// ```
/// # use trunkline::{Revision, Server, client::{Client, ConnectCause, OpenError}};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("old", "1.0.0").protocol(Revision::V2024_11_05).build();
/// let builder = Client::builder("new", "1.0.0").protocol(Revision::V2026_07_28);
/// let error = builder.connect_memory(&server).await.unwrap_err();
/// assert!(matches!(error.cause, ConnectCause::Handshake(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectCause {
    /// The process did not start.
    Spawn(SpawnError),
    /// The handshake failed.
    Handshake(OpenError),
}

/// Why a call has no result.
///
/// ```
/// # use trunkline::{Server, client::{CallError, Client}};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let client = Client::in_memory(&Server::builder("empty", "1.0.0").tools_later().build()).await?;
/// match client.call_tool("none", ()).await {
///     Err(CallError::Peer(error)) => assert!(error.message.contains("`none`")),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered with an error.
    Peer(ErrorObject),
    /// Refused on this side: the revision or the server lacks the method, the params are invalid,
    /// or the host did not answer a question that the call depends on.
    Refused(ErrorObject),
    /// The server's answer breaks the protocol.
    Invalid(String),
    /// The server's answer does not match the method's result type.
    Decode {
        /// The method.
        method: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// The tool reported an error; only from [`Client::call`](super::Client::call).
    Tool(Box<CallToolResult>),
    /// The structured result violates the tool's `outputSchema`; only from
    /// [`Client::call`](super::Client::call).
    Schema {
        /// The tool.
        tool: String,
        /// All violations.
        why: String,
    },
    /// The list is longer than the limits allow.
    TooLong {
        /// The method.
        method: &'static str,
        /// The limit, in words.
        limit: String,
    },
    /// No answer in time.
    TimedOut,
    /// Cancelled, on this side or, for tasks, by the server.
    Cancelled,
    /// The connection ended before the answer. Whether the call ran is unknown.
    Closed,
    /// The server refused the call with an HTTP status.
    Http(HttpError),
    /// No credentials, such as a login, were available: the call did not run. In words.
    Credentials(String),
    /// The server could not be reached, or the connection had ended: the call was not sent. In
    /// words.
    Unreachable(String),
    /// The answer was lost on its way. Whether the call ran is unknown. In words.
    Lost(String),
    /// Not sent: a [`Host`](super::Host) did not consent, for this reason.
    Denied(String),
    /// A layer of this client failed it; see [`ClientBuilder::layer`](super::ClientBuilder::layer).
    Layer(LayerError),
}

impl ConnectError {
    pub(super) fn handshake(error: OpenError) -> Self {
        Self::of(ConnectCause::Handshake(error))
    }

    #[cfg(feature = "http")]
    pub(super) fn http(error: OpenError, url: &str) -> Self {
        Self { url: Some(url.to_owned()), ..Self::handshake(error) }
    }

    pub(super) fn spawn(error: SpawnError, command: String) -> Self {
        Self { command: Some(command), ..Self::of(ConnectCause::Spawn(error)) }
    }

    fn of(cause: ConnectCause) -> Self {
        Self { cause, command: None, url: None, exit: None, stderr: Vec::new() }
    }

    /// The stage that failed, in a word: `spawn` or `handshake`.
    ///
    /// ```
    /// # use trunkline::client::{Client, Command}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let connecting = Client::builder("example", "1").connect(Command::new("no-such-server"));
    /// assert_eq!(connecting.await.unwrap_err().stage(), "spawn");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn stage(&self) -> &'static str {
        match self.cause {
            ConnectCause::Spawn(_) => "spawn",
            ConnectCause::Handshake(_) => "handshake",
        }
    }

    /// What to do about it, if anything helps.
    ///
    /// ```
    /// # use trunkline::Client; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// // Nobody listens at this port.
    /// let connecting = Client::builder("example", "1.0.0").connect_http("http://127.0.0.1:9/mcp");
    /// let error = connecting.await.unwrap_err();
    /// assert_eq!(error.advice(), Some("Check the address, and that the server is running."));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn advice(&self) -> Option<&'static str> {
        let ConnectCause::Handshake(error) = &self.cause else { return None };
        if let Some(url) = &self.url
            && let Some(advice) = advice_over_http(error, url)
        {
            return Some(advice);
        }
        match error {
            OpenError::Closed { .. } if self.exit.is_some() => {
                Some("Run the command in a terminal to see why it ends.")
            }
            OpenError::Closed { .. } => Some("Check that the command is an MCP server over stdio."),
            OpenError::TimedOut => Some(
                "Check that the command is an MCP server over stdio, or give it more time to start.",
            ),
            OpenError::NoCommonRevision { .. } => Some(
                "Allow a revision that both sides speak, or use another version of the server.",
            ),
            OpenError::Refused(error) if error.code == code::UNSUPPORTED_REVISION => {
                Some("Allow another revision.")
            }
            OpenError::Refused(_) => Some("The server's own documentation may know why."),
            OpenError::Invalid(_) => Some("Check that nothing but MCP is written to its stdout."),
            _ => None,
        }
    }

    /// Whether it is a time-out.
    ///
    /// ```
    /// # use trunkline::client::{Client, Command}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let connecting = Client::builder("example", "1").connect(Command::new("no-such-server"));
    /// assert!(!connecting.await.unwrap_err().is_timeout(), "it failed at once");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause, ConnectCause::Handshake(OpenError::TimedOut))
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            // It names the command and gives advice already.
            ConnectCause::Spawn(error) => return error.fmt(f),
            ConnectCause::Handshake(error) => error.fmt(f)?,
        }
        if let Some(url) = &self.url {
            write!(f, " This was `{url}`.")?;
        }
        if let (Some(command), Some(exit)) = (&self.command, self.exit) {
            write!(f, " `{command}` {exit}.")?;
        }
        if let Some(advice) = self.advice() {
            write!(f, " {advice}")?;
        }
        if let Some((first, rest)) = self.stderr.split_first() {
            write!(f, " The last it wrote to stderr:\n  {first}")?;
            rest.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        }
        Ok(())
    }
}

/// Same as `Display`: a `main` that returns the error prints it this way.
impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            ConnectCause::Spawn(error) => Some(error),
            ConnectCause::Handshake(error) => Some(error),
        }
    }
}

fn advice_over_http(error: &OpenError, url: &str) -> Option<&'static str> {
    match error {
        // The error contains the advice already.
        OpenError::Credentials(_) => None,
        OpenError::Http(error) => match error.status {
            401 => Some("Give credentials, such as a header `Authorization: Bearer …`."),
            403 => Some("The credentials do not suffice, or the server lets no such client in."),
            404 | 405 => Some("Check the path of the address: often it is `/mcp` or `/sse`."),
            // File servers without POST answer this too.
            501 => Some("This does not look like an MCP server; check the address and its path."),
            500..600 => Some("The server is in trouble; try again later."),
            _ => Some("Check that the address is the one of an MCP server."),
        },
        // A certificate error contains its advice already.
        OpenError::Unreachable(_) if is_https(url) => {
            Some("Check the address, that the server is running, and its certificate.")
        }
        OpenError::Unreachable(_) => Some("Check the address, and that the server is running."),
        OpenError::TimedOut => Some("Check that the server is well, or give it more time."),
        OpenError::Invalid(_) => Some("Check that the address is the one of an MCP server."),
        _ => None,
    }
}

fn is_https(url: &str) -> bool {
    url.get(..8).is_some_and(|it| it.eq_ignore_ascii_case("https://"))
}

impl CallError {
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(ErrorObject::invalid_params(message))
    }
}

impl From<trunkline_proto::CallError> for CallError {
    fn from(error: trunkline_proto::CallError) -> Self {
        use trunkline_proto::CallError as Core;
        match error {
            Core::Peer(error) => Self::Peer(error),
            Core::Refused(error) => Self::Refused(error),
            Core::Invalid(why) => Self::Invalid(why),
            Core::TimedOut => Self::TimedOut,
            Core::Cancelled => Self::Cancelled,
            Core::Closed => Self::Closed,
            Core::Http(error) => Self::Http(error),
            Core::Credentials(why) => Self::Credentials(why),
            Core::Unreachable(why) => Self::Unreachable(why),
            Core::Lost(why) => Self::Lost(why),
            other => Self::Invalid(other.to_string()),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(error) => write!(f, "The server answered with an error: {error}"),
            Self::Refused(error) => {
                write!(f, "The call was refused on this side: {}", error.message)
            }
            Self::Invalid(why) => write!(f, "The server's answer breaks the protocol: {why}"),
            Self::Decode { method, why } => {
                write!(f, "The answer to `{method}` cannot be read: {why}.")
            }
            Self::Tool(result) => {
                let texts = result.content.iter().filter_map(|block| block.as_text());
                write!(f, "The tool failed: {}", texts.collect::<Vec<_>>().join("\n"))
            }
            Self::Schema { tool, why } => {
                write!(f, "`{tool}` broke the promise of its own `outputSchema`. {why}")
            }
            Self::TooLong { method, limit } => {
                write!(
                    f,
                    "`{method}` goes on beyond {limit}; raise the limit or take single pages."
                )
            }
            Self::TimedOut => f.write_str("The server did not answer in time."),
            Self::Cancelled => f.write_str("The call was cancelled."),
            Self::Closed => f.write_str("The connection ended before the answer came."),
            Self::Http(error) => error.fmt(f),
            Self::Credentials(why) => f.write_str(why),
            Self::Unreachable(why) => {
                write!(f, "The server cannot be reached, so the call was not made: {why}")
            }
            Self::Lost(why) => {
                write!(f, "The answer was lost, and the call may have been carried out: {why}")
            }
            Self::Denied(why) => write!(f, "The call was not allowed: {why}"),
            Self::Layer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Layer(error) => error.source(),
            _ => None,
        }
    }
}
