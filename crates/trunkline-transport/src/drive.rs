//! The one loop between a byte stream, a conversation and a handler.
//!
//! The loop waits for five things (bytes, room to write, a finished handler, a command of somebody on
//! this side, a deadline), tells the conversation, and does what the conversation says. Three habits
//! make it quick: a handler is polled once in place before it gets a task of its own, one write sends
//! everything that is ready, and the loop looks at the clock only when nothing else is left. What it
//! shares with the drivers of HTTP is in `driver_core`.

mod outbox;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use trunkline_proto::client::{OpenError, Opened};
use trunkline_proto::{Attached, Conversation, Input};
use trunkline_wire::frame::{Decoder, Frame, Framing};
use trunkline_wire::jsonrpc::Incoming;

use crate::clock::now;
use crate::driver_core::{DeadlineTimer, DriverCore, Effect, HandlerTasks, OpenedSignal, Urged};
use crate::handler::Handler;
use crate::limits::Limits;
use crate::voice::ConversationHandle;
use outbox::Outbox;

/// Why a conversation could not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum DriveError {
    /// The stream failed.
    Io(io::Error),
    /// The peer's framing makes no sense any more.
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

/// A conversation on its way, before it is driven.
pub struct Driver<C, H, R, W> {
    core: DriverCore<C, HandlerTasks<H>>,
    reader: Option<R>,
    writer: W,
    decoder: Decoder,
    outbox: Outbox,
    /// Whether texts that have been read wait to be taken in.
    has_texts: bool,
    framing: Option<Framing>,
    opened: OpenedSignal,
    timer: DeadlineTimer,
    limits: Limits,
    /// Set once the peer has hung up or we have: when the last open call must be done.
    draining: Option<Instant>,
    /// Why the peer's framing makes no sense any more.
    broken: Option<&'static str>,
    /// Whether what was just asked waits for others to ask too.
    gathering: bool,
}

