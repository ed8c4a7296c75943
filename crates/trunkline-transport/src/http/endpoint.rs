//! An HTTP request → its response: every revision at one URL, and the two paths of 2024-11-05 beside
//! it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::header::{self, HeaderName, HeaderValue, ToStrError};
use http::{Extensions, HeaderMap, Method, Request, Response, StatusCode, Uri, request};
use http_body::Body;
use tokio::sync::watch;
use tokio::task::JoinSet;
use trunkline_auth::tag::{Tagger, random_name};
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::classify::{Rules, session_request};
use trunkline_proto::http::door::{self, Door};
use trunkline_proto::http::fields::Fields;
use trunkline_proto::http::streams::{Read, Reader, Style};
use trunkline_proto::server::{Config, EnvelopeCache};
use trunkline_wire::frame::sse::Event;
use trunkline_wire::revision::Era;

use super::body::{Events, HttpBody, RequestBody};
use super::budgets::Budgets;
use super::entry::By;
use super::expiry::Expiry;
use super::lasting::Lasting;
use super::lent_head::LentHead;
use super::response::{accepted, empty, events, events_in, no_session};
use super::serve::Answers;
use super::session::{OpenRequest, Session};
use super::sessions::Sessions;
use super::shared_sessions::{Begun, SharedSessions, close_later};
use super::sse::KeepAlive;
use crate::conversation_handle::ConversationHandle;
use crate::handler::Handler;
use crate::limits::Limits;

/// How a server is reached over HTTP.
#[derive(Clone)]
pub struct Settings {
    /// The path that serves every revision with Streamable HTTP.
    pub path: String,
    /// The two paths of 2024-11-05, if served: one for events, one for messages.
    pub sse_paths: Option<(String, String)>,
    /// The checks of Origin and Host.
    pub door: Door,
    /// Whether clients before 2026-07-28 get sessions.
    pub sessions: bool,
    /// Whether answers are sent as event streams even where JSON would do.
    pub always_stream: bool,
    /// Authenticates requests. Without it, a layer in front may do so and put a `Principal` into the
    /// extensions of the request.
    #[cfg(feature = "auth")]
    pub gate: Option<Arc<trunkline_auth::resource::Gate>>,
    /// Plain-text pages beside the server: a path, and what produces the text. They are public.
    pub pages: Vec<(String, Page)>,
    /// Whether `/` is an alias of `path`: an outer router may strip its prefix.
    pub is_nested: bool,
    /// Seals session ids, if sessions are to outlive the process.
    pub lasting: Option<Arc<Lasting>>,
    /// What is needed to share sessions with other replicas, if there are any. Session ids then name their
    /// owner, and `lasting` is not used.
    pub replicas: Option<Arc<SharedSessions>>,
    /// Budgets shared with other endpoints, if any.
    pub budgets: Option<Budgets>,
    /// The bounds.
    pub limits: Limits,
}

/// Produces the text of a page.
pub type Page = Arc<dyn Fn() -> String + Send + Sync>;

impl Settings {
    /// `/mcp`, and `/sse` with `/messages`; for this machine only; with sessions.
    pub fn new(limits: Limits) -> Self {
        Self {
            path: "/mcp".to_owned(),
            sse_paths: Some(("/sse".to_owned(), "/messages".to_owned())),
            door: Door::default(),
            sessions: true,
            always_stream: false,
            #[cfg(feature = "auth")]
            gate: None,
            pages: Vec::new(),
            is_nested: false,
            lasting: None,
            replicas: None,
            budgets: None,
            limits,
        }
    }

    /// Whether every caller that is let in has a name.
    fn knows_callers(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.gate.is_some();
        #[cfg(not(feature = "auth"))]
        false
    }
}

/// The paths that accept requests.
#[derive(Clone, Copy)]
pub(super) enum Entrance {
    /// Streamable HTTP, for every revision.
    Streamable,
    /// The event stream of 2024-11-05.
    Events,
    /// The messages of 2024-11-05.
    Messages,
}

impl Entrance {
    pub(super) fn methods(self) -> &'static str {
        match self {
            Self::Streamable => "GET, POST, DELETE",
            Self::Events => "GET",
            Self::Messages => "POST",
        }
    }
}

