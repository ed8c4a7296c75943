//! One request over a stream of its own → its response, piece by piece.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use super::pool::Once;

/// Sends a request over a stream that nobody else uses, and waits for the head of its response.
///
/// # Errors
///
/// That the other end does not speak HTTP/1.1, hung up, or has a head of more than 64 KiB.
pub async fn send_single(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
) -> Result<Response<Pieces>, hyper::Error> {
    let speaking = Builder::new().max_buf_size(HEAD).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = speaking?;
    let running = Running(tokio::spawn(async move { drop(connection.await) }).abort_handle());
    let response = sender.send_request(request.map(Once::new)).await?;
    Ok(response.map(|body| Pieces { body, _running: running }))
}

/// The body of a response. Dropping it closes the connection.
#[derive(Debug)]
pub struct Pieces {
    body: Incoming,
    _running: Running,
}

impl Pieces {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await?;
            // Trailers are of no use to anybody here.
            if let Some(piece) = frame.map(|it| it.into_data().ok()).transpose() {
                return Some(piece);
            }
        }
    }
}

/// The task of a connection, which ends with its response.
#[derive(Debug)]
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How long the head of a response may be.
const HEAD: usize = 64 * 1024;
