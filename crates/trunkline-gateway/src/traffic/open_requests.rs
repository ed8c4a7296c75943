//! The requests of one conversation whose answers are owed, and the calls that they belong to.
//!
//! The table of the peer's requests is short, so a linear search is quicker than hashing; the last one has a place of its
//! own as long as it is a plain one. We count our ids up, so that the last ones of ours have places by their ids.

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
    /// The peer's last request, if it is a plain one. It is not among the others.
    last: Option<Plain>,
    theirs: Vec<Theirs>,
    /// How many there may be before those are looked for that nobody will answer, unless `MANY` is more.
    most_theirs: usize,
    /// Our requests for calls by the last bits of their ids, and the numbers of the calls; 0 if there is none.
    calls: Vec<(i64, u64)>,
    /// The rest of ours. Our ids are numbers.
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

/// A request of the peer that has a number, and no token for its progress, with the number of its call.
struct Plain {
    id: i64,
    via: RequestStream,
    call: u64,
}

impl From<Plain> for Theirs {
    fn from(Plain { id, via, call }: Plain) -> Self {
        Self { id: Id::Number(id), via, token: None, owner: Owner::Call(call) }
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
    /// A request of the peer that no call has claimed yet. Returns whether one can: not if its id is that of a call
    /// that goes on, which keeps its place.
    pub(super) fn add_theirs(
        &mut self,
        id: &Id,
        request: Unclaimed,
        (via, at): (RequestStream, Instant),
        is_over: impl Fn(u64) -> bool,
    ) -> bool {
        self.bound_theirs(&is_over);
        if self.theirs(id).is_some_and(|it| !is_over(it)) {
            return false;
        }
        self.theirs.retain(|it| it.id != *id);
        let owner = Owner::Nobody(request, at);
        self.theirs.push(Theirs { id: id.clone(), via, token: None, owner });
        true
    }

    /// A plain request of the peer, with which the call of this number begins.
    #[inline(always)]
    pub(super) fn add_plain(
        &mut self,
        id: i64,
        via: RequestStream,
        call: u64,
        is_over: impl Fn(u64) -> bool,
    ) {
        if self.last.is_some() {
            self.bound_theirs(is_over);
        }
        self.last = Some(Plain { id, via, call });
    }

    /// Makes room among the others, and moves the last one there.
    #[cold]
    fn bound_theirs(&mut self, is_over: impl Fn(u64) -> bool) {
        // Not its capacity: it grows, too, when the last one moves there for a look at all of them.
        if self.theirs.len() >= self.most_theirs.max(MANY) {
            self.theirs.retain(|it| it.owner.call().is_some_and(|it| !is_over(it)));
            self.most_theirs = 2 * self.theirs.len();
        }
        self.move_last();
    }

    /// The last request is no longer apart from the others.
    fn move_last(&mut self) {
        if let Some(last) = self.last.take() {
            let last = Theirs::from(last);
            self.theirs.retain(|it| it.id != last.id);
            self.theirs.push(last);
        }
    }

    /// A request of the peer becomes that of the call of this number, whose progress has this token: the request, if
    /// nobody has claimed it before.
    pub(super) fn claim(
        &mut self,
        id: &Id,
        via: RequestStream,
        token: Option<Json>,
        number: u64,
        is_over: impl Fn(u64) -> bool,
    ) -> Option<(Unclaimed, Instant)> {
        self.move_last();
        let at = self.theirs.iter().position(|it| it.id == *id).unwrap_or_else(|| {
            self.bound_theirs(is_over);
            let owner = Owner::Conversation;
            self.theirs.push(Theirs { id: id.clone(), via, token: None, owner });
            self.theirs.len() - 1
        });
        let claimed = &mut self.theirs[at];
        claimed.token = token;
        match std::mem::replace(&mut claimed.owner, Owner::Call(number)) {
            Owner::Nobody(request, at) => Some((request, at)),
            Owner::Call(_) | Owner::Conversation => None,
        }
    }

    /// A plain request of the peer is answered: its call, if it has one.
    #[inline(always)]
    pub(super) fn take_plain(&mut self, id: i64) -> Option<u64> {
        let Plain { call, .. } = self.last.take_if(|it| it.id == id)?;
        Some(call)
    }

    /// The peer's request is answered.
    pub(super) fn take_theirs(&mut self, id: &Id) -> Option<Owner> {
        self.move_last();
        let at = self.theirs.iter().position(|it| it.id == *id)?;
        let owner = self.theirs.swap_remove(at).owner;
        // Most sessions have no more than their handshake there, and then wait.
        if self.theirs.is_empty() {
            (self.theirs, self.most_theirs) = (Vec::new(), 0);
        }
        Some(owner)
    }

    /// Whether no request is open.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none() && self.theirs.is_empty() && self.has_asked_nothing()
    }

