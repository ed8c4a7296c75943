//! The life of a session: handshake, loss, renewal, end; and the fallback to HTTP+SSE.

use std::sync::Arc;

use trunkline_proto::client::{Client, OnSessionGone, OpenError, Opened, Start, on_session_gone};
use trunkline_proto::{CallError, Input};
use trunkline_wire::revision::Era;

use super::delivery::{End, EventKind};
use super::request::PostRequest;
use super::route::{AnswerPath, Route};
use super::verdicts::{Key, Known};
use super::{Handshake, HttpDriver, InFlight, Listening, PostFailure, SessionCheck};
use crate::clock::now;
use crate::handler::Handler;

impl<H: Handler> HttpDriver<H> {
    /// Sends `notifications/initialized` in the session that `initialize` opened. Queued messages
    /// follow once it is delivered.
    pub(super) fn confirm(&mut self, request: PostRequest) {
        if let Some(facts) = self.core.conversation.opened() {
            self.route = Arc::new(self.route.speaking(facts.revision));
        }
        let key = self.carry(request);
        self.handshake = Handshake::Confirming(key);
    }

    pub(super) fn on_confirmed(&mut self) {
        self.handshake = Handshake::Done;
        for request in std::mem::take(&mut self.held) {
            self.carry(request);
        }
        if self.route.answer_path == AnswerPath::Response {
            let listening = |key: u64, driver: &Self| {
                Arc::clone(&driver.post).listen(Arc::clone(&driver.route), key)
            };
            let key = self.next_key();
            let task = tokio::spawn(listening(key, self)).abort_handle();
            self.stream = Some(Listening { key, task });
            self.lets_listen = true;
        }
    }

    /// The handshake is done, for the first or a later session.
    pub(super) fn on_open(&mut self, facts: Arc<Opened>) {
        let era = facts.revision.era();
        if era == Era::Stateless {
            self.route = Arc::new(self.route.speaking(facts.revision));
            self.handshake = Handshake::Done;
        }
        let known = match (era, self.route.answer_path) {
            (Era::Stateless, _) => None,
            (Era::Stateful, AnswerPath::Response) => Some(Known::Stateful),
            (Era::Stateful, AnswerPath::Stream) => Some(Known::Sse),
        };
        // A client that does not probe for the stateless era learns nothing about it.
        let has_asked = !self.config.revisions.of_era(Era::Stateless).is_empty()
            && (self.config.prefers, era) != (Era::Stateful, Era::Stateful);
        if let Some(verdicts) = &self.target.verdicts
            && has_asked
        {
            verdicts.set(Key::of(&self.target), known, now());
        }
        self.known = None;
        self.opened.send(Ok(facts));
    }

    pub(super) fn on_failed(&mut self, error: OpenError) {
        let is_outage = matches!(error, OpenError::Unreachable(_) | OpenError::TimedOut);
        // The verdict may be out of date: start over without it.
        if self.known.take().is_some() && !is_outage {
            if let Some(verdicts) = &self.target.verdicts {
                verdicts.set(Key::of(&self.target), None, now());
            }
            self.out.clear();
            self.stream = None;
            self.route = Arc::new(self.route.without_session());
            self.handshake = Handshake::Opening;
            let config = Arc::clone(&self.config);
            self.core.conversation = Client::over_http(config, Start::Probe, now());
            return;
        }
        self.opened.send(Err(error));
        self.finish();
    }

