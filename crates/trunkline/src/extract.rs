//! What a handler may take as parameters besides its [`Context`](crate::Context): each is made of
//! one call.

pub(crate) mod headers;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call, CallKey, Peer};
use trunkline_wire::era::stateless::Envelope;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method;
use trunkline_wire::model::{ClientCapabilities, Implementation};
use trunkline_wire::revision::Revision;

use crate::layer::Added;
use crate::server::{Context, FromCall, Input, Rejection, Signature};

pub use headers::Headers;

/// The arguments of a call, read as a `T`.
///
/// ```
/// # use trunkline::{Args, Client, Server, data, serde_json::json, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// #[data]
/// struct Sum {
///     a: i64,
///     b: i64,
/// }
///
/// let add = tool("add", async |Args(it): Args<Sum>| (it.a + it.b).to_string());
/// let client = Client::in_memory(&Server::builder("sums", "1.0.0").tool(add).build()).await?;
/// let sum = client.call_tool("add", json!({ "a": 1, "b": 2 })).await?;
/// assert_eq!(sum.content[0].as_text(), Some("3"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        input.read().map(Args)
    }

    fn describe(signature: &mut Signature) {
        signature.arguments::<T>();
    }
}

/// What the server was given with [`ServerBuilder::state`](crate::server::ServerBuilder::state).
/// A handler that wants a state the server lacks is found out when the server is built.
///
/// ```
/// # use trunkline::{Client, Server, State, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let price = tool("price", async |State(price): State<u32>| format!("{price} euros"));
/// let server = Server::builder("inn", "1.0.0").tool(price).state(99_u32).build();
/// let price = Client::in_memory(&server).await?.call_tool("price", ()).await?;
/// assert_eq!(price.content[0].as_text(), Some("99 euros"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> FromCall for State<T> {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        let state = input.context().state::<T>().ok_or_else(|| {
            // Servers are checked for this when they are built.
            Rejection::call(ErrorObject::internal("state", "The server lacks a state."))
        })?;
        Ok(Self(state))
    }

    fn describe(signature: &mut Signature) {
        signature.state::<T>();
    }
}

/// Who was let in. A call without anybody is refused; take an `Option` to allow it.
impl FromCall for Principal {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        input.context().principal().cloned().ok_or_else(|| {
            let why = "This is only for callers who have been let in by name.";
            Rejection::call(ErrorObject::invalid_request(why))
        })
    }
}

impl FromCall for Option<Principal> {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(input.context().principal().cloned())
    }
}

/// What a [layer](crate::layer) of the server added to the call, or one in front of it to the
/// extensions of the HTTP request.
///
/// ```
/// # use trunkline::{Client, Extension, Server, layer::ServerRequest, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tag = tower::util::MapRequestLayer::new(|mut request: ServerRequest| {
///     request.insert(7_u8);
///     request
/// });
/// let tagged = tool("tagged", async |Extension(it): Extension<u8>| it.to_string());
/// # let client = Client::in_memory(&Server::builder("a", "1").tool(tagged).layer(tag).build()).await?;
/// assert_eq!(client.call_tool("tagged", ()).await?.content[0].as_text(), Some("7"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromCall for Extension<T> {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        input.context().extension::<T>().cloned().map(Self).ok_or_else(|| {
            let why = format!(
                "`{}` takes an `Extension<{}>`, but the request has none. Add one in a layer of the \
                 server, or to the extensions of the HTTP request.",
                input.name(),
                std::any::type_name::<T>()
            );
            Rejection::call(ErrorObject::internal("extension", why))
        })
    }
}

/// How the client names itself. Self-reported: never decide on it.
///
/// ```
/// # use trunkline::{Client, ClientInfo, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let who = async |ClientInfo(it): ClientInfo| it.map_or("Somebody".to_owned(), |it| it.name);
/// let server = Server::builder("a", "1").tool(tool("who", who)).build();
/// let client = Client::builder("example", "1.0.0").connect_memory(&server).await?;
/// assert_eq!(client.call_tool("who", ()).await?.content[0].as_text(), Some("example"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClientInfo(pub Option<Implementation>);

impl FromCall for ClientInfo {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(Self(input.context().client().cloned()))
    }
}

