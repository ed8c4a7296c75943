//! One request that is answered in the task of its connection: no task and no channel of its own, and
//! nothing is kept. A client that hangs up cancels it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use trunkline_proto::server::{MessageEra, Server};
use trunkline_proto::{Attached, Conversation, Input, Outgoing, RequestStream};
use trunkline_wire::jsonrpc::{Incoming, Message};
use trunkline_wire::method::Method;

use super::admitted::Admitted;
use super::body::Events;
use super::endpoint::Listed;
use super::expiry::Expiry;
use super::sse::{KeepAlive, write_event};
use crate::clock::now;
use crate::driver_core::{DeadlineTimer, DriverCore, Effect, HandlersInPlace, Urged};
use crate::handler::{Handler, Listening};
use crate::voice::ConversationHandle;

/// A request on its way to its answer.
pub(super) struct Exchange<H> {
    core: DriverCore<Server, HandlersInPlace<H>>,
    /// What is to be said next. Most requests have one thing to say, and then nothing is allocated
    /// for more.
    next: Option<Outgoing>,
    more: VecDeque<Outgoing>,
    timer: DeadlineTimer,
    listening: Listening,
}

impl<H: Handler> Exchange<H> {
    fn new(mut server: Server, handler: Arc<H>, queue: usize, attached: Attached) -> Self {
        server.is_for(&attached);
        let (voice, commands) = ConversationHandle::of_one_request(queue);
        Self {
            core: DriverCore::new(server, commands, HandlersInPlace::new(handler, voice, attached)),
            next: None,
            more: VecDeque::new(),
            timer: DeadlineTimer::default(),
            listening: None,
        }
    }

    /// Tells this request of changes from now on, and lets it be closed from outside.
    pub(super) fn listen(&mut self) -> ConversationHandle {
        let HandlersInPlace { handler, voice, attached, .. } = &self.core.handlers;
        self.listening = handler.listen(voice, attached);
        voice.clone()
    }

    pub(super) fn begin(&mut self, incoming: Incoming, era: MessageEra, cx: &mut Context<'_>) {
        self.core.conversation.receive(incoming, RequestStream::default(), era, now());
        self.act(cx);
    }

    /// Whether a handler has seen the request.
    pub(super) fn dispatched(&self) -> bool {
        self.core.handlers.has_started()
    }

    /// The next thing to say; `None` when everything is said.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        loop {
            if let Some(message) = self.next.take() {
                self.next = self.more.pop_front();
                return Poll::Ready(Some(message));
            }
            if self.core.conversation.open_calls() == 0 && self.core.handlers.is_empty() {
                return Poll::Ready(None);
            }
            let mut busy = self.poll_commands(cx);
            if self.core.poll_finished(cx) {
                self.act(cx);
                busy = true;
            }
            if !busy && !self.poll_timer(cx) {
                return Poll::Pending;
            }
        }
    }

    fn poll_commands(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(urged) = self.core.poll_urgent(cx) {
            if urged == Urged::Close {
                self.core.conversation.handle(Input::Close, now());
            }
            busy = true;
        }
        if busy {
            self.act(cx);
        }
        // What cannot be sent yet stays where those who speak wait for room.
        while self.next.is_none() && self.core.poll_command(cx) {
            self.act(cx);
            busy = true;
        }
        busy
    }

    /// Whether a deadline has passed.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let is_due = self.timer.poll(self.core.conversation.next_timeout(), cx).is_ready();
        if is_due {
            self.core.conversation.handle(Input::Tick, now());
            self.act(cx);
        }
        is_due
    }

    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll(cx) {
            match effect {
                // Over HTTP a subscription ends with its result, and with nothing else.
                Effect::Send(Outgoing::One(Message::Notification { method, .. }), _)
                    if method == Method::Cancelled => {}
                Effect::Send(message, _) if self.next.is_none() => self.next = Some(message),
                Effect::Send(message, _) => self.more.push_back(message),
                // Only the streams of a session can be left and asked for again.
                Effect::NoReply(_) | Effect::Pause { .. } => {}
                // These are a client's.
                Effect::Opened(_) | Effect::Failed(_) => {}
            }
        }
    }
}

/// An exchange and what it counts as. If the client hangs up before 2026-07-28, that says nothing:
/// the work goes on, within its deadline, and what comes of it is dropped.
pub(super) struct Owned<H: Handler> {
    exchange: Option<(Exchange<H>, Admitted)>,
    /// Where the work goes on, if it does.
    left: Option<Arc<Mutex<JoinSet<()>>>>,
}

impl<H: Handler> Owned<H> {
    /// Begins an exchange, for which a queue of this length is kept.
    pub(super) fn new(
        server: Server,
        handler: Arc<H>,
        queue: usize,
        admitted: Admitted,
        left: Option<Arc<Mutex<JoinSet<()>>>>,
    ) -> Self {
        let attached = admitted.attached.clone();
        Self { exchange: Some((Exchange::new(server, handler, queue, attached), admitted)), left }
    }

    pub(super) fn get(&mut self) -> &mut Exchange<H> {
        &mut self.exchange.as_mut().expect("it is taken when this is dropped").0
    }

    fn caller(&self) -> &Attached {
        &self.exchange.as_ref().expect("it is taken when this is dropped").1.attached
    }
}

impl<H: Handler> Drop for Owned<H> {
    fn drop(&mut self) {
        let Some((mut exchange, admitted)) = self.exchange.take() else { return };
        if let Some(left) = &self.left
            && !exchange.core.handlers.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            while left.try_join_next().is_some() {}
            let rest = async move {
                while poll_fn(|cx| exchange.poll_next(cx)).await.is_some() {}
                drop(admitted);
            };
            left.spawn_on(rest, &runtime);
        }
    }
}

/// The rest of an exchange that began with something other than its answer.
pub(super) struct Rest<H: Handler> {
    exchange: Owned<H>,
    first: Option<Outgoing>,
    keep_alive: KeepAlive,
    /// Dropped with the stream.
    _listed: Option<Listed>,
    expiry: Expiry,
}

impl<H: Handler> Rest<H> {
    pub(super) fn new(
        exchange: Owned<H>,
        first: Outgoing,
        keep_alive: KeepAlive,
        listed: Option<Listed>,
    ) -> Self {
        // A call ends with its answer.
        let expiry = match listed {
            Some(_) => Expiry::of_caller(exchange.caller()),
            None => Expiry::never(),
        };
        Self { exchange, first: Some(first), keep_alive, _listed: listed, expiry }
    }
}

impl<H: Handler> Events for Rest<H> {
    fn poll_events(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let this = &mut *self;
        // Without a result: the subscription is not over, it only has to be asked for again.
        if this.expiry.poll(cx) {
            return Poll::Ready(None);
        }
        let mut out = Vec::with_capacity(1024);
        if let Some(first) = this.first.take() {
            write_event(&first, &mut out);
        }
        // All that is ready goes out at once, but for what the client has to read first.
        loop {
            if out.len() >= PIECE {
                this.keep_alive.put_off();
                return Poll::Ready(Some(out));
            }
            match this.exchange.get().poll_next(cx) {
                Poll::Ready(Some(message)) => write_event(&message, &mut out),
                Poll::Ready(None) if out.is_empty() => return Poll::Ready(None),
                Poll::Pending if out.is_empty() => return this.keep_alive.poll(cx).map(Some),
                Poll::Ready(None) | Poll::Pending => {
                    this.keep_alive.put_off();
                    return Poll::Ready(Some(out));
                }
            }
        }
    }
}

/// How much is written before the client has to read.
const PIECE: usize = 64 << 10;