impl<C, H, R, W> Driver<C, H, R, W>
where
    C: Conversation + Unpin,
    H: Handler,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    /// Joins a conversation, a handler and a byte stream. `framing` is learnt from the peer's
    /// first bytes if it is not given.
    pub fn new(
        core: C,
        handler: Arc<H>,
        (reader, writer): (R, W),
        framing: Option<Framing>,
        limits: Limits,
    ) -> Self {
        let (voice, commands) = ConversationHandle::new(limits.queue);
        let decoder = match framing {
            Some(framing) => Decoder::with_framing(framing, limits.message_bytes),
            None => Decoder::detect(limits.message_bytes),
        };
        Self {
            core: DriverCore::new(core, commands, HandlerTasks::new(handler, voice)),
            reader: Some(reader),
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

    /// How others speak into this conversation.
    pub fn voice(&self) -> ConversationHandle {
        self.core.handlers.voice.clone()
    }

    /// Tells how the client's handshake goes.
    pub fn on_opened(&mut self) -> oneshot::Receiver<Result<Arc<Opened>, OpenError>> {
        self.opened.subscribe()
    }

    /// Runs the conversation until the peer hangs up, or [`ConversationHandle::close`].
    pub async fn run(mut self) -> Result<(), DriveError> {
        let HandlerTasks { handler, voice, .. } = &self.core.handlers;
        let _listening = handler.listen(voice, &Attached::default());
        // A client speaks first: what it wants to say is there before anything has happened.
        let outcome = poll_fn(|cx| {
            self.act(cx);
            self.poll(cx)
        })
        .await;
        // Whoever still waits for an answer learns that none will come.
        self.core.conversation.handle(Input::Close, now());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.act(&mut cx);
        outcome
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DriveError>> {
        let mut turns = 0;
        if std::mem::take(&mut self.gathering) {
            self.poll_commands(cx);
        }
        loop {
            let mut busy = match self.outbox.send(Pin::new(&mut self.writer), cx) {
                Ok(moved) => moved,
                // A peer that no longer reads has hung up, whatever it still owes us.
                Err(error) if is_hang_up(&error) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(DriveError::Io(error))),
            };
            if busy && self.draining.is_some() {
                self.outbox.touch();
            }
            let has_accepted = self.poll_commands(cx);
            busy |= has_accepted;
            busy |= self.poll_finished(cx);
            busy |= self.poll_read(cx)?;
            if busy {
                // A peer that never stops talking must not keep the clock from being looked at.
                if self.core.check_deadlines() {
                    self.act(cx);
                }
                // Where many call at once, those about to go in the same write.
                if has_accepted && self.core.open_requests() > 1 && self.draining.is_none() {
                    self.gathering = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                turns += 1;
                if turns < TURNS && !self.outbox.is_stuffed() {
                    continue;
                }
                // Others want a turn too, not least the one who finds out that the peer has read.
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

    /// After the end of input: calls have a moment to finish, and answers that are ready have as
    /// long as the peer goes on reading them.
    fn is_done(&mut self) -> bool {
        let Some(until) = self.drained_by() else { return false };
        if until > now() {
            return !self.is_owed() && self.outbox.is_empty();
        }
        // What still runs is stopped, so that nothing is added to what the peer reads.
        self.core.handlers.stop_all();
        let until = self.outbox.moved() + self.limits.drain;
        self.draining = Some(until);
        self.outbox.is_empty() || until <= now()
    }

    /// When to stop waiting, once the end has begun.
    fn drained_by(&self) -> Option<Instant> {
        let owed_by = self.draining?;
        let read_by = self.outbox.moved() + self.limits.drain;
        Some(if self.is_owed() { owed_by } else { owed_by.max(read_by) })
    }

    fn is_owed(&self) -> bool {
        self.core.conversation.open_calls() > 0 || !self.core.handlers.is_empty()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<bool, DriveError> {
        // A peer that does not read its answers gets no more of its questions read.
        if !self.outbox.has_room(self.core.conversation.is_waiting()) {
            return Ok(false);
        }
        // Texts that had to wait for the peer to read go first.
        if std::mem::take(&mut self.has_texts) {
            self.take_texts(cx);
            return Ok(true);
        }
        let Some(reader) = &mut self.reader else { return Ok(false) };
        // Straight into the decoder's buffer: what is read is not copied again.
        let n = match pin!(reader.read_buf(self.decoder.space(CHUNK))).poll(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(n)) => n,
            Poll::Ready(Err(error)) => return Err(DriveError::Io(error)),
        };
        if n == 0 {
            let now = now();
            // A last line may lack its line break.
            match self.decoder.finish().map(read) {
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

    /// Takes in the texts that have been read, as far as there is room for their answers.
    fn take_texts(&mut self, cx: &mut Context<'_>) {
        let now = now();
        while let Some(incoming) = self.decoder.next().map(read) {
            match incoming {
                Ok(incoming) => self.receive(incoming, now, cx),
                // What came before is still answered.
                Err(why) => {
                    self.broken = Some(why);
                    return self.hang_up(cx);
                }
            }
            if self.outbox.is_stuffed() {
                self.has_texts = true;
                return;
            }
        }
    }

    fn receive(&mut self, incoming: Incoming, now: Instant, cx: &mut Context<'_>) {
        self.core.conversation.handle(Input::received(incoming), now);
        self.act(cx);
    }

    /// The peer is gone: what is open may finish, for a moment.
    fn hang_up(&mut self, cx: &mut Context<'_>) {
        self.drain();
        self.timer.reset();
        self.core.conversation.handle(Input::Close, now());
        self.act(cx);
    }

    /// Nothing more is read, and what is to be written has a moment to go out.
    fn drain(&mut self) {
        self.reader = None;
        self.core.refuse_requests();
        self.outbox.touch();
        self.draining = Some(now() + self.limits.drain);
    }

    fn poll_commands(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(urged) = self.core.poll_urgent(cx) {
            if urged == Urged::Close {
                self.hang_up(cx);
            }
            busy = true;
        }
        // While the peer does not read, those who want to say more wait.
        while !self.outbox.is_stuffed() && self.core.poll_command(cx) {
            self.act(cx);
            busy = true;
        }
        if busy {
            self.act(cx);
        }
        busy
    }

    fn poll_finished(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while self.core.poll_finished(cx) {
            self.act(cx);
            busy = true;
        }
        busy
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let next = self.core.conversation.next_timeout().into_iter().chain(self.drained_by()).min();
        ready!(self.timer.poll(next, cx));
        self.core.conversation.handle(Input::Tick, now());
        self.act(cx);
        Poll::Ready(())
    }

    /// Does everything the conversation wants done.
    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(effect) = self.core.poll(cx) {
            match effect {
                Effect::Send(message, _) => {
                    let framing = self.framing.or(self.decoder.framing());
                    let framing = framing.unwrap_or(Framing::Newline);
                    self.outbox.put(&message, framing);
                }
                Effect::Opened(facts) => self.opened.send(Ok(facts)),
                Effect::Failed(error) => {
                    self.opened.send(Err(error));
                    self.drain();
                }
                // A pipe leads one way, and what is not answered needs no word.
                Effect::NoReply(_) | Effect::Pause { .. } => {}
            }
        }
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// What a frame says.
fn read(frame: Frame<'_>) -> Result<Incoming, &'static str> {
    match frame {
        Frame::Text(text) => Ok(Incoming::parse(text)),
        Frame::TooLong(malformed) => Ok(Incoming::Bad(malformed)),
        Frame::Broken(why) => Err(why),
    }
}

const CHUNK: usize = 64 * 1024;
/// How often the loop goes round before it lets others have a turn.
const TURNS: u32 = 32;
