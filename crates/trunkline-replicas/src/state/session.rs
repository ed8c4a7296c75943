//! One session: its claim, and the one operation on its record that is under way.

use std::cmp::Reverse;
use std::time::Duration;

use trunkline_store::{Expect, Version};

use super::message::{Answer, Name, Output, Owner, Ownership, Record, Verdict};
use super::{Known, Purpose, State};

/// A session that this replica owns, or that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) claim: Option<Claim>,
    step: Step,
    /// Who wants to know where it is.
    waiting: Vec<u64>,
    /// Who wants it to end.
    closing: Vec<u64>,
    /// Whether it is to go to another replica, and who wants to know when it has.
    handing: Option<Option<u64>>,
    /// Whether its record must be written, and from when on.
    due: Option<Duration>,
    /// Who was thought to own it.
    owner: Option<Name>,
    /// How often the record was another than expected, for those who wait.
    conflicts: u8,
}

/// What this replica knows of a session that it owns.
// Invariant: it counts only if its generation is the lease's.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    version: Version,
    pub(super) epoch: u64,
    pub(super) generation: u64,
    body: Name,
    /// When its record was last written.
    written: Duration,
    /// Whether nobody was told yet that it has been taken over and must be restored.
    untold: bool,
}

/// The operation under way. There is at most one.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    Reading,
    /// The owner in this record may be dead.
    Suspecting {
        record: Record,
        version: Version,
    },
    Swapping(Write),
    /// A claim was written; before it counts it must still be there.
    Settling(Written),
    Checking(Written),
}

/// A record that is being written, why, and under which lease.
#[derive(Clone, Debug)]
struct Write {
    why: Why,
    record: Record,
    generation: u64,
    sent: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    /// A new session; tell this request.
    Open(u64),
    /// A session of another replica, or of nobody.
    Take,
    /// A session of ours whose lease had lapsed.
    Reclaim,
    /// A session of ours has changed or is in use.
    Update,
    /// The store has lost a session of ours.
    Recreate,
    Close,
    /// To another replica; tell this request, if there is one.
    HandOver(Option<u64>),
}

impl Why {
    /// Whether the session is served before the write settles.
    fn is_served(&self) -> bool {
        matches!(self, Why::Open(_) | Why::Recreate)
    }
}

/// A record that was written.
#[derive(Clone, Debug)]
struct Written {
    write: Write,
    version: Version,
    until: Duration,
}

impl State {
    pub(super) fn open(&mut self, request: u64, session: Name, body: Name) {
        if !self.is_leased() || self.is_draining() || self.sessions.contains_key(&session) {
            return self.tell(request, Verdict::Unavailable);
        }
        self.sessions.insert(session.clone(), Session::default());
        let record = self.record(1, body);
        self.swap(&session, Why::Open(request), Expect::Absent, record);
    }

    pub(super) fn locate(&mut self, request: u64, session: Name, hint: &Name) {
        if let Some(it) = self.sessions.get(&session)
            && let Some(claim) = &it.claim
        {
            if self.counts(claim) {
                return self.tell_here(&session, vec![request]);
            }
            if !self.is_leased() {
                return self.tell(request, Verdict::Unavailable);
            }
        } else if let Some(owner) = self.known_owner(&session, hint) {
            return self.tell(request, Verdict::At(owner));
        } else if self.scanned.is_none() {
            return self.tell(request, Verdict::Unavailable);
        }
        let it = self.sessions.entry(session.clone()).or_default();
        if it.waiting.len() >= MOST_WAITING {
            return self.tell(request, Verdict::Unavailable);
        }
        it.waiting.push(request);
        it.owner = Some(match self.owners.get(&session) {
            Some(Known::At(owner)) => owner.clone(),
            _ => hint.clone(),
        });
        self.proceed(&session);
    }

