//! The earliest deadline of a conversation → a wake-up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// Wakes its task at a deadline that may move. Allocates nothing before the first deadline.
#[derive(Default)]
pub(crate) struct DeadlineTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// The instant that `sleep` is set to, until it fires.
    armed: Option<Instant>,
}

impl DeadlineTimer {
    /// Waits for `next`, the earliest deadline now.
    pub(crate) fn poll(&mut self, next: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(next) = next else {
            self.armed = None;
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| {
            self.armed = Some(next);
            Box::pin(sleep_until(next.into()))
        });
        // An early wake-up does no harm, so a deadline that moves later does not reset the timer.
        if self.armed.is_none_or(|armed| next < armed) {
            sleep.as_mut().reset(next.into());
            self.armed = Some(next);
        }
        ready!(sleep.as_mut().poll(cx));
        self.armed = None;
        Poll::Ready(())
    }

    /// Sets the timer again at the next poll.
    pub(crate) fn reset(&mut self) {
        self.armed = None;
    }
}
