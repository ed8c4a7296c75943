//! The part that all four drivers of a conversation share, whatever carries the bytes.
//!
//! Four drivers own a [`Conversation`]: [`drive`](crate::drive) for a byte stream, the HTTP client, an
//! HTTP exchange and an HTTP session. They differ in where messages go, in whether a lock is held, and
//! in who owns the tasks of handlers. The core does the rest: it accepts commands, starts and stops
//! handlers, delivers outcomes and notifications to the callers that wait for them, and sends what a
//! handler said before its answer.
//!
//! A driver tells the core what happened, then takes every [`Effect`] out of [`DriverCore::poll`].

mod handlers;
mod timer;

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use trunkline_proto::client::{OpenError, Opened};
use trunkline_proto::{
    Call, CallKey, Cause, Conversation, Input, Outgoing, Output, PeerNotification, RequestStream,
};
use trunkline_wire::jsonrpc::{Id, Incoming, Message, Outcome};

use crate::clock::now;
use crate::conversation_handle::{Asked, Command, CommandReceiver, Next, Urgent};
use crate::witness::{SentMessage, Witness};

pub(crate) use handlers::HandlerTasks;
#[cfg(feature = "http")]
pub(crate) use handlers::HandlersInPlace;
pub(crate) use timer::DeadlineTimer;

/// A conversation, its command queue, the handlers that answer its calls, and our own requests in
/// flight.
pub(crate) struct DriverCore<C, R> {
    pub(crate) conversation: C,
    /// Dropped before the queue: then the queue of a request that is over has no sender left.
    pub(crate) handlers: R,
    commands: CommandReceiver,
    asked: Asked,
    /// When the conversation was told of something last: what it says then is sent at this moment.
    at: Option<Instant>,
    /// Whether the peer can send no more answers.
    refuses_requests: bool,
    /// A request that the witness has not seen yet, because it may become a call.
    unseen: Option<Unseen>,
}

/// A request that nobody has been shown: its text, and where it came. It is what the conversation was told of last.
struct Unseen {
    text: Arc<str>,
    via: RequestStream,
}

/// Who runs the handlers of a conversation.
pub(crate) trait RunHandlers {
    /// Starts the handler of a call and polls it once. Returns the outcome if the handler has finished,
    /// as most have.
    fn start(&mut self, call: Call, cx: &mut Context<'_>) -> Option<Outcome>;

    /// Stops a handler and drops its outcome.
    fn stop(&mut self, call: CallKey);

    /// Tells the handler of a notification.
    fn notify(&mut self, heard: PeerNotification);

    /// Takes the outcome of the next handler that has finished.
    fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<(CallKey, Outcome)>;
}

/// An action that the driver performs itself.
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "HTTP alone has more than one stream"))]
pub(crate) enum Effect {
    /// Send a message: as part of the answer to a request, or on the general stream.
    Send(Outgoing, Option<RequestStream>),
    /// The request gets no answer.
    NoReply(RequestStream),
    /// End the response to the request early; the client reconnects for the rest.
    Pause {
        /// The request.
        via: RequestStream,
        /// The `retry` delay that the client should observe.
        retry: Duration,
    },
    /// The handshake of a client is done.
    Opened(Arc<Opened>),
    /// The handshake of a client has failed.
    Failed(OpenError),
}

/// What a caller on our side asked for out of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urged {
    /// A request of ours was cancelled.
    Cancelled,
    /// The conversation must end.
    Close,
}

impl<C: Conversation, R: RunHandlers> DriverCore<C, R> {
    pub(crate) fn new(conversation: C, commands: CommandReceiver, handlers: R) -> Self {
        let asked = Asked::default();
        let (at, refuses_requests, unseen) = (None, false, None);
        Self { conversation, commands, handlers, asked, at, refuses_requests, unseen }
    }

    /// From now on our own requests fail at once, because no answer can come.
    pub(crate) fn refuse_requests(&mut self) {
        self.refuses_requests = true;
    }

    /// Tells the conversation of something.
    #[inline]
    pub(crate) fn handle(&mut self, input: Input, now: Instant) {
        self.at = Some(now);
        self.conversation.handle(input, now);
    }

    /// When the conversation was told of something last: what it wants sent is sent at this moment.
    #[cfg(feature = "http")]
    pub(crate) fn moment(&self) -> Instant {
        self.at.unwrap_or_else(now)
    }

