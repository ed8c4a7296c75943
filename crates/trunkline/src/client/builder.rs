//! The settings of a client, and the ways to connect it.

mod args;
mod http;
mod observe;
mod sugar;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use trunkline_auth::setters;
use trunkline_proto::client::{Config, OpenError};
use trunkline_proto::{Bounds, Timing};
use trunkline_transport::Limits;
use trunkline_transport::child::{Child, Command};
use trunkline_transport::connection::Connection;
use trunkline_transport::memory;
use trunkline_wire::frame::Framing;
use trunkline_wire::json::Json;
use trunkline_wire::model::{Implementation, LogLevel, Progress, TASKS_EXTENSION};
use trunkline_wire::revision::{Era, Revision, Revisions};

use super::Client;
use super::ask::{Answers, DeclaredResponder};
use super::cache::Cache;
use super::call::{Caller, Shared};
use super::error::ConnectError;
use super::layer::Layers;
use super::listen::Hub;
use super::responder::Responder;
use crate::Server;
use crate::observe::{ClientObserver, Transport};

use http::Http;
pub use sugar::IntoHooks;

/// A client under construction.
///
/// ```
/// use trunkline::{Client, Server};
/// use std::time::Duration;
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("empty", "1.0.0").build();
/// let timing = trunkline::Timing { idle: Duration::from_secs(5), ..Default::default() };
/// let client = Client::builder("example", "1.0.0").timing(timing).connect_memory(&server).await?;
/// assert!(client.ping().await.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder<H = ()> {
    info: Implementation,
    revisions: Revisions,
    responder: Arc<H>,
    log_level: Option<LogLevel>,
    limits: Limits,
    timing: Option<Timing>,
    framing: Framing,
    keeps_answers: bool,
    http: Http,
    pub(crate) observe: ClientObserver,
    layers: Layers,
    on_progress: OnProgress,
}

/// A callback for the progress of every call.
#[derive(Clone, Default)]
struct OnProgress(Option<super::call::ProgressCallback>);

impl std::fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.is_some().fmt(f)
    }
}

impl ClientBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            revisions: Revisions::ALL,
            responder: Arc::new(()),
            log_level: None,
            limits: Limits::default(),
            timing: None,
            framing: Framing::Newline,
            keeps_answers: true,
            http: Http::default(),
            observe: ClientObserver::default(),
            layers: Layers::default(),
            on_progress: OnProgress::default(),
        }
    }
}

impl<H: Responder> ClientBuilder<H> {
    /// Speaks only this revision.
    pub fn protocol(self, revision: Revision) -> Self {
        self.protocols(Revisions::only(revision))
    }

    /// Speaks one of these revisions.
    pub fn protocols(mut self, revisions: Revisions) -> Self {
        self.revisions = revisions;
        self
    }

    /// Answers the server's questions with `responder`.
    pub fn responder<G: Responder>(self, responder: G) -> ClientBuilder<G> {
        self.swap(responder).0
    }

    setters! {
        /// Describes this client by more than its name and version.
        info(info: Implementation) { info = info }

        /// Asks for log messages of this level and above.
        ///
        /// ```
        /// # use trunkline::{Client, Server, model::LogLevel};
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let server = Server::builder("empty", "1.0.0").build();
        /// let client = Client::builder("example", "1.0.0")
        ///     .log_level(LogLevel::Warning)
        ///     .on_log(|message| eprintln!("{}", message.data));
        /// assert!(client.connect_memory(&server).await.is_ok());
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        log_level(level: LogLevel) { log_level = Some(level) }

        /// Limits the resources that a server can use.
        limits(limits: Limits) { limits = limits }

        /// The default time-outs of a call.
        timing(timing: Timing) { timing = Some(timing) }

        /// How messages are framed in the byte stream; one per line by default.
        framing(framing: Framing) { framing = framing }

        /// Whether results are cached for as long as the server says that they stay fresh (2026-07-28),
        /// within [`Limits::cache_entries`] and [`Limits::cache_bytes`]; on by default.
        ///
        /// ```
        /// # use trunkline::{Client, Server, model::CacheHint};
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let server = Server::builder("empty", "1").cache(CacheHint::public(60_000)).tools_later().build();
        /// let client = Client::builder("example", "1").cache(false).connect_memory(&server).await?;
        /// assert!(client.list_tools().await?.is_empty());
        /// server.put_tool(trunkline::tool("new", async || "I am new."))?;
        /// assert_eq!(client.list_tools().await?.len(), 1, "the server was asked again");
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        cache(is_on: bool) { keeps_answers = is_on }
    }

