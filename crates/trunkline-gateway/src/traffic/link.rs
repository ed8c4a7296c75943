//! One conversation → what is said in it. Each message goes to the entry of the call that it belongs to. What belongs to
//! no call (handshakes, pings, the gateway's own lists, changes) goes to an entry of the conversation's own.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use trunkline_proto::{Attached, Cause, Peer, RequestStream};
use trunkline_recording::line::{Direction, Side};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::witness::Witness;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, MethodName, Object, Outcome, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::meta;
use trunkline_wire::revision::Revision;

use super::call_log::{CallTarget, Ended};
use super::journal::{Head, What};
use super::kept_message::Unclaimed;
use super::open_requests::{OpenRequests, Owner, Whose};
use super::recording::Recording;
use super::{Recorder, Traffic};
use crate::caller::Caller;
use crate::outcome;

/// What the recorder sees of one conversation.
pub(crate) struct Link {
    traffic: Arc<Traffic>,
    with: With,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    open: OpenRequests,
    /// The number of the entry for what belongs to no call.
    own: Option<u64>,
}

impl State {
    /// The peer's request of this id becomes that of a call, which has the number that it gets from what was received
    /// and when.
    #[inline]
    pub(super) fn claim(
        &mut self,
        id: &Id,
        token: Option<Json>,
        call: impl FnOnce(Option<(Unclaimed, Instant)>) -> u64,
    ) -> u64 {
        let (request, claimed) = self.open.claim(id);
        let number = call(request);
        (claimed.token, claimed.owner) = (token, Owner::Call(number));
        number
    }
}

/// Whom the gateway talks to.
enum With {
    /// A client, as the transport knows it.
    Client { attached: Attached, conversation: u64, is_of_one_request: bool },
    /// An instance of a server, and how to find out whom a request is made for.
    Server { server: Arc<str>, instance: u64, whose: WhoseIs },
}

/// Finds in what is attached to a request whom it is made for.
pub(crate) type WhoseIs = fn(&Attached) -> Whose;

impl Link {
    /// The conversation with a client.
    pub(crate) fn of_client(
        traffic: &Arc<Traffic>,
        handle: &ConversationHandle,
        attached: &Attached,
    ) -> Arc<Self> {
        let (attached, conversation) = (attached.clone(), handle.number());
        let is_of_one_request = handle.is_of_one_request();
        Self::new(traffic, With::Client { attached, conversation, is_of_one_request })
    }

    /// The conversation with an instance.
    pub(crate) fn of_server(
        traffic: &Arc<Traffic>,
        server: &Arc<str>,
        instance: u64,
        whose: WhoseIs,
    ) -> Arc<Self> {
        let server = Arc::clone(server);
        Self::new(traffic, With::Server { server, instance, whose })
    }

    fn new(traffic: &Arc<Traffic>, with: With) -> Arc<Self> {
        Arc::new(Self { traffic: Arc::clone(traffic), with, state: Mutex::default() })
    }

    /// The server's question of this id belongs to this call.
    pub(crate) fn claim_question(&self, id: &Id, recording: &Recording) {
        let mut state = self.state();
        if !state.open.has_theirs(id) {
            return;
        }
        state.claim(id, None, |question| {
            let (number, place) = (recording.number, (self.side(), Direction::In));
            if let Some((question, at)) = question {
                let mut room = Vec::new();
                let heard = question.heard(&mut room);
                self.traffic.kept().journal.say(number, place, at, heard);
            }
            number
        });
    }

