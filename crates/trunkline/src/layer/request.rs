//! A call and its answer, as layers see them.

use std::fmt;
use std::sync::Arc;

use trunkline_auth::Principal;
use trunkline_proto::Call;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::json::Json;
use trunkline_wire::json::glance::{Glance, ResultType};
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ClientCapabilities, Implementation};
use trunkline_wire::revision::Revision;

use super::{Around, Inside};
use crate::caller::{Added, Caller, extension, principal};

/// A call on its way through the layers of a server.
///
/// Sending a clone runs the call again: the effects of the first run are not undone.
///
/// ```
/// use trunkline::layer::ServerRequest;
///
/// fn line(request: &ServerRequest) -> String {
///     let who = request.principal().map_or("somebody", |it| &*it.subject);
///     format!("{} {} for {who}", request.method(), request.name().unwrap_or_default())
/// }
/// ```
#[derive(Clone)]
pub struct ServerRequest {
    pub(super) call: Call,
    pub(super) handle: ConversationHandle,
    pub(super) added: Added,
    /// The remaining layers, innermost first.
    pub(super) route: Vec<Arc<dyn Around>>,
    pub(super) inside: Inside,
}

impl ServerRequest {
    /// The method, such as `tools/call`.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert_eq!(request.method(), "tools/call");
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn method(&self) -> &'static str {
        self.call.method.name
    }

    /// The name of the tool or prompt, or the URI of the resource.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert_eq!(request.name().as_deref(), Some("now"));
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn name(&self) -> Option<String> {
        let member = match self.call.method.method {
            Method::ToolsCall | Method::PromptsGet => "name",
            Method::ResourcesRead => "uri",
            _ => return None,
        };
        self.call.params.get(member)?.to().ok()
    }

    /// The parameters, without `_meta`. They may hold secrets.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert!(request.params().get().contains(r#""name":"now""#));
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn params(&self) -> Json {
        self.call.params.to_json()
    }

    /// One parameter, such as `arguments`.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert_eq!(request.param("name").unwrap().get(), r#""now""#);
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn param(&self, name: &str) -> Option<&Json> {
        self.call.params.get(name)
    }

    /// Sets a parameter. Do so in every round of a call alike: its sealed state is bound to its
    /// name and arguments. In a layer around one tool, `name` has no effect.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, serde_json::json, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::util::MapRequestLayer;
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let renamed = MapRequestLayer::new(|mut request: ServerRequest| {
    ///     request.set_param("name", json!("now"));
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(renamed).build()).await?;
    /// assert!(client.call_tool("time", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn set_param(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.call.params.set(name.into(), value.into());
    }

    /// The `_meta` of the request, trace context included.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, serde_json::json, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::util::MapRequestLayer;
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert!(request.meta().unwrap().get().contains("com.example/tenant"));
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// let call = client.call_tool("now", ()).meta("com.example/tenant", json!("blue"));
    /// assert!(call.await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn meta(&self) -> Option<&Json> {
        self.call.meta.as_ref()
    }

    /// The revision of the call.
    ///
    /// ```
    /// # use trunkline::{Client, Revision, Server, layer::ServerRequest, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::util::MapRequestLayer;
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert_eq!(request.revision(), Revision::LATEST);
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn revision(&self) -> Revision {
        self.call.revision
    }

    /// The client's name and version. Self-reported: never base a decision on it.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert_eq!(request.client().map(|it| &*it.name), Some("example"));
    ///     request
    /// });
    /// let server = server.layer(layer).build();
    /// let client = Client::builder("example", "1.0.0").connect_memory(&server).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn client(&self) -> Option<&Implementation> {
        self.call.peer.info.as_ref()
    }

    /// The client's capabilities: what it can be asked.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert!(request.client_capabilities().elicitation.is_none());
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.call.peer.client
    }

    /// The principal, set by the transport or by an outer layer.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert!(request.principal().is_none(), "nobody was let in by name");
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn principal(&self) -> Option<&Principal> {
        self.added.get().or_else(|| principal(&self.call.attached))
    }

    /// The caller as [`visible`](crate::server::ToolEntry::visible) sees it, without the values
    /// that layers added.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|request: ServerRequest| {
    ///     assert_eq!(request.caller().revision(), request.revision());
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn caller(&self) -> Caller<'_> {
        Caller(&self.call)
    }

    /// A value of an outer layer, or of the extensions of the HTTP request.
    ///
    /// ```
    /// # use trunkline::{Client, Server, layer::ServerRequest, tool}; use tower::util::MapRequestLayer;
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon"));
    /// let layer = MapRequestLayer::new(|mut request: ServerRequest| {
    ///     request.insert(7_u8);
    ///     assert_eq!(request.extension::<u8>(), Some(&7));
    ///     request
    /// });
    /// let client = Client::in_memory(&server.layer(layer).build()).await?;
    /// assert!(client.call_tool("now", ()).await.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.added.get().or_else(|| extension(&self.call.attached))
    }

    /// Adds a value that handlers can take as an [`Extension`](crate::Extension) of its type. A
    /// [`Principal`] replaces the caller's.
    ///
    /// ```
    /// # use trunkline::{Client, Principal, Server, layer::ServerRequest, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::util::MapRequestLayer;
    /// let layer = MapRequestLayer::new(|mut request: ServerRequest| {
    ///     request.insert(Principal::new("ada"));
    ///     request
    /// });
    /// let who = tool("who", async |principal: Principal| principal.subject);
    /// # let client = Client::in_memory(&Server::builder("a", "1").tool(who).layer(layer).build()).await?;
    /// assert_eq!(client.call_tool("who", ()).await?.content[0].as_text(), Some("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn insert<T: Send + Sync + 'static>(&mut self, it: T) {
        self.added.put(it);
    }
}

