//! The folders a client lets a server know about.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// A folder or file, always a `file://` URI. Information, not access control.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// let root: Root = Json::parse(r#"{"uri":"file:///a","name":"A"}"#).unwrap().to().unwrap();
/// assert_eq!(root, Root::new("file:///a").name("A"));
/// ```
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
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// let none: ListRootsResult = Json::parse(r#"{"roots":[]}"#).unwrap().to().unwrap();
/// assert_eq!(none, ListRootsResult::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// All of them.
    pub roots: Vec<Root>,
}

impl Root {
    /// A nameless root.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// assert_eq!(Json::of(&Root::new("file:///project")).get(), r#"{"uri":"file:///project"}"#);
    /// ```
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
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// let result = ListRootsResult::new(vec![Root::new("file:///a"), Root::new("file:///b")]);
    /// assert_eq!(Json::of(&result).get(), r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}"#);
    /// ```
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots }
    }
}
