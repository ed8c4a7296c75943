//! HTTP/2: requests and frames with one fault each (RFC 9113 §5 to §8).

use std::net::SocketAddr;

use trunkline_testkit::http::bad::rows::MODERN;

use super::Counted;
use super::frames::Heard::{self, End, GoAway, Reset, Status};
use super::frames::*;
use Outcome::{Answered, Dropped, Gone};

/// The expected outcome of a request. The error code is not checked: h2 uses one for nearly all.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// It is answered, and runs if it succeeds.
    Answered(u16),
    /// Its stream is reset, or the connection closed with it (§5.4.1 allows that).
    Dropped,
    /// The connection is closed.
    Gone,
}

impl Outcome {
    fn is(self, heard: Heard) -> bool {
        match heard {
            Status(status) => self == Answered(status),
            Reset(reason) => self == Dropped && reason != 0,
            GoAway(reason) => matches!(self, Dropped | Gone) && reason != 0,
            End => self == Gone,
        }
    }

    fn runs(self) -> (u32, u32) {
        (u32::from(self == Answered(200)), 0)
    }
}

/// An edit of a call's headers, and its outcome.
type Edit = (Outcome, fn(&mut Vec<(String, String)>));

/// The bytes after the preface, beginning with stream 1, and their outcome.
type Frames = (Outcome, fn(SocketAddr) -> Vec<u8>);

#[tokio::test]
async fn a_malformed_request_ends_its_stream_and_runs_nothing() {
    let edited = |(expected, edit): &Edit, address| {
        let mut fields = fields(address);
        edit(&mut fields);
        let head = frame(HEADERS, END_HEADERS, 1, &packed(&fields));
        let body = frame(DATA, END_STREAM, 1, MODERN.as_bytes());
        (*expected, [head, body].concat(), format!("{fields:?}"))
    };
    check(EDITS, edited).await;
}

#[tokio::test]
async fn a_frame_that_is_none_ends_the_connection_or_its_stream() {
    let framed = |(expected, bytes): &Frames, address| (*expected, bytes(address), String::new());
    check(FRAMES, framed).await;
}

#[tokio::test]
async fn a_preface_that_is_none_is_not_spoken_to() {
    let counted = Counted::new().await;
    let call = call(counted.house.address, 1);
    for preface in [
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\nX\r\n",
        "PRI * HTTP/2.0\n\nSM\n\n",
        "PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n",
        "PRI * HTTP/1.1\r\nHost: $HOST\r\n\r\nSM\r\n\r\n",
        "pri * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "SM\r\n\r\n",
        "",
    ] {
        let mut wire = Wire::to(counted.house.address).await;
        let settings = frame(SETTINGS, 0, 0, &[]);
        wire.send(&[counted.bytes(preface).as_bytes(), &settings, &call].concat()).await;
        wire.over().await;
        counted.goes_on((0, 0), preface).await;
    }
}

