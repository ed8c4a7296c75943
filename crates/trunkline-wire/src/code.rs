//! Error codes, and what each means.
//!
//! ```
//! use trunkline_wire::{code, jsonrpc::ErrorObject};
//!
//! assert_eq!(ErrorObject::method_not_found("x").code, code::METHOD_NOT_FOUND);
//! // JSON-RPC reserves these numbers.
//! assert!((-32768..=-32000).contains(&code::MISSING_CLIENT_CAPABILITY));
//! ```

use crate::json::Json;
use crate::jsonrpc::ErrorObject;
use crate::revision::Revision;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is no message, or no message that may come now.
pub const INVALID_REQUEST: i64 = -32600;
/// The revision, or this peer, has no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong: unknown tool, bad cursor, missing `_meta` …
pub const INVALID_PARAMS: i64 = -32602;
/// Something broke on the answering side.
pub const INTERNAL_ERROR: i64 = -32603;
/// Up to 2025-11-25: no such resource. Later revisions use [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// 2025-11-25 only: the user must visit a URL first.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// Up to 2025-11-25: the user refused to let the model be sampled.
pub const USER_REJECTED: i64 = -1;
/// From 2026-07-28: an HTTP header and the body disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// From 2026-07-28: the request did not declare a capability that its answer needs.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// From 2026-07-28: the request names a revision that the server does not speak.
pub const UNSUPPORTED_REVISION: i64 = -32022;

impl ErrorObject {
    /// An error of ours that says in `data.reason` what kind of trouble it was.
    pub fn internal(reason: &str, message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message).with_data(Json::of(&Reason { reason }))
    }

    /// "Method not found", naming the method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("There is no method `{}` here.", clip(method)))
    }

    /// "Invalid params".
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// "Invalid request".
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// The resource does not exist, in the words of `revision`.
    pub fn resource_not_found(uri: &str, revision: Revision) -> Self {
        #[derive(serde::Serialize)]
        struct Data<'a> {
            uri: &'a str,
        }
        let code = revision.profile().resource_missing;
        Self::new(code, format!("There is no resource `{}`.", clip(uri)))
            .with_data(Json::of(&Data { uri }))
    }
}

#[derive(serde::Serialize)]
struct Reason<'a> {
    reason: &'a str,
}

/// The beginning of a peer's string, so that an error never repeats megabytes.
fn clip(text: &str) -> &str {
    let end = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
    &text[..end]
}
