//! A byte stream → the same stream, with its lines recorded.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::transcript::Recorder;

/// A stream of the client, with a recorder.
pub(super) struct Tap<T> {
    stream: T,
    by_client: bool,
    line: Vec<u8>,
    recorder: Recorder,
}

impl<T> Tap<T> {
    /// What the client reads.
    pub(super) fn reader(stream: T, recorder: &Recorder) -> Self {
        Self { stream, by_client: false, line: Vec::new(), recorder: recorder.clone() }
    }

    /// What the client writes.
    pub(super) fn writer(stream: T, recorder: &Recorder) -> Self {
        Self { stream, by_client: true, line: Vec::new(), recorder: recorder.clone() }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        self.line.extend_from_slice(parts.next().unwrap_or_default());
        for part in parts {
            self.recorder.take(self.by_client, &self.line);
            self.line.clear();
            self.line.extend_from_slice(part);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Tap<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        this.hear(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tap<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.stream).poll_write(cx, bytes))?;
        this.hear(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
