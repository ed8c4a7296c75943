//! The recorder: what was received and sent for each call on both sides, kept for operators.
//!
//! What happens is written down as it happens ([`journal`]), and put together when somebody looks ([`call_log`]). Nothing
//! of it is shown, exported or written to a file but through [`show`], which takes the secrets out. What a schema or the
//! catalog marks as secret is learned before a server can repeat it.

mod call_log;
mod file;
mod filter;
mod journal;
mod kept_message;
mod link;
mod marked_tools;
mod one_request_links;
mod open_requests;
mod open_tables;
mod recording;
mod show;
mod stream;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::broadcast;
use trunkline_proto::{Call, Peer};
use trunkline_recording::line::{Party, Side};
use trunkline_recording::redact::Redactor;
use trunkline_recording::tree::Tree;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, MethodName, Object, Params};
use trunkline_wire::method::Method;
use trunkline_wire::model::{Tool, meta};
use trunkline_wire::revision::Era;

use crate::caller::Caller;
use crate::catalog::plan::{Plan, RecordingPlan};
use crate::policy::redact::secrets_of;
use crate::trace::Trace;
use call_log::CallLog;
pub(crate) use call_log::{CallTarget, FROM_CLIENT, FROM_SERVER, TO_CLIENT, TO_SERVER};
use file::TrafficFile;
pub use filter::TrafficFilter;
use journal::{Head, Journal, What};
use kept_message::Unclaimed;
pub(crate) use link::Link;
use marked_tools::MarkedTools;
pub(crate) use one_request_links::OneRequestLinks;
pub(crate) use open_requests::Whose;
use open_tables::OpenTables;
pub(crate) use recording::Recording;
pub use stream::TrafficUpdates;
pub(crate) use stream::event;

/// The calls that are remembered, whatever plan is in force.
pub(crate) struct Traffic {
    /// A call takes this lock five times, each time with thirteen instructions fewer than one that can be poisoned.
    kept: parking_lot::Mutex<Kept>,
    redactor: Mutex<Redactor>,
    /// The numbers of calls that changed.
    updates: broadcast::Sender<u64>,
    /// One moment on both clocks.
    base: (SystemTime, Instant),
    digests: RandomState,
    marked: MarkedTools,
    /// How many follow the changes.
    followers: AtomicUsize,
    /// The recorder of the plan in force, if calls are recorded.
    current: Mutex<Weak<Recorder>>,
    is_recording: AtomicBool,
    /// Whether it writes calls to a file, too.
    has_file: AtomicBool,
}

/// What every call changes, behind one lock.
struct Kept {
    journal: Journal,
    /// The open requests of all conversations.
    open: OpenTables,
    /// The last client that called without a session, and the one that is kept of those that say the same of themselves.
    peer: Option<(Arc<Peer>, Arc<Peer>)>,
}

impl Kept {
    /// The client that calls. Each request that stands for itself may have one of its own: of those that say the same of
    /// themselves, one is kept.
    #[inline]
    fn peer_of(&mut self, caller: &Caller) -> Arc<Peer> {
        match &self.peer {
            _ if caller.has_session => Arc::clone(&caller.peer),
            Some((last, known)) if Arc::ptr_eq(last, &caller.peer) => Arc::clone(known),
            _ => self.peer_of_other(&caller.peer),
        }
    }

    #[cold]
    fn peer_of_other(&mut self, peer: &Arc<Peer>) -> Arc<Peer> {
        let known = self.known_peer(peer);
        self.peer = Some((Arc::clone(peer), Arc::clone(&known)));
        known
    }

    /// The client that is kept if it says the same of itself, else this one.
    fn known_peer(&self, peer: &Arc<Peer>) -> Arc<Peer> {
        let known = self.peer.as_ref().map(|it| &it.1).filter(|it| it.info == peer.info);
        Arc::clone(known.unwrap_or(peer))
    }
}

/// The recorder of a plan. Where recording is off there is none.
pub(crate) struct Recorder {
    pub(crate) traffic: Arc<Traffic>,
    plan: RecordingPlan,
    /// Whether messages are kept.
    pub(crate) keeps: bool,
    /// Of how many calls in 65,536 messages are kept.
    share: u64,
    file: Option<TrafficFile>,
}

