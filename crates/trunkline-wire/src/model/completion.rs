//! Completion of arguments.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spelling::null_is_default;
use crate::json::Json;

model! {
    /// The parameters of `completion/complete`.
    pub struct CompleteParams {
        /// What the argument belongs to.
        #[serde(rename = "ref")]
        pub reference: Reference,
        /// The argument and its partial value.
        pub argument: CompletionArgument,
        /// Arguments that already have values.
        #[serde(default, with = "context", skip_serializing_if = "BTreeMap::is_empty")]
        pub context: BTreeMap<String, String>,
    }
}

/// What the argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reference {
    /// A prompt's.
    Prompt { name: String, title: Option<String> },
    /// A resource template's variable.
    Resource { uri: String },
}

model! {
    /// An argument and its partial value.
    #[derive(Eq)]
    pub struct CompletionArgument {
        /// Its name.
        pub name: String,
        /// The partial value.
        pub value: String,
    }

    /// The answer to `completion/complete`.
    #[derive(Default)]
    pub struct CompleteResult {
        /// The suggestions.
        pub completion: Completion,
        /// The `_meta` member.
        pub meta?: Json,
    }

    /// Suggestions, best first.
    #[derive(Default, Eq)]
    pub struct Completion {
        /// At most a hundred.
        pub values: Vec<String>,
        /// How many there are in all.
        pub total?: u64,
        /// Whether there are more.
        pub has_more?: bool,
    }
}

impl CompleteParams {
    /// Completes the partial value of `argument`.
    pub fn new(
        reference: Reference,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let argument = CompletionArgument { name: argument.into(), value: value.into() };
        Self { reference, argument, context: BTreeMap::new() }
    }
}

setters! { CompleteParams = CompleteParams::new(Reference::prompt("book"), "city", "Pa");
    /// Sets the arguments that already have values.
    context(BTreeMap<String, String>) = BTreeMap::from([("country".to_owned(), "FR".to_owned())])
        => r#""context":{"arguments":{"country":"FR"}}"#;
}

impl Reference {
    /// An argument of a prompt.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt { name: name.into(), title: None }
    }

    /// A variable of a resource template.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

impl Completion {
    /// How many suggestions one answer may have.
    pub const MAX: usize = 100;

    /// Suggestions, cut off after a hundred with a note that there are more.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values: Vec<String> = values.into_iter().map(Into::into).collect();
        let all = values.len();
        values.truncate(Self::MAX);
        Self { values, total: Some(all as u64), has_more: Some(all > Self::MAX) }
    }
}

impl CompleteResult {
    /// These suggestions.
    pub fn new(completion: Completion) -> Self {
        Self { completion, meta: None }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct ReferenceOnWire {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = match self.clone() {
            Self::Prompt { name, title } => {
                ReferenceOnWire { kind: "ref/prompt".into(), name: Some(name), title, uri: None }
            }
            Self::Resource { uri } => ReferenceOnWire {
                kind: "ref/resource".into(),
                uri: Some(uri),
                ..ReferenceOnWire::default()
            },
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = ReferenceOnWire::deserialize(deserializer)?;
        match (wire.kind.as_str(), wire.name, wire.uri) {
            ("ref/prompt", Some(name), _) => Ok(Self::Prompt { name, title: wire.title }),
            ("ref/resource", _, Some(uri)) => Ok(Self::Resource { uri }),
            _ => Err(D::Error::custom(
                "`ref` is `ref/prompt` with a `name` or `ref/resource` with a `uri`",
            )),
        }
    }
}

/// On the wire these arguments are inside `context.arguments`.
mod context {
    use super::*;

    #[derive(Default, Deserialize)]
    struct Context {
        #[serde(default, deserialize_with = "null_is_default")]
        arguments: BTreeMap<String, String>,
    }

    pub(super) fn serialize<S: Serializer>(
        arguments: &BTreeMap<String, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("arguments", arguments)])
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        de: D,
    ) -> Result<BTreeMap<String, String>, D::Error> {
        Ok(Option::<Context>::deserialize(de)?.unwrap_or_default().arguments)
    }
}
