//! Closures → a responder that declares a capability for each closure.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use trunkline_proto::Change;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, LogMessage, Root, RootsCapability, SamplingCapability,
};

use super::question::{Question, Sampling};
use super::responder::Responder;
use super::roots::Roots;

type Later<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;
type Fun<Q, T> = Arc<dyn Fn(Q) -> Later<T> + Send + Sync>;
type PeerNotification<T> = Arc<dyn Fn(T) + Send + Sync>;
type HeardChange = Arc<dyn Fn(&Change) + Send + Sync>;

/// A [`Responder`] made of closures. It declares the capabilities that it has closures for.
/// [`ClientBuilder`](super::ClientBuilder) has the same methods as shorthands.
///
/// ```
/// use trunkline::client::Hooks;
///
/// let hooks = Hooks::new()
///     .on_ask(|question| async move { question.decline() })
///     .on_log(|message| eprintln!("{}", message.data));
/// ```
#[derive(Clone, Default)]
pub struct Hooks {
    form: Option<Fun<Question, ElicitResult>>,
    url: Option<Fun<Question, ElicitResult>>,
    sample: Option<Fun<Sampling, CreateMessageResult>>,
    takes_tools: bool,
    roots: Option<Roots>,
    log: Option<PeerNotification<LogMessage>>,
    change: Option<HeardChange>,
}

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident($self:ident, $answer:ident: $Asked:ty) -> $Answer:ty $body:block)*) => { $(
        $(#[$doc])*
        #[must_use]
        pub fn $name<F>($self, $answer: impl Fn($Asked) -> F + Send + Sync + 'static) -> Self
        where
            F: Future<Output = Result<$Answer, ErrorObject>> + Send + 'static,
        $body
    )* };
}

impl Hooks {
    /// Answers nothing.
    ///
    /// ```
    /// use trunkline::client::{Hooks, Responder};
    ///
    /// assert_eq!(Hooks::new().capabilities(), trunkline::model::ClientCapabilities::new());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    answers! {
        /// Lets the server ask the user, by form and by URL.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        /// use trunkline::model::ElicitationCapability;
        ///
        /// let hooks = Hooks::new().on_ask(|question| async move { question.accept(true) });
        /// assert_eq!(hooks.capabilities().elicitation, Some(ElicitationCapability::BOTH));
        /// ```
        on_ask(self, answer: Question) -> ElicitResult {
            let answer = fun(answer);
            Self { form: Some(Arc::clone(&answer)), url: Some(answer), ..self }
        }

        /// Lets the server ask the user to fill in forms; by form only, unless [`Self::on_ask_url`] is
        /// set too.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        /// use trunkline::model::ElicitationCapability;
        ///
        /// let hooks = Hooks::new().on_ask_form(|question| async move { question.accept(true) });
        /// assert_eq!(hooks.capabilities().elicitation, Some(ElicitationCapability::FORM));
        /// ```
        on_ask_form(self, answer: Question) -> ElicitResult {
            Self { form: Some(fun(answer)), ..self }
        }

        /// Lets the server ask the user to visit URLs; by URL only, unless [`Self::on_ask_form`] is set
        /// too.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        /// use trunkline::model::ElicitationCapability;
        ///
        /// let hooks = Hooks::new().on_ask_url(|question| async move { question.accept(()) });
        /// assert_eq!(hooks.capabilities().elicitation, Some(ElicitationCapability::URL));
        /// ```
        on_ask_url(self, answer: Question) -> ElicitResult {
            Self { url: Some(fun(answer)), ..self }
        }

        /// [`Self::on_ask`] with the protocol's own params.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        /// use trunkline::model::{ElicitAction, ElicitResult};
        ///
        /// let hooks = Hooks::new().elicit(|_| async { Ok(ElicitResult::new(ElicitAction::Decline)) });
        /// assert!(hooks.capabilities().elicitation.is_some());
        /// ```
        elicit(self, answer: ElicitParams) -> ElicitResult {
            self.on_ask(move |question| answer(question.into_params()))
        }

        /// Lets the server ask the model, without tools.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        ///
        /// let hooks = Hooks::new().on_sample(|request| async move { request.reply("me", "Four.") });
        /// assert!(!hooks.capabilities().sampling.unwrap().tools);
        /// ```
        on_sample(self, answer: Sampling) -> CreateMessageResult {
            Self { sample: Some(fun(answer)), ..self }
        }

        /// Lets the server ask the model, with tools.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        ///
        /// let hooks =
        ///     Hooks::new().on_sample_with_tools(|asked| async move { asked.reply("me", "Four.") });
        /// assert!(hooks.capabilities().sampling.unwrap().tools);
        /// ```
        on_sample_with_tools(self, answer: Sampling) -> CreateMessageResult {
            Self { takes_tools: true, ..self.on_sample(answer) }
        }

        /// [`Self::on_sample`] with the protocol's own params.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        /// use trunkline::model::{Content, CreateMessageResult};
        ///
        /// let reply = || CreateMessageResult::new(Content::text("Four."), "model");
        /// let hooks = Hooks::new().sample(move |_| async move { Ok(reply()) });
        /// assert!(hooks.capabilities().sampling.is_some());
        /// ```
        sample(self, answer: CreateMessageParams) -> CreateMessageResult {
            self.on_sample(move |request| answer(request.into_params()))
        }

        /// [`Self::on_sample_with_tools`] with the protocol's own params.
        ///
        /// ```
        /// use trunkline::client::{Hooks, Responder};
        /// use trunkline::model::{Content, CreateMessageResult};
        ///
        /// let reply = || CreateMessageResult::new(Content::text("Four."), "model");
        /// let hooks = Hooks::new().sample_with_tools(move |_| async move { Ok(reply()) });
        /// assert!(hooks.capabilities().sampling.unwrap().tools);
        /// ```
        sample_with_tools(self, answer: CreateMessageParams) -> CreateMessageResult {
            self.on_sample_with_tools(move |request| answer(request.into_params()))
        }
    }

    /// Offers these roots: a fixed list, or [`Roots`] that may change.
    ///
    /// ```
    /// use trunkline::client::{Hooks, Responder};
    /// use trunkline::model::Root;
    ///
    /// let hooks = Hooks::new().roots([Root::new("file:///projects/ada")]);
    /// assert!(hooks.capabilities().roots.is_some());
    /// ```
    #[must_use]
    pub fn roots(self, roots: impl Into<Roots>) -> Self {
        Self { roots: Some(roots.into()), ..self }
    }

    /// Receives the server's log.
    ///
    /// ```
    /// use trunkline::client::{Hooks, Responder};
    /// use trunkline::model::{LogLevel, LogMessage};
    ///
    /// let hooks = Hooks::new().on_log(|message| assert_eq!(message.level, LogLevel::Info));
    /// Responder::on_log(&hooks, LogMessage::text(LogLevel::Info, "Saved."));
    /// ```
    #[must_use]
    pub fn on_log(self, heard: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        Self { log: Some(Arc::new(heard)), ..self }
    }

    /// Receives notifications of changes.
    ///
    /// ```
    /// use trunkline::{Change, client::{Hooks, Responder}};
    ///
    /// let hooks = Hooks::new().on_change(|change| assert_eq!(*change, Change::Tools));
    /// Responder::on_change(&hooks, &Change::Tools);
    /// ```
    #[must_use]
    pub fn on_change(self, heard: impl Fn(&Change) + Send + Sync + 'static) -> Self {
        Self { change: Some(Arc::new(heard)), ..self }
    }

    /// Answers a question to the user.
    pub(super) async fn ask(&self, question: Question) -> Result<ElicitResult, ErrorObject> {
        let answer = if question.is_url() { &self.url } else { &self.form };
        match answer {
            Some(answer) => answer(question).await,
            None => Err(ErrorObject::method_not_found(Method::ElicitationCreate.name())),
        }
    }

    /// Answers a question to the model.
    pub(super) async fn ask_model(
        &self,
        request: Sampling,
    ) -> Result<CreateMessageResult, ErrorObject> {
        match &self.sample {
            Some(answer) => answer(request).await,
            None => Err(ErrorObject::method_not_found(Method::SamplingCreateMessage.name())),
        }
    }
}

