//! Names that were seen, each remembered long enough and no longer than twice that.

use std::collections::HashSet;
use std::mem;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two generations: the young one takes names; when it is `span` old it becomes the old one, and
/// what was old is forgotten. So nothing is searched for what may be forgotten.
pub(super) struct Seen {
    span: Duration,
    most: usize,
    since: SystemTime,
    young: HashSet<String>,
    old: HashSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sight {
    First,
    Again,
    /// No room for one more. Forgetting one instead would let it be shown again.
    Full,
}

impl Seen {
    /// Remembers every name for `span` at least, and at most `most` names of each generation.
    pub(super) fn new(span: Duration, most: usize) -> Self {
        Self { span, most, since: UNIX_EPOCH, young: HashSet::new(), old: HashSet::new() }
    }

    pub(super) fn see(&mut self, name: String, now: SystemTime) -> Sight {
        match now.duration_since(self.since) {
            Ok(age) if age >= self.span => {
                self.old = mem::take(&mut self.young);
                self.since = now;
            }
            Ok(_) => {}
            // The clock was set back: count from there, or nothing would ever be forgotten.
            Err(_) => self.since = now,
        }
        if self.old.contains(&name) || self.young.contains(&name) {
            return Sight::Again;
        }
        if self.young.len() >= self.most {
            return Sight::Full;
        }
        self.young.insert(name);
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
        let mut seen = Seen::new(Duration::from_secs(10), most);
        for (index, (name, now, expected)) in sights.iter().enumerate() {
            assert_eq!(seen.see((*name).to_owned(), at(*now)), *expected, "{index}: {name} {now}");
        }
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
