//! Sessions that replicas share: each request is served where its session is owned.
//!
//! A request whose session is owned here is served from memory. Any other is forwarded to the owner, or
//! restores the session from its record after this replica has taken it over. `Replicas` knows the owners;
//! this module knows what a session is.

mod looks;
mod post;
mod release;
mod restore;
mod resume;

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, Response, StatusCode, request};
use http_body::Body;
use tokio::time::{Instant, sleep, timeout_at};
use trunkline_auth::credentials::Credentials;
use trunkline_auth::tag::Tagger;
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::event::{EventId, Owed};
use trunkline_proto::server::EnvelopeCache;
use trunkline_wire::header::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use trunkline_wire::jsonrpc::{ErrorObject, Id, Incoming, Message};
use trunkline_wire::revision::{Era, Revision};

use super::body::{HttpBody, Once, read};
use super::endpoint::{Endpoint, Entrance};
use super::entry::By;
use super::forward::{Forward, Gone, OwnRequests, Unforwarded, moved};
use super::lent_head::LentHead;
use super::replicas::{Peer, Place, Replicas, SessionRecord, Unavailable};
use super::response::{json, no_session, refuse};
use super::session::{OpenRequest, Session};
use crate::budget::Held;
use crate::clock::now;
use crate::handler::Handler;

use looks::Looks;
pub(super) use post::Asked;
pub(super) use restore::close_later;
pub(super) use resume::to_store;

/// What endpoints need to share sessions with other replicas: who owns a session, and the way to the owner.
/// Endpoints of one process share it.
pub struct SharedSessions {
    pub(super) replicas: Arc<dyn Replicas>,
    forward: Forward,
    /// One per key; the first issues event ids, all verify them.
    taggers: Vec<Tagger>,
    taken_over: Mutex<HashMap<String, TakenOver>>,
    locating: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Tells those who wait for another replica to look whether it is still there.
    looks: Looks,
}

/// A session that this replica has taken over, until its client's next request restores it.
struct TakenOver {
    record: SessionRecord,
    /// Where the general stream goes on.
    general: u64,
    since: std::time::Instant,
}

impl SharedSessions {
    /// Shares sessions through `replicas`. All replicas have the same keys: the first seals, all open.
    pub fn new(replicas: Arc<dyn Replicas>, keys: &[[u8; 32]], forward: Forward) -> Arc<Self> {
        Arc::new(Self {
            replicas,
            forward,
            taggers: keys.iter().map(Tagger::keyed).collect(),
            taken_over: Mutex::default(),
            locating: Mutex::default(),
            looks: Looks::default(),
        })
    }

    /// The way to other replicas.
    pub fn forward(&self) -> &Forward {
        &self.forward
    }

    /// Who owns what.
    pub fn replicas(&self) -> &Arc<dyn Replicas> {
        &self.replicas
    }

    /// The credentials of this replica's own requests to the internal listener of another.
    pub fn credentials_for(self: &Arc<Self>, peer: &Peer) -> Arc<dyn Credentials> {
        Arc::new(OwnRequests::new(Arc::clone(self), &peer.id))
    }

    /// Issues the ids of events, which every replica can verify.
    pub(super) fn tagger(&self) -> Tagger {
        self.taggers[0].clone()
    }

    /// The event that an id names, and what its stream owed then, if a replica issued it in this session.
    fn verify(&self, session: &str, last_event: &str) -> Option<(EventId, Owed)> {
        let (id, owed) = EventId::parse_owing(last_event)?;
        let is_issued = |tagger: &Tagger| {
            let tags = tagger.scope(session);
            EventId::issue(id.stream, id.place, &owed, |it| tags.tag(it)) == id
        };
        self.taggers.iter().any(is_issued).then_some((id, owed))
    }

    /// Where a request of a session goes. What was taken over is kept until it is restored, even if the
    /// request that asked is given up.
    async fn locate(self: &Arc<Self>, id: &str) -> Result<Located, Unavailable> {
        let (shared, id) = (Arc::clone(self), id.to_owned());
        let locating = tokio::spawn(async move {
            // Others that ask meanwhile find the record, or the session.
            let one = shared.lock_of(&id);
            let _one = one.lock().await;
            let located = shared.ask(&id).await;
            shared.forget_lock(&id);
            located
        });
        locating.await.unwrap_or(Err(Unavailable))
    }

    /// [`Self::locate`], at once if the owner is known, and with an end if nobody can tell.
    async fn locate_by(self: &Arc<Self>, id: &str, by: Instant) -> Result<Located, Unavailable> {
        match self.replicas.found_lately(id) {
            Some(peer) => Ok(Located::At(peer)),
            None => timeout_at(by, self.locate(id)).await.unwrap_or(Err(Unavailable)),
        }
    }

