//! The clock of a runtime → one that stands still until a test moves it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, advance, pause, resume};

/// The time of a test. It stands still, and goes on when this is dropped.
///
/// Deadlines, pauses and the lifetimes of tasks go by it, in the server and in the client. The
/// thirty seconds that a test may take do not. State that a server of 2026-07-28 seals into its
/// questions expires by the machine's clock.
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
    /// Dropping it ends the work that keeps the runtime from moving the clock itself.
    _held: Sender<()>,
}

impl Clock {
    /// Stops the clock of the runtime of this thread.
    pub(super) fn stop() -> Self {
        let (held, wait) = channel::<()>();
        // A runtime whose clock is stopped moves it by itself when it has nothing to do, and it
        // cannot tell that from waiting for a pipe. While a thread is at work it does not.
        tokio::task::spawn_blocking(move || {
            let _ = wait.recv();
        });
        pause();
        Self { since: Instant::now(), _held: held }
    }

    /// How much time has passed since the clock was stopped, in the test's own time.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Lets time pass, in up to a thousand steps, so that what happens on the way happens in order.
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
    /// Lets time pass until `future` is done, however long that takes. A call is taken as it is:
    /// `clock.until(peer.call_tool("sleep", ()))`.
    pub async fn until<F: IntoFuture>(&self, future: F) -> F::Output {
        let (mut future, start) = (pin!(future.into_future()), Instant::now());
        loop {
            let poll = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            if let Poll::Ready(output) = poll {
                return output;
            }
            // The longer it takes, the less a moment matters.
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

/// Lets everybody who was woken do what they can.
async fn settle() {
    for _ in 0..TURNS {
        yield_now().await;
    }
}

const STEPS: u32 = 1000;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(1);
const TURNS: u32 = 16;
