//! Pins: decides which of a server's definitions are held back because they differ from what was approved.
//!
//! Tools, prompts, resources, resource templates and the server's instructions are pinned, each by the digest
//! of what a model or a person reads. What differs from its pin is held back: neither listed nor callable,
//! until an operator approves that very digest or it matches the pin again.
//!
//! - [`Pinning::FirstUse`] trusts every definition on first use, also later additions of a known server: they
//!   cannot pass for something that was approved, and servers show more after a login or to more capable
//!   clients.
//! - [`Pinning::Strict`] trusts on first use only a server that is itself new. Later additions are held back.
//! - A definition with invisible characters ([`hidden`](super::hidden)) is held back on first use too.
//!
//! Pins belong to a server's name: it stays pinned when the server is run in another way.
//!
//! Everything here is bounded. A server has a share of bytes. Once it is used up, new definitions are held back
//! and no pin is evicted for them: otherwise a server could invent tools until its pins are gone. A pin that
//! was not seen for 90 days, while its server was, is forgotten; so is a server that was in no catalog for that
//! long.

mod comparing;
mod disk;
mod file;
mod offered;
mod refused;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_auth::digest::sha256;

use super::hidden;
use crate::catalog::plan::Pinning;
use crate::failure::{Failure, Reason, Stage};

pub use file::{PinFault, PinFile, Unapproved};
pub use offered::{Offered, Part};
use refused::Refused;

/// A definition that is held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Its kind.
    pub kind: Part,
    /// Its own name, URI or template.
    pub name: String,
    /// The reason.
    pub why: Why,
    /// The pinned digest, if there is a pin.
    pub pinned: Option<String>,
    /// The digest of the server's current definition, which an approval names.
    pub seen: String,
    /// Whether an operator refused exactly this digest, and need not be asked again.
    #[serde(skip_serializing_if = "is_false")]
    pub refused: bool,
    /// The server's current definition, unless it is too long to keep.
    #[serde(skip)]
    pub definition: Option<Arc<str>>,
}

/// Why a definition is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It differs from its pin.
    Changed,
    /// It is new, and `pin: strict` does not trust it.
    New,
    /// It has invisible characters.
    Hidden,
    /// The server has no room left for pins.
    Full,
    /// Its pin is lost: the file was damaged.
    Lost,
}

impl Why {
    /// The end of a sentence that begins with its name.
    pub fn told(self) -> &'static str {
        match self {
            Self::Changed => "has changed since it was pinned",
            Self::New => "is new, and `pin: strict` does not trust that",
            Self::Hidden => "has characters that a reader does not see",
            Self::Full => "is new, and the server has pinned more than there is room for",
            Self::Lost => "is not known any more: the file of pins was damaged",
        }
    }
}

impl Held {
    /// The failure for a caller that wants it.
    pub fn failure(&self, server: &str) -> Failure {
        let name = escaped(&self.name, LONGEST_NAME);
        let what = match self.kind {
            Part::Instructions => "The instructions".to_owned(),
            part => format!("The {} `{name}`", part.word()),
        };
        let why = self.why.told();
        let (message, advice) = match self.refused {
            false => (
                format!("{what} of `{server}` {why}, and is held back."),
                format!("Look at it, and approve it if it is meant: `trunkline approve {server}`."),
            ),
            true => (
                format!("{what} of `{server}` {why}, and an operator refused it."),
                format!("If that was wrong, approve it after all: `trunkline approve {server}`."),
            ),
        };
        Failure::new(Reason::HeldBack, Stage::Policy, message).of(server).advice(advice)
    }
}

/// What an approval names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The kind of definition.
    pub kind: Part,
    /// Its own name, URI or template; empty for instructions.
    #[serde(default)]
    pub name: String,
    /// The digest that the operator saw.
    pub digest: String,
}

impl Approval {
    /// Whether this is what it names.
    pub fn is_of(&self, held: &Held) -> bool {
        (self.kind, &self.name, &self.digest) == (held.kind, &held.name, &held.seen)
    }
}

