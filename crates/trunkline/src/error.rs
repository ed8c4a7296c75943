//! What a tool, prompt or resource may fail with.

use std::any::Any;
use std::fmt;

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;

use crate::server::AskError;

/// A failure that the model should read. `?` turns any error into one.
///
/// Like `anyhow::Error` it is not itself a `std::error::Error`, which is what makes `?` work.
#[derive(Debug)]
pub struct ToolError {
    pub(crate) message: String,
    pub(crate) data: Option<Json>,
    /// Set when this is not for the model but a fault of the caller.
    pub(crate) rpc: Option<ErrorObject>,
}

impl ToolError {
    /// A failure in one sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), data: None, rpc: None }
    }

    /// The same failure with structured details.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// A failure that the caller gets as a JSON-RPC error, not the model as a result.
    pub fn rpc(error: ErrorObject) -> Self {
        Self { message: error.message.clone(), data: None, rpc: Some(error) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        // A question that could not be asked is the caller's business in the newest revision.
        if let Some(AskError::Unsupported { refusal: Some(refusal), .. }) =
            (&error as &dyn Any).downcast_ref::<AskError>()
        {
            return Self::rpc(refusal.clone());
        }
        Self::new(error.to_string())
    }
}
