//! The time, as everything in this crate reads it.

use std::time::Instant;

/// Now, by the runtime's clock: a test that stops that clock stops deadlines too. Without tokio's
/// `test-util` it is the machine's.
///
/// ```
/// # use trunkline_transport::clock::now;
/// let before = now();
/// assert!(now() >= before);
/// ```
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
