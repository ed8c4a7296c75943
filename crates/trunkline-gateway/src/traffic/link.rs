//! One conversation → what is said in it. Each message goes to the entry of the call that it belongs to. What belongs to
//! no call (handshakes, pings, the gateway's own lists, changes) goes to an entry of the conversation's own.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::MutexGuard;
use trunkline_proto::{Attached, Cause, Peer, RequestStream};
use trunkline_recording::line::{Direction, Side};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::witness::{SentMessage, Witness};
use trunkline_wire::jsonrpc::{Id, Message, MethodName, Object, Outcome, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::meta;
use trunkline_wire::revision::Revision;

use super::call_log::{CallTarget, Ended, TO_CLIENT};
use super::journal::{Head, What};
use super::kept_message::{Heard, Unclaimed};
use super::open_requests::{OpenRequests, Owner, Whose};
use super::open_tables::{OpenTables, TablePlace};
use super::recording::Recording;
use super::{Kept, OneRequestLinks, Recorder, Traffic, Who};
use crate::caller::Caller;
use crate::outcome;

/// What the recorder sees of one conversation.
pub(crate) struct Link {
    traffic: Arc<Traffic>,
    with: With,
    /// Its open requests.
    table: TablePlace,
    /// Whether one of the peer's requests may be open there.
    is_open: AtomicBool,
    /// The number of the entry for what belongs to no call; 0 if there is none. Changes under the lock of the calls.
    own: AtomicU64,
    /// Where it waits to be used again, if it is of one request.
    ring: Weak<OneRequestLinks>,
}

/// Whom the gateway talks to.
enum With {
    /// A client, as the transport knows it, and the number of the conversation if it lasts longer than one request.
    Client { attached: Attached, lasting: Option<u64> },
    /// An instance of a server, and how to find out whom a request is made for.
    Server { server: Arc<str>, instance: u64, whose: WhoseIs },
}

/// Finds in what is attached to a request whom it is made for.
pub(crate) type WhoseIs = fn(&Attached) -> Whose;

impl Link {
    /// The conversation with a client; with its handle if it lasts longer than one request.
    pub(crate) fn of_client(
        traffic: &Arc<Traffic>,
        lasting: Option<&ConversationHandle>,
        attached: &Attached,
    ) -> Arc<Self> {
        let (attached, lasting) = (attached.clone(), lasting.map(ConversationHandle::number));
        Self::new(traffic, With::Client { attached, lasting }, Weak::new())
    }

    /// The conversation with a client that ends with its one request. The link is used again for the next one.
    pub(super) fn of_one_request(
        traffic: &Arc<Traffic>,
        attached: &Attached,
        ring: &Arc<OneRequestLinks>,
    ) -> Arc<Self> {
        let with = With::Client { attached: attached.clone(), lasting: None };
        Self::new(traffic, with, Arc::downgrade(ring))
    }

    /// From now on it is the conversation with this client.
    pub(super) fn is_of_another(&mut self, client: &Attached) {
        self.with = With::Client { attached: client.clone(), lasting: None };
    }

    /// Forgets the requests of the conversation before.
    #[inline]
    pub(super) fn forget_open(&self) {
        if self.is_open.load(Ordering::Relaxed) {
            self.give_back(&mut self.traffic.kept());
            self.is_open.store(false, Ordering::Relaxed);
        }
    }

    /// Nothing more is said in the conversation. A call whose answer nobody was there to hear has ended all the same.
    fn give_back(&self, kept: &mut Kept) {
        if self.side() == Side::Client && self.is_open.load(Ordering::Relaxed) {
            for number in self.open(&mut kept.open).unanswered() {
                if kept.journal.ends_first(number, Instant::now(), outcome::Outcome::Ok) {
                    self.traffic.is_answered(number);
                }
            }
        }
        kept.open.give_back(&self.table);
    }

    /// The conversation with an instance.
    pub(crate) fn of_server(
        traffic: &Arc<Traffic>,
        server: &Arc<str>,
        instance: u64,
        whose: WhoseIs,
    ) -> Arc<Self> {
        let server = Arc::clone(server);
        Self::new(traffic, With::Server { server, instance, whose }, Weak::new())
    }

    fn new(traffic: &Arc<Traffic>, with: With, ring: Weak<OneRequestLinks>) -> Arc<Self> {
        let (table, is_open, own) = Default::default();
        Arc::new(Self { traffic: Arc::clone(traffic), with, table, is_open, own, ring })
    }

    /// The server's question of this id belongs to this call.
    pub(crate) fn claim_question(&self, id: &Id, recording: &Recording) {
        let mut kept = self.traffic.kept();
        let kept = &mut *kept;
        let Kept { journal, open, .. } = kept;
        let (open, number) = (self.open(open), recording.number);
        if !open.has_theirs(id) {
            return;
        }
        let claimed =
            open.claim(id, RequestStream::default(), None, number, |it| journal.is_over(it));
        if let Some((question, at)) = claimed {
            let (place, mut room) = ((self.side(), Direction::In), Vec::new());
            journal.say(number, place, at, question.heard(&mut room));
        }
    }

    #[inline]
    fn side(&self) -> Side {
        match self.with {
            With::Client { .. } => Side::Client,
            With::Server { .. } => Side::Server,
        }
    }

    /// The open requests of the conversation.
    #[inline]
    pub(super) fn open<'a>(&self, all: &'a mut OpenTables) -> &'a mut OpenRequests {
        all.at(&self.table)
    }

    /// Notes a message of a call. Nobody else tells of one that comes after the end.
    #[inline(always)]
    fn note(
        &self,
        mut kept: MutexGuard<'_, Kept>,
        number: u64,
        direction: Direction,
        heard: Heard<'_>,
        at: Instant,
    ) {
        let has_ended = kept.journal.say(number, (self.side(), direction), at, heard);
        drop(kept);
        if has_ended {
            self.traffic.is_answered(number);
        }
    }

    /// Notes the answer that a caller gets, with which its call ends unless it had ended before.
    #[inline(always)]
    fn note_answer(
        &self,
        mut kept: MutexGuard<'_, Kept>,
        number: u64,
        heard: Heard<'_>,
        at: Instant,
    ) {
        kept.journal.answer(number, TO_CLIENT, at, heard);
        drop(kept);
        self.traffic.is_answered(number);
    }

    /// Notes a message in the conversation's own entry.
    fn note_own(&self, kept: &mut Kept, direction: Direction, message: &Message, at: Instant) {
        let Some(recorder) = self.traffic.recorder() else { return };
        let number = match self.own.load(Ordering::Relaxed) {
            own if own > 0 && kept.journal.has_room_in(own) => own,
            _ => self.begin_own(kept, &recorder, message, at),
        };
        self.own.store(number, Ordering::Relaxed);
        if let Message::Response { outcome, .. } = message
            && kept.journal.has_ended(number) == Some(false)
        {
            let word = match outcome {
                Ok(_) => outcome::Outcome::Ok,
                Err(_) => outcome::Outcome::Error,
            };
            kept.journal.ends(number, at, self.ended(number, word));
            if let Some(revision) = revision_in(outcome) {
                kept.journal.note(number, at, What::Speaks(revision));
            }
        }
        let (place, mut room) = ((self.side(), direction), Vec::new());
        if kept.journal.say(number, place, at, Heard::of(message, None, &mut room)) {
            self.traffic.is_answered(number);
        }
        self.traffic.tell(number);
    }

    /// An entry that begins with this message. Only a request is answered.
    fn begin_own(&self, kept: &mut Kept, recorder: &Recorder, first: &Message, at: Instant) -> u64 {
        let (method, params) = match first {
            Message::Request { method, params, .. } | Message::Notification { method, params } => {
                (method.clone(), Some(params))
            }
            Message::Response { .. } => (MethodName::from("response"), None),
        };
        let param = |name: &str| params.and_then(|it| it.get(name));
        let asked = param("protocolVersion").and_then(|it| Revision::parse(&it.as_str()?));
        let revision = asked.unwrap_or(Revision::LATEST);
        let caller = match &self.with {
            With::Client { attached, lasting } => {
                let envelope = param("_meta").and_then(|it| Object::parse(it.get()).ok());
                let named = envelope.as_ref().and_then(|it| it.get(meta::CLIENT_INFO));
                let info = param("clientInfo").or(named).and_then(|it| it.to().ok());
                let session = lasting.filter(|_| method == Method::Initialize);
                let peer = Arc::new(Peer { info, ..Peer::default() });
                Caller::linked(attached, session.unwrap_or_default(), session.is_some(), peer)
            }
            With::Server { .. } => Caller::linked(&Attached::default(), 0, false, Arc::default()),
        };
        let who = Who::of(&caller, kept.known_peer(&caller.peer));
        let number = recorder.begin_in(kept, |number| Head {
            id: self.traffic.trace_of_link(number),
            began: at,
            method,
            revision,
            who,
            is_call: false,
            counts: self.side(),
        });
        if let Some(ring) = self.ring.upgrade() {
            ring.remove(self);
        }
        if let With::Server { server, instance, .. } = &self.with {
            let (server, instance) = (CallTarget::Server(Arc::clone(server)), *instance);
            kept.journal.note(number, at, What::IsWith { server, instance, revision });
        }
        if !matches!(first, Message::Request { .. }) {
            kept.journal.ends(number, at, self.ended(number, outcome::Outcome::Ok));
        }
        number
    }

    /// The end of an entry of the conversation's own.
    fn ended(&self, number: u64, outcome: outcome::Outcome) -> Ended {
        Ended { outcome, reason: None, trace: self.traffic.trace_of_link(number) }
    }

    /// A request that no call claimed turns out to be the conversation's own.
    fn disown(&self, kept: &mut Kept, unclaimed: Option<(Unclaimed, Instant)>) {
        let unclaimed = unclaimed.and_then(|(request, at)| Some((request.into_message()?, at)));
        if let Some((message, at)) = unclaimed {
            self.note_own(kept, Direction::In, &message, at);
        }
    }

    /// The peer's request is answered, or given up: whose it was.
    fn take_theirs(&self, kept: &mut Kept, id: &Id) -> Option<Whose> {
        Some(match self.open(&mut kept.open).take_theirs(id)? {
            Owner::Call(number) => Whose::Call(number),
            Owner::Nobody(request, began) => {
                self.disown(kept, Some((request, began)));
                Whose::Conversation
            }
            Owner::Conversation => Whose::Conversation,
        })
    }

    /// Whom a notification belongs to.
    fn whose_is(
        &self,
        kept: &mut Kept,
        message: (&MethodName, &Params),
        direction: Direction,
        via: RequestStream,
    ) -> Option<Whose> {
        let (method, params) = message;
        let id = |name: &str| params.get(name).and_then(|it| Id::from_json(it.get()));
        let is_ours = direction == Direction::Out;
        let open = self.open(&mut kept.open);
        match method.known() {
            Some(Method::Cancelled) if is_ours => open.take_ours(&id("requestId")?),
            Some(Method::Cancelled) => self.take_theirs(kept, &id("requestId")?),
            Some(Method::Progress) if is_ours => {
                open.with_token(params.get("progressToken")?).map(Whose::Call)
            }
            Some(Method::Progress) => open.ours(&id("progressToken")?),
            Some(Method::Message) => match self.side() {
                Side::Client => open.on_stream(via).map(Whose::Call),
                Side::Server => open.ours_on_stream(via),
            },
            _ => None,
        }
    }

    /// The peer's request is answered: its call, if it is a plain one.
    #[inline(always)]
    fn take_plain(&self, open: &mut OpenTables, id: i64) -> Option<u64> {
        let open = self.open(open);
        let number = open.take_plain(id)?;
        self.is_open.store(!open.is_empty(), Ordering::Relaxed);
        Some(number)
    }

    /// A request of the peer that no call has claimed yet.
    #[cold]
    fn received_request(&self, id: &Id, message: &Message, via: RequestStream, at: Instant) {
        let request = Unclaimed::of(message);
        let mut kept = self.traffic.kept();
        let Kept { journal, open, .. } = &mut *kept;
        let open = self.open_theirs(open);
        if !open.add_theirs(id, request, (via, at), |number| journal.is_over(number)) {
            self.note_own(&mut kept, Direction::In, message, at);
        }
    }

    /// The open requests of the conversation, one of the peer's among them from now on.
    #[inline]
    pub(super) fn open_theirs<'a>(&self, all: &'a mut OpenTables) -> &'a mut OpenRequests {
        self.is_open.store(true, Ordering::Relaxed);
        self.open(all)
    }

    /// Anything else that was received.
    #[cold]
    fn received_other(&self, message: &Message, via: RequestStream, at: Instant) {
        let mut guard = self.traffic.kept();
        let kept = &mut *guard;
        let whose = match message {
            Message::Response { id: Some(id), .. } => self.open(&mut kept.open).take_ours(id),
            Message::Notification { method, params } => {
                self.whose_is(kept, (method, params), Direction::In, via)
            }
            Message::Response { id: None, .. } | Message::Request { .. } => None,
        };
        let whose = whose.unwrap_or(Whose::Conversation);
        if let (Whose::Call(number), Side::Client, Message::Notification { method, .. }) =
            (whose, self.side(), message)
            && *method == Method::Cancelled
        {
            // Its answer may be there, with which it would have ended: from now on it does not leave.
            kept.journal.ends_first(number, at, outcome::Outcome::Cancelled);
        }
        self.note_for(guard, whose, Direction::In, (message, None), at);
    }

    /// Anything else that was sent.
    #[cold]
    fn sent_other(&self, said: &SentMessage<'_>) {
        let SentMessage { message, text, via, cause, at } = *said;
        // Asked before the lock is taken: who is asked may have one, too.
        let attached = self.whose_attached(message, cause);
        let mut guard = self.traffic.kept();
        let kept = &mut *guard;
        let whose = match message {
            Message::Response { .. } if matches!(cause, Some(Cause::Beside)) => Whose::Conversation,
            // If it is not open, nobody has seen the request: another process answered it before.
            Message::Response { id: Some(id), outcome } => match self.take_theirs(kept, id) {
                Some(Whose::Call(number)) if self.side() == Side::Client => {
                    if outcome.is_err() {
                        kept.journal.ends_first(number, at, outcome::Outcome::Error);
                    }
                    let mut room = Vec::new();
                    let heard = Heard::of(message, text, &mut room);
                    return self.note_answer(guard, number, heard, at);
                }
                Some(whose) => whose,
                None => return,
            },
            Message::Response { id: None, .. } => Whose::Conversation,
            Message::Request { id, .. } => {
                let Kept { journal, open, .. } = kept;
                let open = self.open(open);
                let whose = match cause {
                    Some(Cause::During(theirs)) => Whose::from(open.theirs(theirs)),
                    _ => attached,
                };
                if let Id::Number(id) = *id {
                    let is_over = |number| journal.is_over(number);
                    match whose {
                        Whose::Call(number) => open.add_call(id, number, is_over),
                        whose => open.add_ours(id, whose, is_over),
                    }
                }
                whose
            }
            Message::Notification { method, params } => {
                let via = via.unwrap_or_default();
                let whose = self.whose_is(kept, (method, params), Direction::Out, via);
                whose.unwrap_or_else(|| {
                    let unclaimed = self.open(&mut kept.open).disown(via);
                    self.disown(kept, unclaimed);
                    Whose::Conversation
                })
            }
        };
        self.note_for(guard, whose, Direction::Out, (message, text), at);
    }

    /// Notes a message of whomever it belongs to.
    #[cold]
    fn note_for(
        &self,
        mut kept: MutexGuard<'_, Kept>,
        whose: Whose,
        direction: Direction,
        (message, text): (&Message, Option<&[u8]>),
        at: Instant,
    ) {
        match whose {
            Whose::Call(number) => {
                let mut room = Vec::new();
                self.note(kept, number, direction, Heard::of(message, text, &mut room), at);
            }
            Whose::Nobody => {}
            Whose::Conversation => self.note_own(&mut kept, direction, message, at),
        }
    }

    /// Whom a request of ours is made for, by what is attached to it.
    #[inline]
    fn whose_attached(&self, message: &Message, cause: Option<Cause<'_>>) -> Whose {
        match (message, cause, &self.with) {
            (
                Message::Request { method, .. },
                Some(Cause::Attached(it)),
                With::Server { whose, .. },
            ) => match whose(it) {
                // What becomes of a task is told in the call that it comes from.
                Whose::Conversation if method.starts_with("tasks/") => Whose::Nobody,
                whose => whose,
            },
            _ => Whose::Conversation,
        }
    }
}

