//! A request for what another replica holds → that replica's response.
//!
//! The request is read whole, so that it can be sent again if nothing of it arrived. The response is passed
//! on as it comes, and no faster than the client reads it.

mod caller_seal;
mod internal;
mod own_requests;
mod replay;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Request, Response, StatusCode, request};
use tokio::time::timeout;
use trunkline_proto::CallError;

use super::admitted::Admitted;
use super::body::{Events, HttpBody};
use super::client::connection::ResponseBody;
use super::client::head::ResponseHead;
use super::client::pool::Pool;
use super::client::target::{Address, Origin};
use super::h1::inlet::cut_off;
use super::replicas::Peer;
use super::shared_sessions::SharedSessions;
use crate::limits::Limits;
use caller_seal::{CallerSeal, FORWARDED};

pub use internal::{AnswersForwarded, Internal, Ping};
pub(super) use own_requests::OwnRequests;

/// Sends requests to other replicas, over kept connections.
#[derive(Debug)]
pub struct Forward {
    pool: Pool,
    seal: CallerSeal,
    roots: Vec<Vec<u8>>,
    /// Where replicas are, by their URLs.
    origins: Mutex<HashMap<String, Arc<Origin>>>,
}

/// Why there is no response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unforwarded {
    /// Nothing of the request was read: it can be sent again.
    NotSent,
    /// The replica does not hold what the request is for, and has done nothing.
    Moved,
    /// The replica went away after it got the request.
    Lost,
}

/// A response of another replica whose body has not been read.
pub(super) struct Answered {
    response: Response<ResponseBody>,
    origin: Arc<Origin>,
}

/// Ends when the other replica is gone.
pub(super) type Gone = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Forward {
    /// Replicas with the same keys, and these roots for `https` between them (each one or more in PEM).
    /// Fails with a sentence if a root is none.
    pub fn new(keys: &[[u8; 32]], roots: &[Vec<u8>], limits: &Limits) -> Result<Self, String> {
        let limits = limits.clone().connect(CONNECT).idle_connections(IDLE);
        let pool = Pool::with_roots(roots, &limits)?;
        let (seal, origins) = (CallerSeal::new(keys), Mutex::default());
        Ok(Self { pool, seal, roots: roots.to_vec(), origins })
    }

    fn origin(&self, peer: &Peer) -> Option<Arc<Origin>> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = origins.get(&peer.url) {
            return Some(Arc::clone(origin));
        }
        let origin = Address::parse(&peer.url).ok()?.origin;
        // A fleet has fewer replicas; those that were restarted may have moved.
        if origins.len() >= IDLE {
            origins.clear();
        }
        origins.insert(peer.url.clone(), Arc::clone(&origin));
        Some(origin)
    }

    /// The roots for `https` between replicas.
    pub fn roots(&self) -> &[Vec<u8>] {
        &self.roots
    }

    /// Sends a sealed question to another replica, and returns its sealed answer; none if it does not
    /// answer in time.
    pub async fn ping(&self, peer: &Peer, question: Vec<u8>, within: Duration) -> Option<Vec<u8>> {
        let asking = async {
            let origin = self.origin(peer)?;
            let request = Request::post(internal::PING).header(header::HOST, &origin.name);
            let request = request.body(Bytes::from(question)).ok()?;
            let (head, mut body) = self.pool.send(&origin, &request.into()).await.ok()?;
            let answer = body.text(MAX_PONG).await.ok()??.into_owned();
            self.pool.put(&origin, body).await;
            (head.status == 200).then_some(answer)
        };
        timeout(within, asking).await.ok().flatten()
    }

    /// Sends a request on, and waits for the head of its response or until the peer is gone.
    pub(super) async fn send(
        &self,
        me: &str,
        peer: &Peer,
        head: &request::Parts,
        body: &Bytes,
        gone: &mut Gone,
    ) -> Result<Answered, Unforwarded> {
        let origin = self.origin(peer).ok_or(Unforwarded::NotSent)?;
        let mut request = Request::new(body.clone());
        *request.method_mut() = head.method.clone();
        if let Some(path) = head.uri.path_and_query() {
            *request.uri_mut() = path.clone().into();
        }
        let headers = request.headers_mut();
        headers.clone_from(&head.headers);
        remove_hop_by_hop(headers, &PROXY);
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::EXPECT);
        headers.insert(header::HOST, origin.name.clone());
        headers.insert(FORWARDED, self.seal.seal(me, &peer.id, head));
        let request = request.into();
        let mut sending = pin!(self.pool.send(&origin, &request));
        let sent = poll_fn(|cx| match sending.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Some(sent)),
            Poll::Pending => gone.as_mut().poll(cx).map(|()| None),
        });
        match sent.await {
            Some(Ok((head, body))) => match is_moved(&head) {
                true => {
                    self.return_empty(&origin, body).await;
                    Err(Unforwarded::Moved)
                }
                false => Ok(Answered { response: head.with(body), origin: Arc::clone(&origin) }),
            },
            Some(Err(CallError::Unreachable(_))) => Err(Unforwarded::NotSent),
            Some(Err(_)) | None => Err(Unforwarded::Lost),
        }
    }

    /// Reads a short body to its end, so that its connection can be used again.
    async fn return_empty(&self, origin: &Arc<Origin>, mut body: ResponseBody) {
        if let Ok(Ok(Some(_))) = timeout(CONNECT, body.text(MAX_PONG)).await {
            self.pool.put(origin, body).await;
        }
    }
}

