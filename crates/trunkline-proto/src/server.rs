//! The server's end of a conversation, in either era and in the dialect.
//!
//! The server decides the era once per message ([`MessageEra`]): a request whose `_meta` names a
//! revision is stateless, one without belongs to the session that `initialize` opened. One connection
//! may carry both. Over HTTP, `http::classify` decides it from the headers and the body together.

mod batch;
mod dialect;
mod envelope_cache;
mod head_start;
mod instruct;
mod reply;
mod shared;
mod stateful;
mod stateless;

use std::sync::Arc;
use std::time::Instant;

use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{
    ErrorObject, Id, Incoming, Malformed, MalformedKind, Message, MethodName, Object, Outcome,
    Params,
};
use trunkline_wire::method::{self, Kind, Method, Sender};
use trunkline_wire::model::{
    CacheHint, Implementation, InputRequest, LogLevel, ServerCapabilities,
};
use trunkline_wire::revision::{Era, Revision, Revisions};

use crate::input_required::missing_capability;
use crate::pending::{OpenCall, cancelled, earlier};
use crate::{
    Ask, Attached, Bounds, CallError, CallKey, Cause, Change, Conversation, HandlerEvent, Input,
    Output, RequestStream,
};
use shared::{Asking, From, Shared};

#[cfg(feature = "http")]
pub(crate) use envelope_cache::ReadEnvelope;
pub use envelope_cache::{ClientEnvelope, EnvelopeCache, StatelessRequest};
pub use instruct::Instruct;

/// The facts about a server that the conversation needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The revisions it speaks.
    pub revisions: Revisions,
    /// Whether it also answers the `mcp/…` dialect.
    pub dialect: bool,
    /// How it names itself.
    pub info: Implementation,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Computes the instructions per caller instead.
    pub instruct: Option<Instruct>,
    /// How long clients may cache its `server/discover` result.
    pub cache: CacheHint,
    /// The log level before a client of the stateful era sets one.
    pub log_level: LogLevel,
    /// The bounds of the conversation.
    pub bounds: Bounds,
}

impl Config {
    /// A server that speaks every revision and offers nothing yet.
    pub fn new(info: Implementation) -> Self {
        Self {
            revisions: Revisions::ALL,
            dialect: true,
            info,
            capabilities: ServerCapabilities::default(),
            instructions: None,
            instruct: None,
            cache: CacheHint::default(),
            log_level: LogLevel::Info,
            bounds: Bounds::default(),
        }
    }
}

/// The era rules that apply to a message.
#[derive(Clone, Debug)]
pub enum MessageEra {
    /// 2026-07-28: the envelope of the request identifies the client.
    Stateless(StatelessRequest),
    /// Up to 2025-11-25: the message belongs to a session, or opens one.
    Stateful,
    /// The `mcp/…` dialect.
    Dialect,
}

/// The server end of one conversation.
#[derive(Debug)]
pub struct Server {
    /// The session that `initialize` opened, if any: a request that stands for itself has room for none.
    session: Option<Box<stateful::Session>>,
    shared: Shared,
}

impl Server {
    /// A server at the start of a conversation.
    #[inline]
    pub fn new(config: Arc<Config>) -> Self {
        let shared = Shared::new(config);
        Self { session: None, shared }
    }

    /// Opens the session of a client whose handshake happened elsewhere: only its revision is known.
    pub fn open_for_known_revision(&mut self, revision: Revision) {
        self.session = Some(Box::new(stateful::Session::for_known_revision(revision)));
    }

    /// Sets the caller, for instructions that differ per caller.
    pub fn is_for(&mut self, caller: &Attached) {
        // Most servers have the same instructions for all, and skip the clone.
        if self.shared.config.instruct.is_some() {
            self.shared.caller = caller.clone();
        }
    }

    /// The revision that `initialize` negotiated, if any.
    pub fn session_revision(&self) -> Option<Revision> {
        self.session.as_ref().map(|it| it.revision)
    }

    /// What the client of the session has chosen since `initialize`: its log level, and the URIs that it
    /// subscribed to.
    pub fn session_choices(&self) -> (Option<LogLevel>, Vec<String>) {
        self.session.as_ref().map(|it| it.choices()).unwrap_or_default()
    }

    /// When the next answer goes out that waits until the progress before it has arrived, if one does.
    pub fn holds_answer_until(&self) -> Option<Instant> {
        self.shared.head_start.as_ref()?.next_timeout()
    }

    /// Handles a message whose era is decided.
    pub fn receive(
        &mut self,
        incoming: Incoming,
        via: RequestStream,
        era: MessageEra,
        now: Instant,
    ) {
        self.on_incoming(incoming, via, Some(era), now);
    }

