//! Outgoing messages: framed, counted, and kept until the peer has read them. A long value is written from where it is.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::AsyncWrite;
use trunkline_proto::Outgoing;
use trunkline_wire::frame::{Framing, encode_around};
use trunkline_wire::jsonrpc::{LeftOut, Message};

use crate::clock::now;

/// Bytes that the peer has not read yet.
pub(super) struct Outbox {
    /// The messages, without the values that are in `long`.
    bytes: Vec<u8>,
    written: usize,
    /// Long values, and before which of the bytes each of them is written.
    long: VecDeque<LeftOut>,
    /// How much of the first of them is written, and the bytes of all that are not.
    long_written: usize,
    long_left: usize,
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
        let (bytes, long, moved) = (Vec::new(), VecDeque::new(), now());
        let (written, long_written, long_left, needs_flush, excess) = (0, 0, 0, false, 0);
        Self { bytes, written, long, long_written, long_left, needs_flush, limit, excess, moved }
    }

    /// Takes in a message. Returns its text, where that is a line in one piece.
    pub(super) fn put(&mut self, message: &Outgoing, framing: Framing) -> Option<&[u8]> {
        self.forget_written();
        let (start, unsent, was_congested) = (self.bytes.len(), self.unsent(), self.is_congested());
        let left_out = encode_around(framing, |out| message.write_around(out), &mut self.bytes);
        let is_line = framing == Framing::Newline && left_out.is_none();
        if let Some(left_out) = left_out {
            self.long_left += left_out.value.get().len();
            self.long.push_back(left_out);
        }
        let is_answer = !matches!(message, Outgoing::One(Message::Request { .. }));
        self.excess = match was_congested {
            true if is_answer => self.excess + self.unsent() - unsent,
            true => self.excess,
            false => 0,
        };
        self.bytes.get(start..self.bytes.len() - 1).filter(|_| is_line)
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
        while self.unsent() > 0 {
            match self.poll_write(writer.as_mut(), cx) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(n)) => self.advance(n),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
            moved = true;
        }
        if self.unsent() == 0 {
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

    /// Writes what comes next: bytes, or the first long value with those around it.
    fn poll_write(
        &self,
        writer: Pin<&mut impl AsyncWrite>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Some(LeftOut { at, value }) = self.long.front() else {
            return writer.poll_write(cx, &self.bytes[self.written..]);
        };
        let end = self.long.get(1).map_or(self.bytes.len(), |next| next.at);
        let value = &value.get().as_bytes()[self.long_written..];
        if self.written == *at && value.len() > KEEP {
            // More than a pipe takes: after a part of it nobody asks whether it takes more.
            return writer.poll_write(cx, value);
        }
        let parts = [&self.bytes[self.written..*at], value, &self.bytes[*at..end]];
        writer.poll_write_vectored(cx, &parts.map(IoSlice::new))
    }

    /// Notes that so much of what comes next is written.
    fn advance(&mut self, n: usize) {
        let Some(LeftOut { at, value }) = self.long.front() else {
            self.written += n;
            return;
        };
        let (before, left) = (at - self.written, value.get().len() - self.long_written);
        let of_value = n.saturating_sub(before).min(left);
        self.written += n - of_value;
        self.long_written += of_value;
        self.long_left -= of_value;
        if of_value == left {
            self.long.pop_front();
            self.long_written = 0;
        }
    }

    /// How many bytes are not written.
    #[inline]
    fn unsent(&self) -> usize {
        self.bytes.len() - self.written + self.long_left
    }

    /// Whether everything is written.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.needs_flush
    }

    /// Whether the unsent bytes exceed the high-water mark.
    pub(super) fn is_congested(&self) -> bool {
        self.unsent() > self.limit
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
            self.long.iter_mut().for_each(|it| it.at -= self.written);
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

    use trunkline_wire::frame::encode;
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

    /// A peer that takes so many bytes at once, from as many pieces as it can.
    struct Taking {
        at_once: usize,
        is_full: bool,
        took: Vec<u8>,
    }

    impl AsyncWrite for Taking {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.is_full = !self.is_full;
            if !self.is_full {
                return Poll::Pending;
            }
            let (before, mut room) = (self.took.len(), self.at_once);
            for part in parts {
                let taken = part.len().min(room);
                self.took.extend_from_slice(&part[..taken]);
                room -= taken;
            }
            Poll::Ready(Ok(self.took.len() - before))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Answers of every length, in an order in which any may follow any.
    fn answers() -> Vec<Outgoing> {
        let broken = format!("[{}1]", "1,\r\n".repeat(20_000));
        let values = [1, 70_000, 2, 200_000, 100_000, 3].map(|it| Json::string(&"x".repeat(it)));
        let values = values.into_iter().chain(Json::parse(broken));
        let answer = |(id, value)| Message::result(Id::Number(id), value);
        let mut all: Vec<Message> = (0..).zip(values).map(answer).collect();
        all.push(all[1].clone());
        let batch = Outgoing::Batch(all[..4].to_vec());
        all.into_iter().map(Outgoing::One).chain([batch]).collect()
    }

    #[test]
    fn messages_arrive_as_they_are_whatever_is_written_at_once() {
        for framing in [Framing::Newline, Framing::ContentLength] {
            let mut expected = Vec::new();
            for message in answers() {
                encode(framing, |out| message.write(out), &mut expected);
            }
            // One by one, and while others wait.
            for (at_once, together) in [(5, 9), (4093, 1), (1 << 16, 2), (1 << 18, 3), (1 << 20, 9)]
            {
                let mut outbox = Outbox::new(1 << 20);
                let mut peer = Taking { at_once, is_full: false, took: Vec::new() };
                let mut cx = Context::from_waker(Waker::noop());
                for (number, message) in answers().iter().enumerate() {
                    outbox.put(message, framing);
                    if (number + 1) % together == 0 {
                        outbox.send(Pin::new(&mut peer), &mut cx).expect("it reads");
                    }
                    assert_eq!(
                        peer.took.len() + outbox.unsent(),
                        sum(&answers()[..=number], framing)
                    );
                }
                while !outbox.is_empty() {
                    outbox.send(Pin::new(&mut peer), &mut cx).expect("it reads");
                }
                assert!(peer.took == expected, "{at_once} bytes at once");
                assert_eq!((outbox.long.len(), outbox.unsent()), (0, 0));
            }
        }
    }

    fn sum(messages: &[Outgoing], framing: Framing) -> usize {
        let mut out = Vec::new();
        messages.iter().for_each(|it| encode(framing, |out| it.write(out), &mut out));
        out.len()
    }

    #[test]
    fn a_long_value_is_not_copied_and_counts_all_the_same() {
        let text = Json::string(&"x".repeat(1 << 20));
        let mut outbox = Outbox::new(1 << 20);
        let message = Outgoing::One(Message::result(Id::Number(1), text.clone()));
        assert_eq!(outbox.put(&message, Framing::Newline), None, "it is in pieces");
        assert!(outbox.is_congested() && outbox.bytes.capacity() < KEEP);
        assert_eq!(outbox.long[0].value.get().as_ptr(), text.get().as_ptr());
        assert!(outbox.has_room(true) && !outbox.has_room(false));
        for _ in 0..4 {
            outbox.put(&message, Framing::Newline);
        }
        assert!(!outbox.has_room(true), "answers beyond the mark count, however long");
    }
}
