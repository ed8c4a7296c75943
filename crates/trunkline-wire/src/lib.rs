//! Bytes ⇄ messages. Nothing survives from one message to the next.
//!
//! Read [`method::TABLE`] first: it lists everything MCP can say, who says it and in which
//! revisions. Then [`jsonrpc`] for the envelope, [`frame`] for how texts are cut out of a byte
//! stream, [`model`] for the version-free types, and [`era`] for how they look in each revision.

#![forbid(unsafe_code)]

pub mod code;
pub mod dialect;
pub mod era;
pub mod ext;
pub mod frame;
pub mod header;
pub mod json;
pub mod jsonrpc;
pub mod method;
pub mod model;
pub mod revision;
pub mod text;
