//! Random inputs in random order, and the invariants that hold after each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trunkline_testkit::Dice;

use super::sim::{failed, numbers, plan};
use crate::catalog::plan::{ServerPlan, Sharing, Strategy};
use crate::failure::{Failure, Reason, Stage};
use crate::pool::state::{Action, Asked, MAX_WAITERS, Phase, State};
use crate::pool::{Cause, Event, Profile, Want};

#[test]
fn limits_hold_and_every_caller_is_answered_once() {
    for seed in 0..1500 {
        let mut model = Model::new(seed);
        for _ in 0..200 {
            model.step();
            model.check();
        }
        model.finish();
    }
}

/// Everything outside the state, with a record of what the state promised.
struct Model {
    seed: u64,
    dice: Dice,
    state: State<u64, u64>,
    now: Duration,
    /// Starts in progress, with their profiles.
    starting: BTreeMap<u64, Profile>,
    /// Instances that are up and were not told to stop.
    up: BTreeMap<u64, Profile>,
    stopping: BTreeSet<u64>,
    probing: BTreeSet<u64>,
    /// The waiters: ticket by name, and what they want.
    waiting: BTreeMap<u64, (u64, Want)>,
    leases: Vec<Leased>,
    /// The parked calls that were told to make way.
    told: BTreeSet<u64>,
    /// The key that an instance was bound to, on a stateful server.
    owners: BTreeMap<u64, String>,
    /// Every principal that an instance was lent to; `None` for shared use.
    users: BTreeMap<u64, BTreeSet<Option<Arc<str>>>>,
    /// The login that an instance was opened with (`auth.perUser`).
    logins: BTreeMap<u64, Option<Arc<str>>>,
    names: u64,
    clients: usize,
    told_gone: bool,
    waits_told: (u64, u64),
    waits: u64,
}

