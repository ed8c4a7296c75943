//! Random operations on a store and on a map that serves as the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trunkline_store::{
    Bounds, Clock, Entry, Expect, Lease, Manual, Memory, Store, StoreError, Swap, Version,
};
use trunkline_testkit::Dice;

use crate::backend::{Scratch, reopen};

#[tokio::test]
async fn memory_does_what_a_map_does() {
    for seed in 1..=200 {
        let clock = Manual::default();
        let store = Arc::new(Memory::new(Bounds::default(), clock.clone()));
        Run::new(seed, store, clock, None).operations(400).await;
    }
}

#[tokio::test]
async fn a_folder_does_what_a_map_does_also_when_it_is_opened_again() {
    for seed in 1..=10 {
        let (clock, scratch) = (Manual::default(), Scratch::new());
        let store = Arc::new(reopen(&scratch, &Bounds::default(), &clock).await);
        Run::new(seed, store, clock, Some(scratch)).operations(250).await;
    }
}

/// One run: the store, and the expected state.
struct Run {
    seed: u64,
    random: Dice,
    store: Arc<dyn Store>,
    clock: Manual,
    scratch: Option<Scratch>,
    entries: BTreeMap<String, Line>,
    leases: BTreeMap<String, (Lease, Duration)>,
    /// Leases that have ended, and obsolete versions.
    old: Vec<Lease>,
    versions: BTreeSet<Version>,
    greatest_fence: u64,
}

#[derive(Clone)]
struct Line {
    value: Vec<u8>,
    version: Version,
    expires: Option<Duration>,
}

impl Run {
    fn new(seed: u64, store: Arc<dyn Store>, clock: Manual, scratch: Option<Scratch>) -> Self {
        let (entries, leases, old, versions) = Default::default();
        let random = Dice(seed);
        Self {
            seed,
            random,
            store,
            clock,
            scratch,
            entries,
            leases,
            old,
            versions,
            greatest_fence: 0,
        }
    }

    async fn operations(mut self, many: u32) {
        for number in 0..many {
            let what = self.random.below(if self.scratch.is_some() { 24 } else { 23 });
            let at = format!("seed {}, operation {number}, kind {what}", self.seed);
            match what {
                0..5 => self.put(&at).await,
                5..8 => self.get(&at).await,
                8..12 => self.swap(&at).await,
                12..14 => self.delete(&at).await,
                14..16 => self.count(&at).await,
                16..18 => self.lease(&at).await,
                18..20 => self.end_or_renew(&at).await,
                20..22 => self.scan(&at).await,
                22 => self.pass(),
                _ => self.open_again().await,
            }
        }
    }

    async fn put(&mut self, at: &str) {
        let (key, value, ttl) = (self.key(), self.value(), self.ttl());
        let version = self.store.put(&key, &value, ttl).await.expect(at);
        self.write(key, value, version, ttl, at);
    }

    async fn get(&mut self, at: &str) {
        let key = self.key();
        let expected = self.entries.get(&key).map(Line::entry);
        assert_eq!(self.store.get(&key).await, Ok(expected), "{at}: {key:?}");
    }

    async fn swap(&mut self, at: &str) {
        let (key, value, ttl) = (self.key(), self.value(), self.ttl());
        let there = self.entries.get(&key).map(Line::entry);
        let expect = match (self.random.below(4), &there) {
            (0, _) => Expect::Absent,
            (1, _) => Expect::Version(self.some_version()),
            (_, Some(entry)) => Expect::Version(entry.version),
            (_, None) => Expect::Absent,
        };
        let fits = match expect {
            Expect::Absent => there.is_none(),
            Expect::Version(version) => there.as_ref().is_some_and(|e| e.version == version),
        };
        match self.store.swap(&key, expect, &value, ttl).await.expect(at) {
            Swap::Done(version) => {
                assert!(fits, "{at}: {key:?} with {expect:?} over {there:?}");
                self.write(key, value, version, ttl, at);
            }
            Swap::Conflict(found) => {
                assert!(!fits, "{at}: {key:?} with {expect:?}");
                assert_eq!(found, there, "{at}: {key:?}");
            }
        }
    }

    async fn delete(&mut self, at: &str) {
        let key = self.key();
        let was_there = self.entries.remove(&key).is_some();
        assert_eq!(self.store.delete(&key).await, Ok(was_there), "{at}: {key:?}");
    }

    async fn count(&mut self, at: &str) {
        let (key, by, ttl) = (self.key(), self.random.below(9) as i64 - 4, self.ttl());
        let there = self.entries.get(&key).cloned();
        let number = match &there {
            None => Some(0),
            Some(line) => String::from_utf8(line.value.clone()).ok().and_then(|t| t.parse().ok()),
        };
        let expected = number.map(|number: i64| number + by).ok_or(StoreError::NotANumber);
        let counted = self.store.count(&key, by, ttl).await;
        assert_eq!(counted, expected, "{at}: {key:?}");
        if let Ok(sum) = counted {
            let entry = self.store.get(&key).await.expect(at).expect(at);
            self.write(key.clone(), sum.to_string().into_bytes(), entry.version, ttl, at);
            if let Some(there) = there {
                self.entries.get_mut(&key).expect(at).expires = there.expires;
            }
        }
    }

