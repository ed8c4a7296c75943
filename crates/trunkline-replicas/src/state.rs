//! Which replica answers for which session: requests, store answers and pings → reads, writes, pings and verdicts.
//! No IO, no clock; `now` is the time since this replica started, by its own clock.
//!
//! # Why no two replicas answer for one session
//!
//! A replica answers for a session while it has a **lease** and a **claim** made under that lease.
//!
//! 1. *A lease ends before anybody can find its holder dead.* It rests either on a heartbeat, which lasts longer in
//!    the store than the lease, or on the word of every replica in the holder's roster, each of which takes nothing
//!    over from it for longer than the lease. See `lease`.
//! 2. *A claim is a compare-and-swap of the session's record.* Whoever finds the owner dead read the record before, so
//!    a claim that the owner makes later changes the version, and one of the two swaps fails. See `session`.
//! 3. *A lease that lapsed starts a new generation*, and claims of an older generation count for nothing until the
//!    record was swapped again.
//! 4. *A failover may lose the last writes, but nothing that anybody relied on.* A replica relies on a heartbeat, a
//!    roster or a claim only after a read, `Timing::settle` later, that still finds that version. A write which is that
//!    old is on the other machine; one that is younger and was lost has another version now or none. Versions are never
//!    given twice, so a swap that expects a lost version fails. A claim that did not settle answered nothing, so its
//!    epoch may be used again by another replica. New sessions are the exception: nobody else can claim a record that
//!    does not exist, so their owner answers at once, looks again after `settle`, and writes a lost record anew.
//! 5. *Whoever finds a replica dead reads in this order*: the session's record, the roster, the heartbeat, and vouches
//!    for nobody it suspects. At the moment the heartbeat was seen to be gone the owner had no lease, whatever happens
//!    afterwards; then 3 and 2 apply.
//!
//! A replica that starts while the store is away from all others is in nobody's roster. It takes nothing over from
//! them until one of their rosters' members says that it does not vouch, or until the roster has expired. So peers that
//! vouch for each other stop after `Timing::vouch_limit` without the store.

mod departure;
mod lease;
pub(crate) mod message;
mod newcomer;
mod owners;
mod session;
#[cfg(test)]
mod simulation;
mod suspicion;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use trunkline_transport::http::replicas::ById;

use crate::timing::Timing;
use departure::Departure;
use lease::Lease;
use message::{Answer, Ask, Input, Member, Name, Output, Owner, Question, Reply, Verdict};
use newcomer::Newcomers;
use owners::Owners;
use session::Session;
use suspicion::{Part, Suspicion};

/// One replica's view of all of them.
#[derive(Debug)]
pub(crate) struct State {
    me: Owner,
    protocol: u32,
    timing: Timing,
    now: Duration,
    out: VecDeque<Output>,
    ops: HashMap<u64, Purpose>,
    last_op: u64,
    lease: Lease,
    /// The others that were alive when the store last said so.
    members: BTreeMap<Name, Member>,
    /// Those who are not any more, since when.
    missing: HashMap<Name, (Owner, Duration)>,
    /// When the store last said so.
    scanned: Option<Duration>,
    /// Until when this replica takes nothing over from another.
    promised: HashMap<Name, Duration>,
    /// Until when this replica vouches for another no more.
    refused: HashMap<Name, Duration>,
    suspicions: HashMap<Name, Suspicion>,
    last_suspicion: u64,
    sessions: HashMap<Name, Session, ById>,
    owned: u64,
    owners: Owners,
    timers: BinaryHeap<Reverse<(Duration, Name)>>,
    departure: Departure,
    newcomers: Newcomers,
}

/// What an operation is for.
#[derive(Clone, Debug)]
enum Purpose {
    Heartbeat,
    Members,
    Newcomers,
    RosterWrite,
    RosterCheck,
    RosterProbe,
    Vouch { round: u64, by: Name },
    Session(Name),
    Suspicion { replica: Name, number: u64, part: Part },
    Withdraw,
}

impl State {
    pub(crate) fn new(me: Owner, protocol: u32, timing: Timing) -> Self {
        Self {
            me,
            protocol,
            timing,
            now: Duration::ZERO,
            out: VecDeque::new(),
            ops: HashMap::new(),
            last_op: 0,
            lease: Lease::default(),
            members: BTreeMap::new(),
            missing: HashMap::new(),
            scanned: None,
            promised: HashMap::new(),
            refused: HashMap::new(),
            suspicions: HashMap::new(),
            last_suspicion: 0,
            sessions: HashMap::default(),
            owned: 0,
            owners: Owners::new(MOST_OWNERS),
            timers: BinaryHeap::new(),
            departure: Departure::Staying,
            newcomers: Newcomers::default(),
        }
    }

