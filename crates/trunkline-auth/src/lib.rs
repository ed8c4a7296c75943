//! Rules of trust, without a socket.
//!
//! So far it holds [`seal`]: strings that a peer carries for us and can neither read nor change;
//! [`digest`]: what proves that bytes are the ones that were promised; and [`Principal`]: who was let
//! in.

#![forbid(unsafe_code)]

pub mod digest;
mod principal;
pub mod seal;
pub mod tag;

pub use principal::Principal;