    fn side(&self) -> Side {
        match self.with {
            With::Client { .. } => Side::Client,
            With::Server { .. } => Side::Server,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a message in the conversation's own entry.
    fn note_own(&self, state: &mut State, direction: Direction, message: &Message, at: Instant) {
        let Some(recorder) = self.traffic.recorder() else { return };
        let known = state.own.filter(|it| self.traffic.kept().journal.has_room_in(*it));
        let number = known.unwrap_or_else(|| self.begin_own(&recorder, message, at));
        state.own = Some(number);
        {
            let mut kept = self.traffic.kept();
            if let Message::Response { outcome, .. } = message
                && kept.journal.has_ended(number) == Some(false)
            {
                let word = match outcome {
                    Ok(_) => outcome::Outcome::Ok,
                    Err(_) => outcome::Outcome::Error,
                };
                let ended = self.ended(number, word);
                kept.journal.note(number, at, ended);
                if let Some(revision) = revision_in(outcome) {
                    kept.journal.note(number, at, What::Speaks(revision));
                }
            }
        }
        self.traffic.note(number, (self.side(), direction), at, (message, None));
        self.traffic.tell(number);
    }

    /// An entry that begins with this message. Only a request is answered.
    fn begin_own(&self, recorder: &Recorder, first: &Message, at: Instant) -> u64 {
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
            With::Client { attached, conversation, is_of_one_request } => {
                let envelope = param("_meta").and_then(|it| Object::parse(it.get()).ok());
                let named = envelope.as_ref().and_then(|it| it.get(meta::CLIENT_INFO));
                let info = param("clientInfo").or(named).and_then(|it| it.to().ok());
                let has_session = !is_of_one_request && method == Method::Initialize;
                let peer = Arc::new(Peer { info, ..Peer::default() });
                Caller::linked(attached, *conversation, has_session, peer)
            }
            With::Server { .. } => Caller::linked(&Attached::default(), 0, false, Arc::default()),
        };
        let mut kept = self.traffic.kept();
        let number = recorder.begin_in(&mut kept, &caller, |number, who| Head {
            id: self.traffic.trace_of_link(number),
            began: at,
            method,
            revision,
            who,
            is_call: false,
            counts: self.side(),
        });
        if let With::Server { server, instance, .. } = &self.with {
            let (server, instance) = (CallTarget::Server(Arc::clone(server)), *instance);
            kept.journal.note(number, at, What::IsWith { server, instance, revision });
        }
        if !matches!(first, Message::Request { .. }) {
            kept.journal.note(number, at, self.ended(number, outcome::Outcome::Ok));
        }
        number
    }

    /// The end of an entry of the conversation's own.
    fn ended(&self, number: u64, outcome: outcome::Outcome) -> What {
        What::Ends(Ended { outcome, reason: None, trace: self.traffic.trace_of_link(number) })
    }

    /// Whether nothing more is said in a call.
    fn is_over(&self, number: u64) -> bool {
        self.traffic.kept().journal.is_over(number)
    }

    /// A request that no call claimed turns out to be the conversation's own.
    fn disown(&self, state: &mut State, unclaimed: Option<(Unclaimed, Instant)>) {
        let unclaimed = unclaimed.and_then(|(request, at)| Some((request.into_message()?, at)));
        if let Some((message, at)) = unclaimed {
            self.note_own(state, Direction::In, &message, at);
        }
    }

    /// Whom a notification belongs to.
    fn whose_is(
        &self,
        state: &mut State,
        message: (&MethodName, &Params),
        direction: Direction,
        via: RequestStream,
    ) -> Option<Whose> {
        let (method, params) = message;
        let id = |name: &str| params.get(name).and_then(|it| Id::from_json(it.get()));
        let is_ours = direction == Direction::Out;
        match method.known() {
            Some(Method::Cancelled) if is_ours => state.open.take_ours(&id("requestId")?),
            Some(Method::Cancelled) => {
                let owner = state.open.take_theirs(&id("requestId")?)?;
                Some(self.whose_was(state, owner))
            }
            Some(Method::Progress) if is_ours => {
                state.open.with_token(params.get("progressToken")?).map(Whose::Call)
            }
            Some(Method::Progress) => state.open.ours(&id("progressToken")?),
            Some(Method::Message) => match self.side() {
                Side::Client => state.open.on_stream(via).map(Whose::Call),
                Side::Server => state.open.ours_on_stream(via),
            },
            _ => None,
        }
    }

    /// Whom a request of the peer belonged to that is over.
    fn whose_was(&self, state: &mut State, owner: Owner) -> Whose {
        match owner {
            Owner::Call(number) => Whose::Call(number),
            Owner::Nobody(request, began) => {
                self.disown(state, Some((request, began)));
                Whose::Conversation
            }
            Owner::Conversation => Whose::Conversation,
        }
    }

    /// Whom a request of ours belongs to.
    fn whose_becomes(&self, state: &State, method: &MethodName, cause: Option<Cause<'_>>) -> Whose {
        match (cause, &self.with) {
            (Some(Cause::During(theirs)), _) => Whose::from(state.open.theirs(theirs)),
            (Some(Cause::Attached(it)), With::Server { whose, .. }) => match whose(it) {
                // What becomes of a task is told in the call that it comes from.
                Whose::Conversation if method.starts_with("tasks/") => Whose::Nobody,
                whose => whose,
            },
            _ => Whose::Conversation,
        }
    }
}

impl Witness for Link {
    fn received(&self, message: &Message, via: RequestStream, at: Instant) {
        let mut state = self.state();
        let whose = match message {
            Message::Request { id, .. } => {
                let is_over = |number| self.is_over(number);
                return state.open.add_theirs(id, via, Unclaimed::of(message), at, is_over);
            }
            Message::Response { id, .. } => id.as_ref().and_then(|it| state.open.take_ours(it)),
            Message::Notification { method, params } => {
                self.whose_is(&mut state, (method, params), Direction::In, via)
            }
        };
        match whose {
            Some(Whose::Call(number)) => {
                drop(state);
                let place = (self.side(), Direction::In);
                self.traffic.note(number, place, at, (message, None));
            }
            Some(Whose::Nobody) => {}
            Some(Whose::Conversation) | None => {
                self.note_own(&mut state, Direction::In, message, at);
            }
        }
    }

    fn sent(
        &self,
        message: &Message,
        text: Option<&[u8]>,
        via: Option<RequestStream>,
        cause: Option<Cause<'_>>,
        at: Instant,
    ) {
        let mut state = self.state();
        let whose = match message {
            Message::Response { id: Some(id), .. } => {
                // Without one, nobody has seen the request: another process answered it before.
                let Some(owner) = state.open.take_theirs(id) else { return };
                self.whose_was(&mut state, owner)
            }
            Message::Response { id: None, .. } => Whose::Conversation,
            Message::Request { id, method, .. } => {
                let whose = self.whose_becomes(&state, method, cause);
                state.open.add_ours(id.clone(), whose, |number| self.is_over(number));
                whose
            }
            Message::Notification { method, params } => {
                let via = via.unwrap_or_default();
                let whose = self.whose_is(&mut state, (method, params), Direction::Out, via);
                whose.unwrap_or_else(|| {
                    let unclaimed = state.open.disown(via);
                    self.disown(&mut state, unclaimed);
                    Whose::Conversation
                })
            }
        };
        match whose {
            Whose::Call(number) => {
                drop(state);
                let place = (self.side(), Direction::Out);
                self.traffic.note(number, place, at, (message, text));
            }
            Whose::Nobody => {}
            Whose::Conversation => self.note_own(&mut state, Direction::Out, message, at),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = state.own.take() else { return };
        let is_open = self.traffic.kept().journal.has_ended(number) == Some(false);
        if is_open {
            let ended = self.ended(number, outcome::Outcome::Cancelled);
            self.traffic.kept().journal.note(number, Instant::now(), ended);
            self.traffic.tell(number);
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
