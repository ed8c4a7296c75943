//! Placement: decides for a want which instance serves it, which start it waits for, or that it is refused.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::plan::{Activation, Strategy};
use crate::failure::Failure;
use crate::pool::{Cause, Event, Profile, Want, Why};

use super::slot::{Action, Phase, Planned, Slot};
use super::{State, start_failures};

/// Where a want is placed.
pub(super) enum Place {
    /// This instance has room.
    Ready(u64),
    /// It waits; for this start, if it counts on one.
    Wait(Option<u64>),
    Refuse(Failure),
}

impl<H: Clone, W> State<H, W> {
    /// Finds a place, and orders starts and stops for it if needed.
    pub(super) fn place(&mut self, want: &Want, now: Duration) -> Place {
        if self.is_stateful() {
            return self.place_bound(want, now);
        }
        let profile = self.profile(want);
        if let Some(id) = self.instance_with_room(want, |it| it == profile) {
            return Place::Ready(id);
        }
        if let Some(on) = self.join(want, |it| it == profile) {
            return Place::Wait(on);
        }
        let (may_start, may_grow) = (self.may_start(now), self.may_have_more(want));
        if may_start && may_grow && self.live() < self.max_instances() {
            return Place::Wait(self.order(profile, None, want, now));
        }
        if let Some(id) = self.instance_with_room(want, |it| it.is_within(profile)) {
            return Place::Ready(id);
        }
        if let Some(on) = self.join(want, |it| it.is_within(profile)) {
            return Place::Wait(on);
        }
        if may_start
            && (self.live() == self.max_instances()
                || !may_grow && self.live() < self.max_instances())
            && let Some(id) = self.longest_idle(|it| {
                !it.is_reserved()
                    && (may_grow || it.owner == want.owner)
                    && self.may_displace(it, want)
            })
        {
            let why = if self.serves(&self.slots[&id], want) { Why::Profile } else { Why::Owner };
            self.stop(id, why, None, now);
            return Place::Wait(self.order(profile, None, want, now));
        }
        if may_start
            && may_grow
            && let Some(id) = self.most_owned(want)
        {
            self.retire(id, Why::Owner, YIELD, now);
            return Place::Wait(self.order(profile, None, want, now));
        }
        if self.start_failures.holds(now) && !self.may_be_served(want, Slot::is_live) {
            return Place::Refuse(self.start_failures.refusal(&self.plan.name, now));
        }
        Place::Wait(None)
    }

    /// The same for a stateful server, where each key has its own instance.
    fn place_bound(&mut self, want: &Want, now: Duration) -> Place {
        let key = want.key.as_deref().unwrap_or_default();
        if let Some(&id) = self.bindings.get(key) {
            return self.place_on(id);
        }
        if let Some(planned) = self.planned.iter_mut().find(|it| it.key.as_deref() == Some(key)) {
            planned.expected += 1;
            return Place::Wait(None);
        }
        if let Some(place) = self.bind(want, |profile| profile == want.profile) {
            return place;
        }
        let may_start = self.may_start(now);
        if may_start && self.live() < self.max_instances() {
            return Place::Wait(self.order(want.profile, Some(key.into()), want, now));
        }
        if let Some(place) = self.bind(want, |profile| profile.is_within(want.profile)) {
            return place;
        }
        if may_start
            && self.live() == self.max_instances()
            && let Some(id) = self.longest_idle(|_| true)
        {
            self.stop(id, Why::Profile, None, now);
            return Place::Wait(self.order(want.profile, Some(key.into()), want, now));
        }
        if may_start
            && self.live() == self.max_instances()
            && let Some(id) = self.most_bound(want)
        {
            self.retire(id, Why::Owner, YIELD, now);
            return Place::Wait(self.order(want.profile, Some(key.into()), want, now));
        }
        if self.start_failures.holds(now) {
            return Place::Refuse(self.start_failures.refusal(&self.plan.name, now));
        }
        if self.live() < self.max_instances() {
            // One trial start is in progress; it shows whether the server runs again.
            return Place::Wait(None);
        }
        Place::Refuse(start_failures::sticky_busy(&self.plan.name, self.max_instances()))
    }

