//! Requests of one client → the same to the upstream, on a connection of their own.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::envelope::{Envelope, digits, with_id};
use crate::{status, whole};

/// A connection to the upstream.
pub struct Server {
    sender: Mutex<SendRequest<Full<Bytes>>>,
    host: HeaderValue,
}

impl Server {
    pub async fn connect(address: &str) -> Result<Server, Box<dyn Error>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Server { sender: Mutex::new(sender), host: HeaderValue::from_str(address)? })
    }
}

/// Answers one request of the client.
pub async fn forward(request: Request<Incoming>, server: &Server) -> Response<Full<Bytes>> {
    let (mut head, body) = request.into_parts();
    let Ok(body) = whole(body).await else { return status(StatusCode::BAD_REQUEST) };
    let Some(envelope) = Envelope::read(&body) else { return status(StatusCode::BAD_REQUEST) };
    let mut message = Vec::new();
    if let Some(id) = envelope.id() {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        with_id(&mut message, &body, id, digits(number, &mut [0; 20]));
    }
    let out = if message.is_empty() { body.clone() } else { message.into() };
    head.headers.insert(HOST, server.host.clone());
    head.headers.remove(CONTENT_LENGTH);
    let sent = server.sender.lock().await.send_request(Request::from_parts(head, Full::new(out)));
    let Ok(response) = sent.await else { return status(StatusCode::BAD_GATEWAY) };
    let (mut head, answer) = response.into_parts();
    let Ok(answer) = whole(answer).await else { return status(StatusCode::BAD_GATEWAY) };
    let theirs = Envelope::read(&answer).and_then(|answer| answer.id());
    let Some((theirs, ours)) = theirs.zip(envelope.id()) else {
        return Response::from_parts(head, Full::new(answer));
    };
    let mut out = Vec::new();
    with_id(&mut out, &answer, theirs, ours.as_bytes());
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Full::new(out.into()))
}