    async fn ask(&self, id: &str) -> Result<Located, Unavailable> {
        let record = match self.replicas.locate(id).await? {
            Place::Here => return Ok(Located::Here),
            Place::Gone => return Ok(Located::Nowhere),
            Place::At(peer) => return Ok(Located::At(peer)),
            Place::TakenOver(record) => record,
        };
        let kept = self.replicas.kept(id, 0, 0).await;
        let newest = kept.iter().flatten().map(|it| it.place).max().unwrap_or(0);
        // What the last owner sent but did not keep has a lower place than what we send.
        let general = newest.saturating_add(GAP);
        let since = now();
        let mut stash = self.stash();
        // Those whose clients did not come back end, as any session that nobody uses.
        stash.retain(|id, it| {
            let is_kept = since.duration_since(it.since) < KEPT;
            if !is_kept {
                close_later(self, id);
            }
            is_kept
        });
        stash.insert(id.to_owned(), TakenOver { record, general, since });
        Ok(Located::Here)
    }

    /// The answer of another replica to a request that only it can answer; none if it is gone.
    pub async fn answer_of(
        self: &Arc<Self>,
        replica: &str,
        head: &request::Parts,
        body: Bytes,
    ) -> Option<Response<HttpBody>> {
        let located = self.replicas.locate_replica(replica).await;
        let Ok(Place::At(peer)) = located else { return None };
        let mut gone = self.until_gone(&peer);
        let me = self.replicas.me();
        let answered = self.forward.send(me, &peer, head, &body, &mut gone).await.ok()?;
        answered.pass_on(self, gone, None).await.ok()
    }

    fn lock_of(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locating = self.locating.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locating.entry(id.to_owned()).or_default())
    }

    fn forget_lock(&self, id: &str) {
        let mut locating = self.locating.lock().unwrap_or_else(PoisonError::into_inner);
        // Ours, and that of the map.
        if locating.get(id).is_some_and(|it| Arc::strong_count(it) <= 2) {
            locating.remove(id);
        }
    }

    /// Forgets what was taken over of a session: it is another's again.
    fn forget_taken(&self, id: &str) {
        let mut stash = self.stash();
        // As nearly always.
        if !stash.is_empty() {
            stash.remove(id);
        }
    }

    fn stash(&self) -> MutexGuard<'_, HashMap<String, TakenOver>> {
        self.taken_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends when the session is no longer at `peer`.
    fn until_moved(self: &Arc<Self>, id: &str, peer: &Peer) -> Gone {
        let (shared, id, peer) = (Arc::clone(self), id.to_owned(), peer.id.clone());
        Box::pin(async move {
            loop {
                shared.looks.next().await;
                match shared.locate(&id).await {
                    Ok(Located::At(at)) if at.id == peer => {}
                    // Nobody can have taken it over meanwhile.
                    Err(Unavailable) => {}
                    _ => return,
                }
            }
        })
    }

    /// Ends when `peer` is gone.
    fn until_gone(self: &Arc<Self>, peer: &Peer) -> Gone {
        let (shared, peer) = (Arc::clone(self), peer.id.clone());
        Box::pin(async move {
            loop {
                shared.looks.next().await;
                match shared.replicas.locate_replica(&peer).await {
                    Ok(Place::At(_)) | Err(Unavailable) => {}
                    Ok(_) => return,
                }
            }
        })
    }
}

impl fmt::Debug for SharedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSessions").field("me", &self.replicas.me()).finish_non_exhaustive()
    }
}

/// Where a request is served.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Located {
    /// Here: from memory, or from a record that was taken over.
    Here,
    /// At another replica.
    At(Peer),
    /// Nowhere.
    Nowhere,
}

/// A request in a session that replicas share, from its head to its answer; or in none.
pub(super) struct Begun<H: Handler> {
    /// Its session is not handed over meanwhile.
    open: Option<OpenRequest<H>>,
    /// Whether another replica sent it. Then it is never forwarded again.
    is_forwarded: bool,
}

impl<H: Handler> Default for Begun<H> {
    fn default() -> Self {
        Self { open: None, is_forwarded: false }
    }
}

impl<H: Handler> Begun<H> {
    /// Its session, if it has this id and the caller is its owner.
    pub(super) fn session(&self, id: &str, caller: &Attached) -> Option<Arc<Session<H>>> {
        self.open.as_ref()?.session(id, caller)
    }

    /// Whether it goes on with what another replica may hold.
    pub(super) fn may_go_on_elsewhere(&self, incoming: &Incoming) -> bool {
        !self.is_forwarded && post::goes_on(incoming)
    }
}

