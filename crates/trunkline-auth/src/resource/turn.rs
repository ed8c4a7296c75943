//! One at a time, without a runtime: whoever comes second waits until the first is done.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// What only one may do at a time.
#[derive(Default)]
pub(crate) struct Turn(Mutex<State>);

#[derive(Default)]
struct State {
    taken: bool,
    waiting: Vec<Waker>,
}

/// Holding it keeps the others waiting; dropping it, also in the middle, lets the next one in.
pub(crate) struct Held<'a>(&'a Turn);

impl Turn {
    /// Waits until nobody has the turn, and takes it.
    pub(crate) async fn take(&self) -> Held<'_> {
        poll_fn(|context| match self.try_take() {
            Ok(held) => Poll::Ready(held),
            Err(mut state) => {
                // Who stopped waiting is woken for nothing, which costs nothing.
                if !state.waiting.iter().any(|it| it.will_wake(context.waker())) {
                    state.waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }

    /// Takes the turn if nobody has it.
    pub(crate) fn take_now(&self) -> Option<Held<'_>> {
        self.try_take().ok()
    }

    /// The turn, or the state in which somebody else has it.
    fn try_take(&self) -> Result<Held<'_>, MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.taken {
            return Err(state);
        }
        state.taken = true;
        Ok(Held(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.state();
            state.taken = false;
            std::mem::take(&mut state.waiting)
        };
        // All of them: one alone may be one that no longer waits.
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_second_is_woken_when_the_first_is_done() {
        let turn = Turn::default();
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let held = turn.take_now().unwrap();
        assert!(turn.take_now().is_none());
        let mut second = pin!(turn.take());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(held);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "polled twice, woken once");
        let Poll::Ready(held) = second.as_mut().poll(&mut context) else { panic!("still waits") };
        assert!(turn.take_now().is_none());
        drop(held);
        assert!(turn.take_now().is_some());
    }

    #[test]
    fn one_that_no_longer_waits_keeps_nobody() {
        let turn = Turn::default();
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let wakers = counts.clone().map(Waker::from);
        let held = turn.take_now().unwrap();
        {
            let mut left = pin!(turn.take());
            assert!(left.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_pending());
        }
        let mut stays = pin!(turn.take());
        assert!(stays.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_pending());
        drop(held);
        assert_eq!(counts.map(|it| it.0.load(Ordering::Relaxed)), [1, 1]);
        assert!(stays.as_mut().poll(&mut Context::from_waker(&wakers[1])).is_ready());
    }
}
