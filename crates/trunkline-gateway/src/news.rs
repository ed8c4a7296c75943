//! What instances announce of their lists → when these are looked at again, and whether anything is new.
//!
//! Servers announce whenever they like: as they start, after each list, all the time. So what is
//! announced together is looked at once, a server that announces and has nothing new is looked at less
//! and less often, and there is a bound for an hour. Nothing is started for it: it is the instance that
//! announced which is looked at, if it still runs.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use trunkline_wire::model::{ListChanged, ServerCapabilities, SubscriptionFilter};

use crate::merge::{Kind, Lists};

/// What was announced and not yet looked at.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Which instances announced something.
    by: BTreeSet<u64>,
    /// When the first and the last of it came.
    first: Option<Instant>,
    last: Option<Instant>,
    /// When somebody looked, in the last hour.
    looks: Hour<LOOKS>,
    /// How long nobody looks after that.
    pause: Duration,
    /// Whether somebody is seeing to it.
    is_seen_to: bool,
    /// When an instance was started only to see what had changed, in the last hour.
    starts: Hour<STARTS>,
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing, until somebody announces something.
    Rest,
    /// Ask again after this.
    Wait(Duration),
    /// Look at these instances.
    Look(BTreeSet<u64>),
}

impl News {
    /// An instance announced something. True if somebody has to begin to see to it.
    pub(crate) fn heard(&mut self, instance: u64, now: Instant) -> bool {
        self.by.insert(instance);
        if self.by.len() > INSTANCES {
            // The oldest is the one that is least likely to run.
            self.by.pop_first();
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        !std::mem::replace(&mut self.is_seen_to, true)
    }

    /// What whoever sees to it does now.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            self.is_seen_to = false;
            return Next::Rest;
        };
        let calm = (last + CALM).min(first + LONGEST);
        let rested = self.looks.last().map(|it| it + self.pause);
        let due = [Some(calm), rested, self.looks.room(now)].into_iter().flatten().max();
        let wait = due.map(|it| it.saturating_duration_since(now)).unwrap_or_default();
        if !wait.is_zero() {
            return Next::Wait(wait);
        }
        (self.first, self.last) = (None, None);
        self.looks.add(now);
        Next::Look(std::mem::take(&mut self.by))
    }

    /// Whether there was anything new when somebody looked.
    pub(crate) fn found(&mut self, is_new: bool) {
        self.pause = match is_new {
            true => Duration::ZERO,
            false => (self.pause * 4).clamp(CALM, REST),
        };
    }

    /// Whether an instance may be started to see what has changed, and notes that one is.
    pub(crate) fn start(&mut self, now: Instant) -> bool {
        let may = self.may_start(now);
        if may {
            self.starts.add(now);
        }
        may
    }

    pub(crate) fn may_start(&self, now: Instant) -> bool {
        self.starts.room(now).is_none()
    }

    /// How often somebody looked in the last hour.
    pub(crate) fn looks(&self, now: Instant) -> usize {
        self.looks.count(now)
    }
}

/// Moments of the last hour, at most so many.
#[derive(Debug, Default)]
struct Hour<const MOST: usize>(VecDeque<Instant>);

impl<const MOST: usize> Hour<MOST> {
    fn add(&mut self, now: Instant) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }

    fn last(&self) -> Option<Instant> {
        self.0.back().copied()
    }

    /// When there is room for one more, unless there is.
    fn room(&self, now: Instant) -> Option<Instant> {
        let oldest = self.0.front().filter(|_| self.0.len() >= MOST)?;
        Some(*oldest + HOUR).filter(|it| *it > now)
    }

    fn count(&self, now: Instant) -> usize {
        self.0.iter().filter(|it| now.saturating_duration_since(**it) < HOUR).count()
    }
}

/// What an instance said last, by the etags of its lists.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told([Box<str>; 4]);

impl Told {
    pub(crate) fn of(lists: &Lists) -> Self {
        Self(Kind::ALL.map(|kind| lists.etag_of(kind).into()))
    }

    /// Which lists of an instance that not everybody uses are others than when it was last looked at.
    /// Whoever looks for the first time compares with what is `known`. As it starts, an instance may list
    /// less than that, since it knows whom it was started for: then only what is `unlisted` is a change.
    pub(crate) fn changes(
        &self,
        age: Duration,
        before: Option<&Self>,
        known: Option<&Self>,
        unlisted: &[Kind],
    ) -> Vec<Kind> {
        let before = match before {
            None if age < YOUNG => return unlisted.to_vec(),
            None => known,
            before => before,
        };
        let etag = |told: &Self, kind: Kind| told.0[kind as usize].clone();
        let is_same = |kind: Kind| before.is_some_and(|it| etag(it, kind) == etag(self, kind));
        Kind::ALL.into_iter().filter(|kind| !is_same(*kind)).collect()
    }
}