/// One call, as it was when somebody looked.
#[derive(Debug)]
pub(crate) struct CallEntry {
    number: u64,
    head: Head,
    log: CallLog,
}

/// What is told of a caller. The caller itself is not kept for that: the next call needs its memory.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    name: Option<Arc<str>>,
    peer: Arc<Peer>,
    conversation: u64,
    has_session: bool,
}

impl Who {
    fn of(caller: &Caller, peer: Arc<Peer>) -> Self {
        let Caller { name, conversation, has_session, .. } = caller;
        let (conversation, has_session) = (*conversation, *has_session);
        Self { name: name.clone(), peer, conversation, has_session }
    }
}

impl Traffic {
    pub(crate) fn new() -> Arc<Self> {
        let base = (SystemTime::now(), Instant::now());
        Arc::new(Self {
            kept: parking_lot::Mutex::new(Kept {
                journal: Journal::new(MOST_CALLS, RecordingPlan::default().keep),
                open: OpenTables::default(),
                peer: None,
            }),
            redactor: Mutex::default(),
            updates: broadcast::Sender::new(UPDATES),
            base,
            digests: RandomState::new(),
            marked: MarkedTools::default(),
            followers: AtomicUsize::new(0),
            current: Mutex::default(),
            is_recording: AtomicBool::new(false),
            has_file: AtomicBool::new(false),
        })
    }

    /// From now on this recorder is in force, or none.
    pub(crate) fn uses(&self, recorder: Option<&Arc<Recorder>>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = recorder.map(Arc::downgrade).unwrap_or_default();
        self.is_recording.store(recorder.is_some(), Ordering::Relaxed);
        let has_file = recorder.is_some_and(|it| it.file.is_some());
        self.has_file.store(has_file, Ordering::Relaxed);
    }

    /// Whether calls are recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Relaxed)
    }

    fn recorder(&self) -> Option<Arc<Recorder>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// The id of an entry that is no call.
    fn trace_of_link(&self, number: u64) -> Trace {
        Trace::new(self.digests.hash_one("links"), number)
    }

    /// Learns a secret that is no part of a plan, such as the token of a login.
    pub(crate) fn learn_secret(&self, value: &str) {
        self.redactor().learn(value);
    }

    #[inline]
    fn kept(&self) -> parking_lot::MutexGuard<'_, Kept> {
        self.kept.lock()
    }

    fn redactor(&self) -> std::sync::MutexGuard<'_, Redactor> {
        self.redactor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call that a `requestState` or a task belongs to.
    fn known(&self, name: &str) -> Option<u64> {
        let digest = self.digests.hash_one(name);
        self.kept().journal.named(digest)
    }

    /// The time on the clock of people.
    fn at(&self, moment: Instant) -> SystemTime {
        let (at, base) = self.base;
        match moment.checked_duration_since(base) {
            Some(after) => at + after,
            None => at - base.duration_since(moment),
        }
    }

    /// Those who follow the calls hear that this one has changed.
    #[inline]
    fn tell(&self, number: u64) {
        if self.followers.load(Ordering::Relaxed) > 0 {
            // The last follower may have left just now.
            let _ = self.updates.send(number);
        }
    }

    /// More was said in a call that has ended, such as its answer.
    #[inline]
    fn is_answered(&self, number: u64) {
        self.tell(number);
        if self.has_file.load(Ordering::Relaxed) {
            self.write(number);
        }
    }

    #[cold]
    fn write(&self, number: u64) {
        if let Some(recorder) = self.recorder()
            && let Some(file) = &recorder.file
        {
            file.write(number);
        }
    }

    /// Learns what the schema of a tool marks as secret in these parameters.
    fn learn_call(&self, tool: Option<&Tool>, method: Method, params: &Object) {
        let mut message = Object::default();
        message.set("method", Json::string(method.name()));
        message.set("params", params.to_json());
        let mut redactor = self.redactor();
        if let Some(tool) = tool {
            redactor.know_tool(&tool.name, Some(&tool.input_schema), tool.output_schema.as_ref());
        }
        redactor.redact(Party::Client, 0, &mut Tree::of(&message.to_json()));
    }

    /// Learns the secrets of a message that has this member: the schemas of forms, the answers to them, and members
    /// that the catalog names.
    fn learn(&self, by: Party, member: &'static str, value: &Json) {
        let mut message = Object::default();
        message.set(member, value.clone());
        self.redactor().redact(by, 0, &mut Tree::of(&message.to_json()));
    }

    #[inline(always)]
    fn is_marked(&self, tool: &Arc<Tool>) -> bool {
        self.marked.is_marked(tool)
    }
}

