//! Remembers which server's result named which URI, to read unlisted resources from that server.
//!
//! A tool may return a resource that its server lists nowhere. Such a URI is read from the server whose result
//! named it to this principal, and is offered to no other server: a URI can be a secret, and any server that
//! gets it could answer. A URI that two servers named belongs to neither.
//!
//! The memory is bounded in bytes, in all and for each principal. The oldest URI is evicted first, and is then
//! only readable as `trunkline:SERVER/URI`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use trunkline_proto::budget::{Ledger, Over};
use trunkline_wire::json::Json;

use crate::caller::Caller;
use crate::failure::{Failure, Reason, Stage};
use crate::merge::index::uris::wrap;
use crate::merge::{Index, Item, Target};

/// The failure for a URI that several servers claim.
pub(crate) fn ambiguous(uri: &str, found: &[Target]) -> Failure {
    let names: Vec<_> = found.iter().map(|it| format!("`{}`", it.server)).collect();
    let first = found.first().map(|it| &*it.server).unwrap_or_default();
    let shown = crate::policy::plain(uri, 200);
    let message = format!("The servers {} claim `{shown}`.", names.join(" and "));
    Failure::new(Reason::AmbiguousUri, Stage::Route, message)
        .advice(format!("Name the one you mean: `{}`.", wrap(first, &shown)))
}

/// Which server named which URI to which principal.
#[derive(Debug)]
pub(crate) struct Named(Mutex<Memory>);

impl Default for Named {
    fn default() -> Self {
        Self(Mutex::new(Memory::new(TOTAL, SHARE)))
    }
}

impl Named {
    /// Where a URI may be read: at the servers that claim it, or else at the one that named it.
    pub(crate) fn places(&self, index: &Index, caller: &Caller, uri: &str) -> Vec<Target> {
        let claims = index.claims(uri);
        if !claims.is_empty() || index.is_addressed(uri) {
            return claims;
        }
        let server = match index.only_server() {
            Some(server) => Some(Arc::clone(server)),
            None => self.server(&caller.id, uri),
        };
        let server = server.filter(|server| index.servers().any(|it| it == server));
        let target = |server| Target { server, name: uri.into(), item: Item::Unlisted };
        server.map(target).into_iter().collect()
    }

    /// Remembers the URIs in a server's result that the index cannot resolve.
    pub(crate) fn remember(
        &self,
        index: impl FnOnce() -> Arc<Index>,
        caller: &Caller,
        server: &Arc<str>,
        said: &Json,
    ) {
        let text = said.get();
        if text.len() > LONGEST_RESULT || !text.contains(r#""uri""#) {
            return;
        }
        let index = index();
        if index.only_server().is_some() {
            return;
        }
        for uri in uris(text) {
            if index.claims(&uri).is_empty() && !index.is_addressed(&uri) {
                self.note(&caller.id, &uri, server);
            }
        }
    }

    fn server(&self, principal: &str, uri: &str) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).server(principal, uri)
    }

    fn note(&self, principal: &str, uri: &str, server: &Arc<str>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).note(principal, uri, server);
    }
}

#[derive(Debug)]
struct Memory {
    ledger: Ledger,
    entries: HashMap<Key, Entry>,
    /// Oldest first, over all principals.
    order: BTreeMap<u64, Key>,
    own_order: BTreeMap<(Arc<str>, u64), Key>,
    next: u64,
}

/// A principal and a URI.
type Key = (Arc<str>, Arc<str>);

#[derive(Debug)]
struct Entry {
    /// `None` if several servers named it.
    server: Option<Arc<str>>,
    at: u64,
}

impl Memory {
    fn new(total: usize, share: usize) -> Self {
        Self {
            ledger: Ledger::new(total, share),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            own_order: BTreeMap::new(),
            next: 0,
        }
    }

    fn server(&self, principal: &str, uri: &str) -> Option<Arc<str>> {
        self.entries.get(&(principal.into(), uri.into()))?.server.clone()
    }

    fn note(&mut self, principal: &str, uri: &str, server: &Arc<str>) {
        if uri.len() > LONGEST {
            return;
        }
        let key: Key = (principal.into(), uri.into());
        let at = self.next;
        self.next += 1;
        let mut named_by = Some(Arc::clone(server));
        if let Some(before) = self.forget(&key) {
            named_by = before.server.filter(|it| it == server);
        }
        while let Err(over) = self.ledger.take(&key.0, size(&key)) {
            let oldest = match over {
                Over::Share => self.oldest_of(&key.0),
                Over::Total => self.order.values().next().cloned(),
            };
            // An entry larger than the bound is not remembered.
            let Some(oldest) = oldest else { return };
            self.forget(&oldest);
        }
        self.order.insert(at, key.clone());
        self.own_order.insert((Arc::clone(&key.0), at), key.clone());
        self.entries.insert(key, Entry { server: named_by, at });
    }

