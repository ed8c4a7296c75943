//! Refusals that leave a body unread: the client can always read the answer.

use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline_transport::Limits;
use trunkline_transport::http::{
    Answers, Envelopes, HttpBody, Listener, RequestBody, bind, plain, serve,
};

/// Refuses every request with the status in its path, and reads no body.
struct Refusing;

impl Answers for Refusing {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        let status = request.uri().path()[1..].parse().unwrap();
        plain(StatusCode::from_u16(status).unwrap(), TEXT)
    }

    fn hang_up(&self) {}

    fn end(&self) {}
}

/// A server that refuses everybody, while this lives.
struct Door(#[expect(dead_code, reason = "dropping it ends the door")] JoinSet<io::Result<()>>);

impl Door {
    fn at(listener: impl Into<Listener>, limits: Limits) -> Self {
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener.into(), Arc::new(Refusing), limits, pending()));
        Self(serving)
    }

    async fn open(limits: Limits) -> (Self, SocketAddr) {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Self::at(listener, limits), address)
    }
}

fn head(status: u16, length: usize) -> String {
    format!("POST /{status} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n")
}

/// Reads to the end, which must come and must not be a reset.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut text = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut text)).await;
    read.expect("it ends").map(|_| text)
}

fn check(text: &str, status: u16) {
    let lower = text.to_ascii_lowercase();
    assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    assert!(lower.contains("\r\nconnection: close\r\n"), "{text}");
    assert!(text.ends_with(TEXT), "{text}");
}

/// Sends all of a body, then reads.
async fn insists(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), status: u16) {
    stream.write_all(head(status, LARGE).as_bytes()).await.unwrap();
    let piece = vec![b' '; 64 << 10];
    for at in 0..LARGE / piece.len() {
        let sent = timeout(PATIENCE, stream.write_all(&piece)).await.expect("it is read");
        sent.unwrap_or_else(|error| panic!("{status}: {error} after {at} pieces"));
    }
    check(&answer(stream).await.unwrap(), status);
}

