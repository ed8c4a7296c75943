//! Requests and responses over a connection in memory.

use std::sync::Mutex;
use std::time::Duration;

use http::Request;
use http_body::Body as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, yield_now};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message};

use super::*;
use crate::http::message_text::MessageText;

/// Answers with what it was asked, and by what the path says.
#[derive(Default)]
struct Echo {
    dropped: Arc<Notify>,
    events: Mutex<Option<mpsc::Receiver<Vec<u8>>>>,
    relayed: Mutex<Option<mpsc::Receiver<io::Result<Vec<u8>>>>>,
}

struct Dropped(Arc<Notify>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Answers for Echo {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        match head.uri.path() {
            "/refuse" => return crate::http::plain(StatusCode::FORBIDDEN, "no"),
            "/never" => {
                let _dropped = Dropped(Arc::clone(&self.dropped));
                std::future::pending::<()>().await;
            }
            "/elsewhere" => {
                let reading = tokio::spawn(body.read_all(1000, Duration::from_secs(1)));
                let text = reading.await.expect("it does not panic").expect("it comes");
                return Response::new(HttpBody::from(text));
            }
            "/parts" => {
                let long = Json::string(&"x".repeat(100_000));
                let text = MessageText::of(&Message::result(Id::Number(1), long));
                return Response::new(HttpBody::message(text));
            }
            "/events" => {
                let events = self.events.lock().expect("nobody panicked").take();
                return Response::new(HttpBody::pieces(events.expect("it is asked once")));
            }
            "/relayed" => {
                let relayed = self.relayed.lock().expect("nobody panicked").take();
                let body = HttpBody::relayed(relayed.expect("it is asked once"));
                return Response::new(body);
            }
            _ => {}
        }
        let text = match body.read_all(100_000, Duration::from_secs(1)).await {
            Ok(text) => String::from_utf8(text).expect("it is ASCII"),
            Err(refusal) => refusal.status.to_string(),
        };
        let said = format!("{} {} {text}", head.method, head.uri);
        Response::new(HttpBody::from(said.into_bytes()))
    }

    fn hang_up(&self) {}

    fn end(&self) {}
}

/// A connection that carries so many bytes at once, and how it ends.
fn served(echo: Echo, bytes: usize) -> (DuplexStream, JoinHandle<End>) {
    let (ours, mut theirs) = duplex(bytes);
    let serving = tokio::spawn(async move {
        let (tracker, limits) = (IdleTracker::new(), Limits::default());
        serve_h1(&mut theirs, &echo, &tracker, &limits).await
    });
    (ours, serving)
}

/// What is answered to `text`, which comes in pieces of `size`, until the server ends the connection: without dates, and
/// with `|` for line ends.
async fn answered(text: &str, size: usize) -> (String, End) {
    let (ours, serving) = served(Echo::default(), 1 << 20);
    let (mut reader, mut writer) = tokio::io::split(ours);
    for piece in text.as_bytes().chunks(size) {
        // A server that has ended reads no more.
        if writer.write_all(piece).await.is_err() {
            break;
        }
        yield_now().await;
    }
    let end = serving.await.expect("it does not panic");
    let mut out = Vec::new();
    reader.read_to_end(&mut out).await.expect("it is there");
    (plain(&out), end)
}

fn plain(out: &[u8]) -> String {
    let out = str::from_utf8(out).expect("it is ASCII");
    let lines = out.split_inclusive("\r\n").filter(|it| !it.starts_with("date: "));
    lines.collect::<String>().replace("\r\n", "|")
}

/// The last request of a connection, and its answer.
const LAST: &str = "GET /last HTTP/1.1\r\nconnection: close\r\n\r\n";
const ENDED: &str = "HTTP/1.1 200 OK|content-length: 10|connection: close||GET /last ";

