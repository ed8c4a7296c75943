//! The answer to a POST → what it means for the message that was sent.
//!
//! [`Head::reading`] says how to read the body, [`verdict`] what body and head come to. No status
//! decides about the era by itself: only a body that a server of the new era writes keeps the
//! conversation in it, and only a 4xx that says nothing is taken for an old server.

use trunkline_wire::code;
use trunkline_wire::jsonrpc::{Id, Incoming, Malformed, MalformedKind, Message};

use super::HttpError;
use crate::CallError;

/// The head of an answer, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// The status.
    pub status: u16,
    /// `Content-Type`, or nothing.
    pub content_type: &'a str,
    /// `Content-Encoding`, or nothing.
    pub content_encoding: &'a str,
    /// `WWW-Authenticate`.
    pub challenge: Option<&'a str>,
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The request whose answer comes back the same way; `None` if nothing but a nod does.
    pub id: Option<i64>,
    /// Whether it named a session.
    pub in_session: bool,
    /// Whether it is part of the handshake.
    pub is_opening: bool,
}

/// How to read a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Event by event, until the answer is among them.
    Events,
    /// To its end, then ask for the [`verdict`].
    Text,
}

/// What an answer means.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// It holds the answer to the request.
    Answer(Incoming),
    /// The server took the message, and more is not to be expected.
    Accepted,
    /// The server does not know the session, and has done nothing.
    SessionGone,
    /// Nothing that a server of the new era says.
    Unrecognised(HttpError),
    /// No answer, and no evidence of anything else.
    Failed(CallError),
}

impl Head<'_> {
    /// How to read the body, if at all.
    pub fn reading(&self, sent: Sent) -> Result<Reading, CallError> {
        let encoding = self.content_encoding.trim();
        if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            let encoding = line(encoding);
            let why = format!("its body is encoded as `{encoding}`, which nobody asked for.");
            return Err(CallError::Invalid(why));
        }
        match self.is_success() && sent.id.is_some() && self.is("text/event-stream") {
            true => Ok(Reading::Events),
            false => Ok(Reading::Text),
        }
    }

    /// Whether the content is of this type, whatever its parameters.
    pub fn is(&self, media: &str) -> bool {
        let essence = self.content_type.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case(media)
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// What a head and its whole body come to.
pub fn verdict(head: &Head<'_>, body: &[u8], sent: Sent) -> Verdict {
    match (head.status, sent.id) {
        (200..300, None) => Verdict::Accepted,
        (200..300, Some(id)) => on_success(head, body, id),
        (404, _) if sent.in_session => Verdict::SessionGone,
        // About who asks, or about the server's health: nothing about its era.
        (401 | 403 | 407 | 408 | 425 | 429 | 511, _) => failed(head, body),
        (400..500, Some(id)) => match refusal(body, id) {
            Some(incoming) => Verdict::Answer(incoming),
            None => Verdict::Unrecognised(http_error(head, body)),
        },
        (500..600, Some(id)) if !sent.is_opening => match refusal(body, id) {
            Some(incoming) => Verdict::Answer(incoming),
            None => failed(head, body),
        },
        _ => failed(head, body),
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

/// Whether this is an error that only a server of the new era sends.
pub fn is_of_the_new_era(incoming: &Incoming) -> bool {
    let Incoming::One(Message::Response { outcome: Err(error), .. }) = incoming else {
        return false;
    };
    matches!(
        error.code,
        code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_REVISION
    )
}

/// What was too long to be read, where only the answer to `id` can stand.
pub fn too_long(id: i64) -> Incoming {
    Incoming::Bad(Malformed {
        id: Some(Id::Number(id)),
        is_response: true,
        ..Malformed::new(MalformedKind::TooLong)
    })
}

fn on_success(head: &Head<'_>, body: &[u8], id: i64) -> Verdict {
    if !head.is("application/json") {
        let what = match head.content_type {
            "" => "nothing".to_owned(),
            other => format!("`{}`", line(other)),
        };
        let message = format!("it holds {what} where JSON or an event stream should be.");
        return Verdict::Unrecognised(HttpError::new(head.status, message));
    }
    match claim(Incoming::parse(body), id) {
        Some(incoming) => Verdict::Answer(incoming),
        None => {
            let message = "it holds JSON, but no answer to the request.";
            Verdict::Unrecognised(HttpError::new(head.status, message))
        }
    }
}

/// What came as the answer to `id`, as an answer to `id`: an error may lack the id, and what cannot
/// be read is broken for this request alone.
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

/// A body that is a JSON-RPC error, whatever its type is said to be. Servers that could not read
/// the id put all sorts of things in its place; the exchange says whose it is.
fn refusal(body: &[u8], id: i64) -> Option<Incoming> {
    match Incoming::parse(body) {
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
        _ => line(&String::from_utf8_lossy(&body[..body.len().min(4 * LINE)])),
    };
    HttpError { challenge: head.challenge.map(line), ..HttpError::new(head.status, message) }
}

/// One line, clipped, with nothing in it that a terminal would obey.
fn line(text: &str) -> String {
    let clean = text.trim().chars().map(|it| if it.is_control() { ' ' } else { it });
    let mut out: String = clean.take(LINE).collect();
    if text.trim().chars().nth(LINE).is_some() {
        out.push('…');
    }
    out
}

/// How much of a server's words is shown.
const LINE: usize = 300;
