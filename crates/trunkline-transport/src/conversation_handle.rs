//! `ConversationHandle`: how handlers and hosts send into a conversation that a driver owns.

mod command;
mod listener;

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::sync::{Semaphore, TryAcquireError, mpsc, oneshot};
use tokio::task::coop::consume_budget;
use trunkline_proto::{
    Ask, Attached, CallError, CallKey, Change, HandlerEvent, PeerNotification, Ticket, Timing,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{MethodName, Object};
use trunkline_wire::method::Method;

pub(crate) use command::{Asked, Command, Urgent};
use command::{Reply, over};
pub use listener::Listener;

use crate::witness::Witness;

/// Sends into one conversation. Cheap to clone, and safe to keep after the conversation is over.
#[derive(Clone, Debug)]
pub struct ConversationHandle(Arc<Inner>);

/// The queues. A conversation without commands allocates nothing.
#[derive(Debug)]
struct Inner {
    queues: Mutex<Queues>,
    /// Whether there may be something in the queues. Changes under their lock.
    has_news: AtomicBool,
    /// Whether there is something that bypasses the queue. Changes under their lock.
    has_urgent: AtomicBool,
    /// Capacity of the queue: a command takes one permit, and one more per KiB. Closed with the
    /// conversation.
    room: Semaphore,
    /// The capacity in permits.
    queue: u32,
    tickets: AtomicU64,
    /// Assigned on first use; 0 before.
    number: AtomicU64,
    /// Whether the conversation ends with its one request.
    is_of_one_request: bool,
    /// Who sees the messages, from the beginning or from later on.
    witness: Option<Arc<dyn Witness>>,
    later_witness: OnceLock<Arc<dyn Witness>>,
}

#[derive(Debug, Default)]
struct Queues {
    /// Each with the permits it takes.
    commands: VecDeque<(Command, u32)>,
    /// Bounded by the calls made: at most one each, and one close.
    urgent: VecDeque<Urgent>,
    /// Wakes the driver when the queues were empty.
    listener: Option<Waker>,
    closed: bool,
}

impl Queues {
    /// Wakes this task, and no other, when something is queued.
    fn listen(&mut self, task: &Waker) {
        match &mut self.listener {
            Some(listener) => listener.clone_from(task),
            listener => *listener = Some(task.clone()),
        }
    }
}

/// What a driver takes in next.
pub(crate) enum Next {
    Urgent(Urgent),
    Command(Command),
}

/// The driver's end of a [`ConversationHandle`]. Dropping it closes all handles.
#[derive(Debug)]
pub(crate) struct CommandReceiver {
    inner: Arc<Inner>,
    /// Whom the queues wake, if they do.
    woken: Option<Waker>,
    /// Commands that were taken out of the queue together and are next.
    taken: VecDeque<(Command, u32)>,
    /// The permits of those that were handed on since.
    freed: u32,
}

/// A call of ours to the peer.
#[derive(Clone, Debug)]
pub struct Request {
    /// The peer's call during which we ask, if any.
    pub during: Option<CallKey>,
    /// The method.
    pub method: MethodName,
    /// Its parameters.
    pub params: Object,
    /// The deadlines; those of the conversation if absent.
    pub timing: Option<Timing>,
    /// Receives progress, the notifications of a subscription, and log messages that can be attributed
    /// to this call. Log messages reach the handler as well. A full channel drops what follows.
    pub heard: Option<mpsc::Sender<PeerNotification>>,
    /// Receives the same instead of `heard`; the handler then receives none of it.
    pub listener: Option<Arc<dyn Listener>>,
    /// Attached to the peer's questions that can be attributed to this call.
    pub attached: Attached,
    /// Whether an `input_required` result is returned as it is, instead of the handler answering its
    /// questions.
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
        Self::begin(queue, false, None)
    }

    /// For a conversation that ends once one request is answered, while its peer may live on; with whoever sees it.
    #[cfg(feature = "http")]
    pub(crate) fn of_one_request(
        queue: usize,
        witness: Option<Arc<dyn Witness>>,
    ) -> (Self, CommandReceiver) {
        Self::begin(queue, true, witness)
    }

    fn begin(
        queue: usize,
        is_of_one_request: bool,
        witness: Option<Arc<dyn Witness>>,
    ) -> (Self, CommandReceiver) {
        let inner = Arc::new(Inner {
            queues: Mutex::default(),
            has_news: AtomicBool::new(false),
            has_urgent: AtomicBool::new(false),
            room: Semaphore::new(queue),
            queue: u32::try_from(queue).unwrap_or(u32::MAX),
            tickets: AtomicU64::new(0),
            number: AtomicU64::new(0),
            is_of_one_request,
            witness,
            later_witness: OnceLock::new(),
        });
        let handle = Self(Arc::clone(&inner));
        (handle, CommandReceiver { inner, woken: None, taken: VecDeque::new(), freed: 0 })
    }

    /// A handle without a conversation: for work that outlives its own.
    pub fn unheard() -> Self {
        Self::new(1).0
    }

    /// Reports an event of a call that is being answered. Waits while the queue is full.
    /// Returns whether the conversation is still open: one that is over drops the event, which is fine.
    pub fn say(&self, call: CallKey, what: HandlerEvent) -> impl Future<Output = bool> + Send {
        self.0.send(Command::Say(call, what))
    }

    /// Calls the peer. Dropping the future cancels the call. The call fails with
    /// [`CallError::Unreachable`] if it was not sent because the conversation is over, and with
    /// [`CallError::Closed`] if it was sent and no answer can come.
    pub fn ask(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Json, CallError>> + Send + Unpin + use<> {
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
        Asking { received, ticket, inner, step: Step::Unsent(Command::Ask(ask, reply)) }
    }

    /// Reports a change that the peer may have subscribed to.
    pub async fn changed(&self, change: Change) {
        self.0.send(Command::Change(change)).await;
    }

    /// The same without waiting; `false` if the queue is full.
    #[must_use]
    pub fn try_changed(&self, change: Change) -> bool {
        let command = Command::Change(change);
        match self.0.try_reserve(&command) {
            Ok(takes) => {
                self.0.push(command, takes);
                true
            }
            // A conversation that is over has no peer to tell.
            Err(TryAcquireError::Closed) => true,
            Err(TryAcquireError::NoPermits) => false,
        }
    }

    /// Sends a notification, if the revision has it.
    pub async fn notify(&self, method: Method, params: Object) {
        self.0.send(Command::Notify(method, params)).await;
    }

    /// Closes the conversation gracefully.
    pub fn close(&self) {
        self.0.urge(Urgent::Close);
    }

    /// Whether both belong to the same conversation.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number unique in this process.
    pub fn number(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let known = self.0.number.load(Ordering::Relaxed);
        if known > 0 {
            return known;
        }
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        // Whoever came first has assigned it.
        let assigned =
            self.0.number.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
        assigned.map_or_else(|first| first, |_| next)
    }

    /// From now on this witness sees the messages of the conversation, unless it has one already.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        if self.0.witness.is_none() {
            // The first one stays.
            let _ = self.0.later_witness.set(witness);
        }
    }

    /// Who sees the messages of the conversation, if that is a `T`.
    pub fn witness<T: Witness>(&self) -> Option<&T> {
        let witness: &dyn Any = self.0.witness()?;
        witness.downcast_ref()
    }

    /// Whether anybody sees the messages of the conversation.
    #[inline]
    pub fn has_witness(&self) -> bool {
        self.0.witness().is_some()
    }

    /// Whether the conversation ends with its one request.
    pub fn is_of_one_request(&self) -> bool {
        self.0.is_of_one_request
    }

    /// Whether the conversation is over.
    pub fn is_closed(&self) -> bool {
        self.0.room.is_closed()
    }

    /// Whether the peer is known to be gone. The end of a one-request conversation does not say that.
    pub fn is_deserted(&self) -> bool {
        self.is_closed() && !self.0.is_of_one_request
    }
}

