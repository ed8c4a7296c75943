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
pub(crate) struct ListChanges {
    /// The instances that sent one.
    by: BTreeSet<u64>,
    /// When the first and the last one arrived.
    first: Option<Instant>,
    last: Option<Instant>,
    /// The refreshes of the last hour.
    refreshes: Hour<REFRESHES>,
    /// The current backoff.
    backoff: Duration,
    /// Whether a task handles them.
    is_handled: bool,
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
    Refresh(BTreeSet<u64>),
}

impl ListChanges {
    /// An instance sent a notification. Returns `true` if a task has to start handling them.
    pub(crate) fn notified(&mut self, instance: u64, now: Instant) -> bool {
        self.by.insert(instance);
        if self.by.len() > INSTANCES {
            // The oldest is the least likely to run still.
            self.by.pop_first();
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        !std::mem::replace(&mut self.is_handled, true)
    }

    /// What the handling task does next.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            self.is_handled = false;
            return Next::Rest;
        };
        let calm = (last + DEBOUNCE).min(first + LONGEST);
        let rested = self.refreshes.last().map(|it| it + self.backoff);
        let due = [Some(calm), rested, self.refreshes.room(now)].into_iter().flatten().max();
        let wait = due.map(|it| it.saturating_duration_since(now)).unwrap_or_default();
        if !wait.is_zero() {
            return Next::Wait(wait);
        }
        (self.first, self.last) = (None, None);
        self.refreshes.add(now);
        Next::Refresh(std::mem::take(&mut self.by))
    }

    /// Reports whether a refresh found a change.
    pub(crate) fn refreshed(&mut self, is_new: bool) {
        self.backoff = match is_new {
            true => Duration::ZERO,
            false => (self.backoff * 4).clamp(DEBOUNCE, LONGEST_BACKOFF),
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
    pub(crate) fn refreshes(&self, now: Instant) -> usize {
        self.refreshes.count(now)
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
pub(crate) const REFRESHES: usize = 120;
/// The bound on starts per hour that are made only to refresh.
const STARTS: usize = 12;
/// How many instances are remembered to have sent a notification.
const INSTANCES: usize = 64;
/// The debounce interval, extended to at most `LONGEST`.
const DEBOUNCE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// The longest backoff.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// An instance younger than this counts as starting.
const YOUNG: Duration = Duration::from_secs(5);
const HOUR: Duration = Duration::from_secs(60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// When refreshes happen within `time`, at a server that sends a notification every `every`.
    fn refreshes(every: Duration, time: Duration, is_new: impl Fn(usize) -> bool) -> Vec<Duration> {
        let (mut changes, start) = (ListChanges::default(), Instant::now());
        let (mut at, mut announced, mut refreshes) = (start, start, Vec::new());
        let mut is_handled = false;
        while at < start + time {
            while announced <= at {
                is_handled |= changes.notified(1, announced);
                announced += every;
            }
            assert!(is_handled);
            match changes.next(at) {
                Next::Wait(wait) => at = (at + wait).min(announced.max(at + MS)),
                Next::Refresh(by) => {
                    assert_eq!(by, BTreeSet::from([1]));
                    refreshes.push(at - start);
                    changes.refreshed(is_new(refreshes.len()));
                }
                Next::Rest => {
                    is_handled = false;
                    at = announced;
                }
            }
        }
        refreshes
    }

    #[test]
    fn notifications_that_arrive_together_cause_one_refresh() {
        let (mut changes, now) = (ListChanges::default(), Instant::now());
        assert!(changes.notified(1, now), "a task has to start");
        assert!(!changes.notified(2, now + 50 * MS) && !changes.notified(1, now + 90 * MS));
        assert_eq!(changes.next(now + 100 * MS), Next::Wait(90 * MS));
        assert_eq!(changes.next(now + 190 * MS), Next::Refresh(BTreeSet::from([1, 2])));
        assert!(!changes.notified(2, now + 200 * MS), "the task still runs");
        assert_eq!(changes.next(now + 200 * MS), Next::Wait(100 * MS));
        assert_eq!(changes.next(now + 300 * MS), Next::Refresh(BTreeSet::from([2])));
        assert_eq!(changes.next(now + 300 * MS), Next::Rest);
        assert!(changes.notified(1, now + 400 * MS));
    }

    #[test]
    fn a_server_that_never_stops_announcing_is_refreshed_after_a_second() {
        let refreshes = refreshes(50 * MS, 3_000 * MS, |_| true);
        assert_eq!(refreshes[0], LONGEST);
        assert!(refreshes.len() <= 3, "{refreshes:?}");
    }

    #[test]
    fn a_server_without_changes_is_refreshed_with_backoff() {
        let refreshed = refreshes(10 * MS, HOUR, |_| false);
        assert!(refreshed.len() <= 66, "{}", refreshed.len());
        assert!(
            refreshed.windows(2).skip(6).all(|it| it[1] - it[0] >= LONGEST_BACKOFF),
            "{refreshed:?}"
        );
        let refreshed = refreshes(10 * MS, 10 * LONGEST_BACKOFF, |look| look == 8);
        assert!(
            refreshed[8] - refreshed[7] <= LONGEST + 10 * MS,
            "something was new: {refreshed:?}"
        );
    }

    #[test]
    fn refreshes_per_hour_are_bounded() {
        let refreshed = refreshes(100 * MS, 2 * HOUR, |_| true);
        assert!(
            refreshed.windows(REFRESHES + 1).all(|it| it[REFRESHES] - it[0] >= HOUR),
            "{}",
            refreshed.len()
        );
        assert!(refreshed.len() > REFRESHES, "later it is looked at again");
    }

    #[test]
    fn starts_per_hour_for_a_refresh_are_bounded() {
        let (mut changes, now) = (ListChanges::default(), Instant::now());
        let started = (0..100).filter(|it| changes.start(now + *it * MS)).count();
        assert_eq!(started, STARTS);
        assert!(!changes.may_start(now + HOUR - MS) && changes.start(now + HOUR));
    }

    #[test]
    fn what_an_instance_lists_as_it_starts_is_no_change() {
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
