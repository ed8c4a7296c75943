//! Rules of trust, without a socket.
//!
//! So far it holds [`seal`]: strings that a peer carries for us and can neither read nor change;
//! and [`digest`]: what proves that bytes are the ones that were promised.

#![forbid(unsafe_code)]

pub mod digest;
pub mod seal;
pub mod tag;
