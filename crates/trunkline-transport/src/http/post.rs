//! A POST → the conversation it belongs to, and the answer → JSON or events.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};

use http::header::{HeaderName, HeaderValue};
use http::{Extensions, HeaderMap, Response, StatusCode, request};
use http_body::Body;
use trunkline_auth::tag::random_name;
use trunkline_proto::http::classify::{Route, classify};
use trunkline_proto::http::fields::Fields;
use trunkline_proto::http::streams::Style;
use trunkline_proto::http::{Refusal, door, reply};
use trunkline_proto::server::{EnvelopeCache, MessageEra};
use trunkline_proto::{Attached, Outgoing};
use trunkline_wire::frame::flatten;
use trunkline_wire::header::SESSION_ID;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Incoming, Message, Params};
use trunkline_wire::method::Method;
use trunkline_wire::revision::{Era, Revision};

use super::admitted::Admitted;
use super::body::{HttpBody, read};
use super::budgets::Meter;
use super::endpoint::{Endpoint, Listed, attached};
use super::entry::check_fields;
use super::exchange::{ExchangeEvents, Owned};
use super::expiry::Expiry;
use super::lent_head::LentHead;
use super::message_text::MessageText;
use super::response::{accepted, events, events_in, json_in, no_session};
use super::session::{Posted, Session};
use super::shared_sessions::{Asked, Begun, close_later};
use super::sse::{Comments, write_event};
use crate::handler::Handler;

impl<H: Handler> Endpoint<H> {
    pub(super) async fn post<B: Body>(
        &self,
        head: &mut LentHead,
        body: B,
        envelopes: &Mutex<EnvelopeCache>,
        begun: &Begun<H>,
        is_checked: bool,
    ) -> Result<Response<HttpBody>, Refusal> {
        let headers = &head.headers;
        let mut meter = self.budgets.body(&head.extensions);
        // In blocks: what is borrowed in between would be part of every connection that waits.
        let (accepts, has_origin, incoming, route) = {
            let (accepts, has_origin, mcp) = {
                let fields = Fields::of(headers);
                if !is_checked {
                    check_fields(&fields, headers)?;
                    self.settings.door.check(&head.uri, &fields)?;
                }
                let accepts = door::accepts_both(&fields);
                if !accepts && fields.has_accept() {
                    return Err(unacceptable());
                }
                door::check_body(&fields, self.settings.limits.body_bytes)?;
                (accepts, fields.has_origin(), fields.mcp)
            };
            let incoming = self.read(body, &mut meter).await?;
            let mut envelopes = envelopes.lock().unwrap_or_else(PoisonError::into_inner);
            let route = classify(&mcp, &incoming, self.rules(), &mut envelopes)?;
            (accepts, has_origin, incoming, route)
        };
        // Clients of the dialect were never told to send `Accept`.
        if !accepts && !matches!(route, Route::Dialect) {
            return Err(unacceptable());
        }
        let admitted = match is_listen(&incoming) {
            true => self.admit_listener(&head.extensions, subscribes(&incoming)),
            false => self.admit(&head.extensions),
        };
        let admitted = admitted.map_err(|it| Refusal { id: id_of(&incoming), ..it })?;
        let takes_headers = self.handler.takes_headers();
        let admitted = admitted.with(head, meter.into_held(), takes_headers);
        #[cfg(feature = "auth")]
        self.check_scopes(&incoming, &admitted.attached)?;
        if let Some(shared) = &self.settings.replicas
            && matches!(route, Route::Stateless(_) | Route::Dialect)
            && begun.may_go_on_elsewhere(&incoming)
        {
            let caller = &admitted.attached;
            let held = Box::pin(self.answer_of_holder(shared, head, &incoming, caller)).await;
            if let Some(answer) = held {
                return answer;
            }
        }
        let (era, known) = match route {
            Route::Drop => return Ok(accepted()),
            Route::Stateless(request) => {
                self.check_params(headers, &incoming, &admitted.attached)?;
                (MessageEra::Stateless(request), None)
            }
            Route::Dialect => (MessageEra::Dialect, None),
            Route::Nowhere(revision) => (MessageEra::Stateful, Some(revision)),
            Route::Open if !self.settings.sessions => (MessageEra::Stateful, None),
            // Boxed: it is rare, and every connection would carry its size.
            Route::Open => {
                return Box::pin(self.open(incoming, admitted, &head.extensions)).await;
            }
            Route::Session(id) => {
                let session = match begun.session(id, &admitted.attached) {
                    Some(session) => session,
                    None => self.session(id, &head.extensions).map_err(|refusal| {
                        // The refusal names the request where it can be told.
                        Refusal { id: id_of(&incoming), ..refusal }
                    })?,
                };
                let bytes = subscribes(&incoming);
                if bytes > 0 {
                    let counted = session.subscribed.count(&self.budgets, &head.extensions, bytes);
                    counted.map_err(|it| Refusal { id: id_of(&incoming), ..it })?;
                }
                let is_batch = matches!(incoming, Incoming::Batch(_));
                let expects = expects_answer(&incoming);
                let era = Some(MessageEra::Stateful);
                let asked = match &self.settings.replicas {
                    None => Asked::default(),
                    Some(_) => Asked::new(&incoming),
                };
                let owes = asked.owes();
                let posted = {
                    // By reference: awaited as it comes, it would be moved on the way.
                    let mut waiting = session.post(incoming, era, expects, admitted, owes);
                    (&mut waiting).await
                };
                if let Some(shared) = &self.settings.replicas
                    && let Some(instead) = asked.instead(shared, &session, &posted)
                {
                    return Ok(instead);
                }
                return match posted {
                    // A batch without a request.
                    Posted::NoReply if is_batch => Ok(accepted()),
                    Posted::Gone => Err(no_session()),
                    posted => Ok(self.respond(session, posted, room(head, has_origin))),
                };
            }
        };
        let room = room(head, has_origin);
        Ok(self.exchange(incoming, era, known, admitted, room).await)
    }

