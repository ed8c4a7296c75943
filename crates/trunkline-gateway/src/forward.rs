//! Forwards one call to one instance: the request, the answer, and the events and questions meanwhile.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Poll, ready};

use tokio::sync::Notify;
use trunkline_proto::{Attached, Call, CallError, HandlerEvent, Peer, Timing};
use trunkline_transport::budget::Held;
use trunkline_transport::conversation_handle::{Listener, Request};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::{InputRequest, LogLevel, meta};
use trunkline_wire::revision::Era;

use crate::failure::{Done, Failure, Reason, Stage};
use crate::otel::Open;
use crate::pool::{Lease, Parking};
use crate::question_router::OpenCall;
use crate::upstream::{Instance, Upstream};
use crate::upstream_call::{News, Question, UpstreamCallContext};

type Work = Pin<Box<dyn Future<Output = Result<Json, CallError>> + Send>>;

/// A call in flight. Dropping it cancels it at the server.
pub(crate) struct Forward {
    call: Work,
    /// Questions that the caller has not answered, in the stateless era.
    asked: Vec<(String, InputRequest, Question)>,
    count: u32,
    open: OpenCall,
    /// The span of this call; ends with it.
    pub(crate) span: Option<Box<Open>>,
    pub(crate) lease: Lease<Upstream>,
    /// Set while the call waits for its caller's answers: waiting calls may take its place.
    parking: Option<Parking<Upstream>>,
    /// Whether the work has begun, whatever becomes of its questions.
    is_begun: bool,
}

/// What happens next to a call.
pub(crate) enum Event {
    /// An event for the caller. It counts against the budget until the guard is dropped.
    Said(Box<(HandlerEvent, Held)>),
    /// Questions for the caller: the call parks.
    Asked,
    /// A waiting call took the place of this one, whose caller has not answered.
    MadeWay,
    /// The call ended.
    Over(Result<Json, CallError>),
}

impl Forward {
    /// Sends the call.
    pub(crate) fn begin(
        lease: Lease<Upstream>,
        context: Arc<UpstreamCallContext>,
        method: Method,
        params: Object,
        timing: Timing,
        relays: bool,
    ) -> Self {
        let mut request = Request::new(method, params);
        request.timing = Some(timing);
        request.relays = relays;
        request.attached = Attached::shared(Arc::clone(&context));
        if context.listens {
            request.listener = Some(Arc::clone(&context) as Arc<dyn Listener>);
        }
        let instance = lease.instance();
        let open = instance.open_call(context);
        let call: Work = match instance.lacks_roots() {
            false => Box::pin(instance.call(request)),
            true => Box::pin(Arc::clone(instance).call_with_roots(request)),
        };
        let (asked, parking, is_begun) = (Vec::new(), None, false);
        Self { call, asked, count: 0, open, span: None, lease, parking, is_begun }
    }

    /// A call made of several requests, with one answer.
    pub(crate) fn driving(
        lease: Lease<Upstream>,
        context: Arc<UpstreamCallContext>,
        call: Work,
    ) -> Self {
        let open = lease.instance().open_call(context);
        let (span, asked, parking) = (None, Vec::new(), None);
        Self { call, asked, count: 0, open, span, lease, parking, is_begun: true }
    }

    /// The lease of a call that has ended.
    pub(crate) fn into_lease(self) -> Lease<Upstream> {
        self.lease
    }

    /// Parks the call. The notification fires when a waiting call takes its place.
    pub(crate) fn park(&mut self) -> Arc<Notify> {
        self.parking.get_or_insert_with(|| self.lease.park()).told()
    }

    pub(crate) fn instance(&self) -> &Arc<Instance> {
        self.lease.instance()
    }

    pub(crate) fn context(&self) -> &Arc<UpstreamCallContext> {
        self.open.context()
    }