impl Inner {
    #[inline]
    fn witness(&self) -> Option<&dyn Witness> {
        // Most conversations are long, and are seen from when their handle was there.
        self.later_witness.get().or(self.witness.as_ref()).map(|it| &**it)
    }

    /// Waits for room. Returns whether the conversation is still open.
    async fn send(&self, command: Command) -> bool {
        // A handler that reports without end gives others their turn.
        consume_budget().await;
        match self.try_reserve(&command) {
            Ok(takes) => self.push(command, takes),
            Err(TryAcquireError::Closed) => false,
            // Boxed: there is nearly always room, and every handler that reports would carry the wait for it.
            Err(TryAcquireError::NoPermits) => {
                Box::pin(self.send_once_there_is_room(command)).await
            }
        }
    }

    async fn send_once_there_is_room(&self, command: Command) -> bool {
        let takes = self.takes(&command);
        let Ok(room) = self.room.acquire_many(takes).await else { return false };
        room.forget();
        self.push(command, takes)
    }

    /// Takes the room of a command without waiting, which is then to be pushed.
    fn try_reserve(&self, command: &Command) -> Result<u32, TryAcquireError> {
        let takes = self.takes(command);
        self.room.try_acquire_many(takes)?.forget();
        Ok(takes)
    }

    /// Queues a command that has its room. Returns whether the conversation is still open.
    fn push(&self, command: Command, takes: u32) -> bool {
        self.put(|queues| queues.commands.push_back((command, takes)))
    }

