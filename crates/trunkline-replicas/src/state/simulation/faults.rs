//! What goes wrong.

use std::collections::HashSet;

use super::clients::Waiting;
use super::{Event, Input, Name, SECOND, STORE, World};

/// Which ways are cut, until when. Each way has a direction.
#[derive(Debug, Default)]
pub(super) struct Network {
    cut: HashSet<(Name, Name)>,
}

impl Network {
    pub(super) fn is_cut(&self, from: &Name, to: &Name) -> bool {
        self.cut.contains(&(from.clone(), to.clone()))
    }
}

impl World {
    /// One thing goes wrong, or one is mended.
    pub(super) fn fault(&mut self) {
        if self.is_healed {
            return;
        }
        let pause = if self.plan.is_large { 3 * SECOND } else { 1_500_000 };
        let mut next = self.random.between(50_000, 2 * pause);
        match self.random.below(28) {
            0..3 => self.cut_one_way(),
            3..5 => self.cut_off_from_store(),
            5..7 => self.split(),
            7..11 => self.network.cut.clear(),
            11..13 => self.stop_one(),
            13..15 => self.kill_one(),
            15 => self.store.down_until = self.now + self.random.between(100_000, 12 * SECOND),
            16 => self.store.paused_until = self.now + self.random.between(100_000, 8 * SECOND),
            17..19 => {
                let lost = self.random.below(100_001);
                self.fail_over(lost);
            }
            19 => self.leave_one(),
            20 => {
                let url = self.new_address();
                self.start(url);
            }
            21..23 => self.hand_one_over(),
            23 => {
                self.strangers();
                next = self.random.between(5 * SECOND, 25 * SECOND);
            }
            24..26 => self.fail_over_and_over(),
            26 => {
                self.come_back_half();
                next = 8 * SECOND;
            }
            _ => self.out_of_sight(),
        }
        self.schedule(next, Event::Fault);
    }

    /// All who are there lose the store; one starts that has it and reaches nobody else.
    fn strangers(&mut self) {
        let old = self.ways();
        let url = self.new_address();
        for one in &old {
            for other in [&url, &Name::from(STORE)] {
                self.network.cut.insert((one.clone(), other.clone()));
                self.network.cut.insert((other.clone(), one.clone()));
            }
        }
        self.start(url);
    }

    /// The store fails over again and again, for a second or two, and a replica is out of sight.
    fn fail_over_and_over(&mut self) {
        if self.random.once_in(2) {
            self.out_of_sight();
        }
        for after in 0..self.random.between(5, 30) {
            let lost = self.random.below(100_001);
            self.schedule(after * 60_000, Event::FailOver { lost });
        }
    }

    /// One is cut off from all until nobody sees it any more, and comes back to a store that fails over.
    fn come_back_half(&mut self) {
        let ends = self.ways();
        let Some(one) = self.some(&ends) else { return };
        self.cut_from(&one, true);
        let back = self.random.between(4 * SECOND, 7 * SECOND);
        self.schedule(back, Event::StoreBack { url: one });
        for number in 0..30 {
            let lost = self.random.below(100_001);
            self.schedule(back + number * 70_000, Event::FailOver { lost });
        }
    }

    pub(super) fn store_back(&mut self, url: &Name) {
        self.network.cut.remove(&(url.clone(), STORE.into()));
        self.network.cut.remove(&(STORE.into(), url.clone()));
    }

    /// One is cut off from the other replicas, but not from the store.
    fn out_of_sight(&mut self) {
        let ends = self.ways();
        if let Some(one) = self.some(&ends) {
            self.cut_from(&one, false);
        }
    }

    fn cut_from(&mut self, one: &Name, also_store: bool) {
        let mut others = self.ways();
        if also_store {
            others.push(STORE.into());
        }
        for other in others.into_iter().filter(|other| other != one) {
            self.network.cut.insert((one.clone(), other.clone()));
            self.network.cut.insert((other, one.clone()));
        }
    }

