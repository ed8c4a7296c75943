//! Recordings of MCP conversations: what was said → lines, and lines → what differs, what to send and what to answer.
//!
//! A recording is a file of JSON lines ([`line`]). A [`recorder::Recorder`] turns the bytes between a client and a
//! server into such lines, without secrets ([`redact`]). A [`recording::Recording`] is such a file, read. [`compare`]
//! says what differs between two; [`as_client::ClientPlayer`] says again what the client said, and
//! [`as_server::ServerPlayer`] answers as the server did. Nothing here opens a file, a socket or a clock.
//!
//! ```
//! use trunkline_recording::compare::{Ignore, compare};
//! use trunkline_recording::recording::Recording;
//!
//! let recorded = |sum| {
//!     Recording::read(&format!(
//!         r#"{{"v":1,"t":1,"side":"client","dir":"in","message":{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"sum"}}}}}}
//!         {{"v":1,"t":2,"side":"client","dir":"out","message":{{"jsonrpc":"2.0","id":1,"result":{{"sum":{sum}}}}}}}"#
//!     ))
//!     .unwrap()
//! };
//! let found = compare(&recorded(3), &recorded(4), &Ignore::default());
//! assert_eq!(found.differences[0].path, "/result/sum");
//! ```

#![forbid(unsafe_code)]

pub mod as_client;
pub mod as_server;
pub mod calls;
pub mod compare;
pub mod line;
pub mod lines;
mod mapping;
pub mod normal;
pub mod recorder;
pub mod recording;
pub mod redact;
mod schema;
pub mod tree;
