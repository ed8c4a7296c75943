//! Time: which waiters time out, which instances are idle, and which are due for a probe.

use std::time::Duration;

use crate::catalog::plan::Strategy;
use crate::pool::Why;

use super::slot::{Action, Phase, Slot};
use super::{State, start_failures};

impl<H: Clone, W> State<H, W> {
    /// When to call `tick` next.
    pub(crate) fn alarm(&self) -> Option<Duration> {
        self.alarm
    }

    /// Time has passed. Early and repeated calls are harmless.
    pub(crate) fn tick(&mut self, now: Duration) {
        let mut changed = self.time_out_waiters(now);
        for id in self.ids() {
            changed |= self.check_instance(id, now);
        }
        while self.stops_when_idle()
            && self.has_surplus()
            && let Some(id) =
                self.longest_idle(|slot| slot.last().saturating_add(self.plan.idle) <= now)
        {
            self.stop(id, Why::Idle, None, now);
            changed = true;
        }
        for due in [&mut self.start_failures.until, &mut self.start_failures.refill] {
            changed |= due.take_if(|at| *at <= now).is_some();
        }
        if changed {
            self.settle(now);
        } else {
            self.rearm();
        }
    }

    /// Ensures that `tick` is called no later than this.
    pub(super) fn arm(&mut self, at: Duration) {
        if self.alarm.is_none_or(|alarm| at < alarm) {
            self.alarm = Some(at);
            self.rearmed = true;
        }
    }

    /// Recomputes when to call `tick`.
    pub(super) fn rearm(&mut self) {
        let before = self.alarm.take();
        self.alarm = self.next();
        self.rearmed |= match (self.alarm, before) {
            (Some(alarm), Some(before)) => alarm < before,
            (alarm, _) => alarm.is_some(),
        };
    }

    /// Whether idle instances stop (scale to zero).
    pub(super) fn stops_when_idle(&self) -> bool {
        matches!(self.plan.strategy, Strategy::Stateless | Strategy::Stateful)
    }

    pub(super) fn next_probe(&self, now: Duration) -> Option<Duration> {
        let every = self.plan.probe.every;
        (!every.is_zero()).then(|| now.saturating_add(every))
    }

    fn time_out_waiters(&mut self, now: Duration) -> bool {
        if self.waiters.iter().all(|it| it.deadline > now) {
            return false;
        }
        for waiter in std::mem::take(&mut self.waiters) {
            if waiter.deadline > now {
                self.waiters.push_back(waiter);
                continue;
            }
            self.expect_less(waiter.on);
            let patience = waiter.want.patience;
            let failure = start_failures::busy(&self.plan.name, waiter.on.is_some(), patience);
            self.refuse(waiter, failure, now);
        }
        !self.planned.is_empty() || self.slots.values().any(Slot::is_reserved)
    }

    fn check_instance(&mut self, id: u64, now: Duration) -> bool {
        let expired = self.has_expired(id, now);
        let Some(slot) = self.slots.get_mut(&id) else { return false };
        match &mut slot.phase {
            Phase::Starting { deadline, .. } if *deadline <= now => {
                let limit = now.saturating_sub(slot.since);
                self.actions.push(Action::Abort { id });
                let failure = start_failures::start_timeout(&self.plan.name, id, limit);
                self.start_failed(id, failure, now);
                true
            }
            Phase::Draining { until, .. } if *until <= now => {
                self.stop(id, Why::Forced, None, now);
                true
            }
            Phase::Ready { .. } if expired => {
                self.stop(id, Why::SessionOver, None, now);
                true
            }
            Phase::Ready { handle, probe, probing, .. } => {
                let is_due = probe.take_if(|at| *at <= now).is_some();
                // Many servers handle one request at a time. A call in flight has deadlines of its own, and
                // silence during it says nothing.
                if is_due && slot.in_flight > 0 {
                    *probe = Some(now.saturating_add(self.plan.probe.every));
                } else if is_due {
                    *probing = true;
                    let (handle, timeout) = (handle.clone(), self.plan.probe.timeout);
                    self.actions.push(Action::Probe { id, handle, timeout });
                }
                false
            }
            _ => false,
        }
    }

    fn has_expired(&self, id: u64, now: Duration) -> bool {
        let idle = self.slots.get(&id).filter(|slot| !slot.is_busy());
        idle.and_then(|slot| self.expiry(slot)).is_some_and(|at| at <= now)
    }

    fn expiry(&self, slot: &Slot<H>) -> Option<Duration> {
        let ttl = self.plan.session_ttl.filter(|_| slot.bound.is_some())?;
        Some(slot.last().saturating_add(ttl))
    }

    fn next(&self) -> Option<Duration> {
        let surplus = self.stops_when_idle() && self.has_surplus();
        let waiters = self.waiters.iter().map(|it| it.deadline).min();
        let refill = self.start_failures.refill.filter(|_| self.missing_warm() > 0);
        let slots = self.slots.values().filter_map(|slot| match &slot.phase {
            Phase::Starting { deadline, .. } => Some(*deadline),
            Phase::Draining { until, .. } => Some(*until),
            Phase::Stopping { .. } => None,
            Phase::Ready { last, probe, .. } => {
                let idle = (surplus && slot.is_idle()).then(|| last.saturating_add(self.plan.idle));
                let expiry = self.expiry(slot).filter(|_| !slot.is_busy());
                [*probe, idle, expiry].into_iter().flatten().min()
            }
        });
        waiters.into_iter().chain(slots).chain(self.start_failures.until).chain(refill).min()
    }
}