impl Responder for Hooks {
    fn capabilities(&self) -> ClientCapabilities {
        let mut capabilities = ClientCapabilities::new();
        capabilities.elicitation = match (&self.form, &self.url) {
            (Some(_), Some(_)) => Some(ElicitationCapability::BOTH),
            (Some(_), None) => Some(ElicitationCapability::FORM),
            (None, Some(_)) => Some(ElicitationCapability::URL),
            (None, None) => None,
        };
        if self.sample.is_some() {
            capabilities.sampling = Some(SamplingCapability::new().tools(self.takes_tools));
        }
        capabilities.roots = self.roots.as_ref().map(|it| RootsCapability::new(it.may_change()));
        capabilities
    }

    async fn elicit(&self, params: ElicitParams) -> Result<ElicitResult, ErrorObject> {
        self.ask(Question::new(params, None)).await
    }

    async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, ErrorObject> {
        self.ask_model(Sampling::new(params, None)).await
    }

    async fn roots(&self) -> Result<Vec<Root>, ErrorObject> {
        Ok(self.roots.as_ref().map(Roots::get).unwrap_or_default())
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
        f.debug_struct("Hooks").field("capabilities", &self.capabilities()).finish_non_exhaustive()
    }
}

fn fun<Q, T, F>(answer: impl Fn(Q) -> F + Send + Sync + 'static) -> Fun<Q, T>
where
    F: Future<Output = Result<T, ErrorObject>> + Send + 'static,
{
    Arc::new(move |question| Box::pin(answer(question)))
}