/// A lease: the instance, the principal (`None` if it is not a use), and the ticket of a parked call.
struct Leased {
    id: u64,
    by: Option<Arc<str>>,
    parked: Option<u64>,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let plan = random_plan(&mut dice);
        let mut model = Self {
            seed,
            state: State::new(plan, numbers(), Duration::ZERO),
            dice,
            now: Duration::ZERO,
            starting: BTreeMap::new(),
            up: BTreeMap::new(),
            stopping: BTreeSet::new(),
            probing: BTreeSet::new(),
            waiting: BTreeMap::new(),
            leases: vec![],
            told: BTreeSet::new(),
            owners: BTreeMap::new(),
            users: BTreeMap::new(),
            logins: BTreeMap::new(),
            names: 0,
            clients: 0,
            told_gone: false,
            waits_told: (0, 0),
            waits: 0,
        };
        model.look();
        model
    }

    fn step(&mut self) {
        let now = self.now;
        match self.dice.below(100) {
            0..34 => self.want(),
            34..52 => {
                if !self.leases.is_empty() {
                    let at = self.dice.below(self.leases.len() as u64) as usize;
                    let lease = self.leases.swap_remove(at);
                    self.give_back(&lease);
                }
            }
            52..66 => {
                if let Some(id) = pick(&mut self.dice, self.starting.keys()) {
                    self.start_ends(id);
                }
            }
            66..72 => {
                if let Some(id) = pick(&mut self.dice, &self.stopping) {
                    self.stopping.remove(&id);
                    self.state.stopped(id, now);
                }
            }
            72..75 => {
                if let Some(name) = pick(&mut self.dice, self.waiting.keys()) {
                    let (ticket, _) = self.waiting.remove(&name).expect("picked from there");
                    self.state.leave(ticket, now);
                }
            }
            75..77 => {
                if let Some(id) = pick(&mut self.dice, self.up.keys()) {
                    let failure = Failure::new(Reason::InstanceEnded, Stage::Call, "It ended.");
                    self.state.ended(id, failure, now);
                }
            }
            77..80 => {
                if let Some(id) = pick(&mut self.dice, &self.probing) {
                    self.probing.remove(&id);
                    let well = self.dice.below(4) > 0;
                    self.state.probed(id, if well { Ok(()) } else { Err("no".to_owned()) }, now);
                }
            }
            80 => {
                if let Some(id) = pick(&mut self.dice, self.up.keys()) {
                    self.state.kill(id, now);
                }
            }
            81 => {
                if let Some(id) = pick(&mut self.dice, self.up.keys()) {
                    self.state.done_with(id, now);
                }
            }
            82 => {
                let key = self.dice.below(4).to_string();
                self.state.forget(&key, now);
            }
            83 => {
                self.clients += 1;
                self.state.client_joined(now);
            }
            84 => {
                if self.clients > 0 {
                    self.clients -= 1;
                    self.state.client_left(now);
                }
            }
            85 => self.state.retry(now),
            86 => {
                let plan = random_plan(&mut self.dice);
                if plan.strategy != self.state.plan.strategy {
                    // Running instances drain; new ones start afresh.
                    self.owners.clear();
                }
                self.state.reconfigure(plan, now);
            }
            87 => {
                let at = self.leases.iter().position(|it| it.by.is_some() && it.parked.is_none());
                if let Some(lease) = at.map(|at| &mut self.leases[at]) {
                    let (ticket, by) =
                        (self.state.next_ticket(), lease.by.clone().expect("filtered"));
                    lease.parked = Some(ticket);
                    self.state.park(ticket, lease.id, &by);
                }
            }
            88 => {
                if let Some((id, _)) = self.state.running() {
                    self.given(id, None);
                }
            }
            _ => self.time_passes(),
        }
        self.look();
    }

    fn want(&mut self) {
        let number = self.dice.below(4);
        let key = Some(number.to_string().into_boxed_str());
        let plan = &self.state.plan;
        let is_isolated = plan.sharing == Sharing::Isolated && plan.strategy != Strategy::Singleton;
        let owner = is_isolated.then(|| format!("o{}", number % 3).into());
        let profile = Profile([0, 1, 3, 4][self.dice.below(4) as usize]);
        let patience = Duration::from_secs(self.dice.below(40));
        let cause = if self.dice.below(10) == 0 { Cause::List } else { Cause::Call };
        let is_alone = self.dice.below(4) == 0;
        // A key, like an owner, belongs to one principal.
        let by = format!("o{}", number % 3).into();
        let want = Want { key, owner, by, profile, is_alone, cause, patience };
        self.names += 1;
        let name = self.names;
        match self.state.want(want.clone(), self.now, || name) {
            Asked::Given { id, .. } => {
                self.look();
                self.given(id, Some(&want));
            }
            Asked::Refused(failure) => self.refused(&failure),
            Asked::Waits(ticket) => {
                self.waits += 1;
                self.waiting.insert(name, (ticket, want));
            }
        }
    }

    fn start_ends(&mut self, id: u64) {
        let profile = self.starting.remove(&id).expect("picked from there");
        if self.dice.below(4) == 0 {
            let fatal = self.dice.below(10) == 0;
            self.state.started(id, Err(failed(fatal.then_some("not_found"))), self.now);
        } else {
            self.up.insert(id, profile);
            self.state.started(id, Ok(id), self.now);
        }
    }

    fn time_passes(&mut self) {
        self.now += Duration::from_millis(self.dice.below(8000));
        while let Some(at) = self.state.alarm().filter(|at| *at <= self.now) {
            let now = self.now;
            self.state.tick(now);
            self.look();
            let next = self.state.alarm();
            assert!(next.is_none_or(|next| next > now), "{}: alarm {at:?} stays", self.seed);
        }
    }

    /// Executes the state's actions and checks each.
    fn look(&mut self) {
        let seed = self.seed;
        for action in std::mem::take(&mut self.state.actions) {
            match action {
                Action::Start { id, profile, owner } => {
                    if self.state.plan.per_user().is_some() {
                        self.logins.insert(id, owner);
                    }
                    let singleton = self.state.plan.strategy == Strategy::Singleton;
                    let max = if singleton { 1 } else { self.state.plan.max_instances };
                    let there = self.starting.len() + self.up.len() + self.stopping.len();
                    assert!(there < max, "{seed}: {there} of {max} were there");
                    self.starting.insert(id, profile);
                }
                Action::Abort { id } => {
                    assert!(self.starting.remove(&id).is_some(), "{seed}: i{id} was not starting");
                }
                Action::Watch { id, .. } => assert!(self.up.contains_key(&id), "{seed}"),
                Action::Stop { id, .. } => {
                    assert!(self.up.remove(&id).is_some(), "{seed}: i{id} was stopped before");
                    self.stopping.insert(id);
                    self.probing.remove(&id);
                }
                Action::Probe { id, .. } => {
                    assert!(self.probing.insert(id), "{seed}: i{id} is being probed");
                }
                Action::MakeWay { ticket } => {
                    let at = self.leases.iter().position(|it| it.parked == Some(ticket));
                    let at = at.unwrap_or_else(|| panic!("{seed}: {ticket} is not parked"));
                    let by = &self.leases[at].by;
                    let own = self.leases.iter().filter(|it| it.by == *by).count();
                    let is_drained = self.state.slots.get(&self.leases[at].id);
                    let is_drained = is_drained.is_some_and(|it| !it.is_ready());
                    assert!(own >= 2 || is_drained, "{seed}: {by:?} had but this one");
                    assert!(self.told.insert(ticket), "{seed}: {ticket} was told twice");
                }
                Action::Give { to, id, .. } => {
                    let (_, want) = self.waiting.remove(&to).expect("answered once, while waiting");
                    self.given(id, Some(&want));
                }
                Action::Refuse { to, failure } => {
                    assert!(self.waiting.remove(&to).is_some(), "{seed}: {to} was answered");
                    self.refused(&failure);
                }
                Action::Tell(Event::Waited { served: true, .. }) => self.waits_told.0 += 1,
                Action::Tell(Event::Waited { served: false, .. }) => self.waits_told.1 += 1,
                Action::Tell(_) => {}
                Action::Gone => self.told_gone = true,
            }
        }
    }

    fn given(&mut self, id: u64, want: Option<&Want>) {
        let seed = self.seed;
        let plan = &self.state.plan;
        let profile = self.up.get(&id).unwrap_or_else(|| panic!("{seed}: i{id} is not up"));
        let in_flight = self.leases.iter().filter(|it| it.id == id).count();
        assert!(in_flight < plan.max_concurrent, "{seed}: {in_flight} were in flight in i{id}");
        if let (Some(want), Some(owner)) = (want, self.logins.get(&id)) {
            assert_eq!(want.owner, *owner, "{seed}: i{id} was opened with another's login");
        }
        if let Some(want) = want {
            let key = want.key.as_deref().unwrap_or_default();
            match plan.strategy {
                Strategy::Stateful => {
                    let owner = self.owners.entry(id).or_insert_with(|| key.to_owned());
                    assert_eq!(owner, key, "{seed}: i{id} belongs to another");
                }
                Strategy::Singleton => assert_eq!(*profile, Profile::ALL, "{seed}"),
                _ => assert!(profile.is_within(want.profile), "{seed}: i{id} asks too much"),
            }
            // A key has an instance of its own and belongs to one principal.
            if want.cause != Cause::List && plan.strategy != Strategy::Stateful {
                let users = self.users.entry(id).or_default();
                // A singleton has no owner.
                let is_one = plan.strategy == Strategy::Singleton;
                let owner = want.owner.clone().filter(|_| !is_one);
                let has_owner = owner.is_some();
                users.insert(owner);
                assert!(!has_owner || users.len() == 1, "{seed}: i{id} had {users:?}");
            }
        }
        let by = want.map(|it| Arc::clone(&it.by));
        self.leases.push(Leased { id, by, parked: None });
    }

    fn give_back(&mut self, lease: &Leased) {
        if let Some(ticket) = lease.parked {
            self.state.unpark(ticket);
        }
        self.state.release(lease.id, lease.by.as_ref(), self.now);
    }

    fn refused(&self, failure: &Failure) {
        assert_eq!(failure.server.as_deref(), Some("time"), "{}: {failure:?}", self.seed);
        let again = failure.retry_after.is_some();
        match failure.reason.word() {
            "busy" | "sticky_busy" | "overloaded" | "backoff" => assert!(again, "{failure:?}"),
            "suspended" => assert!(!again && failure.advice.is_some(), "{failure:?}"),
            "spawn_failed" | "not_found" | "start_timeout" | "draining" => {}
            other => panic!("{}: `{other}` is no reason", self.seed),
        }
    }

    /// What holds between any two inputs.
    fn check(&self) {
        let seed = self.seed;
        let state = &self.state;
        assert!(state.waiters.len() <= MAX_WAITERS);
        assert_eq!(state.waiters.len(), self.waiting.len(), "{seed}: somebody waits in vain");
        let there = self.starting.len() + self.up.len() + self.stopping.len();
        assert_eq!(state.slots.len(), there, "{seed}: a process is lost");
        for who in ["o0", "o1", "o2"] {
            let leases = self.leases.iter().filter(|it| it.by.as_deref() == Some(who)).count();
            assert_eq!(state.shares.leases(who), leases, "{seed}: what {who} has");
            let waiters = self.waiting.values().filter(|(_, it)| &*it.by == who).count();
            assert_eq!(state.shares.waiters(who), waiters, "{seed}: what {who} waits for");
        }
        let mut keys = BTreeSet::new();
        for (id, slot) in &state.slots {
            let leases = self.leases.iter().filter(|it| it.id == *id).count();
            assert_eq!(slot.in_flight, leases, "{seed}: i{id}");
            if let Some(key) = &slot.bound {
                assert!(keys.insert(key.clone()), "{seed}: `{key}` has two instances");
            }
            if let Phase::Starting { expected, .. } = slot.phase {
                let count = state.waiters.iter().filter(|it| it.on == Some(*id)).count();
                assert_eq!(expected, count, "{seed}: i{id} is expected by others");
            }
            let Phase::Ready { .. } = slot.phase else { continue };
            if slot.in_flight >= state.plan.max_concurrent {
                continue;
            }
            for waiter in &state.waiters {
                let same = match state.plan.strategy {
                    Strategy::Stateful => slot.bound.as_deref() == waiter.want.key.as_deref(),
                    Strategy::Singleton => true,
                    _ => slot.profile == waiter.want.profile && slot.serves(&waiter.want),
                };
                let is_bound = state.plan.strategy == Strategy::Stateful;
                let same = same && (is_bound || !waiter.want.is_alone || slot.in_flight == 0);
                assert!(!same, "{seed}: i{id} has room for {}", waiter.to);
            }
        }
        let first = state.waiters.iter().map(|it| it.deadline).min();
        assert!(first.is_none() || state.alarm().is_some_and(|at| Some(at) <= first), "{seed}");
    }

    /// Closes the pool: nothing may be left.
    fn finish(mut self) {
        self.state.close(Duration::from_secs(5), self.now);
        self.look();
        self.now += Duration::from_secs(5);
        self.state.tick(self.now);
        self.look();
        assert!(self.starting.is_empty() && self.up.is_empty(), "{}", self.seed);
        for lease in std::mem::take(&mut self.leases) {
            self.give_back(&lease);
        }
        assert!(self.state.parked.is_empty(), "{}: somebody is parked for ever", self.seed);
        for id in std::mem::take(&mut self.stopping) {
            self.state.stopped(id, self.now);
        }
        self.look();
        assert!(self.waiting.is_empty() && self.state.slots.is_empty(), "{}", self.seed);
        assert!(self.told_gone && self.state.is_gone(), "{}", self.seed);
        assert_eq!(self.state.alarm(), None, "{}", self.seed);
        assert_eq!(self.waits_told.0 + self.waits_told.1, self.waits, "{}", self.seed);
    }
}

