//! The head of a response, as it came → its status, its fields, and how long its body is (RFC 9112).
//!
//! Strict where two readers could disagree about where a body ends: such a response is refused.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::http::h1::fields::{Field, WrongFields, digits, is_name, parts, read_fields};
use crate::http::h1::inlet::BodyLength;

/// The head of a response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    /// As it came.
    text: Box<[u8]>,
    fields: Vec<Field>,
    pub(super) length: BodyLength,
    /// Whether another request may follow on the connection.
    pub(super) keeps_connection: bool,
    /// For how long, if the server says it.
    pub(super) kept: Option<Duration>,
}

impl ResponseHead {
    /// Reads the head that `text` begins with, and where it ends; `None` if it has not all come. Fails with what is
    /// wrong with it.
    pub(super) fn parse(text: &[u8]) -> Result<Option<(Self, usize)>, &'static str> {
        let Some(line) = text.iter().position(|it| *it == b'\n') else { return Ok(None) };
        let first = status_line(text[..line].trim_ascii_end());
        let (is_oldest, status) = first.ok_or("it does not speak HTTP/1.1")?;
        let mut fields = Vec::with_capacity(8);
        let Some(end) = read_fields(text, line + 1, &mut fields).map_err(|wrong| match wrong {
            WrongFields::Malformed => "a field of its head is malformed",
            WrongFields::TooMany => "its head has too many fields",
        })?
        else {
            return Ok(None);
        };
        let (mut length, mut is_chunked, mut kept) = (None, false, None);
        // HTTP/1.0 closes unless told otherwise.
        let mut keeps_connection = !is_oldest;
        for field in &fields {
            let (name, value) = (field.name(text), field.value(text));
            if is_name(name, b"content-length") {
                let bytes = digits(value).ok_or("its body has no proper length")?;
                if length.replace(bytes).is_some_and(|it| it != bytes) {
                    return Err("its body has two lengths");
                }
            } else if is_name(name, b"transfer-encoding") {
                if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("its body is encoded in a way that nobody asked for");
                }
                is_chunked = true;
            } else if is_name(name, b"connection") {
                for option in parts(value) {
                    keeps_connection &= !option.eq_ignore_ascii_case(b"close");
                    keeps_connection |= is_oldest && option.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is_name(name, b"keep-alive") {
                kept = parts(value).find_map(timeout);
            }
        }
        // A body with both lengths is an attempt to make two readers disagree: no other response is read after it.
        keeps_connection &= !(is_chunked && (length.is_some() || is_oldest));
        let length = match length {
            _ if matches!(status, 100..200 | 204 | 304) => BodyLength::Bytes(0),
            _ if is_chunked => BodyLength::Chunked,
            Some(bytes) => BodyLength::Bytes(bytes),
            None => BodyLength::UntilClose,
        };
        let text = text[..end].into();
        Ok(Some((Self { status, text, fields, length, keeps_connection, kept }, end)))
    }

    /// The value of the first field with this name, which is in lower case; `None` if it is not ASCII.
    pub(crate) fn get(&self, name: &HeaderName) -> Option<&str> {
        self.get_all(name).next()
    }

    /// The values of all fields with this name that are ASCII.
    pub(crate) fn get_all(&self, name: &HeaderName) -> impl Iterator<Item = &str> {
        let name = name.as_str().as_bytes();
        let found = self.fields.iter().filter(move |it| is_name(it.name(&self.text), name));
        let values = found.filter_map(|it| str::from_utf8(it.value(&self.text)).ok());
        values.filter(|it| it.is_ascii())
    }

    /// The head of a response with this body.
    pub(crate) fn with<T>(&self, body: T) -> Response<T> {
        let mut response = Response::new(body);
        // Three digits are a status.
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or_default();
        let headers: &mut HeaderMap = response.headers_mut();
        for field in &self.fields {
            let name = HeaderName::from_bytes(field.name(&self.text));
            let value = HeaderValue::from_bytes(field.value(&self.text));
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        response
    }
}

/// The `timeout` of `Keep-Alive` (RFC 2068 §19.7.1.1).
fn timeout(option: &[u8]) -> Option<Duration> {
    let at = option.iter().position(|it| *it == b'=')?;
    let (name, seconds) = (option[..at].trim_ascii(), option[at + 1..].trim_ascii());
    let is_it = name.eq_ignore_ascii_case(b"timeout");
    is_it.then(|| digits(seconds)).flatten().map(Duration::from_secs)
}

/// Whether this is HTTP/1.0, and the status.
fn status_line(line: &[u8]) -> Option<(bool, u16)> {
    let rest = line.strip_prefix(b"HTTP/1.")?;
    let [version @ (b'0' | b'1'), b' ', status @ ..] = rest else { return None };
    let ([a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9']
    | [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..]) = status
    else {
        return None;
    };
    let status = [a, b, c].into_iter().fold(0, |all, it| 10 * all + u16::from(it - b'0'));
    Some((*version == b'0', status))
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, SET_COOKIE, WWW_AUTHENTICATE};

    use super::*;
    use crate::http::h1::fields::{MAX_FIELDS, is_whole};

    fn parse(text: &str) -> Result<ResponseHead, &'static str> {
        let text = text.replace('\n', "\r\n");
        let (head, end) = ResponseHead::parse(text.as_bytes())?.expect("all of it is there");
        assert_eq!(end, text.len(), "{text}");
        Ok(head)
    }

