//! Plain async functions as handlers: their parameters are extracted from the call.

use std::any::TypeId;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use trunkline_proto::input_required::QuestionKind;
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;

use super::Context;
use super::context::LazyContext;
use crate::schema::{self, SchemaProfile};
use crate::validate;

/// The call that a function's parameters are extracted from.
///
/// ```
/// use trunkline::server::{FromCall, Input, Rejection};
///
/// /// How many arguments there are.
/// struct Count(usize);
///
/// impl FromCall for Count {
///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
///         let arguments = input.read::<trunkline::serde_json::Map<_, _>>()?;
///         Ok(Self(arguments.len()))
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let count = trunkline::tool("count", async |Count(it): Count| it.to_string());
/// # let server = trunkline::Server::builder("a", "1").tool(count).build();
/// # let client = trunkline::Client::in_memory(&server).await.unwrap();
/// # let arguments = trunkline::serde_json::json!({ "a": 1, "b": 2 });
/// # let result = client.call_tool("count", arguments).await.unwrap();
/// # assert_eq!(result.content[0].as_text(), Some("2"));
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub(crate) context: &'a LazyContext<'a>,
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<&'a Json>,
    pub(crate) schema: Option<&'a validate::Schema>,
    pub(crate) uri: Option<&'a str>,
}

impl<'a> Input<'a> {
    /// The call's context.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection};
    ///
    /// struct IsNew(bool);
    ///
    /// impl FromCall for IsNew {
    ///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
    ///         Ok(Self(input.context().revision() == trunkline::Revision::LATEST))
    ///     }
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let is_new = trunkline::tool("new", async |IsNew(it): IsNew| it.to_string());
    /// # let server = trunkline::Server::builder("a", "1").tool(is_new).build();
    /// # let client = trunkline::Client::in_memory(&server).await.unwrap();
    /// # assert_eq!(client.call_tool("new", ()).await.unwrap().content[0].as_text(), Some("true"));
    /// # });
    /// ```
    pub fn context(&self) -> &'a Context {
        self.context.get()
    }

    /// The name of the tool or prompt, or the URI of the resource.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection};
    ///
    /// struct Name(String);
    ///
    /// impl FromCall for Name {
    ///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
    ///         Ok(Self(input.name().to_owned()))
    ///     }
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let name = trunkline::tool("echo", async |Name(it): Name| it);
    /// # let server = trunkline::Server::builder("a", "1").tool(name).build();
    /// # let client = trunkline::Client::in_memory(&server).await.unwrap();
    /// # assert_eq!(client.call_tool("echo", ()).await.unwrap().content[0].as_text(), Some("echo"));
    /// # });
    /// ```
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The arguments: an object.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection};
    ///
    /// struct HasArguments(bool);
    ///
    /// impl FromCall for HasArguments {
    ///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
    ///         Ok(Self(input.arguments().is_some_and(|it| it.get() != "{}")))
    ///     }
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let has = trunkline::tool("has", async |HasArguments(it): HasArguments| it.to_string());
    /// # let server = trunkline::Server::builder("a", "1").tool(has).build();
    /// # let client = trunkline::Client::in_memory(&server).await.unwrap();
    /// # assert_eq!(client.call_tool("has", ()).await.unwrap().content[0].as_text(), Some("false"));
    /// # });
    /// ```
    pub fn arguments(&self) -> Option<&'a Json> {
        self.arguments
    }

    /// The URI of a resource that is read.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection};
    ///
    /// struct Scheme(String);
    ///
    /// impl FromCall for Scheme {
    ///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
    ///         let scheme = input.uri().and_then(|it| it.split_once(':')).map_or("", |it| it.0);
    ///         Ok(Self(scheme.to_owned()))
    ///     }
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let menu = trunkline::resource("menu://today", "menu", async |Scheme(it): Scheme| it);
    /// # let server = trunkline::Server::builder("a", "1").resource(menu).build();
    /// # let client = trunkline::Client::in_memory(&server).await.unwrap();
    /// # let read = client.read_resource("menu://today").await.unwrap();
    /// # assert_eq!(read.contents[0].data, trunkline::model::ResourceData::Text("menu".to_owned()));
    /// # });
    /// ```
    pub fn uri(&self) -> Option<&'a str> {
        self.uri
    }

    /// The arguments as a `T`. The rejection lists everything that is wrong with them.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection};
    ///
    /// struct Words(Vec<String>);
    ///
    /// impl FromCall for Words {
    ///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
    ///         let arguments: std::collections::BTreeMap<String, String> = input.read()?;
    ///         Ok(Self(arguments.into_values().collect()))
    ///     }
    /// }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let join = trunkline::tool("join", async |Words(it): Words| it.join(" "));
    /// # let server = trunkline::Server::builder("a", "1").tool(join).build();
    /// # let client = trunkline::Client::in_memory(&server).await.unwrap();
    /// # let arguments = trunkline::serde_json::json!({ "a": "good", "b": "day" });
    /// # let result = client.call_tool("join", arguments).await.unwrap();
    /// # assert_eq!(result.content[0].as_text(), Some("good day"));
    /// # });
    /// ```
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Rejection> {
        validate::read(self.schema, self.arguments).map_err(Rejection::arguments)
    }
}

