//! A client: how to reach a server, call it, and answer it.
//!
//! ```no_run
//! use trunkline::client::{Client, Command};
//! use trunkline::serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("example", "1.0.0").connect(Command::new("some-server")).await?;
//! for tool in client.list_tools().await? {
//!     println!("{}", tool.name);
//! }
//! let result = client
//!     .call_tool("book", json!({ "city": "Oslo", "nights": 2 }))
//!     .on_progress(|step| println!("{} of {:?}", step.progress, step.total))
//!     .await?;
//! println!("{:?}", result.content);
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Connecting settles the revision, and nothing here depends on it. Read [`Responder`] for the
//! questions a server may ask, [`Call`] for the options of a call, [`Host`] for many servers at
//! once.

mod ask;
mod builder;
mod cache;
mod call;
mod calls;
mod error;
mod hooks;
mod host;
mod known;
mod layer;
mod listen;
mod pages;
mod question;
mod rejected;
mod responder;
mod retry;
mod roots;
mod skills;
mod stream;
mod tasks;
mod texts;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use trunkline_proto::client::Opened;
use trunkline_transport::child::Child;
use trunkline_transport::connection::Connection;
use trunkline_wire::model::{Implementation, ServerCapabilities};
use trunkline_wire::revision::Revision;

use crate::Server;

pub use crate::layer::BoxError;
pub use builder::{ClientBuilder, IntoHooks};
pub use call::{Call, Running};
pub use error::{CallError, ConnectCause, ConnectError};
pub use hooks::Hooks;
pub use host::{Consent, Host, HostBuilder, HostError, Item, Listed, Target, Wish};
pub use layer::{ClientRequest, LayerError, Requests};
pub use listen::Listener;
pub use question::{Question, Sampling};
pub use rejected::RejectedTool;
pub use responder::Responder;
pub use retry::{Retry, Retrying};
pub use roots::{Roots, RootsWatch};
pub use skills::SkillError;
pub use stream::{CallStream, Event};
pub use tasks::ToolCall;
pub use texts::IntoTexts;
/// Why a handshake failed, and what an HTTP status said.
pub use trunkline_proto::client::{HttpError, OpenError};
pub use trunkline_transport::child::Command;
/// Why a server did not start, or how it ended.
pub use trunkline_transport::child::{Exit, SpawnError};
/// How messages are framed in a byte stream.
pub use trunkline_wire::frame::Framing;

/// A connection to a server. Calls may run concurrently; each is sent when it is awaited.
///
/// Dropping the client kills a server that was started for it, with the server's whole process
/// group; [`Client::close`] shuts it down gracefully.
///
/// ```
/// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let client = Client::in_memory(&server).await?;
/// // Two calls at once.
/// let (one, other) = tokio::join!(
///     client.call_tool("now", ()).into_future(),
///     client.call_tool("now", ()).into_future(),
/// );
/// assert_eq!(one?, other?);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Client {
    caller: call::Caller,
    // Dropped in this order: listeners, the connection, and then the process at its other end.
    subscriptions: Mutex<BTreeMap<String, Listener>>,
    connection: Connection,
    child: Option<Child>,
}

impl Client {
    /// A client under construction.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// Connects to a server in this process with all defaults: this client answers no questions and
    /// speaks the newest revision. [`ClientBuilder::connect_memory`] has the options.
    pub async fn in_memory(server: &Server) -> Result<Self, ConnectError> {
        let version = env!("CARGO_PKG_VERSION");
        Self::builder("trunkline", version).connect_memory(server).await
    }

    /// The revision of this connection.
    pub fn revision(&self) -> Revision {
        self.caller.revision()
    }

    /// The server's name and version. Self-reported: never base a decision on it.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert_eq!(client.server_info().map(|it| &*it.version), Some("1.0.0"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn server_info(&self) -> Option<&Implementation> {
        self.caller.opened.info.as_ref()
    }

    /// The server's capabilities.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert!(client.server_capabilities().tools.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.caller.opened.capabilities
    }

    /// The server's instructions for the model.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("clock", "1.0.0").instructions("Ask at noon.").build();
    /// assert_eq!(Client::in_memory(&server).await?.instructions(), Some("Ask at noon."));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn instructions(&self) -> Option<&str> {
        self.caller.opened.instructions.as_deref()
    }

    /// Everything that the handshake found out.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert_eq!(client.opened().revision, client.revision());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn opened(&self) -> &Arc<Opened> {
        &self.caller.opened
    }

    /// Whether the connection has ended.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert!(!client.is_closed());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// The last lines that a server started for this client wrote to stderr, safe to show.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert!(client.stderr().is_empty(), "no process was started");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn stderr(&self) -> Vec<String> {
        self.child.as_ref().map(|child| child.stderr().lines()).unwrap_or_default()
    }

    /// Closes the connection in good order. A server that was started for this client gets
    /// end-of-file on its stdin, then SIGTERM, then SIGKILL. Returns how it ended.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::in_memory(&Server::builder("empty", "1.0.0").build()).await?;
    /// assert!(client.close().await.is_none(), "no process was started");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn close(self) -> Option<Exit> {
        let Self { subscriptions, connection, child, .. } = self;
        drop(subscriptions);
        connection.close().await;
        match child {
            Some(child) => Some(child.stop().await),
            None => None,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("opened", &self.caller.opened).finish_non_exhaustive()
    }
}
