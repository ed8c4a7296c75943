//! A server and a test body → the same test in every revision and over every transport.
//!
//! [`run`] serves the server, connects a client with one revision over one transport, and passes it
//! to the body as a [`Peer`]: a [`Client`] that answers questions from a script and records what it
//! sees. `#[trunkline::test]` generates the calls of `run`; by hand it looks like this.
//!
//! ```
//! use trunkline::testing::{self, Transport};
//! use trunkline::{Revision, Server, tool};
//!
//! fn server() -> Server {
//!     Server::builder("clock", "1.0.0").tool(tool("now", async || "noon").about("The time.")).build()
//! }
//!
//! for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
//!     for transport in [Transport::Memory, Transport::Stdio] {
//!         testing::run(revision, transport, server, async |peer| {
//!             let result = peer.call_tool("now", ()).await.unwrap();
//!             assert_eq!(result.content[0].as_text(), Some("noon"));
//!         });
//!     }
//! }
//! ```
//!
//! The rule: one body, which asserts the same result in both eras. The eras differ on the wire
//! only, which [`Peer::transcript`] records.
//!
//! [`Recorded`] is a conversation that `trunkline record` wrote down, in the place of either end.

mod clock;
#[cfg(feature = "http")]
mod http;
mod peer;
mod recorded;
mod script;
mod tap;
mod transcript;

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::{Client, Revision, Server};

pub use clock::Clock;
pub use peer::Peer;
pub use recorded::Recorded;
pub use script::{Reply, ScriptedModel};
pub use transcript::{Line, Transcript};

/// The transport between client and server.
///
/// ```
/// assert_eq!(trunkline::testing::Transport::Stdio.to_string(), "stdio");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// In memory.
    Memory,
    /// Two pipes of the operating system, used like stdin and stdout.
    Stdio,
    /// HTTP on a local port; with the feature `http`.
    Http,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        })
    }
}

/// The result of a test body: `()`, or a `Result` so that it may use `?`.
///
/// ```
/// use trunkline::testing::Verdict;
///
/// assert!(().verdict().is_ok());
/// assert!(Err::<(), _>("No bread.").verdict().unwrap_err().contains("No bread."));
/// ```
#[diagnostic::on_unimplemented(
    message = "a test body returns `()` or `Result<(), E>`, not `{Self}`",
    note = "`E` may be anything that implements `Debug`"
)]
pub trait Verdict {
    /// Whether the test passed, or why not.
    ///
    /// ```
    /// use trunkline::testing::Verdict;
    ///
    /// assert_eq!(Ok::<(), String>(()).verdict(), Ok(()));
    /// ```
    fn verdict(self) -> Result<(), String>;
}

impl Verdict for () {
    fn verdict(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: fmt::Debug> Verdict for Result<(), E> {
    fn verdict(self) -> Result<(), String> {
        self.map_err(|error| format!("The test failed: {error:?}"))
    }
}

/// Runs `body` with a client of `server` that speaks `revision` over `transport`.
///
/// ```
/// use trunkline::testing::{Transport, run};
/// use trunkline::{Revision, Server};
///
/// let server = || Server::builder("empty", "1.0.0").build();
/// run(Revision::V2025_11_25, Transport::Stdio, server, async |peer| {
///     assert!(peer.ping().await.is_ok());
/// });
/// ```
///
/// # Panics
///
/// If the body panics or returns an error, if it takes longer than 30 seconds, if the server asks a
/// question without a scripted answer, or if an answer is left over.
#[track_caller]
pub fn run<S, B, F>(revision: Revision, transport: Transport, server: S, body: B)
where
    S: FnOnce() -> Server,
    B: FnOnce(Peer) -> F,
    F: Future,
    F::Output: Verdict,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be had");
    let outcome = runtime.block_on(async {
        let (peer, stage) = Peer::begin(server(), revision, transport).await?;
        // Caught, so that the script's fault is reported if it caused the panic.
        let outcome = match within(DEADLINE, guarded(body(peer))).await {
            Some(Ok(output)) => output.verdict(),
            Some(Err(panic)) => match stage.fault() {
                None => resume_unwind(panic),
                Some(fault) => Err(fault),
            },
            None => Err(format!("The test took longer than {DEADLINE:?}.")),
        };
        outcome.and_then(|()| stage.fault().map_or(Ok(()), Err))
    });
    // A handler that blocks its thread must not block the test.
    runtime.shutdown_background();
    if let Err(why) = outcome {
        panic!("{why} This was {revision} over {transport}.");
    }
}

/// The outcome of a future, or its panic.
async fn guarded<F: Future>(future: F) -> std::thread::Result<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // After a panic it is never polled again.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

/// The outcome of a future within this much real time, whatever the test's clock says.
async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let (ring, rung) = oneshot::channel::<()>();
    let (done, is_done) = channel::<()>();
    std::thread::spawn(move || {
        if is_done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = ring.send(());
        }
    });
    let (mut future, mut rung) = (pin!(future), pin!(rung));
    let outcome = poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => match rung.as_mut().poll(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(None),
            _ => Poll::Pending,
        },
    })
    .await;
    drop(done);
    outcome
}

/// The time limit of a test body.
const DEADLINE: Duration = Duration::from_secs(30);

/// The name of the client of every test.
fn client() -> crate::client::ClientBuilder {
    Client::builder("trunkline-testing", env!("CARGO_PKG_VERSION"))
}
