//! The definitions of tools → which of them are held back because they are not what they were.
//!
//! A definition is known by its digest: name, title, description, both schemas and annotations.
//! What is seen for the first time is trusted and pinned, also a tool that a known server gets
//! later: it cannot pass for one that somebody has approved of. What differs from its pin is held
//! back, neither listed nor callable, until somebody approves; when the definition is again what it
//! was, the tool is back. Pins belong to a key that whoever asks chooses for a server. By its name a
//! server stays pinned when it is run in another way; by its fingerprint it begins anew.

mod file;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

use super::{canonical, plain};
use crate::failure::{Failure, Stage};

pub use file::{PinFault, PinFile};

/// The digest of a tool's definition, as the server sent it. Members that no model reads (icons,
/// `_meta`) do not count; one that is `null` is as good as absent.
pub fn fingerprint(definition: &Json) -> String {
    let mut whole = Object::parse(definition.get()).unwrap_or_default();
    let mut counted = Object::default();
    for name in COUNTED {
        if let Some(value) = whole.take(name).filter(|it| !it.is_null()) {
            counted.set(name, value);
        }
    }
    canonical::digest(&counted.to_json())
}

/// What a caller is told who calls a tool that is held back.
pub fn held_back(server: &str, tool: &str) -> Failure {
    let tool = plain(tool, 128);
    let message = format!(
        "The definition of `{tool}` of `{server}` has changed since it was pinned, and is held back."
    );
    let advice = format!(
        "Look at what it says now; if that is meant, approve it: `trunkline approve {server} {tool}`."
    );
    Failure::new("held_back", Stage::Policy, message).of(server).advice(advice)
}

/// What was seen of each server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    /// Tool → digest, by the key of the server.
    servers: BTreeMap<String, BTreeMap<String, String>>,
}

/// A tool that is held back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Held {
    /// Its own name.
    pub tool: String,
    /// The digest that was pinned.
    pub pinned: String,
    /// The digest of what the server says now.
    pub seen: String,
}

/// Which tools to approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are held back.
    All,
    /// These.
    Tools(Vec<String>),
}

/// What one look at the list of a server found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sifted {
    /// What to hold back.
    pub held: Vec<Held>,
    /// What was pinned.
    pub pinned: BTreeMap<String, String>,
}

impl Pins {
    /// Compares all tools of a server, `(name, digest)`, with what is pinned. Changes nothing.
    /// A name that stands for several definitions is held back unless all of them are the pinned one.
    pub fn sift<'a>(
        &self,
        server: &str,
        tools: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Sifted {
        let known = self.servers.get(server);
        let mut sifted = Sifted::default();
        let mut held = BTreeMap::new();
        for (tool, seen) in tools {
            let pinned = known.and_then(|it| it.get(tool)).or_else(|| sifted.pinned.get(tool));
            match pinned {
                None => drop(sifted.pinned.insert(tool.to_owned(), seen.to_owned())),
                Some(pinned) if pinned == seen => {}
                Some(pinned) => {
                    let (tool, pinned, seen) = (tool.to_owned(), pinned.clone(), seen.to_owned());
                    held.insert(tool.clone(), Held { tool, pinned, seen });
                }
            }
        }
        sifted.held = held.into_values().collect();
        sifted
    }

    /// Pins definitions, over those that were pinned.
    pub fn pin(&mut self, server: &str, tools: &BTreeMap<String, String>) {
        if !tools.is_empty() {
            let known = self.servers.entry(server.to_owned()).or_default();
            known.extend(tools.iter().map(|(tool, digest)| (tool.clone(), digest.clone())));
        }
    }
}

impl Which {
    /// Those of `held` that it means.
    pub fn of(&self, held: &[Held]) -> BTreeMap<String, String> {
        let named = match self {
            Self::All => None,
            Self::Tools(tools) => Some(tools.iter().collect::<BTreeSet<_>>()),
        };
        let meant = |it: &&Held| named.as_ref().is_none_or(|named| named.contains(&it.tool));
        held.iter().filter(meant).map(|it| (it.tool.clone(), it.seen.clone())).collect()
    }
}

/// The members of a definition that count: what a model or a person goes by.
const COUNTED: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

#[cfg(test)]
mod tests;
