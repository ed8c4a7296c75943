//! What the state is made of: instances, those who wait for one, and what is to be done.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::pool::{Cause, Event, Profile, Want, Why};

/// One instance, from the moment its start is ordered until its process is gone.
pub(crate) struct Slot<H> {
    pub(crate) profile: Profile,
    pub(crate) phase: Phase<H>,
    /// Leases on it.
    pub(crate) in_flight: usize,
    /// How many keep it from being idle without using it.
    pub(crate) held: usize,
    /// How many of those that hold it have work going on in it.
    pub(crate) at_work: usize,
    /// Whose it is, on a stateful server.
    // Invariant: `Some(key)` exactly while `bindings[key]` is this slot.
    pub(crate) bound: Option<Arc<str>>,
    /// Whose it is where instances are not shared: whoever used it first; while it is being started,
    /// whoever waits for it.
    // Invariant: once somebody has used it as their own, this does not change.
    pub(crate) owner: Option<Arc<str>>,
    /// Whether it was opened with the owner's own login, and so is nobody else's ever.
    pub(crate) is_fixed: bool,
    /// Of a fixed one: nobody waits for it any more, so it may make way.
    pub(crate) is_left: bool,
    /// Who used it last, or it was ordered for.
    pub(crate) by: Arc<str>,
    /// Whether somebody has used it as anybody's.
    pub(crate) is_common: bool,
    pub(crate) cause: Cause,
    /// When its start was ordered.
    pub(crate) since: Duration,
    /// Which attempt it was part of.
    pub(crate) round: u64,
    /// When it was given out last, counted in leases: the least is next in turn.
    pub(crate) given: u64,
    /// How often.
    pub(crate) uses: u64,
    /// The last client has left: it goes as soon as it is idle.
    pub(crate) parting: bool,
}

pub(crate) enum Phase<H> {
    Starting {
        /// When it has taken too long.
        deadline: Duration,
        /// How many waiters count on it.
        expected: usize,
    },
    Ready {
        handle: H,
        since: Duration,
        /// When somebody used it last.
        last: Duration,
        /// When it is probed next; `None` for never.
        probe: Option<Duration>,
        /// Whether it is being probed: the next one is set when this one is over.
        probing: bool,
    },
    /// Calls go on, but nobody new gets it.
    Draining {
        handle: H,
        why: Why,
        until: Duration,
    },
    Stopping {
        why: Why,
        since: Duration,
    },
}

impl<H> Slot<H> {
    /// One whose start is about to be ordered.
    pub(crate) fn new(profile: Profile, cause: Cause, round: u64, now: Duration) -> Self {
        Self {
            profile,
            phase: Phase::Starting { deadline: now, expected: 0 },
            in_flight: 0,
            held: 0,
            at_work: 0,
            bound: None,
            owner: None,
            is_fixed: false,
            is_left: false,
            by: Arc::default(),
            is_common: false,
            cause,
            since: now,
            round,
            given: 0,
            uses: 0,
            parting: false,
        }
    }

    /// Whether it may be lent to this: nobody else's work is in it, or whose it is makes no difference.
    pub(crate) fn serves(&self, want: &Want) -> bool {
        match (&self.owner, &want.owner) {
            (own, owner) if self.is_fixed => own == owner,
            (_, None) => true,
            (Some(own), Some(owner)) => own == owner && !self.is_common,
            (None, Some(_)) => !self.is_common || !want.owns(),
        }
    }

    /// It is lent, and is somebody's from now on.
    pub(crate) fn lent(&mut self, want: &Want) {
        if self.by != want.by {
            self.by = Arc::clone(&want.by);
        }
        match &want.owner {
            // A look at the lists leaves nothing behind.
            _ if self.is_fixed || !want.owns() => {}
            Some(owner) if self.owner.is_none() => self.owner = Some(Arc::clone(owner)),
            Some(_) => {}
            None => self.is_common = true,
        }
    }

    /// Whether it is kept for a principal that waits for it, and has not used it yet.
    pub(crate) fn is_reserved(&self) -> bool {
        self.is_ready() && self.uses == 0 && self.owner.is_some() && !self.is_left
    }

    /// Nobody has used it, and whoever it was kept for does not wait any more. Says whether it was kept.
    pub(crate) fn leave_to_others(&mut self) -> bool {
        match self.is_fixed {
            true => !std::mem::replace(&mut self.is_left, true),
            false => self.owner.take().is_some(),
        }
    }

    /// Whether it was opened for callers who can do at least as much as this; if `owner` says whose will do,
    /// it is nobody else's.
    pub(crate) fn is_as(&self, profile: Profile, owner: Option<&str>) -> bool {
        let is_ours = |own: &Arc<str>| owner.is_none_or(|owner| **own == *owner);
        profile.is_within(self.profile) && self.owner.as_ref().is_none_or(is_ours)
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    /// Whether it serves, or is going to.
    pub(crate) fn is_live(&self) -> bool {
        self.is_ready() || self.is_starting()
    }

    /// Whether something would be cut off if it went now.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight > 0 || self.at_work > 0
    }

    /// Ready, with nobody using it and nobody to keep it for.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_ready() && self.in_flight == 0 && self.held == 0 && self.bound.is_none()
    }

    pub(crate) fn last(&self) -> Duration {
        match self.phase {
            Phase::Ready { last, .. } => last,
            _ => self.since,
        }
    }

    pub(crate) fn expected(&mut self) -> Option<&mut usize> {
        match &mut self.phase {
            Phase::Starting { expected, .. } => Some(expected),
            _ => None,
        }
    }
}

/// A start that has to wait until a process that is going is gone.
pub(crate) struct Planned {
    pub(crate) profile: Profile,
    pub(crate) key: Option<Arc<str>>,
    /// Whose it will be.
    pub(crate) owner: Option<Arc<str>>,
    /// Whose share it comes out of.
    pub(crate) by: Arc<str>,
    pub(crate) cause: Cause,
    pub(crate) expected: usize,
}

/// Somebody who waits. `W` is how they are told.
pub(crate) struct Waiter<W> {
    pub(crate) ticket: u64,
    pub(crate) to: W,
    pub(crate) want: Want,
    pub(crate) since: Duration,
    pub(crate) deadline: Duration,
    /// The start that it counts on.
    pub(crate) on: Option<u64>,
}

/// What a want is answered with at once.
pub(crate) enum Asked<H> {
    Given(u64, H),
    Refused(Failure),
    /// The answer comes as an action; `leave` with this ticket if nobody waits for it any more.
    Waits(u64),
}

/// What is to be done.
pub(crate) enum Action<H, W> {
    Start {
        id: u64,
        profile: Profile,
        /// Whose it will be.
        owner: Option<Arc<str>>,
    },
    /// A start is not wanted any more, or takes too long.
    Abort {
        id: u64,
    },
    /// Tell `ended` when this one ends by itself.
    Watch {
        id: u64,
        handle: H,
    },
    Stop {
        id: u64,
        handle: H,
    },
    Probe {
        id: u64,
        handle: H,
        timeout: Duration,
    },
    Give {
        to: W,
        id: u64,
        handle: H,
        by: Arc<str>,
    },
    /// A call that waits for a person makes way.
    MakeWay {
        ticket: u64,
    },
    Refuse {
        to: W,
        failure: Failure,
    },
    Tell(Event),
    /// The pool was closed and its last process is gone.
    Gone,
}