/// A request whose session is not in memory here, or not ours for now.
pub(super) struct Astray {
    id: String,
    is_forwarded: bool,
}

/// A body, until it has to be sent more than once.
enum Sent<B> {
    Unread(B),
    /// With its place in the budget.
    Read(Bytes, Option<Held>),
}

impl<H: Handler> Endpoint<H> {
    /// Begins a request in the session that it names, if replicas share that.
    pub(super) fn begin(
        &self,
        head: &request::Parts,
        place: Entrance,
        let_in: By,
    ) -> Result<Begun<H>, Astray> {
        let is_forwarded = let_in == By::Replica;
        let Some(shared) = &self.settings.replicas else { return Ok(Begun::default()) };
        let Some(id) = session_of(head, place) else {
            return Ok(Begun { open: None, is_forwarded });
        };
        let session = self.sessions.get(id).filter(|_| shared.replicas.may_answer(id));
        match session.and_then(|it| it.begin_request()) {
            open @ Some(_) => Ok(Begun { open, is_forwarded }),
            None => Err(Astray { id: id.to_owned(), is_forwarded }),
        }
    }

    /// Serves a request where its session is owned.
    pub(super) async fn route_elsewhere<B: Body>(
        &self,
        Astray { id, is_forwarded }: Astray,
        head: &mut LentHead,
        place: Entrance,
        body: B,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> Result<Response<HttpBody>, Refusal> {
        let Some(shared) = &self.settings.replicas else { return Err(no_session()) };
        let (id, mut body) = (&*id, Sent::Unread(body));
        let by = Instant::now() + LOOKS_FOR;
        for tried in 0..TRIES {
            let peer = match shared.locate_by(id, by).await {
                // A session that is being handed over has another owner in a moment.
                Err(Unavailable) if tried + 1 < TRIES && Instant::now() < by => {
                    sleep(PAUSE).await;
                    continue;
                }
                Err(Unavailable) => return Ok(unavailable(None)),
                Ok(Located::At(peer)) => peer,
                Ok(located) => {
                    self.settle(shared, id, located, &head.extensions)?;
                    let open = self.sessions.get(id).map(|it| it.begin_request());
                    if let Some(None) = open {
                        // It is being handed over: the record names the next owner in a moment.
                        sleep(PAUSE).await;
                        continue;
                    }
                    let begun = Begun { open: open.flatten(), is_forwarded };
                    return match body {
                        Sent::Unread(body) => {
                            self.route(head, place, body, envelopes, begun, true).await
                        }
                        Sent::Read(text, _held) => {
                            self.route(head, place, Once::new(text), envelopes, begun, true).await
                        }
                    };
                }
            };
            // What may still work here for a session of another stops.
            self.sessions.remove(id);
            shared.forget_taken(id);
            if is_forwarded {
                if tried > 0 {
                    return Ok(moved(&peer.id));
                }
                // The sender may have read in the record that the session is ours by now.
                shared.replicas.forget(id);
                continue;
            }
            let text = self.body_of(head, &mut body).await?;
            let gone = shared.until_moved(id, &peer);
            match self.forward(shared, &peer, gone, head, &text).await? {
                Ok(response) => return Ok(response),
                Err(Unforwarded::Lost) => return Ok(outcome_unknown_of(&text)),
                Err(Unforwarded::NotSent | Unforwarded::Moved) => {
                    shared.replicas.forget(id);
                    sleep(PAUSE).await;
                }
            }
        }
        Ok(match is_forwarded {
            // Nothing was done here: the sender looks again.
            true => moved(shared.replicas.me()),
            false => unavailable(None),
        })
    }

    /// Forwards a request once.
    async fn forward(
        &self,
        shared: &Arc<SharedSessions>,
        peer: &Peer,
        mut gone: Gone,
        head: &request::Parts,
        text: &Bytes,
    ) -> Result<Result<Response<HttpBody>, Unforwarded>, Refusal> {
        let admitted = match head.method {
            Method::POST => Some(self.admit(&head.extensions)?),
            _ => None,
        };
        if reads_general(head) {
            gone = self.or_closing(gone);
        }
        let sent = shared.forward.send(shared.replicas.me(), peer, head, text, &mut gone).await;
        Ok(match sent {
            Ok(answered) => answered.pass_on(shared, gone, admitted).await,
            Err(Unforwarded::Lost) if shared.replicas.has_answered_all(&peer.id).await => {
                Err(Unforwarded::NotSent)
            }
            Err(why) => Err(why),
        })
    }

    /// Ends when the other replica is gone, or when this endpoint hangs up: a stream that never ends by
    /// itself would keep this process from ending.
    fn or_closing(&self, mut gone: Gone) -> Gone {
        let mut closing = self.closing.subscribe();
        Box::pin(async move {
            let mut closed = pin!(closing.wait_for(|it| *it));
            poll_fn(|cx| match closed.as_mut().poll(cx) {
                Poll::Ready(_) => Poll::Ready(()),
                Poll::Pending => gone.as_mut().poll(cx),
            })
            .await;
        })
    }

    /// All of a body, within the bounds of any request.
    async fn body_of<B: Body>(
        &self,
        head: &request::Parts,
        body: &mut Sent<B>,
    ) -> Result<Bytes, Refusal> {
        let (text, held) = match std::mem::replace(body, Sent::Read(Bytes::new(), None)) {
            Sent::Read(text, held) => (text, held),
            Sent::Unread(_) if head.method != Method::POST => (Bytes::new(), None),
            Sent::Unread(body) => {
                let limits = &self.settings.limits;
                let mut meter = self.budgets.body(&head.extensions);
                let text = read(body, limits.body_bytes, limits.body_read, &mut meter).await?;
                (text.into_bytes(), meter.into_held())
            }
        };
        *body = Sent::Read(text.clone(), held);
        Ok(text)
    }
}

/// The session that a request belongs to, if it names one.
fn session_of(head: &request::Parts, place: Entrance) -> Option<&str> {
    match place {
        Entrance::Streamable => {
            let id = text(head, &SESSION)?;
            let revision = text(head, &VERSION).and_then(|it| Revision::parse(it.trim()));
            let is_modern = revision.is_some_and(|it| it.era() == Era::Stateless);
            (!is_modern).then_some(id)
        }
        Entrance::Messages => Some(super::endpoint::old_session(&head.uri)),
        Entrance::Events => None,
    }
}

fn text<'a>(head: &'a request::Parts, name: &HeaderName) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}

