//! A POST that waits until it is known how it is answered.

use std::task::{Context, Poll};

use trunkline_proto::http::streams::{Beginning, Reader};

use super::{Posted, Session};
use crate::handler::Handler;

/// A POST that waits until it is known how it is answered.
pub(super) struct Waiting<'a, H: Handler> {
    pub(super) session: &'a Session<H>,
    pub(super) reader: Option<Reader>,
}

impl<H: Handler> Waiting<'_, H> {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Posted> {
        let Some(reader) = self.reader else { return Poll::Ready(Posted::NoReply) };
        let mut state = self.session.lock();
        let posted = match state.streams.beginning(reader) {
            Beginning::Unknown => {
                state.wake_later(reader.via, cx.waker());
                return Poll::Pending;
            }
            Beginning::Whole(status, text) => Posted::Whole(status, text),
            Beginning::Events => Posted::Events(reader),
            Beginning::Silence => Posted::NoReply,
        };
        drop(state);
        self.reader = None;
        Poll::Ready(posted)
    }
}

impl<H: Handler> Drop for Waiting<'_, H> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader {
            self.session.detach(reader);
        }
    }
}
