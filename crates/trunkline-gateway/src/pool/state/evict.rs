//! Instances that are not needed or may not be here any more: started for their lists alone, or living at another
//! replica now.

use std::time::Duration;

use super::State;
use super::slot::{Phase, Slot};
use crate::failure::Failure;
use crate::pool::{Cause, Why};

impl<H: Clone, W> State<H, W> {
    /// Whether an instance of this key exists, from the order to start it until its process is gone. Without keys
    /// every instance counts.
    pub(crate) fn has_instance_of(&self, key: &str) -> bool {
        self.slots.values().any(|it| self.is_of(it, key))
            || self.planned.iter().any(|it| !self.is_stateful() || it.key.as_deref() == Some(key))
    }

    /// Whether an instance was started for its lists, and no caller has used it since.
    pub(crate) fn is_for_lists(&self, id: u64) -> bool {
        self.slots.get(&id).is_some_and(|it| it.cause == Cause::List && it.uses <= 1)
    }

    /// The caller that an instance was started for is done with it. If no other caller has used it, it stops
    /// now.
    pub(crate) fn done_with(&mut self, id: u64, now: Duration) {
        let unused = |slot: &Slot<H>| slot.is_idle() && slot.uses <= 1;
        if self.slots.get(&id).is_some_and(unused) && self.will_have_surplus() {
            self.stop(id, Why::Idle, None, now);
            self.settle(now);
        }
    }

    /// Whether calls or other work are in flight in instances of this key, or wait for one.
    pub(crate) fn is_busy_with(&self, key: &str) -> bool {
        self.slots.values().any(|it| self.is_of(it, key) && it.is_busy())
            || self.waiters.iter().any(|it| self.is_wanted_for(it.want.key.as_deref(), key))
    }

    /// The instances of this key may not be here any more: they stop at once, and who waits for one is refused.
    pub(crate) fn evict(&mut self, key: &str, failure: &Failure, now: Duration) {
        for waiter in std::mem::take(&mut self.waiters) {
            match self.is_wanted_for(waiter.want.key.as_deref(), key) {
                true => {
                    self.expect_less(waiter.on);
                    self.refuse(waiter, failure.clone(), now);
                }
                false => self.waiters.push_back(waiter),
            }
        }
        let is_stateful = self.is_stateful();
        self.planned.retain(|it| is_stateful && it.key.as_deref() != Some(key));
        for id in self.ids() {
            if self.slots.get(&id).is_some_and(|it| self.is_of(it, key)) {
                self.stop(id, Why::Killed, Some("it lives at another replica now".to_owned()), now);
            }
        }
        self.settle(now);
    }

    fn is_of(&self, slot: &Slot<H>, key: &str) -> bool {
        if !self.is_stateful() {
            return true;
        }
        let is_ending = matches!(slot.phase, Phase::Draining { .. } | Phase::Stopping { .. });
        let of = if is_ending {
            slot.bound.as_ref().or(slot.was_bound.as_ref())
        } else {
            slot.bound.as_ref()
        };
        of.is_some_and(|it| **it == *key)
    }

    fn is_wanted_for(&self, wanted: Option<&str>, key: &str) -> bool {
        !self.is_stateful() || wanted.unwrap_or_default() == key
    }
}