    /// How many of our own requests are in flight.
    pub(crate) fn open_requests(&self) -> usize {
        self.asked.len()
    }

    /// Accepts the next cancellation, or reports that a caller wants to close.
    #[cfg(feature = "http")]
    pub(crate) fn poll_urgent(&mut self, cx: &mut Context<'_>) -> Poll<Urged> {
        self.commands.poll_urgent(cx).map(|urgent| self.urged(urgent))
    }

    fn urged(&mut self, urgent: Urgent) -> Urged {
        match urgent {
            Urgent::Cancel(ticket) => {
                self.asked.forget(ticket);
                self.handle(Input::Cancel(ticket), now());
                Urged::Cancelled
            }
            Urgent::Close => Urged::Close,
        }
    }

    /// Accepts what is next of both: a cancellation or the wish to close, then a command, if those are to be
    /// accepted. The clock is read once for all commands of a turn, which come with this moment.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        takes_commands: bool,
        turn: &mut Option<Instant>,
    ) -> Poll<Option<Urged>> {
        Poll::Ready(match ready!(self.commands.poll_next(cx, takes_commands)) {
            Next::Urgent(urgent) => Some(self.urged(urgent)),
            Next::Command(command) => {
                self.accept(command, *turn.get_or_insert_with(now));
                None
            }
        })
    }

    /// Accepts the next command, if there is one. While the driver does not call this, senders wait
    /// (back-pressure).
    #[cfg(feature = "http")]
    pub(crate) fn poll_command(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(command) = self.commands.poll_command(cx) else { return false };
        self.accept(command, now());
        true
    }

    /// Accepts the outcome of the next handler that has finished, if there is one.
    pub(crate) fn poll_finished(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready((call, outcome)) = self.handlers.poll_finished(cx) else { return false };
        self.finish(call, outcome, now());
        true
    }

    /// Waits for the conversation's next time limit or for `other`, whichever is sooner, and tells the conversation.
    pub(crate) fn poll_timer(
        &mut self,
        timer: &mut DeadlineTimer,
        other: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let next = self.conversation.not_before().into_iter().chain(other).min();
        ready!(timer.poll(next, cx));
        self.handle(Input::Tick, now());
        Poll::Ready(())
    }

    /// Tells the conversation that a handler has finished.
    pub(crate) fn finish(&mut self, call: CallKey, outcome: Outcome, now: Instant) {
        self.flush_handler_output(now);
        self.handle(Input::Finished { call, outcome }, now);
    }

    /// Sends the conversation a tick if one of its deadlines has passed.
    pub(crate) fn check_deadlines(&mut self) -> bool {
        let is_due = self.conversation.not_before().is_some_and(|it| it <= now());
        if is_due {
            self.handle(Input::Tick, now());
        }
        is_due
    }

    /// Does what the conversation wants done, up to the next effect that the driver must perform.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Effect> {
        loop {
            match self.conversation.poll()? {
                Output::Send(message, via) => return Some(Effect::Send(message, via)),
                Output::Call(mut call) => {
                    if let Some(Unseen { text, .. }) = &self.unseen {
                        call.is_unseen = call.text_read().is_some_and(|it| Arc::ptr_eq(it, text));
                        match call.is_unseen {
                            true => self.unseen = None,
                            false => self.show_unseen(),
                        }
                    }
                    let key = call.key;
                    if let Some(outcome) = self.handlers.start(call, cx) {
                        let moment = self.moment_after_handler();
                        self.finish(key, outcome, moment);
                    }
                }
                Output::Abandon(call) => self.handlers.stop(call),
                Output::Settled { ticket, outcome } => self.asked.settle(ticket, outcome),
                Output::Heard(heard) => {
                    if let Some(heard) = self.asked.deliver(heard) {
                        self.handlers.notify(heard);
                    }
                }
                Output::NoReply(via) => return Some(Effect::NoReply(via)),
                Output::Pause { via, retry } => return Some(Effect::Pause { via, retry }),
                Output::Opened(facts) => return Some(Effect::Opened(facts)),
                Output::Failed(error) => return Some(Effect::Failed(error)),
            }
        }
    }

    /// Shows the witness what the peer sent, before the conversation handles it at this moment.
    pub(crate) fn show_received(&mut self, incoming: &Incoming, via: RequestStream, now: Instant) {
        // A guard: the last request has become a call or was answered, and is not unseen any more.
        if self.unseen.is_some() {
            self.show_unseen();
        }
        self.at = Some(now);
        let Some(witness) = self.commands.witness() else { return };
        match incoming {
            // Mostly a call begins with it, and whoever answers that tells the witness.
            Incoming::One(message @ Message::Request { .. })
                if let Some(text) = message.text_read()
                    && witness.is_told_of_calls() =>
            {
                self.unseen = Some(Unseen { text: Arc::clone(text), via });
            }
            Incoming::One(message) => witness.received(message, via, now),
            Incoming::Batch(_) | Incoming::Bad(_) => show_each(witness, incoming, via, now),
        }
    }

    /// Shows the witness the request that it has not seen, since that is no call.
    #[cold]
    fn show_unseen(&mut self) {
        let at = self.at.unwrap_or_else(now);
        if let (Some(Unseen { text, via }), Some(witness)) =
            (self.unseen.take(), self.commands.witness())
            && let Incoming::One(message) = Incoming::parse(text.as_bytes())
        {
            witness.received(&message, via, at);
        }
    }

    /// Shows the witness what is sent, as this text if that is at hand.
    pub(crate) fn show_sent(
        &mut self,
        outgoing: &Outgoing,
        text: Option<&[u8]>,
        via: Option<RequestStream>,
    ) {
        match outgoing {
            Outgoing::One(message) => self.show_message(message, text, via),
            Outgoing::Batch(all) => all.iter().for_each(|it| self.show_message(it, None, via)),
        }
    }

    /// The same of one message.
    pub(crate) fn show_message(
        &mut self,
        message: &Message,
        text: Option<&[u8]>,
        via: Option<RequestStream>,
    ) {
        if self.unseen.is_some() {
            self.show_unseen();
        }
        let Some(witness) = self.commands.witness() else { return };
        let cause = match message {
            Message::Request { id, .. } => self.conversation.cause_of(id),
            Message::Response { id: Some(id), outcome: Err(_) } => self.cause_of_error(id),
            _ => None,
        };
        let at = self.at.unwrap_or_else(now);
        witness.sent(&SentMessage { message, text, via, cause, at });
    }

    /// Most errors are answers.
    #[cold]
    fn cause_of_error(&self, id: &Id) -> Option<Cause<'static>> {
        self.conversation.owes(id).then_some(Cause::Beside)
    }

    /// When a handler finished that was just polled for the first time. Few look at that moment closely: a witness, and
    /// whoever keeps an answer apart from the progress before it. For the others the call took no time, and the clock
    /// is not read.
    fn moment_after_handler(&mut self) -> Instant {
        match self.at {
            Some(at) if self.commands.witness().is_none() && !self.commands.has_commands() => at,
            _ => now(),
        }
    }

    fn accept(&mut self, command: Command, now: Instant) {
        if self.refuses_requests && matches!(command, Command::Ask(..)) {
            return command.refuse();
        }
        if let Some(input) = self.asked.accept(command) {
            self.handle(input, now);
        }
    }

    /// Sends what a handler said before it finished, so that it precedes the answer.
    fn flush_handler_output(&mut self, now: Instant) {
        while let Some(command) = self.commands.try_command() {
            self.accept(command, now);
        }
    }
}

/// Shows a witness each message of a batch.
#[cold]
fn show_each(witness: &dyn Witness, incoming: &Incoming, via: RequestStream, now: Instant) {
    if let Incoming::Batch(items) = incoming {
        items.iter().flatten().for_each(|message| witness.received(message, via, now));
    }
}

/// Reports once how the handshake of a client went.
#[derive(Default)]
pub(crate) struct OpenedSignal(Option<oneshot::Sender<OpenedOrNot>>);

/// How the handshake of a client went.
pub(crate) type OpenedOrNot = Result<Arc<Opened>, OpenError>;

impl OpenedSignal {
    pub(crate) fn subscribe(&mut self) -> oneshot::Receiver<OpenedOrNot> {
        let (tell, told) = oneshot::channel();
        self.0 = Some(tell);
        told
    }

    pub(crate) fn send(&mut self, opened: OpenedOrNot) {
        if let Some(tell) = self.0.take() {
            // The subscriber may have stopped waiting.
            let _ = tell.send(opened);
        }
    }
}
