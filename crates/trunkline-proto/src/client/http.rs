//! The response to a POST → what it means for the message.
//!
//! [`Head::reading`] says how to read the body, [`verdict`] interprets head and body. No status decides
//! the era alone: only a body that a stateless server writes keeps the conversation in that era, and
//! only a 4xx without information means an older server.

use std::borrow::Cow;

use trunkline_wire::code;
use trunkline_wire::jsonrpc::{Id, Incoming, Malformed, MalformedKind, Message};

use super::HttpError;
use crate::CallError;

/// The relevant parts of a response head.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The status.
    pub status: u16,
    /// `Content-Type`, or empty.
    pub content_type: &'a str,
    /// `Content-Encoding`, or empty.
    pub content_encoding: &'a str,
    /// `WWW-Authenticate`.
    pub challenge: Option<&'a str>,
}

/// The message that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The id of the request; `None` for a message that gets only 202.
    pub id: Option<i64>,
    /// Whether the answer comes on another stream, as in HTTP+SSE. A refusal comes in the response.
    pub answers_elsewhere: bool,
    /// Whether it named a session.
    pub in_session: bool,
    /// Whether it is part of the handshake.
    pub is_opening: bool,
    /// Whether it is the `ping` that checks for the session.
    pub is_ping: bool,
}

/// How to read a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Event by event, until the answer arrives.
    Events,
    /// To its end, then ask for the [`verdict`].
    Text,
}

/// What a response means.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// It contains the answer to the request.
    Answer(Incoming),
    /// The server accepted the message, and no answer will follow.
    Accepted,
    /// The server does not know the session; see [`super::on_session_gone`].
    SessionGone,
    /// Nothing that a stateless server sends.
    Unrecognised(HttpError),
    /// No answer, and no evidence about the server.
    Failed(CallError),
}

impl Head<'_> {
    /// How to read the body, or why not to.
    pub fn reading(&self, sent: Sent) -> Result<Reading, CallError> {
        let encoding = self.content_encoding.trim();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            let encoding = line(encoding);
            let why = format!("its body is encoded as `{encoding}`, which nobody asked for.");
            return Err(CallError::Invalid(why));
        }
        let is_answered = sent.id.is_some() && !sent.answers_elsewhere;
        match self.is_success() && is_answered && self.is("text/event-stream") {
            true => Ok(Reading::Events),
            false => Ok(Reading::Text),
        }
    }

    /// Whether the content has this media type, ignoring parameters.
    pub fn is(&self, media: &str) -> bool {
        match self.content_type {
            written if written == media => true,
            // Nearly all write one of these, and plainly.
            "application/json" | "text/event-stream" => false,
            written => {
                let essence = written.split(';').next().unwrap_or_default();
                essence.trim().eq_ignore_ascii_case(media)
            }
        }
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Interprets a head and its whole body.
///
/// ```
/// # use trunkline_proto::client::http::*;
/// let head = Head { status: 200, content_type: "application/json", ..Head::default() };
/// let sent = Sent { id: Some(1), ..Sent::default() };
/// let verdict = verdict(&head, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, sent);
/// let Verdict::Answer(incoming) = verdict else { panic!("it is the answer") };
/// assert!(answers(&incoming, 1));
/// ```
pub fn verdict<'a>(head: &Head<'_>, body: impl Into<Cow<'a, [u8]>>, sent: Sent) -> Verdict {
    let body = body.into();
    let Some(id) = sent.id else {
        return match head.status {
            200..300 => Verdict::Accepted,
            404 if sent.in_session => Verdict::SessionGone,
            _ => failed(head, &body),
        };
    };
    match head.status {
        200..300 if sent.answers_elsewhere => return Verdict::Accepted,
        200..300 => return on_success(head, body, id),
        // A `ping` does nothing, so any 404 means that the session is gone.
        404 if sent.in_session && sent.is_ping => return Verdict::SessionGone,
        _ => {}
    }
    let incoming = Incoming::parse(&body);
    if answers(&incoming, id) && (is_result(&incoming) || !stands_alone(head, sent)) {
        return Verdict::Answer(incoming);
    }
    match head.status {
        404 if sent.in_session => Verdict::SessionGone,
        // About the caller or the server's health, not about its era.
        401 | 403 | 407 | 408 | 425 | 429 | 511 => failed(head, &body),
        500..600 if sent.is_opening => failed(head, &body),
        400..600 => match refusal(incoming, id, sent.is_opening) {
            Some(incoming) => Verdict::Answer(incoming),
            None if head.status >= 500 => failed(head, &body),
            None => Verdict::Unrecognised(http_error(head, &body)),
        },
        _ => failed(head, &body),
    }
}

