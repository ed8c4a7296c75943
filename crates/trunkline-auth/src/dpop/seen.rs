//! A replay cache: each name is remembered for at least one span and at most two.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The digest of a name.
pub(super) type Name = [u8; 32];

/// Two generations: names go into the young one; when it is `span` old it becomes the old one, and
/// the previous old one is dropped. So expiry needs no search.
pub(super) struct Seen {
    span: Duration,
    most: usize,
    share: usize,
    since: SystemTime,
    young: HashSet<Name>,
    old: HashSet<Name>,
    /// The number of young names per owner.
    shares: HashMap<String, usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sight {
    First,
    Again,
    /// No room for one more. Evicting one instead would allow its replay.
    Full,
}

impl Seen {
    /// Remembers every name for at least `span`; per generation at most `most` names, and at most
    /// `share` of one owner.
    pub(super) fn new(span: Duration, most: usize, share: usize) -> Self {
        let (young, old, shares) = (HashSet::new(), HashSet::new(), HashMap::new());
        Self { span, most, share, since: UNIX_EPOCH, young, old, shares }
    }

    pub(super) fn see(&mut self, owner: &str, name: Name, now: SystemTime) -> Sight {
        match now.duration_since(self.since) {
            Ok(age) if age >= self.span => {
                self.old = mem::take(&mut self.young);
                self.shares.clear();
                self.since = now;
            }
            Ok(_) => {}
            // The clock was set back: count from there, or nothing would ever expire.
            Err(_) => self.since = now,
        }
        if self.old.contains(&name) || self.young.contains(&name) {
            return Sight::Again;
        }
        let theirs = self.shares.get(owner).copied().unwrap_or_default();
        if self.young.len() >= self.most || theirs >= self.share {
            return Sight::Full;
        }
        self.young.insert(name);
        self.shares.insert(owner.to_owned(), theirs + 1);
        Sight::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn check(most: usize, sights: &[(&str, u64, Sight)]) {
        check_shares(most, most, sights);
    }

    /// The first letter of a name is its owner.
    fn check_shares(most: usize, share: usize, sights: &[(&str, u64, Sight)]) {
        let mut seen = Seen::new(Duration::from_secs(10), most, share);
        for (index, (text, now, expected)) in sights.iter().enumerate() {
            let mut name = [0; 32];
            name[..text.len()].copy_from_slice(text.as_bytes());
            let sight = seen.see(&text[..1], name, at(*now));
            assert_eq!(sight, *expected, "{index}: {text} {now}");
        }
    }

    #[test]
    fn nobody_takes_more_than_a_share() {
        use Sight::{Again, First, Full};
        check_shares(
            4,
            2,
            &[
                ("a1", 100, First),
                ("a1", 100, Again),
                ("a2", 100, First),
                ("a3", 100, Full),
                ("a1", 100, Again),
                ("b1", 109, First),
                ("c1", 109, First),
                ("b2", 109, Full),
                // A new generation has new shares.
                ("a3", 110, First),
                ("a4", 110, First),
                ("a5", 110, Full),
                ("a2", 110, Again),
                ("b2", 110, First),
            ],
        );
    }

    #[test]
    fn a_name_is_remembered_for_the_span_at_least() {
        use Sight::{Again, First};
        check(
            9,
            &[
                ("a", 100, First),
                ("a", 100, Again),
                ("b", 109, First),
                // Exactly the span: `a` and `b` are the old generation now.
                ("c", 110, First),
                ("a", 119, Again),
                ("b", 119, Again),
                ("c", 119, Again),
                // The next turn forgets them, and keeps `c`.
                ("a", 120, First),
                ("b", 120, First),
                ("c", 129, Again),
            ],
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_forgotten_for_it() {
        use Sight::{Again, First, Full};
        check(
            2,
            &[
                ("a", 100, First),
                ("b", 100, First),
                ("c", 100, Full),
                ("c", 109, Full),
                ("a", 109, Again),
                ("c", 110, First),
                ("a", 110, Again),
                ("d", 110, First),
                ("e", 119, Full),
            ],
        );
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_nothing_and_goes_on_from_there() {
        use Sight::{Again, First, Full};
        check(
            2,
            &[
                ("a", 1_000, First),
                ("b", 1_000, First),
                ("c", 100, Full),
                ("a", 100, Again),
                ("c", 110, First),
                ("a", 110, Again),
            ],
        );
    }
}
