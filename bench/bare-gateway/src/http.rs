//! Requests of one client → the same to the upstream, on a connection of their own.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::envelope::{Envelope, Parts, digits};
use crate::{status, whole};

/// A connection to the upstream.
pub struct Server {
    sender: Mutex<SendRequest<Parts>>,
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
pub async fn forward(request: Request<Incoming>, server: &Server) -> Response<Parts> {
    let (mut head, body) = request.into_parts();
    let Ok(body) = whole(body).await else { return status(StatusCode::BAD_REQUEST) };
    let Some(envelope) = Envelope::read(&body) else { return status(StatusCode::BAD_REQUEST) };
    let out = match envelope.id() {
        Some(id) => {
            static LAST: AtomicU64 = AtomicU64::new(0);
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            Parts::with_id(&body, id, digits(number, &mut [0; 20]))
        }
        None => body.clone().into(),
    };
    head.headers.insert(HOST, server.host.clone());
    head.headers.remove(CONTENT_LENGTH);
    let sent = server.sender.lock().await.send_request(Request::from_parts(head, out));
    let Ok(response) = sent.await else { return status(StatusCode::BAD_GATEWAY) };
    let (mut head, answer) = response.into_parts();
    let Ok(answer) = whole(answer).await else { return status(StatusCode::BAD_GATEWAY) };
    let theirs = Envelope::read(&answer).and_then(|answer| answer.id());
    let Some((theirs, ours)) = theirs.zip(envelope.id()) else {
        return Response::from_parts(head, answer.into());
    };
    let out = Parts::with_id(&answer, theirs, ours.as_bytes());
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, out)
}
