//! How handlers and hosts speak into a conversation that a driver owns.

mod command;
mod listener;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::sync::{Semaphore, TryAcquireError, mpsc, oneshot};
use trunkline_proto::{
    Ask, Attached, CallError, CallKey, Change, HandlerEvent, PeerNotification, Ticket, Timing,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{MethodName, Object};
use trunkline_wire::method::Method;

pub(crate) use command::{Asked, Command, Urgent};
use command::{Reply, over};
pub use listener::Listener;

/// Speaks into one conversation. Cheap to clone; outliving the conversation is harmless.
#[derive(Clone, Debug)]
pub struct ConversationHandle(Arc<Inner>);

/// What is unsaid. Nothing is allocated for a conversation in which nobody speaks up.
#[derive(Debug)]
struct Inner {
    unsaid: Mutex<Unsaid>,
    /// Room for commands: each takes one, and one more for each KiB. Closed with the conversation.
    room: Semaphore,
    /// All the room there is.
    queue: u32,
    tickets: AtomicU64,
    /// Given out when somebody asks for it, so that most conversations cost none.
    number: OnceLock<u64>,
    /// Whether it ends with the one request it was begun for.
    is_of_one_request: bool,
}

#[derive(Debug, Default)]
struct Unsaid {
    /// Each with the room that it takes.
    commands: VecDeque<(Command, u32)>,
    /// At most one for each call made and one more, so its length is bounded by theirs.
    urgent: VecDeque<Urgent>,
    /// Whoever listens, once everything is said.
    listener: Option<Waker>,
    closed: bool,
}

/// The driver's end of a [`ConversationHandle`]. Dropping it ends the conversation for those who speak.
#[derive(Debug)]
pub(crate) struct CommandReceiver(Arc<Inner>);

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
    /// Where to put progress, for a subscription its notifications, and what is logged meanwhile as
    /// far as it can be told to belong to this call; the last is told to the handler too. When it
    /// is full, what comes then is dropped.
    pub heard: Option<mpsc::Sender<PeerNotification>>,
    /// Who hears the same instead, and alone: the handler is told nothing of it.
    pub listener: Option<Arc<dyn Listener>>,
    /// What is attached to the questions of the peer that belong to it, as far as that can be told.
    pub attached: Attached,
    /// Whether an answer that asks back (`input_required`) is handed on as it is, instead of
    /// having its questions answered by the handler.
    pub relays: bool,
}

impl Request {
    /// A plain request.
    pub fn new(method: impl Into<MethodName>, params: Object) -> Self {
        Self {
            during: None,
            method: method.into(),
            params,
            timing: None,
            heard: None,
            listener: None,
            attached: Attached::default(),
            relays: false,
        }
    }
}

impl ConversationHandle {
    pub(crate) fn new(queue: usize) -> (Self, CommandReceiver) {
        Self::begin(queue, false)
    }

    /// For a conversation that is over once one request is answered, while its peer may go on.
    #[cfg(feature = "http")]
    pub(crate) fn of_one_request(queue: usize) -> (Self, CommandReceiver) {
        Self::begin(queue, true)
    }

    fn begin(queue: usize, is_of_one_request: bool) -> (Self, CommandReceiver) {
        let inner = Arc::new(Inner {
            unsaid: Mutex::default(),
            room: Semaphore::new(queue),
            queue: u32::try_from(queue).unwrap_or(u32::MAX),
            tickets: AtomicU64::new(0),
            number: OnceLock::new(),
            is_of_one_request,
        });
        (Self(Arc::clone(&inner)), CommandReceiver(inner))
    }

    /// A voice that nobody hears: for work whose conversation is over.
    pub fn unheard() -> Self {
        Self::new(1).0
    }

    /// Says something about a call that is being answered. Waits while too much is unsaid.
    pub async fn say(&self, call: CallKey, what: HandlerEvent) {
        // A conversation that is over has nobody to listen, which is fine.
        self.0.send(Command::Say(call, what)).await;
    }

