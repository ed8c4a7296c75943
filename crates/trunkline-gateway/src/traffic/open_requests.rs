//! The requests of one conversation whose answers are owed, and the calls that they belong to.
//!
//! The table of the peer's requests is short, so a linear search is quicker than hashing; the last one has a place of its
//! own. Of ours there may be thousands, but most are answered in
//! their order, and those are found at once.

use std::collections::VecDeque;
use std::time::Instant;

use trunkline_proto::RequestStream;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Id;

use super::kept_message::Unclaimed;
use super::recording::Recording;

/// The open requests in both directions.
#[derive(Default)]
pub(super) struct OpenRequests {
    /// The peer's last request.
    last: Option<Theirs>,
    theirs: Vec<Theirs>,
    /// Our ids are numbers.
    ours: VecDeque<(i64, Whose)>,
}

/// Whom a message belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// The call of this number.
    Call(u64),
    /// No call: the conversation itself.
    Conversation,
    /// A call that is not recorded, or is recorded elsewhere.
    Nobody,
}

impl Whose {
    /// The call of a recording, or nobody's.
    pub(crate) fn of(recording: Option<&Recording>) -> Self {
        recording.map_or(Self::Nobody, |it| Self::Call(it.number))
    }

    fn call(self) -> Option<u64> {
        match self {
            Self::Call(number) => Some(number),
            _ => None,
        }
    }
}

impl From<Option<u64>> for Whose {
    fn from(call: Option<u64>) -> Self {
        call.map_or(Self::Conversation, Self::Call)
    }
}

/// A request of the peer.
pub(super) struct Theirs {
    id: Id,
    via: RequestStream,
    /// Where its progress goes, if its call wants progress.
    token: Option<Json>,
    owner: Owner,
}

/// Whom a request of the peer belongs to.
pub(super) enum Owner {
    /// No call has claimed it yet: here it is, and when it came.
    Nobody(Unclaimed, Instant),
    /// The call of this number.
    Call(u64),
    /// It belongs to no call.
    Conversation,
}

impl Owner {
    fn call(&self) -> Option<u64> {
        match self {
            Self::Call(number) => Some(*number),
            _ => None,
        }
    }

    /// The request, if nobody has claimed it. It belongs to the conversation from now on.
    fn disown(&mut self) -> Option<(Unclaimed, Instant)> {
        let Self::Nobody(..) = self else { return None };
        match std::mem::replace(self, Self::Conversation) {
            Self::Nobody(request, at) => Some((request, at)),
            _ => None,
        }
    }
}

impl OpenRequests {
    /// A request of the peer.
    #[inline]
    pub(super) fn add_theirs(
        &mut self,
        id: &Id,
        via: RequestStream,
        request: Unclaimed,
        at: Instant,
        is_over: impl Fn(u64) -> bool,
    ) {
        if self.last.is_some() {
            self.move_last(is_over);
        }
        let owner = Owner::Nobody(request, at);
        self.last = Some(Theirs { id: id.clone(), via, token: None, owner });
    }

    /// The last request makes way for another. Those whose calls are over are looked for as rarely as the table would
    /// have to grow.
    fn move_last(&mut self, is_over: impl Fn(u64) -> bool) {
        let Some(theirs) = self.last.take() else { return };
        if self.theirs.len() >= self.theirs.capacity().max(MANY) {
            self.theirs.retain(|it| it.owner.call().is_some_and(|it| !is_over(it)));
            self.theirs.drain(..self.theirs.len().saturating_sub(MOST));
        }
        self.theirs.retain(|it| it.id != theirs.id);
        self.theirs.push(theirs);
    }

    /// A request of the peer becomes that of the call of this number, whose progress has this token: the request, if
    /// nobody has claimed it before.
    #[inline(always)]
    pub(super) fn claim(
        &mut self,
        id: &Id,
        token: Option<Json>,
        number: u64,
    ) -> Option<(Unclaimed, Instant)> {
        let claimed = match &mut self.last {
            Some(last) if last.id == *id => last,
            _ => {
                let at = self.theirs.iter().position(|it| it.id == *id).unwrap_or_else(|| {
                    let (via, owner) = (RequestStream::default(), Owner::Conversation);
                    self.theirs.push(Theirs { id: id.clone(), via, token: None, owner });
                    self.theirs.len() - 1
                });
                &mut self.theirs[at]
            }
        };
        claimed.token = token;
        match std::mem::replace(&mut claimed.owner, Owner::Call(number)) {
            Owner::Nobody(request, at) => Some((request, at)),
            Owner::Call(_) | Owner::Conversation => None,
        }
    }