    fn on_incoming(
        &mut self,
        incoming: Incoming,
        via: RequestStream,
        era: Option<MessageEra>,
        now: Instant,
    ) {
        let from = From { via, batch: None };
        match incoming {
            Incoming::One(message) => self.on_message(message, from, era, now),
            Incoming::Bad(malformed) => self.on_malformed(malformed, from, now),
            Incoming::Batch(items) => self.on_batch(items, via, now),
        }
    }

    fn on_message(&mut self, message: Message, from: From, era: Option<MessageEra>, now: Instant) {
        match message {
            Message::Request { id, method, params } => {
                self.on_request(Asking { id, from }, &method, params, era, now);
            }
            Message::Notification { method, params } => self.on_notification(&method, params, now),
            Message::Response { id, outcome } => self.shared.on_response(id, outcome, now),
        }
    }

    fn on_request(
        &mut self,
        from: Asking,
        method: &MethodName,
        params: Params,
        era: Option<MessageEra>,
        now: Instant,
    ) {
        let is_dialect = match &era {
            Some(era) => matches!(era, MessageEra::Dialect),
            None => self.shared.config.dialect && trunkline_wire::dialect::is_dialect(method),
        };
        if is_dialect {
            return self.shared.on_dialect(from, method, params, now);
        }
        if from.id == Id::Null {
            let error = Malformed::new(MalformedKind::NullId);
            return self.on_malformed(error, from.from, now);
        }
        let Some(params) = params.into_object() else {
            let error = ErrorObject::invalid_params("Parameters must be an object.");
            return self.shared.reply(from, Err(error));
        };
        if self.shared.calls.has_id(&from.id) {
            let message = format!("The id {} belongs to a request that is still open.", from.id);
            return self.shared.reply(from, Err(ErrorObject::invalid_request(message)));
        }
        let era = match era {
            Some(era) => Ok(era),
            None => self.decide_era(&from, method, &params),
        };
        match era {
            Err(error) => self.shared.reply(from, Err(error)),
            Ok(MessageEra::Stateless(request)) => {
                self.shared.on_stateless_request(from, method, params, request, now);
            }
            Ok(MessageEra::Stateful | MessageEra::Dialect) => {
                self.on_stateful_request(from, method, params, now);
            }
        }
    }

    /// Decides the era of a request that is not of the dialect and came without headers.
    fn decide_era(
        &mut self,
        from: &Asking,
        method: &MethodName,
        params: &Object,
    ) -> Result<MessageEra, ErrorObject> {
        let (shared, meta) = (&mut self.shared, params.get("_meta"));
        let speaks_stateless = shared.speaks(Era::Stateless);
        let claims = meta.filter(|_| speaks_stateless);
        let known = claims.and_then(|it| shared.envelopes.known(it));
        let is_claim = known.is_some() || claims.is_some_and(|it| shared.envelopes.is_claim(it));
        if is_claim && from.from.batch.is_some() {
            return Err(ErrorObject::invalid_request("This revision has no batches."));
        }
        // A stateless method without its envelope gets an error that names what is missing.
        let has_forgotten = || {
            self.session.is_none()
                && *method != Method::Initialize
                && (!shared.speaks(Era::Stateful)
                    || (speaks_stateless && *method == Method::ServerDiscover))
        };
        if !is_claim && !has_forgotten() {
            return Ok(MessageEra::Stateful);
        }
        let (envelope, token) = known.map_or_else(|| shared.envelopes.read(meta), Ok)?;
        StatelessRequest::new(envelope, token, &shared.config).map(MessageEra::Stateless)
    }

    fn on_stateful_request(
        &mut self,
        from: Asking,
        method: &MethodName,
        params: Object,
        now: Instant,
    ) {
        if *method == Method::Initialize {
            return self.on_initialize(from, params);
        }
        match &mut self.session {
            Some(session) => session.on_request(&mut self.shared, from, method, params, now),
            None if *method == Method::Ping => self.shared.reply(from, Ok(Json::empty_object())),
            None => {
                let known = method::TABLE.iter().any(|row| {
                    *method == row.method
                        && row.kind == Kind::Request
                        && self.shared.config.revisions.iter().any(|it| row.exists_in(it))
                });
                self.shared.reply(
                    from,
                    Err(if known {
                        ErrorObject::invalid_request("Send `initialize` first.")
                    } else {
                        ErrorObject::method_not_found(method)
                    }),
                );
            }
        }
    }

