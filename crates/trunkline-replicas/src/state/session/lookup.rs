//! Where a session is that this replica has no claim to: its record, and what is known of its owner.

use std::cmp::Reverse;

use trunkline_store::{Expect, Version};

use super::super::State;
use super::super::message::{Name, Owner, Ownership, Record, Verdict};
use super::super::owners::Known;
use super::{Step, Why};

impl State {
    /// What a record says to those who wait, if this replica has no claim.
    pub(super) fn interpret(&mut self, session: &Name, found: Option<(Record, Version)>) {
        let Some((record, version)) = found else {
            // The store may have lost everything: the owner, not seen again yet, still has it.
            let missed =
                self.sessions.get(session).and_then(|it| self.missing.get(it.owner.as_ref()?));
            let verdict = missed.map(|(owner, _)| Verdict::At(owner.clone()));
            return match verdict {
                Some(verdict) => self.found(session, &verdict),
                None if self.is_thing(session) => self.make(session),
                None => self.found(session, &Verdict::Gone),
            };
        };
        let owner = match &record.ownership {
            Ownership::Closed => return self.found(session, &Verdict::Gone),
            Ownership::Owned(owner) if owner.id != self.me.id => Some(owner.clone()),
            _ => None,
        };
        let is_waited_for = self.sessions.get(session).is_some_and(|it| !it.waiting.is_empty());
        let can_take = self.is_leased()
            && !self.is_draining()
            && is_waited_for
            && record.protocol <= self.protocol;
        if let Some(owner) = &owner
            && self.members.contains_key(&owner.id)
            // Somebody asked there in vain: it may be dead, although its heartbeat lasts.
            && !(can_take && self.owners.get(session) == Some(&Known::Not(owner.id.clone())))
        {
            self.owners.insert(session.clone(), Known::At(owner.id.clone()));
            return self.found(session, &Verdict::At(owner.clone()));
        }
        if !can_take {
            return self.found(session, &Verdict::Unavailable);
        }
        match owner {
            None => self.take(session, record, version),
            Some(owner) => {
                if let Some(it) = self.sessions.get_mut(session) {
                    it.step = Step::Suspecting { record, version };
                }
                self.suspect(&owner, session.clone());
            }
        }
    }

    /// The suspected owner was found: somewhere, or not at all.
    pub(in crate::state) fn owner_found(&mut self, session: &Name, verdict: &Verdict) {
        if let Some(it) = self.sessions.get_mut(session)
            && matches!(it.step, Step::Suspecting { .. })
        {
            it.step = Step::Idle;
            if let Verdict::At(owner) = verdict {
                self.owners.insert(session.clone(), Known::At(owner.id.clone()));
            }
            self.found(session, verdict);
        }
    }

    /// The suspected owner does not answer, but its heartbeat lasts. If it is dead, that is over soon.
    pub(in crate::state) fn owner_silent(&mut self, session: &Name) {
        let until = self.now + self.timing.retry;
        let Some(it) = self.sessions.get_mut(session) else { return };
        let since = it.since.unwrap_or(self.now);
        if since + self.timing.heartbeat_ttl + self.timing.heartbeat < self.now {
            return self.owner_found(session, &Verdict::Unavailable);
        }
        it.step = Step::Pausing { until };
        self.timers.push(Reverse((until, session.clone())));
    }

    /// The suspected owner had no lease when its heartbeat was looked for, which was after the record was read.
    pub(in crate::state) fn owner_died(&mut self, session: &Name) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        match std::mem::take(&mut it.step) {
            Step::Suspecting { record, version } => self.take(session, record, version),
            step => it.step = step,
        }
    }

    fn is_thing(&self, session: &Name) -> bool {
        self.sessions.get(session).is_some_and(|it| it.is_thing)
    }

    /// Claims a thing that nobody has claimed before.
    fn make(&mut self, name: &Name) {
        let is_waited_for = self.sessions.get(name).is_some_and(|it| !it.waiting.is_empty());
        if !self.is_leased() || self.is_draining() || !is_waited_for {
            return self.found(name, &Verdict::Unavailable);
        }
        // Its own name, for whoever reads the store.
        let record = self.record(1, format!("{:?}", &**name).into());
        self.swap(name, Why::Take, Expect::Absent, record);
    }

    pub(super) fn take(&mut self, session: &Name, record: Record, version: Version) {
        if !self.is_leased() || self.is_draining() {
            return self.found(session, &Verdict::Unavailable);
        }
        let record = self.record(record.epoch + 1, record.body);
        self.swap(session, Why::Take, Expect::Version(version), record);
    }

    /// The replica at which the session was last found, if it is another and alive as far as known.
    pub(crate) fn found_lately(&mut self, session: &str) -> Option<&Owner> {
        if self.sessions.get(session).is_some_and(|it| it.claim.is_some()) {
            return None;
        }
        match self.owners.get(session) {
            Some(Known::At(owner)) => self.members.get(owner).map(|it| &it.owner),
            _ => None,
        }
    }

    pub(super) fn known_owner(&mut self, session: &Name, hint: &Name) -> Option<Owner> {
        let id = match self.owners.get(session) {
            Some(Known::At(owner)) => owner.clone(),
            Some(Known::Not(_)) => return None,
            None => hint.clone(),
        };
        self.members.get(&id).map(|it| it.owner.clone())
    }
}
