//! Things that can be read by URI.

use serde::{Deserialize, Serialize};

use super::spelling::null_is_default;
use super::{Annotations, Icon, ResourceContents};
use crate::json::Json;

/// A resource in a server's list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How to draw it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// Hints for who shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// A family of resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// Their URIs, as RFC 6570 writes them.
    pub uri_template: String,
    /// The family's name, for programs.
    pub name: String,
    /// The family's name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their type, if all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How to draw them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub icons: Vec<Icon>,
    /// Hints for who shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// The parameters of `resources/read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// What to read.
    pub uri: String,
}

/// The answer to `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// One or several parts.
    pub contents: Vec<ResourceContents>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// The parameters of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscribeParams {
    /// What to watch.
    pub uri: String,
}

/// The parameters of `notifications/resources/updated`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// What changed: the watched resource or a part of it.
    pub uri: String,
}

impl Resource {
    /// A resource at a URI.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            icons: Vec::new(),
            annotations: None,
            meta: None,
        }
    }
}

setters! { Resource = Resource::new("file:///trip.json", "trip");
    /// Names it for people.
    title(String) = "The trip" => r#""title":"The trip""#;
    /// Says what it is.
    description(String) = "Where we go and when" => r#""description":"Where we go and when""#;
    /// Says its type.
    mime_type(String) = "application/json" => r#""mimeType":"application/json""#;
    /// Says its size in bytes.
    size(u64) = 2048_u64 => r#""size":2048"#;
    /// Says how to draw it.
    icons(Vec<Icon>) = [Icon::new("https://example.com/trip.png")]
        => r#""icons":[{"src":"https://example.com/trip.png"}]"#;
    /// Adds hints for who shows it.
    annotations(Annotations) = Annotations::new().audience([Role::User])
        => r#""annotations":{"audience":["user"]}"#;
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl ResourceTemplate {
    /// A family of resources.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            icons: Vec::new(),
            annotations: None,
            meta: None,
        }
    }
}

setters! { ResourceTemplate = ResourceTemplate::new("file:///{path}", "files");
    /// Names the family for people.
    title(String) = "Files" => r#""title":"Files""#;
    /// Says what they are.
    description(String) = "Every file of the project"
        => r#""description":"Every file of the project""#;
    /// Says their type.
    mime_type(String) = "text/plain" => r#""mimeType":"text/plain""#;
    /// Says how to draw them.
    icons(Vec<Icon>) = [Icon::new("https://example.com/file.png")]
        => r#""icons":[{"src":"https://example.com/file.png"}]"#;
    /// Adds hints for who shows them.
    annotations(Annotations) = Annotations::new().priority(0.1)
        => r#""annotations":{"priority":0.1}"#;
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl ReadResourceParams {
    /// Reads one URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

impl ReadResourceResult {
    /// One or several parts.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, meta: None }
    }
}

setters! { ReadResourceResult = ReadResourceResult::new(vec![ResourceContents::text("file:///a", "A")]);
    /// Adds anything else.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl SubscribeParams {
    /// Watches one URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

impl ResourceUpdatedParams {
    /// One URI changed.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}
