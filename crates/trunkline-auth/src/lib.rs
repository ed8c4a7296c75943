//! Rules of trust, without a socket.
//!
//! So far it holds [`seal`]: strings that a peer carries for us and can neither read nor change.

#![forbid(unsafe_code)]

pub mod seal;
