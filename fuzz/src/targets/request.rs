//! Raw HTTP/1.1 to a connection of ours and to one of hyper's: each request that ours answers is read by hyper in the same
//! way, and it does not matter where the chunks end. Ours may be stricter and answer fewer.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;
use trunkline_transport::Limits;
use trunkline_transport::http::{Answers, Envelopes, HttpBody, RequestBody, serve_stream};

use crate::input::{Input, chunks};

/// A request as a server has read it.
#[derive(Debug, PartialEq)]
struct Seen {
    line: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// Remembers every request that is complete.
#[derive(Default)]
struct Witness(Mutex<Vec<Seen>>);

impl Witness {
    async fn see(&self, request: Request<RequestBody>) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        // hyper would open a tunnel.
        let is_tunnel = head.method == Method::CONNECT;
        let line = format!("{} {} {:?}", head.method, head.uri, head.version);
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.to_string(), value.as_bytes().to_vec())
        };
        let mut fields: Vec<_> = head.headers.iter().map(field).collect();
        // The order of fields with one name means something, that of others does not.
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        if let Ok(body) = body.read_all(MOST, QUIET).await {
            self.0.lock().expect("nobody panicked").push(Seen { line, fields, body });
        }
        let mut response = Response::new(HttpBody::from(b"ok".to_vec()));
        if is_tunnel {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        response
    }
}

impl Answers for Witness {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        self.see(request).await
    }

    fn hang_up(&self) {}

    fn end(&self) {}
}

/// A byte for the chunks, then the bytes of a connection.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let seed = input.byte();
    let bytes = input.rest();

    let whole = seen(&[bytes], false);
    let parts = seen(&chunks(bytes, seed).collect::<Vec<_>>(), false);
    assert_eq!(whole, parts, "it matters where the chunks end");

    let others = seen(&[bytes], true);
    assert!(whole.len() <= others.len(), "{whole:?} is more than {others:?}");
    for (ours, theirs) in whole.iter().zip(&others) {
        assert_eq!(ours, theirs, "hyper reads it differently");
    }
}

/// The requests that a server sees in these pieces.
fn seen(pieces: &[&[u8]], is_hyper: bool) -> Vec<Seen> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without IO can always be made");
    let witness = Arc::new(Witness::default());
    runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(MOST);
        let served = Arc::clone(&witness);
        let serving = match is_hyper {
            true => tokio::spawn(serve_by_hyper(theirs, served)),
            false => tokio::spawn(serve_stream(theirs, served, Limits::default())),
        };
        for piece in pieces {
            if ours.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut out = Vec::new();
        while let Ok(Ok(1..)) = timeout(4 * QUIET, ours.read_buf(&mut out)).await {}
        drop(ours);
        serving.abort();
        if let Err(why) = serving.await {
            assert!(!why.is_panic(), "the server panicked: {why}");
        }
    });
    std::mem::take(&mut *witness.0.lock().expect("nobody panicked"))
}

async fn serve_by_hyper(stream: DuplexStream, witness: Arc<Witness>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let witness = Arc::clone(&witness);
        async move { Ok::<_, Infallible>(witness.see(request.map(RequestBody::from)).await) }
    });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None).max_header_size(64 << 10);
    // What it makes of the connection in the end does not matter.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

const MOST: usize = 1 << 20;
const QUIET: Duration = Duration::from_secs(1);
pub(crate) const WORDS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "HEAD * HTTP/1.0\r\n",
    "CONNECT a:1 HTTP/1.1\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "host: a\r\n",
    "content-length: ",
    "Content-Length: 5\r\n",
    "content-length: 0\r\n",
    "transfer-encoding: chunked\r\n",
    "transfer-encoding: gzip, chunked\r\n",
    "expect: 100-continue\r\n",
    "connection: close\r\n",
    "connection: keep-alive\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "5;a=b\r\nhello\r\n",
    "hello",
    "ffffffffffffffff",
    ": ",
    " ",
    "\t",
];
