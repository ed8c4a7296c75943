//! The clock of this crate.

use std::time::Instant;

/// Now, by the runtime's clock: a test that pauses that clock pauses deadlines too. Without tokio's
/// `test-util` it is the machine's monotonic clock.
///
/// ```
/// # use trunkline_transport::clock::now;
/// let before = now();
/// assert!(now() >= before);
/// ```
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
