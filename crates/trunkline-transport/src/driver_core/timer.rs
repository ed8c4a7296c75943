//! The earliest deadline of a conversation → a wake-up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// Wakes its task at a deadline that may move. Costs nothing until the first one is waited for.
#[derive(Default)]
pub(crate) struct DeadlineTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// What the sleep is set to, until it has fired.
    armed: Option<Instant>,
}

impl DeadlineTimer {
    /// Waits for `next`, the earliest deadline there is now.
    pub(crate) fn poll(&mut self, next: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(next) = next else {
            self.armed = None;
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| {
            self.armed = Some(next);
            Box::pin(sleep_until(next.into()))
        });
        // A timer that fires too early does no harm, so a deadline that moves away does not reset it.
        if self.armed.is_none_or(|armed| next < armed) {
            sleep.as_mut().reset(next.into());
            self.armed = Some(next);
        }
        ready!(sleep.as_mut().poll(cx));
        self.armed = None;
        Poll::Ready(())
    }

    /// Sets the timer anew when it is next polled.
    pub(crate) fn reset(&mut self) {
        self.armed = None;
    }
}
