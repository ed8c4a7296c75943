//! The scheduler of a pool: wants, events of instances and the time in, actions out. No clock, lock or task.
//!
//! Every input is a method that takes `now`, the time since the pool was made. The actions are then in
//! [`State::actions`], and [`State::alarm`] says when to call [`State::tick`].

mod evict;
mod fair;
mod place;
mod slot;
mod start_failures;
mod time;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::catalog::plan::{Activation, ServerPlan, Strategy};
use crate::failure::{Failure, Reason};
use crate::pool::{Cause, Event, Profile, Want, Why};

use fair::{Parked, Shares};
use place::Place;
pub(crate) use slot::{Action, Asked, Phase, Planned, Slot, Waiter};
pub(crate) use start_failures::{StartFailures, draining};

/// The state of a pool. `H` is the handle of an instance, `W` the channel to a waiter.
pub(crate) struct State<H, W> {
    pub(crate) plan: Arc<ServerPlan>,
    /// The source of instance ids.
    numbers: &'static AtomicU64,
    /// Every process by id.
    pub(crate) slots: BTreeMap<u64, Slot<H>>,
    planned: Vec<Planned>,
    bindings: HashMap<Arc<str>, u64>,
    /// In order of arrival; tickets ascend.
    pub(crate) waiters: VecDeque<Waiter<W>>,
    /// What each principal has and waits for.
    pub(crate) shares: Shares,
    /// Leases whose calls wait for the user, by ticket.
    pub(crate) parked: BTreeMap<u64, Parked>,
    tickets: u64,
    turn: u64,
    /// The profile of the last caller: warm instances are opened with it.
    recent: Profile,
    pub(crate) clients: usize,
    pub(crate) closing: bool,
    pub(crate) start_failures: StartFailures,
    alarm: Option<Duration>,
    /// Whether the alarm moved to an earlier time since it was last read.
    pub(crate) rearmed: bool,
    pub(crate) actions: Vec<Action<H, W>>,
    pub(crate) starts: BTreeMap<Cause, u64>,
    pub(crate) stops: BTreeMap<Why, u64>,
    pub(crate) refusals: BTreeMap<&'static str, u64>,
}

impl<H: Clone, W> State<H, W> {
    pub(crate) fn new(plan: Arc<ServerPlan>, numbers: &'static AtomicU64, now: Duration) -> Self {
        let mut state = Self {
            plan,
            numbers,
            slots: BTreeMap::new(),
            planned: Vec::new(),
            bindings: HashMap::new(),
            waiters: VecDeque::new(),
            shares: Shares::default(),
            parked: BTreeMap::new(),
            tickets: 0,
            turn: 0,
            recent: Profile::default(),
            clients: 0,
            closing: false,
            start_failures: StartFailures::default(),
            alarm: None,
            rearmed: false,
            actions: Vec::new(),
            starts: BTreeMap::new(),
            stops: BTreeMap::new(),
            refusals: BTreeMap::new(),
        };
        state.settle(now);
        state
    }

    /// A caller wants an instance. `to` is called only if the caller has to wait.
    pub(crate) fn want(&mut self, want: Want, now: Duration, to: impl FnOnce() -> W) -> Asked<H> {
        if self.closing {
            return self.refuse_now(draining(&self.plan.name));
        }
        if want.cause != Cause::List {
            self.recent = want.profile;
        }
        let on = match self.place(&want, now) {
            Place::Ready(id) => {
                let handle = self.lend(id, &want);
                return Asked::Given { id, handle, by: want.by };
            }
            Place::Refuse(failure) => return self.refuse_now(failure),
            Place::Wait(on) => on,
        };
        if want.patience.is_zero() {
            self.expect_less(on);
            return self.refuse_now(start_failures::busy(
                &self.plan.name,
                on.is_some(),
                want.patience,
            ));
        }
        if self.waiters.len() >= MAX_WAITERS {
            let overloaded = start_failures::overloaded(&self.plan.name, self.waiters.len());
            let Some(at) = self.waiter_to_drop(&want.by) else {
                self.expect_less(on);
                return self.refuse_now(overloaded);
            };
            let waiter = self.waiters.remove(at).expect("it was found there");
            self.expect_less(waiter.on);
            self.refuse(waiter, overloaded, now);
        }
        let (ticket, deadline) = (self.next_ticket(), now.saturating_add(want.patience));
        self.shares.wait(&want.by);
        if on.is_none() {
            self.make_way(&want);
        }
        self.waiters.push_back(Waiter { ticket, to: to(), want, since: now, deadline, on });
        self.arm(deadline);
        Asked::Waits(ticket)
    }