    pub(super) fn update(&mut self, session: &Name, body: Name) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        let Some(claim) = &mut it.claim else { return };
        claim.body = body;
        it.due = Some(self.now);
        self.proceed(session);
    }

    pub(super) fn used(&mut self, session: &Name) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        let Some(claim) = &it.claim else { return };
        if self.now >= claim.written + self.timing.touch {
            it.due = it.due.or(Some(self.now));
            self.proceed(session);
        }
    }

    pub(super) fn close(&mut self, request: u64, session: &Name) {
        match self.sessions.get_mut(session) {
            Some(it) if it.claim.is_some() => it.closing.push(request),
            _ => return self.tell(request, Verdict::Done),
        }
        self.proceed(session);
    }

    /// Gives an owned session away as soon as nothing else is under way.
    pub(super) fn hand_over(&mut self, request: Option<u64>, session: &Name) {
        match self.sessions.get_mut(session) {
            Some(it) if it.claim.is_some() && it.handing.is_none() => it.handing = Some(request),
            _ => return self.handed_over(request, Verdict::Unavailable),
        }
        self.proceed(session);
    }

    /// The session is not answered for from here on, whatever becomes of the write.
    fn give_away(&mut self, session: &Name, claim: &Claim, request: Option<u64>) {
        let heirs: Vec<_> =
            self.members.values().filter(|it| it.protocol >= self.protocol).collect();
        let ownership = match heirs.get(spread(session) % heirs.len().max(1)) {
            Some(heir) => Ownership::Owned(heir.owner.clone()),
            None => Ownership::Released,
        };
        let record = Record { ownership, ..self.record(claim.epoch + 1, claim.body.clone()) };
        self.disown(session);
        self.swap(session, Why::HandOver(request), Expect::Version(claim.version), record);
    }

    /// A timer of the session has gone off.
    pub(super) fn wake(&mut self, session: &Name) {
        self.proceed(session);
    }

    /// Does the next thing that the session needs, unless something is under way.
    fn proceed(&mut self, session: &Name) {
        let now = self.now;
        let Some(it) = self.sessions.get_mut(session) else { return };
        match &mut it.step {
            Step::Idle => {}
            Step::Settling(written) if written.until <= now => {
                it.step = Step::Checking(written.clone());
                return self.read(session);
            }
            _ => return,
        }
        let Some(claim) = it.claim.clone() else {
            if it.waiting.is_empty() {
                self.sessions.remove(session);
            } else {
                it.step = Step::Reading;
                self.read(session);
            }
            return;
        };
        if !self.counts(&claim) {
            return self.doubt(session, &claim);
        }
        let waiting = self.waiting(session);
        self.tell_here(session, waiting);
        let Some(it) = self.sessions.get_mut(session) else { return };
        let expect = Expect::Version(claim.version);
        if !it.closing.is_empty() {
            let record = self.record(claim.epoch, claim.body);
            let record = Record { ownership: Ownership::Closed, ..record };
            self.swap(session, Why::Close, expect, record);
        } else if let Some(request) = it.handing.take() {
            self.give_away(session, &claim, request);
        } else if it.due.is_some_and(|due| due <= now) {
            let record = self.record(claim.epoch, claim.body);
            self.swap(session, Why::Update, expect, record);
        }
    }

    /// What to do about a session whose claim was made under another lease, or when there is none.
    fn doubt(&mut self, session: &Name, claim: &Claim) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        if let Some(request) = it.handing.take() {
            self.disown(session);
            self.handed_over(request, Verdict::Unavailable);
            return self.give_up(session);
        }
        let is_wanted = !it.waiting.is_empty() || !it.closing.is_empty();
        if !self.is_leased() {
            self.answer_waiting(session, &Verdict::Unavailable);
            self.answer_closing(session, &Verdict::Unavailable);
        } else if is_wanted {
            let record = self.record(claim.epoch, claim.body.clone());
            self.swap(session, Why::Reclaim, Expect::Version(claim.version), record);
        }
    }

    /// What an operation on the session's record came to.
    pub(super) fn answered(&mut self, session: &Name, answer: Answer) {
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
                if let Ownership::Owned(heir) = &write.record.ownership {
                    self.owners.insert(session.clone(), Known::At(heir.id.clone()));
                    self.answer_waiting(session, &Verdict::At(heir.clone()));
                }
                self.handed_over(*request, Verdict::Done);
                self.give_up(session);
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

    /// What a record says to those who wait, if this replica has no claim.
    fn interpret(&mut self, session: &Name, found: Option<(Record, Version)>) {
        let Some((record, version)) = found else {
            // The store may have lost everything: the owner, not seen again yet, still has it.
            let missed =
                self.sessions.get(session).and_then(|it| self.missing.get(it.owner.as_ref()?));
            let verdict = missed.map_or(Verdict::Gone, |(owner, _)| Verdict::At(owner.clone()));
            return self.found(session, &verdict);
        };
        let owner = match &record.ownership {
            Ownership::Closed => return self.found(session, &Verdict::Gone),
            Ownership::Owned(owner) if owner.id != self.me.id => Some(owner.clone()),
            _ => None,
        };
        if let Some(owner) = &owner
            && self.members.contains_key(&owner.id)
        {
            self.owners.insert(session.clone(), Known::At(owner.id.clone()));
            return self.found(session, &Verdict::At(owner.clone()));
        }
        let is_waited_for = self.sessions.get(session).is_some_and(|it| !it.waiting.is_empty());
        let can_take = self.is_leased() && !self.is_draining() && is_waited_for;
        if !can_take || record.protocol > self.protocol {
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
    pub(super) fn owner_found(&mut self, session: &Name, verdict: &Verdict) {
        if let Some(it) = self.sessions.get_mut(session)
            && matches!(it.step, Step::Suspecting { .. })
        {
            it.step = Step::Idle;
            self.found(session, verdict);
        }
    }

    /// The suspected owner had no lease when its heartbeat was looked for, which was after the record was read.
    pub(super) fn owner_died(&mut self, session: &Name) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        match std::mem::take(&mut it.step) {
            Step::Suspecting { record, version } => self.take(session, record, version),
            step => it.step = step,
        }
    }

    fn take(&mut self, session: &Name, record: Record, version: Version) {
        if !self.is_leased() || self.is_draining() {
            return self.found(session, &Verdict::Unavailable);
        }
        let record = self.record(record.epoch + 1, record.body);
        self.swap(session, Why::Take, Expect::Version(version), record);
    }

    /// Writes the records of all owned sessions again, a few at a time: the store has lost something.
    pub(super) fn rewrite_all(&mut self) {
        let mut at = self.now;
        for (number, (session, it)) in (1..).zip(&mut self.sessions) {
            if it.claim.is_some() {
                it.due = Some(at);
                self.timers.push(Reverse((at, session.clone())));
            }
            if number % REWRITTEN_AT_ONCE == 0 {
                at += REWRITE_PAUSE;
            }
        }
    }

    fn found(&mut self, session: &Name, verdict: &Verdict) {
        self.answer_waiting(session, verdict);
        self.proceed(session);
    }

    fn give_up(&mut self, session: &Name) {
        self.answer_closing(session, &Verdict::Unavailable);
        self.found(session, &Verdict::Unavailable);
    }

    fn read(&mut self, session: &Name) {
        let op = self.op(Purpose::Session(session.clone()));
        self.out.push_back(Output::Read { op, session: session.clone() });
    }

    fn swap(&mut self, session: &Name, why: Why, expect: Expect, record: Record) {
        let (generation, sent) = (self.lease.generation, self.now);
        let Some(it) = self.sessions.get_mut(session) else { return };
        it.step = Step::Swapping(Write { why, record: record.clone(), generation, sent });
        let op = self.op(Purpose::Session(session.clone()));
        self.out.push_back(Output::Swap { op, session: session.clone(), expect, record });
    }

    fn settle(&mut self, session: &Name, written: Written) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        self.timers.push(Reverse((written.until, session.clone())));
        it.step = Step::Settling(written);
    }

    fn own(&mut self, session: &Name, write: &Write, version: Version) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        let Write { record, generation, sent, .. } = write;
        let (epoch, generation) = (record.epoch, *generation);
        // A body that was given meanwhile is newer than the one that was written.
        let body = it.claim.as_ref().map_or(&record.body, |claim| &claim.body).clone();
        if body == record.body {
            it.due = None;
        }
        let untold = match &it.claim {
            Some(claim) => claim.untold,
            None => write.why == Why::Take,
        };
        let claim = Claim { version, epoch, generation, body, written: *sent, untold };
        self.owned += u64::from(it.claim.replace(claim).is_none());
        it.conflicts = 0;
        self.owners.remove(session);
        self.out.push_back(Output::Own { session: session.clone(), epoch, generation });
    }

    fn disown(&mut self, session: &Name) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        it.due = None;
        if it.claim.take().is_some() {
            self.owned -= 1;
            self.out.push_back(Output::Disown { session: session.clone() });
        }
    }

    /// Whether this replica may answer under the claim.
    fn counts(&self, claim: &Claim) -> bool {
        claim.generation == self.lease.generation && self.is_leased()
    }

    /// The first to hear of a session that was taken over restores it.
    fn tell_here(&mut self, session: &Name, requests: Vec<u64>) {
        for request in requests {
            let claim = self.sessions.get_mut(session).and_then(|it| it.claim.as_mut());
            let verdict = match claim.filter(|it| it.untold) {
                Some(claim) => {
                    claim.untold = false;
                    Verdict::TakenOver(claim.body.clone())
                }
                None => Verdict::Here,
            };
            self.tell(request, verdict);
        }
    }

    /// Whether the record of an owned session is as safe as it will be.
    #[cfg(test)]
    pub(super) fn has_settled(&self, session: &Name) -> bool {
        let it = self.sessions.get(session);
        it.is_some_and(|it| it.claim.is_some() && matches!(it.step, Step::Idle) && it.due.is_none())
    }

    fn known_owner(&mut self, session: &Name, hint: &Name) -> Option<Owner> {
        let id = match self.owners.get(session) {
            Some(Known::At(owner)) => owner.clone(),
            Some(Known::Unsure) => return None,
            None => hint.clone(),
        };
        self.members.get(&id).map(|it| it.owner.clone())
    }

    fn answer_waiting(&mut self, session: &Name, verdict: &Verdict) {
        for request in self.waiting(session) {
            self.tell(request, verdict.clone());
        }
    }

    fn waiting(&mut self, session: &Name) -> Vec<u64> {
        let Some(it) = self.sessions.get_mut(session) else { return Vec::new() };
        it.conflicts = 0;
        std::mem::take(&mut it.waiting)
    }

    fn answer_closing(&mut self, session: &Name, verdict: &Verdict) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        for request in std::mem::take(&mut it.closing) {
            self.tell(request, verdict.clone());
        }
    }

    fn record(&self, epoch: u64, body: Name) -> Record {
        let ownership = Ownership::Owned(self.me.clone());
        Record { protocol: self.protocol, ownership, epoch, body }
    }
}

fn is_mine(record: &Record, me: &Owner, epoch: u64) -> bool {
    let is_owner = matches!(&record.ownership, Ownership::Owned(owner) if owner.id == me.id);
    is_owner && record.epoch == epoch
}

/// Spreads sessions over those who inherit them.
fn spread(session: &str) -> usize {
    session.bytes().fold(5_381, |sum, byte| sum.wrapping_mul(33) ^ usize::from(byte))
}

/// How many may wait for one session.
const MOST_WAITING: usize = 1_000;
/// How often those who wait for a session try again because others write its record.
const MOST_CONFLICTS: u8 = 5;
/// How many records are written again before a pause, and how long that is.
const REWRITTEN_AT_ONCE: usize = 64;
const REWRITE_PAUSE: Duration = Duration::from_millis(20);
