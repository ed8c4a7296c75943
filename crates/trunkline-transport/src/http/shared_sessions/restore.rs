//! The record of a session ⇄ the session.

use std::sync::Arc;

use http::{Extensions, Method, Response, StatusCode, request};
use tokio::runtime::Handle;
use trunkline_auth::tag::random_name;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::classify::session_request;
use trunkline_proto::http::streams::Style;
use trunkline_wire::jsonrpc::{Incoming, Message, Params};

use super::{Located, SharedSessions, TakenOver, unavailable};
use crate::handler::Handler;
use crate::http::body::HttpBody;
use crate::http::budgets::principal;
use crate::http::endpoint::{Endpoint, Entrance, attached};
use crate::http::post::id_of;
use crate::http::replicas::{SessionRecord, Unavailable};
use crate::http::response::empty;
use crate::http::session::{Session, Sharing};

impl<H: Handler> Endpoint<H> {
    /// The id of a session that `incoming` opens, or the response if none can be opened now.
    pub(in crate::http) async fn shared_id(
        &self,
        shared: &SharedSessions,
        incoming: &Incoming,
        caller: &Extensions,
    ) -> Result<(String, SessionRecord), Response<HttpBody>> {
        let mut hello = match incoming {
            Incoming::One(Message::Request { params: Params::Object(params), .. }) => {
                params.clone()
            }
            _ => Default::default(),
        };
        hello.take("_meta");
        let record = self.record(hello.to_json().get(), caller);
        match shared.replicas.open(record.clone()).await {
            Ok(id) => Ok((id, record)),
            Err(Unavailable) => Err(unavailable(id_of(incoming))),
        }
    }

    fn record(&self, hello: &str, caller: &Extensions) -> SessionRecord {
        SessionRecord {
            path: self.settings.path.clone(),
            principal: principal(caller).to_string(),
            hello: hello.to_owned(),
            level: None,
            subscriptions: Vec::new(),
        }
    }

    /// Answers a request that has no body and belongs to a session that replicas share.
    pub(in crate::http) async fn without_body_shared(
        &self,
        shared: &Arc<SharedSessions>,
        head: &request::Parts,
        place: Entrance,
    ) -> Result<Response<HttpBody>, Refusal> {
        match (place, &head.method) {
            (Entrance::Events, _) => self.old_events_shared(shared, head).await,
            (_, &Method::DELETE) => self.delete_shared(shared, head).await,
            _ => self.get_shared(shared, head).await,
        }
    }

    /// Ends a session for all replicas.
    pub(in crate::http) async fn delete_shared(
        &self,
        shared: &SharedSessions,
        head: &request::Parts,
    ) -> Result<Response<HttpBody>, Refusal> {
        let id = session_request(&head.headers, self.rules())?;
        let session = self.session(id, &head.extensions)?;
        if shared.replicas.close(&session.id).await.is_err() {
            return Ok(unavailable(None));
        }
        self.sessions.remove(&session.id);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The event stream of 2024-11-05. Its session id names this replica, to which others forward its
    /// messages; the end of this replica is the end of the stream.
    pub(in crate::http) async fn old_events_shared(
        &self,
        shared: &Arc<SharedSessions>,
        head: &request::Parts,
    ) -> Result<Response<HttpBody>, Refusal> {
        let id = match shared.replicas.open(self.record("", &head.extensions)).await {
            Ok(id) => id,
            Err(Unavailable) => return Ok(unavailable(None)),
        };
        let response = self.old_events(head, id.clone());
        match &response {
            Ok(_) => self.sessions.guard(shared),
            Err(_) => close_later(shared, &id),
        }
        response
    }

    /// Brings what is in memory in line with where a session is.
    pub(super) fn settle(
        &self,
        shared: &Arc<SharedSessions>,
        id: &str,
        located: Located,
        caller: &Extensions,
    ) -> Result<(), Refusal> {
        if located == Located::Nowhere {
            shared.stash().remove(id);
            self.sessions.remove(id);
            return Ok(());
        }
        // Single-flight: of two concurrent requests, one restores the session and both use it.
        let mut stash = shared.stash();
        let Some(taken) = stash.get(id) else { return Ok(()) };
        let is_here = taken.record.path == self.settings.path;
        if !is_here || *taken.record.principal != *principal(caller) {
            // Its own client may still come.
            return Ok(());
        }
        // What is still in memory is from before another replica owned it.
        self.sessions.remove(id);
        if !self.restore_taken(shared, id, taken, caller)? {
            close_later(shared, id);
        }
        stash.remove(id);
        Ok(())
    }

    /// Restores a session from its record. Returns whether it could be.
    fn restore_taken(
        &self,
        shared: &Arc<SharedSessions>,
        id: &str,
        taken: &TakenOver,
        caller: &Extensions,
    ) -> Result<bool, Refusal> {
        let record = &taken.record;
        // The stream of 2024-11-05 has ended with its owner.
        if record.hello.is_empty() {
            return Ok(false);
        }
        let place = self.budgets.session(caller)?;
        let style = Style::Resumable { primed: false };
        let session = self.session_of(id.to_owned(), style, attached(caller));
        session.replay_handshake(&record.hello);
        if !session.is_open() {
            return Ok(false);
        }
        for uri in &record.subscriptions {
            session.subscribed.count(&self.budgets, caller, uri.len() + 2)?;
        }
        let sharing = Sharing::new(Arc::clone(&shared.replicas), record.clone());
        session.share(sharing.after(random_stream(), taken.general));
        self.sessions.guard(shared);
        self.sessions.add(place, &session);
        session.begin();
        session.replay_choices(record.level.as_deref(), &record.subscriptions);
        Ok(true)
    }

    /// Makes a session one that others can take over.
    pub(in crate::http) fn share(
        &self,
        shared: &Arc<SharedSessions>,
        session: &Session<H>,
        record: SessionRecord,
    ) {
        session.share(Sharing::new(Arc::clone(&shared.replicas), record));
        self.sessions.guard(shared);
    }
}

/// Ends a session that nobody can use; its record would expire by itself.
pub(in crate::http) fn close_later(shared: &SharedSessions, id: &str) {
    // A connection that is dropped with the runtime leaves nobody who could do it.
    let Ok(runtime) = Handle::try_current() else { return };
    let (replicas, id) = (Arc::clone(&shared.replicas), id.to_owned());
    runtime.spawn(async move {
        let _ = replicas.close(&id).await;
    });
}

/// A number beyond those of POSTs that earlier owners have answered.
fn random_stream() -> u64 {
    let random =
        u64::from_str_radix(&random_name()[..8], 16).expect("a random name is hexadecimal");
    (random | 1 << 32) << 20
}
