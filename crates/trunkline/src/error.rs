//! The errors of a tool, prompt or resource: what the model reads, what the client did wrong, and
//! what only the log gets.

use std::error::Error;
use std::fmt::{self, Write};

use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::CallToolResult;

use crate::server::AskError;

/// A failure that the model should read. `?` converts any error: the model reads the error's own
/// text, and its causes go to the log.
///
/// Like `anyhow::Error` it is not itself a `std::error::Error`, which is what makes `?` work.
///
/// ```
/// use trunkline::ToolError;
///
/// async fn length(path: String) -> Result<String, ToolError> {
///     let text = std::fs::read_to_string(&path)?;
///     if text.is_empty() {
///         return Err(ToolError::new("The file is empty. Name another one."));
///     }
///     Ok(format!("{} bytes", text.len()))
/// }
/// ```
#[derive(Debug)]
pub struct ToolError {
    pub(crate) message: String,
    pub(crate) data: Option<Json>,
    /// Set if the client gets it as a protocol error, and the model does not read it.
    pub(crate) rpc: Option<Box<ErrorObject>>,
    /// The text for the log only.
    causes: Option<String>,
}

impl ToolError {
    /// A failure in one sentence.
    ///
    /// ```
    /// let error = trunkline::ToolError::new("The file is empty. Name another one.");
    /// assert_eq!(error.to_string(), "The file is empty. Name another one.");
    /// ```
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), data: None, rpc: None, causes: None }
    }

    /// The same failure with structured details.
    ///
    /// ```
    /// # use trunkline::{Client, Server, ToolError, serde_json::json, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let full = async || -> Result<(), ToolError> {
    ///     Err(ToolError::new("There is no room.").with_data(json!({ "free": 0 })))
    /// };
    /// # let client = Client::in_memory(&Server::builder("a", "1").tool(tool("full", full)).build()).await?;
    /// let result = client.call_tool("full", ()).await?;
    /// assert_eq!(result.structured_content.unwrap().get(), r#"{"free":0}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// A failure that the client gets as a JSON-RPC error instead of a result for the model.
    ///
    /// ```
    /// # use trunkline::{Client, ErrorObject, Server, ToolError, client::CallError, tool};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let never = async || -> Result<(), ToolError> {
    ///     Err(ToolError::rpc(ErrorObject::invalid_request("Not on Sundays.")))
    /// };
    /// # let client = Client::in_memory(&Server::builder("a", "1").tool(tool("never", never)).build()).await?;
    /// assert!(matches!(client.call_tool("never", ()).await, Err(CallError::Peer(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn rpc(error: ErrorObject) -> Self {
        Self { rpc: Some(Box::new(error.clone())), ..Self::new(error.message) }
    }

    /// An internal failure: the log has the error and its causes, and the model learns only that
    /// something went wrong.
    ///
    /// ```
    /// use trunkline::ToolError;
    ///
    /// let error = ToolError::internal(std::io::Error::other("db-7 is down"));
    /// assert!(!error.to_string().contains("db-7"));
    /// assert_eq!(error.causes(), Some("db-7 is down"));
    /// ```
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let message = "Something went wrong inside the server. It has been logged.";
        Self { causes: Some(chain(Some(&*error.into()))), ..Self::new(message) }
    }

    /// What only the log gets: the causes of the error, nearest first.
    ///
    /// ```
    /// use trunkline::ToolError;
    ///
    /// let error = ToolError::internal(std::io::Error::other("db:5432 is down"));
    /// assert_eq!(error.causes(), Some("db:5432 is down"));
    /// ```
    pub fn causes(&self) -> Option<&str> {
        self.causes.as_deref()
    }

    /// The answer of a tool.
    pub(crate) fn into_tool_result(self) -> Result<CallToolResult, ErrorObject> {
        self.log();
        match self.rpc {
            Some(error) => Err(*error),
            None => {
                let mut result = CallToolResult::error(self.message);
                result.structured_content = self.data;
                Ok(result)
            }
        }
    }

    /// The answer of a prompt or resource, which has no failed result.
    pub(crate) fn into_rpc(self) -> ErrorObject {
        self.log();
        self.rpc.map(|it| *it).unwrap_or_else(|| {
            let object = ErrorObject::new(code::INTERNAL_ERROR, self.message);
            match self.data {
                Some(data) => object.with_data(data),
                None => object,
            }
        })
    }

    fn log(&self) {
        let told = &*self.message;
        match self.causes() {
            Some(causes) => tracing::warn!(told, causes, "a handler failed"),
            None => tracing::debug!(told, "a handler failed"),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// `?` takes whatever can be boxed as an error: errors of libraries, `anyhow::Error`, boxed errors,
/// strings.
///
/// ```
/// use trunkline::ToolError;
///
/// fn read() -> anyhow::Result<u32> {
///     anyhow::bail!("The file is empty.")
/// }
///
/// fn tool(text: &str) -> Result<u32, ToolError> {
///     if text.is_empty() {
///         Err("Say something.")?;
///     }
///     Ok(read()?)
/// }
///
/// assert_eq!(tool("").unwrap_err().to_string(), "Say something.");
/// assert_eq!(tool("x").unwrap_err().to_string(), "The file is empty.");
/// ```
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error = error.into();
        // In 2026-07-28 a question that cannot be asked is a protocol error for the client.
        if let Some(AskError::Unsupported { refusal: Some(refusal), .. }) =
            error.downcast_ref::<AskError>()
        {
            return Self::rpc(refusal.clone());
        }
        let causes = error.source().map(|it| chain(Some(it)));
        Self { causes, ..Self::new(error.to_string()) }
    }
}

/// An error and what caused it, in one line.
fn chain(mut error: Option<&dyn Error>) -> String {
    let mut text = String::new();
    while let Some(it) = error {
        let between = if text.is_empty() { "" } else { ": " };
        let _ = write!(text, "{between}{it}");
        // An endless chain is cut.
        error = it.source().filter(|_| text.len() < LONGEST);
    }
    text
}

const LONGEST: usize = 4096;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("The rooms cannot be counted.")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_go_to_the_log_and_not_to_the_model() {
        let error = ToolError::from(Outer(io::Error::other("password of the database is wrong")));
        assert_eq!(error.causes(), Some("password of the database is wrong"));
        let result = error.into_tool_result().unwrap();
        let text = result.content[0].as_text().unwrap();
        assert_eq!(text, "The rooms cannot be counted.");
    }

    #[test]
    fn what_is_internal_shows_nothing() {
        let error = ToolError::internal(Outer(io::Error::other("db:5432 is down")));
        assert_eq!(error.causes(), Some("The rooms cannot be counted.: db:5432 is down"));
        let shown = error.into_rpc();
        assert!(!format!("{shown:?}").contains("5432") && !shown.message.contains("rooms"));
    }
}
