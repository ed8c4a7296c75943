//! A value that can be read but never shown.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;

/// An argument that logs, traces, errors and answers never show. In the schema it is `writeOnly`.
///
/// It implements `Deserialize` but not `Serialize`, so it cannot be part of a result or journal.
/// Nor can a form ask for it: send the user to a page with
/// [`Context::ask_url`](crate::Context::ask_url).
///
/// ```
/// use trunkline::Secret;
///
/// let password: Secret<String> = trunkline::serde_json::from_str(r#""hunter2""#).unwrap();
/// assert_eq!(format!("{password:?} {password}"), "[secret] [secret]");
/// assert_eq!(password.expose(), "hunter2");
/// let wrong = trunkline::serde_json::from_str::<Secret<u32>>(r#""hunter2""#).unwrap_err();
/// assert!(!wrong.to_string().contains("hunter2"));
/// ```
///
/// What would leak it does not compile. Neither a result:
///
/// ```compile_fail,E0277
/// fn is_written<T: trunkline::serde::Serialize>() {}
/// is_written::<trunkline::Secret<String>>();
/// ```
///
/// nor an effect whose result is kept:
///
/// ```compile_fail,E0277
/// use trunkline::{Context, Secret, ToolError};
///
/// async fn login(cx: Context) -> Result<(), ToolError> {
///     cx.once("token", async || Ok::<_, ToolError>(Secret::new("t".to_owned()))).await?;
///     Ok(())
/// }
/// ```
///
/// nor a question:
///
/// ```compile_fail,E0277
/// async fn login(cx: trunkline::Context) {
///     let _ = cx.ask::<trunkline::Secret<String>>("Your password?").await;
/// }
/// ```
#[derive(Clone, Copy, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides a value.
    ///
    /// ```
    /// let token = trunkline::Secret::new("abc");
    /// assert_eq!(token.to_string(), "[secret]");
    /// ```
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value. Expose it only where it is used.
    ///
    /// ```
    /// let token = trunkline::Secret::new("abc");
    /// assert_eq!(token.expose().len(), 3);
    /// ```
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// The value itself. Nothing hides it any longer.
    ///
    /// ```
    /// let token = trunkline::Secret::new("abc".to_owned());
    /// assert_eq!(token.into_exposed(), "abc");
    /// ```
    pub fn into_exposed(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error of the inner type may quote the value.
        T::deserialize(deserializer)
            .map(Self)
            .map_err(|_| D::Error::custom("a secret does not fit"))
    }
}

impl<T: JsonSchema> JsonSchema for Secret<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Secret_{}", T::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("trunkline::Secret<{}>", T::schema_id()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.insert("writeOnly".to_owned(), true.into());
        if schema.get("type").and_then(Value::as_str) == Some("string") {
            schema.insert("format".to_owned(), "password".into());
        }
        schema
    }
}