/// Whether `incoming` answers the request `id`.
pub fn answers(incoming: &Incoming, id: i64) -> bool {
    let is_it = |message: &Message| matches!(message, Message::Response { id: Some(it), .. } if *it == Id::Number(id));
    match incoming {
        Incoming::One(message) => is_it(message),
        Incoming::Batch(items) => items.iter().any(|it| it.as_ref().is_ok_and(is_it)),
        Incoming::Bad(bad) => {
            bad.is_response && bad.id.as_ref().is_some_and(|it| *it == Id::Number(id))
        }
    }
}

/// Whether this is an error that only a stateless server sends.
pub fn is_of_the_new_era(incoming: &Incoming) -> bool {
    let Incoming::One(Message::Response { outcome: Err(error), .. }) = incoming else {
        return false;
    };
    matches!(
        error.code,
        code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_REVISION
    )
}

/// An error for an answer to `id` that was too long to read.
///
/// ```
/// # use trunkline_proto::client::http::*;
/// // The caller learns why there is no answer.
/// assert!(answers(&too_long(7), 7));
/// ```
pub fn too_long(id: i64) -> Incoming {
    Incoming::Bad(Malformed {
        id: Some(Id::Number(id)),
        is_response: true,
        ..Malformed::new(MalformedKind::TooLong)
    })
}

fn on_success(head: &Head<'_>, body: Cow<'_, [u8]>, id: i64) -> Verdict {
    if !head.is("application/json") {
        let what = match head.content_type {
            "" => "nothing".to_owned(),
            other => format!("`{}`", line(other)),
        };
        let message = format!("it holds {what} where JSON or an event stream should be.");
        return Verdict::Unrecognised(HttpError::new(head.status, message));
    }
    // A long text is taken over, not copied.
    let incoming = match body {
        Cow::Owned(text) => Incoming::take(text),
        Cow::Borrowed(text) => Incoming::parse(text),
    };
    match claim(incoming, id) {
        Some(incoming) => Verdict::Answer(incoming),
        None => {
            let message = "it holds JSON, but no answer to the request.";
            Verdict::Unrecognised(HttpError::new(head.status, message))
        }
    }
}

/// Turns a response body into the answer to `id`: an error may lack the id, and a malformed text fails
/// only this request.
fn claim(incoming: Incoming, id: i64) -> Option<Incoming> {
    match incoming {
        Incoming::One(Message::Response { id: None, outcome }) => {
            Some(Incoming::One(Message::Response { id: Some(Id::Number(id)), outcome }))
        }
        Incoming::Bad(bad) => {
            Some(Incoming::Bad(Malformed { id: Some(Id::Number(id)), is_response: true, ..bad }))
        }
        incoming => answers(&incoming, id).then_some(incoming),
    }
}

/// Whether the status stands for itself, so that an error in the body adds nothing: it is about the
/// caller or, before the handshake, about the server's health.
fn stands_alone(head: &Head<'_>, sent: Sent) -> bool {
    match head.status {
        401 | 407 => true,
        403 if head.challenge.is_some() => true,
        403 | 408 | 425 | 429 | 500..600 => sent.is_opening,
        _ => false,
    }
}

fn is_result(incoming: &Incoming) -> bool {
    matches!(incoming, Incoming::One(Message::Response { outcome: Ok(_), .. }))
}

/// A body that is a JSON-RPC error without our id, whatever its media type. Servers that could not read
/// the id put null or a word in its place; the exchange tells which request is meant. A number is the
/// id of another request, unless there is none yet.
fn refusal(incoming: Incoming, id: i64, is_opening: bool) -> Option<Incoming> {
    match incoming {
        Incoming::One(Message::Response { id: Some(Id::Number(_)), .. }) if !is_opening => None,
        Incoming::One(Message::Response { outcome: Err(error), .. }) => {
            Some(Incoming::One(Message::error(Id::Number(id), error)))
        }
        _ => None,
    }
}

