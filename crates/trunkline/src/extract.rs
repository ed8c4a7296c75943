//! The parameters that a handler may take besides its [`Context`](crate::Context), each extracted
//! from one call.

mod headers;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use trunkline_auth::Principal;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{ClientCapabilities, Implementation};

use crate::TraceContext;
use crate::server::{Context, FromCall, Input, Rejection, Signature};

pub use headers::Headers;

/// The arguments of a call, parsed as a `T`.
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

/// The value given to [`ServerBuilder::state`](crate::server::ServerBuilder::state). If the server
/// lacks it, building the server fails.
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
            // Building the server checks this.
            Rejection::call(ErrorObject::internal("state", "The server lacks a state."))
        })?;
        Ok(Self(state))
    }

    fn describe(signature: &mut Signature) {
        signature.state::<T>();
    }
}

/// The authenticated caller. A call without one is refused; take an `Option` to allow it.
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

/// A value that a [layer](crate::layer) of the server, or of the HTTP stack in front of it, put
/// into the extensions of the call.
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

/// The client's name and version. Self-reported: never base a decision on it.
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

/// The client's capabilities: what it can be asked.
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
    /// One member, parsed as a `T`.
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

/// Whether the caller has cancelled the call. For code that a handler spawns or blocks on; the
/// handler itself is dropped then.
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
    /// Whether the caller has cancelled the call, or the call is over.
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

/// The URI that is read, as the client wrote it. For resources and templates only.
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

impl FromCall for TraceContext {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(input.context().trace())
    }
}
