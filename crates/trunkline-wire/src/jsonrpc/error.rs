//! The most common errors: a fault → an error object with its code.

use super::ErrorObject;
use crate::code;
use crate::json::Json;

impl ErrorObject {
    /// An internal error with a machine-readable `data.reason`.
    pub fn internal(reason: &str, message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message).with_data(Json::of(&Reason { reason }))
    }

    /// "Method not found", naming the method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("There is no method `{}` here.", clip(method)))
    }

    /// "Invalid params".
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// "Invalid request".
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }
}

#[derive(serde::Serialize)]
struct Reason<'a> {
    reason: &'a str,
}

/// A prefix of a peer's string, so that an error never repeats megabytes.
pub(crate) fn clip(text: &str) -> &str {
    let end = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
    &text[..end]
}
