//! The folders a client lets a server know about.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// A folder or file, always a `file://` URI. Information, not access control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// Where it is.
    pub uri: String,
    /// What to call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Anything else.
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
    /// A nameless root.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: None, meta: None }
    }
}

setters! { Root = Root::new("file:///project");
    /// Gives it a name.
    name(String) = "My project" => r#"{"uri":"file:///project","name":"My project"}"#;
}

impl ListRootsResult {
    /// All the roots.
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots }
    }
}
