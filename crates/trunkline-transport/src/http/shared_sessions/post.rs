//! What sharing adds to a POST: the record follows it, and nobody answers who may not.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, request};
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::streams::RequestIds;
use trunkline_wire::jsonrpc::{Id, Incoming, Message};
use trunkline_wire::method::Method;

use super::{SharedSessions, ids_of, outcome_unknown, unavailable};
use crate::handler::Handler;
use crate::http::body::HttpBody;
use crate::http::endpoint::Endpoint;
use crate::http::forward::Unforwarded;
use crate::http::post::id_of;
use crate::http::replicas::{Place, Unavailable};
use crate::http::session::{Posted, Session};

/// A message to a shared session, until it is answered.
#[derive(Default)]
pub(in crate::http) struct Asked {
    /// Its requests, if it has any.
    requests: Option<Arc<RequestIds>>,
    /// Whether it may change what the record says.
    changes: bool,
}

impl Asked {
    pub(in crate::http) fn new(incoming: &Incoming) -> Self {
        let is_choice = |message: &Message| match message {
            Message::Request { method, .. } => matches!(
                method.known(),
                Some(
                    Method::LoggingSetLevel
                        | Method::ResourcesSubscribe
                        | Method::ResourcesUnsubscribe
                )
            ),
            _ => false,
        };
        let changes = match incoming {
            Incoming::One(message) => is_choice(message),
            Incoming::Batch(items) => items.iter().flatten().any(is_choice),
            Incoming::Bad(_) => false,
        };
        let requests = match incoming {
            // As nearly all are.
            Incoming::One(Message::Request { id, .. }) => RequestIds::of([id.clone()]),
            other => RequestIds::of(ids_of(other)),
        };
        Self { requests, changes }
    }

    /// The requests whose answers it is owed.
    pub(in crate::http) fn owes(&self) -> Option<Arc<RequestIds>> {
        self.requests.clone()
    }

    /// Writes what has changed. Returns what is answered instead, if this replica may not answer any more:
    /// another may have taken the session over.
    pub(in crate::http) fn instead<H: Handler>(
        &self,
        shared: &SharedSessions,
        session: &Session<H>,
        posted: &Posted,
    ) -> Option<Response<HttpBody>> {
        if self.changes {
            session.update_record();
        }
        if shared.replicas.may_answer(&session.id) {
            return None;
        }
        let ids: Vec<Id> = self.requests.iter().flat_map(|it| it.iter()).cloned().collect();
        match posted {
            Posted::Events(reader) => session.detach(*reader),
            // It was not taken in, so the next owner may do it.
            Posted::Gone => return Some(unavailable(ids.first().cloned())),
            _ => {}
        }
        Some(outcome_unknown(&ids))
    }
}

/// Whether a message goes on with what one replica may hold: a call that waits for an answer, or a task.
pub(super) fn goes_on(incoming: &Incoming) -> bool {
    match incoming {
        Incoming::One(Message::Request { params, .. }) => {
            params.get("requestState").is_some() || params.get("taskId").is_some()
        }
        _ => false,
    }
}

impl<H: Handler> Endpoint<H> {
    /// The answer of the replica that holds what a request [goes on](goes_on) with, if it is not this one. What is held
    /// by one that is gone goes on at another, or is left to our handler.
    pub(in crate::http) async fn answer_of_holder(
        &self,
        shared: &Arc<SharedSessions>,
        head: &request::Parts,
        incoming: &Incoming,
        caller: &Attached,
    ) -> Option<Result<Response<HttpBody>, Refusal>> {
        let Incoming::One(message @ Message::Request { method, params, .. }) = incoming else {
            return None;
        };
        let holder = self.handler.held_by(method, params, caller)?;
        let text = message.to_text().into_bytes().into();
        let mut asked = self.ask_holder(shared, &holder, head, &text).await;
        if let Asking::NotThere | Asking::Gone = asked
            && let Some(heir) = self.handler.goes_on_at(method, params).await
            && heir != holder
        {
            asked = self.ask_holder(shared, &heir, head, &text).await;
        }
        match asked {
            Asking::Here | Asking::Gone => None,
            Asking::NotThere => Some(Ok(unavailable(id_of(incoming)))),
            Asking::Lost => Some(Ok(outcome_unknown(&ids_of(incoming)))),
            Asking::Answered(response) => Some(Ok(response)),
            Asking::Refused(refusal) => Some(Err(Refusal { id: id_of(incoming), ..refusal })),
        }
    }

    /// Forwards a request to the replica that holds what it goes on with.
    async fn ask_holder(
        &self,
        shared: &Arc<SharedSessions>,
        holder: &str,
        head: &request::Parts,
        text: &Bytes,
    ) -> Asking {
        if holder == shared.replicas.me() {
            return Asking::Here;
        }
        let peer = match shared.replicas.locate_replica(holder).await {
            Ok(Place::At(peer)) => peer,
            Ok(_) => return Asking::Gone,
            Err(Unavailable) => return Asking::NotThere,
        };
        match self.forward(shared, &peer, shared.until_gone(&peer), head, text).await {
            Ok(Ok(response)) => Asking::Answered(response),
            Ok(Err(Unforwarded::Lost)) => Asking::Lost,
            Ok(Err(Unforwarded::NotSent | Unforwarded::Moved)) => Asking::NotThere,
            Err(refusal) => Asking::Refused(refusal),
        }
    }
}

/// What came of asking the replica that holds something.
enum Asking {
    /// This one holds it.
    Here,
    /// It has not got the request, and may be there later.
    NotThere,
    /// It has ended.
    Gone,
    /// It went away after it got the request.
    Lost,
    Answered(Response<HttpBody>),
    /// This replica does not forward it.
    Refused(Refusal),
}
