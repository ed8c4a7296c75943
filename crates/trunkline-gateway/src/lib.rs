//! Many servers behind one door. Itself a handler like any tool.
//!
//! Where to read first: `gate.rs`, the walk of a call from top to bottom.

#![forbid(unsafe_code)]

pub mod catalog;
pub mod failure;
