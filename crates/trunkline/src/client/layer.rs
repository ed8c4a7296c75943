//! A client's requests as a tower service, and the layers around it.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tower_layer::Layer;
use tower_service::Service;
use trunkline_proto::{PeerNotification, Timing};
use trunkline_transport::conversation_handle::Request;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::ToolAnnotations;
use trunkline_wire::revision::Revision;

use super::call::{Caller, Running};
use super::error::CallError;
use crate::layer::BoxError;
use crate::observe::Watch;

/// A request of a client on its way through the client's layers.
///
/// The server's questions about it are answered below the layers, so a layer sees one request and
/// one answer in every revision. A clone sends the same request again.
///
/// ```
/// use tower::util::MapRequestLayer;
/// use trunkline::Client;
/// use trunkline::client::ClientRequest;
/// use trunkline::serde_json::json;
///
/// let layer = MapRequestLayer::new(|mut request: ClientRequest| {
///     println!("{} {:?} in {}", request.method(), request.tool(), request.revision());
///     request.set_meta("example.com/tenant", json!("blue"));
///     request
/// });
/// let client = Client::builder("example", "1.0.0").layer(layer);
/// ```
#[derive(Clone)]
pub struct ClientRequest {
    pub(super) caller: Caller,
    pub(super) method: Method,
    pub(super) params: Object,
    pub(super) meta: Object,
    pub(super) timing: Timing,
    pub(super) heard: Option<mpsc::Sender<PeerNotification>>,
}

impl ClientRequest {
    /// The method.
    ///
    /// ```
    /// # use trunkline::{Client, Server, client::ClientRequest}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("empty", "1.0.0").tools_later().build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     assert_eq!(request.method(), "tools/list");
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert!(client.list_tools().await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn method(&self) -> &'static str {
        self.method.name()
    }

    /// The tool, if one is called.
    ///
    /// ```
    /// # use trunkline::{Client, Server, client::ClientRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     assert_eq!(request.tool().as_deref(), Some("now"));
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn tool(&self) -> Option<String> {
        (self.method == Method::ToolsCall).then(|| self.params.get("name")?.to().ok()).flatten()
    }

    /// The parameters, without `_meta`.
    ///
    /// ```
    /// # use trunkline::{Client, Server, client::ClientRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     assert!(request.params().get().contains(r#""name":"now""#));
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn params(&self) -> Json {
        self.params.to_json()
    }

    /// A member of `_meta`.
    ///
    /// ```
    /// # use trunkline::{Client, Server, client::ClientRequest, serde_json::json, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     assert_eq!(request.meta("com.example/tenant").unwrap().get(), r#""blue""#);
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// client.call_tool("now", ()).meta("com.example/tenant", json!("blue")).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn meta(&self, name: &str) -> Option<&Json> {
        self.meta.get(name)
    }

    /// Sets a member of `_meta`, such as `traceparent`.
    ///
    /// ```
    /// # use trunkline::{Client, Meta, Server, client::ClientRequest, serde_json::json, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let whose = async |meta: Meta| meta.get::<String>("com.example/tenant").unwrap_or_default();
    /// # let server = Server::builder("a", "1").tool(tool("whose", whose)).build();
    /// let layer = MapRequestLayer::new(|mut request: ClientRequest| {
    ///     request.set_meta("com.example/tenant", json!("blue"));
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert_eq!(client.call_tool("whose", ()).await?.content[0].as_text(), Some("blue"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn set_meta(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.meta.set(name.into(), value.into());
    }

    /// Its time-outs.
    ///
    /// ```
    /// # use trunkline::{Client, Server, Timing, client::ClientRequest}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("empty", "1.0.0").tools_later().build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     assert_eq!(request.timing(), Timing::default());
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert!(client.list_tools().await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Sets its time-outs.
    ///
    /// ```
    /// # use trunkline::{Client, Server, Timing, client::{CallError, ClientRequest}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use {std::time::Duration, tower::util::MapRequestLayer};
    /// # let slow = async || std::future::pending::<String>().await;
    /// # let server = Server::builder("slow", "1").tool(tool("slow", slow)).build();
    /// let soon = Duration::from_millis(10);
    /// let layer = MapRequestLayer::new(move |mut request: ClientRequest| {
    ///     request.set_timing(Timing { idle: soon, hard: soon });
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert_eq!(client.call_tool("slow", ()).await.err(), Some(CallError::TimedOut));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// The revision of the connection.
    ///
    /// ```
    /// # use trunkline::{Client, Revision, Server, client::ClientRequest}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("empty", "1.0.0").tools_later().build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     assert_eq!(request.revision(), Revision::LATEST);
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// assert!(client.list_tools().await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn revision(&self) -> Revision {
        self.caller.revision()
    }

    /// The annotations of the called tool, if its list has been fetched. Self-reported: they may be
    /// wrong.
    ///
    /// ```
    /// # use trunkline::{Client, Server, client::ClientRequest, model::ToolAnnotations, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::util::MapRequestLayer;
    /// # let reads = ToolAnnotations::new().read_only_hint(true);
    /// # let now = tool("now", async || "noon").annotations(reads);
    /// # let server = Server::builder("clock", "1.0.0").tool(now).build();
    /// let layer = MapRequestLayer::new(|request: ClientRequest| {
    ///     let only_reads = request.annotations().and_then(|it| it.read_only_hint);
    ///     assert_eq!(only_reads, request.tool().map(|_| true));
    ///     request
    /// });
    /// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
    /// client.list_tools().await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn annotations(&self) -> Option<ToolAnnotations> {
        self.caller.shared.known.annotations(&self.tool()?)
    }

    /// Sends the request.
    // No `async fn`: that would have room for all of this until the answer is there.
    pub(super) fn send(mut self) -> impl Future<Output = Result<Json, CallError>> + Send + use<> {
        let observe = &self.caller.shared.observe;
        let mut watch = observe.watch(self.method, &self.params, self.caller.revision());
        Watch::scope(&watch, || observe.write_trace(&mut self.meta));
        let mut params = self.params;
        if !self.meta.is_empty() {
            params.set("_meta", self.meta.to_json());
        }
        let mut request = Request::new(self.method, params);
        request.timing = Some(self.timing);
        request.heard = self.heard;
        let mut answer = self.caller.handle.ask(request);
        async move { Ok(poll_fn(|cx| Watch::poll(&mut watch, Pin::new(&mut answer), cx)).await?) }
    }

    /// Sends it through the client's layers.
    pub(super) fn send_through_layers(self) -> Running<Json> {
        let shared = Arc::clone(&self.caller.shared);
        shared.layers.send(self)
    }
}

