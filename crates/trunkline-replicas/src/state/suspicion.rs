//! A replica whose heartbeat is gone: dead, or only out of sight?

use std::time::Duration;

use super::message::{Answer, Ask, Name, Output, Owner, Verdict};
use super::{Purpose, State};

/// What is known so far of a replica that may be dead, and which sessions wait for the verdict.
#[derive(Debug)]
pub(super) struct Suspicion {
    owner: Owner,
    /// Tells the answers to this suspicion from those to an earlier one of the same replica.
    number: u64,
    started: Duration,
    /// Whether it is sure that its peers do not vouch for it.
    unvouched: bool,
    /// Whether the roster is known and its members have been asked.
    is_asked: bool,
    /// How many members of its roster have yet to say whether they refuse.
    asked: usize,
    /// Whether the ping has come to nothing, or to somebody else.
    is_silent: bool,
    /// Whether another replica answers at its address.
    is_succeeded: bool,
    /// Whether its heartbeat is being read. Records read later than that wait for the next suspicion.
    is_last_step: bool,
    waiting: Vec<Name>,
    later: Vec<Name>,
}

/// Which question about a suspected replica an operation answers.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Roster,
    Ping,
    /// Whether this member of its roster refuses to vouch.
    Refusal(Name),
    Heartbeat,
}

impl State {
    /// Finds out whether `owner` is dead, on behalf of a session whose record has just been read.
    pub(super) fn suspect(&mut self, owner: &Owner, session: Name) {
        if let Some(suspicion) = self.suspicions.get_mut(&owner.id) {
            let list =
                if suspicion.is_last_step { &mut suspicion.later } else { &mut suspicion.waiting };
            return list.push(session);
        }
        self.start_suspicion(owner.clone(), vec![session]);
    }

    fn start_suspicion(&mut self, owner: Owner, waiting: Vec<Name>) {
        if self.promised.get(&owner.id).is_some_and(|until| *until > self.now) {
            // It said lately that it is there, and was told that nothing is taken from it.
            return self.resolve(waiting, &Verdict::Unavailable);
        }
        let replica = owner.id.clone();
        self.last_suspicion += 1;
        let number = self.last_suspicion;
        let purpose = |part| Purpose::Suspicion { replica: replica.clone(), number, part };
        let op = self.op(purpose(Part::Roster));
        self.out.push_back(Output::ReadRoster { op, replica: replica.clone() });
        self.ping(purpose(Part::Ping), owner.clone(), Ask::Presence);
        let suspicion = Suspicion {
            owner,
            number,
            started: self.now,
            unvouched: false,
            is_asked: false,
            asked: 0,
            is_silent: false,
            is_succeeded: false,
            is_last_step: false,
            waiting,
            later: Vec::new(),
        };
        self.suspicions.insert(replica, suspicion);
    }

    pub(super) fn suspicion_answered(
        &mut self,
        replica: &Name,
        number: u64,
        part: &Part,
        answer: Answer,
    ) {
        if self.suspicions.get(replica).is_none_or(|it| it.number != number) {
            return;
        }
        match part {
            Part::Roster => self.suspect_roster(replica, answer),
            Part::Ping => self.suspect_ping(replica, &answer),
            Part::Refusal(witness) => self.suspect_refusal(replica, witness, &answer),
            Part::Heartbeat => self.suspect_heartbeat(replica, answer),
        }
    }

