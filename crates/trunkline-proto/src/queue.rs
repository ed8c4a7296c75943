//! A queue that mostly holds one thing at a time, for which nothing is allocated.

use std::collections::VecDeque;

/// First in, first out.
// Invariant: `more` is empty while `next` is.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    next: Option<T>,
    more: VecDeque<T>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { next: None, more: VecDeque::new() }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, it: T) {
        match self.next {
            None => self.next = Some(it),
            Some(_) => self.more.push_back(it),
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        // One move of what is next, and none of nothing.
        match (&self.next, self.more.is_empty()) {
            (None, _) => None,
            (Some(_), true) => self.next.take(),
            (Some(_), false) => std::mem::replace(&mut self.next, self.more.pop_front()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_in_the_order_they_went_in() {
        let mut queue = Queue::new();
        assert_eq!(queue.pop_front(), None);
        for round in 0..3 {
            (0..4).for_each(|it| queue.push_back(it));
            assert_eq!(queue.pop_front(), Some(0), "round {round}");
            queue.push_back(4);
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop_front()).collect();
            assert_eq!(rest, [1, 2, 3, 4]);
        }
    }
}