/// Why a parameter could not be extracted from a call.
///
/// ```
/// use trunkline::server::Rejection;
///
/// let (one, other) = (Rejection::arguments("`day` is over."), Rejection::arguments("Too late."));
/// assert_ne!(one, other);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection(pub(crate) Rejected);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rejected {
    Arguments(String),
    Call(ErrorObject),
}

impl Rejection {
    /// The arguments are wrong. Write the text for the model: it reads it where the revision
    /// allows.
    ///
    /// ```
    /// # use trunkline::{Client, Server, server::{FromCall, Input, Rejection}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// struct Never;
    ///
    /// impl FromCall for Never {
    ///     fn from_call(_: &Input<'_>) -> Result<Self, Rejection> {
    ///         Err(Rejection::arguments("Choose another day."))
    ///     }
    /// }
    ///
    /// let server = Server::builder("a", "1").tool(tool("never", async |_: Never| "Now.")).build();
    /// let result = Client::in_memory(&server).await?.call_tool("never", ()).await?;
    /// assert!(result.is_error() && result.content[0].as_text() == Some("Choose another day."));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn arguments(why: impl Into<String>) -> Self {
        Self(Rejected::Arguments(why.into()))
    }

    /// The call itself is wrong: the client gets this error, and the model sees nothing.
    ///
    /// ```
    /// # use trunkline::{Client, ErrorObject, Server, server::{FromCall, Input, Rejection}, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// struct Never;
    ///
    /// impl FromCall for Never {
    ///     fn from_call(_: &Input<'_>) -> Result<Self, Rejection> {
    ///         Err(Rejection::call(ErrorObject::invalid_request("Not for you.")))
    ///     }
    /// }
    ///
    /// let server = Server::builder("a", "1").tool(tool("never", async |_: Never| "Now.")).build();
    /// assert!(Client::in_memory(&server).await?.call_tool("never", ()).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn call(error: ErrorObject) -> Self {
        Self(Rejected::Call(error))
    }

    /// The same as a protocol error, for methods that have no other way.
    pub(crate) fn into_error(self) -> ErrorObject {
        match self.0 {
            Rejected::Arguments(why) => ErrorObject::new(code::INVALID_PARAMS, why),
            Rejected::Call(error) => error,
        }
    }
}

