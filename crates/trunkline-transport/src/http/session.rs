//! One session of the stateful era: a conversation that many requests share.
//!
//! A session has no task and no queue: a POST, a finished handler or a command locks it, tells the
//! conversation, and puts the outgoing messages into the streams. Handlers never run under the lock.

mod deferred;
mod hand_over;
mod reading;
mod sharing;
mod waiting;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Instant;

use http::StatusCode;
use tokio::runtime::Handle;
use tokio::time::sleep_until;
use trunkline_auth::tag::Tags;
use trunkline_proto::http::reply;
use trunkline_proto::http::streams::{Beginning, Bounds, Reader, RequestIds, Streams, Style};
use trunkline_proto::server::{Config, MessageEra, Server};
use trunkline_proto::{Attached, Call, CallKey, Conversation, Input, Outgoing, RequestStream};
use trunkline_wire::jsonrpc::{Incoming, Message, Outcome};
use trunkline_wire::revision::Era;

use super::admitted::Admitted;
use super::budgets::Subscribed;
use crate::clock::now;
use crate::conversation_handle::ConversationHandle;
use crate::driver_core::{DeadlineTimer, DriverCore, Effect, Urged};
use crate::handler::{Guarded, Handler, Listening, begin, guarded_heard};
use crate::limits::Limits;
use deferred::{Deferred, Todo};
pub(super) use hand_over::OpenRequest;
pub(super) use sharing::Sharing;
pub(super) use waiting::Waiting;

/// A session.
pub(super) struct Session<H> {
    /// Shared with whoever finds it by its id.
    pub(super) id: Arc<str>,
    handler: Arc<H>,
    handle: ConversationHandle,
    tags: Tags,
    is_old: bool,
    /// What came with the request that opened it.
    owner: Attached,
    /// The bytes it has ever subscribed to.
    pub(super) subscribed: Subscribed,
    state: Mutex<State>,
    me: Weak<Self>,
    /// Its waker runs the session: a command is handled in the task that sends it.
    waker: Waker,
}

struct State {
    core: DriverCore<Server, Deferred>,
    streams: Streams,
    readers: Vec<(RequestStream, Waker)>,
    used: Instant,
    /// Whether it is over and accepts nothing more.
    ended: bool,
    /// Whether it ends with its last call.
    closing: bool,
    /// Whether another process opened it and this one restored it.
    is_restored: bool,
    listening: Listening,
    /// Set if another replica may take it over.
    sharing: Option<Box<Sharing>>,
    /// Shared: the requests that are not answered in full.
    open_requests: u32,
    /// Whether it is being handed over, so that no request begins here.
    is_released: bool,
}

/// How a POST is answered.
pub(super) enum Posted {
    /// With 202: there is nothing to answer.
    Accepted,
    /// With one text.
    Whole(StatusCode, Vec<u8>),
    /// With events.
    Events(Reader),
    /// With events, all of which are in this text.
    AllEvents(Vec<u8>),
    /// Not at all: the request was cancelled.
    NoReply,
    /// Not here: the session is over.
    Gone,
}

impl<H: Handler> Session<H> {
    pub(super) fn new(
        id: Arc<str>,
        core: Arc<Config>,
        handler: Arc<H>,
        style: Style,
        tags: Tags,
        limits: &Limits,
        owner: Attached,
    ) -> Arc<Self> {
        let (handle, commands) = ConversationHandle::new(limits.queue);
        if let Some(witness) = handler.witness(Some(&handle), &owner) {
            handle.set_witness(witness);
        }
        let bounds = Bounds {
            events: limits.replay_events,
            bytes: limits.replay_bytes,
            keep: limits.replay_keep,
            unread: limits.unsent_bytes,
        };
        let mut server = Server::new(core);
        server.is_for(&owner);
        if style == Style::Single {
            server.shares_one_stream();
        }
        let state = State {
            core: DriverCore::new(server, commands, Deferred::default()),
            streams: Streams::new(style, bounds),
            readers: Vec::new(),
            used: now(),
            ended: false,
            closing: false,
            is_restored: false,
            listening: None,
            sharing: None,
            open_requests: 0,
            is_released: false,
        };
        Arc::new_cyclic(|me| Self {
            id,
            handler,
            handle,
            tags,
            is_old: style == Style::Single,
            owner,
            subscribed: Subscribed::default(),
            state: Mutex::new(state),
            me: me.clone(),
            waker: Waker::from(Arc::new(SessionWaker(me.clone()))),
        })
    }