    /// Whether there has been no request of ours.
    #[inline]
    fn has_asked_nothing(&self) -> bool {
        self.calls.is_empty() && self.ours.is_empty()
    }

    /// The calls of the peer's requests that are not answered.
    #[cold]
    pub(super) fn unanswered(&mut self) -> Vec<u64> {
        self.all().filter_map(|it| it.owner.call()).collect()
    }

    /// Forgets all requests, and gives back much memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        let room = [self.theirs.capacity(), self.ours.capacity(), self.calls.len()];
        if !self.is_empty() || room.iter().any(|it| *it > MANY) {
            *self = Self::default();
        }
    }

    /// Whether a request of the peer is open.
    pub(super) fn has_theirs(&mut self, id: &Id) -> bool {
        self.all().any(|it| it.id == *id)
    }

    fn all(&mut self) -> impl Iterator<Item = &Theirs> + Clone {
        self.move_last();
        self.theirs.iter()
    }

    /// The call of a request of the peer.
    pub(super) fn theirs(&mut self, id: &Id) -> Option<u64> {
        self.all().find(|it| it.id == *id)?.owner.call()
    }

    /// The call whose progress has this token.
    pub(super) fn with_token(&mut self, token: &Json) -> Option<u64> {
        let is_it = |it: &&Theirs| it.token.as_ref().is_some_and(|it| it.get() == token.get());
        self.all().find(is_it)?.owner.call()
    }

    /// The call of the request that came on this stream, or the only call.
    pub(super) fn on_stream(&mut self, via: RequestStream) -> Option<u64> {
        let mut calls = self.all().filter(|it| it.owner.call().is_some());
        let is_it = |it: &&Theirs| it.via == via && via != RequestStream::default();
        let found = calls.clone().find(is_it);
        let only = || calls.next().filter(|_| calls.next().is_none());
        found.or_else(only)?.owner.call()
    }

    /// The peer's request on this stream that no call has claimed: it belongs to none.
    pub(super) fn disown(&mut self, via: RequestStream) -> Option<(Unclaimed, Instant)> {
        self.move_last();
        let on_it = self.theirs.iter_mut().filter(|it| it.via == via);
        on_it.map(|it| &mut it.owner).find_map(Owner::disown)
    }

    /// A request of ours for a call.
    #[inline(always)]
    pub(super) fn add_call(&mut self, id: i64, number: u64, is_over: impl Fn(u64) -> bool) {
        match self.place_of(id) {
            Some(free) if free.1 == 0 => *free = (id, number),
            _ => self.add_call_to_others(id, number, is_over),
        }
    }

    #[cold]
    fn add_call_to_others(&mut self, id: i64, number: u64, is_over: impl Fn(u64) -> bool) {
        loop {
            let may_grow = self.calls.len() < MOST;
            match self.place_of(id) {
                Some(place) if place.1 == 0 || place.0 == id || is_over(place.1) => {
                    return *place = (id, number);
                }
                _ if may_grow => self.add_places(),
                _ => return self.add_ours(id, Whose::Call(number), is_over),
            }
        }
    }

    /// Makes twice as many places. Ids follow each other, so as many of them as there are places do not share one.
    #[cold]
    fn add_places(&mut self) {
        let count = (2 * self.calls.len()).max(PLACES);
        let before = std::mem::replace(&mut self.calls, vec![(0, 0); count]);
        for open in before.into_iter().filter(|it| it.1 > 0) {
            // Two that had places of their own still have them.
            self.calls[open.0 as usize & (count - 1)] = open;
        }
    }

    /// The place of a request of ours for a call, if there are places.
    #[inline(always)]
    fn place_of(&mut self, id: i64) -> Option<&mut (i64, u64)> {
        let last = self.calls.len().checked_sub(1)?;
        // There are 2ⁿ of them.
        self.calls.get_mut(id as usize & last)
    }

    /// A request of ours.
    pub(super) fn add_ours(&mut self, id: i64, owner: Whose, is_over: impl Fn(u64) -> bool) {
        if self.ours.len() >= self.ours.capacity().max(MANY) {
            self.ours.retain(|it| it.1.call().is_some_and(|it| !is_over(it)));
            self.ours.drain(..self.ours.len().saturating_sub(MOST));
        }
        // One that is sent once more can be there.
        self.take_call(id);
        self.ours.retain(|it| it.0 != id);
        self.ours.push_back((id, owner));
    }

    /// Our request is answered: its call, if it is the call's and has its place by its id.
    #[inline(always)]
    pub(super) fn take_call(&mut self, id: i64) -> Option<u64> {
        let place = self.place_of(id).filter(|it| it.0 == id && it.1 > 0)?;
        Some(std::mem::take(&mut place.1))
    }

    /// Our request is answered, or given up.
    pub(super) fn take_ours(&mut self, id: &Id) -> Option<Whose> {
        let Id::Number(id) = *id else { return None };
        if let Some(number) = self.take_call(id) {
            return Some(Whose::Call(number));
        }
        let at = self.ours.iter().position(|it| it.0 == id)?;
        self.ours.remove(at).map(|(_, owner)| owner)
    }

    /// Whom a request of ours belongs to.
    pub(super) fn ours(&self, id: &Id) -> Option<Whose> {
        let Id::Number(id) = *id else { return None };
        self.all_ours().find(|it| it.0 == id).map(|it| it.1)
    }

    /// Whom our request belongs to on whose stream something came, or the only call.
    pub(super) fn ours_on_stream(&self, via: RequestStream) -> Option<Whose> {
        if let Some(whose) = i64::try_from(via.0).ok().and_then(|it| self.ours(&Id::Number(it))) {
            return Some(whose);
        }
        let mut calls = self.all_ours().filter_map(|it| it.1.call());
        calls.next().filter(|_| calls.next().is_none()).map(Whose::Call)
    }

    fn all_ours(&self) -> impl Iterator<Item = (i64, Whose)> {
        let calls = self.calls.iter().filter(|it| it.1 > 0);
        calls.map(|it| (it.0, Whose::Call(it.1))).chain(self.ours.iter().copied())
    }
}

