//! A request → a response, over a connection that is kept for the next one.
//!
//! A request is sent twice only if nothing of it was written the first time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use trunkline_proto::CallError;

use super::target::Origin;

/// Connections that nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<Idle>>,
}

/// A connection on which a response is being read. Dropping it closes the connection.
pub(super) struct Lease {
    origin: Arc<Origin>,
    sender: SendRequest<Once>,
}

#[derive(Debug)]
struct Idle {
    origin: Arc<Origin>,
    sender: SendRequest<Once>,
    since: Instant,
}

impl Pool {
    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(
        &self,
        origin: &Arc<Origin>,
        mut request: Request<Once>,
    ) -> Result<(Response<Incoming>, Lease), CallError> {
        while let Some(mut sender) = self.take(origin) {
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => {
                    return Ok((response, Lease { origin: Arc::clone(origin), sender }));
                }
                Err(mut error) => match error.take_message() {
                    // The server had closed it before anything was written.
                    Some(unsent) => request = unsent,
                    None => return Err(lost(error.error())),
                },
            }
        }
        let mut sender = connect(origin).await?;
        match sender.try_send_request(request).await {
            Ok(response) => Ok((response, Lease { origin: Arc::clone(origin), sender })),
            Err(mut error) => match error.take_message() {
                Some(_) => Err(CallError::Unreachable(format!("{}.", error.error()))),
                None => Err(lost(error.error())),
            },
        }
    }

    /// Takes a connection back whose response was read to its end.
    pub(super) fn put(&self, lease: Lease) {
        let Lease { origin, sender } = lease;
        if sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        if idle.len() >= IDLE {
            idle.remove(0);
        }
        idle.push(Idle { origin, sender, since: Instant::now() });
    }

    /// The connection that was used last: those that are not needed grow old and go.
    fn take(&self, origin: &Arc<Origin>) -> Option<SendRequest<Once>> {
        let mut idle = self.lock();
        let is_it = |it: &Idle| Arc::ptr_eq(&it.origin, origin) || *it.origin == **origin;
        let at = idle.iter().rposition(is_it)?;
        let taken = idle.remove(at);
        // They are in the order in which they were put back.
        if let Some(first) = idle.first()
            && first.since.elapsed() > KEPT
        {
            idle.retain(|it| it.since.elapsed() <= KEPT);
        }
        drop(idle);
        (taken.since.elapsed() <= KEPT).then_some(taken.sender)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect(origin: &Origin) -> Result<SendRequest<Once>, CallError> {
    let unreachable = |why: String| {
        let place = origin.name.to_str().unwrap_or(&origin.host);
        CallError::Unreachable(format!("connecting to `{place}` failed: {why}."))
    };
    if origin.is_tls {
        let why = "`https` is not built into this client";
        return Err(unreachable(why.to_owned()));
    }
    let connecting = TcpStream::connect((&*origin.host, origin.port));
    let stream = match timeout(CONNECT, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unreachable(error.to_string())),
        Err(_) => return Err(unreachable("nobody answers".to_owned())),
    };
    // Requests are written whole, so waiting for more only costs time.
    stream.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
    let shaking = Builder::new().handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaking.map_err(|error| unreachable(error.to_string()))?;
    // It ends when its sender is dropped or the server hangs up, and its errors reach the sender.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn lost(error: &hyper::Error) -> CallError {
    CallError::Lost(format!("{error}."))
}

/// A body that is there already.
#[derive(Debug)]
pub(super) struct Once(Option<Bytes>);

impl Once {
    pub(super) fn new(body: Bytes) -> Self {
        Self(Some(body).filter(|it| !it.is_empty()))
    }
}

impl Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Connections kept for the next request.
const IDLE: usize = 32;
const KEPT: Duration = Duration::from_secs(90);
const CONNECT: Duration = Duration::from_secs(10);