impl fmt::Debug for ClientRequest {
    /// Omits its params, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequest")
            .field("method", &self.method)
            .field("tool", &self.tool())
            .finish_non_exhaustive()
    }
}

/// The layers of a client, innermost first. Free of cost if empty.
#[derive(Default)]
pub(super) struct Layers(Option<Mutex<Box<dyn Erased>>>);

/// A client's requests as a service, which its layers wrap.
///
/// ```
/// # use trunkline::{Client, Server, client::{ClientRequest, Requests}};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # use {tower::util::MapRequest, tower::layer::layer_fn};
/// # let server = Server::builder("empty", "1.0.0").build();
/// let layer = layer_fn(|requests: Requests| {
///     MapRequest::new(requests, |request: ClientRequest| request)
/// });
/// let client = Client::builder("example", "1").layer(layer).connect_memory(&server).await?;
/// assert!(client.ping().await.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Requests(Box<dyn Erased>);

impl Layers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn around<L>(self, layer: L) -> Self
    where
        L: Layer<Requests>,
        L::Service: Service<ClientRequest, Response = Json> + Clone + Send + 'static,
        <L::Service as Service<ClientRequest>>::Error: Into<BoxError>,
        <L::Service as Service<ClientRequest>>::Future: Send + 'static,
    {
        let inside = match self.0 {
            Some(inside) => inside.into_inner().unwrap_or_else(PoisonError::into_inner),
            None => Box::new(Sending),
        };
        Self(Some(Mutex::new(Box::new(layer.layer(Requests(inside))))))
    }

    pub(super) fn send(&self, request: ClientRequest) -> Running<Json> {
        match self.copy() {
            Some(service) => service.run(request),
            None => Box::new(Sending).run(request),
        }
    }

    fn copy(&self) -> Option<Box<dyn Erased>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).copy())
    }
}

impl Clone for Layers {
    fn clone(&self) -> Self {
        Self(self.copy().map(Mutex::new))
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "some" })
    }
}

/// A type-erased service.
trait Erased: Send {
    fn copy(&self) -> Box<dyn Erased>;
    fn run(self: Box<Self>, request: ClientRequest) -> Running<Json>;
}

impl<S> Erased for S
where
    S: Service<ClientRequest, Response = Json> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    fn copy(&self) -> Box<dyn Erased> {
        Box::new(self.clone())
    }

    fn run(mut self: Box<Self>, request: ClientRequest) -> Running<Json> {
        Box::pin(async move {
            poll_fn(|cx| self.poll_ready(cx)).await.map_err(|error| of_layer(error.into()))?;
            self.call(request).await.map_err(|error| of_layer(error.into()))
        })
    }
}

impl Service<ClientRequest> for Requests {
    type Response = Json;
    type Error = CallError;
    type Future = Running<Json>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        // Each request awaits the readiness of the inner service itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ClientRequest) -> Running<Json> {
        self.0.copy().run(request)
    }
}

impl Clone for Requests {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

/// The innermost service: sends the request.
#[derive(Clone, Copy)]
struct Sending;

impl Erased for Sending {
    fn copy(&self) -> Box<dyn Erased> {
        Box::new(*self)
    }

    fn run(self: Box<Self>, request: ClientRequest) -> Running<Json> {
        // Sent when it is polled.
        Box::pin(async move { request.send().await })
    }
}

/// An error out of the layers: the call's own, or a layer's.
pub(super) fn of_layer(error: BoxError) -> CallError {
    match error.downcast::<CallError>() {
        Ok(error) => *error,
        Err(error) => CallError::Layer(LayerError(error.into())),
    }
}

/// Why a layer of the client rejected or abandoned a call. Its source is the layer's own error.
///
/// ```
/// use std::time::Duration;
/// use tower::timeout::{TimeoutLayer, error::Elapsed};
/// use trunkline::client::CallError;
/// # use trunkline::{Client, Server, tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let slow = async || -> String { std::future::pending().await };
/// # let server = Server::builder("slow", "1.0.0").tool(tool("slow", slow).about("Never ends.")).build();
/// let client = Client::builder("example", "1.0.0")
///     .layer(TimeoutLayer::new(Duration::from_millis(10)))
///     .connect_memory(&server)
///     .await?;
/// match client.call_tool("slow", ()).await {
///     Err(CallError::Layer(error)) => assert!(error.downcast_ref::<Elapsed>().is_some()),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LayerError(Arc<dyn Error + Send + Sync>);

impl LayerError {
    /// The layer's own error, if it is of this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

/// Only an error and its clones are equal.
impl PartialEq for LayerError {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for LayerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "A layer of this client gave the call up: {}.", self.0)
    }
}

impl Error for LayerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
