//! The earliest deadline of a conversation → a wake-up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tokio::task::coop::has_budget_remaining;
use tokio::time::{Sleep, sleep_until};

/// Wakes its task at a deadline that may move. Allocates nothing before the first deadline.
#[derive(Default)]
pub(crate) struct DeadlineTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether `sleep` has to be set again: it has gone off, or was set for something else.
    is_over: bool,
    /// Whom `sleep` wakes.
    woken: Option<Waker>,
}

impl DeadlineTimer {
    /// Waits for `next`, the earliest deadline now. May be ready early, which does no harm.
    pub(crate) fn poll(&mut self, next: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        // What was set stays set: the next deadline is nearly always a later one.
        let Some(next) = next.map(tokio::time::Instant::from_std) else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(next)));
        // A deadline that moves later does not set the timer again.
        if self.is_over || next < sleep.deadline() {
            sleep.as_mut().reset(next);
            (self.is_over, self.woken) = (false, None);
        }
        // Most polls are about something else: the timer knows already whom to wake.
        let knows = self.woken.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if knows && !sleep.is_elapsed() {
            return Poll::Pending;
        }
        let polled = sleep.as_mut().poll(cx);
        match polled {
            Poll::Ready(()) => (self.is_over, self.woken) = (true, None),
            // A task that has used up its turn is woken again, but not by the timer.
            Poll::Pending => self.woken = has_budget_remaining().then(|| cx.waker().clone()),
        }
        polled
    }

    /// Sets the timer again at the next poll.
    pub(crate) fn reset(&mut self) {
        self.is_over = true;
    }
}

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
