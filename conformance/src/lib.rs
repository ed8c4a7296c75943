//! The official conformance suite ⇄ our SDK: the server that it asks for, and the client.
//!
//! Everything here is written as a user of the SDK would write it. [`fixtures`] is what
//! `conformance-server` offers, [`scenarios`] is what `conformance-client` does.

#![forbid(unsafe_code)]

mod executed;
pub mod fixtures;
pub mod scenarios;

pub use executed::calls;
