//! Error codes, and what each means.
//!
//! ```
//! use trunkline_wire::{code, jsonrpc::ErrorObject};
//!
//! assert_eq!(ErrorObject::method_not_found("x").code, code::METHOD_NOT_FOUND);
//! // JSON-RPC reserves these numbers.
//! assert!((-32768..=-32000).contains(&code::MISSING_CLIENT_CAPABILITY));
//! ```

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is no message, or no message that is allowed now.
pub const INVALID_REQUEST: i64 = -32600;
/// The revision, or this peer, has no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong: unknown tool, bad cursor, missing `_meta` …
pub const INVALID_PARAMS: i64 = -32602;
/// The answering side failed.
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
