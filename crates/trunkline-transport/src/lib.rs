//! Byte streams, processes and HTTP ⇄ the protocol. Every MCP peer is reached through this crate.
//!
//! Read [`drive`] first: it is the one loop. It calls a [`handler`]; [`connection`] is the client's
//! end; the other modules supply the bytes.
//!
//! ```
//! use std::sync::Arc;
//! use trunkline_proto::{client, server};
//! use trunkline_transport::connection::Connection;
//! use trunkline_transport::{drive::Driver, handler::Nobody, memory, Limits};
//! use trunkline_wire::{frame::Framing, model::Implementation};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (near, far) = memory::pair();
//! let config = Arc::new(server::Config::new(Implementation::new("travel", "1.0")));
//! let core = server::Server::new(config);
//! tokio::spawn(Driver::new(core, Arc::new(Nobody), far, None, Limits::default()).run());
//!
//! let config = Arc::new(client::Config::new(Implementation::new("host", "1")));
//! let (nobody, limits) = (Arc::new(Nobody), Limits::default());
//! let opening = Connection::open(config, nobody, near, Framing::Newline, limits);
//! let connection = opening.await.unwrap();
//! assert_eq!(connection.opened().info.as_ref().unwrap().name, "travel");
//! # }
//! ```

#![deny(unsafe_code)]

#[cfg(feature = "auth")]
pub mod auth;
pub mod budget;
pub mod child;
pub mod clock;
pub mod connection;
pub mod conversation_handle;
pub mod drive;
mod driver_core;
pub mod footprint;
pub mod handler;
#[cfg(feature = "http")]
pub mod http;
pub mod limits;
pub mod listeners;
pub mod memory;
pub mod stdio;
pub mod witness;

pub use limits::Limits;