fn random_plan(dice: &mut Dice) -> Arc<ServerPlan> {
    let mut one_of = |words: &[&str]| words[dice.below(words.len() as u64) as usize].to_owned();
    if one_of(&["", "", "", "per_user"]) == "per_user" {
        // The combinations that the catalog allows.
        let words = [
            one_of(&["per_user stateless", "per_user persistent"]),
            one_of(&["max_concurrent=1", "max_concurrent=2"]),
            one_of(&["max_instances=1", "max_instances=2", "max_instances=4"]),
            one_of(&["idle=0s", "idle=5s", "idle=60s"]),
            one_of(&["base=0s", "base=1s"]),
            one_of(&["drain=0s", "drain=10s"]),
            one_of(&["", "max_each=1", "max_each=2"]),
        ];
        return plan(&words.join(" "));
    }
    plan(
        &[
            one_of(&["stateless", "stateless", "stateful", "stateful", "persistent", "singleton"]),
            one_of(&["max_concurrent=1", "max_concurrent=2", "max_concurrent=3"]),
            one_of(&["max_instances=1", "max_instances=2", "max_instances=4"]),
            one_of(&["min_ready=0", "min_ready=0", "min_ready=1", "min_ready=2"]),
            one_of(&["", "", "always"]),
            one_of(&["idle=0s", "idle=5s", "idle=60s"]),
            one_of(&["ttl=5s", "ttl=60s", "ttl=never"]),
            one_of(&["probe=0s", "probe=3s"]),
            one_of(&["base=0s", "base=1s"]),
            one_of(&["tries=1", "tries=3", "tries=50"]),
            one_of(&["drain=0s", "drain=10s"]),
            one_of(&["", "isolated", "isolated"]),
            one_of(&["", "max_each=1", "max_each=2"]),
        ]
        .join(" "),
    )
}

fn pick<'a>(dice: &mut Dice, from: impl IntoIterator<Item = &'a u64>) -> Option<u64> {
    let all: Vec<u64> = from.into_iter().copied().collect();
    (!all.is_empty()).then(|| all[dice.below(all.len() as u64) as usize])
}
