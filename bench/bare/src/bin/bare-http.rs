//! POSTed JSON-RPC → its answer, with hyper and serde_json and nothing around them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bare::Request;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let sessions = Arc::new(Sessions::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let sessions = sessions.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| respond(request, sessions.clone()));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // A connection that breaks is the driver's to notice.
            let _ = connection.await;
        });
    }
}

/// Every session, and the stream that a GET opened for it.
type Sessions = Mutex<HashMap<String, Option<mpsc::Sender<Bytes>>>>;

async fn respond(
    request: hyper::Request<Incoming>,
    sessions: Arc<Sessions>,
) -> Result<Response<Out>, Infallible> {
    if request.method() != Method::POST {
        return Ok(get_or_delete(&request, &sessions));
    }
    let streams = request
        .headers()
        .get(ACCEPT)
        .is_some_and(|value| value.as_bytes().ends_with(EVENT_STREAM.as_bytes()));
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    let body = body.to_bytes();
    let Ok(message) = serde_json::from_slice::<Request>(&body) else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    if streams && message.wants_progress() {
        return Ok(two_events(&message));
    }
    if message.is_parked() {
        return std::future::pending().await;
    }
    let mut out = Vec::new();
    if !message.answer(&mut out) {
        return Ok(status(StatusCode::ACCEPTED));
    }
    let mut response = Response::new(Out::Full(Some(out.into())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if message.method == "initialize" {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = format!("{:032x}", LAST.fetch_add(1, Ordering::Relaxed));
        let value = HeaderValue::from_str(&id).expect("digits are fit for a header");
        response.headers_mut().insert(SESSION, value);
        sessions.lock().expect("nothing panics while it is held").insert(id, None);
    }
    Ok(response)
}

/// The notification as one event and the result as the other, both of which are known at once: in one body, with the ids
/// that the older revisions want.
fn two_events(message: &Request) -> Response<Out> {
    let [open, first_id, second_id] = match message.is_stateless() {
        true => [b"".as_slice(), b"", b""],
        false => [
            b"id: 3-0-0000000000000000\ndata: \n\n".as_slice(),
            b"id: 3-1-0000000000000000\n",
            b"id: 3-2-0000000000000000\n",
        ],
    };
    let mut events = [open, first_id, b"data: "].concat();
    message.progress(&mut events);
    events.extend_from_slice(b"\n\n");
    events.extend_from_slice(second_id);
    events.extend_from_slice(b"data: ");
    message.answer(&mut events);
    events.extend_from_slice(b"\n\n");
    stream(Out::Full(Some(events.into())))
}

fn get_or_delete(request: &hyper::Request<Incoming>, sessions: &Sessions) -> Response<Out> {
    let id = request.headers().get(SESSION).and_then(|value| value.to_str().ok());
    let mut sessions = sessions.lock().expect("nothing panics while it is held");
    let Some((id, held)) = id.and_then(|id| Some((id, sessions.get_mut(id)?))) else {
        return status(StatusCode::NOT_FOUND);
    };
    if request.method() == Method::DELETE {
        sessions.remove(id);
        return status(StatusCode::OK);
    }
    let (sender, receiver) = mpsc::channel(1);
    // The head goes out with the first bytes of the body; a client waits for it.
    let _ = sender.try_send(Bytes::from_static(b": open\n\n"));
    *held = Some(sender);
    stream(Out::Open(receiver))
}

fn stream(body: Out) -> Response<Out> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn status(status: StatusCode) -> Response<Out> {
    let mut response = Response::new(Out::Full(None));
    *response.status_mut() = status;
    response
}

/// The bodies that are sent.
enum Out {
    Full(Option<Bytes>),
    Open(mpsc::Receiver<Bytes>),
}

impl Body for Out {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Out::Full(bytes) => bytes.take(),
            Out::Open(receiver) => match receiver.poll_recv(cx) {
                Poll::Ready(bytes) => bytes,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Out::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Out::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => SizeHint::default(),
        }
    }
}

const SESSION: &str = "mcp-session-id";
const EVENT_STREAM: &str = "text/event-stream";
