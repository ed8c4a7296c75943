//! A GET after an event that an earlier owner sent → the events that followed it.

use std::sync::Arc;

use http::{Response, StatusCode, request};
use trunkline_proto::http::Refusal;
use trunkline_proto::http::event::{EventId, Owed};
use trunkline_proto::http::streams::Kept;
use trunkline_wire::frame::sse::Event;
use trunkline_wire::jsonrpc::Id;

use super::{SharedSessions, lost, unavailable};
use crate::handler::Handler;
use crate::http::body::HttpBody;
use crate::http::endpoint::Endpoint;
use crate::http::expiry::Expiry;
use crate::http::replicas::KeptEvent;
use crate::http::response::empty;
use crate::http::session::Session;

impl<H: Handler> Endpoint<H> {
    /// Answers a GET: with the general stream, or with the rest of a stream, whoever began it.
    pub(in crate::http) async fn get_shared(
        &self,
        shared: &Arc<SharedSessions>,
        head: &request::Parts,
    ) -> Result<Response<HttpBody>, Refusal> {
        let (session, last) = self.reads(head)?;
        let Some(last) = last else {
            let reader = session.attach();
            return Ok(self.follow(session, reader, Expiry::of(&head.extensions)));
        };
        let verified = last.ok().and_then(|it| shared.verify(&session.id, it));
        let Some((id, owed)) = verified else { return Ok(empty(StatusCode::NO_CONTENT)) };
        if session.began_after(id) {
            let kept = shared.replicas.kept(&session.id, id.stream, id.place).await;
            let Ok(kept) = kept else { return Ok(unavailable(None)) };
            let kept: Vec<_> = kept.into_iter().map(from_store).collect();
            if id.stream == 0 {
                return Ok(self.follow_general(shared, session, id, &kept, head));
            }
            adopt(&session, id, kept, &owed);
        }
        let Some(reader) = session.resume_verified(id) else {
            // 204 tells an `EventSource` not to reconnect.
            return Ok(empty(StatusCode::NO_CONTENT));
        };
        let expiry = match session.is_general(reader) {
            true => Expiry::of(&head.extensions),
            false => Expiry::never(),
        };
        Ok(self.follow(session, reader, expiry))
    }

    /// The general stream after an event of an earlier owner: what that one sent, then what we send.
    fn follow_general(
        &self,
        shared: &SharedSessions,
        session: Arc<Session<H>>,
        after: EventId,
        kept: &[Kept],
        head: &request::Parts,
    ) -> Response<HttpBody> {
        let tags = shared.tagger().scope(&session.id);
        let mut first = Vec::new();
        for event in kept.iter().filter(|it| it.place > after.place) {
            let id = EventId::issue(0, event.place, &Owed::default(), |it| tags.tag(it));
            // What we have said ourselves is in memory.
            if session.began_after(id) {
                Event { id: Some(&id.text()), data: &event.text, ..Event::default() }
                    .write(&mut first);
            }
        }
        let reader = session.attach_at_beginning();
        let expiry = Expiry::of(&head.extensions);
        let first = Some(first).filter(|it| !it.is_empty());
        self.follow_after(session, reader, expiry, first, None)
    }
}

/// Takes over the stream of a POST that ended with its owner. What it still owes is told as lost. If its owner
/// ended before the store had the event, then the id of the event alone says what that is.
fn adopt<H: Handler>(session: &Session<H>, after: EventId, mut kept: Vec<Kept>, said: &Owed) {
    let owes = said.to_ids();
    if kept.is_empty() && !owes.is_empty() {
        let (stream, place) = (after.stream, after.place);
        kept.push(Kept { stream, place, text: Vec::new(), owes });
    }
    let Some(last) = kept.last() else { return };
    let (owed, next) = (last.owes.clone(), last.place + 1);
    let known = kept.len();
    for (at, id) in owed.iter().enumerate() {
        let Some(id) = Id::from_json(id) else { continue };
        let (text, owes) = (lost(id).to_text().into_bytes(), owed[at + 1..].to_vec());
        kept.push(Kept { stream: after.stream, place: next + at as u64, text, owes });
    }
    session.adopt(after.stream, kept, known);
}

/// In the store, places begin with 1: what follows the empty first event can then be asked for, with it.
pub(in crate::http) fn to_store(kept: Kept) -> KeptEvent {
    let Kept { stream, place, text, owes } = kept;
    KeptEvent { stream, place: place + 1, text, owes }
}

fn from_store(kept: KeptEvent) -> Kept {
    let KeptEvent { stream, place, text, owes } = kept;
    Kept { stream, place: place.saturating_sub(1), text, owes }
}
