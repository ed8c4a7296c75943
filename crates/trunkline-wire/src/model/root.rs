//! Roots: the folders that a client tells a server about.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// A folder or file, always a `file://` URI. It is information, not access control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// Where it is.
    pub uri: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The `_meta` member.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// The answer to `roots/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// All of them.
    pub roots: Vec<Root>,
}

impl Root {
    /// A root without a name.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None }
    }
}

setters! { Root = Root::new("file:///project");
    /// Sets its name.
    name(String) = "My project" => r#"{"uri":"file:///project","name":"My project"}"#;
}

impl ListRootsResult {
    /// All the roots.
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots }
    }
}
