//! An outcome → an HTTP response.

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use trunkline_proto::http::Refusal;

use super::body::HttpBody;
use super::message_text::MessageText;

pub(super) fn json(status: StatusCode, text: Vec<u8>) -> Response<HttpBody> {
    json_in(None, status, text)
}

/// The same in the room of the request's header fields, which nobody needs any more.
#[inline]
pub(super) fn json_in(
    room: Option<&mut HeaderMap>,
    status: StatusCode,
    text: impl Into<MessageText>,
) -> Response<HttpBody> {
    let mut response = response_in(room, HttpBody::message(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

#[inline]
fn response_in(room: Option<&mut HeaderMap>, body: HttpBody) -> Response<HttpBody> {
    let mut response = Response::new(body);
    if let Some(room) = room.filter(|it| it.capacity() <= MOST_ROOM) {
        room.clear();
        std::mem::swap(response.headers_mut(), room);
    }
    response
}

pub(super) fn events(body: HttpBody) -> Response<HttpBody> {
    events_in(None, body)
}

/// The same in the room of the request's header fields.
pub(super) fn events_in(room: Option<&mut HeaderMap>, body: HttpBody) -> Response<HttpBody> {
    let mut response = response_in(room, body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    headers.insert(NO_BUFFERING.0, NO_BUFFERING.1);
    response
}

pub(super) fn accepted() -> Response<HttpBody> {
    empty(StatusCode::ACCEPTED)
}

pub(super) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = status;
    response
}

/// A short text, for people and for health checks.
///
/// ```
/// # use http::StatusCode;
/// let well = trunkline_transport::http::plain(StatusCode::OK, "ok");
/// assert_eq!(well.headers()["content-type"], "text/plain; charset=utf-8");
/// ```
pub fn plain(status: StatusCode, text: impl Into<String>) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(text.into().into_bytes()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// A refusal as it is sent: status, headers and an error object.
///
/// ```
/// # use http::StatusCode; use trunkline_proto::http::Refusal;
/// let busy = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "Come back later.");
/// assert_eq!(trunkline_transport::http::refuse(busy).headers()["retry-after"], "30");
/// ```
pub fn refuse(refusal: Refusal) -> Response<HttpBody> {
    let (status, allow, challenge) = (refusal.status, refusal.allow, refusal.challenge.clone());
    let mut text = Vec::with_capacity(256);
    refusal.message().write(&mut text);
    let mut response = json(status, text);
    let headers = response.headers_mut();
    let mut say = |name, value| headers.insert(name, HeaderValue::from_static(value));
    match status {
        StatusCode::METHOD_NOT_ALLOWED => say(header::ALLOW, allow.unwrap_or("POST")),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => say(header::ACCEPT_ENCODING, "identity"),
        StatusCode::SERVICE_UNAVAILABLE => say(header::RETRY_AFTER, "30"),
        StatusCode::TOO_MANY_REQUESTS => say(header::RETRY_AFTER, "1"),
        // The rest of the body stays unread, or its end is ambiguous (request smuggling, RFC 9112
        // §11.2). Either way no request can follow on this connection.
        StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::NOT_IMPLEMENTED => say(header::CONNECTION, "close"),
        _ => None,
    };
    if let Some(challenge) = challenge.and_then(|it| HeaderValue::try_from(&*it).ok()) {
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

pub(super) fn no_session() -> Refusal {
    let message = "There is no such session; open one with `initialize`.";
    Refusal::new(StatusCode::NOT_FOUND, message)
}

/// A connection does not keep more room for header fields than this.
const MOST_ROOM: usize = 24;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const NO_BUFFERING: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