    pub(crate) async fn next(&mut self) -> Event {
        loop {
            self.asked.retain(|(.., question)| !question.tell.is_closed());
            if !self.asked.is_empty() {
                // Questions asked together arrive one by one.
                let context = self.open.context();
                let news = poll_fn(|cx| context.poll_news(cx));
                match Box::pin(tokio::time::timeout(TOGETHER, news)).await {
                    Ok(news) => match self.look_at(news) {
                        Some(event) => return event,
                        None => continue,
                    },
                    Err(_) => return Event::Asked,
                }
            }
            let mut wanted = match self.context().is_asking() {
                true => Some(Box::pin(self.park().notified_owned())),
                false => None,
            };
            self.parking.take_if(|_| wanted.is_none());
            let next = poll_fn(|cx| {
                if let Some(news) = self.context().take_news() {
                    return Poll::Ready(self.look_at(news));
                }
                if wanted.as_mut().is_some_and(|it| it.as_mut().poll(cx).is_ready()) {
                    return Poll::Ready(Some(Event::MadeWay));
                }
                if let Poll::Ready(outcome) = self.call.as_mut().poll(cx) {
                    return Poll::Ready(Some(self.over(outcome)));
                }
                let news = ready!(self.context().poll_news(cx));
                Poll::Ready(self.look_at(news))
            });
            if let Some(event) = next.await {
                return event;
            }
        }
    }

    /// Takes in the questions that came. Returns what is for the caller at once.
    fn look_at(&mut self, news: News) -> Option<Event> {
        let questions = match news {
            News::Said(said) => return Some(Event::Said(said)),
            News::Asked(questions) => questions,
            News::Other => return None,
        };
        for question in questions {
            self.count += 1;
            let request = question.request.clone();
            self.asked.push((format!("q{}", self.count), request, question));
        }
        None
    }

    fn over(&mut self, outcome: Result<Json, CallError>) -> Event {
        self.open.over();
        if let Some(span) = self.span.take() {
            span.over(&outcome);
        }
        if let Some(recording) = self.context().recording() {
            recording.answered(outcome.as_ref().ok());
        }
        Event::Over(match self.is_begun {
            true => outcome.map_err(CallError::after_unknown),
            false => outcome,
        })
    }

    /// The open questions to the caller.
    pub(crate) fn questions(&self) -> Vec<(String, InputRequest)> {
        self.asked.iter().map(|(name, request, _)| (name.clone(), request.clone())).collect()
    }

    /// Passes answers on. Unanswered questions stay open.
    pub(crate) fn answer(&mut self, mut answers: Object) {
        let asked = std::mem::take(&mut self.asked);
        for (name, request, question) in asked {
            match answers.take(&name) {
                // The server may have cancelled the question meanwhile.
                Some(answer) => drop(question.tell.send(Ok(answer))),
                None => self.asked.push((name, request, question)),
            }
        }
    }
}

/// The `_meta` of a call for the server: without hop-by-hop members, and with the caller's identity and
/// capabilities for a server of the stateless era.
pub(crate) fn meta_for(call: &Call, era: Era, known: &Envelopes) -> Option<Json> {
    let is_new = call.revision.era() == Era::Stateless;
    match (&call.meta, era) {
        (None, Era::Stateful) => return None,
        // The connection replaces the revision that it names.
        (Some(meta), Era::Stateless) if is_new && !call.wants_progress => {
            return Some(meta.clone());
        }
        (Some(meta), Era::Stateful) if !is_new && !call.wants_progress => {
            return Some(meta.clone());
        }
        (None, Era::Stateless) => return Some(known.of(call)),
        _ => {}
    }
    let mut object =
        call.meta.as_ref().and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
    object.take(meta::PROGRESS_TOKEN);
    object.take(meta::PROTOCOL_VERSION);
    match era {
        Era::Stateless if !is_new => add_envelope(&mut object, call),
        Era::Stateful => {
            for name in [meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL] {
                object.take(name);
            }
        }
        Era::Stateless => {}
    }
    (!object.is_empty()).then(|| object.to_json())
}

