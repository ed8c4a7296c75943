//! Conversations with the authorization server, as texts.

mod assertions;
mod authorize;
mod code;
mod consent;
mod documents;
mod dpop;
mod endpoints;
mod inspect;
mod machines;
mod refresh;
mod register;
#[cfg(feature = "serve")]
mod serve;
mod transcript;