    /// A caller stops waiting.
    pub(crate) fn leave(&mut self, ticket: u64, now: Duration) {
        let Ok(at) = self.waiters.binary_search_by_key(&ticket, |it| it.ticket) else { return };
        let waiter = self.waiters.remove(at).expect("it was found there");
        self.expect_less(waiter.on);
        self.shares.wait_no_more(&waiter.want.by);
        self.tell(Event::Waited { took: now.saturating_sub(waiter.since), served: false });
        if !self.planned.is_empty() || self.slots.values().any(Slot::is_reserved) {
            self.settle(now);
        }
    }

    /// A lease ends. One without a principal was not a use: it does not reset the idle time.
    pub(crate) fn release(&mut self, id: u64, by: Option<&Arc<str>>, now: Duration) {
        by.into_iter().for_each(|by| self.shares.give_back(by));
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.in_flight = slot.in_flight.saturating_sub(1);
        let idle = slot.in_flight == 0;
        match &mut slot.phase {
            Phase::Ready { last, .. } => {
                if by.is_some() {
                    *last = now;
                }
                if !self.waiters.is_empty() && !self.closing && self.hand_over(id, now) {
                    return;
                }
            }
            Phase::Draining { why, .. } if idle && slot.at_work == 0 => {
                let why = *why;
                self.stop(id, why, None, now);
                return self.settle(now);
            }
            _ => return,
        }
        if idle {
            self.became_unused(id, now);
        }
    }