    /// A message over the two paths of 2024-11-05: the answer goes out on the stream.
    pub(super) async fn post_old<B: Body>(
        &self,
        session: &Arc<Session<H>>,
        head: &request::Parts,
        body: B,
    ) -> Result<(), Refusal> {
        let mut meter = self.budgets.body(&head.extensions);
        door::check_body(&Fields::of(&head.headers), self.settings.limits.body_bytes)?;
        let incoming = self.read(body, &mut meter).await?;
        if let Incoming::Bad(malformed) = &incoming {
            return Err(Refusal::bad_request(malformed.to_error(), malformed.id.clone()));
        }
        if session.is_congested() {
            return Err(Refusal { id: id_of(&incoming), ..overloaded() });
        }
        let with_id = |it: Refusal| Refusal { id: id_of(&incoming), ..it };
        session
            .subscribed
            .count(&self.budgets, &head.extensions, subscribes(&incoming))
            .map_err(with_id)?;
        let admitted = self.admit(&head.extensions).map_err(with_id)?;
        let takes_headers = self.handler.takes_headers();
        let admitted = admitted.with(head, meter.into_held(), takes_headers);
        #[cfg(feature = "auth")]
        self.check_scopes(&incoming, &admitted.attached)?;
        // No header of this revision names the era, so the conversation decides it.
        match session.post(incoming, None, false, admitted, None).await {
            Posted::Gone => Err(no_session()),
            _ => Ok(()),
        }
    }

    async fn read<B: Body>(&self, body: B, meter: &mut Meter<'_>) -> Result<Incoming, Refusal> {
        let limits = &self.settings.limits;
        let text = read(body, limits.body_bytes, limits.body_read, meter).await?;
        Ok(text.into_incoming())
    }

    /// Admits a subscription of this many bytes: there may be as many as sessions.
    fn admit_listener(&self, caller: &Extensions, bytes: usize) -> Result<Admitted, Refusal> {
        let mut admitted = Admitted::new(&self.listening, Some(self.budgets.listener(caller)?)).0;
        self.budgets.subscribe(caller, bytes, &mut admitted.subscribed)?;
        Ok(admitted)
    }

