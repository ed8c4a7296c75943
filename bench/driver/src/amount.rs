//! How much to measure: a time or a number of calls.

use std::time::Duration;

/// When a measurement ends.
#[derive(Clone, Copy)]
pub enum Amount {
    Time(Duration),
    Calls(u64),
}

impl Amount {
    /// Whether to begin another call.
    pub fn wants_more(self, begun: u64, elapsed: Duration) -> bool {
        match self {
            Amount::Calls(calls) => begun < calls,
            // At least one call, so that a figure exists.
            Amount::Time(time) => begun == 0 || elapsed < time,
        }
    }
}
