//! What trunkline's own tests share.
//!
//! [`transcript`] reads a conversation written as text, [`oracle`] says whether a message is one
//! that its revision's JSON Schema allows, [`corpus`] has an example of each, [`rewrite`] sends them through the
//! codec, [`fault`] runs a server that misbehaves on purpose, [`fake`] one
//! that writes down what happens to it, [`redis`] Debian's servers,
//! `peer` (a feature) is a client that follows a script, and `http` (another) one that knows HTTP.

#![forbid(unsafe_code)]

pub mod corpus;
mod dice;
pub mod fake;
pub mod fault;
mod folder;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "oracle")]
pub mod oracle;
#[cfg(feature = "peer")]
pub mod peer;
pub mod ports;
pub mod process;
pub mod redis;
pub mod rewrite;
pub mod transcript;

pub use dice::Dice;
pub use folder::Folder;

/// The beginning of a gateway's plugin in Python, which defines `reader` and `say`.
pub const PLUGIN: &str = include_str!("plugin.py");

/// How often a stress test repeats itself: `usual` times, or `soaking` times under
/// `cargo xtask soak`.
pub fn repeats(usual: usize, soaking: usize) -> usize {
    if std::env::var_os("TRUNKLINE_SOAK").is_some() { soaking } else { usual }
}