/// Most messages are the request of a plain call or its answer, on one side or the other. Of those only the call has to be
/// found.
impl Witness for Link {
    fn received(&self, message: &Message, via: RequestStream, at: Instant) {
        match message {
            Message::Request { id, .. } => self.received_request(id, message, via, at),
            Message::Response { id: Some(Id::Number(id)), outcome: Ok(result) } => {
                let mut kept = self.traffic.kept();
                if let Some(number) = self.open(&mut kept.open).take_call(*id) {
                    return self.note(kept, number, Direction::In, Heard::result(*id, result), at);
                }
                drop(kept);
                self.received_other(message, via, at);
            }
            _ => self.received_other(message, via, at),
        }
    }

    fn is_told_of_calls(&self) -> bool {
        matches!(self.with, With::Client { .. })
    }

    fn sent(&self, said: &SentMessage<'_>) {
        match (said.message, said.text, &self.with) {
            // An error may be no answer of a call.
            (Message::Response { id: Some(Id::Number(id)), outcome: Ok(result) }, ..) => {
                let heard = match said.text {
                    Some(text) => Heard::text(text),
                    None => Heard::result(*id, result),
                };
                let mut kept = self.traffic.kept();
                // No request of a server is a plain one.
                if let Some(number) = self.take_plain(&mut kept.open, *id) {
                    return self.note_answer(kept, number, heard, said.at);
                }
            }
            (
                Message::Request { id: Id::Number(id), .. },
                Some(text),
                With::Server { whose, .. },
            ) if let Some(Cause::Attached(attached)) = said.cause => {
                // Asked before the lock is taken: who is asked may have one, too.
                if let Whose::Call(number) = whose(attached) {
                    let mut kept = self.traffic.kept();
                    let Kept { journal, open, .. } = &mut *kept;
                    self.open(open).add_call(*id, number, |number| journal.is_over(number));
                    return self.note(kept, number, Direction::Out, Heard::text(text), said.at);
                }
            }
            _ => {}
        }
        self.sent_other(said);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let own = *self.own.get_mut();
        if own == 0 && !self.table.is_taken() {
            return;
        }
        let mut kept = self.traffic.kept();
        self.give_back(&mut kept);
        if own > 0 && kept.journal.has_ended(own) == Some(false) {
            let ended = self.ended(own, outcome::Outcome::Cancelled);
            kept.journal.ends(own, Instant::now(), ended);
            self.traffic.tell(own);
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("side", &self.side()).finish_non_exhaustive()
    }
}

/// The revision that the answer to `initialize` names.
fn revision_in(outcome: &Outcome) -> Option<Revision> {
    let mut result = Object::parse(outcome.as_ref().ok()?.get()).ok()?;
    Revision::parse(&result.take("protocolVersion")?.as_str()?)
}

#[cfg(test)]
mod tests;
