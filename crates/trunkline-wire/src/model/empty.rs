//! The empty result.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// A result without members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyResult {
    /// The `_meta` member.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

impl EmptyResult {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }
}
