//! The path of a call: resolve → decide → call → tell. A request of a client in, its answer out.

mod approve;
mod at;
mod automatic;
mod completed;
mod decide;
mod held;
mod login;
mod placed;
mod plugged;
mod resolve;
mod skills;
mod tasks;
mod visible;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use trunkline_proto::{Call, HandlerEvent};
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::Answer;
use trunkline_wire::era::{carry, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::{InputRequired, LogLevel, LogMessage, Tool};
use trunkline_wire::revision::Revision;

use crate::call_record::{CallRecord, With};
use crate::caller::Caller;
use crate::catalog::plan::{Effect, ServerPlan};
use crate::failure::{Done, Failure, Reason, Stage};
use crate::merge::{Cursor, Kind, Look, Target};
use crate::outcome;
use crate::policy::ask::Binding;
use crate::policy::plugins::CallView;
use crate::server::{Hop, Server, now};
use crate::state::{ActivePlan, GatewayState, View, Visibility};
use crate::trace::Trace;
use crate::traffic::{CallTarget, Recording};

pub(crate) use approve::sealed_state;
use decide::{Decided, Permit};
pub(crate) use placed::call_placed;
use resolve::{About, Resolved, Work};
pub(crate) use tasks::{PATH as TASKS_PATH, answer_replica as answer_about_tasks};

/// Answers a call.
pub(crate) fn call(
    shared: &Arc<GatewayState>,
    view: &Arc<View>,
    call: Call,
    handle: &ConversationHandle,
) -> Answer {
    let active = shared.active_plan();
    let caller = Arc::new(Caller::of(&call, handle));
    if let Some(kind) = Kind::of_method(call.method.method) {
        shared.retry_missing(&active);
        let recorder = active.recorder.as_ref();
        let trace = shared.next_trace();
        let recording = recorder.map(|it| it.begin(&call, &caller, handle, trace, now()));
        let listing = Listing(recording.map(|it| (it, trace)));
        let missing = shared.missing(&active, view, &caller);
        if missing.is_empty() && shared.is_complete(&active, view) {
            let page = list(shared, &active, view, &caller, kind, &call);
            return Answer::Now(listing.ends(page));
        }
        let (shared, view, handle) = (Arc::clone(shared), Arc::clone(view), handle.clone());
        return Answer::later(async move {
            shared.complete(&active, &view).await;
            let page = list(&shared, &active, &view, &caller, kind, &call);
            let missing = shared.missing(&active, &view, &caller);
            if page.is_err() || missing.is_empty() || call.params.get("cursor").is_some() {
                return listing.ends(page);
            }
            let words = Json::string(&missing.sentence());
            let message = LogMessage::new(LogLevel::Warning, words).logger("trunkline");
            handle.say(call.key, HandlerEvent::Log(message)).await;
            listing.ends(page.map(|it| missing.within(it)))
        });
    }
    Answer::later(Walk::new(shared, active, view, caller, call, handle).go())
}

/// The recording of a list, if calls are recorded. Dropped before its end, it is recorded as cancelled.
struct Listing(Option<(Recording, Trace)>);

impl Listing {
    fn ends(mut self, page: Outcome) -> Outcome {
        let word = if page.is_ok() { outcome::Outcome::Ok } else { outcome::Outcome::Error };
        self.end(word, Some(&page));
        page
    }

    fn end(&mut self, word: outcome::Outcome, page: Option<&Outcome>) {
        if let Some((recording, trace)) = self.0.take() {
            recording.end((word, None, trace), page, now(), CallTarget::default);
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.end(outcome::Outcome::Cancelled, None);
    }
}

/// One page of a list.
fn list(
    shared: &GatewayState,
    active: &ActivePlan,
    view: &View,
    caller: &Caller,
    kind: Kind,
    call: &Call,
) -> Outcome {
    let index = view.index(shared);
    let visibility = Visibility::new(active, caller);
    let bad =
        || ErrorObject::invalid_params("The cursor is not valid here. List again without one.");
    let after = match call.params.get("cursor") {
        None => None,
        Some(cursor) => {
            let cursor: String = cursor.to().map_err(|_| bad())?;
            let bytes = shared.seals.open_cursor(&cursor, &caller.id).ok_or_else(bad)?;
            Some(Cursor::from_bytes(&bytes).map_err(|_| bad())?)
        }
    };
    let visible = |target: &Target| visibility.effect(target) != Effect::Deny;
    let look = Look {
        revision: call.revision,
        after: after.as_ref(),
        visible: (!visibility.is_open()).then_some(&visible),
        seal: &|cursor| shared.seals.cursor(&cursor.to_bytes(), &caller.id),
    };
    if kind == Kind::Tools
        && let Some(tools) = automatic::tools(shared, active, view, caller, call.revision)
    {
        return Ok(tools);
    }
    let page = index.page(kind, &look).map_err(|_| bad());
    view.count(shared, &index);
    page
}

/// A call in flight.
pub(crate) struct Walk {
    pub(crate) shared: Arc<GatewayState>,
    pub(crate) active: Arc<ActivePlan>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) handle: ConversationHandle,
    pub(crate) call: Call,
    /// What the user approved, where a rule demands consent.
    pub(crate) approved: Option<Box<Binding>>,
    /// The digest of the arguments as the caller sent them, before plugins changed them.
    digest: Option<String>,
    /// What plugins are told of the call; `None` without plugins.
    pub(crate) plugged: Option<Arc<CallView>>,
    /// Whether the server may turn the call into a task of 2026-07-28, which needs a connection of that
    /// era.
    pub(crate) as_task: bool,
    /// Whether the call may go on to another replica.
    pub(crate) hop: Hop,
    /// How many progress notifications told the caller what the call waits for.
    pub(crate) steps: AtomicU32,
}

/// What a call results in, before it is carried to the caller's revision.
pub(crate) enum CallOutcome {
    /// The server's answer, in the server's revision.
    Answer(Json, Revision),
    /// The caller has to answer questions and retry (`input_required`).
    Ask(Box<InputRequired>),
    /// A final answer, in the caller's revision already.
    Told(Json),
}

/// Why a call failed. Boxed: every call that succeeds would carry its size from step to step.
pub(crate) enum CallFailure {
    /// The server answered with an error, in the server's revision.
    Server(Box<ErrorObject>, Revision),
    /// The gateway failed or refused the call.
    Here(Box<Failure>),
    /// An error that reaches the caller unchanged.
    Plain(Box<ErrorObject>),
}

impl CallFailure {
    pub(crate) fn server(error: ErrorObject, revision: Revision) -> Self {
        Self::Server(Box::new(error), revision)
    }
}

impl From<Failure> for CallFailure {
    fn from(failure: Failure) -> Self {
        Self::Here(Box::new(failure))
    }
}

impl From<Box<Failure>> for CallFailure {
    fn from(failure: Box<Failure>) -> Self {
        Self::Here(failure)
    }
}

impl From<ErrorObject> for CallFailure {
    fn from(error: ErrorObject) -> Self {
        Self::Plain(Box::new(error))
    }
}

impl Walk {
    #[inline]
    fn new(
        shared: &Arc<GatewayState>,
        active: Arc<ActivePlan>,
        view: &Arc<View>,
        caller: Arc<Caller>,
        call: Call,
        handle: &ConversationHandle,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            active,
            view: Arc::clone(view),
            caller,
            handle: handle.clone(),
            call,
            approved: None,
            digest: None,
            plugged: None,
            as_task: false,
            hop: Hop::May,
            steps: AtomicU32::new(0),
        }
    }

    /// Makes the call. Not an `async fn`: that would have room for what it is made from and for what it works with.
    #[inline]
    fn go(self) -> impl Future<Output = Outcome> + Send {
        let mut recorded = RecordedWalk::begin(self);
        async move {
            let RecordedWalk { walk, record: Some(record) } = &mut recorded else {
                unreachable!("nobody has taken it")
            };
            let result = walk.route(record).await;
            let outcome = walk.finish(result, record);
            let word = record.outcome(&outcome);
            recorded.end(word, Some(&outcome));
            outcome
        }
    }

    /// Remembers what came of the call, and carries it to the caller's revision.
    fn finish(
        &self,
        mut result: Result<CallOutcome, CallFailure>,
        record: &mut CallRecord,
    ) -> Outcome {
        if let (Ok(CallOutcome::Ask(input)), Some(binding)) = (&mut result, &self.approved) {
            approve::once(&self.shared, binding, input);
        }
        if let (Ok(CallOutcome::Ask(input)), Some(recording)) = (&result, &record.recording) {
            recording.parks(input.requests.len(), input.state.as_deref());
        }
        if let Err(CallFailure::Here(failure)) = &result {
            record.failed(failure);
        }
        // What the only server names is read from it anyway.
        if self.active.servers.len() > 1
            && let (Ok(CallOutcome::Answer(said, _) | CallOutcome::Told(said)), Some(server)) =
                (&result, record.server())
        {
            let index = || self.view.index(&self.shared);
            self.shared.named.remember(index, &self.caller, server, said);
        }
        self.tell(result, record)
    }

    /// resolve → decide → call → review, for every call that a server answers. `decide` alone decides what
    /// a call may do, and no call reaches a server without the permit that it returns.
    async fn route(&mut self, record: &mut CallRecord) -> Result<CallOutcome, CallFailure> {
        if let Some(audit) = &self.active.audit {
            audit.admit()?;
        }
        let mut about = match self.resolve(record).await? {
            Resolved::About(about) => about,
            Resolved::Told(told) => return Ok(told),
        };
        let permit = match self.decide(record, &about).await? {
            Decided::Permit(permit) => permit,
            Decided::Told(told) => return Ok(told),
        };
        let result = self.perform(record, &mut about, &permit).await;
        let result = match permit.into_plugins() {
            None => result,
            Some(view) => Box::pin(self.tell_plugins(record, &about.target, *view, result)).await,
        };
        match about.work {
            Work::Skill(asked) => result.map(|it| self.as_asked(record, &asked, it)),
            _ => result,
        }
    }

    /// Makes the permitted call, under the server's own name for the target.
    async fn perform(
        &mut self,
        record: &mut CallRecord,
        about: &mut About,
        permit: &Permit,
    ) -> Result<CallOutcome, CallFailure> {
        let spelled = about.spelled.take();
        let name = || spelled.unwrap_or_else(|| Json::string(&about.target.name));
        match &mut about.work {
            Work::Tool => {
                self.call.params.set("name", name());
                let Some(tool) = about.target.tool() else { unreachable!("it was looked at") };
                return tasks::call(self, record, permit, tool).await;
            }
            Work::Prompt => self.call.params.set("name", name()),
            Work::Resource | Work::Skill(_) => {
                self.call.params.take("arguments");
                self.call.params.set("uri", name());
            }
            Work::Completion(_) => completed::unpack(&mut self.call.params),
        }
        let result = Box::pin(self.at(record, permit, true)).await;
        match &mut about.work {
            Work::Completion(Some(completed)) => result.map(|it| completed.filter(self, it)),
            _ => result,
        }
    }

    /// Carries the outcome to the caller's revision.
    fn tell(&self, result: Result<CallOutcome, CallFailure>, record: &CallRecord) -> Outcome {
        let (method, revision) = (self.call.method.method, self.call.revision);
        match result {
            Ok(CallOutcome::Told(told)) => Ok(told),
            Ok(CallOutcome::Ask(input)) => {
                Ok(stateless::encode_input_required(&input, &stateless::Extras::default()))
            }
            Ok(CallOutcome::Answer(said, from)) => {
                let schema = record.tool().and_then(|it| it.output_schema.as_ref());
                carry::result(method, said, from, revision, schema).map_err(|error| {
                    let message =
                        format!("The server's answer cannot be expressed in {revision}: {error}.");
                    let mut failure = Failure::new(Reason::BadAnswer, Stage::Bridge, message);
                    failure.done = Done::Unknown;
                    failure.to_error(&record.id.to_string())
                })
            }
            Err(CallFailure::Server(error, from)) => {
                Err(carry::error(method, *error, from, revision))
            }
            Err(CallFailure::Plain(error)) => Err(*error),
            Err(CallFailure::Here(failure)) => Err(failure.to_error(&record.id.to_string())),
        }
    }

    fn may(&self, target: &Target) -> Effect {
        Visibility::new(&self.active, &self.caller).effect(target)
    }

    pub(crate) fn server(&self, target: &Target) -> Result<Arc<Server>, Failure> {
        let known = self.active.servers.get(&*target.server).cloned();
        let known =
            known.or_else(|| self.shared.active_plan().servers.get(&*target.server).cloned());
        known.ok_or_else(|| {
            Failure::new(Reason::Gone, Stage::Route, "That server is no longer in the catalog.")
                .of(&target.server)
        })
    }
}

