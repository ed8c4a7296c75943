//! JSON text into a tree, and what the chores ask of it without caring whether it is there.

pub use serde_json::Value as Json;

/// Reads one JSON text.
pub fn parse(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|error| format!("This is no JSON: {error}."))
}

/// The text or the items of a value that may be something else.
pub trait Lenient {
    /// The text of a string; empty for anything else.
    fn str(&self) -> &str;
    /// The items of an array; none for anything else.
    fn items(&self) -> &[Json];
}

impl Lenient for Json {
    fn str(&self) -> &str {
        self.as_str().unwrap_or_default()
    }

    fn items(&self) -> &[Json] {
        self.as_array().map_or(&[], Vec::as_slice)
    }
}