fn failed(head: &Head<'_>, body: &[u8]) -> Verdict {
    Verdict::Failed(CallError::Http(http_error(head, body)))
}

fn http_error(head: &Head<'_>, body: &[u8]) -> HttpError {
    let message = match Incoming::parse(body) {
        Incoming::One(Message::Response { outcome: Err(error), .. }) => line(&error.message),
        _ if head.is("text/html") => String::new(),
        _ => line(&String::from_utf8_lossy(&body[..body.len().min(4 * MAX_LINE)])),
    };
    HttpError { challenge: head.challenge.map(line), ..HttpError::new(head.status, message) }
}

/// One clipped line without control characters.
fn line(text: &str) -> String {
    let clean = text.trim().chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut out: String = clean.take(MAX_LINE).collect();
    if text.trim().chars().nth(MAX_LINE).is_some() {
        out.push('…');
    }
    out
}

/// How much of a server's message is shown.
const MAX_LINE: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Sent = Sent {
        id: Some(7),
        answers_elsewhere: false,
        in_session: false,
        is_opening: false,
        is_ping: false,
    };
    const ERROR: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#;
    const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;

    /// The verdict on a response, in a word.
    fn judged(status: u16, content_type: &str, body: &str, sent: Sent) -> String {
        let head = Head { status, content_type, ..Head::default() };
        match verdict(&head, body.as_bytes(), sent) {
            Verdict::Answer(Incoming::One(Message::Response { outcome: Ok(_), .. })) => "result",
            Verdict::Answer(Incoming::One(Message::Response { id, outcome: Err(_) })) => {
                assert_eq!(id, Some(Id::Number(7)));
                "error"
            }
            Verdict::Answer(Incoming::Bad(bad)) => {
                assert_eq!((bad.id, bad.is_response), (Some(Id::Number(7)), true));
                "broken"
            }
            Verdict::Answer(other) => panic!("{other:?}"),
            Verdict::Accepted => "accepted",
            Verdict::SessionGone => "session gone",
            Verdict::Unrecognised(_) => "unrecognised",
            Verdict::Failed(_) => "failed",
        }
        .to_owned()
    }

    #[test]
    fn an_answer_is_judged_by_status_type_and_body() {
        let json = "application/json";
        let without_id = r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"no"}}"#;
        let not_ours = r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"no"}}"#;
        let other_id = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":1,"message":"no"}}"#;
        for (status, content_type, body, expected) in [
            (200, json, RESULT, "result"),
            (200, "Application/JSON; charset=utf-8", RESULT, "result"),
            (200, json, ERROR, "error"),
            (200, json, without_id, "error"),
            (200, json, "{", "broken"),
            (200, json, r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, "unrecognised"),
            (200, json, r#"{"jsonrpc":"2.0","method":"x"}"#, "unrecognised"),
            (200, "text/html", RESULT, "unrecognised"),
            (202, "", "", "unrecognised"),
            (400, json, ERROR, "error"),
            (400, json, without_id, "error"),
            (400, json, other_id, "error"),
            (400, "text/plain", ERROR, "error"),
            (400, json, RESULT, "result"),
            (400, json, not_ours, "unrecognised"),
            (400, json, "{}", "unrecognised"),
            (404, "text/html", "<h1>Not Found</h1>", "unrecognised"),
            (404, json, ERROR, "error"),
            (404, json, RESULT, "result"),
            (404, json, not_ours, "unrecognised"),
            (405, "", "", "unrecognised"),
            (401, json, ERROR, "failed"),
            (401, json, RESULT, "result"),
            (403, json, ERROR, "error"),
            (403, json, without_id, "failed"),
            (408, "", "", "failed"),
            (429, json, ERROR, "error"),
            (429, json, without_id, "failed"),
            (500, json, ERROR, "error"),
            (500, json, RESULT, "result"),
            (500, json, without_id, "error"),
            (500, json, not_ours, "failed"),
            (500, "", "", "failed"),
            (503, "text/plain", "later", "failed"),
            (302, "", "", "failed"),
            (100, "", "", "failed"),
        ] {
            assert_eq!(judged(status, content_type, body, OURS), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_handshake_learns_nothing_from_a_server_in_trouble() {
        let opening = Sent { is_opening: true, ..OURS };
        assert_eq!(judged(500, "application/json", ERROR, opening), "failed");
        assert_eq!(judged(429, "application/json", ERROR, opening), "failed");
        assert_eq!(judged(400, "application/json", ERROR, opening), "error");
    }

    #[test]
    fn only_a_named_session_can_be_gone() {
        let within = Sent { in_session: true, ..OURS };
        let without_id = ERROR.replace("7", "null");
        for body in ["", "<h1>Not Found</h1>", "{}", &without_id, &ERROR.replace("7", "8")] {
            assert_eq!(judged(404, "application/json", body, within), "session gone", "{body}");
        }
        // An answer to the request is final and is not retried.
        assert_eq!(judged(404, "application/json", ERROR, within), "error");
        assert_eq!(judged(404, "application/json", RESULT, within), "result");
        // Unless the request was the `ping` that checks for the session.
        let ping = Sent { is_ping: true, ..within };
        assert_eq!(judged(404, "application/json", ERROR, ping), "session gone");
        assert_eq!(judged(200, "application/json", ERROR, ping), "error");
        assert_eq!(judged(404, "", "", Sent { id: None, ..within }), "session gone");
        assert_eq!(judged(400, "application/json", ERROR, within), "error");
    }

    #[test]
    fn where_answers_come_another_way_a_refusal_still_comes_this_way() {
        let elsewhere = Sent { answers_elsewhere: true, ..OURS };
        for (status, body, expected) in [
            (200, RESULT, "accepted"),
            (202, "", "accepted"),
            (400, ERROR, "error"),
            (404, "", "unrecognised"),
            (500, RESULT, "result"),
            (500, "", "failed"),
        ] {
            assert_eq!(judged(status, "application/json", body, elsewhere), expected, "{status}");
        }
        let head = Head { status: 200, content_type: "text/event-stream", ..Head::default() };
        assert_eq!(head.reading(elsewhere), Ok(Reading::Text));
    }

    #[test]
    fn a_message_without_an_answer_expects_202() {
        let notice = Sent::default();
        for (status, expected) in [
            (200, "accepted"),
            (202, "accepted"),
            (204, "accepted"),
            (400, "failed"),
            (500, "failed"),
        ] {
            assert_eq!(judged(status, "", "", notice), expected, "{status}");
        }
    }

    #[test]
    fn a_stream_is_read_event_by_event() {
        let reading = |status, content_type, content_encoding, sent| {
            Head { status, content_type, content_encoding, challenge: None }.reading(sent).ok()
        };
        let stream = "text/event-stream;charset=utf-8";
        assert_eq!(reading(200, stream, "", OURS), Some(Reading::Events));
        assert_eq!(reading(200, stream, "identity", OURS), Some(Reading::Events));
        assert_eq!(reading(200, stream, "", Sent::default()), Some(Reading::Text));
        assert_eq!(reading(400, stream, "", OURS), Some(Reading::Text));
        assert_eq!(reading(200, "application/json", "", OURS), Some(Reading::Text));
        assert_eq!(reading(200, "application/json", "gzip", OURS), None);
    }

    #[test]
    fn a_servers_message_is_shown_in_one_safe_line() {
        let head = Head { status: 503, content_type: "text/plain", ..Head::default() };
        let body = format!("a\u{1b}[31m\nb{}", "x".repeat(1000));
        let Verdict::Failed(CallError::Http(error)) = verdict(&head, body.as_bytes(), OURS) else {
            panic!("it is a failure");
        };
        assert!(error.message.starts_with("a [31m bxx") && error.message.ends_with('…'));
        assert_eq!(error.message.chars().count(), MAX_LINE + 1);
        let page = Head { status: 503, content_type: "text/html", ..Head::default() };
        let Verdict::Failed(error) = verdict(&page, b"<html>", OURS) else {
            panic!("it is a failure");
        };
        assert_eq!(error.to_string(), "The server answered with HTTP status 503.");
    }
}
