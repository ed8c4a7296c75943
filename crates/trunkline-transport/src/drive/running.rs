//! Handlers at work. Dropping this stops them all.

use std::task::{Context, Poll, ready};

use tokio::task::{AbortHandle, JoinSet};
use trunkline_proto::CallKey;
use trunkline_wire::jsonrpc::Outcome;

use crate::handler::Guarded;

#[derive(Default)]
pub(crate) struct Running {
    tasks: JoinSet<(CallKey, Outcome)>,
    stops: Vec<(CallKey, AbortHandle)>,
}

impl Running {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn start(&mut self, call: CallKey, future: Guarded) {
        let stop = self.tasks.spawn(async move { (call, future.await) });
        self.stops.push((call, stop));
    }

    pub(crate) fn stop(&mut self, call: CallKey) {
        if let Some(at) = self.stops.iter().position(|(it, _)| *it == call) {
            self.stops.swap_remove(at).1.abort();
        }
    }

    /// The next handler to finish; `None` when none is at work.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(CallKey, Outcome)>> {
        loop {
            match ready!(self.tasks.poll_join_next(cx)) {
                None => return Poll::Ready(None),
                Some(Ok((call, outcome))) => {
                    self.stops.retain(|(it, _)| *it != call);
                    return Poll::Ready(Some((call, outcome)));
                }
                // Panics are answers already, so this one was stopped and has no answer to give.
                Some(Err(_)) => {}
            }
        }
    }
}
