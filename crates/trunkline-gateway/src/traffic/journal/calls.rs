//! The slots of the last calls, each at the place of its number. A slot that makes way is filled again where it is.

use std::ops::Range;

use super::{BATCH, Slot};

/// Calls with consecutive numbers.
#[derive(Debug)]
pub(super) struct Calls {
    /// As many as were needed so far, and at most as many as there is room for.
    slots: Vec<Slot>,
    /// The room, which is a power of two, less one.
    mask: u64,
    /// How many calls there may be.
    most: u64,
    first: u64,
    next: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self { slots: Vec::new(), mask: 0, most: 0, first: 1, next: 1 }
    }
}

impl Calls {
    /// From now on there is room for so many calls, and for all that there are.
    pub(super) fn have_room_for(&mut self, most: usize) {
        self.most = most.max(self.len()).max(1) as u64;
        let mask = self.most.next_power_of_two() - 1;
        if mask == self.mask {
            return;
        }
        // As many as there can ever be: memory that is not used yet costs nothing.
        let mut slots = Vec::with_capacity(mask as usize + 1);
        if self.len() > 0 {
            slots.resize_with(mask as usize + 1, Slot::default);
        }
        for number in self.numbers() {
            slots[(number & mask) as usize] =
                std::mem::take(&mut self.slots[(number & self.mask) as usize]);
        }
        (self.slots, self.mask) = (slots, mask);
    }

    /// Whether another one needs more room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.next - self.first >= self.most
    }

    /// The slot of the next call, which is empty. There must be room for it.
    #[inline]
    pub(super) fn add(&mut self) -> &mut Slot {
        let place = (self.next & self.mask) as usize;
        self.next += 1;
        if place >= self.slots.len() {
            self.grow(place);
        }
        &mut self.slots[place]
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        let slots = (place + BATCH).min(self.mask as usize + 1);
        self.slots.resize_with(slots, Slot::default);
    }

    /// Takes the oldest call out.
    pub(super) fn remove_oldest(&mut self) -> Option<Slot> {
        let oldest = std::mem::take(self.get_mut(self.first)?);
        self.first += 1;
        Some(oldest)
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u64) -> Option<&Slot> {
        if number.wrapping_sub(self.first) >= self.next - self.first {
            return None;
        }
        self.slots.get((number & self.mask) as usize)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Slot> {
        if number.wrapping_sub(self.first) >= self.next - self.first {
            return None;
        }
        self.slots.get_mut((number & self.mask) as usize)
    }

    /// The numbers of the calls there are.
    pub(super) fn numbers(&self) -> Range<u64> {
        self.first..self.next
    }

    /// The number of the next call.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        (self.next - self.first) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the calls there are, each with the mark in its slot.
    fn marks(calls: &Calls) -> Vec<(u64, u32)> {
        calls.numbers().map(|it| (it, calls.get(it).unwrap().written)).collect()
    }

    fn add(calls: &mut Calls) {
        let number = calls.next() as u32;
        let slot = calls.add();
        assert_eq!(slot.written, 0, "it is empty");
        slot.written = number;
    }

    #[test]
    fn a_call_is_at_its_number_until_it_makes_way() {
        let mut calls = Calls::default();
        calls.have_room_for(3);
        for round in 0..1_000 {
            if calls.is_full() {
                assert_eq!(calls.remove_oldest().map(|it| it.written), Some(round - 2));
            }
            add(&mut calls);
        }
        assert_eq!(marks(&calls), [(998, 998), (999, 999), (1_000, 1_000)]);
        assert!(calls.get(997).is_none() && calls.get(1_001).is_none() && calls.get(0).is_none());
        assert!(calls.slots.len() <= 4, "{}", calls.slots.len());
        while calls.remove_oldest().is_some() {}
        assert_eq!((calls.len(), calls.next()), (0, 1_001));
    }

    #[test]
    fn calls_stay_when_the_room_changes() {
        let mut calls = Calls::default();
        calls.have_room_for(5);
        (0..7).for_each(|_| {
            if calls.is_full() {
                calls.remove_oldest();
            }
            add(&mut calls);
        });
        let all: Vec<_> = (3..8).map(|it| (it.into(), it)).collect();
        for most in [100, 2, 5] {
            calls.have_room_for(most);
            assert_eq!(marks(&calls), all, "{most}");
        }
        assert!(calls.is_full());
    }
}
