//! The world ⇄ the protocol. Every MCP peer is reached through here.
//!
//! Read [`drive`] first: it is the one loop. [`handler`] is what it calls, [`connection`] is the
//! client's end, and the rest is where the bytes come from.

#![deny(unsafe_code)]

pub mod child;
pub mod clock;
pub mod connection;
pub mod drive;
pub mod handler;
#[cfg(feature = "http")]
pub mod http;
pub mod limits;
pub mod memory;
pub mod stdio;
pub mod voice;

pub use limits::Limits;
