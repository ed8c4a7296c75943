//! A listener → connections, each served within its limits, until shutdown.

mod connection;
pub(super) mod feed;
mod request_head;
mod response_head;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::task::coop::has_budget_remaining;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_proto::server::EnvelopeCache;

use self::connection::{End, serve_h1};
use super::body::{HttpBody, RequestBody};
use super::idle_tracker::{IdleTracker, TrackedStream};
use super::lent_head::LentHead;
use super::linger::linger;
use super::listener::{Accepted, Listener};
use crate::limits::Limits;

/// What the requests of one connection share: the envelopes that were read before.
pub type Envelopes = Mutex<EnvelopeCache>;

/// Answers requests, with the state that the requests of one connection share.
pub trait Answers: Send + Sync + 'static {
    /// Answers one request.
    fn answer(
        &self,
        request: Request<RequestBody>,
        envelopes: &Envelopes,
    ) -> impl Future<Output = Response<HttpBody>> + Send;

    /// The same of a request that stays with its connection, which has room for the future that answers it for as
    /// long as it lives: one that holds no request is smaller.
    #[inline]
    fn answer_in_place(
        &self,
        head: &mut LentHead,
        body: &mut RequestBody,
        envelopes: &Envelopes,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        self.answer(body.take_whole(head), envelopes)
    }

    /// Shutdown begins: ends what never ends by itself.
    fn hang_up(&self);

    /// Shutdown is over: stops what still runs.
    fn end(&self);
}

/// Answers as `A` does, and leaves its end to whoever serves it at another listener, too.
pub struct UntilLeft<A>(pub Arc<A>);

impl<A: Answers> Answers for UntilLeft<A> {
    fn answer(
        &self,
        request: Request<RequestBody>,
        envelopes: &Envelopes,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        self.0.answer(request, envelopes)
    }

    fn answer_in_place(
        &self,
        head: &mut LentHead,
        body: &mut RequestBody,
        envelopes: &Envelopes,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        self.0.answer_in_place(head, body, envelopes)
    }

    fn hang_up(&self) {
        self.0.hang_up();
    }

    fn end(&self) {}
}

/// Listens at an address, with a backlog for bursts of connections.
pub async fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "The address names no place.");
    for address in tokio::net::lookup_host(address).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A restarted server can take its port back at once.
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Serves connections until `shutdown`, then drains the requests in flight and returns.
///
/// The listener is TCP, TLS over TCP (`Tls::listen`), or a Unix socket.
pub async fn serve(
    listener: impl Into<Listener>,
    answers: Arc<impl Answers>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let listener = listener.into();
    let room = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let (close, closing) = watch::channel(());
    let serving = Arc::new(Serving { h2: h2_builder(&limits), answers, limits });
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // Remove the connections that have ended.
        while open.try_join_next().is_some() {}
        let accepted = {
            let mut next = pin!(accept(&listener, &room));
            poll_fn(|cx| match shutdown.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => next.as_mut().poll(cx).map(Some),
            })
            .await
        };
        let Some((accepted, permit)) = accepted else { break };
        let (serving, closing) = (Arc::clone(&serving), closing.clone());
        open.spawn(async move {
            connection(accepted, serving, closing).await;
            drop(permit);
        });
    }
    drop(listener);
    drop(close);
    serving.answers.hang_up();
    let all = async { while open.join_next().await.is_some() {} };
    // Dropping the rest cuts off connections that have not finished by then.
    let _ = timeout(serving.limits.shutdown, all).await;
    drop(open);
    serving.answers.end();
    Ok(())
}