impl Recorder {
    /// The recorder of a plan; `before` goes on if nothing has changed.
    ///
    /// # Errors
    ///
    /// If its file cannot be written.
    pub(crate) fn open(
        traffic: &Arc<Traffic>,
        plan: &Plan,
        before: Option<&Arc<Self>>,
    ) -> Result<Option<Arc<Self>>, String> {
        let Some(recording) = &plan.gateway.recording else { return Ok(None) };
        {
            let mut redactor = traffic.redactor();
            redactor.know_values(secrets_of(plan));
            redactor.know_members(recording.redact.iter().cloned());
        }
        traffic.kept().journal.keep(recording.keep);
        let keeps = recording.keeps_payloads(&plan.gateway.listen);
        if let Some(before) = before.filter(|it| it.plan == *recording && it.keeps == keeps) {
            return Ok(Some(Arc::clone(before)));
        }
        let file = match (&recording.file, before) {
            (None, _) => None,
            // A file has one writer.
            (Some(path), Some(before)) if before.plan.file.as_ref() == Some(path) => {
                before.file.clone()
            }
            (Some(path), _) => {
                let opened = TrafficFile::open(path, Arc::downgrade(traffic));
                Some(opened.map_err(|why| format!("`{}` {why}", path.display()))?)
            }
        };
        let share = (recording.sample.clamp(0.0, 1.0) * 65_536.0) as u64;
        let plan = recording.clone();
        Ok(Some(Arc::new(Self { traffic: Arc::clone(traffic), plan, keeps, share, file })))
    }

    /// A call begins, or its caller comes back to it.
    #[inline]
    pub(crate) fn begin(
        self: &Arc<Self>,
        call: &Call,
        caller: &Caller,
        handle: &ConversationHandle,
        id: Trace,
        began: Instant,
    ) -> Recording {
        let plain = self.begin_plain(call, caller, handle, id, began);
        let (number, answer_unseen) = match plain {
            Some(number) => (number, None),
            None => self.begin_other(call, caller, handle, id, began),
        };
        self.traffic.tell(number);
        let (recorder, is_plain) = (Arc::clone(self), plain.is_some());
        Recording { recorder, number, answer_unseen, is_plain }
    }

    /// Begins a call with a request that was received and is not the next round of an earlier one.
    #[inline(always)]
    fn begin_plain(
        &self,
        call: &Call,
        caller: &Caller,
        handle: &ConversationHandle,
        id: Trace,
        began: Instant,
    ) -> Option<u64> {
        let Id::Number(request) = call.id else { return None };
        // Whoever was to be shown the request is there to see the answer.
        if !call.is_unseen || call.wants_progress || name_of_earlier(call).is_some() {
            return None;
        }
        let text = call.text_read()?;
        let link = handle.witness::<Link>()?;
        let mut kept = self.traffic.kept();
        let peer = kept.peer_of(caller);
        let Kept { journal, open, .. } = &mut *kept;
        let number = journal.next_number();
        link.open_theirs(open).add_plain(request, call.via, number, |it| journal.is_over(it));
        let head = || head_of(call, id, began, Who::of(caller, peer));
        let keeps = self.keeps && self.is_in_sample(number);
        journal.begin_with(head, keeps, (FROM_CLIENT, began, text));
        drop(kept);
        Some(number)
    }

