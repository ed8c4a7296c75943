//! A response → its head, as it is sent (RFC 9112).

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime};

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use httpdate::HttpDate;

use crate::http::h1::fields::{digits, parts};
use crate::http::h1::outlet::{Outlet, write_number};

/// How the end of a response is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// By its length.
    Bytes(u64),
    Chunks,
    /// By the end of the connection.
    UntilClose,
}

/// Whether another request may follow on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    No,
    Yes,
    /// A client of HTTP/1.0 has to be told.
    IfTold,
}

/// Appends a head, and says whether another request may follow: if it `may`, and the response allows it.
pub(super) fn write_head(
    status: StatusCode,
    headers: &HeaderMap,
    sent: Sent,
    may: Follow,
    now: Instant,
    out: &mut Vec<u8>,
) -> bool {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    let (mut keeps, mut has_date) = (may != Follow::No && sent != Sent::UntilClose, false);
    for (name, value) in headers {
        // The connection itself decides about these.
        if *name == CONNECTION {
            keeps &= !parts(value.as_bytes()).any(|it| it.eq_ignore_ascii_case(b"close"));
            continue;
        }
        if *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING {
            continue;
        }
        has_date |= *name == DATE;
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    match sent {
        _ if has_no_body(status) => {}
        Sent::Bytes(length) => {
            out.extend_from_slice(b"content-length: ");
            write_number(length, out);
            out.extend_from_slice(b"\r\n");
        }
        Sent::Chunks => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Sent::UntilClose => {}
    }
    match keeps {
        false => out.extend_from_slice(b"connection: close\r\n"),
        true if may == Follow::IfTold => out.extend_from_slice(b"connection: keep-alive\r\n"),
        true => {}
    }
    if !has_date {
        write_date(now, out);
    }
    out.extend_from_slice(b"\r\n");
    keeps
}

/// The length that a response says it has.
pub(super) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH).and_then(|it| digits(it.as_bytes()))
}

/// Whether a response ends with its head, whatever its fields say (RFC 9112 §6.3).
pub(super) fn has_no_body(status: StatusCode) -> bool {
    matches!(status.as_u16(), 100..200 | 204 | 304)
}

/// Appends one chunk of a body.
pub(super) fn write_chunk(mut data: Vec<u8>, out: &mut Outlet) {
    let (mut digits, mut rest) = ([0; 16], data.len());
    let mut at = digits.len();
    while at == digits.len() || rest > 0 {
        at -= 1;
        digits[at] = b"0123456789abcdef"[rest % 16];
        rest /= 16;
    }
    let head = out.more();
    head.extend_from_slice(&digits[at..]);
    head.extend_from_slice(b"\r\n");
    // What ends a chunk is part of its text, so that one that is long goes out from where it is.
    data.extend_from_slice(b"\r\n");
    out.append(data);
}

/// Appends the date (RFC 9110 §6.6.1), which is written once a second.
fn write_date(now: Instant, out: &mut Vec<u8>) {
    DATE_LINE.with_borrow_mut(|(until, line)| {
        if until.is_none_or(|it| now >= it) {
            let date = SystemTime::now();
            let since = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let left = Duration::from_secs(1) - Duration::from_nanos(since.subsec_nanos().into());
            (*until, *line) = (Some(now + left), format!("date: {}\r\n", HttpDate::from(date)));
        }
        out.extend_from_slice(line.as_bytes());
    });
}

thread_local! {
    /// The line, and until when it holds.
    static DATE_LINE: RefCell<(Option<Instant>, String)> = const { RefCell::new((None, String::new())) };
}

/// The end of a body in chunks.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Asks for a body.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_TYPE, HeaderValue};

    use super::*;
    use crate::http::h1::outlet::LONG;

    fn written(status: StatusCode, sent: Sent, may: Follow, close: &'static str) -> (String, bool) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("a/b"));
        headers.insert(DATE, HeaderValue::from_static("today"));
        for (name, value) in
            [(CONNECTION, close), (CONTENT_LENGTH, "7"), (TRANSFER_ENCODING, "chunked")]
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let mut out = Vec::new();
        let keeps = write_head(status, &headers, sent, may, Instant::now(), &mut out);
        (String::from_utf8(out).expect("it is ASCII").replace("\r\n", "|"), keeps)
    }

    #[test]
    fn the_connection_decides_how_a_response_ends() {
        use Follow::{IfTold, No, Yes};
        let begins = "HTTP/1.1 200 OK|content-type: a/b|date: today|";
        for (sent, may, close, ends, keeps) in [
            (Sent::Bytes(12), Yes, "x", "content-length: 12||", true),
            (Sent::Bytes(12), Yes, "x, Close", "content-length: 12|connection: close||", false),
            (Sent::Bytes(0), No, "x", "content-length: 0|connection: close||", false),
            (Sent::Chunks, Yes, "x", "transfer-encoding: chunked||", true),
            (Sent::UntilClose, IfTold, "x", "connection: close||", false),
            (Sent::Bytes(1), IfTold, "x", "content-length: 1|connection: keep-alive||", true),
        ] {
            let written = written(StatusCode::OK, sent, may, close);
            assert_eq!(written, (format!("{begins}{ends}"), keeps));
        }
        let (none, _) = written(StatusCode::NO_CONTENT, Sent::Bytes(0), Yes, "x");
        assert_eq!(none, "HTTP/1.1 204 No Content|content-type: a/b|date: today||");
    }

    #[test]
    fn a_response_has_a_date() {
        let mut out = Vec::new();
        let headers = HeaderMap::new();
        for _ in 0..2 {
            let (sent, may) = (Sent::Chunks, Follow::Yes);
            write_head(StatusCode::OK, &headers, sent, may, Instant::now(), &mut out);
        }
        let text = String::from_utf8(out).expect("it is ASCII");
        let dates = text.split("\r\n").filter_map(|it| it.strip_prefix("date: "));
        let dates = dates.map(|it| it.parse::<HttpDate>().map(SystemTime::from));
        let dates: Vec<_> = dates.map(|it| it.expect("it is a date")).collect();
        let age = dates[1].elapsed().expect("it is not of tomorrow");
        assert!(dates.len() == 2 && age < Duration::from_secs(60), "{text}");
    }

    #[test]
    fn a_chunk_has_its_length_before_it() {
        let mut out = Outlet::default();
        write_chunk(b"hello".to_vec(), &mut out);
        write_chunk(vec![b'x'; 26], &mut out);
        out.more().extend_from_slice(LAST_CHUNK);
        let text = format!("5\r\nhello\r\n1a\r\n{}\r\n0\r\n\r\n", "x".repeat(26));
        assert_eq!(String::from_utf8(out.more().clone()), Ok(text));
        // A long one follows what is written before it.
        write_chunk(vec![b'x'; LONG], &mut out);
        assert!(out.more().ends_with(b"\r\n1000\r\n"));
        assert_eq!((out.left() - out.waiting(), out.has_room(usize::MAX)), (LONG + 2, false));
    }
}
