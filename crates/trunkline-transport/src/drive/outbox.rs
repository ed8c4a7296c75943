//! Outgoing messages: framed, counted, and kept until the peer has read them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::AsyncWrite;
use trunkline_proto::Outgoing;
use trunkline_wire::frame::{Framing, encode};
use trunkline_wire::jsonrpc::Message;

use crate::clock::now;

/// Bytes that the peer has not read yet.
pub(super) struct Outbox {
    bytes: Vec<u8>,
    written: usize,
    needs_flush: bool,
    /// High-water mark: with more unsent bytes than this, the peer counts as not reading.
    limit: usize,
    /// Bytes of answers added above the high-water mark.
    excess: usize,
    /// When the peer last read something.
    moved: Instant,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), written: 0, needs_flush: false, limit, excess: 0, moved: now() }
    }

    /// Takes in a message. Returns its text, where that is a line.
    pub(super) fn put(&mut self, message: &Outgoing, framing: Framing) -> Option<&[u8]> {
        self.forget_written();
        let (before, was_congested) = (self.bytes.len(), self.is_congested());
        encode(framing, |out| message.write(out), &mut self.bytes);
        let is_answer = !matches!(message, Outgoing::One(Message::Request { .. }));
        self.excess = match was_congested {
            true if is_answer => self.excess + self.bytes.len() - before,
            true => self.excess,
            false => 0,
        };
        let is_line = framing == Framing::Newline;
        self.bytes.get(before..self.bytes.len() - 1).filter(|_| is_line)
    }

    /// Writes everything that is ready at once. Returns whether anything was written.
    pub(super) fn send(
        &mut self,
        mut writer: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> io::Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let mut moved = false;
        while self.written < self.bytes.len() {
            match writer.as_mut().poll_write(cx, &self.bytes[self.written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => self.written += n,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
            moved = true;
        }
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP);
            self.written = 0;
        }
        self.needs_flush |= moved;
        if self.needs_flush
            && self.bytes.is_empty()
            && let Poll::Ready(flushed) = writer.poll_flush(cx)
        {
            flushed?;
            self.needs_flush = false;
        }
        Ok(moved)
    }

    /// Whether everything is written.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.needs_flush
    }

    /// Whether the unsent bytes exceed the high-water mark.
    pub(super) fn is_congested(&self) -> bool {
        self.bytes.len() - self.written > self.limit
    }

    /// Whether there is room for the answers to more requests of the peer. While the peer owes us an
    /// answer we read a while longer, or both sides might wait for each other to read (deadlock).
    pub(super) fn has_room(&self, peer_owes: bool) -> bool {
        let allowance = if peer_owes { OWED_FACTOR * self.limit } else { 0 };
        !self.is_congested() || self.excess < allowance
    }

    /// When the peer last read something; only up to date once the drain has begun.
    pub(super) fn moved(&self) -> Instant {
        self.moved
    }

    pub(super) fn touch(&mut self) {
        self.moved = now();
    }

    /// Makes room in front of a new message for a slow but steady reader, who never reads everything. What is left
    /// moves only when it is the smaller part: each byte moves once at most.
    fn forget_written(&mut self) {
        if self.written > KEEP.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

/// How many times the high-water mark a peer that owes us an answer may reach.
const OWED_FACTOR: usize = 4;
/// Capacity kept while the outbox is empty.
const KEEP: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use trunkline_wire::json::Json;
    use trunkline_wire::jsonrpc::Id;

    use super::*;

    /// A peer that reads one piece at a time.
    struct Slow {
        is_full: bool,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.is_full = !self.is_full;
            match self.is_full {
                true => Poll::Ready(Ok(bytes.len().min(KEEP))),
                false => Poll::Pending,
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_large_message_moves_once_at_most_however_slowly_it_is_read() {
        const LENGTH: usize = 16 << 20;
        let mut outbox = Outbox::new(1 << 20);
        outbox.bytes = vec![b'x'; LENGTH];
        let (mut slow, mut cx) = (Slow { is_full: false }, Context::from_waker(Waker::noop()));
        let (mut moved, mut turns) = (0, 0);
        while !outbox.is_empty() {
            let before = outbox.bytes.len();
            assert!(outbox.send(Pin::new(&mut slow), &mut cx).expect("it reads"));
            if outbox.bytes.len() < before {
                moved += outbox.bytes.len();
            }
            turns += 1;
        }
        assert!(moved <= LENGTH, "{moved} bytes were moved");
        assert!(turns >= LENGTH / KEEP, "it was read in pieces");
    }

    #[test]
    fn a_reader_who_never_catches_up_keeps_the_memory_of_what_is_unread_alone() {
        let text = Json::string(&"x".repeat(KEEP - 100));
        let message = Outgoing::One(Message::result(Id::Number(1), text));
        let mut outbox = Outbox::new(1 << 20);
        let (mut slow, mut cx) = (Slow { is_full: false }, Context::from_waker(Waker::noop()));
        for _ in 0..4 {
            outbox.put(&message, Framing::Newline);
        }
        for _ in 0..1000 {
            outbox.put(&message, Framing::Newline);
            outbox.send(Pin::new(&mut slow), &mut cx).expect("it reads");
            assert!(!outbox.is_empty() && outbox.bytes.len() < 16 * KEEP);
        }
    }
}
