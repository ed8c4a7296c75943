//! One stateless request, answered in the task of its connection: no task, no channel, no state that
//! outlives it. A client that disconnects cancels it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use trunkline_proto::server::{Config, MessageEra, Server};
use trunkline_proto::{Attached, Conversation, Input, Outgoing, RequestStream};
use trunkline_wire::jsonrpc::{Incoming, Message};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::admitted::Admitted;
use super::body::Events;
use super::endpoint::Listed;
use super::expiry::Expiry;
use super::sse::{Comments, write_event};
use crate::clock::now;
use crate::conversation_handle::ConversationHandle;
use crate::driver_core::{DeadlineTimer, DriverCore, Effect, HandlersInPlace, Urged};
use crate::handler::{Handler, Listening};

/// A request until its answer is complete.
pub(super) struct Exchange<H> {
    core: DriverCore<Server, HandlersInPlace<H>>,
    /// The next message to send. Most requests send one, and then nothing more is allocated.
    next: Option<Outgoing>,
    #[expect(
        clippy::box_collection,
        reason = "Most requests never need it, and each has its size."
    )]
    more: Option<Box<VecDeque<Outgoing>>>,
    timer: DeadlineTimer,
    listening: Listening,
    /// Whether every handler was polled in this very turn, because it was started in it.
    has_just_begun: bool,
}

impl<H: Handler> Exchange<H> {
    #[inline]
    fn new(
        config: Arc<Config>,
        known: Option<Revision>,
        handler: Arc<H>,
        queue: usize,
        attached: Attached,
    ) -> Self {
        let mut server = Server::new(config);
        if let Some(revision) = known {
            server.open_for_known_revision(revision);
        }
        server.is_for(&attached);
        let witness = handler.witness(None, &attached);
        let (handle, commands) = ConversationHandle::of_one_request(queue, witness);
        Self {
            core: DriverCore::new(
                server,
                commands,
                HandlersInPlace::new(handler, handle, attached),
            ),
            next: None,
            more: None,
            timer: DeadlineTimer::default(),
            listening: None,
            has_just_begun: false,
        }
    }

    /// Subscribes this request to changes; the returned handle can close it.
    pub(super) fn listen(&mut self) -> ConversationHandle {
        let HandlersInPlace { handler, handle, attached, .. } = &self.core.handlers;
        self.listening = handler.listen(handle, attached);
        handle.clone()
    }

    /// Starts the handlers. [`Self::poll_next`] must follow in the same turn.
    pub(super) fn begin(&mut self, incoming: Incoming, era: MessageEra, cx: &mut Context<'_>) {
        let via = RequestStream::default();
        let now = now();
        self.core.show_received(&incoming, via, now);
        self.core.conversation.receive(incoming, via, era, now);
        self.act(cx);
        self.has_just_begun = true;
    }

    /// Whether a handler has been called.
    pub(super) fn dispatched(&self) -> bool {
        self.core.handlers.has_started()
    }

    /// The next message to send; `None` at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        self.poll_until(None, cx)
    }

    /// Writes what follows the first message and is ready. Returns whether that is all there will be.
    pub(super) fn write_ready(
        &mut self,
        first: &Outgoing,
        out: &mut Vec<u8>,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut next = self.poll_next(cx);
        // Mostly the answer is next, and then there is room for both.
        if let Poll::Ready(Some(answer)) = &next {
            out.reserve(first.size() + answer.size() + 16);
        }
        write_event(first, out);
        loop {
            match next {
                Poll::Ready(Some(message)) => write_event(&message, out),
                Poll::Ready(None) => return true,
                Poll::Pending => return false,
            }
            if out.len() >= PIECE {
                return self.is_over();
            }
            next = self.poll_next(cx);
        }
    }

    /// The same until a comment is due: one timer serves both.
    fn poll_until(
        &mut self,
        mut comment: Option<&mut Comments>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Outgoing>> {
        let mut is_polled = std::mem::take(&mut self.has_just_begun);
        loop {
            if let Some(message) = self.next.take() {
                self.next = self.more.as_mut().and_then(|it| it.pop_front());
                return Poll::Ready(Some(message));
            }
            if self.is_over() {
                return Poll::Ready(None);
            }
            let mut busy = self.poll_commands(cx);
            if !std::mem::take(&mut is_polled) && self.core.poll_finished(cx) {
                self.act(cx);
                busy = true;
            }
            if busy {
                continue;
            }
            let due = comment.as_mut().map(|it| it.due());
            if !self.poll_timer(due, cx) || due.is_some_and(|it| it <= now()) {
                return Poll::Pending;
            }
        }
    }

    /// Whether there is nothing more to send.
    fn is_over(&self) -> bool {
        let is_at_work = self.core.conversation.open_calls() > 0 || !self.core.handlers.is_empty();
        self.next.is_none() && !is_at_work
    }

    fn poll_commands(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut busy, mut turn) = (false, None);
        // Commands that cannot be sent yet stay in the queue (back-pressure).
        while let Poll::Ready(urged) = self.core.poll_next(cx, self.next.is_none(), &mut turn) {
            if urged == Some(Urged::Close) {
                self.core.handle(Input::Close, now());
            }
            self.act(cx);
            busy = true;
        }
        busy
    }

    /// Whether a deadline has passed, or `other`.
    fn poll_timer(&mut self, other: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let is_due = self.core.poll_timer(&mut self.timer, other, cx).is_ready();
        if is_due {
            self.act(cx);
        }
        is_due
    }

    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll(cx) {
            match effect {
                // Over HTTP a subscription ends only with its result.
                Effect::Send(Outgoing::One(Message::Notification { method, .. }), _)
                    if method == Method::Cancelled => {}
                Effect::Send(message, via) => {
                    self.core.show_sent(&message, None, via);
                    match self.next {
                        None => self.next = Some(message),
                        Some(_) => self.more.get_or_insert_default().push_back(message),
                    }
                }
                // Only the streams of a session can be resumed.
                Effect::NoReply(_) | Effect::Pause { .. } => {}
                // These effects are a client's.
                Effect::Opened(_) | Effect::Failed(_) => {}
            }
        }
    }
}