impl Answered {
    /// The response, as the client gets it. A short one is read first, so that it comes whole or not at all.
    pub(super) async fn pass_on(
        self,
        shared: &Arc<SharedSessions>,
        gone: Gone,
        admitted: Option<Admitted>,
    ) -> Result<Response<HttpBody>, Unforwarded> {
        let (mut head, mut body) = self.response.into_parts();
        remove_hop_by_hop(&mut head.headers, &PROXY);
        if body.length().is_some_and(|it| it <= SHORT) {
            head.headers.remove(header::CONTENT_LENGTH);
            let text = body.text(usize::MAX).await.ok().flatten().ok_or(Unforwarded::Lost)?;
            let text = text.into_owned();
            shared.forward().pool.put(&self.origin, body).await;
            return Ok(Response::from_parts(head, HttpBody::whole(text)));
        }
        let (body, origin, shared) = (Some(body), self.origin, Arc::clone(shared));
        let relay = Relay { body, origin, shared, gone, _admitted: admitted };
        Ok(Response::from_parts(head, HttpBody::events(relay)))
    }
}

/// The body of another replica's response. It is cut off if that replica is gone: a client of a stream with ids then
/// resumes it elsewhere.
struct Relay {
    /// `None` after its end.
    body: Option<ResponseBody>,
    origin: Arc<Origin>,
    shared: Arc<SharedSessions>,
    gone: Gone,
    /// The request counts until all of its response was sent.
    _admitted: Option<Admitted>,
}

impl Events for Relay {
    fn poll_events(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Vec<u8>>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        match body.poll_piece(cx) {
            Poll::Ready(Ok(Some(piece))) => Poll::Ready(Some(Ok(piece.to_vec()))),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
            Poll::Ready(Ok(None)) => {
                if let Some(body) = this.body.take() {
                    this.shared.forward().pool.put_at(&this.origin, body, cx);
                }
                Poll::Ready(None)
            }
            Poll::Pending => this.gone.as_mut().poll(cx).map(|()| Some(Err(cut_off()))),
        }
    }
}

/// A response that says that another replica owns the session. `owner` is the one we know of.
pub(super) fn moved(owner: &str) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::default());
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    if let Ok(owner) = owner.parse() {
        response.headers_mut().insert(MOVED, owner);
    }
    response
}

/// Whether the replica has done nothing, because the session or the request itself is for another.
fn is_moved(response: &ResponseHead) -> bool {
    let is_refused = [StatusCode::MISDIRECTED_REQUEST, StatusCode::UNAUTHORIZED];
    is_refused.iter().any(|it| *it == response.status) && response.get(&MOVED).is_some()
}

/// Removes the header fields that are about one connection only (RFC 9110 §7.6.1), and those in `also`.
pub fn remove_hop_by_hop(headers: &mut HeaderMap, also: &[HeaderName]) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .filter_map(|it| it.trim().parse().ok())
        .collect();
    let always = [
        header::CONNECTION,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        KEEP_ALIVE,
    ];
    for name in named.iter().chain(&always).chain(also) {
        headers.remove(name);
    }
}

/// The header that names the owner of a session.
pub(in crate::http) const MOVED: HeaderName = HeaderName::from_static("trunkline-moved");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// What a client and the proxy before us say to each other.
const PROXY: [HeaderName; 2] = [header::PROXY_AUTHENTICATE, header::PROXY_AUTHORIZATION];
/// How long connecting to another replica may take.
const CONNECT: Duration = Duration::from_secs(1);
/// Kept connections to all replicas.
const IDLE: usize = 256;
/// The longest answer of a ping, or text of a refusal.
const MAX_PONG: usize = 64 << 10;
/// A response no longer than this is read before it is passed on.
const SHORT: u64 = 1 << 20;