impl fmt::Debug for ServerRequest {
    /// Omits its params, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRequest")
            .field("method", &self.method())
            .field("name", &self.name())
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

/// The answer to a call: a result in the caller's revision, or a JSON-RPC error.
///
/// ```
/// use trunkline::{ErrorObject, RawJson, layer::ServerResponse};
///
/// let result: ServerResponse = Ok(RawJson::parse(r#"{"content":[],"isError":true}"#)?).into();
/// assert!(result.is_error());
/// let error: ServerResponse = Err(ErrorObject::new(-32602, "There is no such tool.")).into();
/// assert!(error.is_error() && error.result().is_none());
/// # Ok::<(), trunkline::serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ServerResponse(Outcome);

impl ServerResponse {
    /// The result, if there is one. A failed tool has one too.
    ///
    /// ```
    /// use trunkline::{RawJson, layer::ServerResponse};
    ///
    /// let answer = ServerResponse::from(Ok(RawJson::empty_object()));
    /// assert_eq!(answer.result().map(RawJson::get), Some("{}"));
    /// ```
    pub fn result(&self) -> Option<&Json> {
        self.0.as_ref().ok()
    }

    /// The JSON-RPC error, if that is the answer.
    ///
    /// ```
    /// use trunkline::{ErrorObject, layer::ServerResponse};
    ///
    /// let answer = ServerResponse::from(Err(ErrorObject::new(-32602, "There is no such tool.")));
    /// assert_eq!(answer.error().map(|it| it.code), Some(-32602));
    /// ```
    pub fn error(&self) -> Option<&ErrorObject> {
        self.0.as_ref().err()
    }

    /// Whether it is an error, or the result of a failed tool.
    ///
    /// ```
    /// use trunkline::{RawJson, layer::ServerResponse};
    ///
    /// assert!(!ServerResponse::from(Ok(RawJson::empty_object())).is_error());
    /// ```
    pub fn is_error(&self) -> bool {
        match &self.0 {
            Ok(result) => Glance::of(result).is_error,
            Err(_) => true,
        }
    }

    /// Whether it asks the client something; the client then repeats the call with its answers.
    ///
    /// ```
    /// use trunkline::{RawJson, layer::ServerResponse};
    ///
    /// let asked = RawJson::parse(r#"{"resultType":"input_required"}"#).unwrap();
    /// assert!(ServerResponse::from(Ok(asked)).is_question());
    /// ```
    pub fn is_question(&self) -> bool {
        let kind = |it: &Json| Glance::of(it).result_type;
        self.result().is_some_and(|it| kind(it) == ResultType::InputRequired)
    }

    /// The answer itself.
    ///
    /// ```
    /// use trunkline::{RawJson, layer::ServerResponse};
    ///
    /// let answer = ServerResponse::from(Ok(RawJson::empty_object()));
    /// assert_eq!(answer.into_outcome(), Ok(RawJson::empty_object()));
    /// ```
    pub fn into_outcome(self) -> Result<Json, ErrorObject> {
        self.0
    }
}

impl From<Result<Json, ErrorObject>> for ServerResponse {
    fn from(outcome: Result<Json, ErrorObject>) -> Self {
        Self(outcome)
    }
}
