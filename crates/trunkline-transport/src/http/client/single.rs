//! One request over a stream of its own → its response, piece by piece.

use std::io;

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{Connection, ResponseBody, SendError};

/// Sends a request over a stream that nobody else uses, and waits for the head of its response.
///
/// # Errors
///
/// That the other end does not speak HTTP/1.1, hung up, or has a head of more than 64 KiB.
pub async fn send_single(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
) -> io::Result<Response<Pieces>> {
    let sent = Connection::new(stream).send(&request.into()).await;
    let (head, body) = sent.map_err(|it| match it {
        SendError::Unsent(error) | SendError::Lost(error) => error,
    })?;
    Ok(head.with(Pieces { body }))
}

/// The body of a response. Dropping it closes the connection.
#[derive(Debug)]
pub struct Pieces {
    body: ResponseBody,
}

impl Pieces {
    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        self.body.piece().await.map(|it| it.map(Bytes::copy_from_slice)).transpose()
    }
}
