//! The empty result.

use crate::json::Json;

model! {
    /// A result without members.
    #[derive(Default)]
    pub struct EmptyResult {
        /// The `_meta` member.
        pub meta?: Json,
    }
}

impl EmptyResult {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }
}
