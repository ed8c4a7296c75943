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

use super::call_log::{CallLog, CallTarget, Ended};
use super::kept_message::KeptMessage;
use super::open_requests::{OpenRequests, Owner, Theirs, Whose};
use super::recording::Recording;
use super::{CallEntry, Recorder, Traffic};
use crate::caller::Caller;
use crate::outcome;
use crate::trace::Trace;

/// What the recorder sees of one conversation.
pub(crate) struct Link {
    traffic: Arc<Traffic>,
    with: With,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    open: OpenRequests,
    /// The entry for what belongs to no call.
    own: Option<Arc<CallEntry>>,
}

impl State {
    /// The peer's request of this id, which a call claims with its progress token if it wants progress.
    pub(super) fn claimed(&mut self, id: &Id, token: Option<Json>) -> &mut Theirs {
        self.open.claimed(id, token)
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
        let owner = &mut state.claimed(id, None).owner;
        let question = owner.disown();
        *owner = Owner::Call(Arc::clone(&recording.entry));
        drop(state);
        if let Some((question, at)) = question {
            recording.entry.note(&self.traffic, (self.side(), Direction::In), at, question);
        }
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
        let known = state.own.take().filter(|it| self.traffic.has_room_in(it));
        let entry = known.unwrap_or_else(|| self.begin_own(&recorder, message, at));
        state.own = Some(Arc::clone(&entry));
        {
            let mut log = entry.log();
            if let (Message::Response { outcome, .. }, None) = (message, log.ended) {
                log.end(ended(&entry, outcome, at));
                note_revision(&mut log, outcome);
            }
        }
        entry.note(&self.traffic, (self.side(), direction), at, KeptMessage::of(message));
        self.traffic.tell(&entry);
    }

    /// An entry that begins with this message. Only a request is answered.
    fn begin_own(&self, recorder: &Recorder, first: &Message, at: Instant) -> Arc<CallEntry> {
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
        let entry = recorder.push_entry(&caller, |number, who| {
            let mut log = CallLog::new(recorder.keeps_of(number), at);
            if let With::Server { server, instance, .. } = &self.with {
                let server = Some(Arc::clone(server));
                log.target = Some(CallTarget { server, ..CallTarget::default() });
                log.instance = Some((*instance, revision));
                log.counts = Side::Server;
            }
            let id = self.traffic.trace_of_link(number);
            Arc::new(CallEntry {
                number,
                id,
                began: at,
                method,
                revision,
                who,
                is_call: false,
                log: Mutex::new(log),
            })
        });
        if !matches!(first, Message::Request { .. }) {
            entry.log().end(ended_ok(entry.id, at));
        }
        entry
    }

    /// A request that no call claimed turns out to be the conversation's own.
    fn disown(&self, state: &mut State, unclaimed: Option<(KeptMessage, Instant)>) {
        let unclaimed = unclaimed.and_then(|(request, at)| Some((request.to_message()?, at)));
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
            Owner::Call(entry) => Whose::Call(entry),
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
                return state.open.add_theirs(id, via, KeptMessage::of_read(message), at);
            }
            Message::Response { id, .. } => id.as_ref().and_then(|it| state.open.take_ours(it)),
            Message::Notification { method, params } => {
                self.whose_is(&mut state, (method, params), Direction::In, via)
            }
        };
        match whose {
            Some(Whose::Call(entry)) => {
                drop(state);
                entry.note(
                    &self.traffic,
                    (self.side(), Direction::In),
                    at,
                    KeptMessage::of(message),
                );
            }
            Some(Whose::Nobody) => {}
            Some(Whose::Conversation) | None => {
                self.note_own(&mut state, Direction::In, message, at);
            }
        }
    }

    fn sent(
        &self,
        message: &mut Message,
        via: Option<RequestStream>,
        cause: Option<Cause<'_>>,
        at: Instant,
    ) {
        let mut state = self.state();
        let whose = match &*message {
            Message::Response { id: Some(id), .. } => {
                // Without one, nobody has seen the request: another process answered it before.
                let Some(owner) = state.open.take_theirs(id) else { return };
                self.whose_was(&mut state, owner)
            }
            Message::Response { id: None, .. } => Whose::Conversation,
            Message::Request { id, method, .. } => {
                let whose = self.whose_becomes(&state, method, cause);
                state.open.add_ours(id.clone(), whose.clone());
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
            Whose::Call(entry) => {
                drop(state);
                let (place, kept) =
                    ((self.side(), Direction::Out), KeptMessage::taken_from(message));
                entry.note(&self.traffic, place, at, kept);
            }
            Whose::Nobody => {}
            Whose::Conversation => self.note_own(&mut state, Direction::Out, message, at),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = state.own.take() else { return };
        let has_ended = {
            let (at, mut log) = (Instant::now(), entry.log());
            let was_open = log.ended.is_none();
            if was_open {
                let outcome = outcome::Outcome::Cancelled;
                log.end(Ended { outcome, reason: None, at, trace: entry.id });
            }
            was_open
        };
        if has_ended {
            self.traffic.tell(&entry);
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("side", &self.side()).finish_non_exhaustive()
    }
}

fn ended(entry: &CallEntry, outcome: &Outcome, at: Instant) -> Ended {
    match outcome {
        Ok(_) => ended_ok(entry.id, at),
        Err(_) => Ended { outcome: outcome::Outcome::Error, ..ended_ok(entry.id, at) },
    }
}

fn ended_ok(trace: Trace, at: Instant) -> Ended {
    Ended { outcome: outcome::Outcome::Ok, reason: None, at, trace }
}

/// The answer to `initialize` names the revision.
fn note_revision(log: &mut CallLog, outcome: &Outcome) {
    let Ok(result) = outcome else { return };
    let version = Object::parse(result.get()).ok().and_then(|mut it| it.take("protocolVersion"));
    log.spoken = version.and_then(|it| Revision::parse(&it.as_str()?));
    if let (Some((_, revision)), Some(spoken)) = (&mut log.instance, log.spoken) {
        *revision = spoken;
    }
}

#[cfg(test)]
mod tests;