    fn place_on(&mut self, id: u64) -> Place {
        let max = self.max_concurrent();
        let slot = self.slots.get_mut(&id).expect("bindings name slots");
        match &mut slot.phase {
            Phase::Ready { .. } if slot.in_flight < max => Place::Ready(id),
            Phase::Starting { expected, .. } => {
                *expected += 1;
                Place::Wait(Some(id))
            }
            _ => Place::Wait(None),
        }
    }

    /// Binds an unused instance.
    fn bind(&mut self, want: &Want, fits: impl Fn(Profile) -> bool) -> Option<Place> {
        let key = want.key.as_deref().unwrap_or_default();
        let free = |slot: &Slot<H>| slot.bound.is_none() && fits(slot.profile);
        let ready = self.slots.iter().find(|(_, slot)| slot.is_ready() && free(slot));
        let starting = || self.slots.iter().find(|(_, slot)| slot.is_starting() && free(slot));
        if let Some(id) = ready.or_else(starting).map(|(id, _)| *id) {
            let key: Arc<str> = key.into();
            let slot = self.slots.get_mut(&id).expect("just found");
            slot.bound = Some(key.clone());
            slot.by = Arc::clone(&want.by);
            self.bindings.insert(key, id);
            return Some(self.place_on(id));
        }
        let planned = self.planned.iter_mut().find(|it| it.key.is_none() && fits(it.profile))?;
        planned.key = Some(key.into());
        planned.by = Arc::clone(&want.by);
        planned.expected += 1;
        Some(Place::Wait(None))
    }

    /// A lease on any ready instance with room.
    pub(crate) fn running(&mut self) -> Option<(u64, H)> {
        let bound = self
            .least_loaded(|slot| slot.bound.is_none())
            .or_else(|| self.least_loaded(|_| true))?;
        Some((bound, self.take(bound, None)))
    }

    /// The same among instances opened with at least this profile; if `owner` is given, only shared ones and
    /// that owner's.
    pub(crate) fn running_as(&mut self, profile: Profile, owner: Option<&str>) -> Option<(u64, H)> {
        let fits = |slot: &Slot<H>| slot.is_as(profile, owner);
        let found = self
            .least_loaded(|slot| fits(slot) && slot.bound.is_none())
            .or(self.least_loaded(fits))?;
        Some((found, self.take(found, None)))
    }

    /// Whether an instance qualifies for [`Self::running_as`].
    pub(crate) fn is_as(&self, id: u64, profile: Profile, owner: Option<&str>) -> bool {
        self.slots.get(&id).is_some_and(|it| it.is_as(profile, owner))
    }