#[tokio::test]
async fn requests_are_answered_in_turn_in_whatever_pieces_they_come() {
    let chunked = "POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    for (text, expected) in [
        ("GET /a HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK|content-length: 7||GET /a "),
        (
            "POST /a HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello\r\n\r\n",
            "HTTP/1.1 200 OK|content-length: 13||POST /a hello",
        ),
        (
            &format!("{chunked}3\r\nhel\r\n2;x\r\nlo\r\n0\r\nx: y\r\n\r\n"),
            "HTTP/1.1 200 OK|content-length: 13||POST /b hello",
        ),
        // The head of what would be answered otherwise.
        ("HEAD /a HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK|content-length: 8||"),
        (
            "GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
            "HTTP/1.1 200 OK|content-length: 7|connection: keep-alive||GET /a ",
        ),
        // Asked for, since somebody reads it; and not, since nobody does.
        (
            "POST /a HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nhi",
            "HTTP/1.1 100 Continue||HTTP/1.1 200 OK|content-length: 10||POST /a hi",
        ),
        // A short body that nobody wanted is skipped.
        (
            &format!("POST /refuse HTTP/1.1\r\ncontent-length: 9000\r\n\r\n{}", "x".repeat(9000)),
            "HTTP/1.1 403 Forbidden|content-type: text/plain; charset=utf-8|content-length: 2||no",
        ),
        (
            "POST /elsewhere HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK|content-length: 5||hello",
        ),
    ] {
        for size in [1, 2, 7, 60, 20_000] {
            let twice = format!("{text}{text}{LAST}");
            let (out, end) = answered(&twice, size).await;
            assert_eq!(out, format!("{expected}{expected}{ENDED}"), "{text:?} by {size}");
            assert_eq!(end, End::Complete, "{text:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_followed_by_a_request_is_the_last() {
    let refused = "HTTP/1.1 403 Forbidden|content-type: text/plain; charset=utf-8|content-length: 2|\
                   connection: close||no";
    let close = |status: &str| format!("HTTP/1.1 {status}|content-length: 0|connection: close||");
    let long = format!("POST /refuse HTTP/1.1\r\ncontent-length: 70000\r\n\r\n{LAST}");
    let unasked =
        format!("POST /refuse HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n{LAST}");
    let broken = "POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n";
    let wrong = "HTTP/1.1 200 OK|content-length: 23|connection: close||POST /a 400 Bad Request";
    for (text, expected) in [
        (&*long, refused),
        (&*unasked, refused),
        (&*format!("{broken}{LAST}"), wrong),
        (&*format!("GET /\r\n\r\n{LAST}"), &*close("400 Bad Request")),
        (
            &*format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(70_000)),
            &*close("431 Request Header Fields Too Large"),
        ),
    ] {
        for size in [7, 100_000] {
            let (out, end) = answered(text, size).await;
            assert_eq!((&*out, end), (expected, End::Unread), "{:?}", &text[..30]);
        }
    }
}

#[tokio::test]
async fn who_hangs_up_is_not_answered() {
    let echo = Echo::default();
    let dropped = Arc::clone(&echo.dropped);
    let (mut ours, serving) = served(echo, 1 << 10);
    ours.write_all(b"GET /never HTTP/1.1\r\n\r\n").await.expect("it is read");
    yield_now().await;
    drop(ours);
    dropped.notified().await;
    assert_eq!(serving.await.expect("it does not panic"), End::ByPeer);
}

#[tokio::test]
async fn who_hangs_up_behind_empty_lines_is_not_answered() {
    for lines in ["\n", "\r\n", "\r\n\r\n", "\r"] {
        let echo = Echo::default();
        let dropped = Arc::clone(&echo.dropped);
        let (mut ours, serving) = served(echo, 1 << 10);
        ours.write_all(b"GET /never HTTP/1.1\r\n\r\n").await.expect("it is read");
        yield_now().await;
        ours.write_all(lines.as_bytes()).await.expect("it is read");
        yield_now().await;
        drop(ours);
        dropped.notified().await;
        assert_eq!(serving.await.expect("it does not panic"), End::ByPeer, "{lines:?}");
    }
}

#[tokio::test]
async fn empty_lines_after_a_request_begin_no_other() {
    for (lines, begins) in [("", false), ("\r\n", false), ("\n\r\n\n", false), ("\r\nG", true)] {
        for size in [1, 100] {
            let (mut ours, mut theirs) = duplex(1 << 10);
            let tracker = Arc::new(IdleTracker::new());
            let watched = Arc::clone(&tracker);
            let serving = tokio::spawn(async move {
                let (echo, limits) = (Echo::default(), Limits::default());
                serve_h1(&mut theirs, &echo, &tracker, &limits).await
            });
            let text = format!("GET /a HTTP/1.1\r\n\r\n{lines}");
            for piece in text.as_bytes().chunks(size) {
                ours.write_all(piece).await.expect("it is read");
                yield_now().await;
            }
            let mut out = Vec::new();
            while !out.ends_with(b"GET /a ") {
                ours.read_buf(&mut out).await.expect("it is there");
            }
            watched.time_head();
            assert_eq!(watched.expire(), begins, "{lines:?} by {size}");
            drop(ours);
            assert_eq!(serving.await.expect("it does not panic"), End::ByPeer);
        }
    }
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_not_ended() {
    let begun = "HTTP/1.1 200 OK|transfer-encoding: chunked||5|hello|";
    for (is_whole, expected, end) in [
        (true, format!("{begun}0||{ENDED}"), End::Complete),
        (false, begun.to_owned(), End::ByPeer),
    ] {
        let (pieces, receiver) = mpsc::channel(2);
        pieces.send(Ok(b"hello".to_vec())).await.expect("there is room");
        if !is_whole {
            pieces.send(Err(cut_off())).await.expect("there is room");
        }
        drop(pieces);
        let echo = Echo { relayed: Mutex::new(Some(receiver)), ..Echo::default() };
        let (mut ours, serving) = served(echo, 1 << 10);
        let asked = format!("GET /relayed HTTP/1.1\r\n\r\n{LAST}");
        ours.write_all(asked.as_bytes()).await.expect("it is read");
        let mut out = Vec::new();
        ours.read_to_end(&mut out).await.expect("it is there");
        assert_eq!(plain(&out), expected);
        assert_eq!(serving.await.expect("it does not panic"), end);
    }
}

/// Answers with events that never come, and tells when the head of the request is gone.
struct Lasting {
    gone: Arc<Notify>,
    events: Mutex<Option<mpsc::Receiver<Vec<u8>>>>,
}

impl Answers for Lasting {
    async fn answer(&self, _: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        unreachable!("it answers in place")
    }

    async fn answer_in_place(
        &self,
        head: &mut LentHead,
        _: &mut RequestBody,
        _: &Envelopes,
    ) -> Response<HttpBody> {
        head.extensions_mut().insert(Arc::new(Dropped(Arc::clone(&self.gone))));
        let events = self.events.lock().expect("nobody panicked").take();
        Response::new(HttpBody::pieces(events.expect("it is asked once")))
    }

    fn hang_up(&self) {}

    fn end(&self) {}
}

#[tokio::test]
async fn a_stream_of_events_keeps_nothing_of_its_request() {
    let gone = Arc::new(Notify::new());
    let (mut ours, theirs) = duplex(1 << 10);
    let (events, receiver) = mpsc::channel(1);
    let answers = Lasting { gone: Arc::clone(&gone), events: Mutex::new(Some(receiver)) };
    let answers = Arc::new(answers);
    let serving = tokio::spawn(crate::http::serve_stream(theirs, answers, Limits::default()));
    ours.write_all(b"GET /events HTTP/1.1\r\n\r\n").await.expect("it is read");
    gone.notified().await;
    let mut out = Vec::new();
    events.send(b"data: 1\n\n".to_vec()).await.expect("the stream is open");
    while !plain(&out).ends_with("|9|data: 1\n\n|") {
        ours.read_buf(&mut out).await.expect("the stream is open");
    }
    serving.abort();
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_said_to_be() {
    let (mut ours, serving) = served(Echo::default(), 1 << 10);
    let cut = b"POST /a HTTP/1.1\r\ncontent-length: 6\r\n\r\nhello";
    ours.write_all(cut).await.expect("it is read");
    ours.shutdown().await.expect("it is there");
    let mut out = Vec::new();
    ours.read_to_end(&mut out).await.expect("it is there");
    assert_eq!(
        plain(&out),
        "HTTP/1.1 200 OK|content-length: 23|connection: close||POST /a 400 Bad Request"
    );
    assert_eq!(serving.await.expect("it does not panic"), End::ByPeer);
}

#[tokio::test]
async fn events_are_sent_as_they_come_and_no_more_are_made_than_are_read() {
    let (events, receiver) = mpsc::channel(1);
    let echo = Echo { events: Mutex::new(Some(receiver)), ..Echo::default() };
    let (mut ours, serving) = served(echo, 64);
    ours.write_all(b"GET /events HTTP/1.1\r\n\r\n").await.expect("it is read");
    let mut out = Vec::new();
    for event in ["data: 1\n\n", "", "data: 2\n\n"] {
        events.send(event.as_bytes().to_vec()).await.expect("somebody reads");
        while !event.is_empty() && !plain(&out).ends_with(&format!("9|{event}|")) {
            ours.read_buf(&mut out).await.expect("it is there");
        }
    }
    // A reader that stops keeps what is made within bounds.
    let mut sent = 0;
    while let Ok(()) = events.try_send(vec![b'x'; 4000]) {
        sent += 1;
        for _ in 0..10 {
            yield_now().await;
        }
    }
    assert!((4..=8).contains(&sent), "{sent}");
    drop(events);
    ours.write_all(LAST.as_bytes()).await.expect("it is read");
    ours.read_to_end(&mut out).await.expect("it is there");
    let out = plain(&out);
    assert!(out.starts_with(
        "HTTP/1.1 200 OK|transfer-encoding: chunked||9|data: 1\n\n|9|data: 2\n\n|fa0|"
    ));
    assert!(out.ends_with(&format!("|0||{ENDED}")), "{out}");
    assert_eq!(serving.await.expect("it does not panic"), End::Complete);
}

#[tokio::test]
async fn a_message_in_parts_is_sent_whole_and_the_next_answer_follows() {
    let asked = format!("GET /parts HTTP/1.1\r\n\r\nHEAD /parts HTTP/1.1\r\n\r\n{LAST}");
    let (answer, end) = answered(&asked, 1 << 10).await;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(100_000));
    let head = format!("HTTP/1.1 200 OK|content-length: {}||", text.len());
    assert!(answer == format!("{head}{text}{head}{ENDED}"));
    assert_eq!(end, End::Complete);
}

#[tokio::test]
async fn long_and_short_events_keep_their_order_whatever_is_written_at_once() {
    for room in [7, 5000, 1 << 20] {
        let sizes = [3, LONG, 1, 3 * LONG, LONG - 1, LONG + 1, 5];
        let (events, receiver) = mpsc::channel(sizes.len());
        let echo = Echo { events: Mutex::new(Some(receiver)), ..Echo::default() };
        let (mut ours, serving) = served(echo, room);
        ours.write_all(b"GET /events HTTP/1.1\r\n\r\n").await.expect("it is read");
        let mut expected = "HTTP/1.1 200 OK|transfer-encoding: chunked||".to_owned();
        for (letter, size) in (b'a'..).zip(sizes) {
            let event = String::from_utf8(vec![letter; size]).expect("it is ASCII");
            expected += &format!("{size:x}|{event}|");
            events.send(event.into_bytes()).await.expect("there is room");
        }
        drop(events);
        let mut out = Vec::new();
        while !out.ends_with(b"0\r\n\r\n") {
            ours.read_buf(&mut out).await.expect("it is there");
        }
        assert!(plain(&out) == format!("{expected}0||"), "with room for {room}");
        drop(ours);
        assert_eq!(serving.await.expect("it does not panic"), End::ByPeer);
    }
}

#[test]
fn a_stream_is_as_long_as_it_was_said_to_be_or_the_connection_ends() {
    let sending = |left| Sending { events: None, left, keeps_connection: true, is_cut_off: false };
    let mut out = Outlet::default();
    let mut whole = sending(Sent::Bytes(5));
    for text in [Some(b"he".to_vec()), Some(Vec::new()), Some(b"llo".to_vec()), None] {
        whole.write(text, &mut out).expect("it is as long as that");
    }
    assert_eq!(out.more(), b"hello");
    let kind = |it: io::Result<()>| it.map_err(|it| it.kind());
    assert_eq!(kind(sending(Sent::Bytes(1)).write(None, &mut out)), Err(ErrorKind::UnexpectedEof));
    let long = sending(Sent::Bytes(1)).write(Some(b"he".to_vec()), &mut out);
    assert_eq!((kind(long), &**out.more()), (Err(ErrorKind::InvalidData), &b"hello"[..]));
    sending(Sent::UntilClose).write(Some(b"!".to_vec()), &mut out).expect("it has no length");
    assert_eq!(out.more(), b"hello!");
}

#[test]
fn a_message_in_parts_is_one_body() {
    let long = Json::string(&"x".repeat(1 << 20));
    let message = Message::result(Id::Number(1), long);
    let (text, mut joined) = (message.to_text(), Vec::new());
    let mut body = pin!(HttpBody::message(MessageText::of(&message)));
    let mut counted = 0;
    body.counted(|it| {
        counted = it.len();
        it
    });
    assert_eq!(counted, (1 << 20) + 2, "what is long is counted");
    assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) {
        joined.extend_from_slice(&frame.into_data().expect("it is data"));
        assert_eq!(body.is_end_stream(), joined.len() == text.len());
    }
    assert!(joined == text.as_bytes());
}

#[test]
fn a_body_that_came_with_its_head_needs_no_connection() {
    let mut body = pin!(RequestBody::whole(Bytes::from_static(b"hello")));
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false));
    let polled = body.as_mut().poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
    assert!(
        matches!(polled, Poll::Ready(Some(Ok(it))) if it.data_ref().is_some_and(|it| it == "hello"))
    );
    assert!(body.is_end_stream());
}
