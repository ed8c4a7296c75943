//! The data of the scheduler: instances, waiters and actions.

use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::pool::{Cause, Event, Profile, Want, Why};

/// One instance, from the order to start it until its process is gone.
pub(crate) struct Slot<H> {
    pub(crate) profile: Profile,
    pub(crate) phase: Phase<H>,
    /// The leases on it.
    pub(crate) in_flight: usize,
    /// How many holds keep it from being idle.
    pub(crate) held: usize,
    /// How many of the holds have work in it.
    pub(crate) at_work: usize,
    /// The affinity key that it is bound to, on a stateful server.
    // Invariant: `Some(key)` exactly while `bindings[key]` is this slot.
    pub(crate) bound: Option<Arc<str>>,
    /// The key that it was bound to last. While it drains or stops, its state is still that key's.
    pub(crate) was_bound: Option<Arc<str>>,
    /// The owner where instances are not shared: the first principal that used it; while it starts, the one
    /// that waits for it.
    // Invariant: once its owner has used it, this does not change.
    pub(crate) owner: Option<Arc<str>>,
    /// Whether it was opened with the owner's login, so that no other principal can ever use it.
    pub(crate) is_fixed: bool,
    /// Of a fixed one: its owner no longer waits for it, so it may make way.
    pub(crate) is_left: bool,
    /// The principal that used it last, or that it was started for.
    pub(crate) by: Arc<str>,
    /// Whether a caller has used it as a shared instance.
    pub(crate) is_common: bool,
    pub(crate) cause: Cause,
    /// When its start was ordered.
    pub(crate) since: Duration,
    /// The round of starts it belongs to.
    pub(crate) round: u64,
    /// When it was lent last, counted in leases: the lowest is next.
    pub(crate) given: u64,
    /// How often it was lent.
    pub(crate) uses: u64,
    /// The last client has disconnected: it stops as soon as it is idle.
    pub(crate) parting: bool,
}

pub(crate) enum Phase<H> {
    Starting {
        /// When the start times out.
        deadline: Duration,
        /// How many waiters count on it.
        expected: usize,
    },
    Ready {
        handle: H,
        since: Duration,
        /// When it was last used.
        last: Duration,
        /// When it is probed next; `None` for never.
        probe: Option<Duration>,
        /// Whether a probe is in flight: its end schedules the next one.
        probing: bool,
    },
    /// Calls continue, but it takes no new ones.
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
    /// A slot whose start is about to be ordered.
    pub(crate) fn new(profile: Profile, cause: Cause, round: u64, now: Duration) -> Self {
        Self {
            profile,
            phase: Phase::Starting { deadline: now, expected: 0 },
            in_flight: 0,
            held: 0,
            at_work: 0,
            bound: None,
            was_bound: None,
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

    /// Whether it may be lent to this want: no other principal has used it, or ownership does not matter.
    pub(crate) fn serves(&self, want: &Want) -> bool {
        match (&self.owner, &want.owner) {
            (own, owner) if self.is_fixed => own == owner,
            (_, None) => true,
            (Some(own), Some(owner)) => own == owner && !self.is_common,
            (None, Some(_)) => !self.is_common || !want.owns(),
        }
    }

    /// Records that it is lent, which may set its owner.
    pub(crate) fn lent(&mut self, want: &Want) {
        if self.by != want.by {
            self.by = Arc::clone(&want.by);
        }
        match &want.owner {
            // Listing leaves no state behind.
            _ if self.is_fixed || !want.owns() => {}
            Some(owner) if self.owner.is_none() => self.owner = Some(Arc::clone(owner)),
            Some(_) => {}
            None => self.is_common = true,
        }
    }

    /// Whether it is reserved: its owner waits for it and has not used it.
    pub(crate) fn is_reserved(&self) -> bool {
        self.is_ready() && self.uses == 0 && self.owner.is_some() && !self.is_left
    }

    /// Releases an unused instance whose owner no longer waits. Returns whether it was reserved.
    pub(crate) fn release_reservation(&mut self) -> bool {
        match self.is_fixed {
            true => !std::mem::replace(&mut self.is_left, true),
            false => self.owner.take().is_some(),
        }
    }

    /// Whether it was opened with at least this profile; if `owner` is given, whether it is shared or that
    /// owner's.
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

    /// Whether it serves or will serve.
    pub(crate) fn is_live(&self) -> bool {
        self.is_ready() || self.is_starting()
    }

    /// Whether stopping it now would cut off work.
    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight > 0 || self.at_work > 0
    }

    /// Ready, unused and not reserved.
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

/// A start that waits until a stopping process is gone.
pub(crate) struct Planned {
    pub(crate) profile: Profile,
    pub(crate) key: Option<Arc<str>>,
    /// The principal that will own it.
    pub(crate) owner: Option<Arc<str>>,
    /// The principal whose share it counts against.
    pub(crate) by: Arc<str>,
    pub(crate) cause: Cause,
    pub(crate) expected: usize,
}

/// A waiting caller. `W` is the channel to it.
pub(crate) struct Waiter<W> {
    pub(crate) ticket: u64,
    pub(crate) to: W,
    pub(crate) want: Want,
    pub(crate) since: Duration,
    pub(crate) deadline: Duration,
    /// The start that it counts on.
    pub(crate) on: Option<u64>,
}

/// The immediate answer to a want.
pub(crate) enum Asked<H> {
    Given {
        id: u64,
        handle: H,
        /// The principal whose share it counts against.
        by: Arc<str>,
    },
    Refused(Failure),
    /// The answer follows as an action; call `leave` with this ticket if the caller stops waiting.
    Waits(u64),
}

/// What the runner has to do.
pub(crate) enum Action<H, W> {
    Start {
        id: u64,
        profile: Profile,
        /// The principal that will own it.
        owner: Option<Arc<str>>,
    },
    /// A start is no longer wanted, or timed out.
    Abort {
        id: u64,
    },
    /// Call `ended` when this instance ends by itself.
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
    /// A parked call has to make way.
    MakeWay {
        ticket: u64,
    },
    Refuse {
        to: W,
        failure: Failure,
    },
    Tell(Event),
    /// The pool is closed and its last process is gone.
    Gone,
}