    /// Asks for the progress of every call of a handler, and gets it before the call itself does.
    #[cfg_attr(not(feature = "testing"), allow(dead_code))]
    pub(crate) fn watch_progress(
        mut self,
        heard: impl Fn(&Progress) + Send + Sync + 'static,
    ) -> Self {
        self.on_progress = OnProgress(Some(Arc::new(heard)));
        self
    }

    /// Starts a server and connects to it over its stdin and stdout. A server that exits on the
    /// `server/discover` probe is started once more, with `initialize`.
    ///
    /// ```
    /// # use trunkline::client::{Client, Command}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let builder = Client::builder("example", "1.0.0");
    /// let error = builder.connect(Command::new("no-such-server").arg("-q")).await.unwrap_err();
    /// assert_eq!(error.stage(), "spawn");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn connect(mut self, command: Command) -> Result<Client, ConnectError> {
        self.observe.set_transport(Transport::Stdio);
        let stateful = self.revisions.of_era(Era::Stateful);
        match self.start(&command, self.revisions).await {
            Err((_, OpenError::Closed { probing: true })) if !stateful.is_empty() => {
                self.start(&command, stateful).await.map_err(|(error, _)| error)
            }
            outcome => outcome.map_err(|(error, _)| error),
        }
    }

    /// Connects over a byte stream.
    ///
    /// ```
    /// # use trunkline::{Client, Server, transport::memory};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("empty", "1.0.0").build();
    /// let ((reader, writer), (server_reader, server_writer)) = memory::pair();
    /// tokio::spawn(async move { server.serve(server_reader, server_writer).await });
    /// let client = Client::builder("example", "1.0.0").connect_io(reader, writer).await?;
    /// assert_eq!(client.server_info().unwrap().name, "empty");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn connect_io(
        self,
        reader: impl AsyncRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Client, ConnectError> {
        let opened = self.open((reader, writer), self.revisions).await;
        let client = opened.map_err(ConnectError::handshake)?;
        client.begin(self.log_level).await;
        Ok(client)
    }

    /// Connects to a server in this process: for tests, and for hosts with built-in servers.
    ///
    /// ```
    /// # use trunkline::{Client, Server}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder("empty", "1.0.0").build();
    /// let client = Client::builder("example", "1.0.0").connect_memory(&server).await?;
    /// assert_eq!(client.server_info().unwrap().name, "empty");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn connect_memory(self, server: &Server) -> Result<Client, ConnectError> {
        let ((reader, writer), (server_reader, server_writer)) = memory::pair();
        let server = server.clone();
        // It ends when the client disconnects, and the client sees how.
        tokio::spawn(async move { server.serve(server_reader, server_writer).await });
        self.connect_io(reader, writer).await
    }

    /// The same builder with another responder, and its previous one.
    fn swap<G>(self, responder: G) -> (ClientBuilder<G>, Arc<H>) {
        let builder = ClientBuilder {
            info: self.info,
            revisions: self.revisions,
            responder: Arc::new(responder),
            log_level: self.log_level,
            limits: self.limits,
            timing: self.timing,
            framing: self.framing,
            keeps_answers: self.keeps_answers,
            http: self.http,
            observe: self.observe,
            layers: self.layers,
            on_progress: self.on_progress,
        };
        (builder, self.responder)
    }

    /// One attempt with a new process.
    async fn start(
        &self,
        command: &Command,
        revisions: Revisions,
    ) -> Result<Client, (ConnectError, OpenError)> {
        let line = command.to_string();
        let spawned = Child::spawn(command.clone(), &self.limits).await;
        let mut child = spawned.map_err(|error| {
            (ConnectError::spawn(error, line.clone()), OpenError::Closed { probing: false })
        })?;
        let (stdin, stdout) = (child.take_stdin(), child.take_stdout());
        let stream = (
            stdout.expect("nobody else has taken the child's stdout"),
            stdin.expect("nobody else has taken the child's stdin"),
        );
        match self.open(stream, revisions).await {
            Ok(mut client) => {
                client.child = Some(child);
                client.begin(self.log_level).await;
                Ok(client)
            }
            Err(error) => {
                let mut failed = ConnectError::handshake(error.clone());
                if matches!(error, OpenError::Closed { .. }) {
                    // It is about to exit, and its exit status says most.
                    let _ = timeout(EXIT_GRACE, child.exited()).await;
                }
                failed.exit = child.exit();
                failed.command = Some(line);
                failed.stderr = child.stderr().lines();
                Err((failed, error))
            }
        }
    }

    async fn open(
        &self,
        stream: (impl AsyncRead + Unpin + Send + 'static, impl AsyncWrite + Unpin + Send + 'static),
        revisions: Revisions,
    ) -> Result<Client, OpenError> {
        let (config, answers, ready) = self.prepare(revisions);
        let limits = self.limits.clone();
        let connection = Connection::open(config, answers, stream, self.framing, limits).await?;
        Ok(ready.join(connection))
    }

    /// What a connection needs, and the rest of the client.
    fn prepare(&self, revisions: Revisions) -> (Arc<Config>, Arc<Answers<H>>, Ready) {
        let limits = &self.limits;
        let timing = self
            .timing
            .unwrap_or(Timing { idle: limits.call_deadline, hard: limits.hard_deadline });
        let mut capabilities = self.responder.capabilities();
        // This client follows calls that become tasks, so servers may create them.
        capabilities
            .extensions
            .entry(TASKS_EXTENSION.to_owned())
            .or_insert_with(Json::empty_object);
        let mut config = Config::new(self.info.clone());
        config.revisions = revisions;
        config.capabilities = capabilities.clone();
        config.bounds = bounds(limits, timing, revisions);

        let hub = Arc::new(Hub::default());
        let hosted = Arc::new(DeclaredResponder::new(Arc::clone(&self.responder), capabilities));
        let answers = Answers { hosted: Arc::clone(&hosted), hub: Arc::clone(&hub) };
        let cache_entries = if self.keeps_answers { limits.cache_entries } else { 0 };
        let shared = Shared {
            limits: limits.clone(),
            timing,
            log_level: Mutex::new(self.log_level),
            asked: hosted,
            hub,
            cache: Cache::new(cache_entries, limits.cache_bytes),
            rejected: super::rejected::Rejected::default(),
            known: super::known::KnownTools::default(),
            layers: self.layers.clone(),
            observe: self.observe.clone(),
            on_progress: self.on_progress.0.clone(),
        };
        (Arc::new(config), Arc::new(answers), Ready(Arc::new(shared)))
    }
}

