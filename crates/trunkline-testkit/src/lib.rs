//! What trunkline's own tests share.
//!
//! [`transcript`] reads a conversation written as text, [`oracle`] says whether a message is one
//! that its revision's JSON Schema allows, [`fault`] runs a server that misbehaves on purpose.

#![forbid(unsafe_code)]

pub mod fault;
pub mod oracle;
pub mod transcript;