/// An exchange and the places it holds. Before 2026-07-28 a disconnect does not cancel: the call
/// continues within its deadline, and its answer is dropped.
pub(super) struct Owned<H: Handler> {
    exchange: Option<(Exchange<H>, Admitted)>,
    /// Where the call continues after a disconnect, if it does.
    detached: Option<Arc<Mutex<JoinSet<()>>>>,
}

impl<H: Handler> Owned<H> {
    /// Begins an exchange, for which a queue of this length is kept.
    #[inline]
    pub(super) fn new(
        config: Arc<Config>,
        known: Option<Revision>,
        handler: Arc<H>,
        queue: usize,
        admitted: Admitted,
        detached: Option<Arc<Mutex<JoinSet<()>>>>,
    ) -> Self {
        let attached = admitted.attached.clone();
        Self {
            exchange: Some((Exchange::new(config, known, handler, queue, attached), admitted)),
            detached,
        }
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
        let is_at_work = |(it, _): &(Exchange<H>, _)| !it.core.handlers.is_empty();
        if let Some(detached) = &self.detached
            && self.exchange.as_ref().is_some_and(is_at_work)
            && let Ok(runtime) = Handle::try_current()
            && let Some((mut exchange, admitted)) = self.exchange.take()
        {
            let mut detached = detached.lock().unwrap_or_else(PoisonError::into_inner);
            while detached.try_join_next().is_some() {}
            let rest = async move {
                while poll_fn(|cx| exchange.poll_next(cx)).await.is_some() {}
                drop(admitted);
            };
            detached.spawn_on(rest, &runtime);
        }
    }
}

/// An exchange that was not answered at once, and the rest of one whose first message was not its answer.
pub(super) struct ExchangeEvents<H: Handler> {
    exchange: Owned<H>,
    /// The first events, which are not sent yet.
    written: Vec<u8>,
    comments: Comments,
    /// Dropped with the stream.
    _listed: Option<Listed>,
    expiry: Expiry,
}

impl<H: Handler> ExchangeEvents<H> {
    pub(super) fn new(
        exchange: Owned<H>,
        written: Vec<u8>,
        comments: Comments,
        listed: Option<Listed>,
    ) -> Self {
        // A call ends with its answer and needs no expiry.
        let expiry = match listed {
            Some(_) => Expiry::of_caller(exchange.caller()),
            None => Expiry::never(),
        };
        Self { exchange, written, comments, _listed: listed, expiry }
    }

    pub(super) fn exchange(&mut self) -> &mut Exchange<H> {
        self.exchange.get()
    }

    /// The first message, if it has come only now.
    pub(super) fn begin_with(&mut self, first: &Outgoing) {
        write_event(first, &mut self.written);
    }
}

impl<H: Handler> Events for ExchangeEvents<H> {
    fn poll_events(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Vec<u8>>>> {
        let this = &mut *self;
        // No result: the subscription is not over, the client must only renew it.
        if this.expiry.poll(cx) {
            return Poll::Ready(None);
        }
        // Nothing is allocated before there is something to write.
        let mut out = std::mem::take(&mut this.written);
        // Send everything ready at once, up to what the client must read first.
        loop {
            if out.len() >= PIECE {
                this.comments.reset();
                return Poll::Ready(Some(Ok(out)));
            }
            match this.exchange.get().poll_until(Some(&mut this.comments), cx) {
                Poll::Ready(Some(message)) => write_event(&message, &mut out),
                Poll::Ready(None) if out.is_empty() => return Poll::Ready(None),
                Poll::Pending if out.is_empty() => {
                    return this
                        .comments
                        .comment()
                        .map_or(Poll::Pending, |it| Poll::Ready(Some(Ok(it))));
                }
                Poll::Ready(None) | Poll::Pending => {
                    this.comments.reset();
                    return Poll::Ready(Some(Ok(out)));
                }
            }
        }
    }
}

/// How much is written before the client has to read.
const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Nobody;

    /// Blocks up to this size glibc has at hand for the next of their size (`tcache`). Longer ones are merged with
    /// their neighbours when they are freed, and cut out of them again, at five hundred instructions a call.
    const QUICK: usize = 1032;

    #[test]
    fn an_exchange_that_is_kept_has_a_block_that_is_quickly_used_again() {
        let size = size_of::<ExchangeEvents<Nobody>>();
        assert!(size <= QUICK, "{size} bytes");
    }
}