    /// Opens a session, if there is room and `initialize` succeeds.
    async fn open(
        &self,
        incoming: Incoming,
        admitted: Admitted,
        caller: &Extensions,
    ) -> Result<Response<HttpBody>, Refusal> {
        let place = self.budgets.session(caller);
        let place = place.map_err(|it| Refusal { id: id_of(&incoming), ..it })?;
        let style = Style::Resumable { primed: false };
        // The session remembers who opened it, not what they sent.
        let (id, record) = match &self.settings.replicas {
            None => (self.lasting_id(&incoming, caller).unwrap_or_else(random_name), None),
            Some(shared) => match Box::pin(self.shared_id(shared, &incoming, caller)).await {
                Ok((id, record)) => (id, Some(Box::new(record))),
                Err(response) => return Ok(response),
            },
        };
        let session = self.session_of(id, style, attached(caller));
        let era = Some(MessageEra::Stateful);
        let posted = session.post(incoming, era, true, admitted, None).await;
        let is_open = session.is_open();
        if let (Some(shared), Some(record)) = (&self.settings.replicas, record) {
            match is_open {
                true => self.share(shared, &session, *record),
                false => close_later(shared, &session.id),
            }
        }
        if is_open {
            self.sessions.add(place, &session);
            session.begin();
        }
        let id = HeaderValue::from_str(&session.id);
        let mut response = self.respond(session, posted, None);
        if is_open && let Ok(id) = id {
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    fn respond(
        &self,
        session: Arc<Session<H>>,
        posted: Posted,
        room: Option<&mut HeaderMap>,
    ) -> Response<HttpBody> {
        match posted {
            Posted::Accepted => accepted(),
            Posted::Whole(StatusCode::OK, mut text) if self.settings.always_stream => {
                flatten(&mut text);
                let mut out = Vec::with_capacity(text.len() + 16);
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(&text);
                out.extend_from_slice(b"\n\n");
                events(HttpBody::whole(out))
            }
            Posted::Whole(status, text) => json_in(room, status, text),
            Posted::AllEvents(text) => {
                self.end_if_closing(&session);
                events_in(room, HttpBody::all_events(text))
            }
            Posted::Events(reader) => {
                self.follow_after(session, reader, Expiry::never(), None, room)
            }
            Posted::NoReply | Posted::Gone => events(HttpBody::default()),
        }
    }

    /// Answers a request in place: with JSON if its answer is the first message. `known` is the revision of a
    /// client whose handshake happened elsewhere.
    fn exchange(
        &self,
        incoming: Incoming,
        decided: MessageEra,
        known: Option<Revision>,
        admitted: Admitted,
        mut room: Option<&mut HeaderMap>,
    ) -> impl Future<Output = Response<HttpBody>> {
        let era = match decided {
            MessageEra::Stateful => Era::Stateful,
            MessageEra::Stateless(_) | MessageEra::Dialect => Era::Stateless,
        };
        let is_batch = matches!(incoming, Incoming::Batch(_));
        let expects = expects_answer(&incoming) && !is_batch;
        let mut message = Some((incoming, decided, admitted));
        // Most requests are answered at once. Only the others are kept, so that no connection has room for one.
        let mut kept: Option<Pin<Box<ExchangeEvents<H>>>> = None;
        poll_fn(move |cx| {
            if let Some((incoming, decided, admitted)) = message.take() {
                let (mut exchange, listed) = self.begin_exchange(&incoming, era, known, admitted);
                exchange.get().begin(incoming, decided, cx);
                let first = match expects || is_batch {
                    true => exchange.get().poll_next(cx),
                    false => Poll::Ready(None),
                };
                let is_begun = first.is_ready();
                let mut written = Vec::new();
                if let Poll::Ready(first) = first {
                    let dispatched = exchange.get().dispatched();
                    match self.whole(first, expects, era, dispatched, room.as_deref_mut()) {
                        Ok(response) => return Poll::Ready(response),
                        Err(first) => {
                            if exchange.get().write_ready(&first, &mut written, cx) {
                                let body = HttpBody::all_events(written);
                                return Poll::Ready(events_in(room.take(), body));
                            }
                        }
                    }
                }
                let comments = Comments::new(self.settings.limits.stream_keep_alive);
                kept = Some(Box::pin(ExchangeEvents::new(exchange, written, comments, listed)));
                if !is_begun {
                    return Poll::Pending;
                }
            } else if let Some(events) = &mut kept {
                let first = ready!(events.exchange().poll_next(cx));
                let dispatched = events.exchange().dispatched();
                match self.whole(first, expects, era, dispatched, room.as_deref_mut()) {
                    Ok(response) => return Poll::Ready(response),
                    Err(first) => events.begin_with(&first),
                }
            }
            let events = kept.take().expect("it is polled no more once it is answered");
            Poll::Ready(events_in(room.take(), HttpBody::boxed_events(events)))
        })
    }

    /// A new exchange for a message. A subscription is listed before it is handled, so that no change is missed.
    fn begin_exchange(
        &self,
        incoming: &Incoming,
        era: Era,
        known: Option<Revision>,
        admitted: Admitted,
    ) -> (Owned<H>, Option<Listed>) {
        let (handler, queue) = (Arc::clone(&self.handler), self.settings.limits.queue);
        let detached = (era == Era::Stateful).then(|| Arc::clone(&self.detached));
        let core = Arc::clone(&self.core);
        let mut exchange = Owned::new(core, known, handler, queue, admitted, detached);
        let listed = is_listen(incoming).then(|| self.register(exchange.get().listen()));
        (exchange, listed)
    }

    /// The response that begins and ends with this message; the message itself if it is not the answer.
    fn whole(
        &self,
        first: Option<Outgoing>,
        expects: bool,
        era: Era,
        dispatched: bool,
        room: Option<&mut HeaderMap>,
    ) -> Result<Response<HttpBody>, Outgoing> {
        let Some(first) = first else {
            return Ok(if expects { events(HttpBody::default()) } else { accepted() });
        };
        if !matches!(first, Outgoing::One(Message::Response { .. }) | Outgoing::Batch(_)) {
            return Err(first);
        }
        let status = reply::status(&first, era, dispatched);
        if self.settings.always_stream && status == StatusCode::OK {
            let mut text = Vec::with_capacity(first.size() + 8);
            write_event(&first, &mut text);
            return Ok(events(HttpBody::whole(text)));
        }
        let text = match &first {
            Outgoing::One(message) => MessageText::of(message),
            Outgoing::Batch(_) => {
                let mut text = Vec::with_capacity(first.size());
                first.write(&mut text);
                text.into()
            }
        };
        Ok(json_in(room, status, text))
    }

    /// Checks that the arguments a tool wants repeated in headers are there and equal.
    fn check_params(
        &self,
        headers: &HeaderMap,
        incoming: &Incoming,
        caller: &Attached,
    ) -> Result<(), Refusal> {
        let Incoming::One(Message::Request { id, method, params }) = incoming else {
            return Ok(());
        };
        if *method != Method::ToolsCall {
            return Ok(());
        }
        let Some(name) = params.get("name").and_then(|it| it.as_text()) else { return Ok(()) };
        let wanted = self.handler.param_headers(&name, params.get("_meta"), caller);
        let Some(wanted) = wanted else { return Ok(()) };
        wanted
            .check(params.get("arguments"), |header| {
                headers.get_all(header).iter().map(HeaderValue::as_bytes)
            })
            .map_err(|wrong| Refusal::bad_request(wrong.to_error(), Some(id.clone())))
    }
}

/// The header fields of a request that nobody asks about any more: only an origin is, at the end.
fn room(head: &mut LentHead, has_origin: bool) -> Option<&mut HeaderMap> {
    head.room().filter(|_| !has_origin)
}

/// Whether a message gets a response, if only an empty one.
fn expects_answer(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::One(message) => matches!(message, Message::Request { .. }),
        Incoming::Batch(_) | Incoming::Bad(_) => true,
    }
}

fn is_listen(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::One(Message::Request { method, .. }) => *method == Method::SubscriptionsListen,
        _ => false,
    }
}

