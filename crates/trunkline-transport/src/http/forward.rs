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
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Request, Response, StatusCode, request};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::timeout;
use trunkline_proto::CallError;

use super::admitted::Admitted;
use super::body::{Events, HttpBody};
use super::client::pool::{Lease, Once, Pool};
use super::client::target::{Address, Origin};
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
    response: Response<Incoming>,
    lease: Lease,
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
            let request = request.body(Once::new(Bytes::from(question))).ok()?;
            let (response, lease) = self.pool.send(&origin, request).await.ok()?;
            let status = response.status();
            let answer = whole(response.into_body(), MAX_PONG).await?;
            self.pool.put(lease);
            (status == StatusCode::OK).then(|| answer.into())
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
        let mut request = Request::new(Once::new(body.clone()));
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
        let mut sending = pin!(self.pool.send(&origin, request));
        let sent = poll_fn(|cx| match sending.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Some(sent)),
            Poll::Pending => gone.as_mut().poll(cx).map(|()| None),
        });
        match sent.await {
            Some(Ok((response, lease))) => match is_moved(&response) {
                true => {
                    self.return_empty(response, lease).await;
                    Err(Unforwarded::Moved)
                }
                false => Ok(Answered { response, lease }),
            },
            Some(Err(CallError::Unreachable(_))) => Err(Unforwarded::NotSent),
            Some(Err(_)) | None => Err(Unforwarded::Lost),
        }
    }

    /// Reads a short body to its end, so that its connection can be used again.
    async fn return_empty(&self, response: Response<Incoming>, lease: Lease) {
        let rest = timeout(CONNECT, whole(response.into_body(), MAX_PONG)).await;
        if let Ok(Some(_)) = rest {
            self.pool.put(lease);
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
        let (mut head, body) = self.response.into_parts();
        remove_hop_by_hop(&mut head.headers, &PROXY);
        let size = body.size_hint().exact();
        if size.is_some_and(|it| it <= SHORT) {
            head.headers.remove(header::CONTENT_LENGTH);
            let text = whole(body, usize::MAX).await.ok_or(Unforwarded::Lost)?;
            shared.forward().pool.put(self.lease);
            return Ok(Response::from_parts(head, HttpBody::whole(text)));
        }
        let (lease, shared) = (Some(self.lease), Arc::clone(shared));
        let relay = Relay { body, lease, shared, gone, _admitted: admitted };
        Ok(Response::from_parts(head, HttpBody::events(relay)))
    }
}

/// The body of another replica's response. It ends early if that replica is gone: a client of a stream with
/// ids then resumes it elsewhere.
struct Relay {
    body: Incoming,
    lease: Option<Lease>,
    shared: Arc<SharedSessions>,
    gone: Gone,
    /// The request counts until all of its response was sent.
    _admitted: Option<Admitted>,
}

impl Events for Relay {
    fn poll_events(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let this = &mut *self;
        loop {
            match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Some(data.into())),
                    _ => {}
                },
                Poll::Ready(Some(Err(_))) => return Poll::Ready(None),
                Poll::Ready(None) => {
                    if let Some(lease) = this.lease.take() {
                        this.shared.forward().pool.put(lease);
                    }
                    return Poll::Ready(None);
                }
                Poll::Pending => return this.gone.as_mut().poll(cx).map(|()| None),
            }
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
fn is_moved(response: &Response<Incoming>) -> bool {
    let status = response.status();
    let is_refused = [StatusCode::MISDIRECTED_REQUEST, StatusCode::UNAUTHORIZED].contains(&status);
    is_refused && response.headers().contains_key(&MOVED)
}

/// All of a body, unless it breaks off or is longer than `most`. It is not copied if it comes in one piece.
async fn whole(mut body: Incoming, most: usize) -> Option<Bytes> {
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        match (first.is_empty(), all.is_empty()) {
            (true, true) => first = data,
            _ => {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&data);
            }
        }
        if first.len().max(all.len()) > most {
            return None;
        }
    }
    Some(if all.is_empty() { first } else { all.into() })
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
