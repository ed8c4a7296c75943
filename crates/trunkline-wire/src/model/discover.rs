//! The handshake of either era.

use super::{ClientCapabilities, Implementation, ServerCapabilities};
use crate::json::Json;

model! {
    /// The parameters of `initialize`.
    pub struct InitializeParams {
        /// The revision the client prefers, as text because it may be unknown.
        pub protocol_version: String,
        /// The client's capabilities.
        pub capabilities: ClientCapabilities,
        /// The client's name and version.
        pub client_info: Implementation,
    }

    /// The answer to `initialize`.
    pub struct InitializeResult {
        /// The negotiated revision.
        pub protocol_version: String,
        /// The server's capabilities.
        pub capabilities: ServerCapabilities,
        /// The server's name and version.
        pub server_info: Implementation,
        /// Instructions for the model.
        pub instructions?: String,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// The answer to `server/discover`. The server's name and version are in `_meta`.
    pub struct DiscoverResult {
        /// The revisions that requests may use.
        pub supported_versions: Vec<String>,
        /// The server's capabilities.
        pub capabilities: ServerCapabilities,
        /// Instructions for the model.
        pub instructions?: String,
        /// The `_meta` member.
        pub meta?: Json,
    }
}

impl InitializeParams {
    /// Opens a session.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self { protocol_version: protocol_version.into(), capabilities, client_info }
    }
}

impl InitializeResult {
    /// Accepts a session.
    pub fn new(
        protocol_version: impl Into<String>,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        let protocol_version = protocol_version.into();
        Self { protocol_version, capabilities, server_info, instructions: None, meta: None }
    }
}

setters! { InitializeResult = InitializeResult::new("2025-11-25", Default::default(), Implementation::new("a", "1"));
    /// Sets the instructions for the model.
    instructions(String) = "Ask for the city first."
        => r#""instructions":"Ask for the city first.""#;
}

impl DiscoverResult {
    /// Describes a server.
    pub fn new(supported_versions: Vec<String>, capabilities: ServerCapabilities) -> Self {
        Self { supported_versions, capabilities, instructions: None, meta: None }
    }
}

setters! { DiscoverResult = DiscoverResult::new(vec!["2026-07-28".to_owned()], Default::default());
    /// Sets the instructions for the model.
    instructions(String) = "Ask for the city first."
        => r#""instructions":"Ask for the city first.""#;
}
