//! Plain async functions as handlers: their parameters are extracted from the call.

use std::any::TypeId;
use std::future::Future;
use std::time::Duration;

use schemars::JsonSchema;
use trunkline_proto::input_required::QuestionKind;
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;

use super::Context;
use crate::schema::{self, SchemaProfile};
use crate::validate;

/// What a function's parameters are taken from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub(crate) context: &'a Context,
    pub(crate) arguments: Option<&'a Json>,
    pub(crate) schema: Option<&'a validate::Schema>,
    pub(crate) uri: Option<&'a str>,
}

impl<'a> Input<'a> {
    /// The call's context.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// Its arguments: an object.
    pub fn arguments(&self) -> Option<&'a Json> {
        self.arguments
    }

    /// The URI that is read, if a resource is.
    pub fn uri(&self) -> Option<&'a str> {
        self.uri
    }

    /// The arguments as a `T`. What is wrong with them is told all at once.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Rejection> {
        validate::read(self.schema, self.arguments).map_err(Rejection::arguments)
    }
}

/// Why a parameter could not be taken from a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection(pub(crate) Rejected);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rejected {
    Arguments(String),
    Call(ErrorObject),
}

impl Rejection {
    /// The arguments are wrong, in words for whoever chose them. The model reads it, where the
    /// revision has a way.
    pub fn arguments(why: impl Into<String>) -> Self {
        Self(Rejected::Arguments(why.into()))
    }

    /// The call itself is wrong: the caller gets this error, and the model nothing.
    pub fn call(error: ErrorObject) -> Self {
        Self(Rejected::Call(error))
    }

    /// The error of a call that has no other way to say it.
    pub(crate) fn into_error(self) -> ErrorObject {
        match self.0 {
            Rejected::Arguments(why) => ErrorObject::new(code::INVALID_PARAMS, why),
            Rejected::Call(error) => error,
        }
    }
}

/// What a handler wants of its calls and of its server.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    pub(crate) arguments: Vec<Arguments>,
    pub(crate) states: Vec<(TypeId, &'static str)>,
    /// What it will ask the client.
    pub(crate) asks: Vec<QuestionKind>,
    /// How long it may work.
    pub(crate) timeout: Option<Duration>,
    /// Whether it can tell one caller from another.
    pub(crate) is_personal: bool,
    is_for_all: bool,
}

/// How the schema of arguments is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments {
    pub(crate) schema: fn(SchemaProfile) -> Json,
}

impl Signature {
    /// It reads the arguments as a `T`.
    pub fn arguments<T: JsonSchema>(&mut self) {
        self.arguments.push(Arguments { schema: schema::input_in::<T> });
        self.for_all();
    }

    /// It wants the server's state of type `T`.
    pub fn state<T: 'static>(&mut self) {
        self.states.push((TypeId::of::<T>(), std::any::type_name::<T>()));
        self.for_all();
    }

    /// It does not depend on who calls. What is read without any parameter that does may be kept
    /// for everybody, if the server's [cache hint](super::ServerBuilder::cache) allows it.
    pub fn for_all(&mut self) {
        self.is_for_all = true;
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

/// A parameter that can be taken from a call.
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
    /// Takes it, or says what is wrong.
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection>;

    /// Says what it wants of calls and of the server.
    fn describe(_signature: &mut Signature) {}
}

impl FromCall for Context {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        Ok(input.context.clone())
    }
}

/// An async function whose parameters are all [`FromCall`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an async function whose parameters are `Context`, `Args<T>`, `State<T>` or of another type that implements `FromCall`, and whose result can be turned into an answer"
)]
pub trait Function<M>: Send + Sync + 'static {
    /// What it returns.
    type Output: Send + 'static;

    /// Calls it.
    fn call(
        &self,
        input: &Input<'_>,
    ) -> Result<impl Future<Output = Self::Output> + Send + 'static + use<Self, M>, Rejection>;

    /// Says what it wants of calls and of the server.
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