fn add_envelope(object: &mut Object, call: &Call) {
    object.set(meta::CLIENT_CAPABILITIES, Json::of(&call.peer.client));
    if let Some(info) = &call.peer.info {
        object.set(meta::CLIENT_INFO, Json::of(info));
    }
    // A server of the stateless era logs nothing without a level.
    let level = call.log_level.unwrap_or(LogLevel::Info);
    object.set(meta::LOG_LEVEL, Json::of(&level));
}

/// Caches the envelopes of stateful clients for stateless servers: the same for each call of a session.
#[derive(Default)]
pub(crate) struct Envelopes(Mutex<Vec<Known>>);

struct Known {
    peer: Weak<Peer>,
    level: Option<LogLevel>,
    json: Json,
}

impl Envelopes {
    fn of(&self, call: &Call) -> Json {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |it: &Known| {
            std::ptr::eq(it.peer.as_ptr(), Arc::as_ptr(&call.peer))
                && it.peer.strong_count() > 0
                && it.level == call.log_level
        };
        if let Some(known) = known.iter().find(|it| is_this(it)) {
            return known.json.clone();
        }
        let mut object = Object::default();
        add_envelope(&mut object, call);
        let json = object.to_json();
        known.retain(|it| it.peer.strong_count() > 0);
        if known.len() >= KNOWN {
            known.remove(0);
        }
        let (peer, level) = (Arc::downgrade(&call.peer), call.log_level);
        known.push(Known { peer, level, json: json.clone() });
        json
    }
}

/// Turns a failed call into the server's own error, or into a failure of the gateway.
pub(crate) async fn failed(
    error: CallError,
    instance: &Instance,
) -> Result<trunkline_wire::jsonrpc::ErrorObject, Failure> {
    let server = &instance.server;
    let at_call = |reason, message: String| {
        let mut failure = Failure::new(reason, Stage::Call, message).of(server);
        failure.instance = Some(instance.id);
        failure
    };
    Err(match error {
        CallError::Peer(error) | CallError::Refused(error) => return Ok(error),
        CallError::Unreachable(why) => {
            at_call(Reason::Unreachable, format!("`{server}` could not be reached: {why}"))
        }
        error @ (CallError::Closed | CallError::Lost(_)) => {
            let mut failure = instance.gone().await;
            failure.reason = Reason::OutcomeUnknown;
            failure.done = Done::Unknown;
            failure.message =
                format!("`{server}` went away during the call; the work may have been done.");
            if let CallError::Lost(why) = error {
                failure.message.push_str(&format!(" Details: {why}"));
            }
            failure.advice("Look before trying again.")
        }
        CallError::TimedOut => {
            let mut failure = at_call(
                Reason::Timeout,
                format!("`{server}` did not answer in time; the work may have been done."),
            );
            failure.done = Done::Unknown;
            failure.stderr = instance.stderr();
            failure.advice("Raise `timeouts.callSeconds`, or look before trying again.")
        }
        CallError::Cancelled => {
            let mut failure = at_call(Reason::Cancelled, format!("`{server}` gave the work up."));
            failure.done = Done::Unknown;
            failure
        }
        CallError::Invalid(why) => {
            let mut failure = at_call(
                Reason::BadAnswer,
                format!("The answer of `{server}` breaks the protocol: {why}"),
            );
            failure.done = Done::Unknown;
            failure
        }
        CallError::Http(error) if !error.is_refusal() => {
            let message = format!("`{server}` failed; the work may have been done. {error}");
            let mut failure = at_call(Reason::OutcomeUnknown, message);
            failure.done = Done::Unknown;
            failure.advice("Look before trying again.")
        }
        error => at_call(Reason::Refused, format!("`{server}` did not take the call: {error}")),
    })
}

/// How long to wait for further questions asked at the same moment.
const TOGETHER: std::time::Duration = std::time::Duration::from_millis(20);
/// The number of sessions whose envelope is cached.
const KNOWN: usize = 64;