    /// Begins any other call, or goes on with it: its number, and the id of the request if nobody sees how its answer
    /// leaves.
    #[cold]
    fn begin_other(
        &self,
        call: &Call,
        caller: &Caller,
        handle: &ConversationHandle,
        id: Trace,
        began: Instant,
    ) -> (u64, Option<Arc<Id>>) {
        let answer_unseen = handle.is_closed().then(|| Arc::new(call.id.clone()));
        let earlier = name_of_earlier(call).and_then(|it| self.traffic.known(&it.as_str()?));
        if earlier.is_some() && call.params.get("inputResponses").is_some() {
            self.traffic.learn(Party::Client, "params", &call.params.to_json());
        }
        let link = if answer_unseen.is_none() { self.link_of(call, handle) } else { None };
        let token = call.meta.as_ref().filter(|_| call.wants_progress).and_then(token_of);
        let mut kept = self.traffic.kept();
        let kept = &mut *kept;
        let number = match earlier {
            Some(number) => {
                kept.journal.note(number, began, What::Returns);
                number
            }
            None => {
                let who = Who::of(caller, kept.peer_of(caller));
                self.begin_in(kept, |_| head_of(call, id, began, who))
            }
        };
        // The request as it was received, or if nobody has seen that, as it was read.
        let Kept { journal, open, .. } = kept;
        let is_over = |it| journal.is_over(it);
        let claim =
            |it: &Link| it.open_theirs(open).claim(&call.id, call.via, token, number, is_over);
        let received = link.and_then(claim);
        let (request, at) = received.unwrap_or_else(|| (request_of(call), began));
        let mut room = Vec::new();
        journal.say(number, FROM_CLIENT, at, request.heard(&mut room));
        (number, answer_unseen)
    }

    /// Who sees what is said in the conversation of a call.
    fn link_of<'a>(&self, call: &Call, handle: &'a ConversationHandle) -> Option<&'a Link> {
        if let Some(link) = handle.witness::<Link>() {
            return Some(link);
        }
        let lasting = (!handle.is_of_one_request()).then_some(handle);
        handle.set_witness(Link::of_client(&self.traffic, lasting, &call.attached));
        handle.witness::<Link>()
    }

    /// Begins an entry, made from its number.
    fn begin_in(&self, kept: &mut Kept, head: impl FnOnce(u64) -> Head) -> u64 {
        let number = kept.journal.next_number();
        kept.journal.begin(head(number), self.keeps && self.is_in_sample(number))
    }

    fn is_in_sample(&self, number: u64) -> bool {
        // Multiplying by 2⁶⁴ ÷ φ spreads consecutive numbers evenly (Fibonacci hashing).
        self.share >= 65_536 || number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48 < self.share
    }

    /// Waits until its file has what was recorded.
    pub(crate) async fn settled(&self) {
        if let Some(file) = &self.file {
            file.settled().await;
        }
    }

    /// How it records, for operators.
    pub(crate) fn status(&self) -> serde_json::Value {
        let (calls, bytes) = self.traffic.kept().journal.size();
        serde_json::json!({
            "payloads": self.keeps,
            "sample": self.plan.sample,
            "keep": self.plan.keep,
            "calls": calls,
            "bytes": bytes,
            "file": self.plan.file,
            "notWritten": self.file.as_ref().map(TrafficFile::lost),
        })
    }
}

impl CallEntry {
    fn after(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.head.began)
    }
}

/// What is known of a call at its beginning.
#[inline]
fn head_of(call: &Call, id: Trace, began: Instant, who: Who) -> Head {
    let (method, revision) = (MethodName::from(call.method.method), call.revision);
    Head { id, began, method, revision, who, is_call: true, counts: Side::Client }
}

/// The name of an earlier call, if the request goes on with one: a `requestState`, or the id of a task.
#[inline]
fn name_of_earlier(call: &Call) -> Option<&Json> {
    match call.method.method {
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
            call.params.get("taskId")
        }
        _ if call.revision.era() == Era::Stateless => call.params.get("requestState"),
        _ => None,
    }
}

/// The request that a call was read from.
fn request_of(call: &Call) -> Unclaimed {
    if call.is_unseen
        && let Some(text) = call.text_read()
    {
        return Unclaimed::Text(Arc::clone(text));
    }
    let mut params = call.params.clone_for_one_more();
    if let Some(meta) = &call.meta {
        params.set("_meta", meta.clone());
    }
    let (id, method) = (call.id.clone(), call.method.method.into());
    let request = Message::Request { id, method, params: Params::Object(params) };
    Unclaimed::Message(Box::new(request))
}

/// The progress token in the `_meta` of a request.
fn token_of(meta: &Json) -> Option<Json> {
    Object::parse(meta.get()).ok()?.take(meta::PROGRESS_TOKEN)
}

/// The calls that are remembered, beside the bound on their bytes: with those that make way at once a power of two.
const MOST_CALLS: usize = (1 << 14) - journal::BATCH;
/// The changes that wait for a follower.
const UPDATES: usize = 4_096;

#[cfg(test)]
mod tests;
