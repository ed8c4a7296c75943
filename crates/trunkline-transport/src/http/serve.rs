//! A listener → connections, each served by hyper within its limits, until the server should end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_proto::server::Memo;

use super::body::HttpBody;
use super::pulse::{Felt, Pulse};
use crate::limits::Limits;

/// Answers requests; what is shared by the requests of one connection comes with them.
pub trait Answers: Send + Sync + 'static {
    /// Answers one request.
    fn answer(
        &self,
        request: Request<Incoming>,
        memo: &Mutex<Memo>,
    ) -> impl Future<Output = Response<HttpBody>> + Send;

    /// The server should end: what would never end by itself must.
    fn hang_up(&self);
}

/// Serves connections until `shutdown`, then answers what is in flight and returns.
pub async fn serve(
    listener: TcpListener,
    answers: Arc<impl Answers>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let limits = Arc::new(limits);
    let room = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let (close, closing) = watch::channel(());
    let builder = Arc::new(builder(&limits));
    let mut open = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // Those that are over are forgotten as they end.
        while open.try_join_next().is_some() {}
        let accepted = {
            let mut next = pin!(accept(&listener, &room));
            poll_fn(|cx| match shutdown.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => next.as_mut().poll(cx).map(Some),
            })
            .await
        };
        let Some((stream, permit)) = accepted else { break };
        let connection = connection(
            stream,
            Arc::clone(&answers),
            Arc::clone(&builder),
            Arc::clone(&limits),
            closing.clone(),
        );
        open.spawn(async move {
            connection.await;
            drop(permit);
        });
    }
    drop(listener);
    drop(close);
    answers.hang_up();
    let all = async { while open.join_next().await.is_some() {} };
    // Whoever has not finished by then is cut off when the rest is dropped.
    let _ = timeout(limits.shutdown, all).await;
    Ok(())
}

/// The next connection, once there is room for it. Trouble with one is no trouble with the next,
/// and trouble with this process (no descriptors left, say) passes when others end.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, tokio::sync::OwnedSemaphorePermit) {
    let permit = Arc::clone(room).acquire_owned().await.expect("nobody closes it");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) if is_about_one_peer(&error) => {}
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn connection(
    stream: TcpStream,
    answers: Arc<impl Answers>,
    builder: Arc<auto::Builder<TokioExecutor>>,
    limits: Arc<Limits>,
    mut closing: watch::Receiver<()>,
) {
    // An answer goes out when it is there, not when the peer has acknowledged the last one.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let pulse = Pulse::new();
    let shared = Arc::new((answers, Mutex::new(Memo::default())));
    let service = service_fn(|request| {
        let (beat, shared) = (pulse.request(), Arc::clone(&shared));
        async move {
            let mut response = shared.0.answer(request, &shared.1).await;
            response.body_mut().on_end = Some(Box::new(beat));
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(Felt { stream, pulse: Arc::clone(&pulse) });
    let mut served = pin!(builder.serve_connection(stream, service));
    let mut look = pin!(sleep_until(Instant::now() + limits.header_read.min(limits.keep_alive)));
    let mut ended = pin!(closing.changed());
    let mut ending = false;
    poll_fn(|cx| {
        loop {
            if served.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if !ending && ended.as_mut().poll(cx).is_ready() {
                ending = true;
                served.as_mut().graceful_shutdown();
                continue;
            }
            if look.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match pulse.check(&limits) {
                Some(next) => look.as_mut().reset(next.into()),
                None => {
                    pulse.expire();
                    if pulse.is_h2() {
                        return Poll::Ready(());
                    }
                    look.as_mut().reset(Instant::now() + limits.header_read);
                }
            }
        }
    })
    .await;
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // How long a head may take is watched by `pulse`, which needs no timer for each.
    builder.http1().header_read_timeout(None).max_buf_size(limits.header_bytes.max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.stream_keep_alive))
        .max_concurrent_streams(limits.h2_streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(1 << 20)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(1024);
    builder
}

fn is_about_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

const PAUSE: Duration = Duration::from_millis(50);