/// Whether a request reads the general stream of its session, which never ends by itself.
fn reads_general(head: &request::Parts) -> bool {
    let last = head.headers.get(LAST_EVENT_ID).and_then(|it| it.to_str().ok());
    let stream = last.and_then(EventId::parse_owing).map_or(0, |(it, _)| it.stream);
    head.method == Method::GET && stream == 0
}

/// The owner of a session cannot be told, or may not answer, for now.
fn unavailable(id: Option<Id>) -> Response<HttpBody> {
    let error = ErrorObject::internal("owner_unavailable", Unavailable.to_string());
    let refusal = Refusal { error, id, ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "") };
    let mut response = refuse(refusal);
    response.headers_mut().insert(RETRY_AFTER, SOON);
    response
}

/// The answer to requests whose replica went away while it worked on them.
fn outcome_unknown(ids: &[Id]) -> Response<HttpBody> {
    let texts: Vec<_> = ids.iter().map(|id| lost(id.clone()).to_text()).collect();
    match &texts[..] {
        // Nothing was asked, and nothing is told by it.
        [] => unavailable(None),
        [one] => json(StatusCode::OK, one.clone().into_bytes()),
        many => json(StatusCode::OK, format!("[{}]", many.join(",")).into_bytes()),
    }
}

fn outcome_unknown_of(text: &[u8]) -> Response<HttpBody> {
    outcome_unknown(&ids_of(&Incoming::parse(text)))
}

/// The answer to a request whose replica went away while it worked on it.
fn lost(id: Id) -> Message {
    let message = "The replica that worked on this call went away; the work may have been done.";
    let outcome = Err(ErrorObject::internal("outcome_unknown", message));
    Message::Response { id: Some(id), outcome }
}

/// The ids of the requests in a text.
pub(super) fn ids_of(incoming: &Incoming) -> Vec<Id> {
    let of = |message: &Message| match message {
        Message::Request { id, .. } => Some(id.clone()),
        _ => None,
    };
    match incoming {
        Incoming::One(message) => of(message).into_iter().collect(),
        Incoming::Batch(items) => items.iter().flatten().filter_map(of).collect(),
        Incoming::Bad(_) => Vec::new(),
    }
}

/// How long a session that was taken over waits for its client.
const KEPT: Duration = Duration::from_secs(30 * 60);
/// How often a request looks for its owner.
const TRIES: usize = 4;
/// How long it looks: longer than a takeover takes.
const LOOKS_FOR: Duration = Duration::from_secs(10);
/// The pause before it looks again: a store answers faster.
const PAUSE: Duration = Duration::from_millis(50);
/// More events than an owner sends without keeping one.
const GAP: u64 = 1 << 20;
const SESSION: HeaderName = HeaderName::from_static(SESSION_ID);
const VERSION: HeaderName = HeaderName::from_static(PROTOCOL_VERSION);
const SOON: HeaderValue = HeaderValue::from_static("1");
