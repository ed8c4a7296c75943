//! A client's way in: discovery, registration, authorization, tokens, and keeping them.

pub mod browser;
pub mod vault;
