//! A terminating signal → stops what was started here, and the exit code.

use std::future::poll_fn;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::timeout;
use trunkline::auth::Pending;

/// Runs `work` until it is done or a signal arrives. Then `work` is dropped, which kills the server
/// and its process group.
pub(crate) fn until_signal<W>(work: impl FnOnce() -> W + Send + 'static) -> Result<ExitCode>
where
    W: Future<Output = Result<ExitCode>>,
{
    let runtime = Builder::new_current_thread().enable_all().build().context(NO_RUNTIME)?;
    let _inside = runtime.enter();
    // Before anything is started: from then on a signal must be handled.
    let mut signals = Signals::new().context("The signals cannot be watched")?;
    let (stop, stopped) = oneshot::channel::<()>();
    let (finished, mut outcome) = oneshot::channel();
    // In its own thread, because a write to a full pipe or a read from a terminal blocks it, and
    // signals must work nevertheless.
    let worker = thread::Builder::new().name("trunkline-work".into());
    worker
        .spawn(move || {
            let outcome = run(work, stopped);
            let _ = finished.send(outcome);
        })
        .context("The work cannot be started")?;
    runtime.block_on(async {
        tokio::select! {
            outcome = &mut outcome => outcome.unwrap_or_else(|_| Ok(ExitCode::from(PANICKED))),
            number = signals.next() => {
                drop(stop);
                let ended = async {
                    // Work that does not block is about to end; detached work may take longer.
                    if timeout(PATIENCE, &mut outcome).await.is_err() && is_settling() {
                        let _ = timeout(LAST_WORK, outcome).await;
                    }
                };
                // A second signal ends the wait.
                tokio::select! {
                    () = ended => {}
                    _ = signals.next() => {}
                }
                Ok(ExitCode::from(128 + number))
            }
        }
    })
}

/// Runs `work`, and drops it unfinished when the other end of `stopped` is dropped.
fn run<W>(work: impl FnOnce() -> W, stopped: oneshot::Receiver<()>) -> Result<ExitCode>
where
    W: Future<Output = Result<ExitCode>>,
{
    let runtime = Builder::new_current_thread().enable_all().build().context(NO_RUNTIME)?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = work() => outcome,
            _ = stopped => Ok(ExitCode::SUCCESS),
        }
    });
    runtime.block_on(settle());
    // A thread may still be reading from the terminal; its input is no longer needed.
    runtime.shutdown_background();
    outcome
}

/// Delays the end of the program until this is done, for a while: a login is being refreshed, and
/// its refresh token may be single-use.
pub(crate) fn outlast(work: Pending<'static, ()>) {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).push(work);
}

/// Waits for the work that must finish before the end.
async fn settle() {
    let all = std::mem::take(&mut *LAST.lock().unwrap_or_else(PoisonError::into_inner));
    IS_SETTLING.store(true, Ordering::Release);
    let all = async {
        for work in all {
            work.await;
        }
    };
    let _ = timeout(LAST_WORK, all).await;
}

fn is_settling() -> bool {
    IS_SETTLING.load(Ordering::Acquire)
}

static LAST: Mutex<Vec<Pending<'static, ()>>> = Mutex::new(Vec::new());
static IS_SETTLING: AtomicBool = AtomicBool::new(false);

/// The signals that ask a program to end.
pub(crate) struct Signals(Vec<(u8, Signal)>);

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = ignored();
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ];
        let mut signals = Vec::new();
        for kind in kinds {
            let number = kind.as_raw_value();
            // The parent process, such as `nohup`, may want a signal ignored.
            if ignored & (1 << (number - 1)) == 0 {
                signals.push((number as u8, signal(kind)?));
            }
        }
        Ok(Self(signals))
    }

    pub(crate) async fn next(&mut self) -> u8 {
        poll_fn(|cx| {
            for (number, signal) in &mut self.0 {
                if signal.poll_recv(cx).is_ready() {
                    return Poll::Ready(*number);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signals that this process ignores, as bits; none if the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0)
}

/// How long the work may take to stop. Only blocking work needs that long.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the last work may take.
const LAST_WORK: Duration = Duration::from_secs(5);

/// What Rust programs exit with after a panic.
const PANICKED: u8 = 101;

const NO_RUNTIME: &str = "The runtime cannot be started";
