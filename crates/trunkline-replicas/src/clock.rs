//! The one place that reads clocks.

#![allow(clippy::disallowed_methods)]

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The time since a replica started: monotonic, and stopped by `tokio::time::pause`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// When this much time has passed since the start.
    pub(crate) fn at(&self, time: Duration) -> Instant {
        self.started + time
    }
}

/// The time of day. Seals have an expiry; no time of two machines is compared closer than [`LONG`].
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}

/// How long a session id can be opened: longer than any session lasts.
pub(crate) const LONG: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
