//! Streamable HTTP and the old HTTP+SSE ⇄ the protocol.

pub mod client;
