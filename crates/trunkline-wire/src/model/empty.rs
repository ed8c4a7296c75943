//! The result that says only "done".

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// An answer with nothing in it.
///
/// ```
/// # use trunkline_wire::{json::Json, model::*};
/// // Members that nobody knows are ignored.
/// let result: EmptyResult = Json::parse(r#"{"extra":1}"#).unwrap().to().unwrap();
/// assert_eq!(result, EmptyResult::new());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmptyResult {
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

impl EmptyResult {
    /// Nothing at all.
    ///
    /// ```
    /// # use trunkline_wire::{json::Json, model::*};
    /// assert_eq!(Json::of(&EmptyResult::new()).get(), "{}");
    /// ```
    pub fn new() -> Self {
        Self::default()
    }
}
