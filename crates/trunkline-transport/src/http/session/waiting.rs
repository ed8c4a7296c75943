//! A POST that waits until it is known how it is answered.
//!
//! The handler of its one call runs in the task of the POST: nobody else has to be woken for the answer. If the
//! POST is answered or given up before the handler is done, the handler goes on in a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use trunkline_proto::http::streams::Reader;
use trunkline_proto::{CallKey, Conversation};

use super::deferred::Todo;
use super::{Posted, Session};
use crate::clock::now;
use crate::driver_core::DeadlineTimer;
use crate::handler::{Guarded, Handler};

/// A POST that waits until it is known how it is answered.
pub(in crate::http) struct Waiting<'a, H: Handler> {
    session: &'a Session<H>,
    /// How it is answered, where nobody has to be waited for.
    known: Option<Posted>,
    reader: Option<Reader>,
    /// What its message asks for, until the first poll.
    todo: Option<Todo>,
    /// The handler that works on its one call here.
    at_work: Option<(CallKey, Guarded)>,
    timer: DeadlineTimer,
}

impl<'a, H: Handler> Waiting<'a, H> {
    pub(super) fn new(session: &'a Session<H>, reader: Reader, todo: Option<Todo>) -> Self {
        let (known, at_work, timer) = (None, None, DeadlineTimer::default());
        Self { session, known, reader: Some(reader), todo, at_work, timer }
    }

    pub(super) fn known(session: &'a Session<H>, posted: Posted) -> Self {
        let (todo, at_work, timer) = (None, None, DeadlineTimer::default());
        Self { session, known: Some(posted), reader: None, todo, at_work, timer }
    }

    /// Starts what its message asks for. Several calls go on side by side, so each gets a task.
    fn begin(&mut self, cx: &mut Context<'_>) -> Option<Posted> {
        let Some(call) = self.todo.as_mut().and_then(Todo::take_only) else {
            self.session.perform(self.todo.take());
            return None;
        };
        self.todo = None;
        let key = call.key;
        match self.session.start(call, cx) {
            Ok(outcome) => self.session.finish(key, outcome, self.reader),
            Err(future) => {
                self.at_work = Some((key, future));
                None
            }
        }
    }

    /// Goes on with the handler.
    fn work(&mut self, cx: &mut Context<'_>) -> Option<Posted> {
        let (key, future) = self.at_work.as_mut()?;
        let Poll::Ready(outcome) = Pin::new(future).poll(cx) else { return None };
        let posted = self.session.finish(*key, outcome, self.reader);
        self.at_work = None;
        posted
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Posted> {
        loop {
            let Some(reader) = self.reader else { return Poll::Ready(Posted::NoReply) };
            let mut state = self.session.lock();
            if let Some(posted) = state.posted(reader, self.session.tags, now) {
                drop(state);
                self.reader = None;
                return Poll::Ready(posted);
            }
            state.wake_later(reader.via, cx.waker());
            let next = state.core.conversation.next_timeout();
            drop(state);
            if self.at_work.is_none() {
                return Poll::Pending;
            }
            ready!(self.timer.poll(next, cx));
            self.session.tick();
        }
    }
}

impl<H: Handler> Future for Waiting<'_, H> {
    type Output = Posted;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Posted> {
        let this = &mut *self;
        if let Some(posted) = this.known.take() {
            return Poll::Ready(posted);
        }
        let posted = match this.todo.is_some() {
            true => this.begin(cx),
            false => this.work(cx),
        };
        match posted {
            Some(posted) => {
                this.reader = None;
                Poll::Ready(posted)
            }
            None => this.poll_answer(cx),
        }
    }
}

impl<H: Handler> Drop for Waiting<'_, H> {
    fn drop(&mut self) {
        if let Some(reader) = self.reader {
            self.session.detach(reader);
        }
        let Some((key, future)) = self.at_work.take() else { return };
        // Nobody wants the outcome of a call that was cancelled, or of a session that is over.
        let is_wanted = self.session.lock().core.handlers.is_wanted(key);
        if is_wanted {
            self.session.work_on(key, future);
        }
    }
}
