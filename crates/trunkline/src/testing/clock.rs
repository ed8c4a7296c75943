//! The clock of a runtime → a clock that only the test advances.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, advance, pause, resume};

/// The clock of a test. It is paused, and resumes when this is dropped.
///
/// Deadlines, pauses and the lifetimes of tasks follow it, in the server and in the client. The
/// 30-second limit of a test does not. State that a server of 2026-07-28 seals into `requestState`
/// expires by the machine's clock.
///
/// ```
/// use std::time::Duration;
/// # use trunkline::testing::{self, Transport};
/// # use trunkline::{Revision, Server, tool};
/// # let nap = async || {
/// #     tokio::time::sleep(Duration::from_secs(30)).await;
/// #     "slept"
/// # };
/// # let server = move || Server::builder("bed", "1.0.0").tool(tool("nap", nap).about("Sleeps.")).build();
///
/// testing::run(Revision::V2025_11_25, Transport::Memory, server, async |peer| {
///     let clock = peer.clock();
///     // Half a minute, in no time.
///     clock.until(peer.call_tool("nap", ())).await.unwrap();
///     assert!(clock.elapsed() >= Duration::from_secs(30));
/// });
/// ```
#[derive(Debug)]
pub struct Clock {
    since: Instant,
    /// Dropping it ends the thread that keeps the runtime from advancing the clock itself.
    _held: Sender<()>,
}

impl Clock {
    /// Pauses the clock of this thread's runtime.
    pub(super) fn stop() -> Self {
        let (held, wait) = channel::<()>();
        // A paused runtime advances its clock when it is idle, and it takes waiting for a pipe for
        // idle. A running blocking task prevents that.
        tokio::task::spawn_blocking(move || {
            let _ = wait.recv();
        });
        pause();
        Self { since: Instant::now(), _held: held }
    }

    /// How much time has passed since the clock was paused, in the test's own time.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Advances the clock, in up to a thousand steps, so that timers fire in order.
    pub async fn advance(&self, by: Duration) {
        let step = (by / STEPS).max(SHORTEST);
        let mut left = by;
        while !left.is_zero() {
            let now = step.min(left);
            advance(now).await;
            left -= now;
            settle().await;
        }
    }
}

impl Clock {
    /// Advances the clock until `future` is done, however long that takes. Pass a call as it is:
    /// `clock.until(peer.call_tool("sleep", ()))`.
    pub async fn until<F: IntoFuture>(&self, future: F) -> F::Output {
        let (mut future, start) = (pin!(future.into_future()), Instant::now());
        loop {
            let poll = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            if let Poll::Ready(output) = poll {
                return output;
            }
            // The longer it takes, the coarser the steps may be.
            advance((start.elapsed() / STEPS).clamp(SHORTEST, LONGEST)).await;
            settle().await;
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        resume();
    }
}

/// Lets every task that was woken run.
async fn settle() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

const STEPS: u32 = 1000;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);
const TURNS: u32 = 16;