    /// Calls the peer. Dropping the future cancels the call. A call that was not made because the
    /// conversation is over fails with [`CallError::Unreachable`]; one that was made, and whose
    /// answer can no longer come, with [`CallError::Closed`].
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
            wants_progress: request.heard.is_some() || request.listener.is_some(),
            timing: request.timing,
            attached: request.attached,
            relays: request.relays,
        };
        let reply = Reply { outcome, heard: request.heard, listener: request.listener };
        async move {
            if !inner.send(Command::Ask(ask, reply)).await {
                return Err(over());
            }
            Pending { received, ticket, inner, settled: false }.await
        }
    }

    /// Tells the conversation that something peers may listen to has changed.
    pub async fn changed(&self, change: Change) {
        self.0.send(Command::Change(change)).await;
    }

    /// The same without waiting; `false` if too much is unsaid already.
    #[must_use]
    pub fn try_changed(&self, change: Change) -> bool {
        let command = Command::Change(change);
        let takes = self.0.takes(&command);
        match self.0.room.try_acquire_many(takes) {
            Ok(room) => {
                room.forget();
                self.0.put(|unsaid| unsaid.commands.push_back((command, takes)));
                true
            }
            // A conversation that is over has nobody left to tell.
            Err(TryAcquireError::Closed) => true,
            Err(TryAcquireError::NoPermits) => false,
        }
    }

    /// Sends a notification, if the revision has it.
    pub async fn notify(&self, method: Method, params: Object) {
        self.0.send(Command::Notify(method, params)).await;
    }

    /// Ends the conversation in good order.
    pub fn close(&self) {
        self.0.urge(Urgent::Close);
    }

    /// Whether both speak into the same conversation.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that no other conversation of this process ever has.
    pub fn number(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        *self.0.number.get_or_init(|| NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether the conversation is over.
    pub fn is_closed(&self) -> bool {
        self.0.room.is_closed()
    }

    /// Whether the peer is known to be gone. A conversation of one request ends without telling.
    pub fn is_deserted(&self) -> bool {
        self.is_closed() && !self.0.is_of_one_request
    }
}

impl Inner {
    /// Waits for room, and says whether there is still somebody to hear it.
    async fn send(&self, command: Command) -> bool {
        let takes = self.takes(&command);
        let Ok(room) = self.room.acquire_many(takes).await else { return false };
        room.forget();
        self.put(|unsaid| unsaid.commands.push_back((command, takes)))
    }

    /// The room that a command takes: for one that is larger than all of it, all.
    fn takes(&self, command: &Command) -> u32 {
        let takes = u32::try_from(command.size() / UNIT).unwrap_or(u32::MAX).saturating_add(1);
        takes.min(self.queue.max(1))
    }

    fn urge(&self, urgent: Urgent) {
        self.put(|unsaid| unsaid.urgent.push_back(urgent));
    }

    fn put(&self, put: impl FnOnce(&mut Unsaid)) -> bool {
        let mut unsaid = self.lock();
        if unsaid.closed {
            return false;
        }
        put(&mut unsaid);
        let listener = unsaid.listener.take();
        // Whoever is woken may listen at once, and needs the lock for that.
        drop(unsaid);
        if let Some(listener) = listener {
            listener.wake();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Unsaid> {
        // Nothing that can panic happens under this lock.
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandReceiver {
    pub(crate) fn poll_urgent(&self, cx: &mut Context<'_>) -> Poll<Urgent> {
        self.poll(cx, |unsaid| unsaid.urgent.pop_front())
    }

    pub(crate) fn poll_command(&self, cx: &mut Context<'_>) -> Poll<Command> {
        let (command, takes) = ready!(self.poll(cx, |unsaid| unsaid.commands.pop_front()));
        self.0.room.add_permits(takes as usize);
        Poll::Ready(command)
    }

    /// The next command that is there already.
    pub(crate) fn try_command(&self) -> Option<Command> {
        let (command, takes) = self.0.lock().commands.pop_front()?;
        self.0.room.add_permits(takes as usize);
        Some(command)
    }

    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut Unsaid) -> Option<T>,
    ) -> Poll<T> {
        let mut unsaid = self.0.lock();
        if let Some(taken) = take(&mut unsaid) {
            return Poll::Ready(taken);
        }
        match &mut unsaid.listener {
            Some(listener) => listener.clone_from(cx.waker()),
            listener => *listener = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for CommandReceiver {
    fn drop(&mut self) {
        self.0.room.close();
        let unsaid = {
            let mut unsaid = self.0.lock();
            unsaid.closed = true;
            (std::mem::take(&mut unsaid.commands), unsaid.listener.take())
        };
        // Those who asked may speak up again at once.
        unsaid.0.into_iter().for_each(|(command, _)| command.refuse());
    }
}

/// How many bytes take the room of one more message.
const UNIT: usize = 1 << 10;

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
            self.inner.urge(Urgent::Cancel(self.ticket));
        }
    }
}

#[cfg(test)]
mod tests;
