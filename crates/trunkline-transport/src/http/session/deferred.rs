//! Handlers of a session, recorded under its lock and run without it.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::AbortHandle;
use trunkline_proto::{Call, CallKey, PeerNotification};
use trunkline_wire::jsonrpc::Outcome;

use crate::driver_core::RunHandlers;
use crate::http::admitted::Admitted;

/// Starts handlers after the unlock; they report to the session when they finish.
#[derive(Default)]
pub(super) struct Deferred {
    /// Running handlers; one that is polled in place has no abort handle yet.
    working: Vec<Working>,
    /// The request whose message is being handled.
    admitted: Option<Arc<Admitted>>,
    todo: Todo,
}

/// A running handler.
struct Working {
    key: CallKey,
    stop: Option<AbortHandle>,
    admitted: Option<Arc<Admitted>>,
}

/// The work left for after the unlock.
#[derive(Default)]
pub(super) struct Todo {
    /// Most messages are one call, and then nothing is allocated for more.
    call: Option<Box<Call>>,
    more_calls: Vec<Call>,
    pub(super) heard: Vec<PeerNotification>,
}

impl Todo {
    pub(super) fn extend(&mut self, more: Self) {
        self.heard.extend(more.heard);
        more.call
            .into_iter()
            .chain(more.more_calls.into_iter().map(Box::new))
            .for_each(|it| self.add(it));
    }

    fn add(&mut self, call: Box<Call>) {
        match self.call {
            None => self.call = Some(call),
            Some(_) => self.more_calls.push(*call),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.call.is_none() && self.more_calls.is_empty() && self.heard.is_empty()
    }

    /// Takes its call, if it has exactly one.
    pub(super) fn take_only(&mut self) -> Option<Box<Call>> {
        if self.more_calls.is_empty() { self.call.take() } else { None }
    }

    pub(super) fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.call.as_deref_mut().into_iter().chain(&mut self.more_calls)
    }

    pub(super) fn into_calls(self) -> impl Iterator<Item = Call> {
        self.call.map(|it| *it).into_iter().chain(self.more_calls)
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

    /// Attributes the calls recorded from now on to a request, or to none.
    pub(super) fn admit(&mut self, admitted: Option<&Arc<Admitted>>) {
        self.admitted = admitted.cloned();
    }

    /// Takes what was recorded. The caller must do it.
    pub(super) fn take_todo(&mut self) -> Todo {
        self.admitted = None;
        std::mem::take(&mut self.todo)
    }

    /// A handler was not done at once and now has a task.
    pub(super) fn started(&mut self, call: CallKey, stop: AbortHandle) {
        match self.working.iter_mut().find(|it| it.key == call) {
            Some(working) => working.stop = Some(stop),
            // It was cancelled during its first poll, or has finished.
            None => stop.abort(),
        }
    }

    /// A handler has finished. Returns the request that it belonged to.
    pub(super) fn finished(&mut self, call: CallKey) -> Option<Arc<Admitted>> {
        let at = self.working.iter().position(|it| it.key == call)?;
        self.working.swap_remove(at).admitted
    }

    /// Attributes calls to the request of an earlier one.
    pub(super) fn follow_on(&mut self, todo: &mut Todo, admitted: &Arc<Admitted>) {
        for call in todo.calls_mut() {
            call.attached = admitted.attached.clone();
            if let Some(working) = self.working.iter_mut().find(|it| it.key == call.key) {
                working.admitted = Some(Arc::clone(admitted));
            }
        }
    }

    pub(super) fn stop_all(&mut self) {
        let working = std::mem::take(&mut self.working);
        working.iter().filter_map(|it| it.stop.as_ref()).for_each(AbortHandle::abort);
    }
}

impl RunHandlers for Deferred {
    fn start(&mut self, call: Box<Call>, _: &mut Context<'_>) -> Option<Outcome> {
        let admitted = self.admitted.clone();
        self.working.push(Working { key: call.key, stop: None, admitted });
        self.todo.add(call);
        None
    }

    fn stop(&mut self, call: CallKey) {
        if let Some(at) = self.working.iter().position(|it| it.key == call)
            && let Some(stop) = self.working.swap_remove(at).stop
        {
            stop.abort();
        }
    }

    fn notify(&mut self, heard: PeerNotification) {
        self.todo.heard.push(heard);
    }

    fn poll_finished(&mut self, _: &mut Context<'_>) -> Poll<(CallKey, Outcome)> {
        // The task of each handler reports to the session.
        Poll::Pending
    }
}
