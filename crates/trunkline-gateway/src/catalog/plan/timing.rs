//! How long a server may take, how often it is asked whether it is well, and when it is started again.

use std::time::Duration;

/// The deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Starting, including the handshake.
    pub start: Duration,
    /// Waiting for an instance.
    pub acquire: Duration,
    /// A call without progress.
    pub call: Duration,
    /// A call in all.
    pub hard: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let [start, acquire, call, hard] = [30, 30, 60, 600].map(Duration::from_secs);
        Self { start, acquire, call, hard }
    }
}

/// Health probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The interval; zero for never.
    pub every: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Default for Probe {
    fn default() -> Self {
        Self { every: Duration::from_secs(30), timeout: Duration::from_secs(5) }
    }
}

/// Exponential backoff after failed starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The first pause; each is twice the one before.
    pub base: Duration,
    /// The longest pause.
    pub max: Duration,
    /// After so many failures in a row the server is suspended until `retry`.
    pub tries: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_secs(30), tries: 5 }
    }
}
