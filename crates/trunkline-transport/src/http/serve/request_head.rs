//! The head of a request, as it came → its parts, and how long its body is (RFC 9112).
//!
//! Strict where two readers could disagree about where a request ends: such a head is refused, or its connection ends
//! with it.

use std::ops::Range;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri, Version};

use crate::http::h1::fields::{Field, WrongFields, digits, is_name, is_token, parts, read_fields};
use crate::http::h1::inlet::BodyLength;
use crate::http::lent_head::LentHead;

/// What a head says of the rest of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framing {
    pub(super) length: BodyLength,
    /// Whether another request may follow.
    pub(super) keeps_connection: bool,
    /// Whether the client sends the body only after `100 Continue` (RFC 9110 §10.1.1).
    pub(super) is_awaited: bool,
    /// Whether this is HTTP/1.0.
    pub(super) is_oldest: bool,
}

/// What is wrong with a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrongHead {
    /// The status of the response.
    Refused(StatusCode),
    /// It is the preface of HTTP/2, which has to be the first of a connection.
    OtherVersion,
}

/// Reads the heads of one connection. Most are the one before but for the length of the body, and are not read again.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    fields: Vec<Field>,
    last: Option<Box<Last>>,
}

/// A head that may come again.
#[derive(Debug)]
struct Last {
    /// Its text before the length of the body, that length, and the text after it. The texts are those that the fields
    /// share.
    before: Bytes,
    length: Box<[u8]>,
    after: Bytes,
    method: Method,
    uri: Uri,
    /// Lent to the request while it is answered.
    headers: HeaderMap,
    framing: Framing,
}

impl HeadReader {
    /// Takes back what a head was lent, and gives up what else it takes.
    pub(super) fn forget(&mut self, head: &mut LentHead) {
        match (&mut self.last, head.give_back()) {
            (Some(last), Some(headers)) => last.headers = headers,
            (Some(_), None) => {}
            // Its target is a part of its text.
            (None, _) => *head = LentHead::default(),
        }
    }

    /// Reads the head that `text` begins with and which has at most `limit` bytes into `head`, and says where it ends;
    /// `None` if it has not all come.
    pub(super) fn read(
        &mut self,
        text: &[u8],
        limit: usize,
        head: &mut LentHead,
    ) -> Result<Option<(Framing, usize)>, WrongHead> {
        if let Some(again) = self.last.as_mut().and_then(|it| it.again(text, limit, head)) {
            return Ok(Some(again));
        }
        let start = empty_lines(text);
        let is_long = text.len() > limit;
        let incomplete = if is_long { Err(TOO_LONG) } else { Ok(None) };
        let Some(line) = RequestLine::read(text, start)? else { return incomplete };
        let read = read_fields(text, line.end, &mut self.fields).map_err(|wrong| match wrong {
            WrongFields::Malformed => MALFORMED,
            WrongFields::TooMany => TOO_LONG,
        });
        let Some(end) = read? else { return incomplete };
        if end > limit {
            return Err(TOO_LONG);
        }
        let framing = Framing::of(&self.fields, text, line.is_oldest)?;
        let all = Bytes::copy_from_slice(&text[..end]);
        let uri = Uri::from_maybe_shared(all.slice(line.target));
        let head = head.own();
        head.method = Method::from_bytes(&all[line.method]).map_err(|_| MALFORMED)?;
        head.uri = uri.map_err(|_| MALFORMED)?;
        head.headers = self.headers(&all, &framing)?;
        head.version = if line.is_oldest { Version::HTTP_10 } else { Version::HTTP_11 };
        self.remember(&all, head, framing);
        Ok(Some((framing, end)))
    }

    fn headers(&self, text: &Bytes, framing: &Framing) -> Result<HeaderMap, WrongHead> {
        let mut headers = HeaderMap::with_capacity(self.fields.len());
        for field in &self.fields {
            let name = HeaderName::from_bytes(field.name(text));
            let value = HeaderValue::from_maybe_shared(text.slice(field.value_at(text)));
            let (Ok(name), Ok(value)) = (name, value) else { return Err(MALFORMED) };
            // Chunks count alone, and a repeated length is one (RFC 9112 §6.3).
            if name == CONTENT_LENGTH
                && (framing.length == BodyLength::Chunked || headers.contains_key(&name))
            {
                continue;
            }
            headers.append(name, value);
        }
        Ok(headers)
    }

    fn remember(&mut self, text: &Bytes, head: &Parts, framing: Framing) {
        self.last = None;
        let mut lengths = self.fields.iter().filter(|it| is_name(it.name(text), LENGTH));
        let (Some(length), None) = (lengths.next(), lengths.next()) else { return };
        let is_plain = matches!(framing.length, BodyLength::Bytes(_)) && framing.keeps_connection;
        // What is expected counts once there is a body.
        let expects = self.fields.iter().any(|it| is_name(it.name(text), EXPECT));
        if text.len() > MOST_KEPT || !is_plain || expects || framing.is_oldest {
            return;
        }
        let at = length.value_at(text);
        self.last = Some(Box::new(Last {
            before: text.slice(..at.start),
            length: text[at.clone()].into(),
            after: text.slice(at.end..),
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            framing,
        }));
        // The next head is this one, most likely.
        self.fields = Vec::new();
    }
}