/// Serves a handler over HTTP.
pub struct Endpoint<H: Handler> {
    pub(super) settings: Settings,
    pub(super) core: Arc<Config>,
    /// For the two paths of 2024-11-05, which only know the stateful era.
    old_core: Arc<Config>,
    pub(super) handler: Arc<H>,
    pub(super) sessions: Arc<Sessions<H>>,
    pub(super) budgets: Budgets,
    pub(super) tagger: Tagger,
    /// Requests in progress.
    pub(super) busy: Arc<AtomicUsize>,
    /// Subscriptions of the stateless era. They wait and do no work.
    pub(super) listening: Arc<AtomicUsize>,
    /// Whether the server is shutting down.
    pub(super) closing: watch::Sender<bool>,
    /// Calls that continue after their client disconnected, and belong to no session.
    pub(super) detached: Arc<Mutex<JoinSet<()>>>,
    /// Subscriptions of the stateless era, which never end by themselves.
    listens: Arc<Mutex<Vec<ConversationHandle>>>,
}

impl<H: Handler> Endpoint<H> {
    /// Serves `handler` as the server that `core` describes.
    pub fn new(core: Arc<Config>, handler: Arc<H>, settings: Settings) -> Arc<Self> {
        let limits = &settings.limits;
        let sessions = Sessions::new(limits.session_idle, limits.session_sweep);
        let budgets = settings.budgets.clone();
        let budgets = budgets.unwrap_or_else(|| Budgets::new(limits, settings.knows_callers()));
        let mut core = Config::clone(&core);
        // Unnamed callers must not see each other's tasks.
        if let Some(tasks) = &mut core.capabilities.tasks {
            tasks.list &= settings.knows_callers();
        }
        let core = Arc::new(core);
        let mut old = Config::clone(&core);
        (old.revisions, old.dialect) = (old.revisions.of_era(Era::Stateful), false);
        Arc::new(Self {
            core,
            old_core: Arc::new(old),
            handler,
            sessions: Arc::new(sessions),
            budgets,
            tagger: settings.replicas.as_ref().map_or_else(Tagger::random, |it| it.tagger()),
            busy: Arc::default(),
            listening: Arc::default(),
            closing: watch::Sender::new(false),
            detached: Arc::default(),
            listens: Arc::default(),
            settings,
        })
    }

    /// Answers one request. The requests of one connection share `envelopes`.
    pub async fn answer<B: Body>(
        &self,
        request: Request<B>,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        self.answer_any(&mut head.into(), body, envelopes, By::Nobody).await
    }