/// The pins of all servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    servers: BTreeMap<String, ServerPins>,
    /// Whether pins were lost with a damaged file: then no server counts as new.
    #[serde(default, skip_serializing_if = "is_false")]
    lost: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ServerPins {
    /// The day it was last seen.
    seen: u32,
    /// Whether its pins were lost, and not all of its definitions were approved since.
    #[serde(default, skip_serializing_if = "is_false")]
    lost: bool,
    /// By part and name.
    pins: BTreeMap<String, Pin>,
    /// What operators refused, by part and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, Refused>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pin {
    digest: String,
    /// Further approved digests, of instances whose definition differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
    /// The day it was last seen.
    seen: u32,
    /// Whether an operator approved it.
    #[serde(default, skip_serializing_if = "is_false")]
    approved: bool,
    /// The pinned definition, if it is short enough to keep for a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Box<str>>,
}

/// The result of comparing a server's definitions with its pins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// What to hold back.
    pub held: Vec<Held>,
    /// Whether there is something to store: a new server, new pins, or pins not seen lately.
    pub is_news: bool,
    fresh: BTreeMap<String, Pin>,
    seen: Vec<String>,
}

impl Pins {
    /// Pins of which nothing is known but that they existed.
    pub fn lost() -> Self {
        Self { servers: BTreeMap::new(), lost: true }
    }

    /// Compares a server's definitions with its pins. Changes nothing. A name with several definitions is held
    /// back unless all of them match the pin.
    pub fn compare(
        &self,
        server: &str,
        offered: &[Offered],
        pinning: Pinning,
        today: u32,
    ) -> Compared {
        let known = self.servers.get(server);
        let is_lost = known.map_or(self.lost, |it| it.lost);
        let distrust = match known {
            _ if is_lost => Some(Why::Lost),
            Some(_) if pinning == Pinning::Strict => Some(Why::New),
            _ => None,
        };
        // Computed lazily: nearly always there is nothing new to make room for.
        let mut room = None;
        let mut found = Compared { is_news: known.is_none(), ..Compared::default() };
        let mut fresh: BTreeMap<String, Pin> = BTreeMap::new();
        let mut held = HeldSet::default();
        for it in offered {
            let key = key(it.part, &it.name);
            let pin = known.and_then(|known| known.pins.get(&key)).or_else(|| fresh.get(&key));
            match pin {
                Some(pin) if pin.accepts(&it.digest) => {
                    if it.hidden.is_some() && !pin.approved {
                        held.add(it, Why::Hidden, Some(pin));
                    }
                    if pin.seen.saturating_add(LAZY) <= today {
                        found.is_news = true;
                    }
                    found.seen.push(key);
                }
                Some(pin) => {
                    held.add(it, Why::Changed, Some(pin));
                    // Its pin is in use and must not be forgotten.
                    found.seen.push(key);
                }
                None if it.hidden.is_some() => held.add(it, Why::Hidden, None),
                None => match distrust {
                    Some(why) => held.add(it, why, None),
                    None => {
                        let room = room.get_or_insert_with(|| Room::of(self, server));
                        if !room.takes(&key) {
                            held.add(it, Why::Full, None);
                            continue;
                        }
                        let definition = room.keeps(&it.definition);
                        let pin = Pin {
                            digest: it.digest.clone(),
                            seen: today,
                            definition,
                            ..Pin::default()
                        };
                        fresh.insert(key, pin);
                        found.is_news = true;
                    }
                },
            }
        }
        found.fresh = fresh;
        found.held = held.0;
        for it in &mut found.held {
            let Some(refused) = self.refusal(server, it) else { continue };
            it.refused = true;
            found.is_news |= refused.seen.saturating_add(LAZY) <= today;
            found.seen.push(key(it.kind, &it.name));
        }
        found
    }

    /// The definitions of one instance that differ from their pins. New ones are ignored: nobody sees them
    /// before the lists are compared.
    pub fn differing(&self, server: &str, offered: &[Offered]) -> Vec<Held> {
        let Some(known) = self.servers.get(server) else { return Vec::new() };
        let mut held = HeldSet::default();
        for it in offered {
            if let Some(pin) = known.pins.get(&key(it.part, &it.name))
                && !pin.accepts(&it.digest)
            {
                held.add(it, Why::Changed, Some(pin));
            }
        }
        held.0.iter_mut().for_each(|it| it.refused = self.refusal(server, it).is_some());
        held.0
    }

