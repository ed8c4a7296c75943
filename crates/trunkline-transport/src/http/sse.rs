//! Messages → events, and keep-alive comments on a quiet stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use trunkline_proto::Outgoing;
use trunkline_wire::frame::flatten;
use trunkline_wire::frame::sse::write_comment;

/// Appends a message as an event without an id.
pub(super) fn write_event(message: &Outgoing, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    let start = out.len();
    message.write(out);
    flatten(&mut out[start..]);
    out.extend_from_slice(b"\n\n");
}

/// Sends a comment on a quiet stream, so that proxies do not take it for dead and we notice if it is.
pub(super) struct KeepAlive {
    every: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    due: Option<Instant>,
}

impl KeepAlive {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, timer: None, due: None }
    }

    /// An event was sent.
    pub(super) fn reset(&mut self) {
        self.due = None;
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let due = *self.due.get_or_insert_with(|| Instant::now() + self.every);
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(cx).map(|()| {
            self.due = None;
            let mut out = Vec::new();
            write_comment("", &mut out);
            out
        })
    }
}
