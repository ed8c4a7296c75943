//! Handing a session over to another replica, at a moment when nothing is in flight in it.

use std::sync::Arc;

use trunkline_proto::Attached;

use super::{Session, State};
use crate::handler::Handler;

/// Counts as a request in flight until it is dropped.
// Invariant: a session that is released has none.
pub(in crate::http) struct OpenRequest<H: Handler>(Arc<Session<H>>);

impl<H: Handler> Session<H> {
    /// Lets a request begin, from its head to its whole answer. None if the session is being handed over.
    pub(in crate::http) fn begin_request(self: &Arc<Self>) -> Option<OpenRequest<H>> {
        let mut state = self.lock();
        if state.is_released {
            return None;
        }
        state.open_requests += 1;
        Some(OpenRequest(Arc::clone(self)))
    }

    /// Lets no request begin from now on, if nothing is in flight. Returns whether that is so. A session of
    /// 2024-11-05 ends with its stream and is never released.
    pub(in crate::http) fn release(&self) -> bool {
        let mut state = self.lock();
        let is_first = !self.is_old && !state.is_released && !state.is_busy();
        state.is_released |= is_first;
        is_first
    }

    /// Takes a release back: nobody else has become the owner.
    pub(in crate::http) fn take_back(&self) {
        self.lock().is_released = false;
    }

    /// Whether something is in flight.
    pub(in crate::http) fn is_busy(&self) -> bool {
        self.lock().is_busy()
    }
}

impl<H: Handler> OpenRequest<H> {
    /// The session, if it has this id, is not over, and the caller is its owner.
    pub(in crate::http) fn session(&self, id: &str, caller: &Attached) -> Option<Arc<Session<H>>> {
        let session = &self.0;
        let is_it = *session.id == *id && !session.is_old() && session.is_of(caller);
        (is_it && !session.lock().ended).then(|| Arc::clone(session))
    }
}

impl State {
    fn is_busy(&self) -> bool {
        self.open_requests > 0 || !self.core.handlers.is_empty()
    }
}

impl<H: Handler> Drop for OpenRequest<H> {
    fn drop(&mut self) {
        self.0.lock().open_requests -= 1;
    }
}