    /// Starts to receive changes and commands.
    pub(super) fn begin(&self) {
        let listening = self.handler.listen(&self.handle, &self.owner);
        let mut state = self.lock();
        if state.ended {
            drop(state);
            return drop(listening);
        }
        state.listening = listening;
        drop(state);
        self.handle_commands();
    }

    /// Whether `initialize` has been answered; the revision then decides the form of events.
    pub(super) fn is_open(&self) -> bool {
        let mut state = self.lock();
        let Some(revision) = state.core.conversation.session_revision() else { return false };
        state.streams.set_style(Style::Resumable { primed: revision.profile().polling });
        true
    }

    /// Replays the handshake that its client had with another process. Its answer is dropped.
    pub(super) fn replay_handshake(&self, hello: &str) {
        let mut state = self.lock();
        for incoming in super::lasting::handshake(hello) {
            let via = state.streams.next_via();
            state.core.conversation.handle(Input::Received(incoming, via), now());
            while state.core.conversation.poll().is_some() {}
        }
        state.is_restored = true;
    }

    /// Whether another process opened it.
    pub(super) fn is_restored(&self) -> bool {
        self.lock().is_restored
    }

    /// Handles a message until it is known how the POST is answered. Without `era`, the conversation
    /// decides it. `owes` are its requests, if another replica may have to say what became of them.
    pub(super) fn post(
        &self,
        incoming: Incoming,
        era: Option<MessageEra>,
        expects_answer: bool,
        admitted: Admitted,
        owes: Option<Arc<RequestIds>>,
    ) -> Waiting<'_, H> {
        let mut state = self.lock();
        // The closing stream has no time left to answer a request.
        let is_too_late = self.is_old && state.closing && asks(&incoming);
        if state.ended || is_too_late {
            return Waiting::known(self, Posted::Gone);
        }
        let now = now();
        state.used = now;
        let via = state.streams.next_via();
        let reader = expects_answer.then(|| state.streams.open(via));
        if let Some(owes) = owes {
            state.streams.owes(via, owes);
        }
        state.core.show_received(&incoming, via, now);
        let conversation = &mut state.core.conversation;
        match era {
            Some(era) => conversation.receive(incoming, via, era, now),
            None => conversation.handle(Input::Received(incoming, via), now),
        }
        // Its calls belong to this request, whatever else the session carries.
        state.core.handlers.admit(via, admitted);
        state.act(false, now);
        let todo = state.core.handlers.take_todo();
        let over = state.core.handlers.release(via);
        drop(state);
        drop(over);
        match reader {
            Some(reader) => Waiting::new(self, reader, todo),
            None => {
                self.perform(todo);
                Waiting::known(self, Posted::Accepted)
            }
        }
    }

    /// Whether the caller is the one who opened the session.
    pub(super) fn is_of(&self, caller: &Attached) -> bool {
        self.handler.is_same_caller(&self.owner, caller)
    }

    /// Whether it is an HTTP+SSE session (2024-11-05), with a single stream.
    pub(super) fn is_old(&self) -> bool {
        self.is_old
    }

    /// Whether its readers are so far behind that it accepts no more requests.
    pub(super) fn is_congested(&self) -> bool {
        self.lock().streams.is_congested()
    }

    /// Ends the streams that owe no answer, because the server shuts down or the reader's credential
    /// expired.
    pub(super) fn hang_up(&self) {
        let mut state = self.lock();
        state.closing = true;
        // The one stream of 2024-11-05 still has to carry the answers.
        if !self.is_old || !state.is_at_work() {
            state.end_general(now());
        }
    }

    /// Ends the session: stops its handlers and ends its streams.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.end();
        state.core.handlers.stop_all();
        state.streams.end(now());
        for (_, reader) in std::mem::take(&mut state.readers) {
            reader.wake();
        }
        let listening = state.listening.take();
        drop(state);
        // Not under the lock: a thread that holds the listeners may wait for this session.
        drop(listening);
    }

    /// Does the periodic work: drops events kept for too long, and questions that no handler waits for.
    /// Returns whether the session has expired: nothing has happened since `since`, and no request is
    /// open.
    pub(super) fn sweep(&self, since: Option<Instant>, now: Instant) -> bool {
        let mut state = self.lock();
        state.streams.sweep(now);
        let is_late = state.core.conversation.next_timeout().is_some_and(|it| it <= now);
        let is_idle = since.is_some_and(|it| state.used <= it);
        if is_idle && !state.is_at_work() && !state.streams.is_read() {
            state.end();
        }
        let ended = state.ended;
        drop(state);
        if is_late {
            self.tick();
        }
        ended
    }

    fn perform(&self, todo: Option<Todo>) {
        // As after most messages.
        let Some(mut todo) = todo else { return };
        for heard in std::mem::take(&mut todo.heard) {
            guarded_heard(&*self.handler, heard, &self.handle);
        }
        // A handler that is not done at once gets a task, which polls it again.
        let mut cx = Context::from_waker(Waker::noop());
        for call in todo.into_calls() {
            let key = call.key;
            match self.start(call, &mut cx) {
                Ok(outcome) => drop(self.finish(key, outcome, None)),
                Err(future) => self.work_on(key, future),
            }
        }
    }

    /// Starts a handler. Returns one that is not done at once.
    fn start(&self, call: Call, cx: &mut Context<'_>) -> Result<Outcome, Guarded> {
        begin(&*self.handler, call, &self.handle, cx)
    }

    /// Runs a handler to its end, even if the client disconnects.
    fn work_on(&self, key: CallKey, future: Guarded) {
        let Some(session) = self.me.upgrade() else { return };
        // A connection that is dropped with the runtime leaves nobody who could go on.
        let Ok(runtime) = Handle::try_current() else { return };
        let task = runtime.spawn(async move {
            let mut future = pin!(future);
            let mut timer = DeadlineTimer::default();
            let outcome = poll_fn(|cx| {
                loop {
                    if let Poll::Ready(outcome) = future.as_mut().poll(cx) {
                        return Poll::Ready(outcome);
                    }
                    ready!(timer.poll(session.next_timeout(), cx));
                    session.tick();
                }
            })
            .await;
            session.finish(key, outcome, None);
        });
        self.lock().core.handlers.started(key, task.abort_handle());
    }

    /// Tells the conversation that a handler has finished. Returns how the POST of `reader` is answered, if it is
    /// known by now: nobody has to be woken for that.
    fn finish(&self, call: CallKey, outcome: Outcome, reader: Option<Reader>) -> Option<Posted> {
        let mut state = self.lock();
        let now = now();
        state.used = now;
        if let Some(reader) = reader {
            state.wake_no_more(reader.via);
        }
        let request = state.core.handlers.finished(call);
        state.core.finish(call, outcome, now);
        state.act(true, now);
        let todo = state.core.handlers.take_todo();
        let over = request.and_then(|it| state.core.handlers.release(it));
        state.end_if_done(now);
        let holds_until = state.core.conversation.holds_answer_until();
        let posted = reader.and_then(|it| state.posted(it, self.tags, || now));
        drop(state);
        drop(over);
        if let Some(until) = holds_until {
            self.tick_at(until);
        }
        if todo.is_some() {
            self.perform(todo);
        }
        posted
    }

    /// Sends the answer that waits on the one stream of 2024-11-05: the handler that would be polled then is done.
    fn tick_at(&self, until: Instant) {
        let Ok(runtime) = Handle::try_current() else { return };
        let session = self.me.clone();
        runtime.spawn(async move {
            sleep_until(until.into()).await;
            if let Some(session) = session.upgrade() {
                session.tick();
            }
        });
    }

    fn tick(&self) {
        let todo = {
            let mut state = self.lock();
            let now = now();
            state.core.handle(Input::Tick, now);
            state.act(true, now);
            state.end_if_done(now);
            state.core.handlers.take_todo()
        };
        self.perform(todo);
    }

    /// Handles the queued commands, unless a reader is so far behind that they must wait
    /// (back-pressure).
    fn handle_commands(&self) {
        let mut cx = Context::from_waker(&self.waker);
        let todo = {
            let mut state = self.lock();
            let now = now();
            // Only the client and the server end a session, not a handle.
            while let Poll::Ready(Urged::Cancelled | Urged::Close) = state.core.poll_urgent(&mut cx)
            {
                state.act(true, now);
            }
            while !state.streams.is_congested() && state.core.poll_command(&mut cx) {
                state.act(true, now);
            }
            state.core.handlers.take_todo()
        };
        self.perform(todo);
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.lock().core.conversation.next_timeout()
    }
}

