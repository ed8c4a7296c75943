//! Many replicas, a store and a network that all fail, in simulated time. A seed determines a run.
//!
//! On every step: no two replicas may answer for one session, or hold the one thing that half of the runs have, at the
//! same instant of true time (P1), and in one epoch one replica answers. At the end, when all faults are over: every session whose record had settled is found (P3).
//! No call runs twice (P4).
//!
//! The short form runs with the other tests. The long one, ten thousand runs and one of a hundred replicas with a hundred
//! thousand sessions, is `cargo xtask soak simulation`. `TRUNKLINE_SIMULATED_SEED=N` repeats one run.

mod clients;
mod faults;
mod random;
mod store;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use super::State;
use super::message::{Answer, Input, Name, Output, Owner, Question, Verdict};
use crate::timing::Timing;
use clients::{Clients, Waiting};
use faults::Network;
use random::Random;
use store::SimStore;

#[test]
fn no_two_replicas_answer_for_one_session_whatever_fails() {
    if let Some(seed) = number("TRUNKLINE_SIMULATED_SEED") {
        simulate(seed, &Plan::of(seed));
        return;
    }
    for seed in FOUND {
        simulate(seed, &Plan::of(seed));
    }
    let runs = if is_soak() { LONG } else { SHORT };
    let mut tally = Tally::default();
    for seed in 0..runs {
        let run = simulate(seed, &Plan::of(seed));
        tally.answered += run.answered;
        tally.taken_over += run.taken_over;
        tally.forwarded += run.forwarded;
        tally.unavailable += run.unavailable;
    }
    // A run in which nothing happens finds nothing.
    assert!(tally.answered > 100 * runs, "{tally:?}");
    assert!(tally.taken_over > 2 * runs, "{tally:?}");
    assert!(tally.forwarded > 50 * runs, "{tally:?}");
    assert!(tally.unavailable > runs, "{tally:?}");
}

/// What became of the calls.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    answered: u64,
    taken_over: u64,
    forwarded: u64,
    unavailable: u64,
}

#[test]
fn a_large_fleet_keeps_its_sessions() {
    let (replicas, sessions) = if is_soak() { (100, 100_000) } else { (12, 300) };
    let plan = Plan { replicas, sessions, seconds: 30, is_large: true, has_thing: false };
    simulate(1, &plan);
}

