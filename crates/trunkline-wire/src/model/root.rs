//! Roots: the folders that a client tells a server about.

use crate::json::Json;

model! {
    /// A folder or file, always a `file://` URI. It is information, not access control.
    pub struct Root {
        /// Where it is.
        pub uri: String,
        /// Its display name.
        pub name?: String,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// The answer to `roots/list`.
    #[derive(Default)]
    pub struct ListRootsResult {
        /// All of them.
        pub roots: Vec<Root>,
    }
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
