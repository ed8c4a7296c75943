//! Many servers → one place to list and call what they offer, with the user's consent.

mod builder;
mod consent;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_transport::child::Exit;
use trunkline_wire::json::Json;
use trunkline_wire::model::{
    CallToolResult, GetPromptResult, Implementation, Prompt, ReadResourceResult, Resource,
    ResourceTemplate, Tool,
};

use super::Client;
use super::call::{Call, Running};
use super::error::{CallError, ConnectError};
use super::texts::IntoTexts;

pub use builder::{HostBuilder, HostError, Target};
use consent::Guard;
pub use consent::{Consent, Wish};

/// Many servers, each under a name of the host's choice. Everything they offer is called
/// `server.name`: the tool `read` of the server `fs` is `fs.read`.
///
/// ```
/// use trunkline::Server;
/// use trunkline::client::{Consent, Host, Wish};
/// # use trunkline::tool;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon").about("The time.")).build();
/// let host = Host::builder("my-app", "1.0.0")
///     .server("clock", &clock)
///     .consent(|wish| match wish {
///         Wish::Tool { tool, .. } if tool.starts_with("delete") => Consent::deny("Never."),
///         Wish::Tool { .. } => Consent::Allow,
///         _ => Consent::Ask,
///     })
///     .on_consent(|wish| async move { wish.server() == "clock" })
///     .connect()
///     .await?;
/// for tool in host.tools().await.items {
///     println!("{}", tool.name);
/// }
/// let now = host.call_tool("clock.now", ()).await?;
/// assert_eq!(now.content[0].as_text(), Some("noon"));
/// host.close().await;
/// # Ok(())
/// # }
/// ```
pub struct Host {
    members: Vec<Member>,
    guard: Arc<Guard>,
}

struct Member {
    name: Arc<str>,
    client: Result<Client, ConnectError>,
}

/// The merged lists of all servers, and the servers that failed to answer.
///
/// ```
/// use trunkline::{Server, client::Host, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let host = Host::builder("app", "1.0.0").server("clock", &clock).connect().await?;
/// let tools = host.tools().await;
/// assert!(tools.items.len() == 1 && tools.errors.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listed<T> {
    /// In the order of the servers, and of each server's list.
    pub items: Vec<Item<T>>,
    /// The servers whose list could not be fetched, and why.
    pub errors: Vec<(String, CallError)>,
}

/// Something a server offers.
///
/// ```
/// use trunkline::{Server, client::Host, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let host = Host::builder("app", "1.0.0").server("clock", &clock).connect().await?;
/// let item = &host.tools().await.items[0];
/// assert_eq!((&*item.name, &*item.server, &*item.it.name), ("clock.now", "clock", "now"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item<T> {
    /// Its name in the host: `server.name` or `server.uri`.
    pub name: String,
    /// Its server.
    pub server: String,
    /// The server's own definition of it.
    pub it: T,
}

