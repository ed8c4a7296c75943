//! One message → its POST and the answer: JSON, or an event stream that is resumed with `Last-Event-ID`
//! when it breaks (2025-11-25 §Transports, Resumability).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_auth::credentials::People;
use trunkline_proto::CallError;
use trunkline_proto::client::HttpError;
use trunkline_proto::client::http::{Head, Reading, Sent, Verdict, answers, too_long, verdict};
use trunkline_wire::frame::sse::{Decoder, Received};
use trunkline_wire::header::LAST_EVENT_ID;
use trunkline_wire::jsonrpc::Incoming;
use trunkline_wire::method::Method;
use trunkline_wire::revision::Era;

use super::connection::ResponseBody;
use super::deliveries::Delivering;
use super::exchange::{Exchange, OutgoingRequest, head};
use super::pool::Pool;
use super::request::{Header, PostRequest};
use super::route::{AnswerPath, Route, SESSION, Session};
use super::target::Address;
use crate::http::message_text::MessageText;

/// What a delivery or a stream reports while it goes on.
#[derive(Debug)]
pub(super) struct DeliveryEvent {
    /// Which one.
    pub(super) post: u64,
    pub(super) kind: EventKind,
}

/// What happened to a message, or on a stream.
#[derive(Debug)]
pub(super) enum EventKind {
    /// The head of the answer to `initialize` named this session.
    Session(Option<Session>),
    /// A message arrived, and more will.
    Message(Incoming),
    /// The HTTP+SSE stream named its endpoint.
    Endpoint(Result<Address, String>),
    /// The stream is over.
    End(End),
}

/// How a delivery ended.
#[derive(Debug)]
pub(super) enum End {
    /// With the answer.
    Answer(Incoming),
    /// With the answer, and a status that says the session is gone.
    AnswerAndGone(Incoming),
    /// `initialize` got an error and an error status.
    Refused { incoming: Incoming, status: u16, request: Box<PostRequest> },
    /// With 202, or with the end of a stream that owed no answer.
    Accepted,
    /// The server does not know the session.
    SessionGone(Box<PostRequest>),
    /// With a response that no server of the stateless era sends.
    Unrecognised(HttpError, Box<PostRequest>),
    /// Without an answer.
    Failed(CallError),
}

/// What all deliveries of one connection share.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) pool: Arc<Pool>,
    pub(super) reports: mpsc::Sender<DeliveryEvent>,
    /// Which message starts or stops waiting for a person to log in. Unbounded, because the sender
    /// cannot wait and a deadline depends on every report; there are two per login.
    pub(super) people: mpsc::UnboundedSender<(u64, bool)>,
    /// The longest message that is read.
    pub(super) message_bytes: usize,
    /// The deadline of messages that get no answer.
    pub(super) patience: Duration,
}

impl Post {
    /// Delivers one message.
    pub(super) fn carry(
        self: Arc<Self>,
        route: Arc<Route>,
        mut request: PostRequest,
        key: u64,
    ) -> Delivering {
        if request.id.is_some() && !request.is_ping && request.not_before.is_none() {
            // The conversation keeps the deadline of a request.
            return Box::pin(async move { self.attempt(&route, &mut request, key).await });
        }
        // Nothing else keeps that of a notification, or of the transport's own `ping`.
        let patience = if request.is_ping { PING } else { self.patience };
        Box::pin(async move {
            if let Some(when) = request.not_before {
                sleep_until(when).await;
            }
            let attempt = timeout(patience, self.attempt(&route, &mut request, key));
            attempt.await.unwrap_or(End::Failed(CallError::TimedOut))
        })
    }

