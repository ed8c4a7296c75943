//! A tool call that is executed → one more on the counter.

use std::sync::atomic::{AtomicU64, Ordering};

use trunkline::server::{FromCall, Input, Rejection};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// How many tool calls this process has executed.
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// The last parameter of every tool: it is taken once the arguments before it are found to fit,
/// and what follows is the tool at work.
pub(crate) struct Executed;

impl FromCall for Executed {
    fn from_call(_: &Input<'_>) -> Result<Self, Rejection> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        Ok(Self)
    }
}