    fn on_initialize(&mut self, from: Asking, params: Object) {
        if !self.shared.speaks(Era::Stateful) {
            let error = unsupported_revision(&self.shared.config, stateful::requested(&params));
            return self.shared.reply(from, Err(error));
        }
        if self.session.is_some() {
            let error = ErrorObject::invalid_request("This session is already open.");
            return self.shared.reply(from, Err(error));
        }
        match stateful::Session::open(&self.shared, params) {
            Ok((session, result)) => {
                self.session = Some(Box::new(session));
                self.shared.reply(from, Ok(result));
            }
            Err(error) => self.shared.reply(from, Err(error)),
        }
    }

    fn on_notification(&mut self, method: &MethodName, params: Params, now: Instant) {
        let Some(params) = params.into_object() else { return };
        match method.known() {
            Some(Method::Cancelled) => {
                if let Some(id) = params.get("requestId").and_then(|it| Id::from_json(it.get())) {
                    self.shared.cancel(&id);
                }
            }
            Some(Method::Initialized) => {
                if let Some(session) = &mut self.session
                    && !std::mem::replace(&mut session.ready, true)
                {
                    self.shared.tell(Method::Initialized, params);
                }
            }
            Some(Method::Progress) => {
                if let Some(id) = params.get("progressToken").and_then(|it| Id::from_json(it.get()))
                    && let Some(sent) = self.shared.asked.by_id(&id)
                    && let Some(clock) = &mut sent.clock
                {
                    clock.sign_of_life(now);
                }
            }
            _ => {
                let Some(session) = &self.session else { return };
                if let Some(row) = method.row(Sender::Client, session.revision)
                    && row.kind == Kind::Notification
                {
                    self.shared.tell(row.method, params);
                }
            }
        }
    }

    fn on_malformed(&mut self, malformed: Malformed, from: From, now: Instant) {
        if malformed.is_response {
            // A response is never answered, not even a malformed one; but the waiting caller gets an
            // error.
            if let Some(id) = &malformed.id
                && let Some(sent) = self.shared.asked.settle(id)
            {
                let why = malformed.to_error().message;
                self.shared.resume(sent.with, now);
                self.shared.settle(sent.ticket, Err(CallError::Invalid(why)));
            }
            return;
        }
        if malformed.is_notification {
            return;
        }
        // Without a session, the newest revision on offer decides.
        let offered = self.shared.config.revisions.newest().map(Revision::profile);
        let profile = self.session.as_ref().map(|it| it.profile()).or(offered);
        let null = profile.is_some_and(|it| it.unreadable_id_is_null);
        let id = malformed.id.clone().or(null.then_some(Id::Null));
        let message = Message::Response { id, outcome: Err(malformed.to_error()) };
        self.shared.send_in(from, message);
    }

    fn on_said(&mut self, call: CallKey, what: HandlerEvent, now: Instant) {
        let unsaid = self.shared.config.log_level;
        let session_level = self.session.as_ref().map(|it| it.log_level.unwrap_or(unsaid));
        let Some(open) = self.shared.calls.get(call) else { return };
        let message = match what {
            HandlerEvent::Progress(progress) => reply::progress(open, progress, now),
            HandlerEvent::Log(_) if !self.shared.config.capabilities.logging => None,
            HandlerEvent::Log(log) => reply::log(open, session_level, log),
            HandlerEvent::Pause(retry) => {
                let via = open.with.via;
                if open.revision.profile().polling {
                    self.shared.out.push_back(Output::Pause { via, retry });
                }
                return;
            }
        };
        let via = open.with.via;
        if let Some(message) = message {
            self.shared.send(message, Some(via));
        }
    }

    fn on_ask(&mut self, ask: Ask, now: Instant) {
        let revision = match ask.during {
            Some(call) => self.shared.calls.get(call).map(|it| it.revision),
            None => self.session.as_ref().map(|it| it.revision),
        };
        let Some(revision) = revision else {
            return self.shared.settle(ask.ticket, Err(CallError::Cancelled));
        };
        let known =
            ask.method.row(Sender::Server, revision).filter(|row| row.kind == Kind::Request);
        let able = known.zip(self.session.as_ref()).filter(|(row, session)| {
            // The client must have declared the mode of the question, not only its kind.
            let question = InputRequest::read(&ask.method, Some(&ask.params.to_json()));
            let client = &session.peer.client;
            client.supports(row.gate)
                && !question.is_ok_and(|it| missing_capability(&it, client).is_some())
        });
        let Some((row, _)) = able else {
            let message = format!("This client cannot answer `{}`.", ask.method);
            let error = ErrorObject::new(code::METHOD_NOT_FOUND, message);
            return self.shared.settle(ask.ticket, Err(CallError::Refused(error)));
        };
        self.shared.ask(ask, row.method, now);
    }

