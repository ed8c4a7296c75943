//! A server: what it offers, and how it is served.
//!
//! Register [`tool`]s, [`resource`]s, [`template`]s and [`prompt`]s with [`Server::builder`]; they
//! are values made of plain async functions. Handlers never learn which revision serves them.
//!
//! ```
//! use trunkline::{Client, Server, tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = tool("now", async || "noon").about("Tells the time.");
//! let server = Server::builder("clock", "1.0.0").tool(now).build();
//! let client = Client::in_memory(&server).await?;
//! assert_eq!(client.call_tool("now", ()).await?.content[0].as_text(), Some("noon"));
//! # Ok(())
//! # }
//! ```

mod ask;
mod builder;
mod change;
mod complete;
mod compose;
mod context;
mod cursors;
mod function;
mod guard;
mod handler_options;
#[cfg(feature = "http")]
mod http;
mod job;
mod layers;
mod lists;
mod log;
mod marked;
#[cfg(feature = "replicas")]
mod news;
mod observe;
mod prompt;
#[cfg(feature = "auth")]
pub mod protect;
mod proxy;
#[cfg(feature = "replicas")]
mod replicas;
mod resource;
mod rounds;
mod router;
mod run;
mod scopes;
mod skills;
mod suggest;
mod tasks;
mod texts;
mod tool;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use tokio::io::{AsyncRead, AsyncWrite};
use trunkline_auth::seal::Sealer;
use trunkline_proto::server as core;
use trunkline_proto::{Call, Change};
use trunkline_transport::drive::{DriveError, Driver};
use trunkline_transport::listeners::Listeners;
use trunkline_transport::{Limits, stdio};
use trunkline_wire::json::Json as RawJson;
use trunkline_wire::model::CacheHint;

use crate::layer::Layers;
use crate::observe::{ServerObserver, Transport};
use crate::schema::SchemaProfile;
use lists::Registry;

pub use ask::{Answer, Ask, AskError, AskForm, AskModel, AskRoots, AskUrl, Declined};
pub use builder::{BuildError, ServerBuilder, Toolbox};
pub use complete::{Completes, IntoCompletion, Typed};
pub use compose::IntoServer;
pub use context::Context;
pub use function::{FromCall, Function, Input, Rejection, Signature};
#[cfg(feature = "http")]
pub use http::{Http, HttpBody, HttpService, bind};
#[doc(hidden)]
pub use marked::{Made, argument};
pub use prompt::{IntoPrompt, IntoPromptEntry, PromptEntry, prompt};
pub use proxy::{ProxyError, proxy};
#[cfg(feature = "replicas")]
pub use replicas::Replicas;
pub use resource::{
    Bytes, IntoContents, IntoResource, ResourceEntry, ResourceOrTemplate, TemplateEntry, resource,
    template,
};
pub use skills::{BadSkill, SkillEntry, skill};
pub use tool::{IntoTool, IntoToolResult, Json, Task, ToolEntry, ToolReply, tool};
pub use trunkline_proto::input_required::QuestionKind;
pub use trunkline_proto::task::TaskBounds;

/// A server, ready to be served any number of times. Cheap to clone. Its tasks stop when the last
/// clone is dropped.
///
/// ```
/// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let clones = (server.clone(), server);
/// let client = Client::in_memory(&clones.0).await?;
/// assert_eq!(client.call_tool("now", ()).await?.content[0].as_text(), Some("noon"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Server(Arc<Owner>);

/// What users and connections hold. Running tasks use the server too, but do not keep it alive.
struct Owner(Arc<Inner>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.tasks.stop_all();
    }
}

pub(crate) struct Inner {
    /// The owners of the server, for handlers that ask for it.
    owner: OnceLock<Weak<Owner>>,
    pub(crate) core: Arc<core::Config>,
    pub(crate) limits: Limits,
    pub(crate) tools: Registry<ToolEntry>,
    pub(crate) prompts: Registry<PromptEntry>,
    pub(crate) resources: Registry<ResourceEntry>,
    pub(crate) templates: Registry<TemplateEntry>,
    pub(crate) skills: skills::Skills,
    pub(crate) states: builder::States,
    pub(crate) profile: SchemaProfile,
    pub(crate) page: usize,
    pub(crate) cache: CacheHint,
    pub(crate) info: RawJson,
    pub(crate) sealer: Sealer,
    #[cfg(feature = "replicas")]
    pub(crate) replicas: Option<Arc<Replicas>>,
    pub(crate) tasks: tasks::Runtime,
    pub(crate) listeners: Listeners<Call>,
    pub(crate) observe: ServerObserver,
    pub(crate) layers: Layers,
    pub(crate) mounts: Vec<compose::Mount>,
    pub(crate) outers: compose::Outers,
    /// The principal of every call, in a test.
    #[cfg(feature = "testing")]
    pub(crate) principal: std::sync::Mutex<Option<trunkline_auth::Principal>>,
    /// Warnings about handlers that a test may want to see, each once.
    #[cfg(feature = "testing")]
    pub(crate) warnings: std::sync::Mutex<Vec<String>>,
}