    /// The server does not know the session of `request`. Once that is confirmed, the client retries
    /// the request in a new session.
    pub(super) fn on_session_gone(&mut self, route: &Arc<Route>, request: PostRequest) {
        // The answer may have come on another stream.
        let is_waited_for = request.id.is_some_and(|it| self.core.conversation.is_waited_for(it));
        // A session that we replaced is known to be gone.
        let is_gone = (!Arc::ptr_eq(route, &self.route)).then_some(true);
        match on_session_gone(request.is_second_try, is_gone) {
            OnSessionGone::GiveUp(why) => {
                if let Some(id) = request.id {
                    self.core.conversation.undelivered(id, why, now());
                }
            }
            OnSessionGone::SendAgain if is_waited_for => self.send_again(request),
            OnSessionGone::SendAgain => {}
            OnSessionGone::AskForSession => {
                self.check_session();
                // Responses and notifications die with the session.
                match (&mut self.session_check, request.id) {
                    (Some(session_check), Some(_)) if is_waited_for => {
                        session_check.doubtful.push(request)
                    }
                    // No `ping` can be sent during a handshake.
                    (None, Some(id)) => {
                        let why = "the server answered with HTTP status 404.".to_owned();
                        self.core.conversation.undelivered(id, CallError::Lost(why), now());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Sends a `ping` to check for the session, unless one is in flight.
    pub(super) fn check_session(&mut self) {
        if self.session_check.is_none() && matches!(self.handshake, Handshake::Done) {
            let ping = PostRequest::ping(self.core.conversation.spare_id());
            let key = self.carry(ping);
            self.session_check = Some(SessionCheck { key, doubtful: Vec::new() });
        }
    }

    /// The `ping` that checks for the session has ended.
    pub(super) fn on_session_checked(&mut self, route: &Arc<Route>, end: &End) {
        let Some(SessionCheck { doubtful, .. }) = self.session_check.take() else { return };
        let is_gone = matches!(end, End::SessionGone(_));
        for request in doubtful {
            match on_session_gone(request.is_second_try, Some(is_gone)) {
                OnSessionGone::GiveUp(why) => {
                    if let Some(id) = request.id {
                        self.core.conversation.undelivered(id, why, now());
                    }
                }
                _ => self.held.push_back(PostRequest { is_second_try: true, ..request }),
            }
        }
        let is_current = Arc::ptr_eq(route, &self.route);
        if is_gone && is_current && matches!(self.handshake, Handshake::Done) {
            self.stream = None;
            self.route = Arc::new(self.route.without_session());
            self.handshake = Handshake::Opening;
            self.core.conversation.renew(now());
        }
    }

    fn send_again(&mut self, request: PostRequest) {
        let request = PostRequest { is_second_try: true, ..request };
        match self.handshake {
            Handshake::Done => drop(self.carry(request)),
            _ => self.held.push_back(request),
        }
    }

    pub(super) fn may_try_stream(&self) -> bool {
        self.stream.is_none()
            && self.route.answer_path == AnswerPath::Response
            && self.core.conversation.opened().is_none()
    }

    /// Opens the HTTP+SSE stream and holds `initialize` until the server names its endpoint.
    pub(super) fn try_stream(&mut self, request: PostRequest, before: Option<PostFailure>) {
        self.handshake = Handshake::TryingStream { request: Box::new(request), before };
        let key = self.next_key();
        let listening = Arc::clone(&self.post).listen_sse(Arc::clone(&self.route), key);
        let task = tokio::spawn(listening).abort_handle();
        self.stream = Some(Listening { key, task });
    }

    /// Handles an event of the general stream.
    pub(super) fn on_stream(&mut self, kind: EventKind) {
        match kind {
            EventKind::Message(incoming) => self.receive(incoming, None),
            EventKind::Session(_) => {}
            EventKind::Endpoint(Ok(endpoint)) => {
                let handshake = std::mem::replace(&mut self.handshake, Handshake::Opening);
                if let Handshake::TryingStream { request, .. } = handshake {
                    self.route = Arc::new(self.route.with_endpoint(endpoint));
                    self.carry(*request);
                }
            }
            EventKind::Endpoint(Err(why)) => self.on_stream_refused(CallError::Invalid(why)),
            EventKind::End(end) => {
                self.stream = None;
                match (&self.handshake, end) {
                    (Handshake::TryingStream { .. }, End::Failed(why)) => {
                        self.on_stream_refused(why);
                    }
                    // An HTTP+SSE session ends with its stream.
                    _ if self.route.answer_path == AnswerPath::Stream => self.finish(),
                    _ => {}
                }
            }
        }
    }

    /// HTTP+SSE failed too: report how `initialize` failed over POST.
    fn on_stream_refused(&mut self, why: CallError) {
        let handshake = std::mem::replace(&mut self.handshake, Handshake::Opening);
        let Handshake::TryingStream { request, before } = handshake else { return };
        self.stream = None;
        let (now, id) = (now(), request.id.unwrap_or_default());
        match (before, why) {
            (_, why @ CallError::Invalid(_)) => self.core.conversation.undelivered(id, why, now),
            (Some(PostFailure::Answer(incoming)), _) => self.receive(incoming, request.id),
            (Some(PostFailure::Status(error)), _) => {
                self.core.conversation.unrecognised(id, error, now)
            }
            (None, why) => self.core.conversation.undelivered(id, why, now),
        }
    }

    /// Closes gracefully: ends the session, and lets messages without an answer arrive.
    pub(super) fn close(&mut self) {
        for id in
            self.session_check.take().into_iter().flat_map(|it| it.doubtful).filter_map(|it| it.id)
        {
            let why = "the server answered with HTTP status 404.".to_owned();
            self.core.conversation.undelivered(id, CallError::Lost(why), now());
        }
        // The server has not acted on these requests.
        for id in std::mem::take(&mut self.held).into_iter().filter_map(|it| it.id) {
            let why = "the connection is closed.".to_owned();
            self.core.conversation.undelivered(id, CallError::Unreachable(why), now());
        }
        self.core.handle(Input::Close, now());
        self.stream = None;
        self.out.retain(|it| it.id.is_none());
        self.core.refuse_requests();
        self.closing = Some(now() + self.limits.drain);
        self.timer.reset();
        if self.route.session.is_some() {
            let (key, route) = (self.next_key(), Arc::clone(&self.route));
            let ending = Arc::clone(&self.post).end_session(Arc::clone(&route));
            let in_flight = InFlight { key, id: None, method: "".into(), since: now(), route };
            self.out.add(in_flight, Box::pin(ending));
        }
    }

    /// Ends the conversation: nothing more can arrive.
    fn finish(&mut self) {
        self.out.clear();
        self.core.refuse_requests();
        self.closing = Some(now());
    }
}
