//! An async mutex without a runtime: waiters take turns.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A mutex.
#[derive(Default)]
pub(crate) struct Turn(Mutex<State>);

#[derive(Default)]
struct State {
    taken: bool,
    /// The number of waiters so far.
    came: u64,
    /// The waiters, by arrival. One that is dropped or woken is removed.
    waiting: BTreeMap<u64, Waker>,
}

/// The guard; dropping it wakes the next waiter.
pub(crate) struct Held<'a>(&'a Turn);

/// A waiter.
pub(crate) struct Waits<'a> {
    turn: &'a Turn,
    place: Option<u64>,
}

impl Turn {
    /// Waits until the turn is free, and takes it.
    pub(crate) fn take(&self) -> Waits<'_> {
        Waits { turn: self, place: None }
    }

    /// Takes the turn if it is free.
    pub(crate) fn take_now(&self) -> Option<Held<'_>> {
        let mut state = self.state();
        if state.taken {
            return None;
        }
        state.taken = true;
        Some(Held(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Future for Waits<'a> {
    type Output = Held<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Held<'a>> {
        let mut state = self.turn.state();
        if state.taken {
            let place = self.place.unwrap_or(state.came);
            state.came += u64::from(self.place.is_none());
            state.waiting.insert(place, context.waker().clone());
            drop(state);
            self.place = Some(place);
            return Poll::Pending;
        }
        state.taken = true;
        if let Some(place) = self.place {
            state.waiting.remove(&place);
        }
        drop(state);
        self.place = None;
        Poll::Ready(Held(self.turn))
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let next = {
            let mut state = self.turn.state();
            // A waiter that was woken and is dropped passes the wake-up on.
            let was_woken = state.waiting.remove(&place).is_none();
            if was_woken && !state.taken { state.waiting.pop_first() } else { None }
        };
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.state();
            state.taken = false;
            state.waiting.pop_first()
        };
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakers, and how often each was woken.
    fn wakers<const N: usize>() -> ([Waker; N], impl Fn() -> [usize; N]) {
        let counts: [Arc<Count>; N] = std::array::from_fn(|_| Arc::default());
        let wakers = counts.clone().map(Waker::from);
        (wakers, move || counts.each_ref().map(|it| it.0.load(Ordering::Relaxed)))
    }

    #[test]
    fn the_second_is_woken_when_the_first_is_done() {
        let turn = Turn::default();
        let ([waker], woken) = wakers();
        let mut context = Context::from_waker(&waker);
        let held = turn.take_now().unwrap();
        assert!(turn.take_now().is_none());
        let mut second = pin!(turn.take());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken(), [0]);
        drop(held);
        assert_eq!(woken(), [1], "polled twice, woken once");
        let Poll::Ready(held) = second.as_mut().poll(&mut context) else { panic!("still waits") };
        assert!(turn.take_now().is_none());
        drop(held);
        assert!(turn.take_now().is_some());
        assert_eq!(woken(), [1]);
    }

    #[test]
    fn who_leaves_leaves_nothing_behind() {
        let turn = Turn::default();
        let ([first, second], woken) = wakers();
        let held = turn.take_now().unwrap();
        for _ in 0..100 {
            let mut left = pin!(turn.take());
            assert!(left.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
        }
        assert_eq!(turn.state().waiting.len(), 0);
        let mut stays = pin!(turn.take());
        assert!(stays.as_mut().poll(&mut Context::from_waker(&second)).is_pending());
        assert_eq!(turn.state().waiting.len(), 1);
        drop(held);
        assert_eq!(woken(), [0, 1]);
        assert!(stays.as_mut().poll(&mut Context::from_waker(&second)).is_ready());
        assert_eq!(turn.state().waiting.len(), 0);
    }

    #[test]
    fn they_are_let_in_one_by_one_as_they_came() {
        let turn = Turn::default();
        let ([first, second], woken) = wakers();
        let (first, second) = (&mut Context::from_waker(&first), &mut Context::from_waker(&second));
        let held = turn.take_now().unwrap();
        let (mut one, mut two) = (pin!(turn.take()), pin!(turn.take()));
        assert!(one.as_mut().poll(first).is_pending());
        assert!(two.as_mut().poll(second).is_pending());
        drop(held);
        assert_eq!(woken(), [1, 0]);
        // Another caller was quicker: the waiter keeps its position.
        let held = turn.take_now().unwrap();
        assert!(one.as_mut().poll(first).is_pending());
        drop(held);
        assert_eq!(woken(), [2, 0]);
        let Poll::Ready(held) = one.as_mut().poll(first) else { panic!("still waits") };
        drop(held);
        assert_eq!(woken(), [2, 1]);
        assert!(two.as_mut().poll(second).is_ready());
    }

    #[test]
    fn who_is_woken_and_leaves_wakes_the_next() {
        for is_taken in [false, true] {
            let turn = Turn::default();
            let ([first, second], woken) = wakers();
            let held = turn.take_now().unwrap();
            let mut one = Box::pin(turn.take());
            let mut two = pin!(turn.take());
            assert!(one.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
            assert!(two.as_mut().poll(&mut Context::from_waker(&second)).is_pending());
            drop(held);
            let other = is_taken.then(|| turn.take_now().unwrap());
            drop(one);
            assert_eq!(woken(), [1, usize::from(!is_taken)], "who has the turn wakes it later");
            drop(other);
            assert_eq!(woken(), [1, 1]);
            assert!(two.as_mut().poll(&mut Context::from_waker(&second)).is_ready());
        }
    }

    #[test]
    fn who_takes_it_unasked_is_no_longer_waiting() {
        let turn = Turn::default();
        let ([first, second], woken) = wakers();
        let held = turn.take_now().unwrap();
        let (mut one, mut two) = (pin!(turn.take()), pin!(turn.take()));
        assert!(one.as_mut().poll(&mut Context::from_waker(&first)).is_pending());
        assert!(two.as_mut().poll(&mut Context::from_waker(&second)).is_pending());
        drop(held);
        // Polled although the first was woken.
        let Poll::Ready(held) = two.as_mut().poll(&mut Context::from_waker(&second)) else {
            panic!("still waits")
        };
        assert_eq!(turn.state().waiting.len(), 0);
        drop(held);
        assert_eq!(woken(), [1, 0]);
        assert!(one.as_mut().poll(&mut Context::from_waker(&first)).is_ready());
    }
}
