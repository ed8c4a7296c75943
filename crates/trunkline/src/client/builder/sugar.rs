//! What is said to a builder in short: closures → its hooks, layers → its requests.

use std::future::Future;
use std::sync::Arc;

use tower_layer::Layer;
use tower_service::Service;
use trunkline_proto::Change;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CreateMessageResult, ElicitResult, LogMessage};

use super::ClientBuilder;
use crate::client::hooks::{Hooks, Roots};
use crate::client::layer::{BoxError, ClientRequest, Requests};
use crate::client::question::{Question, Sampling};
use crate::client::responder::Responder;

/// What closures can be added to: nothing yet, or other closures.
#[diagnostic::on_unimplemented(
    message = "closures cannot be added to the responder `{Self}`",
    note = "give a responder of your own, or closures, but not both"
)]
pub trait IntoHooks: Responder {
    /// The closures so far.
    #[doc(hidden)]
    fn into_hooks(this: Arc<Self>) -> Hooks;
}

impl IntoHooks for () {
    fn into_hooks(_: Arc<Self>) -> Hooks {
        Hooks::new()
    }
}

impl IntoHooks for Hooks {
    fn into_hooks(this: Arc<Self>) -> Hooks {
        Arc::unwrap_or_clone(this)
    }
}

impl<H: Responder> ClientBuilder<H> {
    /// Puts a tower layer around every request of this client: timeouts, retries, rate limits,
    /// tracing. It sees one [`ClientRequest`] and one answer for each request, and errors that are
    /// [`CallError`](crate::client::CallError)s, its own among them as
    /// [`CallError::Layer`](crate::client::CallError::Layer). The layer that is added last is the
    /// outermost. Subscriptions, which are no calls, go past it.
    ///
    /// The service must be `Clone`; `tower::buffer` makes any service so. Clients of one builder
    /// share what clones of its services share, such as the places of a `ConcurrencyLimit`.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Requests>,
        L::Service: Service<ClientRequest, Response = Json> + Clone + Send + 'static,
        <L::Service as Service<ClientRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ClientRequest>>::Future: Send + 'static,
    {
        self.layers = self.layers.around(layer);
        self
    }
}

/// The closures of [`Hooks`], one by one. A server may ask only what there is a closure for.
impl<H: IntoHooks> ClientBuilder<H> {
    /// Lets the user be asked, by form and by URL.
    ///
    /// ```
    /// # use trunkline::{Client, Server};
    /// # async fn example(server: Server) -> Result<(), trunkline::client::ConnectError> {
    /// let client = Client::builder("example", "1.0.0")
    ///     .on_ask(|question| async move { question.accept(true) })
    ///     .connect_memory(&server)
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_ask<F>(
        self,
        answer: impl Fn(Question) -> F + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks>
    where
        F: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.hooks(|hooks| hooks.on_ask(answer))
    }

    /// Lets the user be asked to fill in forms; by form only, unless
    /// [`on_ask_url`](Self::on_ask_url) is there too.
    pub fn on_ask_form<F>(
        self,
        answer: impl Fn(Question) -> F + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks>
    where
        F: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.hooks(|hooks| hooks.on_ask_form(answer))
    }

    /// Lets the user be asked to visit URLs; by URL only, unless
    /// [`on_ask_form`](Self::on_ask_form) is there too.
    pub fn on_ask_url<F>(
        self,
        answer: impl Fn(Question) -> F + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks>
    where
        F: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.hooks(|hooks| hooks.on_ask_url(answer))
    }

    /// Lets the model be asked, without tools.
    pub fn on_sample<F>(
        self,
        answer: impl Fn(Sampling) -> F + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks>
    where
        F: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.hooks(|hooks| hooks.on_sample(answer))
    }

    /// Lets the model be asked, with tools.
    pub fn on_sample_with_tools<F>(
        self,
        answer: impl Fn(Sampling) -> F + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks>
    where
        F: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        self.hooks(|hooks| hooks.on_sample_with_tools(answer))
    }

    /// Tells these roots: some that do not change, or [`Roots`] that may.
    pub fn roots(self, roots: impl Into<Roots>) -> ClientBuilder<Hooks> {
        self.hooks(|hooks| hooks.roots(roots))
    }

    /// Hears the server's log; [`log_level`](Self::log_level) says how much of it.
    pub fn on_log(
        self,
        heard: impl Fn(LogMessage) + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks> {
        self.hooks(|hooks| hooks.on_log(heard))
    }

    /// Hears of changes.
    pub fn on_change(
        self,
        heard: impl Fn(&Change) + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks> {
        self.hooks(|hooks| hooks.on_change(heard))
    }

    fn hooks(self, add: impl FnOnce(Hooks) -> Hooks) -> ClientBuilder<Hooks> {
        let (builder, responder) = self.swap(());
        builder.responder(add(H::into_hooks(responder)))
    }
}
