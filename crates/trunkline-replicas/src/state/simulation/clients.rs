//! Clients that open sessions and call, at any replica.

use std::collections::{BTreeMap, HashMap};

use super::{Event, Input, Name, SECOND, Tally, Verdict, World};

#[derive(Debug, Default)]
pub(super) struct Clients {
    sessions: BTreeMap<Name, SimSession>,
    opened: u64,
    calls: HashMap<u64, Call>,
    last_call: u64,
    /// Requests that replicas have not answered.
    pub(super) waiting: HashMap<(usize, u64), Waiting>,
    last_request: u64,
    /// Who answered for a session in an epoch.
    epochs: HashMap<(Name, u64), usize>,
    /// When a call of the thing was last answered.
    thing_answered: u64,
    pub(super) tally: Tally,
}

#[derive(Debug)]
struct SimSession {
    opened_by: Name,
    /// When it was opened; it counts as durable a second later if nothing else happened to its owner.
    since: u64,
    owner: usize,
    /// The lease under which it was opened.
    generation: u64,
    is_safe: bool,
    /// When a call of it was last answered.
    answered: u64,
}

#[derive(Debug)]
struct Call {
    session: Name,
    hops: u8,
    /// The replica that forwarded it.
    via: Option<usize>,
    runs: u8,
}

#[derive(Debug)]
pub(super) enum Waiting {
    Open(Name),
    Call(u64),
    Leave,
    Nothing,
}

impl Clients {
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Name> {
        self.sessions.keys()
    }

    fn opened_by(&self, session: &Name) -> Name {
        self.sessions.get(session).map_or_else(|| "nobody".into(), |it| it.opened_by.clone())
    }

    /// Those whose records have settled.
    pub(super) fn safe_sessions(&self) -> Vec<Name> {
        let safe = self.sessions.iter().filter(|(_, it)| it.is_safe);
        safe.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn request(&mut self, node: usize, waiting: Waiting) -> u64 {
        self.last_request += 1;
        self.waiting.insert((node, self.last_request), waiting);
        self.last_request
    }
}

impl World {
    /// A client does something at some replica.
    pub(super) fn call(&mut self) {
        let (most, pause) = match self.plan.is_large {
            true => (self.plan.sessions, 20 * SECOND / self.plan.sessions),
            false => (self.plan.sessions, 150_000),
        };
        let next = self.random.between(pause / 2, pause);
        self.schedule(next.max(1), Event::Call);
        if !self.plan.is_large || self.random.once_in(self.plan.sessions) {
            self.note_safe();
        }
        let live = self.live();
        let number = self.random.below(live.len() as u64);
        let Some(node) = live.get(number as usize).copied() else { return };
        if self.nodes[node].paused_until > self.now {
            return;
        }
        if self.plan.has_thing && self.random.once_in(6) {
            self.clients.last_call += 1;
            let (call, session) = (self.clients.last_call, Name::from(THING));
            self.clients.calls.insert(call, Call { session, hops: 0, via: None, runs: 0 });
            return self.arrive(call, node);
        }
        if (self.clients.sessions.len() as u64) < most && !self.is_healed {
            self.clients.opened += 1;
            let session = Name::from(format!("s{}", self.clients.opened));
            let request = self.clients.request(node, Waiting::Open(session.clone()));
            return self.tell(node, Input::Open { request, session, body: "hello".into() });
        }
        let session = if self.plan.is_large {
            let pick = self.random.between(1, self.clients.opened.max(1));
            Some(Name::from(format!("s{pick}"))).filter(|it| self.clients.sessions.contains_key(it))
        } else {
            let pick = self.random.below(self.clients.sessions.len() as u64) as usize;
            self.clients.sessions.keys().nth(pick).cloned()
        };
        let Some(session) = session else { return };
        self.clients.last_call += 1;
        let call = self.clients.last_call;
        self.clients.calls.insert(call, Call { session, hops: 0, via: None, runs: 0 });
        self.arrive(call, node);
    }

    pub(super) fn opened(&mut self, node: usize, session: Name, verdict: &Verdict) {
        if *verdict == Verdict::Done {
            let opened_by = self.nodes[node].me.id.clone();
            let (since, is_safe) = (self.now, false);
            let generation = self.nodes[node].generation;
            let it = SimSession { opened_by, since, owner: node, generation, is_safe, answered: 0 };
            self.clients.sessions.insert(session, it);
        }
    }

    /// A session is safe once its record has settled. One whose owner died before is forgotten.
    fn note_safe(&mut self) {
        let (now, nodes, seed) = (self.now, &self.nodes, self.seed);
        self.clients.sessions.retain(|name, it| {
            if !it.is_safe {
                let owner = &nodes[it.owner];
                if owner.is_dead || owner.is_leaving {
                    return false;
                }
                if !owner.owned.contains_key(name) {
                    let is_fenced = owner.generation != it.generation;
                    assert!(is_fenced, "seed {seed}, {now} µs: {name} was dropped by its owner");
                    return false;
                }
                it.is_safe = now > it.since + SECOND && owner.state.has_settled(name);
            }
            true
        });
    }

