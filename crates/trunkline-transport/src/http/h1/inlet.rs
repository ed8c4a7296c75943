//! The bytes of a connection as they come → heads and bodies.

use std::future::Future as _;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::chunks::{Chunk, Chunks};

/// How long a body is (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum BodyLength {
    Bytes(u64),
    Chunked,
    /// It ends when the peer closes the connection.
    UntilClose,
}

/// What is left of a body.
#[derive(Debug)]
pub(in crate::http) enum Left {
    Nothing,
    Bytes(u64),
    Chunks(Chunks),
    UntilClose,
}

impl From<BodyLength> for Left {
    fn from(length: BodyLength) -> Self {
        match length {
            BodyLength::Bytes(0) => Self::Nothing,
            BodyLength::Bytes(bytes) => Self::Bytes(bytes),
            BodyLength::Chunked => Self::Chunks(Chunks::default()),
            BodyLength::UntilClose => Self::UntilClose,
        }
    }
}

impl Left {
    pub(in crate::http) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Its length, if that is known.
    pub(in crate::http) fn length(&self) -> Option<u64> {
        match self {
            Self::Nothing => Some(0),
            Self::Bytes(length) => Some(*length),
            Self::Chunks(_) | Self::UntilClose => None,
        }
    }
}

/// What was read of a connection.
#[derive(Debug)]
pub(in crate::http) struct Inlet {
    read: Vec<u8>,
    /// What comes before was handed on.
    taken: usize,
    /// How much it reads at first.
    room: usize,
}

impl Inlet {
    /// One that reads so much at first, and more of what is longer.
    pub(in crate::http) fn new(room: usize) -> Self {
        Self { read: Vec::new(), taken: 0, room }
    }

    /// What was read and not handed on.
    pub(in crate::http) fn unread(&self) -> &[u8] {
        &self.read[self.taken..]
    }

    /// Hands on some of what was read.
    pub(in crate::http) fn take(&mut self, length: usize) -> Range<usize> {
        let from = self.taken;
        self.taken += length;
        from..self.taken
    }

    /// What was handed on, until more is read.
    pub(in crate::http) fn at(&self, taken: Range<usize>) -> &[u8] {
        &self.read[taken]
    }

    /// The same, to be kept. A long piece is not copied, unless it would keep more memory than twice its own.
    pub(in crate::http) fn keep(&mut self, taken: Range<usize>) -> Bytes {
        let is_short = taken.len() < COPIED || 2 * taken.len() < self.read.capacity();
        if is_short || self.taken < self.read.len() {
            return Bytes::copy_from_slice(&self.read[taken]);
        }
        self.taken = 0;
        let was_full = self.read.len() == self.read.capacity();
        let room = if was_full { self.more_room() } else { self.read.capacity() };
        let all = std::mem::replace(&mut self.read, Vec::with_capacity(room));
        Bytes::from(all).slice(taken)
    }

    /// The next larger buffer: more will follow what has filled this one.
    fn more_room(&self) -> usize {
        (2 * self.read.capacity()).clamp(self.room, MAX_ROOM)
    }

    /// Gives back the memory that something long took. What was handed on is gone then.
    pub(in crate::http) fn shrink(&mut self) {
        if self.read.capacity() > MOST_KEPT && self.unread().len() <= MOST_KEPT / 2 {
            (self.read, self.taken) = (self.unread().to_vec(), 0);
        }
    }

    /// Reads more. What was handed on is gone then.
    pub(in crate::http) fn poll_fill(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let was_full = self.read.len() == self.read.capacity();
        if self.taken == self.read.len() {
            self.read.clear();
        } else {
            self.read.drain(..self.taken);
        }
        self.taken = 0;
        if was_full {
            let room = self.more_room().max(self.read.len() + self.room);
            self.read.reserve_exact(room - self.read.len());
        }
        pin!(stream.read_buf(&mut self.read)).poll(cx)
    }