    /// The instance turned out to serve this want, though it was opened with another profile.
    pub(crate) fn turned_out(&mut self, id: u64, want: &Want) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.profile = want.profile;
            if !slot.is_fixed {
                slot.owner = want.owner.clone();
            }
        }
    }

    /// The owner of an instance; `None` if it is shared.
    pub(crate) fn owner(&self, id: u64) -> Option<Arc<str>> {
        self.slots.get(&id)?.owner.clone()
    }

    /// The handle of a ready instance, regardless of its load.
    pub(crate) fn ready(&mut self, id: u64) -> Option<H> {
        self.slots.get(&id).filter(|it| it.is_ready())?;
        Some(self.take(id, None))
    }

    /// Places all waiters and starts warm instances. Called after every input except a lease or a release.
    pub(super) fn settle(&mut self, now: Duration) {
        let planned = std::mem::take(&mut self.planned);
        if !self.closing {
            self.reset_expectations(planned, now);
            for mut waiter in self.take_in_turn() {
                match self.place(&waiter.want, now) {
                    Place::Ready(id) => self.give(waiter, id, now),
                    Place::Refuse(failure) => self.refuse(waiter, failure, now),
                    Place::Wait(on) => {
                        waiter.on = on;
                        self.waiters.push_back(waiter);
                    }
                }
            }
            self.waiters.make_contiguous().sort_unstable_by_key(|it| it.ticket);
            // A principal placed elsewhere gives up the instance reserved for it.
            let (waiters, mut is_freed) = (&self.waiters, false);
            for slot in self.slots.values_mut().filter(|it| it.is_reserved()) {
                if slot.owner.as_ref().is_some_and(|it| !waits_as(waiters, it)) {
                    is_freed |= slot.release_reservation();
                }
            }
            if is_freed && !self.waiters.is_empty() {
                // This recursion ends: each time one reservation fewer is left.
                return self.settle(now);
            }
            self.warm(now);
            self.make_way_for_all();
        }
        self.rearm();
    }

    /// Resets the expectations of all starts. A start ordered for a principal stays its own as long as it
    /// waits: waiters before it have had their turn.
    fn reset_expectations(&mut self, planned: Vec<Planned>, now: Duration) {
        let waiters = &self.waiters;
        let is_waited_for = |owner: &Arc<str>| waits_as(waiters, owner);
        for slot in self.slots.values_mut().filter(|it| it.is_starting()) {
            slot.expected().into_iter().for_each(|it| *it = 0);
            if !slot.is_fixed {
                slot.owner.take_if(|it| !is_waited_for(it));
            }
            slot.is_common = false;
        }
        let planned = planned.into_iter();
        // A start ordered under another plan may not fit this one.
        let fits = |it: &Planned| self.opened_with(it.profile) == it.profile;
        let kept = planned.filter(|it| fits(it) && it.owner.as_ref().is_some_and(is_waited_for));
        let kept: Vec<_> = kept.collect();
        for planned in kept {
            if self.live() < self.max_instances() && self.may_start(now) {
                self.start(Planned { expected: 0, ..planned }, now);
            }
        }
    }

    /// Gives a freed place to the next waiter that fits.
    pub(super) fn hand_over(&mut self, id: u64, now: Duration) -> bool {
        let Some(slot) = self.slots.get(&id) else { return false };
        if slot.in_flight >= self.max_concurrent() {
            return false;
        }
        let fits = |waiter: &super::Waiter<W>| {
            if self.is_stateful() {
                return slot.bound.as_deref()
                    == Some(waiter.want.key.as_deref().unwrap_or_default());
            }
            let profile = self.profile(&waiter.want);
            self.serves(slot, &waiter.want)
                && slot.in_flight < self.room_for(&waiter.want)
                && (slot.profile == profile
                    || waiter.on.is_none() && slot.profile.is_within(profile))
        };
        let Some(at) = self.next_of(fits) else { return false };
        let waiter = self.waiters.remove(at).expect("it was found there");
        self.expect_less(waiter.on);
        self.give(waiter, id, now);
        true
    }

    /// Starts instances that must be ready before any call (`minReady`, `always-on`).
    fn warm(&mut self, now: Duration) {
        if self.start_failures.refill.is_some_and(|at| now < at) {
            return;
        }
        for _ in 0..self.missing_warm() {
            if !self.may_start(now) {
                return;
            }
            let always = self.plan.activation == Activation::AlwaysOn;
            let cause = if always { Cause::AlwaysOn } else { Cause::Warm };
            let profile = self.opened_with(self.recent);
            let by = Arc::default();
            self.start(Planned { profile, key: None, owner: None, by, cause, expected: 0 }, now);
        }
    }

    /// How many warm instances are missing.
    pub(super) fn missing_warm(&self) -> usize {
        if self.closing {
            return 0;
        }
        let (warm, least) = self.targets();
        let live = self.live();
        let free = if self.is_stateful() {
            let bound = self.slots.values().filter(|it| it.is_live() && it.bound.is_some()).count();
            live - bound - self.planned.iter().filter(|it| it.key.is_some()).count()
        } else {
            live
        };
        let missing = warm.saturating_sub(free).max(least.saturating_sub(live));
        missing.min(self.max_instances().saturating_sub(live))
    }

    /// Whether a ready, idle instance is more than what must stay warm.
    pub(super) fn has_surplus(&self) -> bool {
        let (warm, least) = self.targets();
        let ready = self.slots.values().filter(|it| it.is_ready());
        let free = ready.clone().filter(|it| it.bound.is_none()).count();
        free > warm && ready.count() > least
    }

    /// The same, counting instances that are starting.
    pub(super) fn will_have_surplus(&self) -> bool {
        let (warm, least) = self.targets();
        let there = self.slots.values().filter(|it| it.is_ready() || it.is_starting());
        let free = there.clone().filter(|it| it.bound.is_none()).count();
        free > warm && there.count() > least
    }

    /// How many instances must be free for new callers, and how many must exist in all.
    fn targets(&self) -> (usize, usize) {
        let always = self.plan.activation == Activation::AlwaysOn;
        let warm = if always || self.clients > 0 { self.plan.min_ready } else { 0 };
        (warm, usize::from(always))
    }

    /// Orders a start. Returns its id if the process need not wait for another to stop.
    fn order(
        &mut self,
        profile: Profile,
        key: Option<Arc<str>>,
        want: &Want,
        now: Duration,
    ) -> Option<u64> {
        // A key has an instance of its own anyway.
        let is_apart = self.plan.per_user().is_some();
        let owner = want.owner.clone();
        let owner = owner.filter(|_| is_apart || want.owns() && key.is_none());
        let (by, cause) = (Arc::clone(&want.by), want.cause);
        self.start(Planned { profile, key, owner, by, cause, expected: 1 }, now)
    }

    fn start(&mut self, planned: Planned, now: Duration) -> Option<u64> {
        if self.slots.len() >= self.max_instances() {
            self.planned.push(planned);
            return None;
        }
        let Planned { profile, key, owner, by, cause, expected } = planned;
        let id = self.number();
        let deadline = now.saturating_add(self.plan.timeouts.start).saturating_add(START_GRACE);
        let mut slot = Slot::new(profile, cause, self.start_failures.round, now);
        slot.phase = Phase::Starting { deadline, expected };
        (slot.owner, slot.by) = (owner.clone(), by);
        slot.is_fixed = self.plan.per_user().is_some();
        if let Some(key) = key {
            self.bindings.insert(key.clone(), id);
            slot.bound = Some(key);
        }
        self.slots.insert(id, slot);
        *self.starts.entry(cause).or_default() += 1;
        self.tell(Event::Starting { id, cause });
        self.actions.push(Action::Start { id, profile, owner });
        self.arm(deadline);
        Some(id)
    }

    /// Joins a start that still has places: `Some(None)` if the start is only planned.
    fn join(&mut self, want: &Want, fits: impl Fn(Profile) -> bool) -> Option<Option<u64>> {
        let (max, is_one) = (self.room_for(want), self.is_singleton());
        for (id, slot) in &mut self.slots {
            if fits(slot.profile)
                && (is_one || slot.serves(want))
                && let Some(expected) = slot.expected()
                && *expected < max
            {
                *expected += 1;
                slot.lent(want);
                return Some(Some(*id));
            }
        }
        let owner = want.owner.as_ref().filter(|_| want.owns());
        let is_apart = self.plan.per_user().is_some();
        let is_ours = |own: &Option<Arc<str>>| match (own, &want.owner) {
            (own, owner) if is_apart => own == owner,
            (Some(own), Some(owner)) => own == owner,
            _ => true,
        };
        let planned = self
            .planned
            .iter_mut()
            .find(|it| fits(it.profile) && it.expected < max && is_ours(&it.owner))?;
        planned.expected += 1;
        if planned.owner.is_none() {
            planned.owner = owner.cloned();
        }
        Some(None)
    }

    /// An instance with room for this want: the principal's own before an unowned one.
    fn instance_with_room(&self, want: &Want, fits: impl Fn(Profile) -> bool) -> Option<u64> {
        let max = self.room_for(want);
        let fits =
            |slot: &Slot<H>| fits(slot.profile) && slot.in_flight < max && self.serves(slot, want);
        if want.owner.is_some()
            && let Some(own) = self.least_loaded(|slot| slot.owner.is_some() && fits(slot))
        {
            return Some(own);
        }
        self.least_loaded(fits)
    }

    /// Whether the principal may have one more instance of its own.
    fn may_have_more(&self, want: &Want) -> bool {
        self.owned_by(&want.owner) < self.plan.max_each.max(1)
    }

    /// When other principals own every instance and none is idle: an instance of the principal with the most,
    /// which is replaced once its calls are done. So no principal starves. Instances with work that outlives
    /// calls are spared.
    fn most_owned(&self, want: &Want) -> Option<u64> {
        if want.owner.is_none() || self.live() < self.max_instances() {
            return None;
        }
        let profile = self.profile(want);
        let has_one = |slot: &Slot<H>| {
            slot.owner == want.owner && slot.is_live() && slot.profile.is_within(profile)
        };
        if self.slots.values().any(has_one) {
            return None;
        }
        let owned = |slot: &Slot<H>| {
            let all = self.slots.values();
            all.filter(|it| it.is_live() && it.owner == slot.owner).count()
        };
        self.slots
            .iter()
            .filter(|(_, it)| it.is_ready() && it.at_work == 0)
            .filter(|(_, it)| !it.is_reserved() && !self.serves(it, want))
            // The last instance of a principal is spared while a question is open in it.
            .filter(|(id, it)| owned(it) > 1 || !self.has_parked(**id))
            .min_by_key(|(_, it)| (std::cmp::Reverse(owned(it)), it.in_flight, it.given))
            .map(|(id, _)| *id)
    }

    /// The least loaded instance with room; among equals, the least recently lent.
    pub(super) fn least_loaded(&self, fits: impl Fn(&Slot<H>) -> bool) -> Option<u64> {
        let max = self.max_concurrent();
        self.slots
            .iter()
            .filter(|(_, slot)| slot.in_flight < max && slot.is_ready() && fits(slot))
            .min_by_key(|(_, slot)| (slot.in_flight, slot.given))
            .map(|(id, _)| *id)
    }

    pub(super) fn longest_idle(&self, which: impl Fn(&Slot<H>) -> bool) -> Option<u64> {
        self.slots
            .iter()
            .filter(|(_, slot)| slot.is_idle() && which(slot))
            .min_by_key(|(_, slot)| slot.last())
            .map(|(id, _)| *id)
    }

    /// Whether one of these instances could serve this in time.
    pub(super) fn may_be_served(&self, want: &Want, of: impl Fn(&Slot<H>) -> bool) -> bool {
        if self.is_stateful() {
            return false;
        }
        let profile = self.profile(want);
        let fits = |slot: &Slot<H>| slot.profile.is_within(profile) && self.serves(slot, want);
        self.slots.values().any(|slot| of(slot) && fits(slot))
    }

    fn may_start(&self, now: Duration) -> bool {
        // After a failure, one trial start shows whether the server runs again.
        let proven = self.start_failures.attempt == 0
            || self.planned.is_empty() && !self.slots.values().any(Slot::is_starting);
        !self.closing && !self.start_failures.holds(now) && proven
    }

    /// Instances that serve or will serve.
    pub(super) fn live(&self) -> usize {
        self.slots.values().filter(|slot| slot.is_live()).count() + self.planned.len()
    }

    /// A waiter that counted on this start does so no more.
    pub(super) fn expect_less(&mut self, on: Option<u64>) {
        let slot = on.and_then(|id| self.slots.get_mut(&id));
        if let Some(expected) = slot.and_then(Slot::expected) {
            *expected = expected.saturating_sub(1);
        }
    }

    /// Whether there are more than the plan allows. Nobody is counted where all together are not too many.
    pub(super) fn has_too_many(&self) -> bool {
        let max = self.max_instances();
        self.slots.len() + self.planned.len() > max && self.live() > max
    }

    /// Whether an instance may be lent to this want.
    pub(super) fn serves(&self, slot: &Slot<H>, want: &Want) -> bool {
        self.is_singleton() || slot.serves(want)
    }

    /// Whether the strategy is singleton: one shared instance, whatever owner earlier wants named.
    fn is_singleton(&self) -> bool {
        self.plan.strategy == Strategy::Singleton
    }

    fn profile(&self, want: &Want) -> Profile {
        self.opened_with(want.profile)
    }

    pub(super) fn opened_with(&self, profile: Profile) -> Profile {
        if self.plan.strategy == Strategy::Singleton { Profile::ALL } else { profile }
    }

    pub(super) fn max_instances(&self) -> usize {
        if self.plan.strategy == Strategy::Singleton { 1 } else { self.plan.max_instances.max(1) }
    }

    /// How many calls may be in flight in an instance that also takes this one.
    fn room_for(&self, want: &Want) -> usize {
        if want.is_alone { 1 } else { self.max_concurrent() }
    }

    pub(super) fn max_concurrent(&self) -> usize {
        self.plan.max_concurrent.max(1)
    }
}

/// Whether a waiter will own its instance as this principal.
pub(super) fn waits_as<W>(waiters: &VecDeque<super::Waiter<W>>, owner: &Arc<str>) -> bool {
    waiters.iter().any(|it| it.want.owner.as_ref() == Some(owner) && it.want.owns())
}

/// The drain time of an instance that makes room for another principal: longer than any call.
const YIELD: Duration = Duration::from_secs(24 * 3600);

/// The backend enforces `timeouts.start` itself and reports better why. This is how much later the pool gives
/// up on it.
const START_GRACE: Duration = Duration::from_secs(2);
