//! Handlers of a session, recorded under its lock and run without it.

use std::task::{Context, Poll};

use tokio::task::AbortHandle;
use trunkline_proto::{Call, CallKey, PeerNotification, RequestStream};
use trunkline_wire::jsonrpc::Outcome;

use crate::driver_core::RunHandlers;
use crate::http::admitted::Admitted;

/// Starts handlers after the unlock; they report to the session when they finish.
#[derive(Default)]
pub(super) struct Deferred {
    /// Running handlers; one that is polled in place has no abort handle yet.
    working: Vec<Working>,
    /// The requests that they work on.
    requests: Vec<(RequestStream, Admitted)>,
    /// The request that the calls recorded now belong to.
    current: Option<RequestStream>,
    todo: Todo,
}

/// A running handler.
struct Working {
    key: CallKey,
    stop: Option<AbortHandle>,
    request: Option<RequestStream>,
}

/// The work left for after the unlock.
#[derive(Default)]
pub(super) struct Todo {
    /// Most messages are one call, and then nothing is allocated for more.
    call: Option<Call>,
    more_calls: Vec<Call>,
    pub(super) heard: Vec<PeerNotification>,
}

impl Todo {
    fn add(&mut self, call: Call) {
        match self.call {
            None => self.call = Some(call),
            Some(_) => self.more_calls.push(call),
        }
    }

    fn is_empty(&self) -> bool {
        self.call.is_none() && self.more_calls.is_empty() && self.heard.is_empty()
    }

    /// Takes its call, if there is nothing else to do.
    pub(super) fn take_only(&mut self) -> Option<Call> {
        if self.more_calls.is_empty() && self.heard.is_empty() { self.call.take() } else { None }
    }

    pub(super) fn into_calls(self) -> impl Iterator<Item = Call> {
        self.call.into_iter().chain(self.more_calls)
    }
}

impl Deferred {
    /// Whether the outcome of a call is still wanted.
    pub(super) fn is_wanted(&self, call: CallKey) -> bool {
        self.working.iter().any(|it| it.key == call)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.working.is_empty()
    }

    /// Attributes the calls recorded from now on to a request, until [`Self::take_todo`].
    pub(super) fn admit(&mut self, request: RequestStream, admitted: Admitted) {
        if self.requests.capacity() == 0 {
            // Most sessions have one request at a time, and keep the room for it.
            self.requests.reserve_exact(1);
        }
        self.requests.push((request, admitted));
        self.current = Some(request);
    }

    /// What a request held, if no handler works on it any more. Dropping it is better done without the lock.
    pub(super) fn release(&mut self, request: RequestStream) -> Option<Admitted> {
        if self.working.iter().any(|it| it.request == Some(request)) {
            return None;
        }
        let at = self.requests.iter().position(|(it, _)| *it == request)?;
        Some(self.requests.swap_remove(at).1)
    }

    /// Takes what was recorded, if anything was. The caller must do it.
    pub(super) fn take_todo(&mut self) -> Option<Todo> {
        self.current = None;
        if self.todo.is_empty() {
            return None;
        }
        let Todo { call, more_calls, heard } = &mut self.todo;
        Some(Todo {
            call: call.take(),
            more_calls: std::mem::take(more_calls),
            heard: std::mem::take(heard),
        })
    }

    /// A handler was not done at once and now has a task.
    pub(super) fn started(&mut self, call: CallKey, stop: AbortHandle) {
        match self.working.iter_mut().find(|it| it.key == call) {
            Some(working) => working.stop = Some(stop),
            // It was cancelled during its first poll, or has finished.
            None => stop.abort(),
        }
    }

    /// A handler has finished. Returns the request that it belonged to, which the calls that follow from its own
    /// belong to as well.
    pub(super) fn finished(&mut self, call: CallKey) -> Option<RequestStream> {
        let at = self.working.iter().position(|it| it.key == call)?;
        self.current = self.working.swap_remove(at).request;
        self.current
    }

    pub(super) fn stop_all(&mut self) {
        let working = std::mem::take(&mut self.working);
        self.requests.clear();
        working.iter().filter_map(|it| it.stop.as_ref()).for_each(AbortHandle::abort);
    }
}

impl RunHandlers for Deferred {
    fn start(&mut self, mut call: Call, _: &mut Context<'_>) -> Option<Outcome> {
        let request = self.current;
        let admitted = self.requests.iter().rfind(|(it, _)| Some(*it) == request);
        if let Some((_, admitted)) = admitted {
            call.attached = admitted.attached.clone();
        }
        if self.working.capacity() == 0 {
            self.working.reserve_exact(1);
        }
        self.working.push(Working { key: call.key, stop: None, request });
        self.todo.add(call);
        None
    }

    fn stop(&mut self, call: CallKey) {
        let Some(at) = self.working.iter().position(|it| it.key == call) else { return };
        let Working { stop, request, .. } = self.working.swap_remove(at);
        if let Some(stop) = stop {
            stop.abort();
        }
        drop(request.and_then(|it| self.release(it)));
    }

    fn notify(&mut self, heard: PeerNotification) {
        self.todo.heard.push(heard);
    }

    fn poll_finished(&mut self, _: &mut Context<'_>) -> Poll<(CallKey, Outcome)> {
        // The task of each handler reports to the session.
        Poll::Pending
    }
}