/// The next connection, once there is room for it. An error of one connection does not affect the next,
/// and an error of the process (no descriptors left, say) passes when others end.
async fn accept(
    listener: &Listener,
    room: &Arc<Semaphore>,
) -> (Accepted, tokio::sync::OwnedSemaphorePermit) {
    let permit = Arc::clone(room).acquire_owned().await.expect("nobody closes it");
    loop {
        match listener.accept().await {
            Ok(accepted) => return (accepted, permit),
            Err(error) if is_about_one_peer(&error) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// What all connections share.
struct Serving<A> {
    answers: Arc<A>,
    /// How a connection of HTTP/2 is served.
    h2: http2::Builder<TokioExecutor>,
    limits: Limits,
}

async fn connection<A: Answers>(
    accepted: Accepted,
    serving: Arc<Serving<A>>,
    mut closing: watch::Receiver<()>,
) {
    let limits = &serving.limits;
    match accepted {
        Accepted::Tcp(stream) => {
            if prepare(&stream).is_err() {
                return;
            }
            let peeked = unless_closing(speaks_h2(&stream), limits.keep_alive, &mut closing);
            let Some(is_h2) = peeked.await.flatten() else { return };
            serve_http(stream, is_h2, &serving, closing).await;
        }
        // Boxed: these futures are large and these connections rare.
        #[cfg(feature = "tls")]
        Accepted::Tls(stream, acceptor) => {
            Box::pin(secured_connection(stream, acceptor, &serving, closing)).await;
        }
        Accepted::Unix(stream) => Box::pin(serve_http(stream, false, &serving, closing)).await,
    }
}

/// Serves one connection with TLS. Its own function: a connection without TLS has no room for it.
#[cfg(feature = "tls")]
async fn secured_connection<A: Answers>(
    stream: TcpStream,
    acceptor: tokio_rustls::TlsAcceptor,
    serving: &Serving<A>,
    mut closing: watch::Receiver<()>,
) {
    let secured = async {
        prepare(&stream)?;
        acceptor.accept(stream).await
    };
    let secured = unless_closing(secured, serving.limits.header_read, &mut closing).await;
    let Some(Ok(stream)) = secured else { return };
    let is_h2 = super::tls::is_h2(&stream);
    serve_http(stream, is_h2, serving, closing).await;
}

/// Serves HTTP/1.1 over one stream, whatever carries it, until it ends.
pub async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answers: Arc<impl Answers>,
    limits: Limits,
) {
    let (_open, closing) = watch::channel(());
    let serving = Serving { h2: h2_builder(&limits), answers, limits };
    serve_http(stream, false, &serving, closing).await;
}

/// Serves HTTP until the connection ends.
async fn serve_http<A: Answers>(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    is_h2: bool,
    serving: &Serving<A>,
    closing: watch::Receiver<()>,
) {
    if is_h2 {
        // Boxed: it is large and rare.
        return Box::pin(serve_h2(stream, serving, closing)).await;
    }
    let (limits, tracker) = (&serving.limits, IdleTracker::new());
    let ended = {
        // Pinned here and lent: moving the future would double the stack it takes.
        let served = pin!(serve_h1(&mut stream, &*serving.answers, &tracker, limits));
        watched(served, |_| tracker.close(), &tracker, limits, closing, false).await
    };
    match ended {
        // We cut it off because it was idle or did not read: no answer is owed.
        None | Some(End::ByPeer) => {}
        Some(end) => Box::pin(linger(&mut stream, end == End::Unread, limits)).await,
    }
}

/// The same with HTTP/2, which hyper speaks.
async fn serve_h2<A: Answers>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    serving: &Serving<A>,
    closing: watch::Receiver<()>,
) {
    let (limits, tracker) = (&serving.limits, Arc::new(IdleTracker::new()));
    // Until its first request arrives, the connection counts as reading a head.
    tracker.heard();
    let answers = Arc::clone(&serving.answers);
    let shared =
        Arc::new(Shared { answers, envelopes: Mutex::default(), tracker: Arc::clone(&tracker) });
    let service = service_fn(move |request| Arc::clone(&shared).answer(request));
    // Lent to hyper: we decide how it closes.
    let mut tracked = TrackedStream { stream, tracker: Arc::clone(&tracker), is_over: false };
    let ended = {
        let served = pin!(serving.h2.serve_connection(TokioIo::new(&mut tracked), service));
        let end = http2::Connection::graceful_shutdown;
        watched(served, end, &tracker, limits, closing, true).await
    };
    let Some(served) = ended else { return };
    if !tracked.is_over {
        let is_owed = served.is_err() || tracker.is_unread();
        linger(&mut tracked.stream, is_owed, limits).await;
    }
}

/// Sets TCP_NODELAY, so that answers do not wait for an acknowledgement.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

/// Whether the peer speaks HTTP/2, from the connection preface (RFC 9113 §3.4). `None` if it closes
/// before it sends anything.
async fn speaks_h2(stream: &TcpStream) -> Option<bool> {
    let mut first = [0; PREFACE.len()];
    let n = stream.peek(&mut first).await.ok().filter(|it| *it > 0)?;
    Some(n > 1 && first[..n] == PREFACE[..n])
}

/// The output of a future, or `None` if it takes too long or shutdown begins.
async fn unless_closing<T>(
    waiting: impl Future<Output = T>,
    within: Duration,
    closing: &mut watch::Receiver<()>,
) -> Option<T> {
    let (mut waiting, mut ended) = (pin!(waiting), pin!(closing.changed()));
    let waiting = poll_fn(|cx| match ended.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => waiting.as_mut().poll(cx).map(Some),
    });
    timeout(within, waiting).await.ok().flatten()
}