/// Sends what each row makes at the server's address, and compares what comes of it.
async fn check<R>(rows: &[R], make: impl Fn(&R, SocketAddr) -> (Outcome, Vec<u8>, String)) {
    let counted = Counted::new().await;
    let mut wrong = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let (expected, bytes, shown) = make(row, counted.house.address);
        let heard = sent(&counted, &bytes).await;
        let ran = counted.runs();
        if !expected.is(heard) || ran != expected.runs() {
            wrong.push(format!("row {at}: {heard:?}, not {expected:?}, and {ran:?} ran: {shown}"));
        }
        assert_eq!((counted.clean().await, counted.runs()), (200, (1, 0)), "after row {at}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sends bytes over their own connection, and returns the reaction to stream 1. If that is not the
/// end of the connection, the next call on it must be answered.
async fn sent(counted: &Counted, bytes: &[u8]) -> Heard {
    let mut wire = Wire::open(counted.house.address).await;
    wire.send(bytes).await;
    let heard = wire.outcome(1).await;
    match heard {
        GoAway(_) | End => wire.over().await,
        Status(_) | Reset(_) => {
            let before = counted.runs();
            wire.send(&call(counted.house.address, 101)).await;
            assert_eq!(wire.outcome(101).await, Status(200), "after {heard:?}");
            assert_eq!(counted.runs(), (1, 0), "after {heard:?}");
            counted.restore(before);
        }
    }
    heard
}

fn set(fields: &mut [(String, String)], name: &str, value: &str) {
    fields.iter_mut().find(|it| it.0 == name).expect("it is there").1 = value.to_owned();
}

fn add(fields: &mut Vec<(String, String)>, name: &str, value: &str) {
    fields.push((name.to_owned(), value.to_owned()));
}

fn drop(fields: &mut Vec<(String, String)>, name: &str) {
    fields.retain(|it| it.0 != name);
}

const EDITS: &[Edit] = &[
    (Answered(200), |_| {}),
    (Answered(200), |it| add(it, "content-length", &MODERN.len().to_string())),
    // A length that differs from that of the frames (§8.1.1).
    (Dropped, |it| add(it, "content-length", &(MODERN.len() + 1).to_string())),
    (Dropped, |it| add(it, "content-length", &(MODERN.len() - 1).to_string())),
    (Dropped, |it| add(it, "content-length", "0")),
    (Dropped, |it| add(it, "content-length", "-1")),
    (Dropped, |it| add(it, "content-length", "+5")),
    (Dropped, |it| add(it, "content-length", "18446744073709551616")),
    (Dropped, |it| {
        add(it, "content-length", &MODERN.len().to_string());
        add(it, "content-length", "0");
    }),
    // Connection-specific headers (§8.2.2).
    (Dropped, |it| add(it, "transfer-encoding", "chunked")),
    (Dropped, |it| add(it, "connection", "close")),
    (Dropped, |it| add(it, "keep-alive", "1")),
    (Dropped, |it| add(it, "proxy-connection", "close")),
    (Dropped, |it| add(it, "upgrade", "h2c")),
    (Dropped, |it| add(it, "te", "gzip")),
    (Answered(200), |it| add(it, "te", "trailers")),
    // Names and values (§8.2.1): a proxy that forwarded these as HTTP/1 would write other headers.
    (Dropped, |it| add(it, "X-Upper", "y")),
    (Dropped, |it| add(it, "x y", "z")),
    (Dropped, |it| add(it, "", "y")),
    (Dropped, |it| add(it, "x:", "y")),
    (Dropped, |it| add(it, "x\r\nhost", "y")),
    (Dropped, |it| add(it, "x\0", "y")),
    (Dropped, |it| add(it, "x", "a\r\nhost: evil.example")),
    (Dropped, |it| add(it, "x", "a\nb")),
    (Dropped, |it| add(it, "x", "a\0b")),
    // Pseudo headers (§8.3).
    (Dropped, |it| drop(it, ":method")),
    (Dropped, |it| drop(it, ":scheme")),
    (Dropped, |it| drop(it, ":path")),
    (Dropped, |it| set(it, ":path", "")),
    (Dropped, |it| set(it, ":path", "mcp")),
    (Dropped, |it| set(it, ":path", "/mcp HTTP/1.1\r\nx: y")),
    (Dropped, |it| set(it, ":method", "")),
    (Dropped, |it| set(it, ":method", "PO ST")),
    (Dropped, |it| set(it, ":method", "POST /mcp HTTP/1.1\r\nx: y")),
    (Dropped, |it| set(it, ":scheme", "ht tp")),
    (Dropped, |it| it.insert(0, (":method".into(), "GET".into()))),
    (Dropped, |it| it.insert(0, (":path".into(), "/".into()))),
    (Dropped, |it| it.insert(0, (":status".into(), "200".into()))),
    (Dropped, |it| it.insert(0, (":unknown".into(), "x".into()))),
    (Dropped, |it| it.insert(0, (":protocol".into(), "websocket".into()))),
    (Dropped, |it| it.rotate_left(1)),
    (Dropped, |it| it.rotate_left(4)),
    // The host is in `:authority`, and a second one must be ours too.
    (Answered(400), |it| drop(it, ":authority")),
    (Answered(403), |it| set(it, ":authority", "evil.example")),
    (Answered(403), |it| add(it, "host", "evil.example")),
    (Answered(200), |it| add(it, "host", "localhost")),
    // Methods without a use for it.
    (Answered(405), |it| set(it, ":method", "post")),
    (Answered(405), |it| set(it, ":method", "PUT")),
    (Answered(404), |it| set(it, ":path", "*")),
];

const FRAMES: &[Frames] = &[
    // Streams (§5.1.1).
    (Gone, |at| call(at, 2)),
    (Gone, |at| call(at, 0)),
    (Gone, |_| frame(DATA, END_STREAM, 0, b"x")),
    (Gone, |_| frame(DATA, END_STREAM, 1, b"x")),
    (Gone, |_| frame(RST_STREAM, 0, 1, &[0; 4])),
    (Gone, |_| frame(RST_STREAM, 0, 0, &[0; 4])),
    (Gone, |_| frame(SETTINGS, 0, 1, &[])),
    (Gone, |_| frame(PING, 0, 1, &[0; 8])),
    (Gone, |_| frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes())),
    (Gone, |at| {
        frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], &*packed(&fields(at))].concat())
    }),
    // Sizes (§4.2, §6).
    (Gone, |_| frame(DATA, END_STREAM, 1, &[0; 16_385])),
    (Gone, |_| frame(HEADERS, END_HEADERS, 1, &[0; 16_385])),
    (Gone, |_| frame(99, 0, 0, &[0; 16_385])),
    (Gone, |_| frame(SETTINGS, 0, 0, &[0; 5])),
    (Gone, |_| frame(SETTINGS, 1, 0, &[0; 6])),
    (Gone, |_| frame(PING, 0, 0, &[0; 7])),
    (Gone, |_| frame(WINDOW_UPDATE, 0, 0, &[0; 3])),
    (Gone, |at| [open_call(at), frame(RST_STREAM, 0, 1, &[0; 3])].concat()),
    // Invalid settings (§6.5.2).
    (Gone, |_| frame(SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2])),
    (Gone, |_| frame(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])),
    (Gone, |_| frame(SETTINGS, 0, 0, &[0, 5, 0, 0, 0, 1])),
    // Padding that is longer than the frame (§6.1, §6.2).
    (Gone, |at| [open_call(at), frame(DATA, PADDED | END_STREAM, 1, &[9, b'{', b'}'])].concat()),
    (Gone, |_| frame(HEADERS, PADDED | END_HEADERS | END_STREAM, 1, &[9, 0x82])),
    // Header blocks that are interrupted, continue nothing, or are invalid (§6.10, §4.3).
    (Gone, |at| frame(CONTINUATION, END_HEADERS, 1, &packed(&fields(at)))),
    (Gone, |at| {
        let head = packed(&fields(at));
        [frame(HEADERS, END_STREAM, 1, &head), frame(PING, 0, 0, &[0; 8])].concat()
    }),
    (Gone, |at| {
        let head = packed(&fields(at));
        [frame(HEADERS, 0, 1, &head[..9]), frame(CONTINUATION, END_HEADERS, 3, &head[9..])].concat()
    }),
    (Gone, |_| frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 20])),
    (Gone, |_| frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x80])),
    (Gone, |_| frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xbe])),
    (Gone, |_| frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0, 0x7f, 0])),
    (Gone, |_| frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x3f, 0xff, 0xff, 1])),
    // Windows (§6.9).
    (Gone, |_| frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
    (Gone, |_| frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
    (Dropped, |at| [open_call(at), frame(WINDOW_UPDATE, 0, 1, &[0; 4])].concat()),
    (Dropped, |at| [open_call(at), frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])].concat()),
    // Trailers without END_STREAM (§8.1).
    (Dropped, |at| {
        let trailers = block(&[("x", "y")]);
        [whole_but_open(at), frame(HEADERS, END_HEADERS, 1, &trailers)].concat()
    }),
    // Valid, if odd: a body in many padded frames, between frames that are ignored.
    (Answered(200), |at| {
        let mut bytes = open_call(at);
        for byte in MODERN.bytes() {
            bytes.extend(frame(DATA, PADDED, 1, &[1, byte, 0]));
        }
        bytes.extend(frame(99, 0xff, 1, b"who knows"));
        bytes.extend(frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 7]));
        bytes.extend(frame(DATA, END_STREAM, 1, &[]));
        bytes
    }),
    // Trailers are read and ignored, even if they name a path.
    (Answered(200), |at| {
        let trailers = block(&[(":path", "/nowhere")]);
        [whole_but_open(at), frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers)].concat()
    }),
    (Answered(200), |at| {
        let trailers = block(&[("authorization", "Bearer x"), ("mcp-name", "sleep")]);
        [whole_but_open(at), frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers)].concat()
    }),
    // An HTTP/1 request in a body is a body.
    (Answered(400), |at| {
        let hidden = format!("POST /mcp HTTP/1.1\r\nHost: {at}\r\n\r\n");
        [open_call(at), frame(DATA, END_STREAM, 1, hidden.as_bytes())].concat()
    }),
    // A stream that is reset before it is complete is not a call.
    (Gone, |at| {
        let reset = frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes());
        [whole_but_open(at), reset, frame(SETTINGS, 0, 1, &[])].concat()
    }),
];

/// A call whose body is still to come.
fn open_call(at: SocketAddr) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, &packed(&fields(at)))
}

/// A call with its whole body, but without END_STREAM.
fn whole_but_open(at: SocketAddr) -> Vec<u8> {
    [open_call(at), frame(DATA, 0, 1, MODERN.as_bytes())].concat()
}