/// What the client can be asked.
///
/// ```
/// use trunkline::{Capabilities, Client, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let can = async |Capabilities(it): Capabilities| it.sampling.is_some().to_string();
/// let client = Client::in_memory(&Server::builder("a", "1").tool(tool("can", can)).build()).await?;
/// assert_eq!(client.call_tool("can", ()).await?.content[0].as_text(), Some("false"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Capabilities(pub ClientCapabilities);

impl FromCall for Capabilities {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(Self(input.context().client_capabilities().clone()))
    }
}

/// The `_meta` of the request.
///
/// ```
/// # use trunkline::{Client, Meta, Server, serde_json::json, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let whose = async |meta: Meta| meta.get::<String>("com.example/tenant").unwrap_or_default();
/// # let server = Server::builder("a", "1").tool(tool("whose", whose)).build();
/// let client = Client::in_memory(&server).await?;
/// let result = client.call_tool("whose", ()).meta("com.example/tenant", json!("blue")).await?;
/// assert_eq!(result.content[0].as_text(), Some("blue"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta(pub BTreeMap<String, Json>);

impl Meta {
    /// One member, read as a `T`.
    ///
    /// ```
    /// use trunkline::{Meta, RawJson};
    ///
    /// let meta = Meta([("com.example/tries".to_owned(), RawJson::of(&3))].into());
    /// assert_eq!(meta.get::<u8>("com.example/tries"), Some(3));
    /// assert_eq!(meta.get::<String>("com.example/tries"), None);
    /// ```
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.0.get(name)?.to().ok()
    }
}

impl FromCall for Meta {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        let members = input.context().meta().and_then(|it| it.to().ok());
        Ok(Self(members.unwrap_or_default()))
    }
}

/// Whether the caller has given up: for what a handler spawns or blocks on, since the handler
/// itself is dropped then.
///
/// ```
/// # use trunkline::{Cancelled, Client, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let count = async |cancelled: Cancelled| {
///     let counting = tokio::task::spawn_blocking(move || {
///         (0..1000).take_while(|_| !cancelled.is()).count().to_string()
///     });
///     counting.await.unwrap_or_default()
/// };
/// # let client = Client::in_memory(&Server::builder("a", "1").tool(tool("count", count)).build()).await?;
/// assert_eq!(client.call_tool("count", ()).await?.content[0].as_text(), Some("1000"));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Cancelled(Context);

impl Cancelled {
    /// Whether the caller has given up or the call is over.
    pub fn is(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits for that.
    pub fn wait(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.cancelled()
    }
}

impl FromCall for Cancelled {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(Self(input.context().clone()))
    }

    fn describe(signature: &mut Signature) {
        signature.for_all();
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancelled").field(&self.is()).finish()
    }
}

/// The URI that is read, as the client wrote it. For resources and templates alone.
///
/// ```
/// # use trunkline::{Client, Server, Uri, model::ResourceData, template};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let day = template("menu://{day}", "day", async |Uri(uri): Uri| format!("This is {uri}."));
/// let client = Client::in_memory(&Server::builder("inn", "1.0.0").resource(day).build()).await?;
/// let read = client.read_resource("menu://friday").await?;
/// assert_eq!(read.contents[0].data, ResourceData::Text("This is menu://friday.".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri(pub String);

impl FromCall for Uri {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        let uri = input.uri().ok_or_else(|| {
            let why = "Only what is read has a URI.";
            Rejection::call(ErrorObject::internal("uri", why))
        })?;
        Ok(Self(uri.to_owned()))
    }

    fn describe(signature: &mut Signature) {
        signature.for_all();
    }
}

/// Who looks at a list or calls: what [`visible`](crate::server::ToolEntry::visible) decides on.
///
/// ```
/// # use trunkline::{Caller, Client, Server, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// fn is_known(caller: &Caller<'_>) -> bool {
///     caller.principal().is_some()
/// }
///
/// let reset = tool("reset", async || "Done.").visible(is_known);
/// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(reset).build()).await?;
/// assert!(client.list_tools().await?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Caller<'a>(pub(crate) &'a Call);