    /// The permits that a command takes, at most the whole capacity.
    fn takes(&self, command: &Command) -> u32 {
        let takes = u32::try_from(command.size() / UNIT).unwrap_or(u32::MAX).saturating_add(1);
        takes.min(self.queue.max(1))
    }

    fn urge(&self, urgent: Urgent) {
        self.put(|queues| {
            queues.urgent.push_back(urgent);
            self.has_urgent.store(true, Ordering::Release);
        });
    }

    fn put(&self, put: impl FnOnce(&mut Queues)) -> bool {
        let mut queues = self.lock();
        if queues.closed {
            return false;
        }
        put(&mut queues);
        self.has_news.store(true, Ordering::Release);
        let listener = queues.listener.take();
        // The woken driver may poll at once and needs the lock.
        drop(queues);
        if let Some(listener) = listener {
            listener.wake();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing that can panic happens under this lock.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandReceiver {
    #[inline]
    pub(crate) fn witness(&self) -> Option<&dyn Witness> {
        self.inner.witness()
    }

    #[cfg(feature = "http")]
    pub(crate) fn poll_urgent(&self, cx: &mut Context<'_>) -> Poll<Urgent> {
        self.inner.poll(cx, |queues| queues.urgent.pop_front())
    }

    #[cfg(feature = "http")]
    pub(crate) fn poll_command(&self, cx: &mut Context<'_>) -> Poll<Command> {
        let (command, takes) = ready!(self.inner.poll(cx, |queues| queues.commands.pop_front()));
        self.inner.room.add_permits(takes as usize);
        Poll::Ready(command)
    }

    /// What is next: whatever bypasses the queue, then what is in it, unless the queue has to wait. Most polls are
    /// about something else and need no lock, and what was queued together is taken with one. Who calls this calls
    /// neither of the others.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>, takes_commands: bool) -> Poll<Next> {
        let is_urged = self.inner.has_urgent.load(Ordering::Acquire);
        if takes_commands
            && !is_urged
            && let Some(command) = self.next_taken()
        {
            return Poll::Ready(Next::Command(command));
        }
        let knows = self.woken.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
        if knows && !self.inner.has_news.load(Ordering::Acquire) {
            self.free();
            return Poll::Pending;
        }
        if !knows {
            self.woken = Some(cx.waker().clone());
        }
        if let Some(urgent) = self.take_queued(cx.waker()) {
            return Poll::Ready(Next::Urgent(urgent));
        }
        if takes_commands && let Some(command) = self.next_taken() {
            return Poll::Ready(Next::Command(command));
        }
        self.free();
        Poll::Pending
    }

    /// Takes what bypasses the queue, one at a time, or else all commands. Once nothing is left, what is queued next
    /// wakes the task.
    fn take_queued(&mut self, task: &Waker) -> Option<Urgent> {
        let mut queues = self.inner.lock();
        let urgent = queues.urgent.pop_front();
        if urgent.is_none() && self.taken.is_empty() {
            std::mem::swap(&mut self.taken, &mut queues.commands);
        } else if urgent.is_none() {
            self.taken.append(&mut queues.commands);
        }
        let has_urgent = !queues.urgent.is_empty();
        self.inner.has_urgent.store(has_urgent, Ordering::Release);
        if !has_urgent && queues.commands.is_empty() {
            self.inner.has_news.store(false, Ordering::Release);
            queues.listen(task);
        }
        urgent
    }

    /// The next of the commands that were taken together.
    fn next_taken(&mut self) -> Option<Command> {
        let (command, takes) = self.taken.pop_front()?;
        self.freed += takes;
        Some(command)
    }

    /// Gives back the room of the commands that were handed on.
    fn free(&mut self) {
        if self.freed > 0 {
            self.inner.room.add_permits(std::mem::take(&mut self.freed) as usize);
        }
    }

    /// Whether commands may be queued already. Nearly no handler has said anything: then nothing takes room.
    pub(crate) fn has_commands(&self) -> bool {
        self.inner.room.available_permits() < self.inner.queue as usize
    }

    /// The next command that is queued already.
    pub(crate) fn try_command(&mut self) -> Option<Command> {
        if let Some(command) = self.next_taken() {
            return Some(command);
        }
        self.free();
        if !self.has_commands() {
            return None;
        }
        let (command, takes) = self.inner.lock().commands.pop_front()?;
        self.inner.room.add_permits(takes as usize);
        Some(command)
    }
}

#[cfg(feature = "http")]
impl Inner {
    /// What `take` finds in the queues, or the task is woken when there is something.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut Queues) -> Option<T>,
    ) -> Poll<T> {
        let mut queues = self.lock();
        let taken = take(&mut queues);
        self.has_urgent.store(!queues.urgent.is_empty(), Ordering::Release);
        if let Some(taken) = taken {
            return Poll::Ready(taken);
        }
        let is_empty = queues.urgent.is_empty() && queues.commands.is_empty();
        self.has_news.store(!is_empty, Ordering::Release);
        queues.listen(cx.waker());
        Poll::Pending
    }
}

impl Drop for CommandReceiver {
    fn drop(&mut self) {
        // Nobody is left who could send, or wait for room or for an answer.
        if Arc::strong_count(&self.inner) == 1 {
            return;
        }
        self.inner.room.close();
        let queues = {
            let mut queues = self.inner.lock();
            queues.closed = true;
            (std::mem::take(&mut queues.commands), queues.listener.take())
        };
        // The callers may send again at once, so the lock is free by now.
        std::mem::take(&mut self.taken).into_iter().for_each(|(command, _)| command.refuse());
        queues.0.into_iter().for_each(|(command, _)| command.refuse());
    }
}

/// Bytes per permit.
const UNIT: usize = 1 << 10;

/// A call of ours; dropping it cancels the call.
struct Asking {
    received: oneshot::Receiver<Result<Json, CallError>>,
    ticket: Ticket,
    inner: Arc<Inner>,
    step: Step,
}

/// How far a call of ours has come.
enum Step {
    Unsent(Command),
    /// The queue is full.
    Sending(Pin<Box<dyn Future<Output = bool> + Send>>),
    Sent,
    Settled,
}

impl Asking {
    /// Is ready when the call is in the queue: whether the conversation was still open then.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            match std::mem::replace(&mut self.step, Step::Settled) {
                Step::Unsent(command) => match self.inner.try_reserve(&command) {
                    Ok(takes) => return Poll::Ready(self.inner.push(command, takes)),
                    Err(TryAcquireError::Closed) => return Poll::Ready(false),
                    Err(TryAcquireError::NoPermits) => {
                        let inner = Arc::clone(&self.inner);
                        let sending = Box::pin(async move { inner.send(command).await });
                        self.step = Step::Sending(sending);
                    }
                },
                Step::Sending(mut sending) => {
                    let sent = sending.as_mut().poll(cx);
                    if sent.is_pending() {
                        self.step = Step::Sending(sending);
                    }
                    return sent;
                }
                Step::Sent | Step::Settled => return Poll::Ready(true),
            }
        }
    }
}

impl Future for Asking {
    type Output = Result<Json, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !matches!(self.step, Step::Sent) {
            if !ready!(self.poll_send(cx)) {
                return Poll::Ready(Err(over()));
            }
            self.step = Step::Sent;
        }
        let outcome = ready!(Pin::new(&mut self.received).poll(cx));
        self.step = Step::Settled;
        Poll::Ready(outcome.unwrap_or(Err(CallError::Closed)))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if matches!(self.step, Step::Sent) {
            self.inner.urge(Urgent::Cancel(self.ticket));
        }
    }
}

#[cfg(test)]
mod tests;