    fn oldest_of(&self, principal: &Arc<str>) -> Option<Key> {
        let from = (Arc::clone(principal), 0);
        let (_, key) = self.own_order.range(from..).next()?;
        (key.0 == *principal).then(|| key.clone())
    }

    fn forget(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.at);
        self.own_order.remove(&(Arc::clone(&key.0), entry.at));
        self.ledger.give(&key.0, size(key));
        Some(entry)
    }
}

/// The approximate size of an entry.
fn size(key: &Key) -> usize {
    256 + key.0.len() + key.1.len()
}

/// The values of all members `uri`, at any depth of a result.
fn uris(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    // Text that is not JSON names nothing.
    let _ = Seek(&mut found).deserialize(&mut reader);
    found
}

/// Collects URIs from any value.
struct Seek<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(name) = map.next_key::<Name>()? {
            if self.0.len() >= MOST {
                map.next_value::<IgnoredAny>()?;
            } else if name.0 {
                if let Some(uri) = map.next_value::<Text>()?.0 {
                    self.0.push(uri);
                }
            } else {
                map.next_value_seed(Seek(self.0))?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element_seed(Seek(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Whether a member's name is `uri`.
struct Name(bool);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Is;
        impl Visitor<'_> for Is {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(Name(name == "uri"))
            }
        }
        deserializer.deserialize_str(Is)
    }
}

/// A string; `None` for any other value.
struct Text(Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(value.as_str().map(str::to_owned)))
    }
}

/// The bytes remembered in all, and for each principal.
const TOTAL: usize = 8 << 20;
const SHARE: usize = 1 << 20;
/// The longest URI that is remembered.
const LONGEST: usize = 2 << 10;
/// The longest result that is scanned.
const LONGEST_RESULT: usize = 4 << 20;
/// How many URIs of one result are remembered.
const MOST: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_embedded_resources_are_found_wherever_they_are() {
        let text = r#"{"content":[{"type":"resource_link","uri":"a:1","name":"x"},
            {"type":"resource","resource":{"uri":"a:2","text":"{\"uri\":\"a:no\"}"}},{"type":"text","text":"uri"}],
            "structuredContent":{"uri":["a:no"],"n":-1,"b":[true,null,1.5,{"uri":"a:3"}]},"contents":[{"uri":"a:4"}]}"#;
        assert_eq!(uris(text), ["a:1", "a:2", "a:3", "a:4"]);
        assert_eq!(uris("nonsense \"uri\""), Vec::<String>::new());
        let many = format!(r#"[{}]"#, vec![r#"{"uri":"x"}"#; MOST + 5].join(","));
        assert_eq!(uris(&many).len(), MOST);
    }

    fn note(memory: &mut Memory, principal: &str, uri: &str, server: &str) {
        memory.note(principal, uri, &Arc::from(server));
    }

    #[test]
    fn a_uri_is_read_from_its_naming_server_by_its_principal_alone() {
        let mut memory = Memory::new(TOTAL, SHARE);
        note(&mut memory, "ann", "x:1", "b");
        note(&mut memory, "ann", "x:1", "b");
        assert_eq!(memory.server("ann", "x:1").as_deref(), Some("b"));
        assert_eq!(memory.server("bob", "x:1"), None);
        assert_eq!(memory.server("ann", "x:2"), None);
        note(&mut memory, "ann", "x:1", "a");
        assert_eq!(memory.server("ann", "x:1"), None, "two named it");
        note(&mut memory, "ann", "x:1", "b");
        assert_eq!(memory.server("ann", "x:1"), None, "and it stays so");
    }

    #[test]
    fn the_memory_is_bounded_and_principals_do_not_evict_each_other() {
        let one = size(&("ann".into(), "x:000".into()));
        let mut memory = Memory::new(one * 6, one * 3);
        let uri = |at: usize| format!("x:{at:03}");
        note(&mut memory, "bob", &uri(0), "a");
        for at in 0..100 {
            note(&mut memory, "ann", &uri(at), "a");
        }
        let kept = |memory: &Memory, who: &str| {
            (0..100).filter(|at| memory.server(who, &uri(*at)).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(kept(&memory, "ann"), [97, 98, 99]);
        assert_eq!(kept(&memory, "bob"), [0]);
        for who in ["cat", "dan", "eve"] {
            for at in 0..3 {
                note(&mut memory, who, &uri(at), "a");
            }
        }
        assert_eq!(memory.ledger.used(), one * 6);
        assert_eq!(memory.entries.len(), 6);
        assert_eq!((memory.order.len(), memory.own_order.len()), (6, 6));
        assert_eq!(kept(&memory, "eve"), [0, 1, 2], "the newest stay");
        note(&mut memory, "eve", &"x".repeat(LONGEST + 1), "a");
        assert_eq!(memory.entries.len(), 6);
    }
}
