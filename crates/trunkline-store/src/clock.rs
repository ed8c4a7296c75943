//! What time it is, for those who let things expire.

// The one place that looks at a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Says what time it is: how long ago some moment was that stays the same.
pub trait Clock: Send + Sync + 'static {
    /// The time since that moment.
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The time since the clock was made, as tokio measures it: never back, and still where
/// `tokio::time::pause` stopped it. What [`Memory`](crate::Memory) uses.
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

/// The time since 1970, as the machine has it: the same for every process and after a restart. What
/// [`Folder`](crate::Folder) uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wall;

impl Clock for Wall {
    fn now(&self) -> Duration {
        // A machine that believes to be before 1970 has time stand still there.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// A clock that only a test moves. Its clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Manual {
    now: Arc<Mutex<Duration>>,
}

impl Manual {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for Manual {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
