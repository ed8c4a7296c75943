//! Numbered messages → whether one is new (anti-replay window, RFC 4303 §3.4.3).
//!
//! A sender numbers its messages. A receiver remembers the newest number of each sender, and which of those
//! shortly before it have come. What is older than the window counts as seen.

use std::collections::VecDeque;

/// What has come, by sender.
#[derive(Debug, Default)]
pub(super) struct Replays {
    /// The sender heard last is at the end.
    senders: VecDeque<(String, Window)>,
}

#[derive(Debug)]
struct Window {
    newest: u64,
    /// A bit for each of the newest numbers, at the number modulo their count.
    seen: Box<[u64; WORDS]>,
}

impl Replays {
    /// Records a message. Returns whether it is new.
    pub(super) fn is_new(&mut self, sender: &str, number: u64) -> bool {
        let at = self.senders.iter().rposition(|(it, _)| it == sender);
        let known = at.and_then(|it| self.senders.remove(it));
        let (name, mut window) = known.unwrap_or_else(|| {
            if self.senders.len() >= MAX_SENDERS {
                self.senders.pop_front();
            }
            (sender.to_owned(), Window { newest: 0, seen: Box::new([0; WORDS]) })
        });
        let is_new = window.is_new(number);
        self.senders.push_back((name, window));
        is_new
    }
}

impl Window {
    fn is_new(&mut self, number: u64) -> bool {
        if number > self.newest {
            let skipped = (number - self.newest - 1).min(SPAN);
            for it in number - skipped..=number {
                self.set(it, false);
            }
            self.newest = number;
        } else if self.newest - number >= SPAN {
            return false;
        }
        !self.set(number, true)
    }

    /// Sets a bit, and returns what it was.
    fn set(&mut self, number: u64, to: bool) -> bool {
        let at = number % SPAN;
        let (word, bit) = (&mut self.seen[(at / 64) as usize], 1 << (at % 64));
        let was = *word & bit != 0;
        *word = if to { *word | bit } else { *word & !bit };
        was
    }
}

const WORDS: usize = 256;
/// How far behind the newest a message may come.
const SPAN: u64 = 64 * WORDS as u64;
/// A fleet has fewer replicas; a restarted one is another sender.
const MAX_SENDERS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_in_whatever_order() {
        let mut replays = Replays::default();
        for number in [1, 3, 2, 10_000, 9_999, 70_000, 70_001, 60_000] {
            assert!(replays.is_new("a", number), "{number}");
            assert!(!replays.is_new("a", number), "{number}");
        }
        assert!(!replays.is_new("a", 4), "older than the window");
        assert!(replays.is_new("b", 4), "another sender counts by itself");
        assert!(replays.is_new("a", u64::MAX));
        assert!(!replays.is_new("a", u64::MAX));
    }

    #[test]
    fn a_window_that_moves_forgets_what_was_at_the_same_bits() {
        let mut replays = Replays::default();
        for number in 1..=3 * SPAN {
            assert!(replays.is_new("a", number), "{number}");
        }
        assert!((2 * SPAN + 1..=3 * SPAN).all(|it| !replays.is_new("a", it)));
    }

    #[test]
    fn senders_are_bounded_and_the_one_heard_last_stays() {
        let mut replays = Replays::default();
        for sender in 0..MAX_SENDERS * 2 {
            assert!(replays.is_new("a", sender as u64 + 1));
            assert!(replays.is_new(&format!("b{sender}"), 1));
        }
        assert_eq!(replays.senders.len(), MAX_SENDERS);
        assert!(!replays.is_new("a", 1));
    }
}
