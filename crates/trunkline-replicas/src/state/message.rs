//! What the state machine is told, what it wants done, and the values that lie in the store.

use std::sync::Arc;
use std::time::Duration;

use trunkline_store::{Expect, Version};

/// The id of a replica, the nonce of a session, a URL.
pub(crate) type Name = Arc<str>;

/// A replica as a record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) id: Name,
    pub(crate) url: Name,
}

/// A replica as its heartbeat describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) owner: Owner,
    pub(crate) protocol: u32,
    /// How many sessions it owns.
    pub(crate) sessions: u64,
    /// How long it has been running, in seconds.
    pub(crate) age: u64,
}

/// What is written about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The protocol of the replica that wrote it.
    pub(crate) protocol: u32,
    pub(crate) ownership: Ownership,
    /// Grows with every owner.
    pub(crate) epoch: u64,
    /// What the endpoint wants to know of the session.
    pub(crate) body: Name,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Its owner answers for it.
    Owned(Owner),
    /// Its owner left when nobody else was there, or let go of the claim.
    Released,
    /// It has ended.
    Closed,
}

/// The replicas that must all vouch for one before it may answer without the store.
pub(crate) type Roster = Vec<Name>;

/// What a replica asks another, over the internal listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) from: Name,
    pub(crate) ask: Ask,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Are you there?
    Presence,
    /// Do you see me, and will you take nothing over from me for a while?
    Vouch,
    /// Have you vouched for this replica? If not, do not for a while.
    Refuse(Name),
}

/// The answer to a question, by whoever listens at the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) from: Name,
    pub(crate) yes: bool,
}

/// What the state machine is told.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Time has passed.
    Tick,
    /// What came of an operation.
    Done { op: u64, answer: Answer },
    /// A session begins here.
    Open { request: u64, session: Name, body: Name },
    /// Somebody wants to know where a session is. The hint is the replica that opened it.
    Locate { request: u64, session: Name, hint: Name },
    /// Somebody wants to know who holds a claim. If nobody does, this replica takes it.
    Claim { request: u64, name: Name },
    /// An owned claim is free from now on.
    Release { request: u64, name: Name },
    /// Somebody wants to know where a replica is.
    LocateReplica { request: u64, replica: Name },
    /// The record of an owned session has changed.
    Update { session: Name, body: Name },
    /// An owned session has been used.
    Used { session: Name },
    /// An owned session ends.
    Close { request: u64, session: Name },
    /// An owned session goes to another replica.
    HandOver { request: u64, session: Name },
    /// No session may begin here from now on.
    Drain,
    /// This replica ends: its sessions go to others.
    Leave { request: u64 },
}

/// What came of an operation.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A heartbeat was written.
    Written(Version),
    /// All heartbeats.
    Members(Vec<(Member, Version)>),
    /// The record of a session.
    Record(Option<(Record, Version)>),
    /// A record or a roster was compared and written.
    Swapped(Version),
    /// Another record was there, or none.
    Conflict(Option<(Record, Version)>),
    /// The roster of a replica; what was there, if another one was to be written.
    Roster(Option<(Roster, Version)>),
    /// The heartbeat of a replica.
    Heartbeat(Option<Member>),
    /// A peer's reply.
    Reply(Reply),
    /// Nobody answered in time. A write may have happened, or may happen later.
    Away,
}

/// What the state machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    WriteHeartbeat {
        op: u64,
        member: Member,
    },
    ReadMembers {
        op: u64,
    },
    ReadHeartbeat {
        op: u64,
        replica: Name,
    },
    SwapRoster {
        op: u64,
        expect: Expect,
        roster: Roster,
    },
    ReadRoster {
        op: u64,
        replica: Name,
    },
    Read {
        op: u64,
        session: Name,
    },
    Swap {
        op: u64,
        session: Name,
        expect: Expect,
        record: Record,
    },
    Ping {
        op: u64,
        to: Owner,
        question: Question,
    },
    /// Removes the heartbeat and the roster of this replica.
    Withdraw {
        op: u64,
    },
    /// This replica may answer until then; sessions owned in another generation are suspect.
    Lease {
        until: Duration,
        generation: u64,
    },
    /// This replica owns the session.
    Own {
        session: Name,
        epoch: u64,
        generation: u64,
    },
    /// It does not any more.
    Disown {
        session: Name,
    },
    /// To whoever asked.
    Tell {
        request: u64,
        verdict: Verdict,
    },
}

impl Output {
    /// The number of the operation that it wants, if it wants one.
    pub(crate) fn op(&self) -> Option<u64> {
        match self {
            Output::WriteHeartbeat { op, .. }
            | Output::ReadMembers { op }
            | Output::ReadHeartbeat { op, .. }
            | Output::SwapRoster { op, .. }
            | Output::ReadRoster { op, .. }
            | Output::Read { op, .. }
            | Output::Swap { op, .. }
            | Output::Ping { op, .. }
            | Output::Withdraw { op } => Some(*op),
            Output::Lease { .. }
            | Output::Own { .. }
            | Output::Disown { .. }
            | Output::Tell { .. } => None,
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The session or replica is here.
    Here,
    /// The session is here from now on, to be restored from this.
    TakenOver(Name),
    /// It is there.
    At(Owner),
    /// It is nowhere.
    Gone,
    /// Nobody can tell, or nobody may answer, for now.
    Unavailable,
    /// What was asked for is done.
    Done,
}