    /// The peer's request is answered.
    #[inline]
    pub(super) fn take_theirs(&mut self, id: &Id) -> Option<Owner> {
        // Of the last one, which most often is a call's, nothing is moved but its number.
        if let Some(last) = self.last.as_mut().filter(|it| it.id == *id) {
            let owner = match last.owner {
                Owner::Call(number) => Owner::Call(number),
                _ => std::mem::replace(&mut last.owner, Owner::Conversation),
            };
            self.last = None;
            return Some(owner);
        }
        let at = self.theirs.iter().position(|it| it.id == *id)?;
        Some(self.theirs.swap_remove(at).owner)
    }

    /// Whether no request is open.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none() && self.theirs.is_empty() && self.ours.is_empty()
    }

    /// Forgets all requests, and gives back much memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.is_empty() || self.theirs.capacity().max(self.ours.capacity()) > MANY {
            *self = Self::default();
        }
    }

    /// Whether a request of the peer is open.
    pub(super) fn has_theirs(&self, id: &Id) -> bool {
        self.all().any(|it| it.id == *id)
    }

    fn all(&self) -> impl Iterator<Item = &Theirs> {
        self.theirs.iter().chain(&self.last)
    }

    /// The call of a request of the peer.
    pub(super) fn theirs(&self, id: &Id) -> Option<u64> {
        self.all().find(|it| it.id == *id)?.owner.call()
    }

    /// The call whose progress has this token.
    pub(super) fn with_token(&self, token: &Json) -> Option<u64> {
        let is_it = |it: &&Theirs| it.token.as_ref().is_some_and(|it| it.get() == token.get());
        self.all().find(is_it)?.owner.call()
    }

    /// The call of the request that came on this stream, or the only call.
    pub(super) fn on_stream(&self, via: RequestStream) -> Option<u64> {
        let calls = || self.all().filter(|it| it.owner.call().is_some());
        let found = calls().find(|it| it.via == via && via != RequestStream::default());
        let found = found.or_else(|| if calls().count() == 1 { calls().next() } else { None });
        found?.owner.call()
    }

    /// The peer's request on this stream that no call has claimed: it belongs to none.
    pub(super) fn disown(&mut self, via: RequestStream) -> Option<(Unclaimed, Instant)> {
        let on_it = self.theirs.iter_mut().chain(&mut self.last).filter(|it| it.via == via);
        on_it.map(|it| &mut it.owner).find_map(Owner::disown)
    }

    /// A request of ours.
    #[inline]
    pub(super) fn add_ours(&mut self, id: &Id, owner: Whose, is_over: impl Fn(u64) -> bool) {
        let Id::Number(id) = *id else { return };
        if self.ours.len() >= self.ours.capacity().max(MANY) {
            self.ours.retain(|it| it.1.call().is_some_and(|it| !is_over(it)));
            self.ours.drain(..self.ours.len().saturating_sub(MOST));
        }
        // We count our ids up, so that only one that is sent once more can be there.
        if self.ours.back().is_some_and(|it| it.0 >= id) {
            self.ours.retain(|it| it.0 != id);
        }
        self.ours.push_back((id, owner));
    }

    /// Our request is answered, or given up.
    #[inline(always)]
    pub(super) fn take_ours(&mut self, id: &Id) -> Option<Whose> {
        let Id::Number(id) = *id else { return None };
        if let Some((first, owner)) = self.ours.front().copied()
            && first == id
        {
            self.ours.pop_front();
            return Some(owner);
        }
        let at = self.ours.iter().position(|it| it.0 == id)?;
        self.ours.remove(at).map(|(_, owner)| owner)
    }

    /// Whom a request of ours belongs to.
    pub(super) fn ours(&self, id: &Id) -> Option<Whose> {
        let Id::Number(id) = *id else { return None };
        self.ours.iter().find(|it| it.0 == id).map(|it| it.1)
    }

    /// Whom our request belongs to on whose stream something came, or the only call.
    pub(super) fn ours_on_stream(&self, via: RequestStream) -> Option<Whose> {
        if let Some(whose) = i64::try_from(via.0).ok().and_then(|it| self.ours(&Id::Number(it))) {
            return Some(whose);
        }
        let mut calls = self.ours.iter().filter_map(|it| it.1.call());
        calls.next().filter(|_| calls.next().is_none()).map(Whose::Call)
    }
}

/// How many requests may be open before those are looked for that nobody will answer, and at most.
const MANY: usize = 256;
const MOST: usize = 4_096;

#[cfg(test)]
impl OpenRequests {
    pub(super) fn len(&self) -> usize {
        self.theirs.len() + usize::from(self.last.is_some()) + self.ours.len()
    }
}
