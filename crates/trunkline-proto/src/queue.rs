//! A queue that mostly holds one thing at a time, for which nothing is allocated.

use std::collections::VecDeque;

/// First in, first out.
// Invariant: `more` is empty while `next` is.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    next: Option<T>,
    /// Made when it is needed for the first time.
    #[expect(
        clippy::box_collection,
        reason = "Most conversations of one request never need it, and each has its size."
    )]
    more: Option<Box<VecDeque<T>>>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { next: None, more: None }
    }

    #[inline]
    pub(crate) fn push_back(&mut self, it: T) {
        match self.next {
            None => self.next = Some(it),
            Some(_) => self.more.get_or_insert_default().push_back(it),
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        // One move of what is next, and none of nothing.
        match &mut self.more {
            Some(more) if !more.is_empty() => std::mem::replace(&mut self.next, more.pop_front()),
            _ if self.next.is_none() => None,
            _ => self.next.take(),
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