/// What a handler needs from its calls and from its server.
///
/// ```
/// use trunkline::server::{Function, Signature};
///
/// fn describe<M, F: Function<M>>(_: &F) -> Signature {
///     let mut signature = Signature::default();
///     F::describe(&mut signature);
///     signature
/// }
///
/// let signature = describe(&async |_: trunkline::State<u8>| "noon");
/// assert!(format!("{signature:?}").contains("u8"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Signature {
    pub(crate) arguments: Vec<Arguments>,
    pub(crate) states: Vec<(TypeId, &'static str)>,
    /// The kinds of questions it will ask.
    pub(crate) asks: Vec<QuestionKind>,
    /// How long it may work.
    pub(crate) timeout: Option<Duration>,
    /// The scopes that its caller needs.
    pub(crate) scopes: Vec<String>,
    /// Whether its result can depend on the caller.
    pub(crate) is_personal: bool,
    is_for_all: bool,
}

/// The schema of the arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) schema: fn(SchemaProfile) -> Json,
}

impl Signature {
    /// It parses the arguments as a `T`.
    ///
    /// ```
    /// let mut signature = trunkline::server::Signature::default();
    /// signature.arguments::<std::collections::BTreeMap<String, String>>();
    /// assert!(!format!("{signature:?}").contains("arguments: []"));
    /// ```
    pub fn arguments<T: JsonSchema>(&mut self) {
        self.arguments.push(Arguments { schema: schema::input_in::<T> });
        self.for_all();
    }

    /// It needs the server's state of type `T`.
    ///
    /// ```
    /// let mut signature = trunkline::server::Signature::default();
    /// signature.state::<std::path::PathBuf>();
    /// assert!(format!("{signature:?}").contains("PathBuf"));
    /// ```
    pub fn state<T: 'static>(&mut self) {
        self.states.push((TypeId::of::<T>(), std::any::type_name::<T>()));
        self.for_all();
    }

    /// It does not depend on the caller. If this holds for every parameter, the result may be
    /// cached for all callers, as far as the server's [cache hint](super::ServerBuilder::cache)
    /// allows it.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection, Signature};
    ///
    /// struct Noon;
    ///
    /// impl FromCall for Noon {
    ///     fn from_call(_: &Input<'_>) -> Result<Self, Rejection> {
    ///         Ok(Self)
    ///     }
    ///
    ///     fn describe(signature: &mut Signature) {
    ///         signature.for_all();
    ///     }
    /// }
    /// # let now = trunkline::tool("now", async |_: Noon| "noon");
    /// # assert!(trunkline::Server::builder("a", "1").tool(now).try_build().is_ok());
    /// ```
    pub fn for_all(&mut self) {
        self.is_for_all = true;
    }

    /// It reads the headers of HTTP requests, so the process keeps them from now on.
    pub(crate) fn headers(&mut self) {
        HEADERS_ARE_TAKEN.store(true, Ordering::Relaxed);
    }

    fn parameter<P: FromCall>(&mut self) {
        self.is_for_all = false;
        P::describe(self);
        self.is_personal |= !self.is_for_all;
    }

    /// The schema of the arguments, in a profile.
    pub(crate) fn schema(&self, profile: SchemaProfile) -> Option<Json> {
        self.arguments.first().map(|it| (it.schema)(profile))
    }
}

/// A parameter that can be extracted from a call.
///
/// ```
/// use trunkline::server::{FromCall, Input, Rejection};
///
/// /// Whether the caller is in a hurry.
/// struct Hurry(bool);
///
/// impl FromCall for Hurry {
///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
///         let meta = input.context().meta();
///         Ok(Self(meta.is_some_and(|it| it.get().contains("com.example/hurry"))))
///     }
/// }
///
/// async fn answer(Hurry(yes): Hurry) -> &'static str {
///     if yes { "42" } else { "It depends." }
/// }
/// # let _ = trunkline::tool("answer", answer);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a handler",
    note = "use `Context`, `Args<T>`, `State<T>` or another extractor, or a type of yours that implements `FromCall`"
)]
pub trait FromCall: Sized + Send + 'static {
    /// Extracts it, or says what is wrong.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Input, Rejection};
    ///
    /// struct Progressing(bool);
    ///
    /// impl FromCall for Progressing {
    ///     fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
    ///         Ok(Self(input.context().wants_progress()))
    ///     }
    /// }
    /// # let wants = trunkline::tool("wants", async |Progressing(it): Progressing| it.to_string());
    /// # assert!(trunkline::Server::builder("a", "1").tool(wants).try_build().is_ok());
    /// ```
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection>;

    /// Declares what it needs from calls and from the server.
    ///
    /// ```
    /// use trunkline::server::{FromCall, Signature};
    ///
    /// let mut signature = Signature::default();
    /// trunkline::State::<u8>::describe(&mut signature);
    /// assert!(format!("{signature:?}").contains("u8"));
    /// ```
    fn describe(_signature: &mut Signature) {}
}

