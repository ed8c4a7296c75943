//! How the two sides introduce themselves, in either era.

use super::{ClientCapabilities, Implementation, ServerCapabilities};
use crate::json::Json;

model! {
    /// The parameters of `initialize`.
    pub struct InitializeParams {
        /// The revision the client would like, as text since it may be one we do not know.
        pub protocol_version: String,
        /// What the client can do.
        pub capabilities: ClientCapabilities,
        /// Who the client is.
        pub client_info: Implementation,
    }

    /// The answer to `initialize`.
    pub struct InitializeResult {
        /// The revision that will be spoken.
        pub protocol_version: String,
        /// What the server can do.
        pub capabilities: ServerCapabilities,
        /// Who the server is.
        pub server_info: Implementation,
        /// How to use the server, for the model.
        pub instructions?: String,
        /// Anything else.
        pub meta?: Json,
    }

    /// The answer to `server/discover`. Who the server is stands in `_meta`.
    pub struct DiscoverResult {
        /// The revisions that requests may name.
        pub supported_versions: Vec<String>,
        /// What the server can do.
        pub capabilities: ServerCapabilities,
        /// How to use the server, for the model.
        pub instructions?: String,
        /// Anything else.
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
    /// Says how to use the server.
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
    /// Says how to use the server.
    instructions(String) = "Ask for the city first."
        => r#""instructions":"Ask for the city first.""#;
}