    fn suspect_roster(&mut self, replica: &Name, answer: Answer) {
        let Answer::Roster(roster) = answer else {
            return self.end_suspicion(replica, &Verdict::Unavailable);
        };
        let roster = roster.map_or_else(Vec::new, |(roster, _)| roster);
        let mut witnesses = Vec::new();
        // While the suspicion lasts this replica vouches for nobody it suspects, and did not before.
        let unvouched = roster.is_empty() || roster.contains(&self.me.id);
        if !unvouched {
            let alive = roster.iter().filter_map(|id| self.members.get(id));
            witnesses.extend(alive.take(MOST_WITNESSES).map(|it| it.owner.clone()));
        }
        let Some(suspicion) = self.suspicions.get_mut(replica) else { return };
        suspicion.unvouched = unvouched;
        suspicion.is_asked = true;
        suspicion.asked = witnesses.len();
        let number = suspicion.number;
        for witness in witnesses {
            let part = Part::Refusal(witness.id.clone());
            let purpose = Purpose::Suspicion { replica: replica.clone(), number, part };
            self.ping(purpose, witness, Ask::Refuse(replica.clone()));
        }
        self.advance(replica);
    }

    fn suspect_ping(&mut self, replica: &Name, answer: &Answer) {
        let Some(suspicion) = self.suspicions.get_mut(replica) else { return };
        suspicion.is_silent = true;
        if let Answer::Reply(reply) = answer {
            if reply.from == *replica {
                let at = Verdict::At(suspicion.owner.clone());
                return self.end_suspicion(replica, &at);
            }
            suspicion.is_succeeded = true;
        }
        self.advance(replica);
    }

    fn suspect_refusal(&mut self, replica: &Name, witness: &Name, answer: &Answer) {
        let Some(suspicion) = self.suspicions.get_mut(replica) else { return };
        suspicion.asked -= 1;
        // A successor at the witness's address knows nothing of what the witness said.
        suspicion.unvouched |=
            matches!(answer, Answer::Reply(reply) if reply.yes && reply.from == *witness);
        self.advance(replica);
    }

    fn advance(&mut self, replica: &Name) {
        let Some(suspicion) = self.suspicions.get_mut(replica) else { return };
        if !suspicion.is_asked || !suspicion.is_silent || suspicion.is_last_step {
            return;
        }
        if suspicion.unvouched || suspicion.is_succeeded {
            suspicion.is_last_step = true;
            let (replica, number) = (replica.clone(), suspicion.number);
            let part = Part::Heartbeat;
            let op = self.op(Purpose::Suspicion { replica: replica.clone(), number, part });
            self.out.push_back(Output::ReadHeartbeat { op, replica });
        } else if suspicion.asked == 0 {
            self.end_suspicion(replica, &Verdict::Unavailable);
        }
    }

    fn suspect_heartbeat(&mut self, replica: &Name, answer: Answer) {
        let Some(suspicion) = self.suspicions.get_mut(replica) else { return };
        let is_late = self.now - suspicion.started > self.timing.suspicion;
        match answer {
            Answer::Heartbeat(Some(member)) => {
                self.members.insert(replica.clone(), member);
                let silent = std::mem::take(&mut suspicion.waiting);
                for session in silent {
                    self.owner_silent(&session);
                }
                self.end_suspicion(replica, &Verdict::Unavailable);
            }
            Answer::Heartbeat(None) if !is_late => {
                let dead = std::mem::take(&mut suspicion.waiting);
                for session in dead {
                    self.owner_died(&session);
                }
                self.end_suspicion(replica, &Verdict::Unavailable);
            }
            _ => self.end_suspicion(replica, &Verdict::Unavailable),
        }
    }

    /// Tells the sessions that still wait, and begins again for those whose records were read too late.
    fn end_suspicion(&mut self, replica: &Name, verdict: &Verdict) {
        let Some(suspicion) = self.suspicions.remove(replica) else { return };
        self.resolve(suspicion.waiting, verdict);
        if !suspicion.later.is_empty() {
            self.start_suspicion(suspicion.owner, suspicion.later);
        }
    }

    fn resolve(&mut self, sessions: Vec<Name>, verdict: &Verdict) {
        for session in sessions {
            self.owner_found(&session, verdict);
        }
    }
}

/// How many members of a roster are asked. One that refuses is enough.
const MOST_WITNESSES: usize = 3;
