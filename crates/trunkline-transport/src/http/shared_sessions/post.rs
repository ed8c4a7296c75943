//! What sharing adds to a POST: the record follows it, and nobody answers who may not.

use std::sync::Arc;

use http::{Response, request};
use trunkline_proto::Attached;
use trunkline_proto::http::Refusal;
use trunkline_wire::jsonrpc::{Id, Incoming, Message};
use trunkline_wire::method::Method;

use super::{SharedSessions, ids_of, outcome_unknown, unavailable};
use crate::handler::Handler;
use crate::http::body::HttpBody;
use crate::http::endpoint::Endpoint;
use crate::http::forward::{Forwarded, Unforwarded};
use crate::http::post::id_of;
use crate::http::replicas::{Place, Unavailable};
use crate::http::session::{Posted, Session};

/// A message to a shared session, until it is answered.
pub(in crate::http) struct Asked {
    shared: Arc<SharedSessions>,
    ids: Vec<Id>,
    /// Whether it may change what the record says.
    changes: bool,
}

impl Asked {
    pub(in crate::http) fn new(shared: &Arc<SharedSessions>, incoming: &Incoming) -> Box<Self> {
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
        Box::new(Self { shared: Arc::clone(shared), ids: ids_of(incoming), changes })
    }

    /// Writes what has changed. Returns what is answered instead, if this replica may not answer any more:
    /// another may have taken the session over.
    pub(in crate::http) fn instead<H: Handler>(
        &self,
        session: &Session<H>,
        posted: &Posted,
    ) -> Option<Response<HttpBody>> {
        if self.changes {
            session.update_record();
        }
        if self.shared.replicas.may_answer(&session.id) {
            return None;
        }
        if let Posted::Events(reader) = posted {
            session.detach(*reader);
        }
        Some(outcome_unknown(&self.ids))
    }
}

impl<H: Handler> Endpoint<H> {
    /// The answer of the replica that holds what a request goes on with, if it is not this one. One that is
    /// gone leaves the answer to our handler.
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
        let goes_on = params.get("requestState").is_some() || params.get("taskId").is_some();
        if !goes_on || head.extensions.get::<Forwarded>().is_some() {
            return None;
        }
        let holder =
            self.handler.held_by(method, params, caller).filter(|it| it != shared.replicas.me())?;
        let peer = match shared.replicas.locate_replica(&holder).await {
            Ok(Place::At(peer)) => peer,
            Ok(_) => return None,
            Err(Unavailable) => return Some(Ok(unavailable(id_of(incoming)))),
        };
        let text = message.to_text().into_bytes().into();
        match self.forward(shared, &peer, shared.until_gone(&peer), head, &text).await {
            Ok(Ok(response)) => Some(Ok(response)),
            Ok(Err(Unforwarded::Lost)) => Some(Ok(outcome_unknown(&ids_of(incoming)))),
            Ok(Err(_)) => Some(Ok(unavailable(id_of(incoming)))),
            Err(refusal) => Some(Err(Refusal { id: id_of(incoming), ..refusal })),
        }
    }
}
