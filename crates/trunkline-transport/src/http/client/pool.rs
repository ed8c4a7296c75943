//! A request → a response, over pooled keep-alive connections.
//!
//! A request is sent again only if nothing of it was written.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::time::{Instant as Deadline, timeout_at};
use trunkline_proto::CallError;

use super::connection::{Connection, RequestText, ResponseBody, SendError};
use super::head::ResponseHead;
use super::target::{HttpTarget, Origin};
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::limits::Limits;

/// Idle connections, and how to open others.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: Tls,
}

#[derive(Debug)]
struct Idle {
    origin: Arc<Origin>,
    connection: Box<Connection>,
    since: Instant,
    /// For how long it is used after that.
    kept: Duration,
}

impl Idle {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= self.kept
    }
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
    pub(crate) async fn send(
        &self,
        origin: &Arc<Origin>,
        request: &RequestText,
    ) -> Result<(ResponseHead, ResponseBody), CallError> {
        while let Some(kept) = self.take(origin) {
            match kept.send(request).await {
                Ok(response) => return Ok(response),
                // The server had closed the connection before anything was written.
                Err(SendError::Unsent(_)) => {}
                Err(SendError::Lost(error)) => return Err(lost(&error)),
            }
        }
        // Boxed, so that requests on a kept connection do not carry the size of a handshake.
        let connection = Box::pin(self.connect(origin)).await?;
        connection.send(request).await.map_err(|error| match error {
            SendError::Unsent(error) => CallError::Unreachable(format!("{error}.")),
            SendError::Lost(error) => lost(&error),
        })
    }

    /// Takes back the connection of a response that was read to its end.
    pub(crate) async fn put(&self, origin: &Arc<Origin>, body: ResponseBody) {
        let mut body = Some(body);
        poll_fn(|cx| {
            body.take().into_iter().for_each(|it| self.put_at(origin, it, cx));
            Poll::Ready(())
        })
        .await;
    }

    /// The same for who polls. When the server closes the connection, that wakes the task.
    pub(crate) fn put_at(&self, origin: &Arc<Origin>, body: ResponseBody, cx: &mut Context<'_>) {
        let most = self.limits.idle_connections;
        let Some(mut connection) = body.into_connection() else { return };
        if most == 0 || connection.is_closed(cx) {
            return;
        }
        let mut idle = self.lock();
        if idle.len() >= most {
            idle.remove(0);
        }
        let most = self.limits.idle_connection;
        let kept = connection.kept().map_or(most, |it| it.min(most));
        idle.push(Idle { origin: Arc::clone(origin), connection, since: Instant::now(), kept });
    }

    /// The connection used last (LIFO), so that surplus ones age and close.
    fn take(&self, origin: &Arc<Origin>) -> Option<Box<Connection>> {
        let now = Instant::now();
        let mut idle = self.lock();
        // In the order in which they were returned.
        if idle.first().is_some_and(|it| it.is_old(now)) {
            idle.retain(|it| !it.is_old(now));
        }
        let is_it = |it: &Idle| Arc::ptr_eq(&it.origin, origin) || *it.origin == **origin;
        loop {
            let at = idle.iter().rposition(is_it)?;
            let kept = idle.remove(at);
            // One may be old before those that were returned earlier: its server says for how long it keeps it.
            if !kept.is_old(now) {
                return Some(kept.connection);
            }
        }
    }

    /// Closes idle connections that their servers have closed. The others wake the task when that happens to them.
    pub(super) fn close_left(&self, waker: &Waker) {
        let mut cx = Context::from_waker(waker);
        self.lock().retain_mut(|it| !it.connection.is_closed(&mut cx));
    }

    async fn connect(&self, origin: &Origin) -> Result<Box<Connection>, CallError> {
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
        Ok(match origin.is_tls {
            false => Connection::new(stream),
            true => Connection::new(self.secure(origin, stream, by).await.map_err(unreachable)?),
        })
    }

    #[cfg(feature = "tls")]
    async fn secure(
        &self,
        origin: &Origin,
        stream: TcpStream,
        by: Deadline,
    ) -> Result<impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + use<>, String>
    {
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

fn lost(error: &io::Error) -> CallError {
    CallError::Lost(format!("{error}."))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;
    use crate::http::client::target::Address;

    #[tokio::test]
    async fn a_connection_is_not_used_at_the_end_of_what_its_server_said() {
        let pool = Pool::with_roots(&[], &Limits::default()).expect("there are no roots");
        let origin = Address::parse("http://a.example").expect("it is a URL").origin;
        for (field, is_kept) in [
            ("x: y", true),
            ("keep-alive: timeout=5", true),
            ("keep-alive: timeout=1", false),
            ("keep-alive: timeout=0", false),
        ] {
            let (ours, mut theirs) = duplex(1 << 10);
            let answer = format!("HTTP/1.1 200 OK\r\n{field}\r\ncontent-length: 0\r\n\r\n");
            theirs.write_all(answer.as_bytes()).await.expect("there is room");
            let request = Request::new(Bytes::new()).into();
            let sent = Connection::new(ours).send(&request).await;
            pool.put(&origin, sent.expect("it is answered").1).await;
            assert_eq!(pool.lock().len(), 1);
            assert_eq!(pool.take(&origin).is_some(), is_kept, "{field}");
            assert!(pool.lock().is_empty());
        }
    }
}