impl<H> Session<H> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Stops accepting messages.
    fn end(&mut self) {
        self.ended = true;
        self.core.refuse_requests();
    }

    /// Does what the conversation wants done, except what must wait for the unlock. `dispatched` is false for a
    /// message that no handler has seen yet.
    fn act(&mut self, dispatched: bool, now: Instant) {
        // Handlers are polled after the unlock.
        let mut cx = Context::from_waker(Waker::noop());
        while let Some(effect) = self.core.poll(&mut cx) {
            match effect {
                Effect::Send(message, via) => self.send(message, via, dispatched, now),
                Effect::NoReply(via) => {
                    let changed = self.streams.no_reply(via, now);
                    self.wake_any(changed);
                }
                Effect::Pause { via, retry } => {
                    let changed = self.streams.pause(via, retry);
                    self.wake_any(changed);
                }
                Effect::Opened(_) | Effect::Failed(_) => {}
            }
        }
        if self.sharing.is_some() {
            self.keep_events();
        }
    }

    fn send(
        &mut self,
        message: Outgoing,
        via: Option<RequestStream>,
        dispatched: bool,
        now: Instant,
    ) {
        // A text that fills its room exactly goes out from where it is, with nothing around it.
        let mut text = Vec::with_capacity(message.size());
        message.write(&mut text);
        let is_answer =
            matches!(message, Outgoing::One(Message::Response { .. }) | Outgoing::Batch(_));
        let last = is_answer.then(|| reply::status(&message, Era::Stateful, dispatched));
        self.core.show_sent(&message, Some(&text), via);
        let changed = self.streams.say(via, text, last, now);
        self.wake_any(changed);
    }

    /// How the POST of `reader` is answered, if it is known.
    fn posted(
        &mut self,
        reader: Reader,
        tags: Tags,
        now: impl FnOnce() -> Instant,
    ) -> Option<Posted> {
        match self.streams.beginning(reader) {
            Beginning::Unknown => None,
            Beginning::Whole(status, text) => Some(Posted::Whole(status, text)),
            Beginning::Events => {
                if self.sharing.is_some() {
                    self.keep_events();
                    return Some(Posted::Events(reader));
                }
                // Senders that wait for a reader are told when it reads.
                let is_free = !self.streams.is_congested();
                let tag = |it: &[u8]| tags.tag(it);
                let all = is_free.then(|| self.streams.read_whole(reader, now(), tag)).flatten();
                Some(all.map_or(Posted::Events(reader), Posted::AllEvents))
            }
            Beginning::Silence => Some(Posted::NoReply),
        }
    }

    /// Whether a call is worked on, or its answer waits.
    fn is_at_work(&self) -> bool {
        let holds_answer = self.core.conversation.holds_answer_until().is_some();
        holds_answer || !self.core.handlers.is_empty()
    }

    fn end_if_done(&mut self, now: Instant) {
        if self.closing && !self.is_at_work() {
            self.end_general(now);
        }
    }

    /// Ends the general stream.
    fn end_general(&mut self, now: Instant) {
        self.streams.end_general(now);
        self.wake(GENERAL);
    }

    fn wake_any(&mut self, via: Option<RequestStream>) {
        if let Some(via) = via {
            self.wake(via);
        }
    }

    fn wake(&mut self, via: RequestStream) {
        if let Some(at) = self.readers.iter().position(|(it, _)| *it == via) {
            self.readers.swap_remove(at).1.wake();
        }
    }

    fn wake_no_more(&mut self, via: RequestStream) {
        self.readers.retain(|(it, _)| *it != via);
    }

    fn wake_later(&mut self, via: RequestStream, waker: &Waker) {
        match self.readers.iter_mut().find(|(it, _)| *it == via) {
            Some((_, reader)) => reader.clone_from(waker),
            None => self.readers.push((via, waker.clone())),
        }
    }
}

/// A waker that makes a session handle its commands at once.
struct SessionWaker<H>(Weak<Session<H>>);

impl<H: Handler> Wake for SessionWaker<H> {
    fn wake(self: Arc<Self>) {
        if let Some(session) = self.0.upgrade() {
            session.handle_commands();
        }
    }
}

fn asks(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::One(message) => matches!(message, Message::Request { .. }),
        Incoming::Batch(_) => true,
        Incoming::Bad(_) => false,
    }
}

/// The general stream.
const GENERAL: RequestStream = RequestStream(0);

#[cfg(test)]
mod tests;
