//! What time it is, for those who let things expire.

// The one place that looks at a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Says what time it is: how long ago some moment was that stays the same.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline_store::{Bounds, Clock, Memory};
/// struct Stopped;
///
/// impl Clock for Stopped {
///     fn now(&self) -> Duration {
///         Duration::from_secs(1)
///     }
/// }
///
/// let store = Memory::new(Bounds::default(), Stopped);
/// # drop(store);
/// ```
pub trait Clock: Send + Sync + 'static {
    /// The time since that moment.
    ///
    /// ```
    /// # use trunkline_store::{Clock, Monotonic};
    /// let clock = Monotonic::default();
    /// assert!(clock.now() <= clock.now());
    /// ```
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The time since the clock was made, as tokio measures it: never back, and still where
/// `tokio::time::pause` stopped it. What [`Memory`](crate::Memory) uses.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline_store::{Clock, Monotonic};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let clock = Monotonic::default();
/// tokio::time::advance(Duration::from_secs(9)).await;
/// assert_eq!(clock.now(), Duration::from_secs(9));
/// # }
/// ```
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
///
/// ```
/// # use trunkline_store::{Clock, Wall};
/// assert!(Wall.now().as_secs() > 1_700_000_000);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Wall;

impl Clock for Wall {
    fn now(&self) -> Duration {
        // A machine that believes to be before 1970 has time stand still there.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// A clock that only a test moves. Its clones are the same clock.
///
/// ```
/// # use std::time::Duration;
/// # use trunkline_store::{Bounds, Manual, Memory, Store};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), trunkline_store::StoreError> {
/// let clock = Manual::default();
/// let store = Memory::new(Bounds::default(), clock.clone());
/// store.put("a", b"", Some(Duration::from_secs(60))).await?;
/// clock.advance(Duration::from_secs(59));
/// assert!(store.get("a").await?.is_some());
/// clock.advance(Duration::from_secs(1));
/// assert!(store.get("a").await?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Manual {
    now: Arc<Mutex<Duration>>,
}

impl Manual {
    /// Lets time pass.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use trunkline_store::{Clock, Manual};
    /// let clock = Manual::default();
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(clock.now(), Duration::from_secs(5));
    /// ```
    pub fn advance(&self, by: Duration) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) += by;
    }
}

impl Clock for Manual {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
