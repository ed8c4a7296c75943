//! What an operation on a session's record came to, and what follows.

use std::cmp::Reverse;

use trunkline_store::{Expect, Version};

use super::super::State;
use super::super::message::{Answer, Name, Owner, Ownership, Record, Verdict};
use super::super::owners::Known;
use super::{Step, Why, Write, Written};

impl State {
    /// What an operation on the session's record came to.
    pub(in crate::state) fn answered(&mut self, session: &Name, answer: Answer) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        match (std::mem::take(&mut it.step), answer) {
            (Step::Reading, Answer::Record(found)) => self.interpret(session, found),
            (Step::Swapping(write), Answer::Swapped(version)) => {
                self.written(session, write, version);
            }
            (Step::Swapping(write), Answer::Conflict(found)) => {
                self.conflicted(session, write, found);
            }
            (Step::Swapping(write), _) => self.lost_sight(session, write),
            (Step::Checking(written), Answer::Record(found)) => {
                self.checked(session, written, found);
            }
            (Step::Checking(written), _) if written.write.why.is_served() => {
                let until = self.now + self.timing.retry;
                self.answer_closing(session, &Verdict::Unavailable);
                self.settle(session, Written { until, ..written });
            }
            _ => self.give_up(session),
        }
    }

    fn written(&mut self, session: &Name, write: Write, version: Version) {
        let until = self.now + self.timing.settle;
        let Some(it) = self.sessions.get_mut(session) else { return };
        it.conflicts = 0;
        match &write.why {
            Why::Open(request) => {
                let request = *request;
                // After a lapse somebody may have found us dead and taken the record.
                if write.generation != self.lease.generation || !self.is_leased() {
                    self.sessions.remove(session);
                    return self.tell(request, Verdict::Unavailable);
                }
                self.own(session, &write, version);
                self.tell(request, Verdict::Done);
                self.settle(session, Written { write, version, until });
            }
            Why::Take | Why::Reclaim => self.settle(session, Written { write, version, until }),
            Why::Update | Why::Recreate => {
                if let Some(claim) = &mut it.claim {
                    claim.version = version;
                    claim.written = write.sent;
                    // The body may have changed again meanwhile.
                    if claim.body == write.record.body {
                        it.due = None;
                    }
                }
                if write.why == Why::Recreate {
                    self.settle(session, Written { write, version, until });
                } else {
                    self.proceed(session);
                }
            }
            Why::Close => {
                self.disown(session);
                self.answer_waiting(session, &Verdict::Gone);
                self.answer_closing(session, &Verdict::Done);
                self.proceed(session);
            }
            Why::HandOver(request) => {
                let is_thing = it.is_thing;
                if let Ownership::Owned(heir) = &write.record.ownership {
                    self.owners.insert(session.clone(), Known::At(heir.id.clone()));
                    self.answer_waiting(session, &Verdict::At(heir.clone()));
                }
                self.handed_over(*request, Verdict::Done);
                match is_thing {
                    // Those who have asked for it meanwhile may have it.
                    true => self.proceed(session),
                    false => self.give_up(session),
                }
            }
        }
    }

    /// The record was not the one that the write expected.
    fn conflicted(&mut self, session: &Name, write: Write, found: Option<(Record, Version)>) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        it.conflicts += 1;
        let has_tries = it.conflicts < MOST_CONFLICTS;
        let epoch = match (&it.claim, &write.why) {
            (Some(claim), _) => claim.epoch,
            (None, Why::HandOver(_)) => write.record.epoch - 1,
            (None, Why::Take) if has_tries => return self.interpret(session, found),
            (None, Why::Open(request)) => {
                let request = *request;
                self.sessions.remove(session);
                return self.tell(request, Verdict::Unavailable);
            }
            (None, _) => return self.give_up(session),
        };
        let is_current = write.generation == self.lease.generation;
        match &found {
            // A write of ours whose answer was lost, or one before it after a failover.
            Some((record, version)) if is_mine(record, &self.me, epoch) && has_tries => {
                if let Some(claim) = &mut it.claim {
                    claim.version = *version;
                }
                self.swap(session, write.why, Expect::Version(*version), write.record);
            }
            // The store has lost it. Under a lease that never lapsed nobody else can have taken it.
            None if is_current && self.is_leased() && has_tries => match write.why {
                Why::Reclaim => self.fenced(session, &write, found),
                Why::Update => self.swap(session, Why::Recreate, Expect::Absent, write.record),
                why => self.swap(session, why, Expect::Absent, write.record),
            },
            _ => self.fenced(session, &write, found),
        }
    }

    /// The session belongs to somebody else, or to nobody.
    fn fenced(&mut self, session: &Name, write: &Write, found: Option<(Record, Version)>) {
        self.disown(session);
        self.answer_closing(session, &Verdict::Done);
        if let Why::HandOver(request) = write.why {
            self.handed_over(request, Verdict::Done);
        }
        self.interpret(session, found);
    }

    /// Nobody knows whether the record was written.
    fn lost_sight(&mut self, session: &Name, write: Write) {
        match write.why {
            Why::Open(request) => {
                self.sessions.remove(session);
                self.tell(request, Verdict::Unavailable);
            }
            Why::HandOver(request) => {
                self.keep_the_rest();
                self.handed_over(request, Verdict::Unavailable);
                self.give_up(session);
            }
            Why::Update | Why::Recreate => {
                let until = self.now + self.timing.patience;
                if let Some(it) = self.sessions.get_mut(session) {
                    it.due = Some(until);
                    self.timers.push(Reverse((until, session.clone())));
                }
                self.answer_closing(session, &Verdict::Unavailable);
                self.proceed(session);
            }
            Why::Take | Why::Reclaim | Why::Close => self.give_up(session),
        }
    }

    /// A claim was written a while ago. It counts if it is still there.
    fn checked(&mut self, session: &Name, written: Written, found: Option<(Record, Version)>) {
        let Written { write, version, .. } = written;
        let is_there = found.as_ref().is_some_and(|(_, at)| *at == version);
        let Some(it) = self.sessions.get_mut(session) else { return };
        match write.why {
            Why::Open(_) | Why::Recreate if is_there => self.proceed(session),
            Why::Open(_) | Why::Recreate => {
                // Writing it again tells whether it was lost or taken.
                it.due = Some(self.now);
                self.proceed(session);
            }
            _ if !is_there => {
                it.conflicts += 1;
                if it.conflicts >= MOST_CONFLICTS {
                    return self.give_up(session);
                }
                let claim = it.claim.as_ref();
                let epoch = claim.map_or(0, |claim| claim.epoch);
                if let Some((record, at)) = &found
                    && is_mine(record, &self.me, epoch)
                {
                    let at = *at;
                    if let Some(claim) = &mut it.claim {
                        claim.version = at;
                    }
                    return self.proceed(session);
                }
                if it.claim.is_some() {
                    self.disown(session);
                }
                self.interpret(session, found);
            }
            _ => {
                self.own(session, &write, version);
                self.proceed(session);
            }
        }
    }
}

fn is_mine(record: &Record, me: &Owner, epoch: u64) -> bool {
    let is_owner = matches!(&record.ownership, Ownership::Owned(owner) if owner.id == me.id);
    is_owner && record.epoch == epoch
}

/// How often those who wait for a session try again because others write its record.
const MOST_CONFLICTS: u8 = 5;
