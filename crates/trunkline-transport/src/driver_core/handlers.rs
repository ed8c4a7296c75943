//! Running handlers: each in its own task, or in the task of its request.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::{AbortHandle, JoinSet};
use trunkline_proto::{Call, CallKey, PeerNotification};
use trunkline_wire::jsonrpc::Outcome;

use super::RunHandlers;
use crate::conversation_handle::ConversationHandle;
use crate::handler::{Handler, begin, guarded_heard};

/// Handlers that get a task unless their first poll finishes them. Dropping this stops them all.
pub(crate) struct HandlerTasks<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) handle: ConversationHandle,
    tasks: JoinSet<(CallKey, Outcome)>,
    stops: Vec<(CallKey, AbortHandle)>,
}

impl<H: Handler> HandlerTasks<H> {
    pub(crate) fn new(handler: Arc<H>, handle: ConversationHandle) -> Self {
        Self { handler, handle, tasks: JoinSet::new(), stops: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn stop_all(&mut self) {
        self.tasks = JoinSet::new();
        self.stops.clear();
    }
}

impl<H: Handler> RunHandlers for HandlerTasks<H> {
    fn start(&mut self, call: Call, cx: &mut Context<'_>) -> Option<Outcome> {
        let key = call.key;
        match begin(&*self.handler, call, &self.handle, cx) {
            Ok(outcome) => Some(outcome),
            Err(future) => {
                let stop = self.tasks.spawn(async move { (key, future.await) });
                self.stops.push((key, stop));
                None
            }
        }
    }

    fn stop(&mut self, call: CallKey) {
        if let Some(at) = self.stops.iter().position(|(it, _)| *it == call) {
            self.stops.swap_remove(at).1.abort();
        }
    }

    fn notify(&mut self, heard: PeerNotification) {
        guarded_heard(&*self.handler, heard, &self.handle);
    }

    fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<(CallKey, Outcome)> {
        // Looking into the set takes a lock, and mostly nothing is in it.
        if self.tasks.is_empty() {
            return Poll::Pending;
        }
        loop {
            match ready!(self.tasks.poll_join_next(cx)) {
                // `start` polls the next handler itself, so no waker has to be registered.
                None => return Poll::Pending,
                Some(Ok((call, outcome))) => {
                    self.stops.retain(|(it, _)| *it != call);
                    return Poll::Ready((call, outcome));
                }
                // `Guarded` turns panics into answers, so this task was aborted and owes none.
                Some(Err(_)) => {}
            }
        }
    }
}

#[cfg(feature = "http")]
pub(crate) use in_place::HandlersInPlace;

#[cfg(feature = "http")]
mod in_place {
    use std::future::Future;
    use std::pin::Pin;

    use trunkline_proto::Attached;

    use super::*;
    use crate::handler::Guarded;

    /// Handlers that run in the task of the request they answer, and stop when it is dropped.
    pub(crate) struct HandlersInPlace<H> {
        pub(crate) handler: Arc<H>,
        pub(crate) handle: ConversationHandle,
        /// The facts that came with the request.
        pub(crate) attached: Attached,
        running: Vec<(CallKey, Guarded)>,
        has_started: bool,
    }

    impl<H: Handler> HandlersInPlace<H> {
        pub(crate) fn new(handler: Arc<H>, handle: ConversationHandle, attached: Attached) -> Self {
            Self { handler, handle, attached, running: Vec::new(), has_started: false }
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.running.is_empty()
        }

        /// Whether a handler has been called.
        pub(crate) fn has_started(&self) -> bool {
            self.has_started
        }
    }

    impl<H: Handler> RunHandlers for HandlersInPlace<H> {
        fn start(&mut self, mut call: Call, cx: &mut Context<'_>) -> Option<Outcome> {
            self.has_started = true;
            call.attached = self.attached.clone();
            let key = call.key;
            match begin(&*self.handler, call, &self.handle, cx) {
                Ok(outcome) => Some(outcome),
                Err(future) => {
                    self.running.push((key, future));
                    None
                }
            }
        }

        fn stop(&mut self, call: CallKey) {
            self.running.retain(|(it, _)| *it != call);
        }

        fn notify(&mut self, heard: PeerNotification) {
            guarded_heard(&*self.handler, heard, &self.handle);
        }

        fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<(CallKey, Outcome)> {
            let finished =
                self.running.iter_mut().enumerate().find_map(|(at, (key, future))| match Pin::new(
                    future,
                )
                .poll(cx)
                {
                    Poll::Ready(outcome) => Some((at, *key, outcome)),
                    Poll::Pending => None,
                });
            let Some((at, call, outcome)) = finished else { return Poll::Pending };
            self.running.swap_remove(at);
            Poll::Ready((call, outcome))
        }
    }
}