/// The changes that a server says it announces.
pub(crate) fn announced_by(caps: &ServerCapabilities) -> SubscriptionFilter {
    let tells = |list: Option<ListChanged>| list.is_some_and(|it| it.list_changed);
    SubscriptionFilter::new()
        .tools_list_changed(tells(caps.tools))
        .prompts_list_changed(tells(caps.prompts))
        .resources_list_changed(caps.resources.is_some_and(|it| it.list_changed))
}

/// Most looks in an hour.
pub(crate) const LOOKS: usize = 120;
/// Most starts in an hour that are made only to see what has changed.
const STARTS: usize = 12;
/// Instances that are remembered to have announced something.
const INSTANCES: usize = 64;
/// What comes within this is one announcement, for no longer than `LONGEST`.
const CALM: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// The longest pause between looks that find nothing.
const REST: Duration = Duration::from_secs(60);
/// As long as an instance is no older, it is starting.
const YOUNG: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// How often is looked within `time`, at a server that announces something every `every`.
    fn looks(every: Duration, time: Duration, is_new: impl Fn(usize) -> bool) -> Vec<Duration> {
        let (mut news, start) = (News::default(), Instant::now());
        let (mut at, mut announced, mut looks) = (start, start, Vec::new());
        let mut is_seen_to = false;
        while at < start + time {
            while announced <= at {
                is_seen_to |= news.heard(1, announced);
                announced += every;
            }
            assert!(is_seen_to);
            match news.next(at) {
                Next::Wait(wait) => at = (at + wait).min(announced.max(at + MS)),
                Next::Look(by) => {
                    assert_eq!(by, BTreeSet::from([1]));
                    looks.push(at - start);
                    news.found(is_new(looks.len()));
                }
                Next::Rest => {
                    is_seen_to = false;
                    at = announced;
                }
            }
        }
        looks
    }

    #[test]
    fn what_is_announced_together_is_looked_at_once() {
        let (mut news, now) = (News::default(), Instant::now());
        assert!(news.heard(1, now), "somebody has to see to it");
        assert!(!news.heard(2, now + 50 * MS) && !news.heard(1, now + 90 * MS));
        assert_eq!(news.next(now + 100 * MS), Next::Wait(90 * MS));
        assert_eq!(news.next(now + 190 * MS), Next::Look(BTreeSet::from([1, 2])));
        assert!(!news.heard(2, now + 200 * MS), "whoever sees to it still does");
        assert_eq!(news.next(now + 200 * MS), Next::Wait(100 * MS));
        assert_eq!(news.next(now + 300 * MS), Next::Look(BTreeSet::from([2])));
        assert_eq!(news.next(now + 300 * MS), Next::Rest);
        assert!(news.heard(1, now + 400 * MS));
    }

    #[test]
    fn a_server_that_never_stops_announcing_is_looked_at_after_a_second() {
        let looks = looks(50 * MS, 3_000 * MS, |_| true);
        assert_eq!(looks[0], LONGEST);
        assert!(looks.len() <= 3, "{looks:?}");
    }

    #[test]
    fn a_server_that_has_nothing_new_is_left_alone_for_longer_and_longer() {
        let found = looks(10 * MS, HOUR, |_| false);
        assert!(found.len() <= 66, "{}", found.len());
        assert!(found.windows(2).skip(6).all(|it| it[1] - it[0] >= REST), "{found:?}");
        let found = looks(10 * MS, 10 * REST, |look| look == 8);
        assert!(found[8] - found[7] <= LONGEST + 10 * MS, "something was new: {found:?}");
    }

    #[test]
    fn no_server_is_looked_at_more_often_in_an_hour() {
        let found = looks(100 * MS, 2 * HOUR, |_| true);
        assert!(found.windows(LOOKS + 1).all(|it| it[LOOKS] - it[0] >= HOUR), "{}", found.len());
        assert!(found.len() > LOOKS, "later it is looked at again");
    }

    #[test]
    fn few_instances_are_started_for_what_has_changed() {
        let (mut news, now) = (News::default(), Instant::now());
        let started = (0..100).filter(|it| news.start(now + *it * MS)).count();
        assert_eq!(started, STARTS);
        assert!(!news.may_start(now + HOUR - MS) && news.start(now + HOUR));
    }

    #[test]
    fn what_an_instance_says_as_it_starts_is_no_change() {
        let told = |tools: &str| Told([tools, "p", "r", "t"].map(Box::from));
        let (known, own, other) = (told("all"), told("fewer"), told("more"));
        assert_eq!(own.changes(YOUNG / 2, None, Some(&known), &[]), []);
        let unlisted = [Kind::Prompts];
        assert_eq!(own.changes(YOUNG / 2, None, Some(&known), &unlisted), unlisted);
        assert_eq!(own.changes(YOUNG * 2, Some(&own), Some(&known), &[]), []);
        assert_eq!(other.changes(YOUNG / 2, Some(&own), Some(&known), &[]), [Kind::Tools]);
        assert_eq!(known.changes(YOUNG * 2, None, Some(&known), &[]), []);
        assert_eq!(own.changes(YOUNG * 2, None, Some(&known), &[]), [Kind::Tools]);
    }
}
