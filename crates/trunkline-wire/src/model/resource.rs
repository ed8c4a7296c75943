//! Things that can be read by URI.

use super::{Annotations, Icon, ResourceContents};
use crate::json::Json;

model! {
    /// A resource in a server's list.
    pub struct Resource {
        /// Where it is.
        pub uri: String,
        /// Its name, for programs.
        pub name: String,
        /// Its name, for people.
        pub title?: String,
        /// What it is.
        pub description?: String,
        /// Its type.
        pub mime_type?: String,
        /// Its size in bytes.
        pub size?: u64,
        /// How to draw it.
        pub icons[]: Icon,
        /// Hints for who shows it.
        pub annotations?: Annotations,
        /// Anything else.
        pub meta?: Json,
    }

    /// A family of resources.
    pub struct ResourceTemplate {
        /// Their URIs, as RFC 6570 writes them.
        pub uri_template: String,
        /// The family's name, for programs.
        pub name: String,
        /// The family's name, for people.
        pub title?: String,
        /// What they are.
        pub description?: String,
        /// Their type, if all have the same.
        pub mime_type?: String,
        /// How to draw them.
        pub icons[]: Icon,
        /// Hints for who shows them.
        pub annotations?: Annotations,
        /// Anything else.
        pub meta?: Json,
    }

    /// The parameters of `resources/read`.
    #[derive(Eq)]
    pub struct ReadResourceParams {
        /// What to read.
        pub uri: String,
    }

    /// The answer to `resources/read`.
    #[derive(Default)]
    pub struct ReadResourceResult {
        /// One or several parts.
        pub contents: Vec<ResourceContents>,
        /// Anything else.
        pub meta?: Json,
    }

    /// The parameters of `resources/subscribe` and `resources/unsubscribe`.
    #[derive(Eq)]
    pub struct SubscribeParams {
        /// What to watch.
        pub uri: String,
    }

    /// The parameters of `notifications/resources/updated`.
    #[derive(Eq)]
    pub struct ResourceUpdatedParams {
        /// What changed: the watched resource or a part of it.
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
