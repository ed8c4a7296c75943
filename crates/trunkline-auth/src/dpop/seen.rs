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

    fn check(most: usize, script: &str) {
        check_shares(most, most, script);
    }

    /// Plays lines of a time and the names that are seen then, each with what is said of it. The first letter of a name
    /// is its owner.
    fn check_shares(most: usize, share: usize, script: &str) {
        let mut seen = Seen::new(Duration::from_secs(10), most, share);
        for line in
            script.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'))
        {
            let (now, names) = line.split_once(": ").expect("a time and names");
            for sight in names.split(", ") {
                let (text, expected) = sight.split_once(' ').expect("a name and what is said");
                let mut name = [0; 32];
                name[..text.len()].copy_from_slice(text.as_bytes());
                let said = seen.see(&text[..1], name, at(now.parse().expect("seconds")));
                assert_eq!(format!("{said:?}").to_lowercase(), expected, "{line}: {text}");
            }
        }
    }

    #[test]
    fn nobody_takes_more_than_a_share() {
        check_shares(
            4,
            2,
            "100: a1 first, a1 again, a2 first, a3 full, a1 again
            109: b1 first, c1 first, b2 full
            # A new generation has new shares.
            110: a3 first, a4 first, a5 full, a2 again, b2 first",
        );
    }

    #[test]
    fn a_name_is_remembered_for_the_span_at_least() {
        check(
            9,
            "100: a first, a again
            109: b first
            # Exactly the span: `a` and `b` are the old generation now.
            110: c first
            119: a again, b again, c again
            # The next turn forgets them, and keeps `c`.
            120: a first, b first
            129: c again",
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_forgotten_for_it() {
        check(
            2,
            "100: a first, b first, c full
            109: c full, a again
            110: c first, a again, d first
            119: e full",
        );
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_nothing_and_goes_on_from_there() {
        check(
            2,
            "1000: a first, b first
            100: c full, a again
            110: c first, a again",
        );
    }
}