impl FromCall for Context {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(input.context().clone())
    }
}

/// An async function whose parameters are all [`FromCall`].
///
/// ```
/// use trunkline::server::Function;
///
/// fn is_handler<M, F: Function<M>>(_: F) -> bool {
///     true
/// }
///
/// assert!(is_handler(async |_: trunkline::Context| "noon"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an async function whose parameters are `Context`, `Args<T>`, `State<T>` or of another type that implements `FromCall`, and whose result can be turned into an answer"
)]
pub trait Function<M>: Send + Sync + 'static {
    /// What it returns.
    type Output: Send + 'static;

    /// Calls it.
    ///
    /// ```
    /// use trunkline::server::{Function, Input, Rejection};
    ///
    /// fn is_taken<M, F: Function<M>>(function: &F, input: &Input<'_>) -> bool {
    ///     function.call(input).is_ok()
    /// }
    /// # let _: fn(&fn() -> std::future::Ready<()>, &Input<'_>) -> bool = is_taken;
    /// ```
    fn call(
        &self,
        input: &Input<'_>,
    ) -> Result<impl Future<Output = Self::Output> + Send + 'static + use<Self, M>, Rejection>;

    /// Declares what it needs from calls and from the server.
    ///
    /// ```
    /// use trunkline::server::{Function, Signature};
    ///
    /// fn wants<M, F: Function<M>>(_: F) -> String {
    ///     let mut signature = Signature::default();
    ///     F::describe(&mut signature);
    ///     format!("{signature:?}")
    /// }
    ///
    /// assert!(wants(async |_: trunkline::State<u8>| "noon").contains("u8"));
    /// ```
    fn describe(signature: &mut Signature);
}

macro_rules! function {
    ($($P:ident),*) => {
        impl<F, Fut, $($P),*> Function<(Fut, $($P,)*)> for F
        where
            F: Fn($($P),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send + 'static,
            Fut::Output: Send + 'static,
            $($P: FromCall),*
        {
            type Output = Fut::Output;

            #[allow(unused_variables, non_snake_case)]
            fn call(
                &self,
                input: &Input<'_>,
            ) -> Result<
                impl Future<Output = Self::Output> + Send + 'static + use<F, Fut, $($P),*>,
                Rejection,
            > {
                $(let $P = $P::from_call(input)?;)*
                Ok(self($($P),*))
            }

            #[allow(unused_variables)]
            fn describe(signature: &mut Signature) {
                $(signature.parameter::<$P>();)*
            }
        }
    };
}

function!();
function!(A);
function!(A, B);
function!(A, B, C);
function!(A, B, C, D);
function!(A, B, C, D, E);
function!(A, B, C, D, E, G);
function!(A, B, C, D, E, G, H);
function!(A, B, C, D, E, G, H, I);

/// Whether any handler in this process reads headers. If none does, no call copies them.
#[cfg(feature = "http")]
pub(super) fn headers_are_taken() -> bool {
    HEADERS_ARE_TAKEN.load(Ordering::Relaxed)
}

static HEADERS_ARE_TAKEN: AtomicBool = AtomicBool::new(false);