    /// The same of a request that stays where it is.
    #[inline]
    pub fn answer_in_place<B: Body>(
        &self,
        head: &mut LentHead,
        body: B,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> impl Future<Output = Response<HttpBody>> {
        self.answer_any(head, body, envelopes, By::Nobody)
    }

    /// Ends every session and its handlers.
    pub fn end(&self) {
        for session in self.sessions.all() {
            self.sessions.remove(&session.id);
        }
        self.detached.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Ends what never ends by itself: streams of sessions, here and at other replicas, and subscriptions.
    pub fn hang_up(&self) {
        // Later requests see this flag; earlier ones are in one of the lists.
        self.closing.send_replace(true);
        for session in self.sessions.all() {
            session.hang_up();
        }
        for handle in &*self.listens.lock().unwrap_or_else(PoisonError::into_inner) {
            handle.close();
        }
    }

    /// Whether it can be dropped without loss: no sessions, no requests in progress.
    pub fn is_idle(&self) -> bool {
        let counts = [&self.busy, &self.listening];
        counts.iter().all(|it| it.load(Ordering::SeqCst) == 0) && self.sessions.all().is_empty()
    }

    /// Answers a request that was let in. Of a POST, the head may be checked yet.
    pub(super) async fn route<B: Body>(
        &self,
        head: &mut LentHead,
        place: Entrance,
        body: B,
        envelopes: &Mutex<EnvelopeCache>,
        begun: Begun<H>,
        is_checked: bool,
    ) -> Result<Response<HttpBody>, Refusal> {
        match (place, &head.method, &self.settings.replicas) {
            (Entrance::Streamable, &Method::POST, _) => {
                let mut outcome = self.post(head, body, envelopes, &begun, is_checked).await;
                if let Ok(response) = &mut outcome {
                    let caller = &head.extensions;
                    response.body_mut().counted(|text| self.budgets.answer(caller, text));
                }
                outcome
            }
            (Entrance::Streamable, &Method::GET | &Method::DELETE, Some(shared))
            | (Entrance::Events, &Method::GET, Some(shared)) => {
                Box::pin(self.without_body_shared(shared, head, place)).await
            }
            (Entrance::Streamable, &Method::GET, None) => self.get(head),
            (Entrance::Streamable, &Method::DELETE, None) => self.delete(head),
            (Entrance::Streamable, ..) if !self.settings.sessions => Err(Refusal::method("POST")),
            (Entrance::Events, &Method::GET, None) => self.old_events(head, random_name()),
            // Boxed: it is rare, and every connection would carry its size.
            (Entrance::Messages, &Method::POST, _) => Box::pin(self.old_message(head, body)).await,
            (place, ..) => Err(Refusal::method(place.methods())),
        }
    }

    /// The entrance at this path. All entrances share the same door.
    pub(super) fn place(&self, path: &str) -> Option<Entrance> {
        if path == self.settings.path || (self.settings.is_nested && path == "/") {
            return Some(Entrance::Streamable);
        }
        let has_sessions = self.settings.sessions && self.speaks_old();
        let (events, messages) = self.settings.sse_paths.as_ref().filter(|_| has_sessions)?;
        match path {
            _ if path == events => Some(Entrance::Events),
            _ if path == messages => Some(Entrance::Messages),
            _ => None,
        }
    }

    /// Serves the other paths: public documents and pages.
    pub(super) fn beside(&self, head: &request::Parts) -> Result<Response<HttpBody>, Refusal> {
        #[cfg(feature = "auth")]
        if let Some(document) = self.document(head) {
            return document;
        }
        self.page(head)
    }

    fn page(&self, head: &request::Parts) -> Result<Response<HttpBody>, Refusal> {
        let found = self.settings.pages.iter().find(|(path, _)| path == head.uri.path());
        let Some((_, page)) = found else {
            let message =
                format!("There is nothing at this path; MCP is at `{}`.", self.settings.path);
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        };
        self.settings.door.check(&head.uri, &Fields::of(&head.headers))?;
        if head.method != Method::GET {
            return Err(Refusal::method("GET"));
        }
        let mut response = Response::new(HttpBody::whole(page().into_bytes()));
        response.headers_mut().insert(header::CONTENT_TYPE, PLAIN);
        Ok(response)
    }

    /// Answers a GET with the general stream of a session, or with the rest of a broken stream.
    fn get(&self, head: &request::Parts) -> Result<Response<HttpBody>, Refusal> {
        let (session, last) = self.reads(head)?;
        let reader = match last {
            None => Some(session.attach()),
            // An event id that is unknown or too old has nothing after it. An id from an earlier
            // process belongs to a client that reconnects for what comes next.
            Some(id) => {
                let resumed = id.ok().and_then(|it| session.resume(it));
                resumed.or_else(|| session.is_restored().then(|| session.attach()))
            }
        };
        Ok(match reader {
            Some(reader) => {
                // The rest of a call ends with its answer and needs no expiry.
                let expiry = match session.is_general(reader) {
                    true => Expiry::of(&head.extensions),
                    false => Expiry::never(),
                };
                self.follow(session, reader, expiry)
            }
            // 204 tells an `EventSource` not to reconnect.
            None => empty(StatusCode::NO_CONTENT),
        })
    }

    /// The session that a GET reads, and the last event that its client has.
    pub(super) fn reads<'a>(&self, head: &'a request::Parts) -> Result<Reads<'a, H>, Refusal> {
        let headers = &head.headers;
        let session = session_request(headers, self.rules())?;
        if !door::accepts_events(headers) {
            let message = "The Accept header must allow `text/event-stream`.";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message));
        }
        let session = self.session(session, &head.extensions)?;
        Ok((session, headers.get(&LAST_EVENT_ID).map(|it| it.to_str())))
    }

    fn delete(&self, head: &request::Parts) -> Result<Response<HttpBody>, Refusal> {
        let session = session_request(&head.headers, self.rules())?;
        let session = self.session(session, &head.extensions)?;
        self.sessions.remove(&session.id);
        if let Some(lasting) = &self.settings.lasting {
            lasting.ended(&session.id);
        }
        Ok(empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn rules(&self) -> Rules<'_> {
        Rules { config: &self.core, sessions: self.settings.sessions }
    }

    /// The session of this id, for its owner only.
    pub(super) fn session(
        &self,
        id: &str,
        caller: &Extensions,
    ) -> Result<Arc<Session<H>>, Refusal> {
        let owner = attached(caller);
        let session = self.sessions.get(id).filter(|it| !it.is_old() && it.is_of(&owner));
        match session {
            Some(session) => Ok(session),
            None => self.restore(id, caller)?.ok_or_else(no_session),
        }
    }

    /// Creates a session with this id.
    pub(super) fn session_of(&self, id: String, style: Style, owner: Attached) -> Arc<Session<H>> {
        let core = if style == Style::Single { &self.old_core } else { &self.core };
        let tags = self.tagger.scope(&id);
        let (id, handler) = (id.into(), Arc::clone(&self.handler));
        Session::new(id, Arc::clone(core), handler, style, tags, &self.settings.limits, owner)
    }

    pub(super) fn follow(
        &self,
        session: Arc<Session<H>>,
        reader: Reader,
        expiry: Expiry,
    ) -> Response<HttpBody> {
        self.follow_after(session, reader, expiry, None, None)
    }

    /// The same, after these events, in the room of the request's header fields.
    pub(super) fn follow_after(
        &self,
        session: Arc<Session<H>>,
        reader: Reader,
        expiry: Expiry,
        begins_with: Option<Vec<u8>>,
        room: Option<&mut HeaderMap>,
    ) -> Response<HttpBody> {
        self.end_if_closing(&session);
        let keep_alive = KeepAlive::new(self.settings.limits.stream_keep_alive);
        let shared = self.settings.replicas.clone();
        // The answer of a call is in flight until its stream has carried it.
        let owes = shared.is_some() && !session.is_general(reader);
        let open = owes.then(|| session.begin_request()).flatten();
        let body = HttpBody::events(SessionEvents {
            _open: open,
            session,
            reader,
            keep_alive,
            expiry,
            begins_with,
            of: None,
            shared,
        });
        events_in(room, body)
    }

    /// The event stream of 2024-11-05, which is the session. Its first event names the path for
    /// messages.
    pub(super) fn old_events(
        &self,
        head: &request::Parts,
        id: String,
    ) -> Result<Response<HttpBody>, Refusal> {
        let headers = &head.headers;
        if headers.contains_key(header::ACCEPT) && !door::accepts_events(headers) {
            let message = "The Accept header must allow `text/event-stream`.";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message));
        }
        let place = self.budgets.session(&head.extensions)?;
        let owner = attached(&head.extensions);
        let session = self.session_of(id, Style::Single, owner);
        let reader = session.attach();
        self.sessions.add(place, &session);
        session.begin();
        self.end_if_closing(&session);
        let (_, messages) = self.settings.sse_paths.as_ref().expect("the path was found in it");
        let mut first = Vec::new();
        let to = format!("{messages}?sessionId={}", session.id);
        Event { event: Some("endpoint"), data: to.as_bytes(), ..Event::default() }
            .write(&mut first);
        let keep_alive = KeepAlive::new(self.settings.limits.stream_keep_alive);
        Ok(events(HttpBody::events(SessionEvents {
            _open: None,
            session,
            reader,
            keep_alive,
            expiry: Expiry::of(&head.extensions),
            begins_with: Some(first),
            of: Some(Arc::clone(&self.sessions)),
            shared: self.settings.replicas.clone(),
        })))
    }

    async fn old_message<B: Body>(
        &self,
        head: &request::Parts,
        body: B,
    ) -> Result<Response<HttpBody>, Refusal> {
        let id = old_session(&head.uri);
        let caller = attached(&head.extensions);
        let session = self.sessions.get(id).filter(|it| it.is_old() && it.is_of(&caller));
        let session = session.ok_or_else(no_session)?;
        self.post_old(&session, head, body).await?;
        Ok(accepted())
    }

    /// Lists a subscription so that [`Self::hang_up`] finds it.
    pub(super) fn register(&self, handle: ConversationHandle) -> Listed {
        let listed = Listed { all: Arc::clone(&self.listens), handle: handle.clone() };
        self.listens.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        if *self.closing.borrow() {
            listed.handle.close();
        }
        listed
    }

    pub(super) fn end_if_closing(&self, session: &Session<H>) {
        if *self.closing.borrow() {
            session.hang_up();
        }
    }

    fn speaks_old(&self) -> bool {
        !self.old_core.revisions.is_empty()
    }
}

