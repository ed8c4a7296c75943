//! Resources: data that can be read by URI.

use super::{Annotations, Icon, ResourceContents};
use crate::json::Json;

model! {
    /// A resource in a server's list.
    pub struct Resource {
        /// Where it is.
        pub uri: String,
        /// Its name, for programs.
        pub name: String,
        /// Its display name.
        pub title?: String,
        /// What it is.
        pub description?: String,
        /// Its media type.
        pub mime_type?: String,
        /// Its size in bytes.
        pub size?: u64,
        /// Its icons.
        pub icons[]: Icon,
        /// Display hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// A family of resources, described by a template.
    pub struct ResourceTemplate {
        /// The template of their URIs (RFC 6570).
        pub uri_template: String,
        /// The family's name, for programs.
        pub name: String,
        /// Its display name.
        pub title?: String,
        /// What they are.
        pub description?: String,
        /// Their media type, if all have the same.
        pub mime_type?: String,
        /// Their icons.
        pub icons[]: Icon,
        /// Display hints.
        pub annotations?: Annotations,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// The parameters of `resources/read`.
    #[derive(Eq)]
    pub struct ReadResourceParams {
        /// The URI to read.
        pub uri: String,
    }

    /// The answer to `resources/read`.
    #[derive(Default)]
    pub struct ReadResourceResult {
        /// One or several parts.
        pub contents: Vec<ResourceContents>,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// The parameters of `resources/subscribe` and `resources/unsubscribe`.
    #[derive(Eq)]
    pub struct SubscribeParams {
        /// The URI to subscribe to.
        pub uri: String,
    }

    /// The parameters of `notifications/resources/updated`.
    #[derive(Eq)]
    pub struct ResourceUpdatedParams {
        /// The URI that changed: the subscribed resource or a part of it.
        pub uri: String,
    }
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
    /// Sets its display name.
    title(String) = "The trip" => r#""title":"The trip""#;
    /// Sets its description.
    description(String) = "Where we go and when" => r#""description":"Where we go and when""#;
    /// Sets its media type.
    mime_type(String) = "application/json" => r#""mimeType":"application/json""#;
    /// Sets its size in bytes.
    size(u64) = 2048_u64 => r#""size":2048"#;
    /// Sets its icons.
    icons(Vec<Icon>) = [Icon::new("https://example.com/trip.png")]
        => r#""icons":[{"src":"https://example.com/trip.png"}]"#;
    /// Adds display hints.
    annotations(Annotations) = Annotations::new().audience([Role::User])
        => r#""annotations":{"audience":["user"]}"#;
    /// Sets `_meta`.
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
    /// Sets the display name.
    title(String) = "Files" => r#""title":"Files""#;
    /// Sets their description.
    description(String) = "Every file of the project"
        => r#""description":"Every file of the project""#;
    /// Sets their media type.
    mime_type(String) = "text/plain" => r#""mimeType":"text/plain""#;
    /// Sets their icons.
    icons(Vec<Icon>) = [Icon::new("https://example.com/file.png")]
        => r#""icons":[{"src":"https://example.com/file.png"}]"#;
    /// Adds display hints.
    annotations(Annotations) = Annotations::new().priority(0.1)
        => r#""annotations":{"priority":0.1}"#;
    /// Sets `_meta`.
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
    /// Sets `_meta`.
    meta(Json) = Json::empty_object() => r#""_meta":{}"#;
}

impl SubscribeParams {
    /// Subscribes to one URI.
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
