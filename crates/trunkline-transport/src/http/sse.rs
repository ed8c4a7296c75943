//! Messages → events, and keep-alive comments on a quiet stream.

use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use trunkline_proto::Outgoing;
use trunkline_wire::frame::flatten;
use trunkline_wire::frame::sse::write_comment;

use crate::clock::now;
use crate::driver_core::DeadlineTimer;

/// Appends a message as an event without an id.
pub(super) fn write_event(message: &Outgoing, out: &mut Vec<u8>) {
    // With room for what may end the chunk that it is sent in.
    out.reserve(message.size() + b"data: \n\n\r\n".len());
    out.extend_from_slice(b"data: ");
    let start = out.len();
    message.write(out);
    flatten(&mut out[start..]);
    out.extend_from_slice(b"\n\n");
}

/// When a comment is sent on a quiet stream, so that proxies do not take it for dead and we notice if it is.
pub(super) struct Comments {
    every: Duration,
    due: Option<Instant>,
}

impl Comments {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, due: None }
    }

    /// An event was sent.
    pub(super) fn reset(&mut self) {
        self.due = None;
    }

    /// When the next comment is due, if nothing else is sent.
    pub(super) fn due(&mut self) -> Instant {
        *self.due.get_or_insert_with(|| now() + self.every)
    }

    /// The comment, if it is due.
    pub(super) fn comment(&mut self) -> Option<Vec<u8>> {
        self.due.take_if(|due| *due <= now())?;
        let mut out = Vec::new();
        write_comment("", &mut out);
        Some(out)
    }
}

/// The same with a timer of its own.
pub(super) struct KeepAlive {
    comments: Comments,
    timer: DeadlineTimer,
}

impl KeepAlive {
    pub(super) fn new(every: Duration) -> Self {
        Self { comments: Comments::new(every), timer: DeadlineTimer::default() }
    }

    /// An event was sent.
    pub(super) fn reset(&mut self) {
        self.comments.reset();
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let due = self.comments.due();
        loop {
            ready!(self.timer.poll(Some(due), cx));
            // It may have been set before the last event.
            if let Some(comment) = self.comments.comment() {
                return Poll::Ready(comment);
            }
        }
    }
}