    pub(super) fn fail_over(&mut self, lost: u64) {
        if !self.is_healed {
            self.store.fail_over(self.now.saturating_sub(lost));
        }
    }

    /// Everything works from now on.
    pub(super) fn heal(&mut self) {
        self.is_healed = true;
        self.network.cut.clear();
        (self.store.down_until, self.store.paused_until) = (0, 0);
        if self.live().is_empty() {
            let url = self.new_address();
            self.start(url);
        }
    }

    fn ways(&self) -> Vec<Name> {
        let live = self.live();
        live.into_iter().map(|node| self.nodes[node].me.url.clone()).collect()
    }

    fn some<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        let number = self.random.below(list.len() as u64);
        list.get(usize::try_from(number).unwrap_or(0)).cloned()
    }

    fn cut_one_way(&mut self) {
        let mut ends = self.ways();
        ends.push(STORE.into());
        if let (Some(from), Some(to)) = (self.some(&ends), self.some(&ends)) {
            self.network.cut.insert((from.clone(), to.clone()));
            if self.random.once_in(2) {
                self.network.cut.insert((to, from));
            }
        }
    }

    fn cut_off_from_store(&mut self) {
        let ends = self.ways();
        if let Some(from) = self.some(&ends) {
            self.network.cut.insert((from.clone(), STORE.into()));
            self.network.cut.insert((STORE.into(), from));
        }
    }

    /// Two halves that do not reach each other; the store is with one of them.
    fn split(&mut self) {
        let mut ends = self.ways();
        ends.push(STORE.into());
        let side: Vec<bool> = ends.iter().map(|_| self.random.once_in(2)).collect();
        for (from, here) in ends.iter().zip(&side) {
            for (to, there) in ends.iter().zip(&side) {
                if here != there {
                    self.network.cut.insert((from.clone(), to.clone()));
                }
            }
        }
    }

    /// SIGSTOP, and SIGCONT later.
    fn stop_one(&mut self) {
        let live = self.live();
        if let Some(node) = self.some(&live) {
            let until = self.now + self.random.between(10_000, 9 * SECOND);
            self.nodes[node].paused_until = until;
            self.schedule_at(until, Event::Resume { node });
        }
    }

    /// SIGKILL. Most are started again, at the same address or another.
    fn kill_one(&mut self) {
        let live = self.live();
        let Some(node) = self.some(&live) else { return };
        let url = self.end(node);
        let after = self.random.between(100_000, 8 * SECOND);
        match self.random.below(4) {
            0 | 1 => self.schedule(after, Event::Restart { url }),
            2 => {
                let url = self.new_address();
                self.schedule(after, Event::Restart { url });
            }
            _ => {}
        }
    }

    /// A process is over.
    pub(super) fn end(&mut self, node: usize) -> Name {
        let it = &mut self.nodes[node];
        it.is_dead = true;
        it.owned = Default::default();
        let url = it.me.url.clone();
        self.at.remove(&url);
        url
    }

    /// SIGTERM.
    fn leave_one(&mut self) {
        let live = self.live();
        if live.len() < 2 {
            return;
        }
        if let Some(node) = self.some(&live)
            && self.nodes[node].paused_until <= self.now
        {
            self.nodes[node].is_leaving = true;
            let request = self.clients.request(node, Waiting::Leave);
            self.tell(node, Input::Leave { request });
            let url = self.new_address();
            self.schedule(SECOND, Event::Restart { url });
        }
    }

    fn hand_one_over(&mut self) {
        let live = self.live();
        let sessions = self.clients.safe_sessions();
        let (Some(node), Some(session)) = (self.some(&live), self.some(&sessions)) else { return };
        if self.nodes[node].paused_until <= self.now {
            let request = self.clients.request(node, Waiting::Nothing);
            self.tell(node, Input::HandOver { request, session });
        }
    }
}
