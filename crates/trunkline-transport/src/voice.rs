//! How handlers and hosts speak into a conversation that [`crate::drive`] owns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use trunkline_proto::{Ask, CallError, CallKey, Change, Heard, Ticket, Timing, Utterance};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{MethodName, Object};

/// Speaks into one conversation. Cheap to clone; outliving the conversation is harmless.
#[derive(Clone, Debug)]
pub struct Voice(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wishes: mpsc::Sender<Wish>,
    /// At most one for each call made and one more, so its length is bounded by theirs.
    urgent: mpsc::UnboundedSender<Urgent>,
    tickets: AtomicU64,
}

/// The driver's ends of a [`Voice`].
#[derive(Debug)]
pub(crate) struct Ears {
    pub(crate) wishes: mpsc::Receiver<Wish>,
    pub(crate) urgent: mpsc::UnboundedReceiver<Urgent>,
}

/// Something that somebody on this side wants said.
#[derive(Debug)]
pub(crate) enum Wish {
    Say(CallKey, Utterance),
    Ask(Ask, Reply),
    Change(Change),
    Notify(&'static str, Object),
}

/// What does not wait until the peer reads again.
#[derive(Debug)]
pub(crate) enum Urgent {
    Cancel(Ticket),
    Close,
}

/// Where the outcome of a call of ours goes, and what is heard about it until then.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) outcome: oneshot::Sender<Result<Json, CallError>>,
    pub(crate) heard: Option<mpsc::Sender<Heard>>,
}

/// A call of ours to the peer.
#[derive(Clone, Debug)]
pub struct Request {
    /// The call of the peer during which we ask, if any.
    pub during: Option<CallKey>,
    /// The method.
    pub method: MethodName,
    /// Its parameters.
    pub params: Object,
    /// How long to wait; the conversation's own bounds if absent.
    pub timing: Option<Timing>,
    /// Where to put progress and, for a subscription, its notifications. When it is full, what
    /// comes then is dropped.
    pub heard: Option<mpsc::Sender<Heard>>,
}

impl Request {
    /// A plain request.
    pub fn new(method: impl Into<MethodName>, params: Object) -> Self {
        Self { during: None, method: method.into(), params, timing: None, heard: None }
    }
}

impl Voice {
    pub(crate) fn new(queue: usize) -> (Self, Ears) {
        let (wishes, wished) = mpsc::channel(queue);
        let (urgent, urged) = mpsc::unbounded_channel();
        let inner = Inner { wishes, urgent, tickets: AtomicU64::new(0) };
        (Self(Arc::new(inner)), Ears { wishes: wished, urgent: urged })
    }

    /// Says something about a call that is being answered. Waits while too much is unsaid.
    pub async fn say(&self, call: CallKey, what: Utterance) {
        // A conversation that is over has nobody to listen, which is fine.
        let _ = self.0.wishes.send(Wish::Say(call, what)).await;
    }

    /// Calls the peer. Dropping the future cancels the call.
    pub fn ask(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + use<> {
        let inner = Arc::clone(&self.0);
        let ticket = Ticket(inner.tickets.fetch_add(1, Ordering::Relaxed));
        let (outcome, received) = oneshot::channel();
        let ask = Ask {
            ticket,
            during: request.during,
            method: request.method,
            params: request.params,
            wants_progress: request.heard.is_some(),
            timing: request.timing,
        };
        let reply = Reply { outcome, heard: request.heard };
        async move {
            if inner.wishes.send(Wish::Ask(ask, reply)).await.is_err() {
                return Err(CallError::Closed);
            }
            Pending { received, ticket, inner, settled: false }.await
        }
    }

    /// Tells the conversation that something peers may listen to has changed.
    pub async fn changed(&self, change: Change) {
        let _ = self.0.wishes.send(Wish::Change(change)).await;
    }

    /// The same without waiting; `false` if too much is unsaid already.
    #[must_use]
    pub fn try_changed(&self, change: Change) -> bool {
        // A conversation that is over has nobody left to tell.
        !matches!(self.0.wishes.try_send(Wish::Change(change)), Err(TrySendError::Full(_)))
    }

    /// Sends a notification, if the revision has it.
    pub async fn notify(&self, method: &'static str, params: Object) {
        let _ = self.0.wishes.send(Wish::Notify(method, params)).await;
    }

    /// Ends the conversation in good order.
    pub fn close(&self) {
        let _ = self.0.urgent.send(Urgent::Close);
    }

    /// Whether the conversation is over.
    pub fn is_closed(&self) -> bool {
        self.0.wishes.is_closed()
    }
}

/// A call of ours that waits for its outcome; dropped before that, it is cancelled.
struct Pending {
    received: oneshot::Receiver<Result<Json, CallError>>,
    ticket: Ticket,
    inner: Arc<Inner>,
    settled: bool,
}

impl Future for Pending {
    type Output = Result<Json, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = ready!(Pin::new(&mut self.received).poll(cx));
        self.settled = true;
        Poll::Ready(outcome.unwrap_or(Err(CallError::Closed)))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.settled {
            let _ = self.inner.urgent.send(Urgent::Cancel(self.ticket));
        }
    }
}