fn is_soak() -> bool {
    number("TRUNKLINE_SOAK").is_some()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn simulate(seed: u64, plan: &Plan) -> Tally {
    let mut world = World::new(seed, plan);
    world.run();
    world.clients.tally
}

/// How large a run is.
#[derive(Clone, Debug)]
struct Plan {
    replicas: u64,
    sessions: u64,
    seconds: u64,
    is_large: bool,
    /// Whether there is something of which there is one over all replicas.
    has_thing: bool,
}

impl Plan {
    fn of(seed: u64) -> Self {
        let mut random = Random(seed ^ 0x5eed);
        let (replicas, sessions) = (random.between(3, 5), random.between(2, 6));
        let has_thing = seed.is_multiple_of(2);
        Self { replicas, sessions, seconds: 45, is_large: false, has_thing }
    }
}

/// One process. A restart makes another.
#[derive(Debug)]
struct Node {
    me: Owner,
    state: State,
    rate: f64,
    started: u64,
    is_dead: bool,
    is_leaving: bool,
    paused_until: u64,
    tick_at: Option<u64>,
    lease: Duration,
    generation: u64,
    owned: HashMap<Name, (u64, u64)>,
    /// Operations that wait for an answer.
    open: HashSet<u64>,
}

impl Node {
    fn local(&self, now: u64) -> Duration {
        Duration::from_micros(((now - self.started) as f64 * self.rate) as u64)
    }

    /// When its clock will show this.
    fn true_time(&self, local: Duration) -> u64 {
        self.started + (local.as_micros() as f64 / self.rate).ceil() as u64 + 1
    }

    /// The epoch in which it may answer now, like `Shared::may_answer`.
    fn answers_in(&self, session: &Name, now: u64) -> Option<u64> {
        let (epoch, generation) = self.owned.get(session)?;
        let may = *generation == self.generation && self.local(now) < self.lease;
        (may && !self.is_dead && self.paused_until <= now).then_some(*epoch)
    }
}

#[derive(Clone, Debug)]
enum Event {
    Tick {
        node: usize,
    },
    Resume {
        node: usize,
    },
    ToStore {
        node: usize,
        op: u64,
        wanted: Output,
    },
    ToPeer {
        from: usize,
        op: u64,
        to: Owner,
        question: Question,
    },
    Answer {
        node: usize,
        op: u64,
        answer: Answer,
    },
    Fault,
    Call,
    /// A request of a call arrives at a replica.
    Arrive {
        call: u64,
        node: usize,
    },
    /// A call has been worked on and wants to be answered.
    Finish {
        call: u64,
        node: usize,
        epoch: u64,
    },
    Restart {
        url: Name,
    },
    FailOver {
        lost: u64,
    },
    StoreBack {
        url: Name,
    },
    Heal,
}

struct World {
    seed: u64,
    plan: Plan,
    random: Random,
    timing: Timing,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: HashMap<u64, Event>,
    last_event: u64,
    nodes: Vec<Node>,
    /// The live process at each address.
    at: HashMap<Name, usize>,
    store: SimStore,
    network: Network,
    clients: Clients,
    is_healed: bool,
    addresses: u64,
}

impl World {
    fn new(seed: u64, plan: &Plan) -> Self {
        let mut random = Random(seed);
        let timing = Timing {
            vouch_limit: Duration::from_secs(20),
            roster_ttl: Duration::from_secs(25),
            roster_refresh: Duration::from_secs(4),
            ..Timing::default()
        };
        let store = SimStore::new(random.rate(), timing);
        let mut world = Self {
            seed,
            plan: plan.clone(),
            random,
            timing,
            now: 0,
            queue: BinaryHeap::new(),
            events: HashMap::new(),
            last_event: 0,
            nodes: Vec::new(),
            at: HashMap::new(),
            store,
            network: Network::default(),
            clients: Clients::default(),
            is_healed: false,
            addresses: 0,
        };
        for _ in 0..plan.replicas {
            let url = world.new_address();
            world.start(url);
        }
        world.schedule(SECOND, Event::Call);
        world.schedule(2 * SECOND, Event::Fault);
        world.schedule(plan.seconds * SECOND, Event::Heal);
        world
    }

    fn run(&mut self) {
        let end = (self.plan.seconds + AFTERWARDS) * SECOND;
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > end {
                break;
            }
            self.now = at;
            if let Some(event) = self.events.remove(&number) {
                self.step(event);
            }
        }
        self.check_survivors();
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Tick { node } => {
                if self.nodes[node].tick_at.is_some_and(|at| at <= self.now) {
                    self.nodes[node].tick_at = None;
                    self.tell(node, Input::Tick);
                }
            }
            Event::Resume { node } => {
                self.check_all();
                self.tell(node, Input::Tick);
            }
            Event::ToStore { node, op, wanted } => self.at_store(node, op, wanted),
            Event::ToPeer { from, op, to, question } => self.at_peer(from, op, &to, &question),
            Event::Answer { node, op, answer } => {
                if self.is_late(node, &Event::Answer { node, op, answer: answer.clone() }) {
                    return;
                }
                if self.nodes[node].open.remove(&op) {
                    self.tell(node, Input::Done { op, answer });
                }
            }
            Event::Fault => self.fault(),
            Event::Call => self.call(),
            Event::Arrive { call, node } => self.arrive(call, node),
            Event::Finish { call, node, epoch } => self.finish(call, node, epoch),
            Event::Restart { url } => {
                self.start(url);
            }
            Event::FailOver { lost } => self.fail_over(lost),
            Event::StoreBack { url } => self.store_back(&url),
            Event::Heal => self.heal(),
        }
    }

    /// Puts what is for a process that is stopped off until it goes on. What is for a dead one is lost.
    fn is_late(&mut self, node: usize, event: &Event) -> bool {
        let it = &self.nodes[node];
        if !it.is_dead && it.paused_until > self.now {
            let at = it.paused_until + self.random.below(1_000);
            self.schedule_at(at, event.clone());
            return true;
        }
        it.is_dead
    }

    fn tell(&mut self, node: usize, input: Input) {
        let it = &mut self.nodes[node];
        if it.is_dead {
            return;
        }
        if it.paused_until > self.now {
            // Only ticks come here; one follows when it goes on.
            return;
        }
        it.state.handle(input, it.local(self.now));
        while let Some(output) = self.nodes[node].state.poll() {
            self.act(node, output);
        }
        let it = &self.nodes[node];
        let Some(at) = it.state.deadline().map(|at| it.true_time(at)) else { return };
        if it.tick_at.is_none_or(|before| at < before || before <= self.now) {
            let at = at.max(self.now + 1);
            self.nodes[node].tick_at = Some(at);
            self.schedule_at(at, Event::Tick { node });
        }
    }

    fn act(&mut self, node: usize, output: Output) {
        match output {
            Output::Lease { until, generation } => {
                let it = &mut self.nodes[node];
                (it.lease, it.generation) = (until, generation);
                if !self.plan.is_large {
                    self.check_all();
                }
            }
            Output::Own { session, epoch, generation } => {
                self.nodes[node].owned.insert(session.clone(), (epoch, generation));
                self.check(&session);
            }
            Output::Disown { session } => {
                self.nodes[node].owned.remove(&session);
            }
            Output::Tell { request, verdict } => self.told(node, request, verdict),
            Output::Ping { op, to, question } => {
                self.expect(node, op);
                let event = Event::ToPeer { from: node, op, to: to.clone(), question };
                let route = (self.nodes[node].me.url.clone(), to.url);
                self.send(&route.0, &route.1, event);
            }
            stored => {
                let op = stored.op().expect("all else is for the store");
                self.expect(node, op);
                let from = self.nodes[node].me.url.clone();
                let store = Name::from(STORE);
                self.send(&from, &store, Event::ToStore { node, op, wanted: stored });
            }
        }
    }

    /// The runner's patience: an operation without an answer gets one.
    fn expect(&mut self, node: usize, op: u64) {
        let it = &mut self.nodes[node];
        it.open.insert(op);
        let late = (self.timing.patience.as_micros() as f64 / it.rate) as u64;
        self.schedule(late, Event::Answer { node, op, answer: Answer::Away });
    }

    fn at_store(&mut self, node: usize, op: u64, wanted: Output) {
        if self.store.down_until > self.now {
            return;
        }
        if self.store.paused_until > self.now {
            let at = self.store.paused_until + self.random.below(2_000);
            return self.schedule_at(at, Event::ToStore { node, op, wanted });
        }
        let me = self.nodes[node].me.clone();
        let answer = self.store.apply(&me.id, &wanted, self.now);
        self.send(&Name::from(STORE), &me.url, Event::Answer { node, op, answer });
    }

    fn at_peer(&mut self, from: usize, op: u64, to: &Owner, question: &Question) {
        let Some(node) = self.at.get(&to.url).copied() else { return };
        let event = Event::ToPeer { from, op, to: to.clone(), question: question.clone() };
        if self.is_late(node, &event) {
            return;
        }
        let it = &mut self.nodes[node];
        let local = it.local(self.now);
        let reply = it.state.asked(question, local);
        let back = self.nodes[from].me.url.clone();
        let answer = Answer::Reply(reply);
        self.send(&to.url.clone(), &back, Event::Answer { node: from, op, answer });
    }

    /// Sends something over the network: it may be lost, late, or arrive twice.
    fn send(&mut self, from: &Name, to: &Name, event: Event) {
        let random = &mut self.random;
        if self.network.is_cut(from, to) || (!self.is_healed && random.once_in(200)) {
            return;
        }
        let mut delay = random.between(100, 3_000);
        if !self.is_healed && random.once_in(50) {
            delay = random.between(10_000, 4 * SECOND);
        }
        if !self.is_healed && random.once_in(100) {
            let again = delay + random.below(2 * SECOND);
            self.schedule(again, event.clone());
        }
        self.schedule(delay, event);
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.schedule_at(self.now + after, event);
    }

    fn schedule_at(&mut self, at: u64, event: Event) {
        self.last_event += 1;
        self.events.insert(self.last_event, event);
        self.queue.push(Reverse((at, self.last_event)));
    }

    fn check_all(&self) {
        if self.plan.is_large {
            return;
        }
        for session in self.clients.sessions() {
            self.check(session);
        }
        self.check(&Name::from(clients::THING));
    }

    /// P1.
    fn check(&self, session: &Name) {
        let answers = |node: &&Node| node.answers_in(session, self.now).is_some();
        let who: Vec<_> = self.nodes.iter().filter(answers).map(|it| &*it.me.id).collect();
        assert!(
            who.len() <= 1,
            "seed {}, after {} µs: {who:?} all answer for {session}",
            self.seed,
            self.now
        );
    }

    fn start(&mut self, url: Name) -> usize {
        let node = self.nodes.len();
        let me = Owner { id: format!("r{node}").into(), url: url.clone() };
        self.nodes.push(Node {
            state: State::new(me.clone(), 1, self.timing),
            me,
            rate: self.random.rate(),
            started: self.now,
            is_dead: false,
            is_leaving: false,
            paused_until: 0,
            tick_at: None,
            lease: Duration::ZERO,
            generation: 0,
            owned: HashMap::new(),
            open: HashSet::new(),
        });
        self.at.insert(url, node);
        self.tell(node, Input::Tick);
        node
    }

    fn new_address(&mut self) -> Name {
        self.addresses += 1;
        format!("http://{}", self.addresses).into()
    }

    /// The live processes, in the order in which they started.
    fn live(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| !self.nodes[*node].is_dead).collect()
    }

    fn told(&mut self, node: usize, request: u64, verdict: Verdict) {
        if let Some(waiting) = self.clients.waiting.remove(&(node, request)) {
            match waiting {
                Waiting::Open(session) => self.opened(node, session, &verdict),
                Waiting::Call(call) => self.located(node, call, verdict),
                Waiting::Leave => drop(self.end(node)),
                Waiting::Nothing => {}
            }
        }
    }
}

const SECOND: u64 = 1_000_000;
const STORE: &str = "store";
/// Seeds that found a fault once:
/// 6353, a replica relied on its roster although an empty one, whose settling it had not seen, was in the store.
const FOUND: [u64; 1] = [6353];
/// How many runs the short form and the long one have.
const SHORT: u64 = 100;
const LONG: u64 = 10_000;
/// How long all is well at the end of a run, in seconds: longer than a roster lasts.
const AFTERWARDS: u64 = 60;
