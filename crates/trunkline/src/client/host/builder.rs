//! Names and targets → connections, made concurrently.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trunkline_auth::setters;
use trunkline_proto::Change;
use trunkline_transport::child::Command;
use trunkline_wire::model::{Implementation, LogMessage};

use super::consent::{Consent, Guard, Guarded, Wish};
use super::{Host, Member, join_all};
use crate::Server;
use crate::client::Client;
use crate::client::builder::ClientBuilder;
use crate::client::error::ConnectError;
use crate::client::hooks::Hooks;

/// A host under construction.
///
/// ```
/// let clock = trunkline::Server::builder("clock", "1.0.0").build();
/// let builder = trunkline::client::Host::builder("app", "1.0.0").server("clock", &clock);
/// assert_eq!(format!("{builder:?}"), r#"["clock"]"#);
/// ```
#[must_use = "a builder does nothing until it connects"]
pub struct HostBuilder {
    info: Implementation,
    servers: Vec<(String, ClientBuilder, Target)>,
    guard: Guard,
}

/// Where a server of a host is: a [`Command`] that starts it, a URL (feature `http`), or a
/// [`Server`] of this process.
///
/// ```
/// use trunkline::client::{Command, Target};
///
/// assert!(matches!(Target::from(Command::new("travel-server")), Target::Command(_)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// A process to be started.
    Command(Command),
    /// An address.
    #[cfg(feature = "http")]
    Url(String),
    /// A server in this process.
    Memory(Server),
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

#[cfg(feature = "http")]
impl From<&str> for Target {
    fn from(url: &str) -> Self {
        Self::Url(url.to_owned())
    }
}

#[cfg(feature = "http")]
impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::Url(url)
    }
}

impl From<&Server> for Target {
    fn from(server: &Server) -> Self {
        Self::Memory(server.clone())
    }
}