    /// The next piece of a body; `None` at its end.
    pub(in crate::http) fn poll_piece(
        &mut self,
        left: &mut Left,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Range<usize>>>> {
        loop {
            let unread = &self.read[self.taken..];
            let here = match left {
                Left::Nothing => return Poll::Ready(Ok(None)),
                Left::Bytes(bytes) => {
                    let here = usize::try_from(*bytes).unwrap_or(usize::MAX).min(unread.len());
                    *bytes -= here as u64;
                    if *bytes == 0 {
                        *left = Left::Nothing;
                    }
                    here
                }
                Left::Chunks(chunks) => match chunks.next(unread) {
                    Ok(Chunk::Data(skipped, length)) => {
                        self.taken += skipped;
                        length
                    }
                    Ok(Chunk::None) => {
                        self.taken = self.read.len();
                        0
                    }
                    Ok(Chunk::End(skipped)) => {
                        self.taken += skipped;
                        *left = Left::Nothing;
                        return Poll::Ready(Ok(None));
                    }
                    Err(why) => {
                        return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, why)));
                    }
                },
                Left::UntilClose => unread.len(),
            };
            if here > 0 {
                return Poll::Ready(Ok(Some(self.take(here))));
            }
            if ready!(self.poll_fill(stream, cx))? == 0 {
                return match std::mem::replace(left, Left::Nothing) {
                    Left::UntilClose => Poll::Ready(Ok(None)),
                    rest => {
                        *left = rest;
                        Poll::Ready(Err(cut_off()))
                    }
                };
            }
        }
    }
}

/// A body ended before it was complete.
pub(in crate::http) fn cut_off() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed before the body's end")
}

/// The most that is read at once.
const MAX_ROOM: usize = 64 << 10;
/// The most memory that a connection keeps while nothing comes.
const MOST_KEPT: usize = 8 << 10;
/// A shorter piece is copied.
const COPIED: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn a_long_body_is_read_in_large_pieces_and_its_memory_is_given_back() {
        let (mut ours, mut theirs) = duplex(1 << 20);
        ours.write_all(&[b'x'; 1 << 20]).await.expect("there is room");
        let (mut inlet, mut left) = (Inlet::new(1 << 10), Left::Bytes(1 << 20));
        let (mut pieces, mut bytes) = (0, 0);
        while let Some(piece) =
            poll_fn(|cx| inlet.poll_piece(&mut left, &mut theirs, cx)).await.expect("it comes")
        {
            (pieces, bytes) = (pieces + 1, bytes + inlet.keep(piece).len());
        }
        assert_eq!(bytes, 1 << 20);
        assert!(pieces < 30, "{pieces}");
        assert!(inlet.read.capacity() <= 2 * MAX_ROOM, "{}", inlet.read.capacity());
        inlet.shrink();
        assert_eq!(inlet.read.capacity(), 0);
    }

    #[tokio::test]
    async fn a_little_that_follows_something_long_does_not_keep_its_memory() {
        let (mut ours, mut theirs) = duplex(1 << 20);
        let mut inlet = Inlet::new(64 << 10);
        ours.write_all(&[b'x'; 60 << 10]).await.expect("there is room");
        poll_fn(|cx| inlet.poll_fill(&mut theirs, cx)).await.expect("it comes");
        inlet.take((60 << 10) - 2);
        inlet.shrink();
        assert_eq!((inlet.unread(), inlet.read.capacity()), (&b"xx"[..], 2));
        ours.write_all(b"y").await.expect("there is room");
        poll_fn(|cx| inlet.poll_fill(&mut theirs, cx)).await.expect("it comes");
        assert_eq!(inlet.unread(), b"xxy");
    }

    #[tokio::test]
    async fn what_was_not_handed_on_stays_while_more_is_read() {
        let (mut ours, mut theirs) = duplex(1 << 10);
        let mut inlet = Inlet::new(4);
        ours.write_all(b"abcd").await.expect("there is room");
        poll_fn(|cx| inlet.poll_fill(&mut theirs, cx)).await.expect("it comes");
        assert_eq!(inlet.take(1), 0..1);
        assert_eq!((inlet.at(0..1), inlet.unread()), (&b"a"[..], &b"bcd"[..]));
        ours.write_all(b"efghijklm").await.expect("there is room");
        while inlet.unread().len() < 12 {
            poll_fn(|cx| inlet.poll_fill(&mut theirs, cx)).await.expect("it comes");
        }
        assert_eq!(inlet.unread(), b"bcdefghijklm");
    }
}
