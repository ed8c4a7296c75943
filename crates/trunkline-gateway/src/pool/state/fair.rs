//! Fairness between principals: who is next in the queue, and who makes way for whom.
//!
//! A free place goes to the waiting principal with the fewest leases, then to the one served longest ago. So a
//! principal with one call waits for one free place, however many calls another has. Nothing is reserved: a
//! principal that is alone may use the whole pool. Parked calls and a key's instance make way for a principal
//! that has at least two fewer; the margin of two keeps the two from taking the place from each other in turn.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::pool::Want;

use super::slot::{Action, Phase, Slot, Waiter};
use super::{State, Why};

/// The leases and waiters of each principal. Principals without either have no entry, except for one.
#[derive(Default)]
pub(crate) struct Shares {
    all: BTreeMap<Arc<str>, Share>,
    /// The last that had neither any more. It is the likeliest to come again, so its entry stays.
    idle: Option<Arc<str>>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    leases: usize,
    waiters: usize,
    /// When it was last served, counted in leases; 0 for never, or long ago.
    served: u64,
}

impl Share {
    fn is_empty(&self) -> bool {
        self.leases == 0 && self.waiters == 0
    }
}

impl Shares {
    pub(crate) fn leases(&self, who: &str) -> usize {
        self.all.get(who).map_or(0, |it| it.leases)
    }

    pub(crate) fn waiters(&self, who: &str) -> usize {
        self.all.get(who).map_or(0, |it| it.waiters)
    }

    pub(super) fn lend(&mut self, who: &Arc<str>, turn: u64) {
        self.more(who, |it| (it.leases, it.served) = (it.leases + 1, turn));
    }

    /// The lowest rank is next.
    fn rank(&self, who: &str) -> (usize, u64) {
        self.all.get(who).map_or((0, 0), |it| (it.leases, it.served))
    }

    pub(super) fn give_back(&mut self, who: &Arc<str>) {
        self.less(who, |it| it.leases = it.leases.saturating_sub(1));
    }

    pub(super) fn wait(&mut self, who: &Arc<str>) {
        self.more(who, |it| it.waiters += 1);
    }

    pub(super) fn wait_no_more(&mut self, who: &Arc<str>) {
        self.less(who, |it| it.waiters = it.waiters.saturating_sub(1));
    }

    /// The principal with the most waiters.
    fn most_waiting(&self) -> Option<(&Arc<str>, usize)> {
        let all = self.all.iter().map(|(who, it)| (who, it.waiters));
        all.max_by(|one, other| (one.1, one.0).cmp(&(other.1, other.0)))
    }

    fn several_wait(&self) -> bool {
        self.all.values().filter(|it| it.waiters > 0).nth(1).is_some()
    }

    fn more(&mut self, who: &Arc<str>, more: impl FnOnce(&mut Share)) {
        match self.all.get_mut(who) {
            Some(share) => more(share),
            None => more(self.all.entry(Arc::clone(who)).or_default()),
        }
    }

    fn less(&mut self, who: &Arc<str>, less: impl FnOnce(&mut Share)) {
        let Some(share) = self.all.get_mut(who) else { return };
        less(share);
        if !share.is_empty() {
            return;
        }
        *share = Share::default();
        if self.idle.as_ref() == Some(who) {
            return;
        }
        let before = self.idle.replace(Arc::clone(who));
        if let Some(before) = before.filter(|it| self.all.get(it).is_some_and(Share::is_empty)) {
            self.all.remove(&before);
        }
    }
}

/// A lease whose call waits for the user.
pub(crate) struct Parked {
    pub(crate) slot: u64,
    pub(crate) by: Arc<str>,
    /// Whether it was told to make way.
    pub(crate) is_leaving: bool,
}

impl<H: Clone, W> State<H, W> {
    /// A unique number.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// The call of a lease now waits for the user.
    pub(crate) fn park(&mut self, ticket: u64, slot: u64, by: &Arc<str>) {
        self.parked.insert(ticket, Parked { slot, by: Arc::clone(by), is_leaving: false });
        if self.slots.get(&slot).is_some_and(|it| makes_room(&it.phase)) {
            self.leave_parked(slot);
        }
        self.make_way_for_all();
    }

    /// The call resumes or ends.
    pub(crate) fn unpark(&mut self, ticket: u64) {
        self.parked.remove(&ticket);
    }

    /// The next waiter that fits.
    pub(super) fn next_of(&self, fits: impl Fn(&Waiter<W>) -> bool) -> Option<usize> {
        if !self.shares.several_wait() {
            return self.waiters.iter().position(fits);
        }
        let fitting = self.waiters.iter().enumerate().filter(|(_, it)| fits(it));
        let rank = |waiter: &Waiter<W>| (self.shares.rank(&waiter.want.by), waiter.ticket);
        fitting.min_by_key(|(_, it)| rank(it)).map(|(at, _)| at)
    }

    /// All waiters, in the order in which they get places.
    pub(super) fn take_in_turn(&mut self) -> Vec<Waiter<W>> {
        let mut waiters: Vec<_> = std::mem::take(&mut self.waiters).into();
        if self.shares.several_wait() {
            let mut next: HashMap<Arc<str>, (usize, u64)> = HashMap::new();
            let mut ranks: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
            for waiter in &waiters {
                let rank = || self.shares.rank(&waiter.want.by);
                let next = next.entry(Arc::clone(&waiter.want.by)).or_insert_with(rank);
                ranks.insert(waiter.ticket, *next);
                next.0 += 1;
            }
            waiters.sort_by_key(|it| (ranks[&it.ticket], it.ticket));
        }
        waiters
    }

