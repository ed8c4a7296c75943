//! The slots of the last calls, each at the place of its number. A slot that makes way is filled again where it is.

use std::ops::Range;

use super::{BATCH, More, Slot};

/// Calls with consecutive numbers.
#[derive(Debug)]
pub(super) struct Calls {
    /// As many as were needed so far, and at most as many as there is room for.
    slots: Vec<Slot>,
    /// How many calls there may be. If that is a power of two there are no more slots: the next call gets one that has
    /// just made way, which the processor has at hand.
    most: u64,
    /// The places that there may be, less one: they are the next power of two, as a division takes longer than all else
    /// that finds a call.
    mask: u64,
    first: u64,
    next: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self { slots: Vec::new(), most: 1, mask: 0, first: 1, next: 1 }
    }
}

impl Calls {
    /// From now on there is room for so many calls, and for all that there are.
    pub(super) fn have_room_for(&mut self, most: usize) {
        let most = most.max(self.len()).max(1);
        let places = most.next_power_of_two();
        if most as u64 == self.most && self.slots.capacity() >= places {
            return;
        }
        // As many as there can ever be: memory that is not used yet costs nothing.
        let mut slots = Vec::with_capacity(places);
        if self.len() > 0 {
            slots.resize_with(places, Slot::default);
        }
        let mask = places as u64 - 1;
        for number in self.numbers() {
            let before = self.place(number);
            slots[(number & mask) as usize] = std::mem::take(&mut self.slots[before]);
        }
        (self.slots, self.most, self.mask) = (slots, most as u64, mask);
    }

    /// Whether another one needs more room.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.next - self.first >= self.most
    }

    /// The slot of the next call, which is empty. There must be room for it.
    #[inline]
    pub(super) fn add(&mut self) -> &mut Slot {
        let number = self.next;
        let place = self.place(number);
        self.next += 1;
        if place >= self.slots.len() {
            self.grow(place);
        }
        let slot = &mut self.slots[place];
        slot.number = number;
        slot
    }

    #[cold]
    fn grow(&mut self, place: usize) {
        let slots = (place + BATCH).min(self.mask as usize + 1);
        self.slots.resize_with(slots, Slot::default);
    }

    /// Empties the slot of the oldest call, where it is, if there is one: what it had beside its places, if anything.
    #[inline]
    pub(super) fn remove_oldest(&mut self) -> Option<Box<More>> {
        if self.len() == 0 {
            return None;
        }
        let place = self.place(self.first);
        self.first += 1;
        self.slots[place].empty()
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u64) -> Option<&Slot> {
        self.slots.get(self.place(number)).filter(|it| it.number == number)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Slot> {
        let place = self.place(number);
        self.slots.get_mut(place).filter(|it| it.number == number)
    }

    /// The place of a call of this number.
    #[inline(always)]
    fn place(&self, number: u64) -> usize {
        (number & self.mask) as usize
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
                assert_eq!(calls.get(calls.first).map(|it| it.written), Some(round - 2));
                assert!(calls.remove_oldest().is_none(), "it has its places alone");
            }
            add(&mut calls);
        }
        assert_eq!(marks(&calls), [(998, 998), (999, 999), (1_000, 1_000)]);
        assert!(calls.get(997).is_none() && calls.get(1_001).is_none() && calls.get(0).is_none());
        assert_eq!(calls.slots.len(), 4);
        (0..9).for_each(|_| drop(calls.remove_oldest()));
        assert_eq!((calls.len(), calls.next()), (0, 1_001));
    }

    #[test]
    fn an_empty_slot_is_no_call() {
        let mut calls = Calls::default();
        calls.have_room_for(3);
        let nothing = |calls: &mut Calls| {
            (0..9).all(|it| calls.get(it).is_none() && calls.get_mut(it).is_none())
        };
        assert!(nothing(&mut calls));
        (0..3).for_each(|_| add(&mut calls));
        (0..3).for_each(|_| drop(calls.remove_oldest()));
        assert!(calls.slots.len() == 4 && nothing(&mut calls));
    }

    #[test]
    fn what_a_call_has_beside_its_places_goes_with_it() {
        let mut calls = Calls::default();
        calls.have_room_for(1);
        calls.add().more = Some(Box::default());
        assert!(calls.remove_oldest().is_some());
        assert!(calls.add().more.is_none());
    }

    #[test]
    fn calls_stay_when_the_room_changes() {
        let mut calls = Calls::default();
        calls.have_room_for(5);
        (0..7).for_each(|_| {
            if calls.is_full() {
                drop(calls.remove_oldest());
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
