//! A request → a response, over pooled keep-alive connections.
//!
//! A request is sent again only if nothing of it was written.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant as Deadline, timeout_at};
use trunkline_proto::CallError;

use super::target::{HttpTarget, Origin};
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::http::body::Polled;
use crate::limits::Limits;

/// Idle connections, and how to open others.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: Tls,
}

/// A connection whose response is being read. Dropping it closes the connection.
pub(crate) struct Lease {
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
    /// An empty pool. Fails with a sentence if a root certificate is invalid.
    #[cfg_attr(not(feature = "tls"), allow(unused_variables))]
    pub(super) fn new(target: &HttpTarget, limits: &Limits) -> Result<Self, String> {
        #[cfg(feature = "tls")]
        return Self::with_roots(&target.roots, limits);
        #[cfg(not(feature = "tls"))]
        Self::with_roots(&[], limits)
    }

    /// An empty pool that also trusts these roots, each one or more in PEM.
    #[cfg_attr(not(feature = "tls"), allow(unused_variables))]
    pub(crate) fn with_roots(roots: &[Vec<u8>], limits: &Limits) -> Result<Self, String> {
        Ok(Self {
            idle: Mutex::default(),
            limits: limits.clone(),
            #[cfg(feature = "tls")]
            tls: Tls::new(roots)?,
        })
    }

    /// Sends a request and waits for the head of its response.
    // No `async fn`: that would have room for the request twice.
    pub(crate) fn send<'a>(
        &'a self,
        origin: &'a Arc<Origin>,
        mut request: Request<Once>,
    ) -> impl Future<Output = Result<(Response<Incoming>, Lease), CallError>> + Send + use<'a> {
        let mut kept = self.take(origin);
        async move {
            while let Some(mut sender) = kept {
                if sender.ready().await.is_ok() {
                    match sender.try_send_request(request).await {
                        Ok(response) => {
                            return Ok((response, Lease { origin: Arc::clone(origin), sender }));
                        }
                        Err(mut error) => match error.take_message() {
                            // The server had closed the connection before anything was written.
                            Some(unsent) => request = unsent,
                            None => return Err(lost(error.error())),
                        },
                    }
                }
                kept = self.take(origin);
            }
            // Boxed, so that requests on a kept connection do not carry the size of a handshake.
            let mut sender = Box::pin(self.connect(origin)).await?;
            match sender.try_send_request(request).await {
                Ok(response) => Ok((response, Lease { origin: Arc::clone(origin), sender })),
                Err(mut error) => match error.take_message() {
                    Some(_) => Err(CallError::Unreachable(format!("{}.", error.error()))),
                    None => Err(lost(error.error())),
                },
            }
        }
    }

    /// Returns a connection whose response was read to its end.
    pub(crate) fn put(&self, lease: Lease) {
        let Lease { origin, sender } = lease;
        let most = self.limits.idle_connections;
        if sender.is_closed() || most == 0 {
            return;
        }
        let mut idle = self.lock();
        if idle.len() >= most {
            idle.remove(0);
        }
        idle.push(Idle { origin, sender, since: Instant::now() });
    }

    /// The connection used last (LIFO), so that surplus ones age and close.
    fn take(&self, origin: &Arc<Origin>) -> Option<SendRequest<Once>> {
        let kept = self.limits.idle_connection;
        let mut idle = self.lock();
        let is_it = |it: &Idle| Arc::ptr_eq(&it.origin, origin) || *it.origin == **origin;
        let at = idle.iter().rposition(is_it)?;
        let taken = idle.remove(at);
        // In the order in which they were returned.
        if let Some(first) = idle.first()
            && first.since.elapsed() > kept
        {
            idle.retain(|it| it.since.elapsed() <= kept);
        }
        drop(idle);
        (taken.since.elapsed() <= kept).then_some(taken.sender)
    }

    async fn connect(&self, origin: &Origin) -> Result<SendRequest<Once>, CallError> {
        let unreachable = |why: String| {
            let place = origin.name.to_str().unwrap_or(&origin.host);
            CallError::Unreachable(format!("connecting to `{place}` failed: {why}."))
        };
        let broken = |error: io::Error| unreachable(error.to_string());
        let by = Deadline::now() + self.limits.connect;
        let connecting = TcpStream::connect((&*origin.host, origin.port));
        let stream = match timeout_at(by, connecting).await {
            Ok(stream) => stream.map_err(broken)?,
            Err(_) => return Err(unreachable("nobody answers".to_owned())),
        };
        // Requests are written whole, so Nagle's algorithm would only delay them.
        stream.set_nodelay(true).map_err(broken)?;
        let sender = match origin.is_tls {
            false => speak(stream).await,
            true => speak(self.secure(origin, stream, by).await.map_err(unreachable)?).await,
        };
        sender.map_err(|error| unreachable(error.to_string()))
    }

    #[cfg(feature = "tls")]
    async fn secure(
        &self,
        origin: &Origin,
        stream: TcpStream,
        by: Deadline,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, String> {
        let shaking = self.tls.secure(&origin.host, stream);
        timeout_at(by, shaking).await.unwrap_or_else(|_| {
            let why = "it was reached, but did not answer the TLS handshake in time. \
                       Check that its port is one for `https`";
            Err(why.to_owned())
        })
    }

    #[cfg(not(feature = "tls"))]
    async fn secure(&self, _: &Origin, _: TcpStream, _: Deadline) -> Result<TcpStream, String> {
        Err("`https` is not built into this client. Switch on the feature `tls`".to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts HTTP on a stream.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Once>, hyper::Error> {
    let (sender, connection) = Builder::new().handshake(TokioIo::new(stream)).await?;
    // The task ends when its sender is dropped or the server closes; its errors reach the sender.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn lost(error: &hyper::Error) -> CallError {
    CallError::Lost(format!("{error}."))
}

/// A body that is complete.
#[derive(Debug)]
pub(crate) struct Once(Option<Bytes>);

impl Once {
    pub(crate) fn new(body: Bytes) -> Self {
        Self(Some(body).filter(|it| !it.is_empty()))
    }
}

impl Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<Infallible> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
