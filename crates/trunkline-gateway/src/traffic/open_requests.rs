//! The requests of one conversation whose answers are owed, and the calls that they belong to.
//!
//! The table of the peer's requests is short, so a linear search is quicker than hashing. Of ours there may be thousands,
//! but most are answered in their order, and those are found at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use trunkline_proto::RequestStream;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Id;

use super::CallEntry;
use super::kept_message::KeptMessage;
use super::recording::Recording;

/// The open requests in both directions.
#[derive(Default)]
pub(super) struct OpenRequests {
    theirs: Vec<Theirs>,
    ours: VecDeque<(Id, Whose)>,
}

/// Whom a message belongs to.
#[derive(Clone)]
pub(crate) enum Whose {
    Call(Arc<CallEntry>),
    /// No call: the conversation itself.
    Conversation,
    /// A call that is not recorded, or is recorded elsewhere.
    Nobody,
}

impl Whose {
    fn call(&self) -> Option<&Arc<CallEntry>> {
        match self {
            Self::Call(entry) => Some(entry),
            _ => None,
        }
    }
}

impl Whose {
    /// The call of a recording, or nobody's.
    pub(crate) fn of(recording: Option<&Recording>) -> Self {
        recording.map_or(Self::Nobody, |it| Self::Call(Arc::clone(&it.entry)))
    }
}

impl From<Option<Arc<CallEntry>>> for Whose {
    fn from(entry: Option<Arc<CallEntry>>) -> Self {
        entry.map_or(Self::Conversation, Self::Call)
    }
}

/// A request of the peer.
pub(super) struct Theirs {
    id: Id,
    via: RequestStream,
    /// Where its progress goes, if its call wants progress.
    token: Option<Json>,
    pub(super) owner: Owner,
}

/// Whom a request of the peer belongs to.
pub(super) enum Owner {
    /// No call has claimed it yet: here it is, and when it came.
    Nobody(KeptMessage, Instant),
    Call(Arc<CallEntry>),
    /// It belongs to no call.
    Conversation,
}

impl Owner {
    fn call(&self) -> Option<&Arc<CallEntry>> {
        match self {
            Self::Call(entry) => Some(entry),
            _ => None,
        }
    }

    /// The request, if nobody has claimed it. It belongs to the conversation from now on.
    #[inline]
    pub(super) fn disown(&mut self) -> Option<(KeptMessage, Instant)> {
        let Self::Nobody(request, at) = self else { return None };
        let unclaimed = (std::mem::replace(request, KeptMessage::Nothing), *at);
        *self = Self::Conversation;
        Some(unclaimed)
    }
}

impl OpenRequests {
    /// A request of the peer.
    pub(super) fn add_theirs(
        &mut self,
        id: &Id,
        via: RequestStream,
        request: KeptMessage,
        at: Instant,
    ) {
        if self.theirs.len() >= self.theirs.capacity().max(MANY) {
            self.theirs.retain(|it| is_awaited(it.owner.call()));
            self.theirs.drain(..self.theirs.len().saturating_sub(MOST));
        }
        self.theirs.retain(|it| it.id != *id);
        let owner = Owner::Nobody(request, at);
        self.theirs.push(Theirs { id: id.clone(), via, token: None, owner });
    }

    /// A request of the peer that a call claims, with its progress token if it wants progress.
    pub(super) fn claimed(&mut self, id: &Id, token: Option<Json>) -> &mut Theirs {
        let found = self.theirs.iter().position(|it| it.id == *id);
        let at = found.unwrap_or_else(|| {
            let (via, owner) = (RequestStream::default(), Owner::Conversation);
            self.theirs.push(Theirs { id: id.clone(), via, token: None, owner });
            self.theirs.len() - 1
        });
        let claimed = &mut self.theirs[at];
        claimed.token = token;
        claimed
    }

