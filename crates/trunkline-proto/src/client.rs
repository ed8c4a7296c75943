//! The client's end of a conversation: find the era, then speak it.
//!
//! A question of the server reaches the host as [`Output::Call`] in both eras: as a request (stateful)
//! or inside an `input_required` result (stateless).

mod config;
mod done;
mod error;
#[cfg(feature = "http")]
pub mod http;
mod notifications;
mod owner;
mod probe;
mod rounds;
mod undelivered;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::era::stateless::Envelope;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{
    ErrorObject, Id, Incoming, Malformed, MalformedKind, Message, MethodName, Object, Outcome,
    Params,
};
use trunkline_wire::method::{Kind, Method, Row, Sender};
use trunkline_wire::model::meta;
use trunkline_wire::revision::{Era, Revision};

use crate::input_required::Round;
use crate::pending::{Asked, Calls, Clock, OpenCall, Sent, add_meta, cancelled, earlier};
use crate::{
    Ask, Attached, Call, CallError, CallKey, Cause, Conversation, Input, Outgoing, Output, Peer,
    RequestStream, Ticket, checked,
};

pub use config::{Config, Opened, Start};
pub use done::{Done, OnSessionGone, on_session_gone};
pub use error::{HttpError, OpenError};
use error::{unknown_method, unsupported_question};

/// The client end of one conversation.
#[derive(Debug)]
pub struct Client {
    config: Arc<Config>,
    phase: Phase,
    asked: Asked<Waiting>,
    calls: Calls<Origin>,
    peer: Arc<Peer>,
    out: VecDeque<Output>,
    /// The deadline of the handshake, over all attempts.
    open_by: Instant,
    /// How many malformed messages have arrived.
    noise: u64,
    /// Whether each request has its own HTTP exchange, whose end is reported.
    is_http: bool,
    /// The revision of the lost session that a new one replaces.
    renewing: Option<Revision>,
    /// Until when the server may still work on a call that we gave up.
    aftermath: Option<Instant>,
    /// The last `_meta` of a call, if it had one, and the merged result (a one-entry cache).
    last_meta: Option<(Option<Json>, Json)>,
}

#[derive(Debug)]
enum Phase {
    /// `server/discover` is in flight.
    Probing { id: i64, revision: Revision, silence: Instant, deadline: Instant, again: bool },
    /// `initialize` is in flight.
    Initializing { id: i64, deadline: Instant, may_probe: bool },
    /// The handshake is done. Every stateless request repeats the envelope.
    Open { facts: Arc<Opened>, envelope: Object },
    /// The handshake failed.
    Over,
}

/// What the client keeps with a call of its own.
#[derive(Debug)]
struct Waiting {
    /// What to send again, for calls that may ask or be retried.
    params: Option<Object>,
    /// Whether the answer may be `input_required`.
    may_ask: bool,
    /// Whether the caller gets the questions as they are.
    relays: bool,
    /// Attached to the questions.
    attached: Attached,
    /// How often in a row it was retried because its answer was lost.
    repeats: u32,
    /// Whether anything has arrived for it: a subscription is acknowledged.
    is_heard: bool,
    wants_progress: bool,
    rounds: u32,
    /// The questions being answered, after an `input_required` result.
    round: Option<Round>,
    /// When to send it again: after a round without questions, or a lost answer.
    due: Option<Instant>,
}

/// The origin of a question.
#[derive(Debug)]
enum Origin {
    /// A request of the server, and the call of ours it belongs to, if known.
    Wire { during: Option<Ticket> },
    /// An entry of an `input_required` result.
    Round { ticket: Ticket, name: String },
}

