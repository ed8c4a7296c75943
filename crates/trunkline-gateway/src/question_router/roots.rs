//! `roots/list` that a server sends outside a call: as it starts, or after `roots/list_changed`. The server
//! keeps the roots, so they must be those of the caller it serves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use trunkline_transport::conversation_handle::Request;
use trunkline_transport::handler::Answer;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;

use super::{OpenCalls, QuestionRouter, Served};
use crate::upstream_call::{UpstreamCallContext, no_roots};

/// What is known of a server's requests for roots.
#[derive(Default)]
pub(super) struct Roots {
    /// Requests that wait for the first caller.
    waiting: Vec<oneshot::Sender<Arc<UpstreamCallContext>>>,
    /// Whether the server was told that there are none, for lack of a caller.
    was_told_none: bool,
    /// How many requests are unanswered.
    open: usize,
    /// Whether the server asked before the first call.
    was_asked: bool,
    /// Whether the first call was made.
    is_settled: bool,
    /// The last caller with a session, asked when no call is open.
    last: Option<Arc<UpstreamCallContext>>,
    told: Arc<Notify>,
}

/// Whose roots are meant.
enum Whose {
    /// Those of the open call's caller.
    Open(Arc<UpstreamCallContext>),
    /// Those of the session that called last.
    Last(Arc<UpstreamCallContext>),
    /// Those of the first caller.
    First(oneshot::Receiver<Arc<UpstreamCallContext>>),
}

/// The result of asking.
enum Next {
    Found(Json),
    /// Ask these next.
    Again(Whose),
}

impl Roots {
    /// A call begins.
    pub(super) fn opened(&mut self, context: &Arc<UpstreamCallContext>) {
        if context.caller.capabilities().roots.is_some() {
            // A request that timed out ignores the send.
            self.waiting.drain(..).for_each(|it| drop(it.send(Arc::clone(context))));
            self.last = context.caller.has_session.then(|| Arc::clone(context));
        }
    }
}

impl OpenCalls {
    fn whose(&mut self) -> Option<Whose> {
        if let Some(context) = self.only_call() {
            return Some(Whose::Open(context));
        }
        match self.served {
            Served::Nobody if self.roots.waiting.len() < MOST => {
                let (tell, told) = oneshot::channel();
                self.roots.waiting.push(tell);
                Some(Whose::First(told))
            }
            Served::One(_) if self.open.is_empty() => self.roots.last.clone().map(Whose::Last),
            _ => None,
        }
    }
}

impl QuestionRouter {
    /// Answers a `roots/list` that names no call.
    pub(super) fn roots(&self) -> Answer {
        let mut calls = self.lock();
        let (whose, is_by_itself) = (calls.whose(), !calls.roots.is_settled);
        calls.roots.was_asked |= is_by_itself;
        let Some((whose, this)) = whose.zip(self.this.upgrade()) else {
            return Answer::Now(Ok(no_roots()));
        };
        calls.roots.open += 1;
        drop(calls);
        if let Some(watcher) = self.watcher.upgrade().filter(|_| is_by_itself) {
            watcher.asks_for_roots(&self.server);
        }
        let answered = Answered(this);
        Answer::later(async move {
            let this = &answered.0;
            let mut found = this.roots_of(whose).await;
            // A question is cancelled with its call, but this one does not belong to it: ask the next.
            while let Some(Next::Again(whose)) = found {
                found = this.roots_of(whose).await;
            }
            Ok(match found {
                Some(Next::Found(roots)) => roots,
                _ => no_roots(),
            })
        })
    }

    async fn roots_of(&self, whose: Whose) -> Option<Next> {
        let found = match whose {
            Whose::Open(context) => {
                let said = Arc::clone(&context).ask(METHOD, Object::default()).await;
                let mut calls = self.lock();
                let is_over = !calls.open.iter().any(|it| Arc::ptr_eq(it, &context));
                if said.is_err() && is_over {
                    return calls.whose().map(Next::Again);
                }
                said.ok()
            }
            Whose::Last(context) => {
                let mut request = Request::new(METHOD, Object::default());
                request.timing = Some(crate::question::THINKING);
                context.handle.ask(request).await.ok()
            }
            Whose::First(told) => match timeout(PATIENCE, told).await {
                Ok(Ok(context)) => return Some(Next::Again(Whose::Open(context))),
                _ => {
                    self.lock().roots.was_told_none = true;
                    None
                }
            },
        };
        found.map(Next::Found)
    }

    /// Whether the server was told that there are no roots because nobody had called. Returns `true` once.
    pub(crate) fn was_told_none(&self) -> bool {
        std::mem::take(&mut self.lock().roots.was_told_none)
    }

    /// Completes when the server's requests for roots are answered. Returns whether it asked.
    pub(crate) async fn has_roots(&self) -> bool {
        loop {
            let told = {
                let calls = self.lock();
                if calls.roots.open == 0 {
                    return calls.roots.was_asked;
                }
                Arc::clone(&calls.roots.told).notified_owned()
            };
            if timeout(PATIENCE, told).await.is_err() {
                return true;
            }
        }
    }

    /// From now on calls are made, and requests for roots may belong to them.
    pub(crate) fn settled(&self) {
        self.lock().roots.is_settled = true;
    }

    /// Whether it keeps the roots of a session.
    pub(crate) fn keeps_roots_of(&self, session: u64) -> bool {
        let calls = self.lock();
        matches!(calls.served, Served::One(_))
            && calls.roots.last.as_ref().is_some_and(|it| it.handle.number() == session)
    }
}

/// Guard of an unanswered request.
struct Answered(Arc<QuestionRouter>);

impl Drop for Answered {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        calls.roots.open -= 1;
        calls.roots.told.notify_waiters();
    }
}

const METHOD: Method = Method::RootsList;
/// How long a request at the start waits for a caller: the caller that caused the start calls at once.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many requests may wait.
const MOST: usize = 8;