    /// The peer's request is answered.
    pub(super) fn take_theirs(&mut self, id: &Id) -> Option<Owner> {
        let at = self.theirs.iter().position(|it| it.id == *id)?;
        Some(self.theirs.swap_remove(at).owner)
    }

    /// Whether a request of the peer is open.
    pub(super) fn has_theirs(&self, id: &Id) -> bool {
        self.theirs.iter().any(|it| it.id == *id)
    }

    /// The call of a request of the peer.
    pub(super) fn theirs(&self, id: &Id) -> Option<Arc<CallEntry>> {
        self.theirs.iter().find(|it| it.id == *id)?.owner.call().cloned()
    }

    /// The call whose progress has this token.
    pub(super) fn with_token(&self, token: &Json) -> Option<Arc<CallEntry>> {
        let is_it = |it: &&Theirs| it.token.as_ref().is_some_and(|it| it.get() == token.get());
        self.theirs.iter().find(is_it)?.owner.call().cloned()
    }

    /// The call of the request that came on this stream, or the only call.
    pub(super) fn on_stream(&self, via: RequestStream) -> Option<Arc<CallEntry>> {
        let calls = || self.theirs.iter().filter(|it| it.owner.call().is_some());
        let found = calls().find(|it| it.via == via && via != RequestStream::default());
        let found = found.or_else(|| if calls().count() == 1 { calls().next() } else { None });
        found?.owner.call().cloned()
    }

    /// The peer's request on this stream that no call has claimed: it belongs to none.
    pub(super) fn disown(&mut self, via: RequestStream) -> Option<(KeptMessage, Instant)> {
        let on_it = self.theirs.iter_mut().filter(|it| it.via == via);
        on_it.map(|it| &mut it.owner).find_map(Owner::disown)
    }

    /// A request of ours.
    pub(super) fn add_ours(&mut self, id: Id, owner: Whose) {
        if self.ours.len() >= self.ours.capacity().max(MANY) {
            self.ours.retain(|it| is_awaited(it.1.call()));
            self.ours.drain(..self.ours.len().saturating_sub(MOST));
        }
        // We count our ids up, so that only one that is sent once more can be there.
        let is_next = match (self.ours.back(), &id) {
            (Some((Id::Number(last), _)), Id::Number(next)) => last < next,
            (last, _) => last.is_none(),
        };
        if !is_next {
            self.ours.retain(|it| it.0 != id);
        }
        self.ours.push_back((id, owner));
    }

    /// Our request is answered, or given up.
    pub(super) fn take_ours(&mut self, id: &Id) -> Option<Whose> {
        let at = self.ours.iter().position(|it| it.0 == *id)?;
        self.ours.remove(at).map(|(_, owner)| owner)
    }

    /// Whom a request of ours belongs to.
    pub(super) fn ours(&self, id: &Id) -> Option<Whose> {
        self.ours.iter().find(|it| it.0 == *id).map(|it| it.1.clone())
    }

    /// Whom our request belongs to on whose stream something came, or the only call.
    pub(super) fn ours_on_stream(&self, via: RequestStream) -> Option<Whose> {
        if let Some(whose) = i64::try_from(via.0).ok().and_then(|it| self.ours(&Id::Number(it))) {
            return Some(whose);
        }
        let mut calls = self.ours.iter().filter_map(|it| it.1.call());
        calls.next().filter(|_| calls.next().is_none()).cloned().map(Whose::Call)
    }
}

/// Whether the answer may still come: looked at as rarely as a table would have to grow.
fn is_awaited(call: Option<&Arc<CallEntry>>) -> bool {
    call.is_some_and(|it| !it.is_over())
}

/// How many requests may be open before those are looked for that nobody will answer, and at most.
const MANY: usize = 256;
const MOST: usize = 4_096;

#[cfg(test)]
impl OpenRequests {
    pub(super) fn len(&self) -> usize {
        self.theirs.len() + self.ours.len()
    }
}