    pub(super) fn arrive(&mut self, call: u64, node: usize) {
        let event = Event::Arrive { call, node };
        if self.is_late(node, &event) {
            return;
        }
        let Some(it) = self.clients.calls.get(&call) else { return };
        let session = it.session.clone();
        if &*session == THING {
            let request = self.clients.request(node, Waiting::Call(call));
            return self.tell(node, Input::Claim { request, name: session });
        }
        let Some(known) = self.clients.sessions.get(&session) else { return };
        let hint = known.opened_by.clone();
        // As a request does: at once, if the owner is known.
        if let Some(owner) = self.nodes[node].state.found_lately(&session).cloned() {
            return self.located(node, call, Verdict::At(owner));
        }
        let request = self.clients.request(node, Waiting::Call(call));
        self.tell(node, Input::Locate { request, session, hint });
    }

    /// A replica knows where the session of a call is.
    pub(super) fn located(&mut self, node: usize, call: u64, verdict: Verdict) {
        let Some(it) = self.clients.calls.get_mut(&call) else { return };
        let session = it.session.clone();
        let tally = &mut self.clients.tally;
        match verdict {
            Verdict::TakenOver(_) => tally.taken_over += 1,
            Verdict::At(_) => tally.forwarded += 1,
            Verdict::Unavailable => tally.unavailable += 1,
            _ => {}
        }
        match verdict {
            Verdict::Here | Verdict::TakenOver(_) => {
                let Some(epoch) = self.nodes[node].answers_in(&session, self.now) else {
                    panic!("seed {}, {} µs: {session} is here and not here", self.seed, self.now);
                };
                it.runs += 1;
                assert_eq!(it.runs, 1, "seed {}, {} µs: a call ran twice", self.seed, self.now);
                self.ran(node, &session, epoch);
                let work = self.random.below(SECOND);
                self.schedule(work, Event::Finish { call, node, epoch });
            }
            Verdict::At(owner) => {
                let from = self.nodes[node].me.url.clone();
                if let Some(via) = it.via {
                    // Forwarded once already: the sender is told, and asks the record.
                    it.via = None;
                    let (to, hops) = (self.nodes[via].me.url.clone(), it.hops);
                    if !self.nodes[via].is_dead && self.nodes[via].paused_until <= self.now {
                        let hint = self.clients.opened_by(&session);
                        self.nodes[via].state.moved(session, hint);
                    }
                    if hops < 3 {
                        self.send_call(&from, &to, Event::Arrive { call, node: via });
                    }
                } else if let Some(to) = self.nodes.iter().position(|it| it.me.id == owner.id) {
                    it.via = Some(node);
                    it.hops += 1;
                    if self.at.get(&owner.url) == Some(&to) {
                        self.send_call(&from, &owner.url, Event::Arrive { call, node: to });
                    } else if it.hops < 3 {
                        // Nobody is there, or somebody else: nothing was done.
                        it.via = None;
                        let hint = self.clients.opened_by(&session);
                        self.nodes[node].state.moved(session, hint);
                        self.schedule(1_000, Event::Arrive { call, node });
                    }
                }
            }
            Verdict::Gone => {
                let is_safe = self.clients.sessions.get(&session).is_some_and(|it| it.is_safe);
                assert!(!is_safe, "seed {}, {} µs: {session} is lost", self.seed, self.now);
            }
            Verdict::Unavailable | Verdict::Done => {}
        }
    }

    /// Like `send`, but a request is never doubled.
    fn send_call(&mut self, from: &Name, to: &Name, event: Event) {
        if !self.network.is_cut(from, to) {
            let delay = self.random.between(100, 3_000);
            self.schedule(delay, event);
        }
    }

    fn ran(&mut self, node: usize, session: &Name, epoch: u64) {
        let who = *self.clients.epochs.entry((session.clone(), epoch)).or_insert(node);
        assert_eq!(
            who, node,
            "seed {}, {} µs: two replicas answer for {session} in epoch {epoch}",
            self.seed, self.now
        );
    }

    pub(super) fn finish(&mut self, call: u64, node: usize, epoch: u64) {
        if self.is_late(node, &Event::Finish { call, node, epoch }) {
            return;
        }
        let Some(it) = self.clients.calls.remove(&call) else { return };
        // What cannot be answered any more has an unknown outcome.
        if self.nodes[node].answers_in(&it.session, self.now) == Some(epoch) {
            self.ran(node, &it.session, epoch);
            self.clients.tally.answered += 1;
            if &*it.session == THING {
                self.clients.thing_answered = self.now;
                if self.random.once_in(5) {
                    let request = self.clients.request(node, Waiting::Nothing);
                    self.tell(node, Input::Release { request, name: it.session });
                }
                return;
            }
            if let Some(known) = self.clients.sessions.get_mut(&it.session) {
                known.answered = self.now;
            }
            if self.random.once_in(10) && !self.is_healed {
                self.tell(node, Input::Update { session: it.session, body: "more".into() });
            }
        }
    }

    /// P3: when all has been well for a while, every session is served.
    pub(super) fn check_survivors(&self) {
        assert!(self.clients.tally.answered > 0, "seed {}: nothing was ever answered", self.seed);
        if self.plan.is_large {
            return;
        }
        let lately = self.now - 15 * SECOND;
        let is_served = !self.plan.has_thing || self.clients.thing_answered > lately;
        assert!(is_served, "seed {}: the thing is not served at the end", self.seed);
        for (name, it) in &self.clients.sessions {
            let is_served = !it.is_safe || it.answered > lately;
            assert!(is_served, "seed {}: {name} is not served at the end: {it:?}", self.seed);
        }
    }
}

/// The name of the one thing.
pub(super) const THING: &str = "claim/thing";
