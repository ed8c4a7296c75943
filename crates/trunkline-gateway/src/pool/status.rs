//! The state of a pool as `status` reports it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::state::{Phase, State};
use super::{Cause, Why};

/// The status of a pool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// `idle`, `starting`, `ready`, `backoff`, `suspended` or `draining`.
    pub state: &'static str,
    /// Every process.
    pub instances: Vec<InstanceStatus>,
    /// Starts that failed in a row.
    pub attempt: u32,
    /// When a start may be tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_retry_ms: Option<u64>,
    /// The error of the last failed start, unless one has succeeded since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Starts by cause.
    pub starts: BTreeMap<Cause, u64>,
    /// Stops by reason.
    pub stops: BTreeMap<Why, u64>,
    /// Callers that wait.
    pub waiters: usize,
    /// Connected clients.
    pub clients: usize,
    /// Refused callers by reason.
    pub acquire_failures: BTreeMap<&'static str, u64>,
}

/// The status of an instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// The instance's id.
    pub id: u64,
    /// `starting`, `ready`, `busy`, `draining` or `stopping`.
    pub state: &'static str,
    /// Calls in flight.
    pub in_flight: usize,
    /// Whether it is bound to a session. Which one stays hidden: a session id can be a secret.
    pub bound: bool,
    /// What it can ask its callers, as bits.
    pub profile: u8,
    /// Why it was started.
    pub cause: Cause,
    /// How long ago its start was ordered.
    pub age_ms: u64,
    /// How long it has been unused; `None` while it is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

impl<H: Clone, W> State<H, W> {
    pub(crate) fn status(&self, now: Duration) -> PoolStatus {
        let ms = |since: Duration| now.saturating_sub(since).as_millis() as u64;
        let instances: Vec<_> = self
            .slots
            .iter()
            .map(|(id, slot)| InstanceStatus {
                id: *id,
                state: match slot.phase {
                    Phase::Starting { .. } => "starting",
                    Phase::Ready { .. } if slot.in_flight > 0 => "busy",
                    Phase::Ready { .. } => "ready",
                    Phase::Draining { .. } => "draining",
                    Phase::Stopping { .. } => "stopping",
                },
                in_flight: slot.in_flight,
                bound: slot.bound.is_some(),
                profile: slot.profile.0,
                cause: slot.cause,
                age_ms: ms(slot.since),
                idle_ms: (slot.is_ready() && slot.in_flight == 0).then(|| ms(slot.last())),
            })
            .collect();
        let until = self.start_failures.until.filter(|until| now < *until);
        let state = if self.closing {
            "draining"
        } else if self.slots.values().any(|slot| slot.is_ready()) {
            "ready"
        } else if self.slots.values().any(|slot| slot.is_starting()) {
            "starting"
        } else if self.start_failures.suspended {
            "suspended"
        } else if until.is_some() {
            "backoff"
        } else {
            "idle"
        };
        let last = self.start_failures.last.as_ref().filter(|_| self.start_failures.attempt > 0);
        PoolStatus {
            state,
            instances,
            attempt: self.start_failures.attempt,
            next_retry_ms: until.map(|until| until.saturating_sub(now).as_millis() as u64),
            last_error: last.map(ToString::to_string),
            starts: self.starts.clone(),
            stops: self.stops.clone(),
            waiters: self.waiters.len(),
            clients: self.clients,
            acquire_failures: self.refusals.clone(),
        }
    }
}
