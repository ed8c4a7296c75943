//! Turns a server's lists into definitions with a name and a digest, to compare with pins.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_auth::digest::sha256;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

use crate::merge::{Kind, Lists};
use crate::policy::{canonical, hidden};

/// The kinds of definitions that are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// A tool, by its name.
    Tool,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its URI.
    Resource,
    /// A resource template, by its URI template.
    Template,
    /// The server's instructions. There is one, without a name.
    Instructions,
}

impl Part {
    /// The word in files, requests and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
        }
    }

    /// The list it belongs to; `None` for instructions.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::Tool => Some(Kind::Tools),
            Self::Prompt => Some(Kind::Prompts),
            Self::Resource => Some(Kind::Resources),
            Self::Template => Some(Kind::Templates),
            Self::Instructions => None,
        }
    }

    /// The members that count: what a model or a person reads. The state of a resource (its size, when it
    /// changed) does not.
    fn counted(self) -> &'static [&'static str] {
        match self {
            Self::Tool => {
                &["name", "title", "description", "inputSchema", "outputSchema", "annotations"]
            }
            Self::Prompt => &["name", "title", "description", "arguments"],
            Self::Resource => &["uri", "name", "title", "description", "mimeType"],
            Self::Template => &["uriTemplate", "name", "title", "description", "mimeType"],
            Self::Instructions => &["instructions"],
        }
    }
}

/// One definition of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offered {
    /// Its kind.
    pub part: Part,
    /// Its own name, URI or template.
    pub name: String,
    /// The digest of the definition.
    pub digest: String,
    /// The canonical form of the members that count.
    pub definition: Arc<str>,
    /// An invisible character in it.
    pub hidden: Option<char>,
}

impl Offered {
    /// A definition as the server sent it. Members that no model reads (icons, `_meta`) do not count; `null`
    /// counts as absent.
    pub fn new(part: Part, name: impl Into<String>, definition: &Json) -> Self {
        let mut whole = Object::parse(definition.get()).unwrap_or_default();
        let mut counted = Object::default();
        for name in part.counted() {
            if let Some(value) = whole.take(name).filter(|it| !it.is_null()) {
                counted.set(*name, value);
            }
        }
        let definition = canonical::canonical(&counted.to_json());
        let digest = sha256(definition.as_bytes());
        let hidden = hidden_in(&definition);
        Self { part, name: name.into(), digest, definition: definition.into(), hidden }
    }

    /// All definitions in lists, including the instructions.
    pub fn all(lists: &Lists) -> Vec<Self> {
        let mut all: Vec<_> = Kind::ALL.into_iter().flat_map(|it| Self::of(lists, it)).collect();
        all.extend(lists.instructions.as_deref().map(Self::instructions));
        all
    }

    /// The definitions of one list.
    pub fn of(lists: &Lists, kind: Kind) -> Vec<Self> {
        match kind {
            Kind::Tools => {
                each(Part::Tool, lists.tools.iter().map(|it| (&it.name, Json::of(&**it))))
            }
            Kind::Prompts => {
                each(Part::Prompt, lists.prompts.iter().map(|it| (&it.name, Json::of(&**it))))
            }
            Kind::Resources => {
                each(Part::Resource, lists.resources.iter().map(|it| (&it.uri, Json::of(&**it))))
            }
            Kind::Templates => {
                let all = lists.templates.iter();
                each(Part::Template, all.map(|it| (&it.uri_template, Json::of(&**it))))
            }
        }
    }

    /// The instructions of a server.
    pub fn instructions(text: &str) -> Self {
        let mut definition = Object::default();
        definition.set("instructions", Json::string(text));
        Self::new(Part::Instructions, "", &definition.to_json())
    }
}

fn each<'a>(part: Part, all: impl Iterator<Item = (&'a String, Json)>) -> Vec<Offered> {
    all.map(|(name, definition)| Offered::new(part, name.as_str(), &definition)).collect()
}

/// An invisible character in a definition. Member names count like texts.
fn hidden_in(definition: &str) -> Option<char> {
    // Canonical JSON has none outside strings, and in them control characters are escaped, except DEL.
    if definition.is_ascii() && !definition.contains(['\\', '\x7f']) {
        return None;
    }
    let value: serde_json::Value = match serde_json::from_str(definition) {
        Ok(value) => value,
        // A lone surrogate, which no parser shows.
        Err(_) => return Some(char::REPLACEMENT_CHARACTER),
    };
    let mut left = vec![&value];
    while let Some(value) = left.pop() {
        let found = match value {
            serde_json::Value::String(text) => hidden::find(text),
            serde_json::Value::Array(all) => {
                left.extend(all);
                None
            }
            serde_json::Value::Object(all) => {
                left.extend(all.values());
                all.keys().find_map(|it| hidden::find(it))
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
