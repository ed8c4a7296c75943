//! The trace id of a call in logs, in the audit and in spans.

use std::fmt;

/// A trace id: one half identifies the gateway's run, the other the call; or the caller's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace(u128);

impl Trace {
    pub(crate) fn new(run: u64, call: u64) -> Self {
        Self(u128::from(run) << 64 | u128::from(call))
    }

    /// The trace id of a `traceparent`.
    pub(crate) fn of(parent: &str) -> Option<Self> {
        let id = parent.split('-').nth(1).filter(|it| it.len() == 32)?;
        u128::from_str_radix(id, 16).ok().filter(|it| *it != 0).map(Self)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
