//! Plain async functions as handlers: their parameters are extracted from the call.

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use trunkline_wire::json::Json;

use super::Context;
use crate::schema;

/// What a function's parameters are taken from.
#[derive(Debug)]
pub struct Input<'a> {
    /// The call's context.
    pub context: &'a Context,
    /// Its arguments: an object.
    pub arguments: Option<&'a Json>,
}

/// A parameter that can be taken from a call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a handler",
    note = "use `Context`, `Args<T>` or a type of yours that implements `FromCall`"
)]
pub trait FromCall: Sized + Send + 'static {
    /// Takes it, or says what is wrong with the arguments.
    fn from_call(input: &Input<'_>) -> Result<Self, String>;

    /// The schema of the arguments, if this parameter reads them.
    fn schema() -> Option<Json> {
        None
    }
}

impl FromCall for Context {
    fn from_call(input: &Input<'_>) -> Result<Self, String> {
        Ok(input.context.clone())
    }
}

/// The arguments of a call, read as a `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args<T>(pub T);

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FromCall for Args<T> {
    fn from_call(input: &Input<'_>) -> Result<Self, String> {
        let arguments = input.arguments.map_or("{}", Json::get);
        serde_json::from_str(arguments).map(Args).map_err(|error| {
            format!("The arguments do not fit: {}.", in_plain_words(&error.to_string()))
        })
    }

    fn schema() -> Option<Json> {
        Some(schema::input::<T>())
    }
}

/// What the reader complains of, without our type names and without positions in a text that the
/// caller did not write.
fn in_plain_words(complaint: &str) -> String {
    let complaint = complaint.split(" at line ").next().unwrap_or_default();
    let Some((before, expected)) = complaint.split_once("expected ") else {
        return complaint.to_owned();
    };
    let expected = match expected {
        it if it.starts_with("struct ") => "an object",
        it if it.starts_with("enum ") => "one of its names",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        it => it,
    };
    format!("{before}expected {expected}")
}

/// An async function whose parameters are all [`FromCall`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler",
    note = "a handler is an async function whose parameters are `Context`, `Args<T>` or of a type that implements `FromCall`, and whose result can be turned into an answer"
)]
pub trait Function<M>: Send + Sync + 'static {
    /// What it returns.
    type Output: Send + 'static;

    /// Calls it.
    fn call(
        &self,
        input: &Input<'_>,
    ) -> Result<impl Future<Output = Self::Output> + Send + 'static + use<Self, M>, String>;

    /// The schema of its arguments, if it reads any.
    fn schema() -> Option<Json>;
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
            ) -> Result<impl Future<Output = Self::Output> + Send + 'static + use<F, Fut, $($P),*>, String> {
                $(let $P = $P::from_call(input)?;)*
                Ok(self($($P),*))
            }

            fn schema() -> Option<Json> {
                None$(.or_else($P::schema))*
            }
        }
    };
}

function!();
function!(A);
function!(A, B);
function!(A, B, C);
function!(A, B, C, D);

#[cfg(test)]
mod tests {
    use super::in_plain_words;

    #[test]
    fn complaints_name_no_rust_types() {
        for (complaint, plain) in [
            (
                "invalid type: string \"x\", expected f64 at line 1 column 9",
                "invalid type: string \"x\", expected a number",
            ),
            (
                "invalid type: sequence, expected struct Echo at line 1 column 1",
                "invalid type: sequence, expected an object",
            ),
            ("missing field `text` at line 1 column 2", "missing field `text`"),
        ] {
            assert_eq!(in_plain_words(complaint), plain);
        }
    }
}
