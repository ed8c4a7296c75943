//! Keys ⇄ bytes in this process. The default: nothing to install, nothing to clean up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::{Answer, Backend};
use crate::channels::Channels;
use crate::clock::{Clock, Monotonic};
use crate::decide::{Act, Change, Held, Space};
use crate::{Bounds, Capabilities, Cursor, Entry, Item, Page, StoreError};

/// A store in the memory of this process.
///
/// Writes remove expired entries, a few at a time, and all of them before a write is refused because
/// the store is full.
pub struct Memory {
    bounds: Bounds,
    clock: Box<dyn Clock>,
    state: Mutex<State>,
    channels: Channels,
}

impl Memory {
    /// A store with `bounds` and `clock`.
    pub fn new(bounds: Bounds, clock: impl Clock) -> Self {
        let (state, channels) = Default::default();
        Self { bounds, clock: Box::new(clock), state, channels }
    }

    /// How many entries and leases are held, including expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.state().held.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Bounds::default(), Monotonic::default())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secrets.
        f.debug_struct("Memory").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Backend for Memory {
    fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    fn channels(&self) -> &Channels {
        &self.channels
    }

    fn reach(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn read(&self, key: &str) -> Answer<Option<Entry>> {
        self.bounds.check_key(key)?;
        let now = self.clock.now();
        let held = self.state().held.get(&(Space::Entries, key.into())).cloned();
        Ok(held.filter(|held| held.is_live(now)).map(|held| held.entry()))
    }

    async fn change<T: Send + 'static>(
        &self,
        (space, key): (Space, &str),
        decide: impl Fn(Option<&Held>, Duration) -> Result<Change<T>, StoreError> + Send + 'static,
    ) -> Answer<(T, u64)> {
        self.bounds.check_key(key)?;
        let now = self.clock.now();
        let mut state = self.state();
        state.sweep(now, SWEPT_AT_ONCE);
        let key = (space, Arc::<str>::from(key));
        let held = state.held.get(&key).filter(|held| held.is_live(now));
        let Change { act, answer } = decide(held, now)?;
        let number = match act {
            Act::Keep => 0,
            Act::Remove => {
                state.remove(&key);
                0
            }
            Act::Write { value, number, expires } => {
                let number = number.unwrap_or(state.last + 1);
                state.write(key, Held { value, number, expires }, now, &self.bounds)?;
                state.last = state.last.max(number);
                number
            }
        };
        Ok((answer, number))
    }

    async fn page(&self, prefix: &str, after: Cursor<'_>, limit: usize) -> Answer<Page> {
        let limit = self.bounds.page_limit(limit);
        let now = self.clock.now();
        let from = match after {
            Some(after) if after >= prefix => Excluded((Space::Entries, after.into())),
            _ => Included((Space::Entries, prefix.into())),
        };
        let (mut page, mut bytes) = (Page::default(), 0);
        let state = self.state();
        for ((space, key), held) in state.held.range((from, Unbounded)) {
            if *space != Space::Entries || !key.starts_with(prefix) {
                break;
            }
            if !held.is_live(now) {
                continue;
            }
            if page.items.len() == limit || bytes >= self.bounds.page_bytes {
                page.next = page.items.last().map(|item| item.key.clone());
                break;
            }
            bytes += held.value.len();
            let Entry { value, version } = held.entry();
            page.items.push(Item { key: key.to_string(), value, version });
        }
        Ok(page)
    }
}

type Key = (Space, Arc<str>);

/// The state of the store.
// Invariant: `times` has exactly the keys of `held` that expire, each once; `bytes` is their sum.
#[derive(Default)]
struct State {
    held: BTreeMap<Key, Held>,
    times: BTreeSet<(Duration, Key)>,
    bytes: usize,
    /// The greatest version or fence so far.
    last: u64,
}

impl State {
    fn write(
        &mut self,
        key: Key,
        held: Held,
        now: Duration,
        bounds: &Bounds,
    ) -> Result<(), StoreError> {
        let size = size(&key, &held);
        if self.check(&key, size, bounds).is_err() {
            self.sweep(now, usize::MAX);
            self.check(&key, size, bounds)?;
        }
        self.remove(&key);
        self.bytes += size;
        if let Some(expires) = held.expires {
            self.times.insert((expires, key.clone()));
        }
        self.held.insert(key, held);
        Ok(())
    }

    fn check(&self, key: &Key, size: usize, bounds: &Bounds) -> Result<(), StoreError> {
        let (more, freed) = match self.held.get(key) {
            Some(old) => (0, self::size(key, old)),
            None => (1, 0),
        };
        bounds.check_total(self.held.len() + more, self.bytes - freed + size)
    }

    fn remove(&mut self, key: &Key) {
        if let Some(old) = self.held.remove(key) {
            self.bytes -= size(key, &old);
            if let Some(expires) = old.expires {
                self.times.remove(&(expires, key.clone()));
            }
        }
    }

    /// Removes expired entries, the oldest first, at most `most`.
    fn sweep(&mut self, now: Duration, most: usize) {
        for _ in 0..most {
            if self.times.first().is_none_or(|(expires, _)| *expires > now) {
                break;
            }
            if let Some((_, key)) = self.times.pop_first() {
                self.remove(&key);
            }
        }
    }
}

fn size((_, key): &Key, held: &Held) -> usize {
    key.len() + held.value.len() + OVERHEAD
}

/// What an entry costs besides its key and value: nodes of two trees and two counts.
const OVERHEAD: usize = 160;
/// A write adds at most one entry, so removing more than one keeps up.
const SWEPT_AT_ONCE: usize = 8;
