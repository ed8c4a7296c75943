//! One request that is answered where it came in: no task, no channel, nothing kept. Whoever hangs
//! up has cancelled it.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use trunkline_proto::server::{Memo, Server};
use trunkline_proto::{Attached, Call, CallKey, Conversation, Input, Outgoing, Output};
use trunkline_wire::jsonrpc::{Incoming, Message};
use trunkline_wire::method::Method;

use super::admitted::Admitted;
use super::body::Events;
use super::endpoint::Listed;
use super::expiry::Expiry;
use super::sse::{KeepAlive, write_event};
use crate::clock::now;
use crate::handler::{Guarded, Handler, Listening, begin, guarded_heard};
use crate::voice::{Asked, Ears, Urgent, Voice, Wish};

/// A request on its way to its answer.
pub(super) struct Exchange<H> {
    core: Server,
    handler: Arc<H>,
    voice: Voice,
    ears: Ears,
    running: Vec<(CallKey, Guarded)>,
    asked: Asked,
    /// What is to be said next. Most requests have one thing to say, and then nothing is allocated
    /// for more.
    next: Option<Outgoing>,
    more: VecDeque<Outgoing>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether a handler has seen it.
    dispatched: bool,
    listening: Listening,
    attached: Attached,
}

impl<H: Handler> Exchange<H> {
    pub(super) fn new(mut core: Server, handler: Arc<H>, queue: usize, attached: Attached) -> Self {
        core.is_for(&attached);
        let (voice, ears) = Voice::of_one_request(queue);
        Self {
            core,
            handler,
            voice,
            ears,
            running: Vec::new(),
            asked: Asked::default(),
            next: None,
            more: VecDeque::new(),
            timer: None,
            dispatched: false,
            listening: None,
            attached,
        }
    }

    /// Tells this request of changes from now on, and lets it be closed from outside.
    pub(super) fn listen(&mut self) -> Voice {
        self.listening = self.handler.listen(&self.voice, &self.attached);
        self.voice.clone()
    }

    pub(super) fn begin(&mut self, incoming: Incoming, cx: &mut Context<'_>) {
        self.core.handle(Input::received(incoming), now());
        self.act(cx);
    }

    pub(super) fn dispatched(&self) -> bool {
        self.dispatched
    }

    /// What the envelope said, for the next request of the same client.
    pub(super) fn take_memo(&mut self) -> Memo {
        self.core.take_memo()
    }

    /// The next thing to say; `None` when everything is said.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        loop {
            if let Some(message) = self.next.take() {
                self.next = self.more.pop_front();
                return Poll::Ready(Some(message));
            }
            if self.core.open_calls() == 0 && self.running.is_empty() {
                return Poll::Ready(None);
            }
            let mut busy = self.poll_wishes(cx);
            busy |= self.poll_running(cx);
            if !busy && !self.poll_timer(cx) {
                return Poll::Pending;
            }
        }
    }

    fn poll_wishes(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(urgent) = self.ears.poll_urgent(cx) {
            let input = match urgent {
                Urgent::Cancel(ticket) => Input::Cancel(ticket),
                Urgent::Close => Input::Close,
            };
            self.core.handle(input, now());
            busy = true;
        }
        if busy {
            self.act(cx);
        }
        // What cannot be sent yet stays where those who speak wait for room.
        while self.next.is_none()
            && let Poll::Ready(wish) = self.ears.poll_wish(cx)
        {
            self.grant(wish);
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn grant(&mut self, wish: Wish) {
        if let Some(input) = self.asked.grant(wish) {
            self.core.handle(input, now());
        }
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> bool {
        let finished = self.running.iter_mut().enumerate().find_map(|(at, (key, future))| {
            match Pin::new(future).poll(cx) {
                Poll::Ready(outcome) => Some((at, *key, outcome)),
                Poll::Pending => None,
            }
        });
        let Some((at, call, outcome)) = finished else { return false };
        self.running.swap_remove(at);
        self.hear_first();
        self.core.handle(Input::Finished { call, outcome }, now());
        self.act(cx);
        true
    }

    /// Whether a deadline has passed.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(next) = self.core.next_timeout() else { return false };
        let timer =
            self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(next.into())));
        // A timer that fires too early does no harm, so it is only ever moved forward.
        if next < timer.deadline().into_std() || timer.is_elapsed() {
            timer.as_mut().reset(next.into());
        }
        if timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.core.handle(Input::Tick, now());
        self.act(cx);
        true
    }

    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(output) = self.core.poll() {
            match output {
                // Over HTTP a subscription ends with its result, and with nothing else.
                Output::Send(Outgoing::One(Message::Notification { method, .. }), _)
                    if method == Method::Cancelled => {}
                Output::Send(message, _) if self.next.is_none() => self.next = Some(message),
                Output::Send(message, _) => self.more.push_back(message),
                Output::Call(call) => self.start(*call, cx),
                Output::Abandon(call) => self.running.retain(|(it, _)| *it != call),
                Output::Settled { ticket, outcome } => self.asked.settle(ticket, outcome),
                Output::Heard(heard) => guarded_heard(&*self.handler, heard, &self.voice),
                // Only the streams of a session can be left and asked for again.
                Output::Quiet(_) | Output::Pause { .. } => {}
                Output::Opened(_) | Output::Failed(_) => {}
            }
        }
    }

    fn start(&mut self, mut call: Call, cx: &mut Context<'_>) {
        self.dispatched = true;
        call.attached = self.attached.clone();
        let key = call.key;
        let outcome = match begin(&*self.handler, call, &self.voice, cx) {
            Ok(outcome) => outcome,
            Err(future) => return self.running.push((key, future)),
        };
        self.hear_first();
        self.core.handle(Input::Finished { call: key, outcome }, now());
    }

    /// What a handler said before it finished goes out before its answer.
    fn hear_first(&mut self) {
        while let Some(wish) = self.ears.try_wish() {
            self.grant(wish);
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
    pub(super) fn new(
        exchange: Exchange<H>,
        admitted: Admitted,
        left: Option<Arc<Mutex<JoinSet<()>>>>,
    ) -> Self {
        Self { exchange: Some((exchange, admitted)), left }
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
            && !exchange.running.is_empty()
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
