//! The one loop between a byte stream, a conversation and a handler.
//!
//! It waits for five things (bytes, room to write, a finished handler, a wish of somebody on this
//! side, a deadline), tells the conversation, and does what the conversation says. Three habits
//! make it quick: a handler is polled once in place before it gets a task of its own, everything
//! that is ready goes out in one write, and the clock is looked at only when nothing else is left.

mod running;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::Sleep;
use trunkline_proto::client::{OpenError, Opened};
use trunkline_proto::{Conversation, Heard, Input, Outgoing, Output, Ticket};
use trunkline_wire::frame::{Decoder, Frame, Framing, encode};
use trunkline_wire::jsonrpc::{Incoming, Message};

use crate::handler::{Answer, Guarded, Handler, guarded_call, guarded_heard};
use crate::limits::Limits;
use crate::voice::{Ears, Reply, Urgent, Voice, Wish};
use running::Running;

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
    core: C,
    handler: Arc<H>,
    reader: Option<R>,
    writer: W,
    decoder: Decoder,
    out: Vec<u8>,
    written: usize,
    needs_flush: bool,
    /// Answers written while too much was unsent already, in bytes.
    excess: usize,
    /// Whether texts that have been read wait to be taken in.
    has_texts: bool,
    framing: Option<Framing>,
    voice: Voice,
    ears: Ears,
    running: Running,
    asked: Vec<(Ticket, Reply)>,
    opened: Option<oneshot::Sender<Result<Arc<Opened>, OpenError>>>,
    timer: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    limits: Limits,
    /// Set once the peer has hung up or we have: when the last open call must be done.
    draining: Option<Instant>,
    /// When the peer last read something, once it has hung up.
    moved: Instant,
    /// Why the peer's framing makes no sense any more.
    broken: Option<&'static str>,
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
        let (voice, ears) = Voice::new(limits.queue);
        let decoder = match framing {
            Some(framing) => Decoder::with_framing(framing, limits.message_bytes),
            None => Decoder::detect(limits.message_bytes),
        };
        Self {
            core,
            handler,
            reader: Some(reader),
            writer,
            decoder,
            out: Vec::new(),
            written: 0,
            needs_flush: false,
            excess: 0,
            has_texts: false,
            framing,
            voice,
            ears,
            running: Running::default(),
            asked: Vec::new(),
            opened: None,
            timer: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
            armed: None,
            limits,
            draining: None,
            moved: Instant::now(),
            broken: None,
        }
    }

    /// How others speak into this conversation.
    pub fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// Tells how the client's handshake goes.
    pub fn on_opened(&mut self) -> oneshot::Receiver<Result<Arc<Opened>, OpenError>> {
        let (tell, told) = oneshot::channel();
        self.opened = Some(tell);
        told
    }

    /// Runs the conversation until the peer hangs up, or [`Voice::close`].
    pub async fn run(mut self) -> Result<(), DriveError> {
        // A client speaks first: what it wants to say is there before anything has happened.
        let outcome = poll_fn(|cx| {
            self.act(cx);
            self.poll(cx)
        })
        .await;
        // Whoever still waits for an answer learns that none will come.
        self.core.handle(Input::Close, Instant::now());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        self.act(&mut cx);
        outcome
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DriveError>> {
        let mut turns = 0;
        loop {
            let mut busy = match self.poll_write(cx) {
                Ok(moved) => moved,
                // A peer that no longer reads has hung up, whatever it still owes us.
                Err(DriveError::Io(error)) if is_hang_up(&error) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            };
            busy |= self.poll_wishes(cx);
            busy |= self.poll_running(cx);
            busy |= self.poll_read(cx)?;
            if busy {
                self.check_deadlines(cx);
                turns += 1;
                if turns < TURNS && !self.is_stuffed() {
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
        if until > Instant::now() {
            let is_owed = self.core.open_calls() > 0 || !self.running.is_empty();
            return !is_owed && !self.is_unsent();
        }
        // What still runs is stopped, so that nothing is added to what the peer reads.
        self.running = Running::default();
        self.draining = Some(self.moved + self.limits.drain);
        !self.is_unsent() || self.moved + self.limits.drain <= Instant::now()
    }

    /// When to stop waiting, once the end has begun.
    fn drained_by(&self) -> Option<Instant> {
        let owed_by = self.draining?;
        let is_owed = self.core.open_calls() > 0 || !self.running.is_empty();
        Some(if is_owed { owed_by } else { owed_by.max(self.moved + self.limits.drain) })
    }

    fn is_unsent(&self) -> bool {
        self.written < self.out.len() || self.needs_flush
    }

    /// Writes what is ready. Returns whether anything moved.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<bool, DriveError> {
        let mut moved = false;
        while self.written < self.out.len() {
            match Pin::new(&mut self.writer).poll_write(cx, &self.out[self.written..]) {
                Poll::Pending => {
                    // A reader that is slow but steady must not make us keep what it has read.
                    if self.written > CHUNK {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                    self.has_moved(moved);
                    return Ok(moved);
                }
                Poll::Ready(Ok(0)) => return Err(DriveError::Io(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => self.written += n,
                Poll::Ready(Err(error)) => return Err(DriveError::Io(error)),
            }
            moved = true;
        }
        if self.written > 0 {
            self.out.clear();
            self.written = 0;
            // One large answer should not cost its memory for ever.
            self.out.shrink_to(CHUNK);
        }
        self.has_moved(moved);
        if self.needs_flush
            && let Poll::Ready(flushed) = Pin::new(&mut self.writer).poll_flush(cx)
        {
            flushed.map_err(DriveError::Io)?;
            self.needs_flush = false;
        }
        Ok(moved)
    }

    fn has_moved(&mut self, moved: bool) {
        self.needs_flush |= moved;
        if moved && self.draining.is_some() {
            self.moved = Instant::now();
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<bool, DriveError> {
        // A peer that does not read its answers gets no more of its questions read. If it owes us
        // an answer we read on for a while, or both might wait for the other to read.
        let patience = if self.core.is_waiting() { EXCESS * self.limits.unsent_bytes } else { 0 };
        if self.is_stuffed() && self.excess >= patience {
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
            let now = Instant::now();
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
        let now = Instant::now();
        while let Some(incoming) = self.decoder.next().map(read) {
            match incoming {
                Ok(incoming) => self.receive(incoming, now, cx),
                // What came before is still answered.
                Err(why) => {
                    self.broken = Some(why);
                    return self.hang_up(cx);
                }
            }
            if self.is_stuffed() {
                self.has_texts = true;
                return;
            }
        }
    }

    fn receive(&mut self, incoming: Incoming, now: Instant, cx: &mut Context<'_>) {
        self.core.handle(Input::Received(incoming), now);
        self.act(cx);
    }

    /// The peer is gone: what is open may finish, for a moment.
    fn hang_up(&mut self, cx: &mut Context<'_>) {
        self.reader = None;
        self.moved = Instant::now();
        self.draining = Some(self.moved + self.limits.drain);
        self.armed = None;
        self.core.handle(Input::Close, Instant::now());
        self.act(cx);
    }

    fn poll_wishes(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(Some(urgent)) = self.ears.urgent.poll_recv(cx) {
            match urgent {
                Urgent::Cancel(ticket) => {
                    self.forget(ticket);
                    self.core.handle(Input::Cancel(ticket), Instant::now());
                }
                Urgent::Close => self.hang_up(cx),
            }
            busy = true;
        }
        // While the peer does not read, those who want to say more wait.
        while !self.is_stuffed()
            && let Poll::Ready(Some(wish)) = self.ears.wishes.poll_recv(cx)
        {
            self.grant(wish);
            self.act(cx);
            busy = true;
        }
        if busy {
            self.act(cx);
        }
        busy
    }

    /// Whether more is unsent than a peer that reads would leave.
    fn is_stuffed(&self) -> bool {
        self.out.len() - self.written > self.limits.unsent_bytes
    }

    fn grant(&mut self, wish: Wish) {
        let input = match wish {
            // Whoever asked has given up before the question was out.
            Wish::Ask(_, reply) if reply.outcome.is_closed() => return,
            Wish::Say(call, what) => Input::Said { call, what },
            Wish::Change(change) => Input::Changed(change),
            Wish::Notify(method, params) => Input::Notify { method, params },
            Wish::Ask(ask, reply) => {
                self.asked.push((ask.ticket, reply));
                Input::Ask(ask)
            }
        };
        self.core.handle(input, Instant::now());
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        while let Poll::Ready(Some((call, outcome))) = self.running.poll_next(cx) {
            self.hear_first();
            self.core.handle(Input::Finished { call, outcome }, Instant::now());
            self.act(cx);
            busy = true;
        }
        busy
    }

    /// A peer that never stops talking must not keep the clock from being looked at.
    fn check_deadlines(&mut self, cx: &mut Context<'_>) {
        if let Some(next) = self.core.next_timeout()
            && next <= Instant::now()
        {
            self.core.handle(Input::Tick, Instant::now());
            self.act(cx);
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let next = self.core.next_timeout().into_iter().chain(self.drained_by()).min();
        let Some(next) = next else {
            self.armed = None;
            return Poll::Pending;
        };
        // A timer that fires too early does no harm, so it is only ever moved forward.
        if self.armed.is_none_or(|armed| next < armed) {
            self.timer.as_mut().reset(next.into());
            self.armed = Some(next);
        }
        ready!(self.timer.as_mut().poll(cx));
        self.armed = None;
        self.core.handle(Input::Tick, Instant::now());
        self.act(cx);
        Poll::Ready(())
    }

    /// Does everything the conversation wants done.
    fn act(&mut self, cx: &mut Context<'_>) {
        while let Some(output) = self.core.poll() {
            match output {
                Output::Send(message) => {
                    let framing = self.framing.or(self.decoder.framing());
                    let framing = framing.unwrap_or(Framing::Newline);
                    let (before, was_stuffed) = (self.out.len(), self.is_stuffed());
                    encode(framing, |out| message.write(out), &mut self.out);
                    let is_answer = !matches!(message, Outgoing::One(Message::Request { .. }));
                    self.excess = match was_stuffed {
                        true if is_answer => self.excess + self.out.len() - before,
                        true => self.excess,
                        false => 0,
                    };
                }
                Output::Call(call) => self.start(*call, cx),
                Output::Abandon(call) => self.running.stop(call),
                Output::Settled { ticket, outcome } => {
                    if let Some(reply) = self.forget(ticket) {
                        let _ = reply.outcome.send(outcome);
                    }
                }
                Output::Heard(heard) => self.deliver(heard),
                Output::Opened(facts) => self.tell_opened(Ok(facts)),
                Output::Failed(error) => {
                    self.tell_opened(Err(error));
                    self.reader = None;
                    self.moved = Instant::now();
                    self.draining = Some(self.moved + self.limits.drain);
                }
            }
        }
    }

    fn start(&mut self, call: trunkline_proto::Call, cx: &mut Context<'_>) {
        let key = call.key;
        let outcome = match guarded_call(&*self.handler, call, &self.voice) {
            Answer::Now(outcome) => outcome,
            Answer::Later(future) => {
                let mut future = Guarded(future);
                match Pin::new(&mut future).poll(cx) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => return self.running.start(key, future),
                }
            }
        };
        self.hear_first();
        self.core.handle(Input::Finished { call: key, outcome }, Instant::now());
    }

    /// What a handler said before it finished goes out before its answer.
    fn hear_first(&mut self) {
        while let Ok(wish) = self.ears.wishes.try_recv() {
            self.grant(wish);
        }
    }

    fn deliver(&mut self, heard: Heard) {
        let owner = heard.ticket.and_then(|it| self.asked.iter().find(|(ticket, _)| *ticket == it));
        match owner.and_then(|(_, reply)| reply.heard.as_ref()) {
            Some(heard_by) => {
                let _ = heard_by.try_send(heard);
            }
            None => guarded_heard(&*self.handler, heard),
        }
    }

    fn forget(&mut self, ticket: Ticket) -> Option<Reply> {
        let at = self.asked.iter().position(|(it, _)| *it == ticket)?;
        Some(self.asked.swap_remove(at).1)
    }

    fn tell_opened(&mut self, opened: Result<Arc<Opened>, OpenError>) {
        if let Some(tell) = self.opened.take() {
            let _ = tell.send(opened);
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
/// How often the limit on what is unsent may be passed by a peer that owes us an answer.
const EXCESS: usize = 4;
/// How often the loop goes round before it lets others have a turn.
const TURNS: u32 = 32;
