//! The last calls, bounded by count and by bytes, and the names under which callers come back to them.

use std::collections::{HashMap, VecDeque};

/// A ring of calls. The oldest make way.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    slots: VecDeque<Slot<T>>,
    /// The number of the oldest call.
    first: u64,
    most: usize,
    keep: usize,
    bytes: usize,
    /// How many calls made way.
    dropped: u64,
    /// Which call a name belongs to, such as the digest of a `requestState`.
    names: HashMap<u64, u64>,
}

#[derive(Debug)]
struct Slot<T> {
    call: T,
    bytes: usize,
    names: Vec<u64>,
}

impl<T> Ring<T> {
    /// At most `most` calls, and no more than about `keep` bytes.
    pub(crate) fn new(most: usize, keep: usize) -> Self {
        let (slots, names) = Default::default();
        Self { slots, first: 1, most, keep, bytes: 0, dropped: 0, names }
    }

    /// Changes the bound on bytes; [`Self::evict`] enforces it.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.keep = bytes;
    }

    /// The number of the next call.
    #[inline]
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Adds a call, which has the next number.
    pub(crate) fn push(&mut self, call: T) {
        self.slots.push_back(Slot { call, bytes: 0, names: Vec::new() });
    }

    /// The memory that a call takes now.
    pub(crate) fn takes(&mut self, number: u64, bytes: usize) {
        let Some(slot) = self.slot(number) else { return };
        let before = std::mem::replace(&mut slot.bytes, bytes);
        self.bytes = self.bytes - before + bytes;
    }

    /// Whether the oldest call has to make way.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.slots.len() > self.most || self.bytes > self.keep
    }

    /// Takes the oldest call out if there is no room for all. Call it until it returns nothing.
    pub(crate) fn evict(&mut self) -> Option<T> {
        let slot = if self.is_full() { self.slots.pop_front()? } else { return None };
        self.first += 1;
        self.bytes -= slot.bytes;
        self.dropped += 1;
        for name in &slot.names {
            self.names.remove(name);
        }
        Some(slot.call)
    }

    /// The caller of this call may come back under this name.
    pub(crate) fn name(&mut self, number: u64, name: u64) {
        let Some(slot) = self.slot(number) else { return };
        if slot.names.len() >= MOST_NAMES {
            return;
        }
        slot.names.push(name);
        self.names.insert(name, number);
    }

    /// The call of this name.
    pub(crate) fn named(&self, name: u64) -> Option<&T> {
        let number = self.names.get(&name)?;
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get(place).map(|it| &it.call)
    }

    /// All calls, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().rev().map(|it| &it.call)
    }

    /// Whether the call of this number has not made way.
    pub(crate) fn has(&self, number: u64) -> bool {
        number >= self.first
    }

    /// How many calls made way.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many calls there are, and the bytes that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.slots.len(), self.bytes)
    }

    #[inline]
    fn slot(&mut self, number: u64) -> Option<&mut Slot<T>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(place)
    }
}

/// How many names a call may have: rounds and tasks.
const MOST_NAMES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ring: &Ring<u64>) -> Vec<u64> {
        ring.iter().copied().collect()
    }

    #[test]
    fn the_oldest_make_way_for_the_count_and_for_the_bytes() {
        let mut ring = Ring::new(3, 100);
        for _ in 0..5 {
            ring.push(ring.next_number());
            while ring.evict().is_some() {}
        }
        assert_eq!((all(&ring), ring.dropped()), (vec![5, 4, 3], 2));
        ring.takes(3, 40);
        ring.takes(4, 50);
        assert_eq!(ring.evict(), None);
        ring.takes(4, 70);
        assert_eq!((ring.evict(), ring.evict()), (Some(3), None), "110 bytes are too many");
        ring.takes(3, 9);
        assert_eq!(ring.size(), (2, 70), "what is gone takes nothing");
        ring.keep(10);
        assert_eq!((ring.evict(), ring.evict()), (Some(4), None));
    }

    #[test]
    fn a_call_is_found_by_its_names_as_long_as_it_is_there() {
        let mut ring = Ring::new(1, 100);
        ring.push(ring.next_number());
        ring.name(1, 77);
        ring.name(1, 78);
        ring.name(9, 79);
        assert_eq!((ring.named(77), ring.named(78), ring.named(79)), (Some(&1), Some(&1), None));
        ring.push(ring.next_number());
        assert_eq!(ring.evict(), Some(1));
        assert_eq!((ring.named(77), ring.names.len()), (None, 0));
    }
}
