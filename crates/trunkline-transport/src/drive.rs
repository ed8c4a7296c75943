//! The one loop between a byte stream, a conversation and a handler.
//!
//! The loop waits for five things (bytes, room to write, a finished handler, a command, a deadline),
//! tells the conversation, and does what the conversation says. Three habits make it quick: it polls a
//! handler once in place before it spawns a task, sends everything that is ready in one write, and
//! reads the clock only when nothing else is left to do. `driver_core` holds what it shares with the
//! HTTP drivers.

mod outbox;
mod readable;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use trunkline_proto::client::{OpenError, Opened};
use trunkline_proto::{Attached, Conversation, Input, RequestStream};
use trunkline_wire::frame::{Decoder, Framing};
use trunkline_wire::jsonrpc::Incoming;

use crate::clock::now;
use crate::conversation_handle::ConversationHandle;
use crate::driver_core::{DeadlineTimer, DriverCore, Effect, HandlerTasks, OpenedSignal, Urged};
use crate::handler::Handler;
use crate::limits::Limits;
use outbox::Outbox;
use readable::Readable;

/// Why a conversation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum DriveError {
    /// The stream failed.
    Io(io::Error),
    /// The peer broke the framing.
    Framing(&'static str),
}

impl std::fmt::Display for DriveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "The connection failed: {error}."),
            Self::Framing(why) => write!(f, "The peer's framing is broken: {why}"),
        }
    }
}

impl std::error::Error for DriveError {}

/// A conversation on a byte stream, before it runs.
pub struct Driver<C, H, R, W> {
    core: DriverCore<C, HandlerTasks<H>>,
    reader: Option<R>,
    readable: Readable,
    writer: W,
    decoder: Decoder,
    outbox: Outbox,
    /// Whether the decoder holds texts that are not handled yet.
    has_texts: bool,
    framing: Option<Framing>,
    opened: OpenedSignal,
    timer: DeadlineTimer,
    limits: Limits,
    /// Set once either side has hung up: the deadline of the open calls.
    draining: Option<Instant>,
    /// How the peer broke the framing.
    broken: Option<&'static str>,
    /// Whether the last request waits a turn for others, to share one write.
    gathering: bool,
}

