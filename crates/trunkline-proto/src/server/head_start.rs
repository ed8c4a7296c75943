//! Answers that wait until the progress before them has arrived.
//!
//! The npm clients forget a call's progress callback when they read its answer, before they have run it for what
//! they read together with it. On a stream that all messages share they read whatever has come, so that an answer
//! keeps a distance from the last progress of its call.

use std::time::{Duration, Instant};

use trunkline_wire::jsonrpc::Outcome;

use crate::CallKey;

/// The answers that wait. Their calls are open meanwhile: they count, and can be cancelled.
#[derive(Debug, Default)]
pub(super) struct HeadStart {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    call: CallKey,
    outcome: Outcome,
    until: Instant,
}

impl HeadStart {
    /// Keeps an answer until it may go. A handler that answers twice is heard once.
    pub(super) fn hold(&mut self, call: CallKey, outcome: Outcome, until: Instant) {
        if !self.held.iter().any(|it| it.call == call) {
            self.held.push(Held { call, outcome, until });
        }
    }

    /// The next answer that has waited long enough.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(CallKey, Outcome)> {
        let at = self.held.iter().position(|it| it.until <= now)?;
        let Held { call, outcome, .. } = self.held.remove(at);
        Some((call, outcome))
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.held.iter().map(|it| it.until).min()
    }
}

/// How long the progress is ahead.
pub(super) const HEAD_START: Duration = Duration::from_millis(5);
