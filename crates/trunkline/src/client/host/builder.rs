//! Names and targets → connections, side by side.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

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
#[must_use = "a builder does nothing until it connects"]
pub struct HostBuilder {
    info: Implementation,
    servers: Vec<(String, ClientBuilder, Target)>,
    guard: Guard,
}

/// Where a server of a host is: a [`Command`] that starts it, a URL (feature `http`), or a
/// [`Server`] of this process.
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

    /// Adds a server under a name of the host's own: letters, digits, `-` and `_`.
    pub fn server(self, name: impl Into<String>, target: impl Into<Target>) -> Self {
        let client = ClientBuilder::new(self.info.clone());
        self.server_with(name, client, target)
    }

    /// The same with a client builder: for headers, deadlines, revisions and layers of its own.
    pub fn server_with(
        mut self,
        name: impl Into<String>,
        client: ClientBuilder,
        target: impl Into<Target>,
    ) -> Self {
        self.servers.push((name.into(), client, target.into()));
        self
    }

    /// Answers the servers' questions. Each question knows which server asks.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.guard.hooks = hooks;
        self
    }

    /// Decides whether tools may be called and servers may ask, before anything is sent or anybody
    /// is asked. It must not block.
    ///
    /// Without it everything is left to [`Self::on_consent`]. With neither of them a tool is called
    /// because the program says so, and a server reaches the user, the model and the roots as far
    /// as the program's own [`Self::hooks`] answer it; without hooks it can ask nothing.
    pub fn consent(mut self, rule: impl Fn(&Wish) -> Consent + Send + Sync + 'static) -> Self {
        self.guard.rule = Some(Arc::new(rule));
        self
    }

    /// Asks the user whether they agree: about what [`Self::consent`] leaves to them, or about
    /// everything if there is no such rule.
    pub fn on_consent<F>(mut self, ask: impl Fn(Wish) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.guard.ask = Some(Arc::new(move |wish| Box::pin(ask(wish))));
        self
    }

    /// Hears the servers' logs, each with the name of its server.
    pub fn on_log(mut self, heard: impl Fn(&str, LogMessage) + Send + Sync + 'static) -> Self {
        self.guard.log = Some(Arc::new(heard));
        self
    }

    /// Hears of changes, each with the name of its server.
    pub fn on_change(mut self, heard: impl Fn(&str, &Change) + Send + Sync + 'static) -> Self {
        self.guard.change = Some(Arc::new(heard));
        self
    }

    /// Connects to all servers, side by side. One that cannot be reached does not keep the others:
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

/// Names that a `.` divides without doubt.
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

/// Why a host cannot be: its servers' names make no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// This is no name.
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
