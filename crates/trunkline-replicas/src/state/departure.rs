//! Leaving: sessions go to others, a few at a time, and then this replica withdraws.

use super::message::{Name, Output, Verdict};
use super::{Purpose, State};

/// How far this replica is with leaving.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Departure {
    Staying,
    /// It opens no sessions and takes none over.
    Draining,
    /// It hands its sessions to others.
    Leaving {
        requests: Vec<u64>,
        left: Vec<Name>,
        under_way: usize,
    },
    /// It has no lease any more and removes its heartbeat.
    Withdrawing {
        requests: Vec<u64>,
    },
    Gone,
}

impl Departure {
    /// Whether this replica has given up its lease for good.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Departure::Withdrawing { .. } | Departure::Gone)
    }
}

impl State {
    pub(super) fn is_draining(&self) -> bool {
        self.departure != Departure::Staying
    }

    pub(super) fn drain(&mut self) {
        if self.departure == Departure::Staying {
            self.departure = Departure::Draining;
        }
    }

    pub(super) fn leave(&mut self, request: u64) {
        match &mut self.departure {
            Departure::Leaving { requests, .. } | Departure::Withdrawing { requests } => {
                requests.push(request);
            }
            Departure::Gone => self.tell(request, Verdict::Done),
            Departure::Staying | Departure::Draining => {
                let owned = self.sessions.iter().filter(|(_, it)| it.claim.is_some());
                let left = owned.map(|(name, _)| name.clone()).collect();
                self.departure = Departure::Leaving { requests: vec![request], left, under_way: 0 };
            }
        }
    }

    /// A session was given away, or could not be.
    pub(super) fn handed_over(&mut self, request: Option<u64>, verdict: Verdict) {
        match (request, &mut self.departure) {
            (Some(request), _) => self.tell(request, verdict),
            (None, Departure::Leaving { under_way, .. }) => *under_way -= 1,
            (None, _) => {}
        }
    }

    /// The store is away: what is left is not handed over, but taken over later.
    pub(super) fn keep_the_rest(&mut self) {
        if let Departure::Leaving { left, .. } = &mut self.departure {
            left.clear();
        }
    }

    /// Hands the next sessions over, and withdraws after the last.
    pub(super) fn depart(&mut self) {
        while let Departure::Leaving { left, under_way, requests } = &mut self.departure {
            if *under_way >= AT_ONCE {
                return;
            }
            if let Some(session) = left.pop() {
                *under_way += 1;
                self.hand_over(None, &session);
                continue;
            }
            if *under_way == 0 {
                let requests = std::mem::take(requests);
                self.departure = Departure::Withdrawing { requests };
                // Nobody may find the heartbeat gone while this replica answers.
                self.end_lease();
                let op = self.op(Purpose::Withdraw);
                self.out.push_back(Output::Withdraw { op });
            }
            return;
        }
    }

    pub(super) fn withdrawn(&mut self) {
        if let Departure::Withdrawing { requests } =
            std::mem::replace(&mut self.departure, Departure::Gone)
        {
            for request in requests {
                self.tell(request, Verdict::Done);
            }
        }
    }
}

/// How many sessions are handed over at a time.
const AT_ONCE: usize = 64;