    async fn attempt(&self, route: &Route, request: &mut PostRequest, key: u64) -> End {
        // The receiver is gone once the connection is closed.
        let people = |does| {
            let _ = self.people.send((key, does));
        };
        let body = request.take_body();
        let outgoing = OutgoingRequest {
            method: http::Method::POST,
            address: &route.address,
            body: &body,
            headers: &request.headers,
            // A message that gets no answer is no reason for a login.
            people: request.id.is_some().then_some(&people as &People<'_>),
        };
        let mut exchange = match self.pool.exchange(route, &outgoing).await {
            Ok(exchange) => exchange,
            Err(why) => return End::Failed(why),
        };
        drop(body);
        if request.method == Method::Initialize {
            Box::pin(self.report(key, EventKind::Session(session(&exchange)))).await;
        }
        let sent = Sent {
            id: request.id,
            answers_elsewhere: route.answer_path == AnswerPath::Stream,
            in_session: route.session.is_some(),
            is_opening: request.is_opening(),
            is_ping: request.is_ping,
        };
        let head = head(&exchange.head);
        match (head.reading(sent), sent.id) {
            (Err(why), _) => return End::Failed(why),
            (Ok(Reading::Events), Some(id)) => {
                return Box::pin(self.follow(route, exchange, id, key)).await;
            }
            (Ok(_), _) => {}
        }
        let end = self.read(&head, &mut exchange.body, sent, request).await;
        self.pool.put(&exchange.from.origin, exchange.body).await;
        end
    }

    async fn read(
        &self,
        head: &Head<'_>,
        body: &mut ResponseBody,
        sent: Sent,
        request: &PostRequest,
    ) -> End {
        let status = head.status;
        let limit = match status {
            200..300 => self.message_bytes,
            _ => self.message_bytes.min(ERROR_BYTES),
        };
        let text = match body.text(limit).await {
            Ok(Some(text)) => text,
            // Too long an error to read; the status says enough.
            Ok(None) if status >= 300 => Cow::default(),
            Ok(None) => match sent.id.filter(|_| !sent.answers_elsewhere) {
                Some(id) => return End::Answer(too_long(id)),
                None => return End::Accepted,
            },
            Err(error) => return End::Failed(CallError::Lost(format!("{error}."))),
        };
        let again = || Box::new(request.clone());
        match verdict(head, text, sent) {
            Verdict::Answer(incoming) if status >= 400 && request.method == Method::Initialize => {
                End::Refused { incoming, status, request: again() }
            }
            Verdict::Answer(incoming) if status == 404 && sent.in_session => {
                End::AnswerAndGone(incoming)
            }
            Verdict::Answer(incoming) => End::Answer(incoming),
            Verdict::Accepted => End::Accepted,
            Verdict::SessionGone => End::SessionGone(again()),
            Verdict::Unrecognised(error) => End::Unrecognised(error, again()),
            Verdict::Failed(why) => End::Failed(why),
        }
    }

    /// Follows a stream until the answer to `id` arrives, over as many connections as needed.
    async fn follow(&self, route: &Route, first: Exchange, id: i64, key: u64) -> End {
        let mut stream = Stream::default();
        let mut exchange = Some(first);
        let mut failures = 0;
        loop {
            if let Some(exchange) = exchange.take() {
                let before = stream.last_id.clone();
                if let Some(end) = self.events(exchange, &mut stream, Some(id), key).await {
                    return end;
                }
                if stream.last_id != before {
                    failures = 0;
                }
            }
            let (Some(last), Some(Era::Stateful)) = (&stream.last_id, route.era()) else {
                let why = "the stream ended before the answer.";
                return End::Failed(CallError::Lost(why.to_owned()));
            };
            sleep(stream.pause(failures)).await;
            match self.resume(route, last).await {
                Ok(resumed) => {
                    // Exponential backoff for a stream that brings nothing.
                    failures = (failures + 1).min(MAX_FAILURES - 1);
                    exchange = Some(resumed);
                }
                Err(Refused::Now(why)) if failures + 1 < MAX_FAILURES => {
                    failures += 1;
                    drop(why);
                }
                Err(Refused::Now(why) | Refused::Forever(why)) => {
                    return End::Failed(CallError::Lost(why));
                }
            }
        }
    }

    /// Reads a stream to its end. `Some` once the answer has arrived.
    async fn events(
        &self,
        mut exchange: Exchange,
        stream: &mut Stream,
        id: Option<i64>,
        key: u64,
    ) -> Option<End> {
        let mut decoder = Decoder::new(self.message_bytes);
        let mut answer = None;
        // A broken stream counts as ended.
        while let Ok(Some(piece)) = exchange.body.piece().await {
            decoder.push(piece);
            while let Some(received) = decoder.next() {
                let incoming = match received {
                    Received::Event(event) => {
                        stream.note(event.id, event.retry);
                        if event.data.is_empty() || event.event.is_some_and(|it| it != "message") {
                            continue;
                        }
                        Incoming::parse(event.data)
                    }
                    Received::TooLong(bad) => match id {
                        Some(id) if bad.id.is_none() && !bad.is_notification => too_long(id),
                        _ => Incoming::Bad(bad),
                    },
                };
                match id {
                    Some(id) if answers(&incoming, id) => answer = Some(incoming),
                    _ => self.report(key, EventKind::Message(incoming)).await,
                }
            }
            if let Some(incoming) = answer.take() {
                self.keep(exchange);
                return Some(End::Answer(incoming));
            }
        }
        None
    }

    /// The stream usually ends right after the answer; then its connection is reused.
    fn keep(&self, mut exchange: Exchange) {
        let pool = Arc::clone(&self.pool);
        tokio::spawn(async move {
            if let Ok(Ok(None)) = timeout(AFTER_ANSWER, exchange.body.piece()).await {
                pool.put(&exchange.from.origin, exchange.body).await;
            }
        });
    }

    /// Resumes a stream after the event `last`.
    async fn resume(&self, route: &Route, last: &str) -> Result<Exchange, Refused> {
        let Ok(value) = HeaderValue::from_str(last) else {
            let why = "the id of its last event cannot stand in a header.";
            return Err(Refused::Forever(why.to_owned()));
        };
        let headers: Arc<[Header]> = Arc::new([(LAST_EVENT, value)]);
        self.get(route, &headers).await
    }

    async fn get(&self, route: &Route, headers: &Arc<[Header]>) -> Result<Exchange, Refused> {
        let address =
            if route.answer_path == AnswerPath::Response { &route.address } else { route.home() };
        let (method, body) = (http::Method::GET, &MessageText::default());
        // A stream owes no answer, so it is no reason for a login.
        let outgoing = OutgoingRequest { method, address, body, headers, people: None };
        let exchange = match timeout(self.patience, self.pool.exchange(route, &outgoing)).await {
            Ok(Ok(exchange)) => exchange,
            Ok(Err(why)) => return Err(Refused::Now(why.to_string())),
            Err(_) => return Err(Refused::Now("nobody answers.".to_owned())),
        };
        let head = head(&exchange.head);
        let refused =
            |why: &str| format!("a GET was answered with HTTP status {}{why}.", head.status);
        match head.status {
            200..300 if head.is("text/event-stream") && head.content_encoding.is_empty() => {
                Ok(exchange)
            }
            200..300 => Err(Refused::Forever(refused(", but no stream of events"))),
            408 | 429 | 500..600 => Err(Refused::Now(refused(""))),
            _ => Err(Refused::Forever(refused(""))),
        }
    }

    /// Listens to the server's own messages for as long as the session lasts.
    pub(super) async fn listen(self: Arc<Self>, route: Arc<Route>, key: u64) {
        let mut stream = Stream::default();
        let mut failures = 0;
        loop {
            let id = stream.last_id.as_deref().and_then(|it| HeaderValue::from_str(it).ok());
            let headers = id.into_iter().map(|value| (LAST_EVENT, value)).collect();
            let opened = Instant::now();
            match self.get(&route, &headers).await {
                Ok(exchange) => {
                    let before = stream.last_id.clone();
                    self.events(exchange, &mut stream, None, key).await;
                    let was_useful = stream.last_id != before || opened.elapsed() > USEFUL;
                    failures = if was_useful { 0 } else { failures + 1 };
                }
                Err(Refused::Now(_)) => failures += 1,
                // The server offers no stream, or does not know the session; the next message will
                // tell.
                Err(Refused::Forever(_)) => break,
            }
            // The server may return after any outage, so retries never stop.
            failures = failures.min(MAX_FAILURES);
            sleep(stream.pause(failures)).await;
        }
        self.report(key, EventKind::End(End::Accepted)).await;
    }

    /// Opens the HTTP+SSE stream and reads it to its end.
    pub(super) async fn listen_sse(self: Arc<Self>, route: Arc<Route>, key: u64) {
        let why = match self.get(&route, &Arc::default()).await {
            Ok(exchange) => {
                self.sse_events(exchange, key).await;
                "the stream ended.".to_owned()
            }
            Err(Refused::Now(why) | Refused::Forever(why)) => why,
        };
        self.report(key, EventKind::End(End::Failed(CallError::Unreachable(why)))).await;
    }

    async fn sse_events(&self, mut exchange: Exchange, key: u64) {
        let mut decoder = Decoder::new(self.message_bytes);
        let mut has_endpoint = false;
        while let Ok(Some(piece)) = exchange.body.piece().await {
            decoder.push(piece);
            while let Some(received) = decoder.next() {
                let kind = match received {
                    Received::Event(event) if event.event == Some("endpoint") => {
                        // Only the first `endpoint` event counts.
                        if std::mem::replace(&mut has_endpoint, true) {
                            continue;
                        }
                        EventKind::Endpoint(endpoint(&exchange.from, event.data))
                    }
                    Received::Event(event) if event.data.is_empty() => continue,
                    Received::Event(event) if event.event.is_some_and(|it| it != "message") => {
                        continue;
                    }
                    Received::Event(event) => EventKind::Message(Incoming::parse(event.data)),
                    Received::TooLong(bad) => EventKind::Message(Incoming::Bad(bad)),
                };
                self.report(key, kind).await;
            }
        }
    }

    /// Ends the session with DELETE.
    pub(super) async fn end_session(self: Arc<Self>, route: Arc<Route>) -> End {
        let outgoing = OutgoingRequest {
            method: http::Method::DELETE,
            address: &route.address,
            body: &MessageText::default(),
            headers: &Arc::default(),
            people: None,
        };
        // A server may refuse (405); that is fine.
        let _ = self.pool.exchange(&route, &outgoing).await;
        End::Accepted
    }

    async fn report(&self, post: u64, kind: EventKind) {
        // The receiver is gone once the connection is closed.
        let _ = self.reports.send(DeliveryEvent { post, kind }).await;
    }
}

/// Why a stream could not be opened.
enum Refused {
    /// A retry may succeed.
    Now(String),
    Forever(String),
}

/// The position in a stream, and the delay before a retry.
#[derive(Debug, Default)]
struct Stream {
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Stream {
    fn note(&mut self, id: Option<&str>, retry: Option<u64>) {
        if let Some(id) = id {
            self.last_id = Some(id.to_owned()).filter(|it| !it.is_empty());
        }
        if let Some(retry) = retry {
            self.retry = Some(Duration::from_millis(retry));
        }
    }

    /// At least what the server asked for, with exponential backoff.
    fn pause(&self, failures: u32) -> Duration {
        let base = self.retry.unwrap_or(RETRY);
        let backoff = match failures {
            0 => Duration::ZERO,
            n => RETRY * (1 << (n - 1).min(5)),
        };
        base.max(backoff).max(MIN_RETRY)
    }
}

/// The session id in the answer to `initialize`, which must be visible ASCII (2025-11-25 §Transports).
fn session(exchange: &Exchange) -> Option<Session> {
    let id = exchange.head.get(&SESSION)?;
    let is_visible = !id.is_empty() && id.bytes().all(|byte| matches!(byte, 0x21..=0x7e));
    let mut id = is_visible.then(|| HeaderValue::from_str(id).ok()).flatten()?;
    id.set_sensitive(true);
    Some(Session { id, origin: Arc::clone(&exchange.from.origin) })
}

/// The endpoint for messages, which must have the origin of the stream.
fn endpoint(from: &Address, data: &[u8]) -> Result<Address, String> {
    let to = from.resolve(&String::from_utf8_lossy(data))?;
    match *to.origin == *from.origin {
        true => Ok(Address { origin: Arc::clone(&from.origin), path: to.path }),
        false => Err(format!("it wants messages to be posted to `{}`, another server.", to.origin)),
    }
}

const LAST_EVENT: HeaderName = HeaderName::from_static(LAST_EVENT_ID);
/// The longest error body that is read.
const ERROR_BYTES: usize = 64 << 10;
/// The delay before a retry unless the server sets one.
const RETRY: Duration = Duration::from_secs(1);
/// The shortest delay, whatever the server sets.
const MIN_RETRY: Duration = Duration::from_millis(100);
/// The deadline of the `ping` that checks for the session.
const PING: Duration = Duration::from_secs(10);
/// Failed retries in a row before we give up.
const MAX_FAILURES: u32 = 6;
/// A stream that lasted this long resets the backoff.
const USEFUL: Duration = Duration::from_secs(5);
/// How long a stream may stay open after the answer.
const AFTER_ANSWER: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