impl Caller<'_> {
    /// Who was let in.
    ///
    /// ```
    /// let reset = trunkline::tool("reset", async || "Done.")
    ///     .visible(|caller| caller.principal().is_some_and(|it| it.may("admin")));
    /// assert!(trunkline::Server::builder("a", "1.0.0").tool(reset).try_build().is_ok());
    /// ```
    pub fn principal(&self) -> Option<&Principal> {
        principal(&self.0.attached)
    }

    /// What a [layer](crate::layer) of the server added to the call, or one in front of it to the
    /// extensions of the HTTP request.
    ///
    /// ```
    /// struct Plan(&'static str);
    ///
    /// let render = trunkline::tool("render", async || "A film.")
    ///     .visible(|caller| caller.extension::<Plan>().is_some_and(|plan| plan.0 == "gold"));
    /// assert!(trunkline::Server::builder("a", "1.0.0").tool(render).try_build().is_ok());
    /// ```
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        extension(&self.0.attached)
    }

    /// How the client names itself. Self-reported: never a reason to let anybody in.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let hint = tool("hint", async || "Press F1.")
    ///     .visible(|caller| caller.client().is_some_and(|it| it.name == "example"));
    /// let server = Server::builder("a", "1.0.0").tool(hint).build();
    /// let client = Client::builder("example", "1.0.0").connect_memory(&server).await?;
    /// assert_eq!(client.list_tools().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn client(&self) -> Option<&Implementation> {
        self.0.peer.info.as_ref()
    }

    /// What the client can be asked.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let sum = tool("sum", async || "Four.")
    ///     .visible(|caller| caller.capabilities().sampling.is_some());
    /// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(sum).build()).await?;
    /// assert!(client.list_tools().await?.is_empty(), "its model cannot be asked");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.0.peer.client
    }

    /// The `_meta` of the request.
    ///
    /// ```
    /// # use trunkline::{Client, Server, tool}; tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let blue = tool("blue", async || "Blue.")
    ///     .visible(|caller| caller.meta().is_some_and(|it| it.get().contains("blue")));
    /// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(blue).build()).await?;
    /// assert!(client.call_tool("blue", ()).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn meta(&self) -> Option<&Json> {
        self.0.meta.as_ref()
    }

    /// The revision it speaks.
    ///
    /// ```
    /// # use trunkline::{Client, Era, Server, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let modern = tool("modern", async || "New.")
    ///     .visible(|caller| caller.revision().era() == Era::Stateless);
    /// let client = Client::in_memory(&Server::builder("a", "1.0.0").tool(modern).build()).await?;
    /// assert_eq!(client.list_tools().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn revision(&self) -> Revision {
        self.0.revision
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("principal", &self.principal()).finish_non_exhaustive()
    }
}

/// Whoever a call was let in for.
pub(crate) fn principal(attached: &Attached) -> Option<&Principal> {
    if let Some(added) = attached.get::<Added>() {
        return added.get().or_else(|| principal(added.before()));
    }
    #[cfg(feature = "http")]
    if let Some(extensions) = attached.get::<http::Extensions>() {
        return extensions.get();
    }
    attached.get()
}

/// What layers added to a call, or what came with its HTTP request.
pub(crate) fn extension<T: Send + Sync + 'static>(attached: &Attached) -> Option<&T> {
    if let Some(added) = attached.get::<Added>() {
        return added.get().or_else(|| extension(added.before()));
    }
    #[cfg(feature = "http")]
    if let Some(extensions) = attached.get::<http::Extensions>() {
        return extensions.get();
    }
    None
}

/// Decides who sees an entry.
pub(crate) type Visible = Option<Arc<dyn Fn(&Caller<'_>) -> bool + Send + Sync>>;

/// Whether the caller sees an entry. One that cannot be decided on is not seen.
pub(crate) fn may_see(visible: &Visible, call: &Call) -> bool {
    visible.as_ref().is_none_or(|it| {
        catch_unwind(AssertUnwindSafe(|| it(&Caller(call)))).unwrap_or_else(|_| {
            tracing::error!("`visible` panicked; what it decides on is hidden");
            false
        })
    })
}

/// A call that nobody made, for who is asked about outside of one: of a listener, or of a request
/// that is not read yet.
pub(crate) fn call_by(attached: &Attached, meta: Option<&Json>) -> Call {
    let envelope = meta.and_then(|it| Envelope::read(Some(it)).ok());
    let peer = envelope.map_or_else(Peer::default, |it| Peer {
        info: it.client_info,
        client: it.capabilities,
        ..Peer::default()
    });
    Call {
        key: CallKey(0),
        method: &method::TABLE[0],
        params: Object::default(),
        meta: meta.cloned(),
        revision: Revision::LATEST,
        peer: Arc::new(peer),
        wants_progress: false,
        log_level: None,
        attached: attached.clone(),
    }
}
