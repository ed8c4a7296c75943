//! Bytes ⇄ messages. Nothing survives from one message to the next.
//!
//! Read [`method::TABLE`] first: it lists everything MCP can say, who says it and in which
//! revisions. Then [`jsonrpc`] for the envelope, [`frame`] for how texts are cut out of a byte
//! stream, [`model`] for the version-free types, and [`era`] for how they look in each revision.
//!
//! ```
//! use trunkline_wire::jsonrpc::{Incoming, Message};
//! use trunkline_wire::method::{self, Sender};
//! use trunkline_wire::model::CallToolParams;
//! use trunkline_wire::revision::Revision;
//!
//! let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
//! let Incoming::One(Message::Request { method, params, .. }) = Incoming::parse(text) else { panic!() };
//! assert!(method::find(&method, Sender::Client, Revision::LATEST).is_some());
//! let call = CallToolParams::from_object(params.into_object().unwrap()).unwrap();
//! assert_eq!(call.name, "add");
//! ```

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
pub mod prometheus;
pub mod revision;
pub mod spares;
pub mod text;
pub mod trace;