impl HostBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self { info, servers: Vec::new(), guard: Guard::default() }
    }

    /// Adds a server under a name of your choice: letters, digits, `-` and `_`.
    pub fn server(self, name: impl Into<String>, target: impl Into<Target>) -> Self {
        let client = ClientBuilder::new(self.info.clone());
        self.server_with(name, client, target)
    }

    setters! {
        /// The same with a client builder of its own: for headers, deadlines, revisions and layers.
        server_with(name: impl Into<String>, client: ClientBuilder, target: impl Into<Target>) {
            servers.push((name.into(), client, target.into()))
        }

        /// Answers the servers' questions. Each question knows which server asks.
        hooks(hooks: Hooks) { guard.hooks = hooks }

        /// Decides whether a tool may be called or a server may ask, before anything is sent or anybody
        /// is asked. It must not block.
        ///
        /// Without it, [`Self::on_consent`] decides everything. With neither, the program's own calls
        /// are allowed, and servers reach the user, the model and the roots as far as [`Self::hooks`]
        /// answer them; without hooks a server can ask nothing.
        consent(rule: impl Fn(&Wish) -> Consent + Send + Sync + 'static) {
            guard.rule = Some(Arc::new(rule))
        }
    }

    /// Asks the user for consent: for what [`Self::consent`] leaves to the user, or for everything
    /// if there is no such rule.
    ///
    /// ```
    /// # use trunkline::{Server, client::{Consent, Host}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let builder = Host::builder("app", "1").server("clock", &clock).consent(|_| Consent::Ask);
    /// let builder = builder.on_consent(|wish| async move { wish.server() == "clock" });
    /// let host = builder.connect().await?;
    /// assert!(host.call_tool("clock.now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_consent<F>(mut self, ask: impl Fn(Wish) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.guard.ask = Some(Arc::new(move |wish| Box::pin(ask(wish))));
        self
    }

    setters! {
        /// Receives the servers' logs, each with the name of its server.
        ///
        /// ```
        /// # use trunkline::{Client, Context, Server, client::Host, model::LogLevel, tool}; use std::sync::mpsc::channel;
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let save = async |cx: Context| cx.log(LogLevel::Info, "Saved.").await;
        /// # let files = Server::builder("files", "1.0.0").tool(tool("save", save)).build();
        /// let (heard, log) = channel();
        /// let host = Host::builder("app", "1.0.0")
        ///     .server_with("files", Client::builder("app", "1.0.0").log_level(LogLevel::Info), &files)
        ///     .on_log(move |server, _| heard.send(server.to_owned()).unwrap())
        ///     .connect()
        ///     .await?;
        /// host.call_tool("files.save", ()).await?;
        /// assert_eq!(log.recv()?, "files");
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        on_log(heard: impl Fn(&str, LogMessage) + Send + Sync + 'static) {
            guard.log = Some(Arc::new(heard))
        }

        /// Receives changes, each with the name of its server.
        ///
        /// ```
        /// # use trunkline::{Client, Revision, Server, client::Host, tool}; use std::sync::mpsc::channel;
        /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
        /// # let clock = Server::builder("clock", "1.0.0").tools_later().build();
        /// # let old = Client::builder("app", "1.0.0").protocol(Revision::V2025_11_25);
        /// let (heard, changes) = channel();
        /// let builder = Host::builder("app", "1.0.0").server_with("clock", old, &clock);
        /// let builder = builder.on_change(move |server, _| heard.send(server.to_owned()).unwrap());
        /// let host = builder.connect().await?;
        /// assert!(host.tools().await.items.is_empty());
        /// clock.put_tool(tool("now", async || "noon"))?;
        /// assert_eq!(changes.recv()?, "clock");
        /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
        /// ```
        on_change(heard: impl Fn(&str, &Change) + Send + Sync + 'static) {
            guard.change = Some(Arc::new(heard))
        }
    }

    /// Connects to all servers concurrently. One that cannot be reached does not affect the others;
    /// [`Host::failures`] has it.
    pub async fn connect(self) -> Result<Host, HostError> {
        check(&self.servers)?;
        let guard = Arc::new(self.guard);
        let (mut names, mut connecting) = (Vec::new(), Vec::new());
        for (name, client, target) in self.servers {
            let server: Arc<str> = name.into();
            names.push(Arc::clone(&server));
            let responder = Guarded { server, guard: Arc::clone(&guard) };
            connecting.push(open(client.responder(responder), target));
        }
        let members = join_all(connecting).await.into_iter().zip(names);
        let members = members.map(|(client, name)| Member { name, client }).collect();
        Ok(Host { members, guard })
    }
}

type Connecting = Pin<Box<dyn Future<Output = Result<Client, ConnectError>> + Send>>;

fn open(builder: ClientBuilder<Guarded>, target: Target) -> Connecting {
    Box::pin(async move {
        match target {
            Target::Command(command) => builder.connect(command).await,
            #[cfg(feature = "http")]
            Target::Url(url) => builder.connect_http(url).await,
            Target::Memory(server) => builder.connect_memory(&server).await,
        }
    })
}

/// Checks that names are unique and have no `.`, which separates them from the rest.
fn check(servers: &[(String, ClientBuilder, Target)]) -> Result<(), HostError> {
    for (at, (name, ..)) in servers.iter().enumerate() {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(HostError::BadName(name.clone()));
        }
        if servers[..at].iter().any(|(other, ..)| other == name) {
            return Err(HostError::NameTwice(name.clone()));
        }
    }
    Ok(())
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.servers.iter().map(|(name, ..)| name)).finish()
    }
}

/// Why a host cannot be built: the names of its servers are invalid.
///
/// ```
/// use trunkline::{Server, client::{Host, HostError}};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let clock = Server::builder("clock", "1.0.0").build();
/// let builder = Host::builder("app", "1.0.0").server("clock", &clock).server("clock", &clock);
/// assert_eq!(builder.connect().await.err(), Some(HostError::NameTwice("clock".to_owned())));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// This is not a valid name.
    BadName(String),
    /// Two servers have this name.
    NameTwice(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(name) => write!(
                f,
                "`{name}` is no name for a server; use letters, digits, `-` and `_` only."
            ),
            Self::NameTwice(name) => {
                write!(f, "Two servers are called `{name}`; give one of them another name.")
            }
        }
    }
}

impl std::error::Error for HostError {}