    /// Stores the result of a comparison.
    pub fn note(&mut self, server: &str, found: Compared, today: u32) {
        let known = self.known(server);
        known.seen = known.seen.max(today);
        for key in found.seen {
            if let Some(pin) = known.pins.get_mut(&key) {
                pin.seen = pin.seen.max(today);
            }
            if let Some(refused) = known.refused.get_mut(&key) {
                refused.seen = refused.seen.max(today);
            }
        }
        known.pins.extend(found.fresh);
    }

    /// Pins a held-back definition as it was seen. `also`: another digest in use beside it, which stays valid
    /// if it was. If there is no room, pins that the server no longer offers are evicted.
    pub fn approve(
        &mut self,
        server: &str,
        held: &Held,
        also: Option<&str>,
        offered: &BTreeSet<String>,
        today: u32,
    ) {
        let key = key(held.kind, &held.name);
        let mut room = Room::of(self, server);
        let known = self.known(server);
        known.seen = known.seen.max(today);
        if !known.pins.contains_key(&key) && !room.takes(&key) {
            known.pins.retain(|key, _| offered.contains(key));
            room = Room::of(self, server);
        }
        let definition = held.definition.as_ref().and_then(|it| room.keeps(it));
        self.forget_refusal(server, held);
        let pin = self.known(server).pins.entry(key).or_default();
        let mut others = std::mem::take(&mut pin.also);
        others.push(std::mem::take(&mut pin.digest));
        others.retain(|it| Some(it.as_str()) == also && *it != held.seen);
        others.truncate(ALSO);
        *pin = Pin {
            digest: held.seen.clone(),
            also: others,
            seen: today,
            approved: true,
            definition,
        };
    }

    /// All definitions of a server were approved: it counts as a new one that was trusted.
    pub fn is_whole(&mut self, server: &str) {
        if let Some(known) = self.servers.get_mut(server) {
            known.lost = false;
        }
    }

    /// Forgets what was not seen for long: servers that no catalog names, and definitions that their servers
    /// did not offer.
    pub fn prune(&mut self, catalog: &BTreeSet<String>, today: u32) {
        self.servers
            .retain(|name, it| catalog.contains(name) || it.seen.saturating_add(FORGOTTEN) > today);
        for server in self.servers.values_mut() {
            let last = server.seen;
            server.pins.retain(|_, pin| pin.seen.saturating_add(FORGOTTEN) > last);
            server.refused.retain(|_, it| it.seen.saturating_add(FORGOTTEN) > last);
        }
    }

    /// The pinned digest and definition.
    pub fn pinned(&self, server: &str, part: Part, name: &str) -> Option<(&str, Option<&str>)> {
        let pin = self.servers.get(server)?.pins.get(&key(part, name))?;
        Some((&pin.digest, pin.definition.as_deref()))
    }

    /// The pins of a server, which begin as lost if all were.
    fn known(&mut self, server: &str) -> &mut ServerPins {
        let lost = self.lost;
        let none = || ServerPins { lost, ..ServerPins::default() };
        self.servers.entry(server.to_owned()).or_insert_with(none)
    }

    /// How many definitions of a server are pinned.
    pub fn count(&self, server: &str) -> usize {
        self.servers.get(server).map_or(0, |it| it.pins.len())
    }

    /// Converts pins of the first format, which had only tools: name → digest.
    fn of_tools(servers: BTreeMap<String, BTreeMap<String, String>>, today: u32) -> Self {
        let server = |tools: BTreeMap<String, String>| {
            let pin = |digest| Pin { digest, seen: today, ..Pin::default() };
            let pins = tools.into_iter().map(|(it, digest)| (key(Part::Tool, &it), pin(digest)));
            ServerPins { seen: today, pins: pins.collect(), ..ServerPins::default() }
        };
        let servers = servers.into_iter().map(|(name, tools)| (name, server(tools)));
        Self { servers: servers.collect(), lost: false }
    }
}