impl Last {
    /// The head that `text` begins with, if it is this one but for the length of the body.
    fn again(
        &mut self,
        text: &[u8],
        limit: usize,
        head: &mut LentHead,
    ) -> Option<(Framing, usize)> {
        let rest = text.strip_prefix(&*self.before)?;
        let here = match rest.strip_prefix(&*self.length) {
            Some(after) if after.starts_with(&self.after) => self.length.len(),
            _ => {
                let here = rest.iter().position(|it| !it.is_ascii_digit())?;
                let is_long = self.before.len() + here + self.after.len() > limit;
                if here > MOST_DIGITS || is_long || !rest[here..].starts_with(&self.after) {
                    return None;
                }
                self.framing.length = BodyLength::Bytes(digits(&rest[..here])?);
                self.length = rest[..here].into();
                self.headers.insert(CONTENT_LENGTH, HeaderValue::from_bytes(&self.length).ok()?);
                here
            }
        };
        let head = head.lend(std::mem::take(&mut self.headers));
        head.method = self.method.clone();
        head.uri = self.uri.clone();
        head.version = Version::HTTP_11;
        Some((self.framing, self.before.len() + here + self.after.len()))
    }
}

impl Framing {
    fn of(fields: &[Field], text: &[u8], is_oldest: bool) -> Result<Self, WrongHead> {
        let (mut length, mut coding, mut is_awaited) = (None, None, false);
        let (mut codings, mut is_chunked_alone) = (0, false);
        // HTTP/1.0 closes unless told otherwise.
        let (mut closes, mut keeps) = (false, !is_oldest);
        for field in fields {
            let name = field.name(text);
            // Only these have so many letters.
            if !matches!(name.len(), 6 | 10 | 14 | 17) {
                continue;
            }
            let value = field.value(text);
            if is_name(name, LENGTH) {
                let bytes = digits(value).ok_or(MALFORMED)?;
                if length.replace(bytes).is_some_and(|it| it != bytes) {
                    return Err(MALFORMED);
                }
            } else if is_name(name, b"transfer-encoding") {
                if !value.is_ascii() {
                    return Err(MALFORMED);
                }
                coding = parts(value).next_back();
                codings += 1;
                is_chunked_alone = codings == 1 && value.eq_ignore_ascii_case(b"chunked");
            } else if is_name(name, b"connection") {
                for option in parts(value) {
                    closes |= option.eq_ignore_ascii_case(b"close");
                    keeps |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is_name(name, EXPECT) {
                is_awaited = value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        let keeps_connection = keeps && !closes;
        let Some(coding) = coding else {
            let bytes = length.unwrap_or_default();
            let is_awaited = is_awaited && bytes > 0 && !is_oldest;
            let length = BodyLength::Bytes(bytes);
            return Ok(Self { length, keeps_connection, is_awaited, is_oldest });
        };
        // The end of a body that is not in chunks at last is unknown, and HTTP/1.0 has no chunks.
        if is_oldest || !coding.eq_ignore_ascii_case(b"chunked") {
            return Err(MALFORMED);
        }
        // A body with both lengths, or with more codings than chunks, is an attempt to make two readers disagree: nothing is
        // read after it.
        let keeps_connection = keeps_connection && length.is_none() && is_chunked_alone;
        Ok(Self { length: BodyLength::Chunked, keeps_connection, is_awaited, is_oldest })
    }
}

/// Where in a head the parts of its first line are.
struct RequestLine {
    method: Range<usize>,
    target: Range<usize>,
    is_oldest: bool,
    /// Where the next line begins.
    end: usize,
}

impl RequestLine {
    /// The line that begins at `start`; `None` if it has not all come.
    fn read(text: &[u8], start: usize) -> Result<Option<Self>, WrongHead> {
        let here = &text[start..];
        let Some(method) = here.iter().position(|it| !is_token(*it)) else { return Ok(None) };
        if here == b"\r" {
            return Ok(None);
        }
        if method == 0 || here[method] != b' ' {
            return Err(MALFORMED);
        }
        let target = method + 1;
        // A fragment is not sent (RFC 9112 §3.2), and would be dropped.
        let is_end = |it: &u8| *it <= b' ' || *it == b'#' || *it == 0x7f;
        let Some(length) = here[target..].iter().position(is_end) else { return Ok(None) };
        let version = target + length;
        if length == 0 || here[version] != b' ' {
            return Err(MALFORMED);
        }
        let after = &here[version + 1..];
        let is_oldest = match after {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ (b'0' | b'1'), ..] => *minor == b'0',
            _ if b"HTTP/1.".starts_with(&after[..after.len().min(7)]) && after.len() < 8 => {
                return Ok(None);
            }
            // Its sender cannot read HTTP/1.
            _ if here.starts_with(b"PRI * HTTP/2.0\r\n") => return Err(WrongHead::OtherVersion),
            _ => return Err(MALFORMED),
        };
        let end = match &after[8..] {
            [b'\n', ..] => 9,
            [b'\r', b'\n', ..] => 10,
            [] | [b'\r'] => return Ok(None),
            _ => return Err(MALFORMED),
        };
        Ok(Some(Self {
            method: start..start + method,
            target: start + target..start + version,
            is_oldest,
            end: start + version + 1 + end,
        }))
    }
}

/// How many bytes of empty lines `text` begins with: they are skipped before a request (RFC 9112 §2.2).
pub(super) fn empty_lines(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match text[at..] {
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => return at,
        }
    }
}

const MALFORMED: WrongHead = WrongHead::Refused(StatusCode::BAD_REQUEST);
const TOO_LONG: WrongHead = WrongHead::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
const LENGTH: &[u8] = b"content-length";
const EXPECT: &[u8] = b"expect";
/// The longest head that a connection keeps.
const MOST_KEPT: usize = 2 << 10;
/// A number of 64 bits has no more of them, unless zeros lead it.
const MOST_DIGITS: usize = 20;

#[cfg(test)]
mod tests;
