//! The clock that expiry goes by.

// The one place that reads a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A clock: the time since a fixed moment.
pub trait Clock: Send + Sync + 'static {
    /// The time since that moment.
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The time since the clock was made, by tokio's clock: monotonic, and stopped by `tokio::time::pause`.
/// [`Memory`](crate::Memory) uses it.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    made: Instant,
}

impl Default for Monotonic {
    fn default() -> Self {
        Self { made: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.made.elapsed()
    }
}

/// The time since 1970, by the machine's clock: the same for every process and after a restart.
/// [`Folder`](crate::Folder) uses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wall;

impl Clock for Wall {
    fn now(&self) -> Duration {
        // A machine set before 1970 stays at 1970.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// A clock that only a test advances. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Manual {
    now: Arc<Mutex<Duration>>,
}

impl Manual {
    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for Manual {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