impl Client {
    /// A client that starts the handshake at once: drain [`Conversation::poll`].
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Self::begin(config, false, Start::Probe, now)
    }

    /// The same over HTTP, where silence is an outage. The transport reports the fate of each request:
    /// an answer with [`Input::Received`], a failure with [`Client::undelivered`] or
    /// [`Client::unrecognised`].
    pub fn over_http(config: Arc<Config>, start: Start, now: Instant) -> Self {
        Self::begin(config, true, start, now)
    }

    fn begin(config: Arc<Config>, is_http: bool, start: Start, now: Instant) -> Self {
        let mut client = Self {
            config,
            phase: Phase::Over,
            asked: Asked::default(),
            calls: Calls::default(),
            peer: Arc::default(),
            out: VecDeque::new(),
            open_by: now,
            noise: 0,
            is_http,
            renewing: None,
            last_meta: None,
            aftermath: None,
        };
        client.open_by = now + client.config.bounds.open;
        let begins_old = start == Start::Initialize || client.config.prefers == Era::Stateful;
        let is_old = begins_old && !client.config.revisions.of_era(Era::Stateful).is_empty();
        match client.config.revisions.of_era(Era::Stateless).newest() {
            Some(revision) if !is_old => client.probe(revision, false, now),
            stateless => client.initialize(stateless.is_some()),
        }
        client
    }

    /// What the handshake found, once it is done.
    pub fn opened(&self) -> Option<&Arc<Opened>> {
        match &self.phase {
            Phase::Open { facts, .. } => Some(facts),
            _ => None,
        }
    }

    /// How many malformed texts the server has sent.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    fn on_incoming(&mut self, incoming: Incoming, via: RequestStream, now: Instant) {
        match incoming {
            Incoming::One(message) => self.on_message(message, via, now),
            // A server of 2025-03-26 may send batches; each element stands for itself.
            Incoming::Batch(items) => {
                // The length of a line bounds a batch, so it is read to its end.
                for item in items {
                    match item {
                        Ok(message) => self.on_message(message, via, now),
                        Err(malformed) => self.on_malformed(&malformed, now),
                    }
                }
            }
            Incoming::Bad(malformed) => self.on_malformed(&malformed, now),
        }
    }

    fn on_message(&mut self, message: Message, via: RequestStream, now: Instant) {
        match message {
            Message::Response { id: Some(id), outcome } => self.on_response(&id, outcome, now),
            // An error without an id cannot be matched to a request.
            Message::Response { id: None, .. } => self.noise += 1,
            Message::Request { id, method, params } => {
                self.on_request(id, &method, params, via, now);
            }
            Message::Notification { method, params } => {
                self.on_notification(&method, params, via, now);
            }
        }
    }

    /// Ignores malformed output of the server, unless it was meant as an answer to us.
    fn on_malformed(&mut self, malformed: &Malformed, now: Instant) {
        self.noise += 1;
        let Some(id) = malformed.id.as_ref().filter(|_| malformed.is_response) else { return };
        let why = malformed.to_error().message;
        let is_out = self.asked.peek(id).is_some_and(|it| it.with.round.is_none());
        let Some(sent) = is_out.then(|| self.asked.settle(id)).flatten() else {
            // Perhaps the answer to the handshake: a malformed one counts as a refusal.
            return self.on_response(id, Err(malformed.to_error()), now);
        };
        let error = match malformed.kind {
            MalformedKind::TooLong => {
                CallError::Peer(ErrorObject::internal("message_too_large", why))
            }
            _ => CallError::Invalid(why),
        };
        self.settle(sent.ticket, Err(error));
    }

    fn on_response(&mut self, id: &Id, outcome: Outcome, now: Instant) {
        match &self.phase {
            Phase::Probing { id: probe, .. } if *id == Id::Number(*probe) => {
                return self.on_probe_answer(outcome, now);
            }
            Phase::Initializing { id: handshake, .. } if *id == Id::Number(*handshake) => {
                return self.on_initialize_answer(outcome, now);
            }
            _ => {}
        }
        let stateless = self.opened().is_some_and(|it| it.revision.era() == Era::Stateless);
        // A call with an open round has no request in flight, so nothing can answer it.
        if self.asked.peek(id).is_none_or(|it| it.with.round.is_some()) {
            return self.noise += 1;
        }
        match outcome {
            Ok(result) if stateless => self.on_stateless_result(id, result, now),
            outcome => {
                let sent = self.asked.settle(id).expect("it was there a moment ago");
                self.settle(sent.ticket, checked(outcome));
            }
        }
    }

    /// Handles a request of the server: only before 2026-07-28, and only what we declared.
    fn on_request(
        &mut self,
        id: Id,
        method: &MethodName,
        params: Params,
        via: RequestStream,
        now: Instant,
    ) {
        let revision = match &self.phase {
            Phase::Open { facts, .. } if facts.revision.era() == Era::Stateful => facts.revision,
            // Only a stateful server sends requests, and it may ping before the handshake.
            Phase::Probing { .. } | Phase::Initializing { .. } => Revision::LATEST_STATEFUL,
            _ => return self.noise += 1,
        };
        let outcome = match (method.row(Sender::Server, revision), params.into_object()) {
            _ if id == Id::Null => return self.noise += 1,
            _ if self.calls.has_id(&id) => Err(ErrorObject::invalid_request(
                "This id belongs to a request that is still open.",
            )),
            (Some(row), Some(_)) if row.method == Method::Ping => Ok(Json::empty_object()),
            (Some(row), Some(params))
                if row.kind == Kind::Request && self.config.capabilities.supports(row.gate) =>
            {
                if let Some(error) =
                    unsupported_question(row.name, &params, &self.config.capabilities)
                {
                    Err(error)
                } else if self.calls.len() < self.config.bounds.in_flight {
                    let origin = Origin::Wire { during: self.owner(via, &params, now) };
                    return self.open_call(id, origin, row, params, revision, now);
                } else {
                    Err(ErrorObject::internal("overloaded", "Too many questions are open."))
                }
            }
            (Some(_), None) => Err(ErrorObject::invalid_params("Parameters must be an object.")),
            _ => Err(unknown_method()),
        };
        self.send(Message::Response { id: Some(id), outcome });
    }

    /// Passes a question of the server to the host.
    fn open_call(
        &mut self,
        id: Id,
        origin: Origin,
        row: &'static Row,
        mut params: Object,
        revision: Revision,
        now: Instant,
    ) {
        let key = self.calls.next_key();
        let attached = match &origin {
            Origin::Wire { during } => during.and_then(|it| self.asked.by_ticket(it)),
            Origin::Round { ticket, .. } => self.asked.by_ticket(*ticket),
        };
        let attached = attached.map(|it| it.with.attached.clone()).unwrap_or_default();
        let call = Call {
            key,
            id: id.clone(),
            method: row,
            meta: params.take("_meta"),
            params,
            revision,
            peer: Arc::clone(&self.peer),
            via: RequestStream::default(),
            is_unseen: false,
            wants_progress: false,
            log_level: None,
            attached,
        };
        // Questions wait for people, so only the hard deadline applies, also to our calls that the
        // server may be asking for.
        let mut clock = Clock::start(self.config.bounds.call, now);
        clock.hold();
        if matches!(origin, Origin::Wire { .. }) {
            self.asked.clocks().for_each(Clock::hold);
        }
        self.calls.add(OpenCall {
            key,
            id,
            revision,
            clock: Some(clock),
            progress: None,
            log_level: None,
            with: origin,
        });
        self.out.push_back(Output::Call(call));
    }

    fn on_finished(&mut self, call: CallKey, outcome: Outcome, now: Instant) {
        let Some(open) = self.calls.close(call) else { return };
        match open.with {
            Origin::Wire { .. } => {
                self.send(Message::Response { id: Some(open.id), outcome });
                self.resume_calls(now);
            }
            Origin::Round { ticket, name } => self.on_answer(ticket, &name, outcome, now),
        }
    }

    /// After the server's last question is answered, our calls have their idle deadlines again.
    fn resume_calls(&mut self, now: Instant) {
        if self.calls.iter().any(|it| matches!(it.with, Origin::Wire { .. })) {
            return;
        }
        for sent in self.asked.iter_mut().filter(|it| it.with.round.is_none()) {
            if let Some(clock) = &mut sent.clock {
                clock.resume(now);
            }
        }
    }

    fn on_ask(&mut self, ask: Ask, now: Instant) {
        let refused =
            |message: String| Err(CallError::Refused(ErrorObject::invalid_request(message)));
        let Phase::Open { facts, .. } = &self.phase else {
            return self.settle(ask.ticket, refused("The connection is not open.".to_owned()));
        };
        let row = ask.method.row(Sender::Client, facts.revision);
        let Some(row) = row.filter(|row| row.kind == Kind::Request) else {
            let message = format!("Revision {} has no method `{}`.", facts.revision, ask.method);
            return self.settle(ask.ticket, refused(message));
        };
        if row.method == Method::Initialize {
            return self.settle(ask.ticket, refused("The handshake is over.".to_owned()));
        }
        // 2024-11-05 has completion without a capability for it.
        let ungated = row.method == Method::CompletionComplete && !facts.revision.profile().audio;
        if !ungated && !facts.capabilities.supports(row.gate) {
            let message = format!("The server does not offer `{}`.", ask.method);
            return self.settle(ask.ticket, refused(message));
        }
        let may_ask = facts.revision.era() == Era::Stateless && row.method.may_ask();
        // Notifications of a subscription are not progress.
        let wants_progress = ask.wants_progress && row.method != Method::SubscriptionsListen;
        let may_repeat = self.is_http && undelivered::may_repeat(row.method, facts.revision.era());
        let is_kept = (may_ask && !ask.relays) || may_repeat || row.method == Method::TasksResult;
        // A relay sends the answers to an earlier round itself.
        let is_answer = ask.relays && (ANSWERS.iter().any(|it| ask.params.get(it).is_some()));
        let waiting = Waiting {
            params: is_kept.then(|| ask.params.clone()),
            may_ask,
            relays: ask.relays,
            attached: ask.attached,
            repeats: 0,
            is_heard: false,
            wants_progress,
            rounds: u32::from(is_answer),
            round: None,
            due: None,
        };
        // A subscription has no deadline; every other call has.
        let timing = ask.timing.unwrap_or(self.config.bounds.call);
        let mut clock =
            (row.method != Method::SubscriptionsListen).then(|| Clock::start(timing, now));
        if self.calls.iter().any(|it| matches!(it.with, Origin::Wire { .. })) {
            clock.iter_mut().for_each(Clock::hold);
        }
        let (id, method) = (self.asked.next_id(), row.method);
        self.send_call(id, method, ask.params, wants_progress);
        self.asked.add(Sent { id, ticket: ask.ticket, method, clock, with: waiting });
    }

    /// Sends a request with the `_meta` members of the era.
    fn send_call(&mut self, id: i64, method: Method, mut params: Object, progress: bool) {
        // A session has no envelope.
        if !progress && matches!(&self.phase, Phase::Open { envelope, .. } if envelope.is_empty()) {
            return self.request(id, method, params);
        }
        // The calls of one host mostly have the same `_meta`, or none.
        if !progress
            && let Some((last, whole)) = &self.last_meta
            && params.get("_meta") == last.as_ref()
        {
            params.set("_meta", whole.clone());
            return self.request(id, method, params);
        }
        let given = params.get("_meta").cloned();
        let mut more = match &self.phase {
            Phase::Open { envelope, .. } => envelope.clone(),
            _ => Object::default(),
        };
        if progress {
            more.set(meta::PROGRESS_TOKEN, Id::Number(id).to_json());
        }
        add_meta(&mut params, more, &CALLER_META);
        if !progress {
            self.last_meta = params.get("_meta").cloned().map(|whole| (given, whole));
        }
        self.request(id, method, params);
    }

    fn cancel(&mut self, ticket: Ticket, reason: &str, now: Instant) {
        let Some(sent) = self.asked.settle_ticket(ticket) else { return };
        self.drop_round(ticket);
        if sent.with.round.is_none() {
            self.gave_up(now);
            self.send(cancelled(sent.id, reason));
        }
    }

    fn on_tick(&mut self, now: Instant) {
        self.on_handshake_tick(now);
        for late in self.asked.expire(now) {
            self.drop_round(late.ticket);
            if late.with.round.is_none() {
                self.gave_up(now);
                self.send(cancelled(late.id, "No answer in time."));
            }
            self.settle(late.ticket, Err(CallError::TimedOut));
        }
        for late in self.calls.expire(now) {
            self.out.push_back(Output::Abandon(late.key));
            let error = ErrorObject::internal("timeout", "Nobody answered the question in time.");
            match late.with {
                Origin::Wire { .. } => {
                    self.send(Message::error(late.id, error));
                    self.resume_calls(now);
                }
                Origin::Round { ticket, name } => self.on_answer(ticket, &name, Err(error), now),
            }
        }
        self.retry_due(now);
    }

    fn open(&mut self, facts: Opened) {
        if self.renewing.take().is_some_and(|it| it != facts.revision) {
            let why = "a new session speaks another revision than the one before.";
            return self.fail(OpenError::Invalid(why.to_owned()));
        }
        let envelope = match facts.revision.era() {
            Era::Stateful => Object::default(),
            Era::Stateless => self.envelope(facts.revision),
        };
        self.peer = Arc::new(Peer {
            info: facts.info.clone(),
            server: facts.capabilities.clone(),
            ..Peer::default()
        });
        let facts = Arc::new(facts);
        self.last_meta = None;
        self.phase = Phase::Open { facts: Arc::clone(&facts), envelope };
        self.out.push_back(Output::Opened(facts));
    }

    fn envelope(&self, revision: Revision) -> Object {
        let mut envelope = Envelope::new(revision, self.config.capabilities.clone());
        envelope.client_info = Some(self.config.info.clone());
        envelope.log_level = self.config.log_level;
        Object::parse(envelope.to_json().get()).expect("an envelope is an object")
    }

    fn fail(&mut self, error: OpenError) {
        self.phase = Phase::Over;
        self.out.push_back(Output::Failed(error));
    }

    fn send(&mut self, message: Message) {
        self.out.push_back(Output::Send(Outgoing::One(message), None));
    }

    fn settle(&mut self, ticket: Ticket, outcome: Result<Json, CallError>) {
        self.out.push_back(Output::Settled { ticket, outcome });
    }
}

