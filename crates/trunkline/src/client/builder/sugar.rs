//! Shorthands of the builder: closures for questions, and layers around requests.

use std::future::Future;
use std::sync::Arc;

use tower_layer::Layer;
use tower_service::Service;
use trunkline_proto::Change;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CreateMessageResult, ElicitResult, LogMessage};

use super::ClientBuilder;
use crate::client::hooks::Hooks;
use crate::client::layer::{ClientRequest, Requests};
use crate::client::question::{Question, Sampling};
use crate::client::responder::Responder;
use crate::client::roots::Roots;
use crate::layer::BoxError;

/// A responder that closures can be added to: none yet, or other closures.
///
/// ```
/// use trunkline::Client;
/// use trunkline::client::{ClientBuilder, Hooks, IntoHooks};
///
/// fn silent<H: IntoHooks>(builder: ClientBuilder<H>) -> ClientBuilder<Hooks> {
///     builder.on_ask(|question| async move { question.decline() })
/// }
///
/// let builder = silent(Client::builder("example", "1.0.0"));
/// assert!(format!("{builder:?}").contains("elicitation"));
/// ```
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
    /// Puts a tower layer around every request of this client: time-outs, retries, rate limits,
    /// tracing. It sees one [`ClientRequest`] and one answer for each request. Errors are
    /// [`CallError`](crate::client::CallError)s; the layer's own error becomes
    /// [`CallError::Layer`](crate::client::CallError::Layer). The layer added last is the
    /// outermost. Subscriptions are not calls and bypass it.
    ///
    /// The service must be `Clone`; `tower::buffer` makes any service so. Clients of one builder
    /// share what clones of its services share, such as the permits of a `ConcurrencyLimit`.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; use std::time::Duration;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let slow = async || std::future::pending::<String>().await;
    /// # let server = Server::builder("slow", "1").tool(tool("slow", slow)).build();
    /// let client = Client::builder("example", "1.0.0")
    ///     .layer(tower::timeout::TimeoutLayer::new(Duration::from_millis(10)))
    ///     .connect_memory(&server)
    ///     .await?;
    /// assert!(client.call_tool("slow", ()).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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

macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident($Asked:ty) -> $Answer:ty;)*) => { $(
        $(#[$doc])*
        pub fn $name<F>(
            self,
            answer: impl Fn($Asked) -> F + Send + Sync + 'static,
        ) -> ClientBuilder<Hooks>
        where
            F: Future<Output = Result<$Answer, ErrorObject>> + Send + 'static,
        {
            self.hooks(|hooks| hooks.$name(answer))
        }
    )* };
}

/// The closures of [`Hooks`], one by one. A server may ask only what has a closure.
impl<H: IntoHooks> ClientBuilder<H> {
    answers! {
        /// Lets the server ask the user, by form and by URL.
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
        on_ask(Question) -> ElicitResult;

        /// Lets the server ask the user to fill in forms; by form only, unless
        /// [`on_ask_url`](Self::on_ask_url) is set too.
        on_ask_form(Question) -> ElicitResult;

        /// Lets the server ask the user to visit URLs; by URL only, unless
        /// [`on_ask_form`](Self::on_ask_form) is set too.
        on_ask_url(Question) -> ElicitResult;

        /// Lets the server ask the model, without tools.
        on_sample(Sampling) -> CreateMessageResult;

        /// Lets the server ask the model, with tools.
        ///
        /// ```
        /// let client = trunkline::Client::builder("example", "1.0.0")
        ///     .on_sample_with_tools(|request| async move {
        ///         let tools = request.tools.len();
        ///         request.reply("my-model", format!("I was given {tools} tools."))
        ///     });
        /// assert!(format!("{client:?}").contains("sampling"));
        /// ```
        on_sample_with_tools(Sampling) -> CreateMessageResult;
    }

    /// Offers these roots: a fixed list, or [`Roots`] that may change.
    pub fn roots(self, roots: impl Into<Roots>) -> ClientBuilder<Hooks> {
        self.hooks(|hooks| hooks.roots(roots))
    }

    /// Receives the server's log; [`log_level`](Self::log_level) sets how much of it.
    ///
    /// ```
    /// # use trunkline::{Client, Context, Server, model::LogLevel, tool}; use std::sync::mpsc::channel;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let save = async |cx: Context| cx.log(LogLevel::Info, "Saved.").await;
    /// # let server = Server::builder("files", "1.0.0").tool(tool("save", save)).build();
    /// let (heard, log) = channel();
    /// let client = Client::builder("example", "1.0.0")
    ///     .log_level(LogLevel::Info)
    ///     .on_log(move |message| heard.send(message.level).unwrap())
    ///     .connect_memory(&server)
    ///     .await?;
    /// client.call_tool("save", ()).await?;
    /// assert_eq!(log.recv()?, LogLevel::Info);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn on_log(
        self,
        heard: impl Fn(LogMessage) + Send + Sync + 'static,
    ) -> ClientBuilder<Hooks> {
        self.hooks(|hooks| hooks.on_log(heard))
    }

    /// Receives notifications of changes.
    ///
    /// ```
    /// # use trunkline::{Change, Client, Revision, Server}; use std::sync::mpsc::channel;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tools_later().build();
    /// let (heard, changes) = channel();
    /// let client = Client::builder("example", "1.0.0")
    ///     .on_change(move |change| heard.send(change.clone()).unwrap())
    ///     .protocol(Revision::V2025_11_25)
    ///     .connect_memory(&server)
    ///     .await?;
    /// assert!(client.list_tools().await?.is_empty());
    /// server.put_tool(trunkline::tool("now", async || "noon"))?;
    /// assert_eq!(changes.recv()?, Change::Tools);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
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
