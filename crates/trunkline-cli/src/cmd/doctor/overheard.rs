//! A server's stdout, with lines that are not messages recorded separately.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

/// What a server wrote to its stdout.
#[derive(Clone, Default)]
pub(super) struct StdoutRecorder(Arc<Recorded>);

#[derive(Default)]
struct Recorded {
    lines: Mutex<Lines>,
    news: Notify,
}

#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    odd: Vec<String>,
    /// Whether any line was a message.
    has_spoken: bool,
}

impl StdoutRecorder {
    fn hear(&self, bytes: &[u8]) {
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.has_spoken {
            return;
        }
        for &byte in bytes {
            if byte != b'\n' {
                if lines.begun.len() < LONGEST {
                    lines.begun.push(byte);
                }
                continue;
            }
            let line = std::mem::take(&mut lines.begun);
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            // Header lines of the other framing are messages too.
            if line.starts_with('{') || line.to_ascii_lowercase().starts_with("content-length:") {
                lines.has_spoken = true;
                break;
            }
            if !line.is_empty() && lines.odd.len() < MOST {
                lines.odd.push(line);
            }
        }
        self.0.news.notify_one();
    }

    /// The lines that were not messages.
    pub(super) fn odd(&self) -> Vec<String> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).odd.clone()
    }

    /// Ready when there was such a line, and no message soon after.
    pub(super) async fn is_odd(&self) {
        loop {
            self.0.news.notified().await;
            if self.odd().is_empty() {
                continue;
            }
            tokio::time::sleep(SOON).await;
            let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if !lines.has_spoken {
                return;
            }
        }
    }
}

/// A byte stream that a [`StdoutRecorder`] records.
pub(super) struct Overheard<R> {
    pub(super) from: R,
    pub(super) recorder: StdoutRecorder,
}

impl<R: AsyncRead + Unpin> AsyncRead for Overheard<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let read = Pin::new(&mut self.from).poll_read(cx, to);
        self.recorder.hear(&to.filled()[before..]);
        read
    }
}

const MOST: usize = 5;
const LONGEST: usize = 500;
/// How long a server that prints other things has until its first message.
const SOON: std::time::Duration = std::time::Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_kept_until_one_comes() {
        let recorder = StdoutRecorder::default();
        recorder.hear(b"Listening on\n port 3000\n\n{\"jsonrpc\":\"2.0\"}\nmore\n");
        assert_eq!(recorder.odd(), ["Listening on", "port 3000"]);
        recorder.hear(b"after that nobody listens\n");
        assert_eq!(recorder.odd().len(), 2);
        let recorder = StdoutRecorder::default();
        (0..9).for_each(|_| recorder.hear(b"x\n"));
        assert_eq!(recorder.odd().len(), MOST);
    }
}