    fn on_changed(&mut self, change: &Change) {
        if let Some(message) =
            self.session.as_ref().and_then(|it| it.on_changed(change, &self.shared.config))
        {
            self.shared.send(message, None);
        }
        for message in self.shared.listens.on_changed(change) {
            self.shared.send(message, None);
        }
    }

    fn on_finished(&mut self, call: CallKey, outcome: Outcome, now: Instant) {
        let Some(OpenCall { id, with, .. }) = self.shared.calls.close(call) else { return };
        if with.may_be_task
            && let (Some(session), Ok(result)) = (&mut self.session, &outcome)
        {
            session.note_task(result, self.shared.config.bounds.subscriptions);
        }
        self.shared.stop_asking(call);
        self.shared.finish(id, with, outcome, now);
    }

    fn on_tick(&mut self, now: Instant) {
        while let Some((call, outcome)) =
            self.shared.head_start.as_mut().and_then(|it| it.take_due(now))
        {
            self.on_finished(call, outcome, now);
        }
        for late in self.shared.calls.expire(now) {
            self.shared.out.push_back(Output::Abandon(late.key));
            self.shared.stop_asking(late.key);
            let error = ErrorObject::internal("timeout", "The handler took too long.");
            self.shared.finish(late.id, late.with, Err(error), now);
        }
        for late in self.shared.asked.expire(now) {
            self.shared.resume(late.with, now);
            self.shared.send(cancelled(late.id, "No answer in time."), late.with.via);
            self.shared.settle(late.ticket, Err(CallError::TimedOut));
        }
    }
}

impl Conversation for Server {
    fn shares_one_stream(&mut self) {
        self.shared.head_start = Some(Box::default());
    }

    // Who calls it knows what the input is: nothing has to be put together to be taken apart.
    #[inline]
    fn handle(&mut self, input: Input, now: Instant) {
        match input {
            Input::Received(incoming, via) => self.on_incoming(incoming, via, None, now),
            Input::Finished { call, outcome } => {
                if let Some(outcome) = self.shared.hold(call, outcome, now) {
                    self.on_finished(call, outcome, now);
                }
            }
            Input::Said { call, what } => self.on_said(call, what, now),
            Input::Ask(ask) => self.on_ask(ask, now),
            Input::Cancel(ticket) => {
                if let Some(sent) = self.shared.asked.settle_ticket(ticket) {
                    self.shared.resume(sent.with, now);
                    self.shared.send(cancelled(sent.id, "Nobody waits any more."), sent.with.via);
                }
            }
            Input::Changed(change) => self.on_changed(&change),
            Input::Notify { method, params } => {
                let known = self
                    .session
                    .as_ref()
                    .is_some_and(|it| method.row(Sender::Server, it.revision).is_some());
                if known {
                    self.shared.send(Message::notification(method, Params::Object(params)), None);
                }
            }
            Input::Tick => self.on_tick(now),
            Input::Close => {
                for id in self.shared.listens.drain() {
                    self.shared.calls.close_id(&id);
                    for message in crate::subscribe::closing_messages(&id) {
                        self.shared.send(message, None);
                    }
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self) -> Option<Output> {
        self.shared.out.pop_front()
    }

    fn next_timeout(&self) -> Option<Instant> {
        let called = earlier(self.shared.calls.next_timeout(), self.holds_answer_until());
        earlier(called, self.shared.asked.next_timeout())
    }

    fn open_calls(&self) -> usize {
        self.shared.calls.len()
    }

    fn is_waiting(&self) -> bool {
        !self.shared.asked.is_empty()
    }

    fn cause_of(&self, id: &Id) -> Option<Cause<'_>> {
        let call = self.shared.asked.peek(id)?.with.call?;
        let open = self.shared.calls.iter().find(|it| it.key == call)?;
        Some(Cause::During(&open.id))
    }

    fn owes(&self, id: &Id) -> bool {
        self.shared.calls.iter().any(|it| it.id == *id)
    }
}

/// The error for a revision that the server does not speak without a session.
pub(crate) fn unsupported_revision(config: &Config, requested: Option<String>) -> ErrorObject {
    let supported: Vec<_> =
        config.revisions.of_era(Era::Stateless).iter().map(Revision::as_str).collect();
    // The schema requires a string even if the request named no revision.
    let requested = requested.unwrap_or_default();
    let data = serde_json::json!({ "supported": supported, "requested": requested });
    ErrorObject::new(code::UNSUPPORTED_REVISION, "This server does not speak that revision.")
        .with_data(Json::of(&data))
}
