//! Failed starts: when the next start may be tried (exponential backoff), and the refusals meanwhile.

use std::time::Duration;

use crate::catalog::plan::Retry;
use crate::failure::{Failure, Reason, Stage};

/// What is known of failed starts.
#[derive(Default)]
pub(crate) struct StartFailures {
    /// How many failed in a row.
    pub(crate) attempt: u32,
    /// The backoff: no start before this time.
    pub(crate) until: Option<Duration>,
    /// No start until an operator says `retry`.
    pub(crate) suspended: bool,
    /// The last failure.
    pub(crate) last: Option<Failure>,
    /// Counts rounds of starts; never reset.
    pub(crate) round: u64,
    /// Instances that started and soon ended by themselves, in a row.
    crashes: u32,
    /// Until then, no instance is started without a waiter.
    pub(crate) refill: Option<Duration>,
}

impl StartFailures {
    /// Whether no start may be tried now.
    pub(crate) fn holds(&self, now: Duration) -> bool {
        self.suspended || self.until.is_some_and(|until| now < until)
    }

    /// A start of this round has failed. `alone` if no other instance is ready: only then the server counts as
    /// broken and is suspended in the end.
    pub(crate) fn failed(
        &mut self,
        failure: Failure,
        round: u64,
        alone: bool,
        retry: &Retry,
        now: Duration,
    ) {
        // Starts of one round that fail together count as one attempt.
        let same = round != self.round;
        let fatal = matches!(failure.reason, Reason::NotFound | Reason::NotExecutable);
        self.last = Some(failure);
        if !same {
            self.round += 1;
            self.attempt = self.attempt.saturating_add(1);
        }
        if alone && (fatal || self.attempt >= retry.tries.max(1)) {
            self.suspended = true;
            self.until = None;
        } else if !same && !self.suspended {
            self.until = Some(now + doubled(retry, self.attempt.saturating_sub(1)));
        }
    }

    /// All replicas together have as many instances as they may: none is started without a waiter for a while.
    pub(crate) fn no_place(&mut self, now: Duration) {
        self.refill = Some(now + FULL);
    }

    /// A start succeeded, or the server is known to run for another reason.
    pub(crate) fn is_over(&mut self) {
        self.attempt = 0;
        self.until = None;
        self.suspended = false;
    }

    /// Clears backoff and suspension.
    pub(crate) fn clear(&mut self) {
        self.is_over();
        self.crashes = 0;
        self.refill = None;
    }

    /// An instance ended by itself after `lived`. The first one is replaced at once; repeated crashes are
    /// replaced with growing delay, unless a call comes.
    pub(crate) fn crashed(&mut self, lived: Duration, retry: &Retry, now: Duration) {
        self.crashes = if lived < STEADY { self.crashes.saturating_add(1) } else { 1 };
        self.refill = (self.crashes > 1).then(|| now + doubled(retry, self.crashes - 2));
    }

    /// The refusal while no start is tried.
    pub(crate) fn refusal(&self, server: &str, now: Duration) -> Failure {
        let mut failure = self
            .last
            .clone()
            .unwrap_or_else(|| Failure::new(Reason::SpawnFailed, Stage::Spawn, String::new()));
        let said = std::mem::take(&mut failure.message);
        failure.instance = None;
        failure.server = Some(server.to_owned());
        if self.suspended {
            failure.reason = Reason::Suspended;
            failure.retry_after = None;
            failure.message = format!(
                "`{server}` is suspended: {} start{} in a row failed. {said}",
                self.attempt,
                if self.attempt == 1 { "" } else { "s" }
            );
            failure.advice =
                Some(format!("Repair it, then `trunkline retry {server}` or change its entry."));
        } else {
            let rest = self.until.unwrap_or(now).saturating_sub(now);
            failure.reason = Reason::Backoff;
            failure.retry_after = Some(rest);
            failure.message = format!(
                "`{server}` did not start and is not tried again for {} s. {said}",
                rest.as_millis().div_ceil(1000)
            );
        }
        failure.message.truncate(failure.message.trim_end().len());
        failure
    }
}

pub(crate) fn busy(server: &str, starting: bool, patience: Duration) -> Failure {
    let seconds = patience.as_secs_f32();
    let message = if starting {
        format!("`{server}` is still starting after {seconds} s.")
    } else {
        format!("Every instance of `{server}` was busy for {seconds} s.")
    };
    soon(Reason::Busy, server, message, TRY_AGAIN)
}

pub(crate) fn sticky_busy(server: &str, max: usize) -> Failure {
    let message = format!("All {max} instances of `{server}` belong to other sessions.");
    let advice = "End a session, raise `maxInstances` or lower `sessionTTLSeconds`.";
    soon(Reason::StickyBusy, server, message, advice)
}

pub(crate) fn overloaded(server: &str, waiters: usize) -> Failure {
    let message = format!("{waiters} callers wait for `{server}` already.");
    soon(Reason::Overloaded, server, message, TRY_AGAIN)
}

/// A refusal of a call that may come again soon.
fn soon(reason: Reason, server: &str, message: String, advice: &str) -> Failure {
    let mut failure = Failure::new(reason, Stage::Acquire, message).of(server).advice(advice);
    failure.retry_after = Some(SOON);
    failure
}

pub(crate) fn draining(server: &str) -> Failure {
    Failure::new(Reason::Draining, Stage::Acquire, format!("`{server}` is being stopped."))
        .of(server)
        .advice("It was removed or changed in the catalog, or the gateway is shutting down.")
}

pub(crate) fn start_timeout(server: &str, id: u64, limit: Duration) -> Failure {
    let mut failure = Failure::new(
        Reason::StartTimeout,
        Stage::Handshake,
        format!("`{server}` was not ready {} s after its start.", limit.as_secs_f32()),
    )
    .of(server)
    .advice("See what it says on stderr, or raise `timeouts.startSeconds`.");
    failure.instance = Some(id);
    failure
}

fn doubled(retry: &Retry, times: u32) -> Duration {
    let factor = 1u32.checked_shl(times.min(30)).unwrap_or(u32::MAX);
    retry.base.saturating_mul(factor).min(retry.max)
}

/// How long until a warm instance is started again that all replicas had no place for.
const FULL: Duration = Duration::from_secs(2);
/// An instance that lived this long did not end because of its start.
const STEADY: Duration = Duration::from_secs(30);

/// When callers that found every place taken may retry.
const SOON: Duration = Duration::from_secs(1);

const TRY_AGAIN: &str = "Try again, or raise `maxInstances` or `maxConcurrent`.";
