//! The earliest deadline of a conversation → a wake-up.
//!
//! Most calls are answered long before their deadline. The timer of one is left to the next call on its thread: what is
//! set stays set, and goes off early for a later deadline, which does no harm.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tokio::runtime::{Handle, Id};
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Sleep, sleep_until};

/// Wakes its task at a deadline that may move. Allocates nothing before the first deadline.
#[derive(Default)]
pub(crate) struct DeadlineTimer {
    set: Option<Set>,
    /// Whether it has to be set again: it has gone off, or was set for something else.
    is_over: bool,
}

/// A timer of a runtime.
struct Set {
    sleep: Pin<Box<Sleep>>,
    /// Whom `sleep` wakes.
    woken: Option<Waker>,
    runtime: Id,
}

impl DeadlineTimer {
    /// Waits for `next`, the earliest deadline now. May be ready early, which does no harm.
    pub(crate) fn poll(&mut self, next: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        // What was set stays set: the next deadline is nearly always a later one.
        let Some(next) = next.map(tokio::time::Instant::from_std) else { return Poll::Pending };
        let Set { sleep, woken, .. } = self.set.get_or_insert_with(|| Set::new(next));
        // A deadline that moves later does not set the timer again.
        if self.is_over || next < sleep.deadline() {
            sleep.as_mut().reset(next);
            (self.is_over, *woken) = (false, None);
        }
        // Most polls are about something else: the timer knows already whom to wake.
        let knows = woken.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if knows && !sleep.is_elapsed() {
            return Poll::Pending;
        }
        let polled = sleep.as_mut().poll(cx);
        match polled {
            Poll::Ready(()) => (self.is_over, *woken) = (true, None),
            // A task that has used up its turn is woken again, but not by the timer.
            Poll::Pending => *woken = has_budget_remaining().then(|| cx.waker().clone()),
        }
        polled
    }

    /// Sets the timer again at the next poll.
    pub(crate) fn reset(&mut self) {
        self.is_over = true;
    }
}

impl Drop for DeadlineTimer {
    fn drop(&mut self) {
        let is_of_use = |it: &Set| it.woken.is_some() && !it.sleep.is_elapsed();
        if let Some(set) = self.set.take().filter(|it| !self.is_over && is_of_use(it)) {
            // A thread that ends leaves nothing to another call.
            let _ = LEFT.try_with(|left| {
                let mut left = left.borrow_mut();
                if left.len() < MOST_LEFT {
                    left.push(set);
                }
            });
        }
    }
}

impl Set {
    /// One that an earlier call of this runtime left, or a new one.
    fn new(next: tokio::time::Instant) -> Self {
        let runtime = Handle::current().id();
        let left = LEFT.try_with(|left| left.borrow_mut().pop()).ok().flatten();
        left.filter(|it| it.runtime == runtime && !it.sleep.is_elapsed()).unwrap_or_else(|| Self {
            sleep: Box::pin(sleep_until(next)),
            woken: None,
            runtime,
        })
    }
}

thread_local! {
    /// Timers that earlier calls of this thread left. Each keeps the memory of a task that it would wake.
    static LEFT: RefCell<Vec<Set>> = const { RefCell::new(Vec::new()) };
}

/// How many timers are left at most.
const MOST_LEFT: usize = 16;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;

    use tokio::task::coop::consume_budget;
    use tokio::time::timeout;

    use super::*;
    use crate::clock::now;

    const SECOND: Duration = Duration::from_secs(1);

    /// Whether the timer wakes its task within ten seconds.
    async fn fires(timer: &mut DeadlineTimer, next: Instant) -> bool {
        timeout(10 * SECOND, poll_fn(|cx| timer.poll(Some(next), cx))).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_set_once_for_deadlines_that_move_later() {
        let (mut timer, began) = (DeadlineTimer::default(), now());
        poll_fn(|cx| {
            for seconds in [3, 4, 5] {
                assert!(timer.poll(Some(began + seconds * SECOND), cx).is_pending());
            }
            assert!(timer.poll(None, cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(fires(&mut timer, began + 5 * SECOND).await);
        assert_eq!(now() - began, 3 * SECOND, "early does no harm");
        assert!(fires(&mut timer, began + 5 * SECOND).await);
        assert_eq!(now() - began, 5 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_counts() {
        let (mut timer, began) = (DeadlineTimer::default(), now());
        assert!(!fires(&mut timer, began + 60 * SECOND).await);
        assert!(fires(&mut timer, now() + SECOND).await);
        assert_eq!(now() - began, 11 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_takes_over_the_timer_that_another_left() {
        let began = now();
        let set_for = |seconds| {
            poll_fn(move |cx| {
                let mut timer = DeadlineTimer::default();
                assert!(timer.poll(Some(began + seconds * SECOND), cx).is_pending());
                Poll::Ready(())
            })
        };
        let left = || LEFT.with(|left| left.borrow().len());
        set_for(5).await;
        set_for(7).await;
        assert_eq!(left(), 1, "the second had the first one's");
        // One that is set for later than that is set again.
        let mut timer = DeadlineTimer::default();
        assert!(fires(&mut timer, began + 2 * SECOND).await);
        assert_eq!((now() - began, left()), (2 * SECOND, 0));
        set_for(4).await;
        assert!(fires(&mut timer, began + 9 * SECOND).await);
        assert_eq!(now() - began, 9 * SECOND);
        drop(timer);
        assert_eq!(left(), 1, "one that went off is of no use");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_went_off_unheard_is_set_again() {
        let (mut timer, began) = (DeadlineTimer::default(), now());
        poll_fn(|cx| Poll::Ready(timer.poll(Some(began + SECOND), cx).is_pending())).await;
        // the sleep is the subject: a deadline passes while nobody polls, on a paused clock.
        tokio::time::sleep(2 * SECOND).await;
        assert!(poll_fn(|cx| Poll::Ready(timer.poll(None, cx).is_pending())).await);
        timer.reset();
        assert!(fires(&mut timer, began + 4 * SECOND).await);
        assert_eq!(now() - began, 4 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn it_wakes_a_task_that_had_used_up_its_turn() {
        let (mut timer, due) = (DeadlineTimer::default(), now() + SECOND);
        let mut is_first = true;
        let waiting = poll_fn(|cx| {
            while is_first && pin!(consume_budget()).poll(cx).is_ready() {}
            is_first = false;
            timer.poll(Some(due), cx)
        });
        assert!(timeout(10 * SECOND, waiting).await.is_ok());
    }
}
