//! Heads and bodies → the bytes of a connection.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::AsyncWrite;

/// What is to be written to a connection.
#[derive(Debug, Default)]
pub(in crate::http) struct Outlet {
    /// A head, and what is written along with it.
    head: Vec<u8>,
    /// How much of it is written.
    written: usize,
    /// What is left of a body that follows it.
    body: Bytes,
    /// What is left of the end of that body, which is somewhere else.
    end: Bytes,
    needs_flush: bool,
}

impl Outlet {
    /// Where the next head is written, once everything before it was.
    pub(in crate::http) fn begin(&mut self) -> &mut Vec<u8> {
        self.head.clear();
        self.written = 0;
        &mut self.head
    }

    /// Where more is written.
    pub(in crate::http) fn more(&mut self) -> &mut Vec<u8> {
        match self.written == self.head.len() {
            true => self.begin(),
            false => &mut self.head,
        }
    }

    /// The body that follows.
    pub(in crate::http) fn follow(&mut self, body: Bytes) {
        self.body = body;
    }

    /// What comes after the body that follows.
    pub(in crate::http) fn end_with(&mut self, end: Bytes) {
        self.end = end;
    }

    /// Appends a text: a long one follows from where it is. There must be room.
    pub(in crate::http) fn append(&mut self, text: Vec<u8>) {
        match text.len() < LONG {
            true => self.more().extend_from_slice(&text),
            false => self.body = text.into(),
        }
    }

    /// Whether more may be appended: nothing comes after a long text before that is written, and of the rest less
    /// than `enough` waits.
    pub(in crate::http) fn has_room(&self, enough: usize) -> bool {
        self.body.is_empty() && self.end.is_empty() && self.waiting() < enough
    }

    /// Whether a byte of the head is written.
    pub(in crate::http) fn is_begun(&self) -> bool {
        self.written > 0
    }

    /// The bytes of the head that are not written.
    pub(in crate::http) fn waiting(&self) -> usize {
        self.head.len() - self.written
    }

    /// All bytes that are not written.
    pub(in crate::http) fn left(&self) -> usize {
        self.waiting() + self.body.len() + self.end.len()
    }

    pub(in crate::http) fn is_written(&self) -> bool {
        self.left() == 0 && !self.needs_flush
    }

    /// Writes no more of it.
    pub(in crate::http) fn give_up(&mut self) {
        (self.written, self.needs_flush) = (self.head.len(), false);
        (self.body, self.end) = (Bytes::new(), Bytes::new());
    }

    /// Gives back its memory once all is written. Taking some again costs little, and what another connection gave back
    /// is still in the cache.
    pub(in crate::http) fn release(&mut self) {
        if self.is_written() {
            (self.head, self.written) = (Vec::new(), 0);
        }
    }

    /// Writes what is left.
    pub(in crate::http) fn poll_write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.left() > 0 {
            let head = &self.head[self.written..];
            let stream = Pin::new(&mut *stream);
            let polled = match (head.is_empty(), self.body.is_empty(), self.end.is_empty()) {
                (_, true, true) => stream.poll_write(cx, head),
                (true, false, true) => stream.poll_write(cx, &self.body),
                _ => {
                    let all = [head, &self.body, &self.end].map(IoSlice::new);
                    stream.poll_write_vectored(cx, &all)
                }
            };
            match ready!(polled)? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                n => {
                    let of_head = n.min(self.waiting());
                    let of_body = (n - of_head).min(self.body.len());
                    self.written += of_head;
                    self.body.advance(of_body);
                    self.end.advance(n - of_head - of_body);
                }
            }
            self.needs_flush = true;
        }
        if self.needs_flush {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.needs_flush = false;
            // A long text is given back as soon as it is sent.
            (self.body, self.end) = (Bytes::new(), Bytes::new());
        }
        Poll::Ready(Ok(()))
    }
}

/// Appends a number in digits.
pub(in crate::http) fn write_number(number: u64, out: &mut Vec<u8>) {
    let (mut digits, mut rest) = ([0; 20], number);
    let mut at = digits.len();
    while at == digits.len() || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at..]);
}

/// A text of this length is written from where it is.
pub(in crate::http) const LONG: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn a_body_and_its_end_follow_the_head_whatever_is_written_at_once() {
        for room in [1, 2, 3, 7, 100, 1 << 20] {
            let (mut ours, mut theirs) = duplex(room);
            let writing = tokio::spawn(async move {
                let mut outlet = Outlet::default();
                for (body, end) in [("", ""), ("body", ""), ("", "end"), ("body", "end")] {
                    outlet.more().extend_from_slice(b"head ");
                    outlet.follow(Bytes::from_static(body.as_bytes()));
                    outlet.end_with(Bytes::from_static(end.as_bytes()));
                    assert_eq!(outlet.left(), 5 + body.len() + end.len());
                    assert_eq!(outlet.has_room(100), body.is_empty() && end.is_empty());
                    poll_fn(|cx| outlet.poll_write(&mut theirs, cx)).await.expect("it is read");
                    assert!(outlet.is_written() && outlet.has_room(1));
                }
                outlet.follow(Bytes::from_static(b"unsent"));
                outlet.end_with(Bytes::from_static(b"unsent"));
                outlet.give_up();
                assert!(outlet.is_written());
            });
            let mut read = String::new();
            ours.read_to_string(&mut read).await.expect("it is text");
            assert_eq!(read, "head head bodyhead endhead bodyend", "{room} bytes at once");
            writing.await.expect("it does not panic");
        }
    }
}
