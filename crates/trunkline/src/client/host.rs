//! What a server may ask of the client's side, and what it may tell it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trunkline_proto::Change;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, LogMessage, Root, RootsCapability, SamplingCapability,
};

/// Answers a server's questions. It is asked the same way in every revision, and only what
/// [`Host::capabilities`] declares.
///
/// The hooks `on_log` and `on_change` are called in the order of arrival, on the connection's own
/// task: they must not block.
pub trait Host: Send + Sync + 'static {
    /// What the server may ask. Nothing, unless said.
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default()
    }

    /// Asks the user.
    fn elicit(
        &self,
        _params: ElicitParams,
    ) -> impl Future<Output = Result<ElicitResult, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found("elicitation/create")) }
    }

    /// Asks the model. To refuse in the user's name, answer with
    /// [`USER_REJECTED`](trunkline_wire::code::USER_REJECTED).
    fn sample(
        &self,
        _params: CreateMessageParams,
    ) -> impl Future<Output = Result<CreateMessageResult, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found("sampling/createMessage")) }
    }

    /// The folders the server may know about, as `file://` URIs.
    fn roots(&self) -> impl Future<Output = Result<Vec<Root>, ErrorObject>> + Send {
        async { Err(ErrorObject::method_not_found("roots/list")) }
    }

    /// The server logged something.
    fn on_log(&self, _message: LogMessage) {}

    /// Something changed. A server of 2026-07-28 tells only what is listened to or subscribed.
    fn on_change(&self, _change: &Change) {}
}

/// Nobody to ask.
impl Host for () {}

/// A host that others hold on to as well.
impl<H: Host> Host for Arc<H> {
    fn capabilities(&self) -> ClientCapabilities {
        (**self).capabilities()
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        (**self).elicit(params).await
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        (**self).sample(params).await
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        (**self).roots().await
    }

    fn on_log(&self, message: LogMessage) {
        (**self).on_log(message);
    }

    fn on_change(&self, change: &Change) {
        (**self).on_change(change);
    }
}

type Later<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;
type Fun<P, T> = Box<dyn Fn(P) -> Later<T> + Send + Sync>;
type Heard<T> = Box<dyn Fn(T) + Send + Sync>;
type HeardChange = Box<dyn Fn(&Change) + Send + Sync>;

/// A [`Host`] made of closures, which declares a capability by having the closure for it.
///
/// ```
/// use trunkline::client::Hooks;
/// use trunkline::model::{ElicitAction, ElicitResult};
///
/// let host = Hooks::new()
///     .elicit(|_question| async { Ok(ElicitResult::new(ElicitAction::Decline)) })
///     .on_log(|message| eprintln!("{}", message.data));
/// ```
#[derive(Default)]
pub struct Hooks {
    capabilities: ClientCapabilities,
    elicit: Option<Fun<ElicitParams, ElicitResult>>,
    sample: Option<Fun<CreateMessageParams, CreateMessageResult>>,
    roots: Vec<Root>,
    log: Option<Heard<LogMessage>>,
    change: Option<HeardChange>,
}

impl Hooks {
    /// Answers nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the user be asked, by form and by URL.
    #[must_use]
    pub fn elicit<F>(mut self, answer: impl Fn(ElicitParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.capabilities.elicitation = Some(ElicitationCapability::BOTH);
        self.elicit = Some(Box::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Lets the model be asked, without tools.
    #[must_use]
    pub fn sample<F>(
        mut self,
        answer: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.capabilities.sampling.get_or_insert_with(SamplingCapability::new);
        self.sample = Some(Box::new(move |params| Box::pin(answer(params))));
        self
    }

    /// Lets the model be asked, with tools.
    #[must_use]
    pub fn sample_with_tools<F>(
        mut self,
        answer: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.capabilities.sampling = Some(SamplingCapability::new().tools(true));
        self.sample(answer)
    }

    /// Tells these roots, which do not change.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.capabilities.roots = Some(RootsCapability::new(false));
        self.roots = roots.into_iter().collect();
        self
    }

    /// Hears the server's log.
    #[must_use]
    pub fn on_log(mut self, heard: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.log = Some(Box::new(heard));
        self
    }

    /// Hears of changes.
    #[must_use]
    pub fn on_change(mut self, heard: impl Fn(&Change) + Send + Sync + 'static) -> Self {
        self.change = Some(Box::new(heard));
        self
    }
}

impl Host for Hooks {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        match &self.elicit {
            Some(answer) => answer(params).await,
            None => Err(ErrorObject::method_not_found("elicitation/create")),
        }
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        match &self.sample {
            Some(answer) => answer(params).await,
            None => Err(ErrorObject::method_not_found("sampling/createMessage")),
        }
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        Ok(self.roots.clone())
    }

    fn on_log(&self, message: LogMessage) {
        if let Some(log) = &self.log {
            log(message);
        }
    }

    fn on_change(&self, change: &Change) {
        if let Some(heard) = &self.change {
            heard(change);
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}
