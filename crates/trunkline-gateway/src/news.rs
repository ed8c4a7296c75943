//! Debounces `list_changed` notifications: decides when to refresh which instance's lists.
//!
//! Servers send them as they like: while they start, after each list, all the time. So notifications that
//! arrive together cause one refresh, a server without real changes is refreshed with exponential backoff, and
//! refreshes per hour are bounded. No instance is started for it: the gateway asks the instance that sent the
//! notification, if it still runs.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use trunkline_wire::model::{ListChanged, ServerCapabilities, SubscriptionFilter};

use crate::merge::{Kind, Lists};

/// Notifications that were not handled yet.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The instances that sent one.
    by: BTreeSet<u64>,
    /// When the first and the last one arrived.
    first: Option<Instant>,
    last: Option<Instant>,
    /// The refreshes of the last hour.
    looks: Hour<LOOKS>,
    /// The current backoff.
    pause: Duration,
    /// Whether a task handles them.
    is_seen_to: bool,
    /// The starts of the last hour that were made only to refresh.
    starts: Hour<STARTS>,
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing, until the next notification.
    Rest,
    /// Ask again after this time.
    Wait(Duration),
    /// Refresh these instances.
    Look(BTreeSet<u64>),
}

impl News {
    /// An instance sent a notification. Returns `true` if a task has to start handling them.
    pub(crate) fn heard(&mut self, instance: u64, now: Instant) -> bool {
        self.by.insert(instance);
        if self.by.len() > INSTANCES {
            // The oldest is the least likely to run still.
            self.by.pop_first();
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        !std::mem::replace(&mut self.is_seen_to, true)
    }

    /// What the handling task does next.
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

    /// Reports whether a refresh found a change.
    pub(crate) fn found(&mut self, is_new: bool) {
        self.pause = match is_new {
            true => Duration::ZERO,
            false => (self.pause * 4).clamp(CALM, REST),
        };
    }

    /// Whether an instance may be started to refresh; counts the start if so.
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

    /// The number of refreshes in the last hour.
    pub(crate) fn looks(&self, now: Instant) -> usize {
        self.looks.count(now)
    }
}

/// A sliding window of one hour with at most `MOST` entries.
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

    /// When the window has room again; `None` if it has room now.
    fn room(&self, now: Instant) -> Option<Instant> {
        let oldest = self.0.front().filter(|_| self.0.len() >= MOST)?;
        Some(*oldest + HOUR).filter(|it| *it > now)
    }

    fn count(&self, now: Instant) -> usize {
        self.0.iter().filter(|it| now.saturating_duration_since(**it) < HOUR).count()
    }
}

/// What an instance listed last, as etags.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told([Box<str>; 4]);

impl Told {
    pub(crate) fn of(lists: &Lists) -> Self {
        Self(Kind::ALL.map(|kind| lists.etag_of(kind).into()))
    }

    /// The lists that changed since the last refresh, for an instance that does not list the same to every
    /// caller. The first refresh compares with what is `known`. A young instance may list less than that,
    /// because it knows its caller's capabilities: then only `unlisted` definitions count as a change.
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

/// The changes that a server declares it announces.
pub(crate) fn announced_by(caps: &ServerCapabilities) -> SubscriptionFilter {
    let tells = |list: Option<ListChanged>| list.is_some_and(|it| it.list_changed);
    SubscriptionFilter::new()
        .tools_list_changed(tells(caps.tools))
        .prompts_list_changed(tells(caps.prompts))
        .resources_list_changed(caps.resources.is_some_and(|it| it.list_changed))
}

/// The bound on refreshes per hour.
pub(crate) const LOOKS: usize = 120;
/// The bound on starts per hour that are made only to refresh.
const STARTS: usize = 12;
/// How many instances are remembered to have sent a notification.
const INSTANCES: usize = 64;
/// The debounce interval, extended to at most `LONGEST`.
const CALM: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// The longest backoff.
const REST: Duration = Duration::from_secs(60);
/// An instance younger than this counts as starting.
const YOUNG: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// When refreshes happen within `time`, at a server that sends a notification every `every`.
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