impl Server {
    /// A server under construction.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("clock", "1.0.0").title("The clock").build();
    /// let client = Client::in_memory(&server).await?;
    /// assert_eq!(client.server_info().unwrap().version, "1.0.0");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name, version)
    }

    /// Serves one peer over a byte stream until it hangs up.
    ///
    /// ```
    /// # use trunkline::{Client, Server, transport::memory};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("empty", "1.0.0").build();
    /// let ((reader, writer), (server_reader, server_writer)) = memory::pair();
    /// let serving = tokio::spawn(async move { server.serve(server_reader, server_writer).await });
    /// let client = Client::builder("example", "1.0.0").connect_io(reader, writer).await?;
    /// client.close().await;
    /// assert!(serving.await?.is_ok(), "it ends when the peer hangs up");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
    ) -> Result<(), ServeError> {
        self.serve_over(reader, writer, None).await
    }

    async fn serve_over(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        transport: Option<Transport>,
    ) -> Result<(), ServeError> {
        let inner = &self.0.0;
        inner.watch_tasks();
        let core = core::Server::new(Arc::clone(&inner.core));
        let handler = Arc::new(router::Router(Arc::clone(inner), transport));
        let driver = Driver::new(core, handler, (reader, writer), None, inner.limits.clone());
        driver.run().await.map_err(ServeError::Drive)
    }

    /// Serves the process that started this one, over stdin and stdout.
    ///
    /// ```no_run
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> Result<(), trunkline::server::ServeError> {
    ///     trunkline::Server::builder("empty", "1.0.0").build().serve_stdio().await
    /// }
    /// ```
    pub async fn serve_stdio(&self) -> Result<(), ServeError> {
        let reader = stdio::stdin().map_err(ServeError::Stdio)?;
        let writer = stdio::stdout().map_err(ServeError::Stdio)?;
        self.serve_over(reader, writer, Some(Transport::Stdio)).await
    }

    /// [`Self::serve_stdio`] for a `main` without a runtime.
    ///
    /// ```no_run
    /// fn main() -> Result<(), trunkline::server::ServeError> {
    ///     trunkline::Server::builder("empty", "1.0.0").build().run_stdio()
    /// }
    /// ```
    pub fn run_stdio(&self) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ServeError::Stdio)?;
        let served = runtime.block_on(self.serve_stdio());
        // A handler that blocks its thread must not keep the process alive after the peer has gone.
        runtime.shutdown_background();
        served
    }

    /// Notifies every listening client that something changed, each in its revision's way, also those
    /// of other replicas. A client that does not read gets the notification later and blocks nobody
    /// else.
    ///
    /// ```
    /// # use trunkline::{Change, Client, Server, model::SubscriptionFilter, resource};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let menu = resource("menu://today", "menu", async || "Soup.");
    /// let server = Server::builder("inn", "1.0.0").resource(menu).build();
    /// let client = Client::in_memory(&server).await?;
    /// let filter = SubscriptionFilter::new().resource_subscriptions(["menu://today".to_owned()]);
    /// let mut listener = client.listen(filter).await?;
    /// let change = Change::Resource("menu://today".to_owned());
    /// server.changed(change.clone()).await;
    /// assert_eq!(listener.next().await, Some(change));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn changed(&self, change: Change) {
        self.0.0.tell_everywhere(&change);
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0.0
    }

    fn new(inner: Inner) -> Self {
        let owner = Arc::new(Owner(Arc::new(inner)));
        let _ = owner.0.owner.set(Arc::downgrade(&owner));
        Self(owner)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.0.0.core.info.name)
            .field("tools", &self.0.0.tools.now().len())
            .finish_non_exhaustive()
    }
}

/// Why a server stopped serving.
///
/// ```
/// let error = trunkline::server::ServeError::Stdio(std::io::Error::other("closed"));
/// assert_eq!(error.to_string(), "stdin and stdout cannot be used: closed.");
/// ```
#[derive(Debug)]
pub enum ServeError {
    /// stdin or stdout could not be used.
    Stdio(std::io::Error),
    /// The conversation failed.
    Drive(DriveError),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(error) => write!(f, "stdin and stdout cannot be used: {error}."),
            Self::Drive(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServeError {}
