//! The interface that answers calls: a server's tools, a host's user, the whole gateway.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use trunkline_proto::{Attached, Call, PeerNotification};
use trunkline_wire::header::ParamHeaders;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome, Params};

use crate::conversation_handle::ConversationHandle;
use crate::witness::Witness;

/// Answers calls. Dropping an answer abandons its call.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call. The answer can send progress, logs and questions through `handle` meanwhile.
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer;

    /// The same where the answer is polled at once: a handler that can may have `first` do that, which keeps an
    /// answer only if it is not ready then. What it makes of one answer must be what this returns.
    fn begin(
        &self,
        call: Call,
        handle: &ConversationHandle,
        _first: &mut FirstPoll<'_, '_>,
    ) -> Answer {
        self.call(call, handle)
    }

    /// Receives a notification of the peer in the conversation of `handle`. A server's handler also
    /// learns of requests that the core has answered itself: `resources/subscribe` and
    /// `resources/unsubscribe` with their `uri`, and `subscriptions/listen` with the agreed filter as
    /// `notifications`.
    fn heard(&self, _heard: PeerNotification, _handle: &ConversationHandle) {}

    /// A conversation begins whose peer may subscribe to changes: report changes to `handle` until the
    /// returned guard is dropped. `attached` comes from the request that began it.
    fn listen(&self, _handle: &ConversationHandle, _attached: &Attached) -> Listening {
        None
    }

    /// A conversation begins: who sees its messages, if anybody does. It has a handle already if it may last longer
    /// than one request.
    fn witness(
        &self,
        _lasting: Option<&ConversationHandle>,
        _attached: &Attached,
    ) -> Option<Arc<dyn Witness>> {
        None
    }

    /// Whether calls over HTTP get the headers of their request attached. This costs time on every
    /// call.
    fn takes_headers(&self) -> bool {
        false
    }

    /// The arguments of a tool that HTTP clients repeat in headers (2026-07-28), if it has any and the
    /// caller may see it. `meta` is the `_meta` of the request.
    fn param_headers(&self, _tool: &str, _meta: Option<&Json>, _attached: &Attached) -> Repeated {
        None
    }

    /// The scopes that a request needs beyond those of every request; none if it needs no more or names
    /// something that the caller cannot see.
    fn scopes(&self, _method: &str, _params: &Params, _attached: &Attached) -> Vec<String> {
        Vec::new()
    }

    /// The replica that holds what a request goes on with, if another than this one does: a call that waits
    /// for an answer (`requestState`), or a task (`taskId`). Asked only of stateless requests that name
    /// either, and only where replicas share sessions.
    fn held_by(&self, _method: &str, _params: &Params, _attached: &Attached) -> Option<String> {
        None
    }

    /// The same as a store says, once the replica that [`Self::held_by`] named is gone: another may go on with what it
    /// held.
    fn goes_on_at<'a>(
        &'a self,
        _method: &'a str,
        _params: &'a Params,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>> {
        Box::pin(async { None })
    }

    /// A request was refused with this status. `why` is for the operator and holds no token.
    fn denied(&self, _status: u16, _why: &str) {}

    /// Whether two requests come from the same caller, so that the second may use the session of the
    /// first.
    fn is_same_caller(&self, _one: &Attached, _other: &Attached) -> bool {
        true
    }
}

/// The arguments of a tool that HTTP clients repeat in headers, if there are any.
pub type Repeated = Option<Arc<ParamHeaders>>;

/// A guard: while it lives, the conversation hears of changes.
pub type Listening = Option<Box<dyn Any + Send + Sync>>;