impl<C, H, R, W> Driver<C, H, R, W>
where
    C: Conversation + Unpin,
    H: Handler,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    /// Joins a conversation, a handler and a byte stream. Without `framing`, the peer's first bytes
    /// decide it.
    pub fn new(
        mut core: C,
        handler: Arc<H>,
        (reader, writer): (R, W),
        framing: Option<Framing>,
        limits: Limits,
    ) -> Self {
        core.shares_one_stream();
        let (handle, commands) = ConversationHandle::new(limits.queue);
        if let Some(witness) = handler.witness(Some(&handle), &Attached::default()) {
            handle.set_witness(witness);
        }
        let decoder = match framing {
            Some(framing) => Decoder::with_framing(framing, limits.message_bytes),
            None => Decoder::detect(limits.message_bytes),
        };
        Self {
            core: DriverCore::new(core, commands, HandlerTasks::new(handler, handle)),
            reader: Some(reader),
            readable: Readable::new(),
            writer,
            decoder,
            outbox: Outbox::new(limits.unsent_bytes),
            has_texts: false,
            framing,
            opened: OpenedSignal::default(),
            timer: DeadlineTimer::default(),
            limits,
            draining: None,
            broken: None,
            gathering: false,
        }
    }

    /// A handle to this conversation.
    pub fn handle(&self) -> ConversationHandle {
        self.core.handlers.handle.clone()
    }

    /// Reports how the client's handshake goes.
    pub fn on_opened(&mut self) -> oneshot::Receiver<Result<Arc<Opened>, OpenError>> {
        self.opened.subscribe()
    }

    /// Runs the conversation until the peer hangs up, or [`ConversationHandle::close`].
    pub async fn run(mut self) -> Result<(), DriveError> {
        let HandlerTasks { handler, handle, .. } = &self.core.handlers;
        let _listening = handler.listen(handle, &Attached::default());
        let mut has_begun = false;
        let mut task = Waker::noop().clone();
        let outcome = poll_fn(|cx| {
            know(&mut task, cx.waker());
            let cx = &mut Context::from_waker(&task);
            // A client speaks first: its first output is ready before any event.
            if !std::mem::replace(&mut has_begun, true) {
                self.act(cx);
            }
            self.poll(cx)
        })
        .await;
        // Callers that still wait learn that no answer will come.
        self.core.handle(Input::Close, now());
        let mut cx = Context::from_waker(Waker::noop());
        self.act(&mut cx);
        outcome
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DriveError>> {
        let mut turns = 0;
        let mut has_gathered = std::mem::take(&mut self.gathering);
        loop {
            let has_accepted = self.poll_commands(cx);
            self.poll_finished(cx);
            let mut busy = self.poll_read(cx)?;
            // Under concurrent calls, one turn of delay lets more requests share a write.
            let has_company = self.core.open_requests() > 1 && self.draining.is_none();
            if has_accepted && has_company && !std::mem::take(&mut has_gathered) {
                self.gathering = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // Last, so that one write takes all that this turn has to say, and the next turn finds nothing left.
            let was_congested = self.outbox.is_congested();
            let moved = match self.outbox.send(Pin::new(&mut self.writer), cx) {
                Ok(moved) => moved,
                // A peer that no longer reads has hung up, even if it still owes us answers.
                Err(error) if is_hang_up(&error) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(DriveError::Io(error))),
            };
            if moved && self.draining.is_some() {
                self.outbox.touch();
            }
            // What waited for the peer to read can go on.
            busy |= moved && was_congested;
            if busy {
                turns += 1;
                if turns < TURNS && !self.outbox.is_congested() {
                    continue;
                }
                // A peer that never stops sending must not starve the deadlines.
                if self.core.check_deadlines() {
                    self.act(cx);
                }
                // Yield: other tasks need a turn, among them the IO driver that sees the peer read.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.is_done() {
                return Poll::Ready(
                    self.broken.map_or(Ok(()), |why| Err(DriveError::Framing(why))),
                );
            }
            ready!(self.poll_timer(cx));
        }
    }

    /// Whether the drain after the end of input is over. Open calls have a deadline; finished answers
    /// have as long as the peer keeps reading.
    fn is_done(&mut self) -> bool {
        let Some(until) = self.drained_by() else { return false };
        if until > now() {
            return !self.is_owed() && self.outbox.is_empty();
        }
        // Stop the handlers that still run, so that the outbox cannot grow.
        self.core.handlers.stop_all();
        let until = self.outbox.moved() + self.limits.drain;
        self.draining = Some(until);
        self.outbox.is_empty() || until <= now()
    }

    /// When the drain ends, once it has begun.
    fn drained_by(&self) -> Option<Instant> {
        let owed_by = self.draining?;
        let read_by = self.outbox.moved() + self.limits.drain;
        Some(if self.is_owed() { owed_by } else { owed_by.max(read_by) })
    }

    fn is_owed(&self) -> bool {
        self.core.conversation.open_calls() > 0 || !self.core.handlers.is_empty()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<bool, DriveError> {
        // Back-pressure: while the peer does not read its answers, we do not read its requests.
        if !self.outbox.has_room(self.core.conversation.is_waiting()) {
            return Ok(false);
        }
        // Texts that waited for the peer to read come first.
        if std::mem::take(&mut self.has_texts) {
            self.take_texts(cx);
            return Ok(true);
        }
        let Some(reader) = &mut self.reader else { return Ok(false) };
        // Most turns are about something else.
        let Some(mut woken) = self.readable.take(cx) else { return Ok(false) };
        // Read straight into the decoder's buffer, without another copy.
        let n = match pin!(reader.read_buf(self.decoder.space(CHUNK))).poll(&mut woken) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(n)) => n,
            Poll::Ready(Err(error)) => return Err(DriveError::Io(error)),
        };
        self.readable.set();
        if n == 0 {
            let now = now();
            // The last line may lack its line break.
            match self.decoder.finish_message() {
                Some(Ok(incoming)) => self.receive(incoming, now, cx),
                Some(Err(why)) => self.broken = Some(why),
                None => {}
            }
            self.hang_up(cx);
            return Ok(true);
        }
        self.take_texts(cx);
        Ok(true)
    }

    /// Handles the decoded texts while there is room for their answers.
    fn take_texts(&mut self, cx: &mut Context<'_>) {
        let now = now();
        while let Some(incoming) = self.decoder.next_message() {
            match incoming {
                Ok(incoming) => self.receive(incoming, now, cx),
                // Calls that arrived before the fault still get their answers.
                Err(why) => {
                    self.broken = Some(why);
                    return self.hang_up(cx);
                }
            }
            if self.outbox.is_congested() {
                self.has_texts = true;
                return;
            }
        }
    }

    fn receive(&mut self, incoming: Incoming, now: Instant, cx: &mut Context<'_>) {
        self.core.show_received(&incoming, RequestStream::default(), now);
        self.core.handle(Input::received(incoming), now);
        self.act(cx);
    }

    /// The peer is gone: open calls may finish within the drain time.
    fn hang_up(&mut self, cx: &mut Context<'_>) {
        self.drain();
        self.timer.reset();
        self.core.handle(Input::Close, now());
        self.act(cx);
    }

    /// Stops reading and starts the drain.
    fn drain(&mut self) {
        self.reader = None;
        self.core.refuse_requests();
        self.outbox.touch();
        self.draining = Some(now() + self.limits.drain);
    }

    fn poll_commands(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut busy, mut turn) = (false, None);
        // While the peer does not read, senders wait (back-pressure).
        while let Poll::Ready(urged) =
            self.core.poll_next(cx, !self.outbox.is_congested(), &mut turn)
        {
            if urged == Some(Urged::Close) {
                self.hang_up(cx);
            }
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn poll_finished(&mut self, cx: &mut Context<'_>) {
        while self.core.poll_finished(cx) {
            self.act(cx);
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let drained_by = self.drained_by();
        ready!(self.core.poll_timer(&mut self.timer, drained_by, cx));
        self.act(cx);
        Poll::Ready(())
    }

    /// Does everything the conversation wants done.
    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll(cx) {
            match effect {
                Effect::Send(message, via) => {
                    let framing = self.framing.or(self.decoder.framing());
                    let framing = framing.unwrap_or(Framing::Newline);
                    let text = self.outbox.put(&message, framing);
                    self.core.show_sent(&message, text, via);
                }
                Effect::Opened(facts) => self.opened.send(Ok(facts)),
                Effect::Failed(error) => {
                    self.opened.send(Err(error));
                    self.drain();
                }
                // A pipe has one direction, and a missing reply needs no message.
                Effect::NoReply(_) | Effect::Pause { .. } => {}
            }
        }
    }
}

/// Keeps a copy of the waker of the task that polls. The waker of `block_on` and its copies do not look alike, but its
/// copies do: only those are recognised by whoever keeps one.
fn know(task: &mut Waker, polling: &Waker) {
    if !task.will_wake(polling) {
        let copy = polling.clone();
        if !task.will_wake(&copy) {
            *task = copy;
        }
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

const CHUNK: usize = 64 * 1024;
/// How many turns the loop takes before it yields.
const TURNS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_is_known_again_and_another_is_not_taken_for_it() {
        let mut task = Waker::noop().clone();
        poll_fn(|cx| {
            know(&mut task, cx.waker());
            let kept = task.clone();
            know(&mut task, cx.waker());
            assert!(task.will_wake(&kept));
            Poll::Ready(())
        })
        .await;
        let kept = task.clone();
        tokio::spawn(async move {
            poll_fn(|cx| {
                know(&mut task, cx.waker());
                assert!(task.will_wake(cx.waker()) && !task.will_wake(&kept));
                Poll::Ready(())
            })
            .await;
        })
        .await
        .expect("it does not panic");
    }
}
