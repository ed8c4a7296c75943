//! Which servers speak only older revisions → where the next handshake starts.
//!
//! A stateless server needs no entry: its handshake starts with the probe anyway. Entries have a short
//! TTL, because a server that was upgraded still accepts older clients without complaint.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::target::HttpTarget;

/// The cache. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(Arc<Mutex<Vec<Entry>>>);

/// How to reach an older server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// With `initialize` over Streamable HTTP.
    Stateful,
    /// With `initialize` over HTTP+SSE.
    Sse,
}

/// A server as one client sees it: other credentials may reach another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// For display.
    url: String,
    /// A hash of the whole URL and the headers.
    credentials: u64,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    known: Known,
    until: Instant,
}

impl Verdicts {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The cache that the whole process shares.
    pub fn shared() -> Self {
        static SHARED: LazyLock<Verdicts> = LazyLock::new(Verdicts::new);
        SHARED.clone()
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Known> {
        let entries = self.lock();
        let entry = entries.iter().find(|it| it.key == *key)?;
        (now < entry.until).then_some(entry.known)
    }

    pub(super) fn set(&self, key: Key, known: Option<Known>, now: Instant) {
        let mut entries = self.lock();
        entries.retain(|it| it.key != key && now < it.until);
        let Some(known) = known else { return };
        if entries.len() >= ENTRIES {
            entries.remove(0);
        }
        entries.push(Entry { key, known, until: now + KEPT });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    pub(super) fn of(target: &HttpTarget) -> Self {
        let mut hasher = DefaultHasher::new();
        (&target.url, &target.headers).hash(&mut hasher);
        Self { url: target.shown(), credentials: hasher.finish() }
    }
}

const ENTRIES: usize = 256;
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_holds_a_day_and_for_one_set_of_credentials() {
        let (verdicts, now) = (Verdicts::new(), Instant::now());
        let key = |url: &str, token: &str| Key::of(&HttpTarget::new(url).header("a", token));
        verdicts.set(key("http://x", "1"), Some(Known::Sse), now);
        let found =
            |key: Key, hours: u64| verdicts.get(&key, now + Duration::from_secs(hours * 3600));
        assert_eq!(found(key("http://x", "1"), 23), Some(Known::Sse));
        assert_eq!(found(key("http://x", "1"), 25), None);
        assert_eq!(found(key("http://x", "2"), 1), None);
        assert_eq!(found(key("http://y", "1"), 1), None);
        verdicts.set(key("http://x", "1"), None, now);
        assert_eq!(found(key("http://x", "1"), 1), None);
    }

    #[test]
    fn the_verdict_cache_is_bounded() {
        let (verdicts, now) = (Verdicts::new(), Instant::now());
        let key = |n: usize| Key::of(&HttpTarget::new(format!("http://x/{n}")));
        for n in 0..=ENTRIES {
            verdicts.set(key(n), Some(Known::Stateful), now);
        }
        assert_eq!(verdicts.lock().len(), ENTRIES);
        assert_eq!(verdicts.get(&key(0), now), None);
        assert_eq!(verdicts.get(&key(ENTRIES), now), Some(Known::Stateful));
    }
}
