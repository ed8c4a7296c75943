//! The folders a client lets a server know about.

use crate::json::Json;

model! {
    /// A folder or file, always a `file://` URI. Information, not access control.
    pub struct Root {
        /// Where it is.
        pub uri: String,
        /// What to call it.
        pub name?: String,
        /// Anything else.
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
