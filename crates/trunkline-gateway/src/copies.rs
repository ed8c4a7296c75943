//! Bounds the bytes of merged lists that all views hold together; decides which views evict theirs (LRU).
//!
//! Each selector has its own merged and encoded copy of the lists. Eviction loses nothing: the next request
//! rebuilds the copy.

use std::collections::VecDeque;

/// The bytes by view; the one that grew last is at the end.
pub(crate) struct Copies<V>(VecDeque<(V, usize)>);

impl<V> Default for Copies<V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<V: Clone + PartialEq> Copies<V> {
    /// Records a view's bytes. Returns the views that have to evict their copies; never the given one.
    pub(crate) fn keeps(&mut self, view: &V, bytes: usize) -> Vec<V> {
        self.0.retain(|(it, _)| it != view);
        self.0.push_back((view.clone(), bytes));
        let mut gone = Vec::new();
        while self.0.len() > 1 && self.bytes() > MOST {
            gone.extend(self.0.pop_front().map(|(it, _)| it));
        }
        gone
    }

    /// Drops the views for which `is_there` is false.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&V) -> bool) {
        self.0.retain(|(it, _)| is_there(it));
    }

    /// The bytes held in all.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The bound for all views except that of all servers, which exists once.
pub(crate) const MOST: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_copies_go_when_there_are_too_many_bytes() {
        let mut copies = Copies::default();
        for number in 0..8 {
            assert_eq!(copies.keeps(&number, MOST / 8), [0; 0]);
        }
        assert_eq!(copies.keeps(&0, MOST / 8), [0; 0], "one that is counted already");
        assert_eq!(copies.keeps(&8, MOST / 4), [1, 2], "not the one just used");
        assert_eq!(copies.bytes(), MOST);
        copies.retain(|it| *it != 8);
        assert_eq!(copies.keeps(&9, MOST / 4), [0; 0]);
        assert_eq!(copies.keeps(&9, 2 * MOST).len(), 6, "alone it may be larger");
        assert_eq!(copies.bytes(), 2 * MOST);
    }
}