impl<H: Handler> Answers for Endpoint<H> {
    fn answer(
        &self,
        request: Request<RequestBody>,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        self.answer(request, envelopes)
    }

    #[inline]
    fn answer_in_place(
        &self,
        head: &mut LentHead,
        body: &mut RequestBody,
        envelopes: &Mutex<EnvelopeCache>,
    ) -> impl Future<Output = Response<HttpBody>> + Send {
        self.answer_in_place(head, body, envelopes)
    }

    fn hang_up(&self) {
        self.hang_up();
    }

    fn end(&self) {
        self.end();
    }
}

/// A session, and the last event that its client has.
type Reads<'a, H> = (Arc<Session<H>>, Option<Result<&'a str, ToStrError>>);

/// The session that a message of 2024-11-05 names.
pub(super) fn old_session(uri: &Uri) -> &str {
    let parts = uri.query().unwrap_or_default().split('&');
    parts.filter_map(|it| it.strip_prefix("sessionId=")).next().unwrap_or_default()
}

/// What layers in front found out about a request.
pub(super) fn attached(extensions: &Extensions) -> Attached {
    match extensions.is_empty() {
        true => Attached::default(),
        false => Attached::new(extensions.clone()),
    }
}

/// A subscription that is listed until it is dropped.
pub(super) struct Listed {
    all: Arc<Mutex<Vec<ConversationHandle>>>,
    handle: ConversationHandle,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|it| it.is(&self.handle)) {
            all.swap_remove(at);
        }
    }
}