/// Reads the whole answer before it sends most of its body.
async fn dawdles(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), status: u16) {
    stream.write_all(head(status, LARGE).as_bytes()).await.unwrap();
    stream.write_all(&[b' '; 100]).await.unwrap();
    check(&answer(stream).await.unwrap(), status);
    for at in 0..LARGE / (64 << 10) {
        let sent =
            timeout(PATIENCE, stream.write_all(&[b' '; 64 << 10])).await.expect("it is read");
        sent.unwrap_or_else(|error| panic!("{status}: {error} after {at} pieces"));
    }
    // A reset would show here at the latest.
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_refusal_is_read_however_large_and_slow_the_body_is() {
    let (_door, address) = Door::open(Limits::default()).await;
    for round in 0..25 {
        for status in [401, 403, 413, 415] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            match round % 2 {
                0 => insists(&mut stream, status).await,
                _ => dawdles(&mut stream, status).await,
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_is_read_over_a_unix_socket_too() {
    let path = std::env::temp_dir().join(format!("trunkline-linger-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let _door = Door::at(UnixListener::bind(&path).unwrap(), Limits::default());
    for _ in 0..5 {
        insists(&mut UnixStream::connect(&path).await.unwrap(), 401).await;
        dawdles(&mut UnixStream::connect(&path).await.unwrap(), 401).await;
    }
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn refusals_of_hyper_itself_are_readable_too() {
    let (_door, address) = Door::open(Limits::default()).await;
    let long = format!("GET /401 HTTP/1.1\r\nhost: localhost\r\nx-long: {}", "x".repeat(1 << 20));
    let broken = format!("GET /401 HTTP/1.1\r\n{}\r\n\r\n", "no colon".repeat(1 << 17));
    let chunk = format!(
        "POST /401 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}",
        "x".repeat(1 << 20)
    );
    for (request, status) in [(&long, "431"), (&broken, "400"), (&chunk, "401")] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let text = answer(&mut stream).await.unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {text}");
        }
    }
}

#[tokio::test]
async fn bytes_after_a_refusal_are_never_taken_for_a_request() {
    let (_door, address) = Door::open(Limits::default()).await;
    // A body that looks like another request, and more than is waited for.
    let next = "POST /403 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n".repeat(4000);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head(401, LARGE).as_bytes()).await.unwrap();
    stream.write_all(next.as_bytes()).await.unwrap();
    let text = answer(&mut stream).await.unwrap();
    check(&text, 401);
    assert_eq!(text.matches("HTTP/1.1").count(), 1, "{text}");
}

#[tokio::test]
async fn a_short_unwanted_body_does_not_end_the_connection() {
    let (_door, address) = Door::open(Limits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    for status in [401, 403, 404] {
        stream.write_all(head(status, 5).as_bytes()).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut text = String::new();
        while !text.ends_with(TEXT) {
            let mut piece = [0; 1024];
            let n = timeout(PATIENCE, stream.read(&mut piece)).await.unwrap().unwrap();
            assert!(n > 0, "{status}: {text}");
            text.push_str(std::str::from_utf8(&piece[..n]).unwrap());
        }
        assert!(!text.to_ascii_lowercase().contains("connection: close"), "{text}");
    }
}

#[tokio::test]
async fn lingering_is_bounded_in_bytes_and_in_time_and_counts_as_a_connection() {
    let limits = Limits::default().connections(1);
    let (_door, address) = Door::open(limits.clone().linger_bytes(256 << 10)).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head(401, 1 << 30).as_bytes()).await.unwrap();
    let sent = async { while stream.write_all(&[b' '; 64 << 10]).await.is_ok() {} };
    timeout(PATIENCE, sent).await.expect("nobody reads a gigabyte that nobody wants");

    let (_door, address) = Door::open(limits.linger(Duration::from_millis(50))).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    silent.write_all(head(401, LARGE).as_bytes()).await.unwrap();
    check(&answer(&mut silent).await.unwrap(), 401);
    // There is room for one: this is answered once the silent one is closed.
    let mut next = TcpStream::connect(address).await.unwrap();
    dawdles_not(&mut next).await;
    drop(silent);
}

/// A request without a body.
async fn dawdles_not(stream: &mut TcpStream) {
    let request = "GET /404 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    check(&answer(stream).await.unwrap(), 404);
}

#[tokio::test]
async fn over_http_2_a_refusal_ends_its_stream_and_nothing_else() {
    let (_door, address) = Door::open(Limits::default()).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let driven = tokio::spawn(connection);
    // More than the connection's window in all: discarded data must not use it up.
    for round in 0..60 {
        let (more, pieces) = tokio::sync::mpsc::channel(1);
        let sending = tokio::spawn(async move {
            for _ in 0..LARGE / (64 << 10) {
                if more.send(vec![b' '; 64 << 10]).await.is_err() {
                    return;
                }
            }
        });
        let status = [401, 403, 413, 415][round % 4];
        let request = Request::post(format!("http://localhost/{status}"));
        let request = request.body(HttpBody::pieces(pieces)).unwrap();
        let response = timeout(PATIENCE, sender.send_request(request)).await.expect("an answer");
        let response = response.unwrap();
        assert_eq!(response.status(), status);
        let (mut text, mut body) = (Vec::new(), response.into_body());
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            text.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
        }
        assert_eq!(text, TEXT.as_bytes());
        timeout(PATIENCE, sending).await.expect("nobody waits for room for ever").unwrap();
    }
    drop(sender);
    driven.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_of_http_2_that_ends_in_error_says_so_before_it_is_closed() {
    let (_door, address) = Door::open(Limits::default()).await;
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        // SETTINGS, then DATA on stream 0, which is a connection error; then much more.
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        stream.write_all(&[0, 0, 1, 0, 0, 0, 0, 0, 0, 7]).await.unwrap();
        for at in 0..LARGE / (64 << 10) {
            let sent = stream.write_all(&[0; 64 << 10]).await;
            sent.unwrap_or_else(|error| panic!("{error} after {at} pieces"));
        }
        let mut said = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut said)).await.expect("it ends").unwrap();
        let (mut rest, mut kinds) = (&*said, Vec::new());
        while let [a, b, c, kind, ..] = *rest {
            kinds.push(kind);
            rest = &rest[9 + u32::from_be_bytes([0, a, b, c]) as usize..];
        }
        assert_eq!(kinds.last(), Some(&GOAWAY), "{kinds:?}");
    }
}

#[tokio::test]
async fn shutdown_does_not_wait_for_idle_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let limits = Limits::default().linger(Duration::from_secs(3600));
    let ended = async { drop(ended.await) };
    let served = tokio::spawn(serve(listener, Arc::new(Refusing), limits, ended));
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(head(401, 0).as_bytes()).await.unwrap();
    assert!(idle.read(&mut [0; 1024]).await.unwrap() > 0);
    end.send(()).unwrap();
    timeout(PATIENCE, served).await.expect("it ends at once").unwrap().unwrap();
}

const TEXT: &str = "You are not let in.";
const LARGE: usize = 3 << 20;
const GOAWAY: u8 = 7;
const PATIENCE: Duration = Duration::from_secs(30);