    /// A lease becomes a hold: it keeps the instance alive and takes no place in it.
    pub(crate) fn hold(&mut self, id: u64, at_work: bool) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.held += 1;
            slot.at_work += usize::from(at_work);
        }
    }

    /// A hold ends.
    pub(crate) fn let_go(&mut self, id: u64, at_work: bool, now: Duration) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.held = slot.held.saturating_sub(1);
        slot.at_work = slot.at_work.saturating_sub(usize::from(at_work));
        let is_busy = slot.is_busy();
        match &mut slot.phase {
            Phase::Ready { last, .. } => *last = now,
            Phase::Draining { why, .. } if !is_busy => {
                let why = *why;
                self.stop(id, why, None, now);
                return self.settle(now);
            }
            _ => return,
        }
        if !is_busy {
            self.became_unused(id, now);
        }
    }

    /// A start has succeeded or failed.
    pub(crate) fn started(&mut self, id: u64, result: Result<H, Failure>, now: Duration) {
        match (result, self.slots.get(&id).is_some_and(Slot::is_starting)) {
            (Ok(handle), true) => self.start_succeeded(id, handle, now),
            (Err(failure), true) => self.start_failed(id, failure, now),
            // The abort arrived a moment too late.
            (Ok(handle), false) => {
                let slot = Slot::new(self.recent, Cause::Retry, self.start_failures.round, now);
                let phase = Phase::Stopping { why: Why::Closed, since: now };
                self.slots.insert(id, Slot { phase, ..slot });
                self.actions.push(Action::Stop { id, handle });
            }
            (Err(_), false) => {}
        }
    }

    /// An instance has ended by itself.
    pub(crate) fn ended(&mut self, id: u64, failure: Failure, now: Duration) {
        self.crash(id, Why::Ended, Some(failure.to_string()), now);
    }

    /// A probe has finished.
    pub(crate) fn probed(&mut self, id: u64, result: Result<(), String>, now: Duration) {
        // A call that arrived meanwhile may be why the probe failed.
        let is_at_work = self.slots.get(&id).is_some_and(|it| it.in_flight > 0);
        match result {
            Err(said) if !is_at_work => self.crash(id, Why::Unwell, Some(said), now),
            _ => {
                let next = self.next_probe(now);
                if let Some(Slot { phase: Phase::Ready { probe, probing, .. }, .. }) =
                    self.slots.get_mut(&id)
                {
                    (*probe, *probing) = (next, false);
                    next.into_iter().for_each(|next| self.arm(next));
                }
            }
        }
    }

    /// An instance misbehaved.
    pub(crate) fn kill(&mut self, id: u64, now: Duration) {
        self.crash(id, Why::Killed, None, now);
    }

    /// A stopping instance's process is gone.
    pub(crate) fn stopped(&mut self, id: u64, now: Duration) {
        let Some(Slot { phase: Phase::Stopping { why, since }, .. }) = self.slots.get(&id) else {
            return;
        };
        let (why, took) = (*why, now.saturating_sub(*since));
        self.slots.remove(&id);
        self.tell(Event::Stopped { id, why, took });
        self.settle(now);
        self.check_gone();
    }

    pub(crate) fn client_joined(&mut self, now: Duration) {
        self.clients += 1;
        self.slots.values_mut().for_each(|slot| slot.parting = false);
        self.settle(now);
    }

    pub(crate) fn client_left(&mut self, now: Duration) {
        self.clients = self.clients.saturating_sub(1);
        if self.clients > 0 || self.plan.activation == Activation::AlwaysOn {
            return;
        }
        for id in self.ids() {
            let slot = self.slots.get_mut(&id).expect("nothing was removed since");
            slot.parting = true;
            if slot.is_idle() {
                self.stop(id, Why::NoClients, None, now);
            }
        }
        self.settle(now);
    }

    /// A session has ended. Nobody else may see the state it leaves behind.
    pub(crate) fn forget(&mut self, key: &str, now: Duration) {
        let waited_for = self.is_waited_for(key);
        let Some(&id) = self.bindings.get(key) else { return };
        let starting = self.slots.get(&id).is_some_and(Slot::is_starting);
        match (starting, waited_for) {
            (true, true) => return,
            // Unused: any session may have it.
            (true, false) => self.unbind(id),
            (false, _) => self.retire(id, Why::SessionOver, self.plan.drain, now),
        }
        self.settle(now);
    }

    /// The plan has changed. Running instances stay, unless they are now started, reached or shared in another
    /// way: then they drain.
    pub(crate) fn reconfigure(&mut self, plan: Arc<ServerPlan>, now: Duration) {
        let old = std::mem::replace(&mut self.plan, plan);
        self.start_failures.clear();
        if self.closing {
            return;
        }
        let another = old.strategy != self.plan.strategy
            || old.reach != self.plan.reach
            || old.revisions != self.plan.revisions;
        let probe = self.next_probe(now);
        for id in self.ids() {
            let slot = self.slots.get_mut(&id).expect("nothing was removed since");
            slot.parting &= self.plan.activation == Activation::OnDemand;
            if let Phase::Ready { probe: at, probing: false, .. } = &mut slot.phase {
                *at = probe;
            }
            if another && slot.is_live() {
                self.retire(id, Why::Reconfigured, self.plan.drain, now);
            }
        }
        while self.has_too_many() {
            let Some(id) = self.longest_idle(|_| true) else { break };
            self.stop(id, Why::Reconfigured, None, now);
        }
        self.settle(now);
    }

    /// Drains and stops all instances.
    pub(crate) fn stop_all(&mut self, now: Duration) {
        for id in self.ids() {
            self.retire(id, Why::Killed, self.plan.drain, now);
        }
        self.settle(now);
    }

    /// Clears backoff and suspension.
    pub(crate) fn retry(&mut self, now: Duration) {
        self.start_failures.clear();
        self.settle(now);
    }

    /// Refuses new callers, drains for `drain`, then stops everything.
    pub(crate) fn close(&mut self, drain: Duration, now: Duration) {
        self.closing = true;
        self.planned.clear();
        for waiter in std::mem::take(&mut self.waiters) {
            self.refuse(waiter, draining(&self.plan.name), now);
        }
        for id in self.ids() {
            self.retire(id, Why::Closed, drain, now);
        }
        self.rearm();
        self.check_gone();
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.closing && self.slots.is_empty()
    }

    /// Whether this start is still wanted.
    pub(crate) fn is_starting(&self, id: u64) -> bool {
        self.slots.get(&id).is_some_and(Slot::is_starting)
    }

    /// Whether this instance still has to be watched.
    pub(crate) fn is_watched(&self, id: u64) -> bool {
        self.slots
            .get(&id)
            .is_some_and(|it| it.is_ready() || matches!(it.phase, Phase::Draining { .. }))
    }

    // ── what the inputs share ──

    fn start_succeeded(&mut self, id: u64, handle: H, now: Duration) {
        let probe = self.next_probe(now);
        let slot = self.slots.get_mut(&id).expect("the caller has seen it");
        let (cause, took) = (slot.cause, now.saturating_sub(slot.since));
        slot.phase =
            Phase::Ready { handle: handle.clone(), since: now, last: now, probe, probing: false };
        let key = slot.bound.clone();
        // The caller it was started for may be gone without having used it.
        if slot.owner.as_ref().is_some_and(|it| !place::waits_as(&self.waiters, it)) {
            slot.release_reservation();
        }
        slot.is_common = false;
        self.start_failures.is_over();
        self.tell(Event::Started { id, cause, took });
        self.actions.push(Action::Watch { id, handle });
        if key.is_some_and(|key| !self.is_waited_for(&key)) {
            // The session it was started for is gone without having used it.
            self.unbind(id);
        }
        self.settle(now);
        if self.slots.get(&id).is_some_and(|slot| slot.in_flight == 0) {
            self.became_unused(id, now);
        }
    }

    fn start_failed(&mut self, id: u64, mut failure: Failure, now: Duration) {
        self.unbind(id);
        let slot = self.slots.remove(&id).expect("the caller has seen it");
        let (cause, took) = (slot.cause, now.saturating_sub(slot.since));
        failure.server.get_or_insert_with(|| self.plan.name.clone());
        failure.instance.get_or_insert(id);
        self.tell(Event::StartFailed { id, cause, took, failure: failure.clone() });
        let alone = !self.slots.values().any(Slot::is_ready);
        let before = (self.start_failures.attempt, self.start_failures.suspended);
        // One principal's missing login says nothing about the server or about other principals, and neither does the
        // number of instances that all replicas may have.
        if failure.is_about_places() {
            self.start_failures.no_place(now);
        } else if failure.reason != Reason::LoginRequired {
            self.start_failures.failed(failure.clone(), slot.round, alone, &self.plan.retry, now);
        }
        let attempt = self.start_failures.attempt;
        if before != (attempt, self.start_failures.suspended) {
            match self.start_failures.until {
                Some(until) => {
                    self.tell(Event::BackingOff { attempt, pause: until.saturating_sub(now) })
                }
                None => self.tell(Event::Suspended { attempt }),
            }
        }
        if !failure.is_about_places() {
            failure.retry_after = self.start_failures.until.map(|until| until.saturating_sub(now));
        }
        for waiter in std::mem::take(&mut self.waiters) {
            // A server that cannot run twice still serves one call after the other.
            if waiter.on == Some(id) && !self.may_be_served(&waiter.want, Slot::is_ready) {
                self.refuse(waiter, failure.clone(), now);
            } else {
                self.waiters.push_back(waiter);
            }
        }
        self.settle(now);
        self.check_gone();
    }

    /// An instance that crashed or misbehaved stops at once.
    fn crash(&mut self, id: u64, why: Why, detail: Option<String>, now: Duration) {
        let lived = match self.slots.get(&id) {
            Some(Slot { phase: Phase::Ready { since, .. }, .. }) => now.saturating_sub(*since),
            Some(Slot { phase: Phase::Draining { .. }, .. }) => Duration::MAX,
            Some(slot) if slot.is_starting() && why == Why::Killed => Duration::ZERO,
            _ => return,
        };
        if why != Why::Killed {
            self.start_failures.crashed(lived, &self.plan.retry, now);
        }
        self.stop(id, why, detail, now);
        self.settle(now);
        self.check_gone();
    }

    /// The instance is unused: stops it, or sets the alarm for its idle time.
    fn became_unused(&mut self, id: u64, now: Duration) {
        let over = self.has_too_many();
        let Some(slot) = self.slots.get(&id) else { return };
        if slot.is_idle() && (slot.parting || over) {
            let why = if over { Why::Reconfigured } else { Why::NoClients };
            self.stop(id, why, None, now);
            return self.settle(now);
        }
        if !self.waiters.is_empty() && slot.is_idle() {
            // A waiter may need its place for an instance with another profile.
            return self.settle(now);
        }
        let at = if slot.bound.is_none() {
            self.stops_when_idle().then(|| slot.last().saturating_add(self.plan.idle))
        } else {
            self.plan.session_ttl.map(|ttl| slot.last().saturating_add(ttl))
        };
        at.into_iter().for_each(|at| self.arm(at));
    }

    /// Stops it when its calls are done or `drain` is over; at once if there are none.
    fn retire(&mut self, id: u64, why: Why, drain: Duration, now: Duration) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let until = now.saturating_add(drain);
        if !slot.is_busy() || drain.is_zero() || slot.is_starting() {
            let why = if slot.is_busy() { Why::Forced } else { why };
            return self.stop(id, why, None, now);
        }
        match &mut slot.phase {
            Phase::Draining { until: earlier, .. } => *earlier = until.min(*earlier),
            Phase::Ready { handle, .. } => {
                let handle = handle.clone();
                slot.phase = Phase::Draining { handle, why, until };
                self.unbind(id);
                self.lost_one();
                if why == Why::Owner {
                    self.leave_parked(id);
                }
            }
            Phase::Starting { .. } | Phase::Stopping { .. } => return,
        }
        self.arm(until);
    }

    fn stop(&mut self, id: u64, why: Why, detail: Option<String>, now: Duration) {
        self.unbind(id);
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let was = std::mem::replace(&mut slot.phase, Phase::Stopping { why, since: now });
        match was {
            Phase::Starting { .. } => {
                self.slots.remove(&id);
                self.actions.push(Action::Abort { id });
            }
            Phase::Ready { handle, .. } => {
                self.actions.push(Action::Stop { id, handle });
                self.lost_one();
            }
            Phase::Draining { handle, .. } => self.actions.push(Action::Stop { id, handle }),
            Phase::Stopping { .. } => {
                slot.phase = was;
                return;
            }
        }
        *self.stops.entry(why).or_default() += 1;
        self.tell(Event::Stopping { id, why, detail });
    }

    /// Failed attempts to scale out say nothing about starting the first instance.
    fn lost_one(&mut self) {
        if !self.start_failures.suspended && !self.slots.values().any(Slot::is_ready) {
            self.start_failures.is_over();
        }
    }

    fn unbind(&mut self, id: u64) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        if let Some(key) = slot.bound.take() {
            self.bindings.remove(&key);
            slot.was_bound = Some(key);
        }
    }

    fn take(&mut self, id: u64, by: Option<&Arc<str>>) -> H {
        self.turn += 1;
        let slot = self.slots.get_mut(&id).expect("only what is there is given");
        slot.in_flight += 1;
        slot.given = self.turn;
        slot.uses += u64::from(by.is_some());
        by.into_iter().for_each(|by| self.shares.lend(by, self.turn));
        match &slot.phase {
            Phase::Ready { handle, .. } => handle.clone(),
            _ => unreachable!("only what is ready is given"),
        }
    }

    fn lend(&mut self, id: u64, want: &Want) -> H {
        self.slots.get_mut(&id).expect("only what is there is given").lent(want);
        self.take(id, Some(&want.by))
    }

    fn give(&mut self, waiter: Waiter<W>, id: u64, now: Duration) {
        self.shares.wait_no_more(&waiter.want.by);
        let handle = self.lend(id, &waiter.want);
        self.tell(Event::Waited { took: now.saturating_sub(waiter.since), served: true });
        self.actions.push(Action::Give { to: waiter.to, id, handle, by: waiter.want.by });
    }

    fn refuse(&mut self, waiter: Waiter<W>, failure: Failure, now: Duration) {
        *self.refusals.entry(failure.reason.word()).or_default() += 1;
        self.shares.wait_no_more(&waiter.want.by);
        self.tell(Event::Waited { took: now.saturating_sub(waiter.since), served: false });
        self.tell(Event::Refused { reason: failure.reason.word() });
        self.actions.push(Action::Refuse { to: waiter.to, failure });
    }

    fn refuse_now(&mut self, failure: Failure) -> Asked<H> {
        *self.refusals.entry(failure.reason.word()).or_default() += 1;
        self.tell(Event::Refused { reason: failure.reason.word() });
        Asked::Refused(failure)
    }

    fn tell(&mut self, event: Event) {
        self.actions.push(Action::Tell(event));
    }

    fn check_gone(&mut self) {
        if self.is_gone() {
            self.actions.push(Action::Gone);
        }
    }

    fn is_waited_for(&self, key: &str) -> bool {
        self.waiters.iter().any(|it| it.want.key.as_deref().unwrap_or_default() == key)
    }

    fn ids(&self) -> Vec<u64> {
        self.slots.keys().copied().collect()
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn is_stateful(&self) -> bool {
        self.plan.strategy == Strategy::Stateful
    }
}

/// The bound of the queue of one pool.
pub(crate) const MAX_WAITERS: usize = 1024;