impl Pin {
    fn accepts(&self, digest: &str) -> bool {
        self.digest == digest || self.also.iter().any(|it| it == digest)
    }

    fn cost(key: &str) -> usize {
        key.len() + OVERHEAD
    }

    fn kept(&self) -> usize {
        self.definition.as_ref().map_or(0, |it| it.len())
    }
}

/// The room left for a server's pins.
struct Room {
    pins: usize,
    definitions: usize,
}

impl Room {
    fn of(pins: &Pins, server: &str) -> Self {
        let cost = |it: &ServerPins| it.pins.keys().map(|key| Pin::cost(key)).sum::<usize>();
        let kept = |it: &ServerPins| it.pins.values().map(Pin::kept).sum::<usize>();
        let own = pins.servers.get(server);
        let left = |most: usize, own: usize, most_of_all: usize, all: usize| {
            most.saturating_sub(own).min(most_of_all.saturating_sub(all))
        };
        let (costs, keeps) = (pins.servers.values().map(cost), pins.servers.values().map(kept));
        Self {
            pins: left(SERVER, own.map_or(0, cost), ALL, costs.sum()),
            definitions: left(KEPT, own.map_or(0, kept), ALL_KEPT, keeps.sum()),
        }
    }

    fn takes(&mut self, key: &str) -> bool {
        let left = self.pins.checked_sub(Pin::cost(key));
        self.pins = left.unwrap_or(self.pins);
        left.is_some()
    }

    fn keeps(&mut self, definition: &str) -> Option<Box<str>> {
        let left = self.definitions.checked_sub(definition.len())?;
        (definition.len() <= DEFINITION).then(|| {
            self.definitions = left;
            definition.into()
        })
    }
}

/// Held-back definitions, with as many texts as there is room for.
#[derive(Default)]
struct HeldSet(Vec<Held>, usize);

impl HeldSet {
    fn add(&mut self, it: &Offered, why: Why, pin: Option<&Pin>) {
        let length = it.definition.len();
        let is_kept = length <= SHOWN && self.1 + length <= ALL_SHOWN;
        if is_kept {
            self.1 += length;
        }
        let held = Held {
            kind: it.part,
            name: it.name.clone(),
            why,
            pinned: pin.map(|it| it.digest.clone()),
            seen: it.digest.clone(),
            refused: false,
            definition: is_kept.then(|| Arc::clone(&it.definition)),
        };
        self.0.push(held);
    }
}

/// The key of a pin. A name of any length has a key of bounded length.
pub(crate) fn key(part: Part, name: &str) -> String {
    match name.len() {
        0..=LONGEST_KEY => format!("{}:{name}", part.word()),
        _ => {
            let end = name.floor_char_boundary(LONGEST_KEY / 2);
            format!("{}:{}…{}", part.word(), &name[..end], sha256(name.as_bytes()))
        }
    }
}

/// Escapes and shortens a name for display.
fn escaped(name: &str, longest: usize) -> String {
    let mut shown = hidden::escape(name);
    if shown.len() > longest {
        shown.truncate(shown.floor_char_boundary(longest));
        shown.push('…');
    }
    shown
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_false(it: &bool) -> bool {
    !it
}

const LONGEST_NAME: usize = 128;
const LONGEST_KEY: usize = 256;
/// The overhead of a pin in bytes.
const OVERHEAD: usize = 160;
/// The bytes of pins for one server, and for all.
const SERVER: usize = 2 << 20;
const ALL: usize = 16 << 20;
/// The longest definition kept for a diff, and the bytes for one server and for all.
const DEFINITION: usize = 16 << 10;
const KEPT: usize = 512 << 10;
const ALL_KEPT: usize = 8 << 20;
/// The longest held-back definition kept for display, and the bytes for one server.
const SHOWN: usize = 64 << 10;
const ALL_SHOWN: usize = 2 << 20;
/// The bound on further digests of one definition.
const ALSO: usize = 3;
/// Days after which a repeated sighting is stored.
const LAZY: u32 = 7;
/// Days after which an unseen pin is forgotten.
const FORGOTTEN: u32 = 90;

#[cfg(test)]
mod tests;
