//! A call or question → whether it is allowed: by rule, or by asking the user.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trunkline_proto::Change;
use trunkline_wire::code::USER_REJECTED;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams,
    ElicitResult, LogMessage, Root, ToolAnnotations,
};

use crate::client::hooks::Hooks;
use crate::client::question::{Question, Sampling};
use crate::client::responder::Responder;

/// The decision of a rule about a [`Wish`].
///
/// ```
/// use trunkline::client::{Consent, Wish};
///
/// let rule = |wish: &Wish| match wish {
///     Wish::Tool { tool, .. } if tool.starts_with("delete") => Consent::deny("Never."),
///     _ => Consent::Ask,
/// };
/// # let (server, arguments) = ("fs".to_owned(), trunkline::RawJson::null());
/// let wish = Wish::Tool { server, tool: "delete_all".to_owned(), arguments, annotations: None };
/// assert_eq!(rule(&wish), Consent::deny("Never."));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It is allowed.
    Allow,
    /// It is denied, for this reason.
    Deny(String),
    /// The user decides: see [`HostBuilder::on_consent`](super::HostBuilder::on_consent).
    Ask,
}

impl Consent {
    /// It is denied, for this reason.
    ///
    /// ```
    /// use trunkline::client::Consent;
    ///
    /// assert_eq!(Consent::deny("Never."), Consent::Deny("Never.".to_owned()));
    /// ```
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }
}

/// Something that needs consent. Its text completes a question to the user: ``call `fs.read` ``.
///
/// ```
/// # use trunkline::{Server, client::{Consent, Host}, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let builder = Host::builder("app", "1.0.0").server("clock", &clock);
/// let host = builder.consent(|wish| Consent::deny(format!("I do not {wish}."))).connect().await?;
/// let why = host.call_tool("clock.now", ()).await.unwrap_err().to_string();
/// assert!(why.ends_with("I do not call `clock.now`."), "{why}");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Wish {
    /// This side wants to call a tool.
    Tool {
        /// The server's name in the host.
        server: String,
        /// The tool's name at the server.
        tool: String,
        /// The arguments; `null` if there are none.
        arguments: Json,
        /// The tool's annotations, if its list has been fetched. Self-reported.
        annotations: Option<ToolAnnotations>,
    },
    /// A server wants to ask the model.
    Sampling(Sampling),
    /// A server wants to ask the user.
    Elicitation(Question),
}

impl Wish {
    /// The server that is called, or that asks.
    ///
    /// ```
    /// # use trunkline::{Server, client::{Consent, Host}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let clock = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let trusts = |server: &str| if server == "clock" { Consent::Allow } else { Consent::Ask };
    /// let builder = Host::builder("app", "1.0.0").server("clock", &clock);
    /// let host = builder.consent(move |wish| trusts(wish.server())).connect().await?;
    /// assert!(host.call_tool("clock.now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn server(&self) -> &str {
        match self {
            Self::Tool { server, .. } => server,
            Self::Sampling(it) => it.server().unwrap_or_default(),
            Self::Elicitation(it) => it.server().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool { server, tool, .. } => write!(f, "call `{server}.{tool}`"),
            Self::Sampling(it) => write!(f, "let `{}` ask the model", it.server().unwrap_or("?")),
            Self::Elicitation(it) => write!(f, "let `{}` ask you", it.server().unwrap_or("?")),
        }
    }
}

type Rule = Arc<dyn Fn(&Wish) -> Consent + Send + Sync>;
type AskUser = Arc<dyn Fn(Wish) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

type HeardLog = Arc<dyn Fn(&str, LogMessage) + Send + Sync>;
type HeardChange = Arc<dyn Fn(&str, &Change) + Send + Sync>;

/// The consent rules and hooks of a host, for all of its servers.
#[derive(Clone, Default)]
pub(super) struct Guard {
    pub(super) hooks: Hooks,
    pub(super) rule: Option<Rule>,
    pub(super) ask: Option<AskUser>,
    pub(super) log: Option<HeardLog>,
    pub(super) change: Option<HeardChange>,
}

impl Guard {
    /// Whether there is any consent rule.
    pub(super) fn is_there(&self) -> bool {
        self.rule.is_some() || self.ask.is_some()
    }

    /// Whether it is allowed, or why not.
    pub(super) async fn admit(&self, wish: Wish) -> Result<(), String> {
        let consent = match &self.rule {
            Some(rule) => rule(&wish),
            None if self.ask.is_some() => Consent::Ask,
            None => Consent::Allow,
        };
        match (consent, &self.ask) {
            (Consent::Allow, _) => Ok(()),
            (Consent::Deny(reason), _) => Err(reason),
            (Consent::Ask, Some(ask)) => match ask(wish).await {
                true => Ok(()),
                false => Err("The user said no.".to_owned()),
            },
            (Consent::Ask, None) => Err(format!(
                "The user has to agree to {wish}, and there is no way to ask; give the host one \
                 with `on_consent`."
            )),
        }
    }
}

/// Answers one server, with the host's consent.
pub(super) struct Guarded {
    pub(super) server: Arc<str>,
    pub(super) guard: Arc<Guard>,
}

impl Responder for Guarded {
    fn capabilities(&self) -> ClientCapabilities {
        self.guard.hooks.capabilities()
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        let question = Question::new(params, Some(Arc::clone(&self.server)));
        match self.guard.admit(Wish::Elicitation(question.clone())).await {
            Ok(()) => self.guard.hooks.ask(question).await,
            // The protocol has an action for this, so the server can continue.
            Err(_) => Ok(ElicitResult::new(ElicitAction::Decline)),
        }
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        let request = Sampling::new(params, Some(Arc::clone(&self.server)));
        match self.guard.admit(Wish::Sampling(request.clone())).await {
            Ok(()) => self.guard.hooks.ask_model(request).await,
            // The reason stays with the user.
            Err(_) => Err(ErrorObject::new(USER_REJECTED, "The model may not be asked.")),
        }
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        Responder::roots(&self.guard.hooks).await
    }

    fn on_log(&self, message: LogMessage) {
        match &self.guard.log {
            Some(log) => log(&self.server, message),
            None => Responder::on_log(&self.guard.hooks, message),
        }
    }

    fn on_change(&self, change: &Change) {
        match &self.guard.change {
            Some(heard) => heard(&self.server, change),
            None => Responder::on_change(&self.guard.hooks, change),
        }
    }
}
