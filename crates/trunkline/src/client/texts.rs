//! The arguments of a prompt → strings by name, the only form that prompts take.

use std::collections::BTreeMap;

use serde_json::Value;

/// The arguments of a prompt: pairs of strings, or an object of `json!`. The compiler infers the
/// marker, which keeps the two apart.
///
/// ```
/// use trunkline::client::IntoTexts;
/// use trunkline::serde_json::json;
///
/// let texts = json!({ "city": "Oslo", "nights": 2, "note": null }).into_texts().unwrap();
/// assert_eq!(texts, [("city", "Oslo"), ("nights", "2")].into_texts().unwrap());
/// assert!(json!(["Oslo"]).into_texts().is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a prompt",
    note = "give pairs of texts, `[(\"city\", \"Oslo\")]`, or an object, `json!({{ \"city\": \"Oslo\" }})`"
)]
pub trait IntoTexts<Marker = ()> {
    /// The strings by name, or why there are none.
    ///
    /// ```
    /// use trunkline::client::IntoTexts;
    ///
    /// assert_eq!([("city", "Oslo")].into_texts().unwrap()["city"], "Oslo");
    /// ```
    fn into_texts(self) -> Result<BTreeMap<String, String>, String>;
}

impl IntoTexts for Value {
    fn into_texts(self) -> Result<BTreeMap<String, String>, String> {
        let members = match self {
            Self::Null => serde_json::Map::new(),
            Self::Object(members) => members,
            _ => return Err("The arguments of a prompt must be an object.".to_owned()),
        };
        let given = members.into_iter().filter(|(_, value)| !value.is_null());
        Ok(given
            .map(|(name, value)| match value {
                Self::String(text) => (name, text),
                other => (name, other.to_string()),
            })
            .collect())
    }
}

impl<I, K: Into<String>, V: Into<String>> IntoTexts<(K, V)> for I
where
    I: IntoIterator<Item = (K, V)>,
{
    fn into_texts(self) -> Result<BTreeMap<String, String>, String> {
        Ok(self.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