/// A client without its connection.
struct Ready(Arc<Shared>);

impl Ready {
    fn join(self, connection: Connection) -> Client {
        let caller = Caller {
            handle: connection.handle().clone(),
            opened: Arc::clone(connection.opened()),
            shared: self.0,
        };
        Client { caller, subscriptions: Mutex::default(), connection, child: None }
    }
}

impl Client {
    /// Sends what follows the handshake.
    async fn begin(&self, log_level: Option<LogLevel>) {
        if let Some(level) = log_level
            && self.caller.opened.capabilities.logging
        {
            // A server without log levels logs as it likes; that is no reason to fail.
            let _ = self.set_log_level(level).await;
        }
    }
}

fn bounds(limits: &Limits, timing: Timing, revisions: Revisions) -> Bounds {
    let usual = Bounds { call: timing, ..limits.bounds() };
    // Without a fallback the probe gets the same time as any other request.
    let probe = match revisions.of_era(Era::Stateful).is_empty() {
        true => limits.init_deadline,
        // With a short handshake deadline, the probe gets half of it.
        false => usual.probe.min(limits.init_deadline / 2),
    };
    Bounds { probe, ..usual }
}

/// How long a server that closed its stdout may take to exit.
const EXIT_GRACE: Duration = Duration::from_secs(1);
