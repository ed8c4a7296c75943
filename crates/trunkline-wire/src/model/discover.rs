//! How the two sides introduce themselves, in either era.

use serde::{Deserialize, Serialize};

use super::{ClientCapabilities, Implementation, ServerCapabilities};
use crate::json::Json;

/// The parameters of `initialize`.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// let text = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},
///     "clientInfo":{"name":"desk","version":"1"}}"#;
/// let params: InitializeParams = Json::parse(text).unwrap().to().unwrap();
/// assert_eq!(params.client_info.name, "desk");
/// assert!(params.capabilities.roots.is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The revision the client would like, as text since it may be one we do not know.
    pub protocol_version: String,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// Who the client is.
    pub client_info: Implementation,
}

/// The answer to `initialize`.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// let server = Implementation::new("travel", "1.0");
/// let result = InitializeResult::new("2025-11-25", ServerCapabilities::new(), server);
/// assert!(Json::of(&result).get().contains(r#""serverInfo":{"name":"travel","version":"1.0"}"#));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The revision that will be spoken.
    pub protocol_version: String,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// Who the server is.
    pub server_info: Implementation,
    /// How to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// The answer to `server/discover`. Who the server is stands in `_meta`.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// let text = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;
/// let result: DiscoverResult = Json::parse(text).unwrap().to().unwrap();
/// assert_eq!(result.supported_versions, ["2026-07-28"]);
/// assert!(result.capabilities.tools.is_some() && result.capabilities.prompts.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions that requests may name.
    pub supported_versions: Vec<String>,
    /// What the server can do.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

impl InitializeParams {
    /// Opens a session.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// let me = Implementation::new("desk", "1");
    /// let params = InitializeParams::new("2025-06-18", ClientCapabilities::new(), me);
    /// assert!(Json::of(&params).get().starts_with(r#"{"protocolVersion":"2025-06-18""#));
    /// ```
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
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// let me = Implementation::new("travel", "1.0");
    /// let result = InitializeResult::new("2024-11-05", ServerCapabilities::new(), me);
    /// assert_eq!((&*result.protocol_version, result.instructions), ("2024-11-05", None));
    /// ```
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
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// let result = DiscoverResult::new(vec!["2026-07-28".to_owned()], ServerCapabilities::new());
    /// let json = r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    /// assert_eq!(Json::of(&result).get(), json);
    /// ```
    pub fn new(supported_versions: Vec<String>, capabilities: ServerCapabilities) -> Self {
        Self { supported_versions, capabilities, instructions: None, meta: None }
    }
}

setters! { DiscoverResult = DiscoverResult::new(vec!["2026-07-28".to_owned()], Default::default());
    /// Says how to use the server.
    instructions(String) = "Ask for the city first."
        => r#""instructions":"Ask for the city first.""#;
}