impl Host {
    /// A host under construction; servers see its name and version.
    ///
    /// ```
    /// # use trunkline::client::Host; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let host = Host::builder("app", "1.0.0").connect().await?;
    /// assert_eq!(host.servers().count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> HostBuilder {
        HostBuilder::new(Implementation::new(name, version))
    }

    /// The names of the servers, connected or not.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|it| &*it.name)
    }

    /// The servers that could not be reached, and why.
    ///
    /// ```
    /// # use trunkline::client::{Command, Host}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let builder = Host::builder("app", "1.0.0").server("gone", Command::new("no-such-server"));
    /// let host = builder.connect().await?;
    /// let (server, why) = host.failures().next().unwrap();
    /// assert_eq!((server, why.stage()), ("gone", "spawn"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn failures(&self) -> impl Iterator<Item = (&str, &ConnectError)> {
        self.members.iter().filter_map(|it| Some((&*it.name, it.client.as_ref().err()?)))
    }

    /// The client of one server, for everything else. Calls through it bypass consent.
    ///
    /// ```
    /// # use trunkline::{Server, client::Host}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let clock = Server::builder("clock", "1.0.0").build();
    /// let host = Host::builder("app", "1.0.0").server("clock", &clock).connect().await?;
    /// assert!(host.client("clock").unwrap().ping().await.is_ok());
    /// assert!(host.client("radio").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn client(&self, server: &str) -> Option<&Client> {
        self.members.iter().find(|it| &*it.name == server)?.client.as_ref().ok()
    }

    /// The tools of all servers.
    pub async fn tools(&self) -> Listed<Tool> {
        self.list(|it| it.tools.is_some(), Client::list_tools, |tool| &tool.name).await
    }

    /// The prompts of all servers.
    pub async fn prompts(&self) -> Listed<Prompt> {
        self.list(|it| it.prompts.is_some(), Client::list_prompts, |prompt| &prompt.name).await
    }

    /// The resources of all servers.
    pub async fn resources(&self) -> Listed<Resource> {
        self.list(|it| it.resources.is_some(), Client::list_resources, |it| &it.uri).await
    }

    /// The resource templates of all servers.
    pub async fn resource_templates(&self) -> Listed<ResourceTemplate> {
        let list = Client::list_resource_templates;
        self.list(|it| it.resources.is_some(), list, |it| &it.uri_template).await
    }

    /// [`Client::call`] of `server.tool`. Without consent it is [`CallError::Denied`], and nothing
    /// is sent.
    pub fn call<T: DeserializeOwned + Send + 'static>(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Call<T> {
        match self.find(name) {
            Ok((client, server, tool)) => {
                let call = client.call(tool, &arguments);
                self.with_consent(client, call, server, tool, &arguments)
            }
            Err(error) => Call::failed(error),
        }
    }

    /// [`Client::call_tool`] of `server.tool`. Without consent it is [`CallError::Denied`], and
    /// nothing is sent.
    ///
    /// ```
    /// # use trunkline::{Server, client::{CallError, Consent, Host}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let builder = Host::builder("app", "1.0.0").server("clock", &clock);
    /// let host = builder.consent(|_| Consent::deny("Not now.")).connect().await?;
    /// let outcome = host.call_tool("clock.now", ()).await;
    /// assert_eq!(outcome, Err(CallError::Denied("Not now.".to_owned())));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Call<CallToolResult> {
        match self.find(name) {
            Ok((client, server, tool)) => {
                let call = client.call_tool(tool, &arguments);
                self.with_consent(client, call, server, tool, &arguments)
            }
            Err(error) => Call::failed(error),
        }
    }

    /// [`Client::read_resource`] of `server.uri`.
    pub fn read_resource(&self, name: &str) -> Call<ReadResourceResult> {
        match self.find(name) {
            Ok((client, _, uri)) => client.read_resource(uri),
            Err(error) => Call::failed(error),
        }
    }

    /// [`Client::get_prompt`] of `server.prompt`.
    pub fn get_prompt<M>(&self, name: &str, arguments: impl IntoTexts<M>) -> Call<GetPromptResult> {
        match self.find(name) {
            Ok((client, _, prompt)) => client.get_prompt(prompt, arguments),
            Err(error) => Call::failed(error),
        }
    }

    /// Closes all connections in good order, concurrently. Returns how the servers ended that the
    /// host started.
    ///
    /// ```
    /// # use trunkline::{Server, client::Host}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let clock = Server::builder("clock", "1.0.0").build();
    /// let host = Host::builder("app", "1.0.0").server("clock", &clock).connect().await?;
    /// let ended = host.close().await;
    /// assert!(ended[0].0 == "clock" && ended[0].1.is_none(), "no process was started");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub async fn close(self) -> Vec<(String, Option<Exit>)> {
        let close = |member: Member| -> Pin<Box<dyn Future<Output = _> + Send>> {
            Box::pin(async move {
                let exit = match member.client {
                    Ok(client) => client.close().await,
                    Err(_) => None,
                };
                (member.name.to_string(), exit)
            })
        };
        join_all(self.members.into_iter().map(close).collect()).await
    }

    /// Splits a name into the server and the rest. A server's name has no `.`; the rest may.
    fn find<'a>(&'a self, name: &'a str) -> Result<(&'a Client, &'a str, &'a str), CallError> {
        let (server, rest) = name.split_once('.').unwrap_or((name, ""));
        match self.members.iter().find(|it| &*it.name == server) {
            Some(Member { client: Ok(client), .. }) if !rest.is_empty() => {
                Ok((client, server, rest))
            }
            Some(Member { client: Err(error), .. }) => {
                Err(CallError::Unreachable(error.to_string()))
            }
            _ => {
                let known = self.servers().collect::<Vec<_>>().join("`, `");
                Err(CallError::refused(format!(
                    "`{name}` names nothing in this host; write `server.name`, with one of \
                     `{known}`."
                )))
            }
        }
    }

    fn with_consent<T>(
        &self,
        client: &Client,
        call: Call<T>,
        server: &str,
        tool: &str,
        arguments: &impl Serialize,
    ) -> Call<T> {
        if !self.guard.is_there() {
            return call;
        }
        let wish = Wish::Tool {
            server: server.to_owned(),
            tool: tool.to_owned(),
            // Arguments that cannot be serialized are not sent either.
            arguments: Json::try_of(arguments).unwrap_or_else(|_| Json::null()),
            annotations: client.caller.shared.known.annotations(tool),
        };
        let guard = Arc::clone(&self.guard);
        call.after(Box::pin(async move { guard.admit(wish).await.map_err(CallError::Denied) }))
    }

    async fn list<T: Send + 'static>(
        &self,
        offers: impl Fn(&trunkline_wire::model::ServerCapabilities) -> bool,
        list: impl Fn(&Client) -> Call<Vec<T>>,
        name: impl Fn(&T) -> &String,
    ) -> Listed<T> {
        let asked = self.members.iter().filter_map(|member| {
            let running: Running<Vec<T>> = match &member.client {
                Ok(client) if !offers(client.server_capabilities()) => return None,
                Ok(client) => list(client).into_future(),
                Err(error) => {
                    let error = CallError::Unreachable(error.to_string());
                    Box::pin(std::future::ready(Err(error)))
                }
            };
            Some((member.name.to_string(), running))
        });
        let (servers, running): (Vec<_>, Vec<_>) = asked.unzip();
        let mut listed = Listed { items: Vec::new(), errors: Vec::new() };
        for (server, outcome) in servers.into_iter().zip(join_all(running).await) {
            match outcome {
                Ok(items) => listed.items.extend(items.into_iter().map(|it| Item {
                    name: format!("{server}.{}", name(&it)),
                    server: server.clone(),
                    it,
                })),
                Err(error) => listed.errors.push((server, error)),
            }
        }
        listed
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.servers()).finish()
    }
}

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Awaits all of them concurrently.
async fn join_all<T>(futures: Vec<Later<'_, T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|it| (Some(it), None)).collect();
    poll_fn(|cx| {
        for (future, output) in &mut futures {
            if let Some(Poll::Ready(done)) = future.as_mut().map(|it| it.as_mut().poll(cx)) {
                *output = Some(done);
                *future = None;
            }
        }
        match futures.iter().all(|(future, _)| future.is_none()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