/// Whether the gateway may retry a call of this tool when the outcome of the first try is unknown.
fn is_repeatable(plan: &ServerPlan, tool: &Tool) -> bool {
    let says = tool
        .annotations
        .as_ref()
        .is_some_and(|it| it.idempotent_hint == Some(true) || it.read_only_hint == Some(true));
    says || plan.idempotent.iter().any(|it| crate::merge::names::is_like(it, &tool.name))
}

fn clip(text: &str) -> &str {
    let end = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// The digest that binds a `requestState` to the arguments.
fn digest(arguments: Option<&Json>) -> String {
    trunkline_auth::digest::sha256(arguments.map(Json::get).unwrap_or_default().as_bytes())
}

/// A call in flight with its record. It is recorded as cancelled when its caller drops it before the end.
struct RecordedWalk {
    walk: Walk,
    record: Option<CallRecord>,
}

impl RecordedWalk {
    #[inline]
    fn begin(walk: Walk) -> Self {
        let (own, began) = (walk.shared.next_trace(), now());
        let span = walk.shared.otel.as_ref().map(|it| it.begin(&walk.call));
        let recorder = walk.active.recorder.as_ref();
        let recording =
            recorder.map(|it| it.begin(&walk.call, &walk.caller, &walk.handle, own, began));
        let with = With { audits: walk.active.audits(), began, span, recording };
        let record = CallRecord::new(&walk.call, own, with);
        Self { walk, record: Some(record) }
    }

    /// The call is over, with what its caller was told if anything.
    fn end(&mut self, word: outcome::Outcome, told: Option<&Outcome>) {
        let Some(record) = &mut self.record else { return };
        let (walk, now) = (&self.walk, now());
        walk.shared.note(&walk.active, &walk.caller, record, word, now);
        record.recorded(word, told, now);
        if let Some(told) = told {
            record.end(word, told);
        }
        if let Some(lease) = record.kept.take() {
            lease.give_back(now);
        }
        self.record = None;
    }
}

impl Drop for RecordedWalk {
    fn drop(&mut self) {
        self.end(outcome::Outcome::Cancelled, None);
    }
}

#[cfg(test)]
mod tests;