    #[test]
    fn the_length_of_a_body_and_the_end_of_a_connection_are_read_from_the_head() {
        use BodyLength::{Bytes, Chunked, UntilClose};
        for (text, length, is_kept) in [
            ("HTTP/1.1 200 OK\nContent-Length: 12\n\n", Bytes(12), true),
            ("HTTP/1.1 200\ncontent-length:12\ncontent-length: 12\n\n", Bytes(12), true),
            ("HTTP/1.1 200 OK\nTransfer-Encoding: Chunked\n\n", Chunked, true),
            ("HTTP/1.1 200 OK\n\n", UntilClose, true),
            ("HTTP/1.1 204 No Content\n\n", Bytes(0), true),
            ("HTTP/1.1 304 Not Modified\ncontent-length: 7\n\n", Bytes(0), true),
            ("HTTP/1.1 200 OK\ncontent-length: 1\nConnection: x, CLOSE\n\n", Bytes(1), false),
            ("HTTP/1.0 200 OK\ncontent-length: 1\n\n", Bytes(1), false),
            ("HTTP/1.0 200 OK\ncontent-length: 1\nconnection: Keep-Alive\n\n", Bytes(1), true),
            // Others may read such a body in another way.
            ("HTTP/1.1 200 OK\ncontent-length: 1\ntransfer-encoding: chunked\n\n", Chunked, false),
            ("HTTP/1.0 200 OK\ntransfer-encoding: chunked\n\n", Chunked, false),
        ] {
            let head = parse(text).expect(text);
            assert_eq!((head.length, head.keeps_connection), (length, is_kept), "{text}");
        }
    }

    #[test]
    fn a_server_may_say_for_how_long_it_keeps_a_connection() {
        for (field, seconds) in [
            ("Keep-Alive: timeout=5", Some(5)),
            ("keep-alive: max=100, Timeout = 72", Some(72)),
            ("keep-alive: timeout=0", Some(0)),
            ("keep-alive: timeout=18446744073709551615", Some(u64::MAX)),
            ("keep-alive: timeout=18446744073709551616", None),
            ("keep-alive: timeout=-1", None),
            ("keep-alive: timeout", None),
            ("keep-alive: 5", None),
            ("x: timeout=5", None),
        ] {
            let head = parse(&format!("HTTP/1.1 200 OK\ncontent-length: 0\n{field}\n\n"));
            assert_eq!(head.expect(field).kept, seconds.map(Duration::from_secs), "{field}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for text in [
            "HTTP/2 200 OK\n\n",
            "HTTP/1.1 20 OK\n\n",
            "HTTP/1.1 099 OK\n\n",
            "HTTP/1.1 2000\n\n",
            "ICY 200 OK\n\n",
            "HTTP/1.1 200 OK\ncontent-length: 1\ncontent-length: 2\n\n",
            "HTTP/1.1 200 OK\ncontent-length: 1, 1\n\n",
            "HTTP/1.1 200 OK\ncontent-length: +1\n\n",
            "HTTP/1.1 200 OK\ncontent-length:\n\n",
            "HTTP/1.1 200 OK\ncontent-length: 99999999999999999999\n\n",
            "HTTP/1.1 200 OK\ntransfer-encoding: gzip, chunked\n\n",
            "HTTP/1.1 200 OK\ntransfer-encoding: chunked\ntransfer-encoding: chunked\n\n",
            "HTTP/1.1 200 OK\ncontent-length : 1\n\n",
            "HTTP/1.1 200 OK\nx: a\n folded: b\n\n",
            "HTTP/1.1 200 OK\nno colon\n\n",
            "HTTP/1.1 200 OK\n: no name\n\n",
            "HTTP/1.1 200 OK\nx: a\0b\n\n",
            "HTTP/1.1 200 OK\nx: a\rb\n\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let many = "x: y\n".repeat(MAX_FIELDS + 1);
        assert!(parse(&format!("HTTP/1.1 200 OK\n{many}\n")).is_err());
    }

    #[test]
    fn fields_are_found_whatever_their_case() {
        let head = parse(
            "HTTP/1.1 401 No\nContent-TYPE: \t a/b \nSet-Cookie: 1\nset-cookie: 2\n\
             WWW-Authenticate: \u{e9}\nwww-authenticate: Bearer\n\n",
        )
        .expect("it is a head");
        assert_eq!(head.status, 401);
        assert_eq!(head.get(&CONTENT_TYPE), Some("a/b"));
        assert_eq!(head.get_all(&SET_COOKIE).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(head.get(&WWW_AUTHENTICATE), Some("Bearer"), "the first is not ASCII");
        assert_eq!(head.get(&HeaderName::from_static("content")), None);
        let response = head.with(());
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()[CONTENT_TYPE], "a/b");
        assert_eq!(response.headers().get_all(SET_COOKIE).iter().count(), 2);
        assert_eq!(response.headers().len(), 5);
    }

    #[test]
    fn the_end_of_a_head_is_found_in_whatever_pieces_it_comes() {
        for text in ["HTTP/1.1 200 OK\r\na: b\r\n\r\nbody\n\n", "HTTP/1.1 200 OK\na: b\n\nbody\n\n"]
        {
            let end = text.find("body").expect("it has one");
            for first in 0..text.len() {
                let piece = &text.as_bytes()[..first];
                let found = ResponseHead::parse(piece).expect("nothing is wrong");
                let found = found.map(|(_, end)| end);
                assert_eq!(found, (first >= end).then_some(end), "{first} bytes of {text:?}");
                assert_eq!(is_whole(piece, 0), first >= end, "{first} of {text:?}");
                // What was searched in vain is not searched again.
                assert!(first >= end || is_whole(text.as_bytes(), first), "{first}");
            }
        }
    }
}
