//! Writes events to the process log.
//!
//! Operators filter by target: `trunkline::instance` (instances), `trunkline::call`,
//! `trunkline::door`, `trunkline::catalog`, `trunkline::audit`, `trunkline::plugin`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::policy::audit::FLOOD;
use crate::pool::Event;

/// Logs an event of a pool.
pub(crate) fn pool(server: &str, event: &Event) {
    match event {
        Event::Started { id, cause, took } => tracing::info!(
            target: "trunkline::instance", server, instance = id, ?cause, ms = ms(*took), "started"
        ),
        Event::StartFailed { id, cause, failure, .. } => tracing::warn!(
            target: "trunkline::instance", server, instance = id, ?cause, reason = failure.reason.word(), %failure,
            "did not start"
        ),
        Event::BackingOff { attempt, pause } => tracing::info!(
            target: "trunkline::instance", server, attempt, ms = ms(*pause), "backs off before the next start"
        ),
        Event::Suspended { attempt } => tracing::error!(
            target: "trunkline::instance", server, attempt,
            "is not started any more; `trunkline retry {server}` does"
        ),
        Event::Stopping { id, why, detail: Some(detail) } => tracing::warn!(
            target: "trunkline::instance", server, instance = id, ?why, detail, "is being stopped"
        ),
        Event::Stopped { id, why, took } => tracing::info!(
            target: "trunkline::instance", server, instance = id, ?why, ms = ms(*took), "stopped"
        ),
        Event::Refused { reason } => {
            tracing::debug!(target: "trunkline::instance", server, reason, "had no free instance for a call");
        }
        Event::Starting { .. } | Event::Stopping { .. } | Event::Waited { .. } => {}
    }
}

/// A finished call.
pub(crate) struct Done<'a, T> {
    pub(crate) server: Option<&'a str>,
    pub(crate) instance: Option<u64>,
    pub(crate) principal: Option<&'a str>,
    pub(crate) trace: T,
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    /// The outcome word.
    pub(crate) outcome: &'a str,
    pub(crate) reason: Option<&'a str>,
    pub(crate) took: Duration,
}

/// Logs a finished call. Failures of servers are visible at the default level; the others are not put together
/// where nobody reads them.
pub(crate) fn call<'a, T: Display>(is_to_blame: bool, done: impl FnOnce() -> Done<'a, T>) {
    if !is_to_blame && !tracing::enabled!(target: "trunkline::call", tracing::Level::DEBUG) {
        return;
    }
    let Done { server, instance, principal, trace, method, name, outcome, reason, took } = done();
    let ms = ms(took);
    match is_to_blame && server.is_some() {
        true => tracing::warn!(
            target: "trunkline::call",
            server, instance, principal, %trace, method, name, outcome, reason, ms, "failed"
        ),
        false => tracing::debug!(
            target: "trunkline::call",
            server, instance, principal, %trace, method, name, outcome, reason, ms, "done"
        ),
    }
}

/// Refused requests, rate-limited: one log line per status in ten seconds, with the count since the last.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<u16, (Option<Instant>, u64)>>);

impl Refusals {
    pub(crate) fn note(&self, status: u16) {
        let count = self.count(status, Instant::now());
        if let Some(count) = count {
            tracing::warn!(target: "trunkline::door", status, count, "not let in");
        }
    }

    /// The count since the last line, if the next line is due.
    fn count(&self, status: u16, now: Instant) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, count) = all.entry(status).or_default();
        *count += 1;
        if last.is_some_and(|it| now.duration_since(it) < FLOOD) {
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(count))
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_line_in_a_while() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert_eq!(refusals.count(401, now), Some(1), "the first is told at once");
        assert!((0..99).all(|_| refusals.count(401, now + FLOOD / 2).is_none()));
        assert_eq!(refusals.count(403, now), Some(1), "each status has its own");
        assert_eq!(refusals.count(401, now + FLOOD), Some(100));
    }
}