/// Drives a connection, and ends one that is idle for too long: then there is no outcome.
async fn watched<C: Future>(
    mut served: Pin<&mut C>,
    end: impl Fn(Pin<&mut C>),
    tracker: &IdleTracker,
    limits: &Limits,
    mut closing: watch::Receiver<()>,
    is_h2: bool,
) -> Option<C::Output> {
    let mut look = pin!(sleep_until(Instant::now() + limits.header_read.min(limits.keep_alive)));
    let open = closing.clone();
    let mut ended = pin!(closing.changed());
    let mut ending = false;
    // Whom the timer and the end of the server wake: told once, not at each request.
    let mut woken: Option<Waker> = None;
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(served) = served.as_mut().poll(cx) {
                return Poll::Ready(Some(served));
            }
            tracker.time_head();
            let is_told = woken.as_ref().is_some_and(|it| it.will_wake(cx.waker()));
            if is_told && !look.is_elapsed() && (ending || open.has_changed().is_ok()) {
                return Poll::Pending;
            }
            if !ending && ended.as_mut().poll(cx).is_ready() {
                ending = true;
                end(served.as_mut());
                continue;
            }
            if look.as_mut().poll(cx).is_pending() {
                // A connection that has used up its turn is woken again, but by neither of them.
                woken = has_budget_remaining().then(|| cx.waker().clone());
                return Poll::Pending;
            }
            woken = None;
            match tracker.check(limits) {
                Some(next) => look.as_mut().reset(next.into()),
                // Only a half-sent HTTP/1 head gets a 408.
                None if !is_h2 && tracker.expire() => {
                    look.as_mut().reset(Instant::now() + limits.header_read);
                }
                None => return Poll::Ready(None),
            }
        }
    })
    .await
}

/// The state that the requests of one connection of HTTP/2 share.
struct Shared<A> {
    answers: Arc<A>,
    envelopes: Mutex<EnvelopeCache>,
    tracker: Arc<IdleTracker>,
}

impl<A: Answers> Shared<A> {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<HttpBody>, Infallible> {
        let guard = self.tracker.request();
        let body = |it| RequestBody::of_stream(it, Arc::clone(&self.tracker));
        let mut response = self.answers.answer(request.map(body), &self.envelopes).await;
        response.body_mut().on_end = Some(guard);
        Ok(response)
    }
}

fn h2_builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut h2 = http2::Builder::new(TokioExecutor::new());
    h2.timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.stream_keep_alive))
        .max_concurrent_streams(limits.h2_streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(1 << 20)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(1024);
    h2
}

fn is_about_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The start of the HTTP/2 connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// The accept backlog, if the system allows that many.
const BACKLOG: u32 = 4096;
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_answer_waits_for_an_acknowledgement() {
        let listener = bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let _client = TcpStream::connect(address).await.expect("it listens");
        let (stream, _) = listener.accept().await.expect("somebody came");
        assert!(!stream.nodelay().expect("it is a socket"), "the system does it by itself");
        prepare(&stream).expect("it can be set");
        assert!(stream.nodelay().expect("it is a socket"));
    }
}