/// How many requests of ours have a place by their id, unless more are open.
const PLACES: usize = 64;
/// How many requests may be open before those are looked for that nobody will answer. Of the peer's, those of calls are
/// left that are remembered and go on: about twice as many are open at most, or so many if that is more.
const MANY: usize = 256;
/// How many requests of ours have a place by their id at most, and about how many others there are.
const MOST: usize = 4_096;

#[cfg(test)]
impl OpenRequests {
    pub(super) fn len(&self) -> usize {
        self.theirs.len() + usize::from(self.last.is_some()) + self.all_ours().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_ours_are_found_however_many_are_open() {
        let mut open = OpenRequests::default();
        let add = |open: &mut OpenRequests, id| open.add_call(id, id as u64 + 1_000, |_| false);
        (0..200).for_each(|id| add(&mut open, id));
        open.add_ours(200, Whose::Conversation, |_| false);
        add(&mut open, 7);
        add(&mut open, 150);
        assert_eq!(open.len(), 201, "one that is sent once more is there once");
        for id in (0..200).rev() {
            assert!(open.ours(&Id::Number(id)).is_some(), "{id}");
            let owner = open.take_ours(&Id::Number(id)).and_then(Whose::call);
            assert_eq!(owner, Some(id as u64 + 1_000));
            assert!(open.take_ours(&Id::Number(id)).is_none(), "{id}");
        }
        assert!(matches!(open.take_ours(&Id::Number(200)), Some(Whose::Conversation)));
        assert_eq!(open.len(), 0);
    }

    #[test]
    fn many_requests_of_calls_have_a_place_each_by_their_ids() {
        let mut open = OpenRequests::default();
        let many = MOST as i64;
        (5..many + 5).for_each(|id| open.add_call(id, id as u64, |_| false));
        assert_eq!((open.calls.len(), open.ours.len()), (MOST, 0));
        // One more than there are places for is found all the same.
        open.add_call(many + 5, 9_999, |_| false);
        assert_eq!((open.calls.len(), open.ours.len()), (MOST, 1));
        assert_eq!(open.take_call(many), Some(many as u64));
        assert_eq!(open.take_ours(&Id::Number(many + 5)).and_then(Whose::call), Some(9_999));
        open.clear();
        assert_eq!((open.calls.len(), open.len()), (0, 0), "its memory is given back");
    }

    #[test]
    fn the_peers_requests_are_bounded_by_the_calls_that_go_on() {
        for goes_on in [1, 100, 1_000] {
            let mut open = OpenRequests::default();
            let mut most = 0;
            for call in 1..20_000 {
                let (id, via, is_over) = (call as i64, RequestStream(1), |it| it + goes_on <= call);
                match call % 3 {
                    0 => drop(open.claim(&Id::Number(id), via, None, call, is_over)),
                    _ => open.add_plain(id, via, call, is_over),
                }
                most = most.max(open.len());
            }
            let goes_on = goes_on as usize;
            assert!((goes_on..MANY.max(2 * goes_on) + 3).contains(&most), "{goes_on}: {most}");
            let last = [19_999, 20_000 - goes_on as i64];
            assert!(last.iter().all(|it| open.has_theirs(&Id::Number(*it))));
        }
    }

    #[test]
    fn a_request_of_a_call_that_is_over_makes_way() {
        let mut open = OpenRequests::default();
        for id in 0..1_000 {
            open.add_call(id, 1, |_| true);
        }
        assert_eq!(open.len(), PLACES);
    }
}