impl Conversation for Client {
    fn handle(&mut self, input: Input, now: Instant) {
        match input {
            Input::Received(incoming, via) => self.on_incoming(incoming, via, now),
            Input::Finished { call, outcome } => self.on_finished(call, outcome, now),
            Input::Ask(ask) => self.on_ask(ask, now),
            Input::Cancel(ticket) => self.cancel(ticket, "Nobody waits any more.", now),
            Input::Notify { method, params } => {
                let known = self
                    .opened()
                    .is_some_and(|it| method.row(Sender::Client, it.revision).is_some());
                if known {
                    let absent = params.is_empty();
                    let params = if absent { Params::Absent } else { Params::Object(params) };
                    self.send(Message::notification(method, params));
                }
            }
            Input::Tick => self.on_tick(now),
            Input::Close => {
                let probing = matches!(self.phase, Phase::Probing { .. });
                if probing || matches!(self.phase, Phase::Initializing { .. }) {
                    self.fail(OpenError::Closed { probing });
                }
                for sent in self.asked.drain() {
                    self.settle(sent.ticket, Err(CallError::Closed));
                }
                for open in self.calls.drain() {
                    self.out.push_back(Output::Abandon(open.key));
                }
            }
            // A client has nothing to subscribe to, and its answers send no events.
            Input::Said { .. } | Input::Changed(_) => {}
        }
    }

    fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        earlier(due(&self.asked), self.other_timeout())
    }

    fn not_before(&mut self) -> Option<Instant> {
        earlier(self.asked.not_before(due), self.other_timeout())
    }

    fn open_calls(&self) -> usize {
        self.calls.len()
    }

    fn is_waiting(&self) -> bool {
        !self.asked.is_empty() || self.opened().is_none()
    }

    fn cause_of(&self, id: &Id) -> Option<Cause<'_>> {
        self.asked.peek(id).map(|it| Cause::Attached(&it.with.attached))
    }
}

impl Client {
    /// The next time limit of the handshake and of the server's questions.
    fn other_timeout(&self) -> Option<Instant> {
        let handshake = match &self.phase {
            Phase::Probing { silence, deadline, .. } => Some(*silence.min(deadline)),
            Phase::Initializing { deadline, .. } => Some(*deadline),
            _ => None,
        };
        earlier(handshake, self.calls.next_timeout())
    }
}

/// The next time limit of our calls.
fn due(asked: &Asked<Waiting>) -> Option<Instant> {
    asked.iter().filter_map(|it| earlier(it.deadline(), it.with.due)).min()
}

/// Members of `_meta` that a call may set itself: on whose behalf it is made, and what that client
/// supports.
const CALLER_META: [&str; 3] = [meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL];
/// The parameters that carry the answers of a round.
const ANSWERS: [&str; 2] = ["inputResponses", "requestState"];
