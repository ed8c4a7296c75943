//! The targets, each with its properties.

#[cfg(feature = "servers")]
pub(crate) mod admin;
#[cfg(feature = "servers")]
pub(crate) mod catalog;
pub(crate) mod challenge;
pub(crate) mod classify;
pub(crate) mod codec;
pub(crate) mod conversation;
#[cfg(feature = "servers")]
pub(crate) mod http;
pub(crate) mod jose;
pub(crate) mod jsonrpc;
#[cfg(feature = "servers")]
pub(crate) mod request;
#[cfg(feature = "servers")]
pub(crate) mod response;
pub(crate) mod seal;
pub(crate) mod sse;
pub(crate) mod template;
#[cfg(feature = "servers")]
pub(crate) mod uri;
