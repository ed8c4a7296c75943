//! The result that says only "done".

use crate::json::Json;

model! {
    /// An answer with nothing in it.
    #[derive(Default)]
    pub struct EmptyResult {
        /// Anything else.
        pub meta?: Json,
    }
}

impl EmptyResult {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }
}