/// An answer, now or later.
pub enum Answer {
    /// It is ready.
    Now(Outcome),
    /// It is still in progress.
    Later(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

impl Answer {
    /// An answer that a future produces.
    pub fn later(future: impl Future<Output = Outcome> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }
}

/// The first poll of an answer. Most are ready then.
// None once it is used, or if there is none.
#[derive(Default)]
pub struct FirstPoll<'a, 'b>(Option<&'a mut Context<'b>>);

impl FirstPoll<'_, '_> {
    /// The answer that a future produces, at once if its first poll does. It is made where it is polled, and moves only
    /// if it is not ready.
    #[inline]
    pub fn answer<F>(&mut self, start: impl FnOnce() -> F) -> Answer
    where
        F: Future<Output = Outcome> + Send + Unpin + 'static,
    {
        let Some(cx) = self.0.take() else { return Answer::later(start()) };
        let mut future = Guarded(Some(start()));
        match Pin::new(&mut future).poll(cx) {
            Poll::Ready(outcome) => Answer::Now(outcome),
            Poll::Pending => Answer::later(future),
        }
    }
}

/// Answers nothing: for clients that support no requests of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Handler for Nobody {
    fn call(&self, call: Call, _: &ConversationHandle) -> Answer {
        Answer::Now(Err(ErrorObject::method_not_found(call.method.name)))
    }
}

/// A handler's future. A panic in it becomes an answer, and a panic in its destructor is contained.
pub(crate) struct Guarded<F = Pin<Box<dyn Future<Output = Outcome> + Send>>>(Option<F>);

impl<F: Future<Output = Outcome> + Unpin> Future for Guarded<F> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // After a panic the future is dropped and never polled again.
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(panicked())) };
        catch_unwind(AssertUnwindSafe(|| Pin::new(future).poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    }
}

impl<F> Drop for Guarded<F> {
    fn drop(&mut self) {
        // A destructor may panic. The call is over by then, but other calls on the connection are not.
        // It is dropped where it is.
        let _ = catch_unwind(AssertUnwindSafe(|| self.0 = None));
    }
}

/// Calls the handler and polls it once. Most have finished then; only the others need to be kept. A panic before it
/// returns its future becomes an answer too.
pub(crate) fn begin(
    handler: &impl Handler,
    call: Call,
    handle: &ConversationHandle,
    cx: &mut Context<'_>,
) -> Result<Outcome, Guarded> {
    let mut first = FirstPoll(Some(cx));
    let answer = catch_unwind(AssertUnwindSafe(|| handler.begin(call, handle, &mut first)))
        .unwrap_or_else(|_| Answer::Now(Err(panicked())));
    let (future, cx) = match answer {
        Answer::Now(outcome) => return Ok(outcome),
        Answer::Later(future) => (future, first.0),
    };
    let mut future = Guarded(Some(future));
    match cx.map(|cx| Pin::new(&mut future).poll(cx)) {
        Some(Poll::Ready(outcome)) => Ok(outcome),
        Some(Poll::Pending) | None => Err(future),
    }
}

/// Tells the handler of a notification; a panic does not end the conversation.
pub(crate) fn guarded_heard(
    handler: &impl Handler,
    heard: PeerNotification,
    handle: &ConversationHandle,
) {
    // The panic hook has reported it on stderr, and no caller waits.
    let _ = catch_unwind(AssertUnwindSafe(|| handler.heard(heard, handle)));
}

/// The error a caller gets for a panic. The panic's text goes to stderr only.
///
/// ```
/// # use trunkline_transport::handler::panicked;
/// assert_eq!(panicked().message, "The handler failed unexpectedly.");
/// ```
pub fn panicked() -> ErrorObject {
    ErrorObject::internal("panic", "The handler failed unexpectedly.")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use super::*;

    /// Is ready at a poll of this number, and counts them.
    struct At(usize, Arc<AtomicUsize>);

    impl Future for At {
        type Output = Outcome;

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Outcome> {
            match self.1.fetch_add(1, Ordering::Relaxed) + 1 >= self.0 {
                true => Poll::Ready(Ok(Json::null())),
                false => Poll::Pending,
            }
        }
    }

    #[test]
    fn an_answer_has_one_first_poll() {
        for (ready_at, is_now) in [(1, true), (2, false)] {
            let polls = Arc::new(AtomicUsize::new(0));
            let mut cx = Context::from_waker(Waker::noop());
            let mut first = FirstPoll(Some(&mut cx));
            let answer = first.answer(|| At(ready_at, Arc::clone(&polls)));
            assert_eq!(matches!(answer, Answer::Now(_)), is_now);
            assert_eq!(polls.load(Ordering::Relaxed), 1);
            let again = first.answer(|| At(1, Arc::clone(&polls)));
            assert!(matches!(again, Answer::Later(_)), "the first poll is over");
            assert_eq!(polls.load(Ordering::Relaxed), 1);
        }
        let polls = Arc::new(AtomicUsize::new(0));
        let unpolled = FirstPoll::default().answer(|| At(1, Arc::clone(&polls)));
        assert!(matches!(unpolled, Answer::Later(_)) && polls.load(Ordering::Relaxed) == 0);
    }
}
