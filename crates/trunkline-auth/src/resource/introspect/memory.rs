//! A bounded cache of introspection results, each with a TTL.

use std::collections::HashMap;
use std::time::SystemTime;

use ring::digest::{SHA256, digest};

/// A token's digest: the token itself is not kept.
pub(super) type Name = [u8; 32];

pub(super) fn name(token: &str) -> Name {
    digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("a SHA-256 has 32 bytes")
}

/// At most `most` values, by the digest of a token.
pub(super) struct Memory<T> {
    most: usize,
    all: HashMap<Name, (T, SystemTime)>,
}

impl<T> Memory<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, all: HashMap::new() }
    }

    pub(super) fn get(&self, name: &Name, now: SystemTime) -> Option<&T> {
        self.all.get(name).filter(|(_, until)| now < *until).map(|(it, _)| it)
    }

    /// Caches it until then. Evicts expired entries, or else the one that expires first.
    pub(super) fn put(&mut self, name: Name, it: T, until: SystemTime, now: SystemTime) {
        if self.all.len() >= self.most {
            self.all.retain(|_, (_, until)| now < *until);
        }
        if self.all.len() >= self.most {
            let first = self.all.iter().min_by_key(|(_, (_, until))| *until);
            let first = first.map(|(name, _)| *name);
            first.map(|name| self.all.remove(&name));
        }
        self.all.insert(name, (it, until));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn names_are_digests() {
        assert_eq!(name("a"), name("a"));
        assert_ne!(name("a"), name("b"));
    }

    #[test]
    fn it_is_remembered_until_then() {
        let mut memory = Memory::new(2);
        memory.put(name("a"), 1, at(10), at(0));
        assert_eq!(memory.get(&name("a"), at(9)), Some(&1));
        assert_eq!(memory.get(&name("a"), at(10)), None);
        assert_eq!(memory.get(&name("b"), at(0)), None);
    }

    #[test]
    fn room_is_made_by_what_has_ended_or_ends_first() {
        let mut memory = Memory::new(2);
        let held = |memory: &Memory<u32>| {
            ["a", "b", "c", "d"].map(|it| memory.get(&name(it), at(0)).copied())
        };
        memory.put(name("a"), 1, at(20), at(0));
        memory.put(name("b"), 2, at(10), at(0));
        memory.put(name("c"), 3, at(30), at(0));
        assert_eq!(held(&memory), [Some(1), None, Some(3), None]);
        memory.put(name("d"), 4, at(40), at(30));
        assert_eq!((held(&memory), memory.len()), ([None, None, None, Some(4)], 1));
        memory.put(name("a"), 5, at(41), at(30));
        memory.put(name("a"), 6, at(42), at(30));
        assert_eq!(held(&memory)[0], Some(6));
    }
}