/// Streams a session's events to one reader.
struct SessionEvents<H: Handler> {
    session: Arc<Session<H>>,
    reader: Reader,
    keep_alive: KeepAlive,
    expiry: Expiry,
    begins_with: Option<Vec<u8>>,
    /// Set if the stream is the session itself: where to remove it at its end.
    of: Option<Arc<Sessions<H>>>,
    /// Set if another replica may take the session over.
    shared: Option<Arc<SharedSessions>>,
    /// Set if the stream owes an answer: until then the session is not handed over.
    _open: Option<OpenRequest<H>>,
}

impl<H: Handler> Events for SessionEvents<H> {
    fn poll_events(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Vec<u8>>>> {
        let this = &mut *self;
        if this.expiry.poll(cx) {
            match this.of {
                // The stream still has to carry the answers of open calls.
                Some(_) => this.session.hang_up(),
                None => return Poll::Ready(None),
            }
        }
        // The client resumes where the session is owned by now.
        if this.shared.as_ref().is_some_and(|it| !it.replicas.may_answer(&this.session.id)) {
            return Poll::Ready(None);
        }
        let mut out = this.begins_with.take().unwrap_or_default();
        let read = this.session.read(this.reader, cx, &mut out);
        if !out.is_empty() {
            this.keep_alive.reset();
            return Poll::Ready(Some(Ok(out)));
        }
        match read {
            Read::End => Poll::Ready(None),
            Read::Open => this.keep_alive.poll(cx).map(|it| Some(Ok(it))),
        }
    }
}

impl<H: Handler> Drop for SessionEvents<H> {
    fn drop(&mut self) {
        self.session.detach(self.reader);
        if let Some(sessions) = &self.of {
            sessions.remove(&self.session.id);
            if let Some(shared) = &self.shared {
                close_later(shared, &self.session.id);
            }
        }
    }
}

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static(trunkline_wire::header::LAST_EVENT_ID);