    /// When the queue is full: the newest waiter of the principal with the most, if it has more than this one.
    pub(super) fn waiter_to_drop(&self, who: &str) -> Option<usize> {
        let (most, waiters) = self.shares.most_waiting()?;
        if waiters <= self.shares.waiters(who) + 1 {
            return None;
        }
        self.waiters.iter().rposition(|it| it.want.by == *most)
    }

    /// Lets parked calls make way for every waiter that counts on no start.
    pub(super) fn make_way_for_all(&mut self) {
        if self.parked.is_empty() || self.waiters.is_empty() {
            return;
        }
        let mut wants: Vec<Want> = Vec::new();
        for waiter in self.waiters.iter().filter(|it| it.on.is_none()) {
            if wants.iter().all(|it| it.by != waiter.want.by) {
                wants.push(waiter.want.clone());
            }
        }
        wants.iter().for_each(|want| self.make_way(want));
    }

    /// Lets parked calls make way for a principal with fewer leases, if no running call will free a place for
    /// it.
    pub(super) fn make_way(&mut self, want: &Want) {
        if self.parked.is_empty() || self.is_stateful() {
            return;
        }
        let profile = self.opened_with(want.profile);
        let fits =
            |it: &Slot<H>| it.is_ready() && it.profile.is_within(profile) && self.serves(it, want);
        let fitting = self.slots.iter().filter(|(_, it)| fits(it));
        let fitting: BTreeMap<u64, usize> = fitting.map(|(id, it)| (*id, it.in_flight)).collect();
        let idle = self.parked.values().filter(|it| !it.is_leaving);
        let idle = idle.filter(|it| fitting.contains_key(&it.slot)).count();
        let at_work = fitting.values().sum::<usize>().saturating_sub(idle);
        let wanted = self.shares.waiters(&want.by).saturating_sub(at_work);
        for _ in 0..wanted {
            let least = self.shares.leases(&want.by) + 2;
            let leases = |it: &Parked| self.shares.leases(&it.by);
            let may = |it: &Parked| {
                !it.is_leaving && fitting.contains_key(&it.slot) && leases(it) >= least
            };
            let parked = self.parked.iter().filter(|(_, it)| may(it));
            // The call parked longest is the most likely to be abandoned.
            let first = parked.max_by_key(|(ticket, it)| (leases(it), std::cmp::Reverse(**ticket)));
            let Some(ticket) = first.map(|(ticket, _)| *ticket) else { return };
            self.leave_one(ticket);
        }
    }

    /// Tells all parked calls of an instance to make way, because it stops for another principal.
    pub(super) fn leave_parked(&mut self, slot: u64) {
        let here = self.parked.iter().filter(|(_, it)| it.slot == slot && !it.is_leaving);
        let here: Vec<u64> = here.map(|(ticket, _)| *ticket).collect();
        here.into_iter().for_each(|ticket| self.leave_one(ticket));
    }

    fn leave_one(&mut self, ticket: u64) {
        if let Some(parked) = self.parked.get_mut(&ticket) {
            parked.is_leaving = true;
            self.actions.push(Action::MakeWay { ticket });
        }
    }

    /// Whether an instance has parked calls.
    pub(super) fn has_parked(&self, slot: u64) -> bool {
        self.parked.values().any(|it| it.slot == slot)
    }

    /// When every instance is bound to a key: one of the principal with the most, if it has at least two more
    /// than the one that wants. Preferably not in use, then the least recently used.
    pub(super) fn most_bound(&self, want: &Want) -> Option<u64> {
        let bound = |who: &Arc<str>| {
            let has = |it: &&Slot<H>| it.is_live() && it.bound.is_some() && it.by == *who;
            self.slots.values().filter(has).count()
                + self.planned.iter().filter(|it| it.key.is_some() && it.by == *who).count()
        };
        let least = bound(&want.by) + 2;
        self.slots
            .iter()
            .filter(|(_, it)| it.is_ready() && it.bound.is_some() && it.at_work == 0)
            .map(|(id, it)| (bound(&it.by), id, it))
            .filter(|(count, ..)| *count >= least)
            .min_by_key(|(count, id, it)| {
                (std::cmp::Reverse(*count), it.in_flight, self.has_parked(**id), it.last())
            })
            .map(|(_, id, _)| *id)
    }

    /// Whether an idle instance may stop so that this want gets one: it is shared, its own, or of a principal
    /// that has at least two more. A principal without an instance comes before one with an idle instance.
    pub(super) fn may_displace(&self, slot: &Slot<H>, want: &Want) -> bool {
        if slot.owner.is_none() || slot.owner == want.owner {
            return true;
        }
        let own = self.owned_by(&want.owner);
        own == 0 || self.owned_by(&slot.owner) >= own + 2
    }

    /// Drains and stops all instances of one principal.
    pub(crate) fn stop_owned(&mut self, owner: &str, now: Duration) {
        let is_theirs = |slot: &Slot<H>| slot.owner.as_deref() == Some(owner);
        let ids = self.slots.iter().filter(|(_, slot)| is_theirs(slot)).map(|(id, _)| *id);
        for id in ids.collect::<Vec<_>>() {
            self.retire(id, Why::Killed, self.plan.drain, now);
        }
        self.settle(now);
    }

    /// How many instances an owner has or will have.
    pub(super) fn owned_by(&self, owner: &Option<Arc<str>>) -> usize {
        self.slots.values().filter(|it| it.is_live() && it.owner == *owner).count()
            + self.planned.iter().filter(|it| it.owner == *owner).count()
    }
}

/// Whether an instance drains to make room for another principal.
fn makes_room<H>(phase: &Phase<H>) -> bool {
    matches!(phase, Phase::Draining { why: Why::Owner, .. })
}