    /// Takes in what happened. What follows from it is fetched with [`Self::poll`].
    pub(crate) fn handle(&mut self, input: Input, now: Duration) {
        self.now = self.now.max(now);
        match input {
            Input::Tick => {}
            Input::Done { op, answer } => self.done(op, answer),
            Input::Open { request, session, body } => self.open(request, session, body),
            Input::Locate { request, session, hint } => self.locate(request, session, &hint),
            Input::Claim { request, name } => self.claim(request, name),
            Input::Release { request, name } => self.release(request, &name),
            Input::LocateReplica { request, replica } => self.locate_replica(request, &replica),
            Input::Update { session, body } => self.update(&session, body),
            Input::Used { session } => self.used(&session),
            Input::Close { request, session } => self.close(request, &session),
            Input::HandOver { request, session } => self.hand_over(Some(request), &session),
            Input::Drain => self.drain(),
            Input::Leave { request } => self.leave(request),
        }
        self.tick();
    }

    /// The next thing to do.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When [`Input::Tick`] is wanted at the latest.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        [timer, self.beat_deadline()].into_iter().flatten().min()
    }

    /// The others that were alive when the store last said so.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// This replica as its heartbeat describes it.
    pub(crate) fn describe(&self) -> Member {
        Member {
            owner: self.me.clone(),
            protocol: self.protocol,
            sessions: self.owned,
            age: self.now.as_secs(),
        }
    }

    /// Whether the last heartbeat or list of members failed.
    pub(crate) fn is_store_away(&self) -> bool {
        self.lease.away || self.scanned.is_none()
    }

    fn tick(&mut self) {
        if !self.departure.is_over() {
            self.beat();
        }
        while let Some(Reverse((at, _))) = self.timers.peek() {
            if *at > self.now {
                break;
            }
            if let Some(Reverse((_, session))) = self.timers.pop() {
                self.wake(&session);
            }
        }
        self.depart();
    }

    fn done(&mut self, op: u64, answer: Answer) {
        // An answer that comes twice, or to something that was given up, has no purpose any more.
        let Some(purpose) = self.ops.remove(&op) else { return };
        match purpose {
            Purpose::Heartbeat => self.heartbeat_written(&answer),
            Purpose::Members => self.members_read(answer),
            Purpose::Newcomers => self.looked(&answer),
            Purpose::RosterWrite => self.roster_written(&answer),
            Purpose::RosterCheck => self.roster_checked(&answer),
            Purpose::RosterProbe => self.roster_probed(&answer),
            Purpose::Vouch { round, by } => self.vouched(round, &by, &answer),
            Purpose::Session(session) => self.answered(&session, answer),
            Purpose::Suspicion { replica, number, part } => {
                self.suspicion_answered(&replica, number, &part, answer);
            }
            Purpose::Withdraw => self.withdrawn(),
        }
    }

    fn op(&mut self, purpose: Purpose) -> u64 {
        self.last_op += 1;
        self.ops.insert(self.last_op, purpose);
        self.last_op
    }

    fn tell(&mut self, request: u64, verdict: Verdict) {
        self.out.push_back(Output::Tell { request, verdict });
    }

    fn ping(&mut self, purpose: Purpose, to: Owner, ask: Ask) {
        let op = self.op(purpose);
        let question = Question { from: self.me.id.clone(), ask };
        self.out.push_back(Output::Ping { op, to, question });
    }

    fn locate_replica(&mut self, request: u64, replica: &Name) {
        let is_recent = self.scanned.is_some_and(|at| self.now - at < self.timing.lease);
        // It said lately that it is there; its heartbeat has yet to return with the store.
        let has_vouched = self.promised.get(replica).is_some_and(|until| *until > self.now);
        let verdict = match (self.members.get(replica), self.missing.get(replica)) {
            _ if *replica == self.me.id => Verdict::Here,
            (Some(member), _) => Verdict::At(member.owner.clone()),
            (None, Some((owner, _))) if has_vouched => Verdict::At(owner.clone()),
            // It may have begun since.
            (None, None) if is_recent && !has_vouched => return self.look_for(request, replica),
            _ if is_recent && !has_vouched => Verdict::Gone,
            _ => Verdict::Unavailable,
        };
        self.tell(request, verdict);
    }

    /// Answers a peer. What it was told binds this replica from now on.
    pub(crate) fn asked(&mut self, question: &Question, now: Duration) -> Reply {
        self.now = self.now.max(now);
        let now = self.now;
        self.promised.retain(|_, until| *until > now);
        self.refused.retain(|_, until| *until > now);
        let yes = match &question.ask {
            Ask::Presence => true,
            Ask::Vouch => {
                let from = &question.from;
                let yes = !self.suspicions.contains_key(from) && !self.refused.contains_key(from);
                if yes {
                    self.promised.insert(from.clone(), now + self.timing.promise);
                }
                yes
            }
            Ask::Refuse(about) => {
                let yes = *about != self.me.id && !self.promised.contains_key(about);
                if yes {
                    self.refused.insert(about.clone(), now + self.timing.refusal);
                }
                yes
            }
        };
        Reply { from: self.me.id.clone(), yes }
    }
}

/// How many owners of other replicas' sessions are remembered.
const MOST_OWNERS: usize = 100_000;
