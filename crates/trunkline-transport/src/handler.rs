//! What answers a call: a user's tools, a host's user, the whole gateway. Transports do not care.

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

use crate::voice::ConversationHandle;

/// Answers calls. Dropping an answer abandons its call.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call; `voice` lets the answer speak while it is worked out.
    fn call(&self, call: Call, voice: &ConversationHandle) -> Answer;

    /// The peer sent a notification, in the conversation that `voice` speaks into. A server is also
    /// told of what needed no handler's answer but may need its doing, once it is answered:
    /// `resources/subscribe` and `resources/unsubscribe` with their `uri`, and
    /// `subscriptions/listen` with what was agreed on as `notifications`.
    fn heard(&self, _heard: PeerNotification, _voice: &ConversationHandle) {}

    /// A conversation begins whose peer may want to hear of changes: tell them to `voice` until
    /// what is returned is dropped. `attached` is what came with the request that began it.
    fn listen(&self, _voice: &ConversationHandle, _attached: &Attached) -> Listening {
        None
    }

    /// Whether calls that came over HTTP are to have the headers of their request among what is attached to
    /// them. Not every call should pay for that.
    fn takes_headers(&self) -> bool {
        false
    }

    /// The arguments of a tool that HTTP clients repeat in headers, if it has any and the caller
    /// may know of it. `meta` is the `_meta` of the request.
    fn param_headers(
        &self,
        _tool: &str,
        _meta: Option<&Json>,
        _attached: &Attached,
    ) -> Option<Arc<ParamHeaders>> {
        None
    }

    /// The scopes that a request takes besides those that every request takes; none, if it takes no
    /// more or asks for something that is not there for the caller.
    fn scopes(&self, _method: &str, _params: &Params, _attached: &Attached) -> Vec<String> {
        Vec::new()
    }

    /// A request was not let in, with this status. `why` is for who runs the server, and holds no
    /// token.
    fn denied(&self, _status: u16, _why: &str) {}

    /// Whether two requests come from the same caller, so that one may go on with the session that
    /// the other began.
    fn is_same_caller(&self, _one: &Attached, _other: &Attached) -> bool {
        true
    }
}

/// Kept for as long as a conversation hears of changes.
pub type Listening = Option<Box<dyn Any + Send + Sync>>;

/// An answer, now or later.
pub enum Answer {
    /// It is here.
    Now(Outcome),
    /// It is being worked out.
    Later(Pin<Box<dyn Future<Output = Outcome> + Send>>),
}

impl Answer {
    /// An answer that is worked out.
    pub fn later(future: impl Future<Output = Outcome> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }
}

/// Answers nothing: for clients that have no one to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Handler for Nobody {
    fn call(&self, call: Call, _: &ConversationHandle) -> Answer {
        Answer::Now(Err(ErrorObject::method_not_found(call.method.name)))
    }
}

/// A handler's future whose panics are answers too, and whose end never is one.
pub(crate) struct Guarded(Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>);

impl Guarded {
    fn new(future: Pin<Box<dyn Future<Output = Outcome> + Send>>) -> Self {
        Self(Some(future))
    }
}

impl Future for Guarded {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // The future is dropped after a panic and never polled again.
        let Some(future) = &mut self.0 else { return Poll::Ready(Err(panicked())) };
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // What a handler holds may panic when it is dropped. Its call is over by then, and those
        // of others on the same connection are not.
        let future = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    }
}

/// Calls the handler; a panic on the way to its future is an answer too.
fn guarded_call(handler: &impl Handler, call: Call, voice: &ConversationHandle) -> Answer {
    catch_unwind(AssertUnwindSafe(|| handler.call(call, voice)))
        .unwrap_or_else(|_| Answer::Now(Err(panicked())))
}

/// Calls the handler and looks once whether it is done, which most are: only the others need to be
/// kept.
pub(crate) fn begin(
    handler: &impl Handler,
    call: Call,
    voice: &ConversationHandle,
    cx: &mut Context<'_>,
) -> Result<Outcome, Guarded> {
    match guarded_call(handler, call, voice) {
        Answer::Now(outcome) => Ok(outcome),
        Answer::Later(future) => {
            let mut future = Guarded::new(future);
            match Pin::new(&mut future).poll(cx) {
                Poll::Ready(outcome) => Ok(outcome),
                Poll::Pending => Err(future),
            }
        }
    }
}

/// Tells the handler of a notification; if it panics, the conversation goes on.
pub(crate) fn guarded_heard(
    handler: &impl Handler,
    heard: PeerNotification,
    voice: &ConversationHandle,
) {
    // The panic has been reported on stderr, and nobody waits for an answer.
    let _ = catch_unwind(AssertUnwindSafe(|| handler.heard(heard, voice)));
}

/// What a caller hears of a panic. Its own text went to stderr and is nobody else's business.
///
/// ```
/// # use trunkline_transport::handler::panicked;
/// assert_eq!(panicked().message, "The handler failed unexpectedly.");
/// ```
pub fn panicked() -> ErrorObject {
    ErrorObject::internal("panic", "The handler failed unexpectedly.")
}