    async fn lease(&mut self, at: &str) {
        let (name, ttl) = (self.key(), Duration::from_secs(1 + self.random.below(20)));
        match self.store.lease(&name, ttl).await.expect(at) {
            Some(lease) => {
                assert_eq!(lease.name(), name, "{at}");
                assert!(!self.leases.contains_key(&name), "{at}: {name:?} is held");
                assert!(lease.fence() > self.greatest_fence, "{at}: {lease:?}");
                self.greatest_fence = lease.fence();
                self.leases.insert(name, (lease, self.clock.now() + ttl));
            }
            None => assert!(self.leases.contains_key(&name), "{at}: {name:?} is free"),
        }
    }

    async fn end_or_renew(&mut self, at: &str) {
        let held: Vec<_> = self.leases.values().map(|(lease, _)| lease.clone()).collect();
        let all: Vec<_> = held.iter().chain(&self.old).cloned().collect();
        if all.is_empty() {
            return;
        }
        let lease = all[self.random.below(all.len() as u64) as usize].clone();
        let is_held = held.contains(&lease);
        if self.random.below(2) == 0 {
            let ttl = Duration::from_secs(1 + self.random.below(20));
            let renewed = self.store.renew(&lease, ttl).await;
            assert_eq!(renewed, Ok(is_held), "{at}: {lease:?}");
            if let Some((_, expires)) = self.leases.get_mut(lease.name()).filter(|_| is_held) {
                *expires = self.clock.now() + ttl;
            }
        } else {
            let released = self.store.release(&lease).await;
            assert_eq!(released, Ok(is_held), "{at}: {lease:?}");
            if is_held {
                self.leases.remove(lease.name());
                self.old.push(lease);
            }
        }
    }

    async fn scan(&mut self, at: &str) {
        let prefix = ["", "a", "a/", "B", "x"][self.random.below(5) as usize];
        let limit = 1 + self.random.below(6) as usize;
        let mut after = (self.random.below(2) == 0).then(|| self.key());
        let from = after.clone();
        let mut found = Vec::new();
        loop {
            let page = self.store.scan(prefix, after.as_deref(), limit).await.expect(at);
            assert!(page.items.len() <= limit, "{at}");
            found.extend(
                page.items.into_iter().map(|item| (item.key, item.value.to_vec(), item.version)),
            );
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let expected: Vec<_> = self
            .entries
            .iter()
            .filter(|(key, _)| key.starts_with(prefix) && from.as_ref().is_none_or(|f| *key > f))
            .map(|(key, line)| (key.clone(), line.value.clone(), line.version))
            .collect();
        assert_eq!(found, expected, "{at}: {prefix:?} after {from:?} by {limit}");
    }

    fn pass(&mut self) {
        self.clock.advance(Duration::from_millis(500 * self.random.below(20)));
        let now = self.clock.now();
        self.entries.retain(|_, line| line.expires.is_none_or(|expires| now < expires));
        let over: Vec<_> = self.leases.extract_if(.., |_, (_, expires)| *expires <= now).collect();
        self.old.extend(over.into_iter().map(|(_, (lease, _))| lease));
    }

    async fn open_again(&mut self) {
        let scratch = self.scratch.as_ref().expect("only a folder can be");
        // Alternately the first is gone before, or still there.
        if self.random.below(2) == 0 {
            self.store = Arc::new(Memory::default());
        }
        self.store = Arc::new(reopen(scratch, &Bounds::default(), &self.clock).await);
    }

    fn write(
        &mut self,
        key: String,
        value: Vec<u8>,
        version: Version,
        ttl: Option<Duration>,
        at: &str,
    ) {
        assert!(self.versions.insert(version), "{at}: {version:?} was there before");
        let expires = ttl.map(|ttl| self.clock.now() + ttl);
        self.entries.insert(key, Line { value, version, expires });
    }

    fn key(&mut self) -> String {
        let number = self.random.below(6);
        match self.random.below(5) {
            0 => format!("a/{number}"),
            1 => format!("a{number}"),
            2 => format!("B/é/{number}"),
            3 => format!("x{}", "y".repeat(137 * number as usize)),
            _ => format!("{number}"),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        match self.random.below(3) {
            0 => self.random.below(1_000).to_string().into_bytes(),
            1 => vec![0xff; self.random.below(3_000) as usize],
            _ => b"text".to_vec(),
        }
    }

    fn ttl(&mut self) -> Option<Duration> {
        (self.random.below(2) == 0).then(|| Duration::from_millis(1 + self.random.below(20_000)))
    }

    fn some_version(&mut self) -> Version {
        let all: Vec<_> = self.versions.iter().copied().collect();
        match all.len() as u64 {
            0 => Version::new(1),
            many => all[self.random.below(many) as usize],
        }
    }
}

impl Line {
    fn entry(&self) -> Entry {
        Entry { value: self.value.as_slice().into(), version: self.version }
    }
}
