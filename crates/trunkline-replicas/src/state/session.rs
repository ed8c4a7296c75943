//! One session: its claim, and the one operation on its record that is under way.

mod lookup;
mod outcome;

use std::cmp::Reverse;
use std::time::Duration;

use trunkline_store::{Expect, Version};

use super::message::{Name, Output, Ownership, Record, Verdict};
use super::owners::Known;
use super::{Purpose, State};

/// A session that this replica owns, or that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) claim: Option<Claim>,
    /// Whether it is a thing of which there is one over all replicas, not a session: whoever asks for it holds it if
    /// nobody else does.
    is_thing: bool,
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
    /// Since when somebody waits.
    since: Option<Duration>,
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
    /// Its owner is silent, but its heartbeat lasts: the record is read again then.
    Pausing {
        until: Duration,
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
    /// To another replica, or to nobody; tell this request, if there is one.
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

    /// The replica that was thought to own the session does not, or is not there.
    pub(crate) fn moved(&mut self, session: Name, hint: Name) {
        let tried = match self.owners.get(&session) {
            Some(Known::At(owner) | Known::Not(owner)) => owner.clone(),
            None => hint,
        };
        self.owners.insert(session, Known::Not(tried));
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
            self.owners.insert(session, Known::At(owner.id.clone()));
            return self.tell(request, Verdict::At(owner));
        } else if self.scanned.is_none() {
            return self.tell(request, Verdict::Unavailable);
        }
        let it = self.sessions.entry(session.clone()).or_default();
        if it.waiting.len() >= MOST_WAITING {
            return self.tell(request, Verdict::Unavailable);
        }
        it.waiting.push(request);
        it.since.get_or_insert(self.now);
        it.owner = Some(match self.owners.get(&session) {
            Some(Known::At(owner)) => owner.clone(),
            _ => hint.clone(),
        });
        self.proceed(&session);
    }

    /// As [`Self::locate`], for a thing that begins to exist when somebody asks for it.
    pub(super) fn claim(&mut self, request: u64, name: Name) {
        self.locate(request, name.clone(), &Name::from(""));
        if let Some(it) = self.sessions.get_mut(&name) {
            it.is_thing = true;
        }
    }

    /// Lets go of a claim, as soon as nothing else is under way.
    pub(super) fn release(&mut self, request: u64, name: &Name) {
        self.hand_over(Some(request), name);
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
        let is_thing = self.sessions.get(session).is_some_and(|it| it.is_thing);
        // A thing does not move: it has ended here, and whoever asks for it next makes another.
        let heirs: Vec<_> =
            self.members.values().filter(|it| !is_thing && it.protocol >= self.protocol).collect();
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
            Step::Pausing { until } if *until <= now => it.step = Step::Idle,
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
        let is_new = it.claim.replace(claim).is_none();
        self.owned += u64::from(is_new && !it.is_thing);
        it.conflicts = 0;
        self.owners.remove(session);
        self.out.push_back(Output::Own { session: session.clone(), epoch, generation });
    }

    fn disown(&mut self, session: &Name) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        it.due = None;
        if it.claim.take().is_some() {
            self.owned -= u64::from(!it.is_thing);
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

    fn answer_waiting(&mut self, session: &Name, verdict: &Verdict) {
        for request in self.waiting(session) {
            self.tell(request, verdict.clone());
        }
    }

    fn waiting(&mut self, session: &Name) -> Vec<u64> {
        let Some(it) = self.sessions.get_mut(session) else { return Vec::new() };
        it.conflicts = 0;
        it.since = None;
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

/// Spreads sessions over those who inherit them.
fn spread(session: &str) -> usize {
    session.bytes().fold(5_381, |sum, byte| sum.wrapping_mul(33) ^ usize::from(byte))
}

/// How many may wait for one session.
const MOST_WAITING: usize = 1_000;
/// How many records are written again before a pause, and how long that is.
const REWRITTEN_AT_ONCE: usize = 64;
const REWRITE_PAUSE: Duration = Duration::from_millis(20);
