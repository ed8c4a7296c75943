//! Remembers which definitions a session has received. Pure.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// What was sent to which session: an LRU of 10,000 entries with a TTL of 30 minutes.
#[derive(Debug)]
pub(crate) struct Seen {
    most: usize,
    ttl: Duration,
    sent: HashMap<Key, Sent>,
    /// Least recently used first.
    order: BTreeMap<u64, Key>,
    turn: u64,
}

type Key = (Box<str>, Box<str>);

#[derive(Debug)]
struct Sent {
    at: Instant,
    turn: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self::new(10_000, Duration::from_secs(30 * 60))
    }
}

impl Seen {
    /// A memory with this bound and TTL.
    pub(crate) fn new(most: usize, ttl: Duration) -> Self {
        Self { most: most.max(1), ttl, sent: HashMap::new(), order: BTreeMap::new(), turn: 0 }
    }

    /// Whether this is new to the session; remembers it.
    pub(crate) fn is_new(&mut self, session: &str, digest: &str, now: Instant) -> bool {
        let key: Key = (session.into(), digest.into());
        self.turn += 1;
        let before = self.sent.remove(&key);
        if let Some(sent) = &before {
            self.order.remove(&sent.turn);
        }
        let still = before.filter(|sent| now.saturating_duration_since(sent.at) < self.ttl);
        let (is_new, at) = (still.is_none(), still.map_or(now, |sent| sent.at));
        self.order.insert(self.turn, key.clone());
        self.sent.insert(key, Sent { at, turn: self.turn });
        while self.sent.len() > self.most {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.sent.remove(&oldest);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_new_twice_in_a_session_within_half_an_hour() {
        let (mut seen, start) = (Seen::default(), Instant::now());
        let at = |minutes: u64| start + Duration::from_secs(minutes * 60);
        assert!(seen.is_new("s", "a", at(0)));
        assert!(!seen.is_new("s", "a", at(0)), "not even at the same moment");
        assert!(seen.is_new("t", "a", at(0)), "another session has not seen it");
        assert!(!seen.is_new("s", "a", at(29)));
        assert!(seen.is_new("s", "a", at(30)), "asking does not make it younger");
        assert!(!seen.is_new("s", "a", at(31)));
        assert!(seen.is_new("t", "a", at(31)));
    }

    #[test]
    fn the_one_asked_for_longest_ago_is_forgotten_first() {
        let (mut seen, now) = (Seen::new(2, Duration::from_secs(60)), Instant::now());
        assert!(seen.is_new("s", "a", now) && seen.is_new("s", "b", now));
        assert!(!seen.is_new("s", "a", now));
        assert!(seen.is_new("s", "c", now), "and `b` goes");
        assert!(!seen.is_new("s", "a", now));
        assert!(seen.is_new("s", "b", now));
        assert_eq!((seen.sent.len(), seen.order.len()), (2, 2));
    }
}