/// The bytes of the URIs that a message subscribes to.
fn subscribes(incoming: &Incoming) -> usize {
    let of = |message: &Message| match message {
        Message::Request { method, params: Params::Object(params), .. } => match method.known() {
            Some(Method::SubscriptionsListen) => {
                params.get("notifications").map_or(0, |it| it.get().len())
            }
            Some(Method::ResourcesSubscribe) => params.get("uri").map_or(0, |it| it.get().len()),
            _ => 0,
        },
        _ => 0,
    };
    match incoming {
        Incoming::One(message) => of(message),
        Incoming::Batch(messages) => messages.iter().flatten().map(of).sum(),
        Incoming::Bad(_) => 0,
    }
}

pub(super) fn id_of(incoming: &Incoming) -> Option<Id> {
    match incoming {
        Incoming::One(Message::Request { id, .. }) => Some(id.clone()),
        _ => None,
    }
}

fn unacceptable() -> Refusal {
    let message = "The Accept header must allow `application/json` and `text/event-stream`.";
    Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
}

pub(super) fn overloaded() -> Refusal {
    let error = ErrorObject::internal("overloaded", "Too many calls are open; try later.");
    Refusal { error, ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, "") }
}

const SESSION: HeaderName = HeaderName::from_static(SESSION_ID);
