//! The result that says only "done".

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// An answer with nothing in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyResult {
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

impl EmptyResult {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }
}
