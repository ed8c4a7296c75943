//! The path of a call: resolve → decide → call → tell. A request of a client in, its answer out.

mod approve;
mod at;
mod automatic;
mod completed;
mod decide;
mod held;
mod login;
mod plugged;
mod resolve;
mod skills;
mod tasks;
mod visible;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

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
use crate::server::Server;
use crate::state::{ActivePlan, GatewayState, View, Visibility};

use decide::{Decided, Permit};
use resolve::{About, Resolved, Work};

/// Answers a call.
pub(crate) fn call(
    shared: &Arc<GatewayState>,
    view: &Arc<View>,
    call: Call,
    voice: &ConversationHandle,
) -> Answer {
    let world = shared.world();
    let caller = Arc::new(Caller::of(&call, voice));
    if let Some(kind) = Kind::of_method(call.method.method) {
        shared.try_again(&world);
        let missing = shared.missing(&world, view, &caller);
        if missing.is_empty() && shared.is_complete(&world, view) {
            return Answer::Now(list(shared, &world, view, &caller, kind, &call));
        }
        let (shared, view, voice) = (Arc::clone(shared), Arc::clone(view), voice.clone());
        return Answer::later(async move {
            shared.complete(&world, &view).await;
            let page = list(&shared, &world, &view, &caller, kind, &call)?;
            let missing = shared.missing(&world, &view, &caller);
            if missing.is_empty() || call.params.get("cursor").is_some() {
                return Ok(page);
            }
            let words = Json::string(&missing.sentence());
            let message = LogMessage::new(LogLevel::Warning, words).logger("trunkline");
            voice.say(call.key, HandlerEvent::Log(message)).await;
            Ok(missing.within(page))
        });
    }
    let walk = Walk {
        shared: Arc::clone(shared),
        world,
        view: Arc::clone(view),
        caller,
        voice: voice.clone(),
        began: Instant::now(),
        call,
        approved: None,
        digest: None,
        plugged: None,
        as_task: false,
        steps: AtomicU32::new(0),
    };
    Answer::later(walk.go())
}

/// One page of a list.
fn list(
    shared: &GatewayState,
    world: &ActivePlan,
    view: &View,
    caller: &Caller,
    kind: Kind,
    call: &Call,
) -> Outcome {
    let index = view.index(shared);
    let sight = Visibility::new(world, caller);
    let bad = || ErrorObject::invalid_params("The cursor is not valid here. Begin again without.");
    let after = match call.params.get("cursor") {
        None => None,
        Some(cursor) => {
            let cursor: String = cursor.to().map_err(|_| bad())?;
            let bytes = shared.seals.open_cursor(&cursor, &caller.id).ok_or_else(bad)?;
            Some(Cursor::from_bytes(&bytes).map_err(|_| bad())?)
        }
    };
    let visible = |target: &Target| sight.effect(target) != Effect::Deny;
    let look = Look {
        revision: call.revision,
        after: after.as_ref(),
        visible: (!sight.is_open()).then_some(&visible),
        seal: &|cursor| shared.seals.cursor(&cursor.to_bytes(), &caller.id),
    };
    if kind == Kind::Tools
        && let Some(tools) = automatic::tools(shared, world, view, caller, call.revision)
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
    pub(crate) world: Arc<ActivePlan>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) voice: ConversationHandle,
    pub(crate) began: Instant,
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
    /// How many progress notifications told the caller what the call waits for.
    pub(crate) steps: AtomicU32,
}

/// What a call results in, before it is carried to the caller's revision.
pub(crate) enum CallOutcome {
    /// The server's answer, in the server's revision.
    Answer(Json, Revision),
    /// The caller has to answer questions and retry (`input_required`).
    Ask(InputRequired),
    /// A final answer, in the caller's revision already.
    Told(Json),
}

/// Why a call failed.
pub(crate) enum CallFailure {
    /// The server answered with an error, in the server's revision.
    Server(ErrorObject, Revision),
    /// The gateway failed or refused the call.
    Here(Box<Failure>),
    /// An error that reaches the caller unchanged.
    Plain(ErrorObject),
}

impl From<Failure> for CallFailure {
    fn from(failure: Failure) -> Self {
        Self::Here(Box::new(failure))
    }
}

impl From<ErrorObject> for CallFailure {
    fn from(error: ErrorObject) -> Self {
        Self::Plain(error)
    }
}

impl Walk {
    async fn go(mut self) -> Outcome {
        let own = self.shared.next_trace();
        let span = self.shared.otel.as_ref().map(|it| it.begin(&self.call));
        let with = With { audits: self.world.audits(), began: self.began, span };
        let trail = CallRecord::new(&self.call, &self.caller, own, with);
        let mut noted = Noted {
            shared: Arc::clone(&self.shared),
            world: Arc::clone(&self.world),
            trail: Some(trail),
        };
        let Some(trail) = &mut noted.trail else { unreachable!("nobody has taken it") };
        let mut came = self.route(trail).await;
        if let (Ok(CallOutcome::Ask(input)), Some(binding)) = (&mut came, &self.approved) {
            approve::once(&self.shared, binding, input);
        }
        if let Err(CallFailure::Here(failure)) = &came {
            trail.failed(failure);
        }
        if let (Ok(CallOutcome::Answer(said, _) | CallOutcome::Told(said)), Some(server)) =
            (&came, &trail.server)
        {
            let index = || self.view.index(&self.shared);
            self.shared.named.remember(index, &self.caller, server, said);
        }
        let outcome = self.tell(came, trail);
        if let Some(trail) = noted.trail.take() {
            let word = trail.outcome(&outcome);
            self.shared.note(&self.world, &trail, word);
            trail.end(word, &outcome);
        }
        outcome
    }

    /// resolve → decide → call → review, for every call that a server answers. `decide` alone decides what
    /// a call may do, and no call reaches a server without the permit that it returns.
    async fn route(&mut self, trail: &mut CallRecord) -> Result<CallOutcome, CallFailure> {
        if let Some(audit) = &self.world.audit {
            audit.admit()?;
        }
        let mut about = match self.resolve(trail).await? {
            Resolved::About(about) => about,
            Resolved::Told(told) => return Ok(told),
        };
        let permit = match self.decide(trail, &about).await? {
            Decided::Permit(permit) => permit,
            Decided::Told(told) => return Ok(told),
        };
        let came = self.perform(trail, &mut about, &permit).await;
        let came = self.tell_plugins(trail, &about.target, permit.into_plugins(), came).await;
        match about.work {
            Work::Skill(asked) => came.map(|it| self.as_asked(trail, &asked, it)),
            _ => came,
        }
    }

    /// Makes the permitted call, under the server's own name for the target.
    async fn perform(
        &mut self,
        trail: &mut CallRecord,
        about: &mut About,
        permit: &Permit,
    ) -> Result<CallOutcome, CallFailure> {
        let name = || Json::string(&about.target.name);
        match &mut about.work {
            Work::Tool(tool) => {
                self.call.params.set("name", name());
                return tasks::call(self, trail, permit, tool).await;
            }
            Work::Prompt => self.call.params.set("name", name()),
            Work::Resource | Work::Skill(_) => {
                self.call.params.take("arguments");
                self.call.params.set("uri", name());
            }
            Work::Completion(_) => completed::unpack(&mut self.call.params),
        }
        let came = Box::pin(self.at(trail, permit, true)).await;
        match &mut about.work {
            Work::Completion(Some(completed)) => came.map(|it| completed.filter(self, it)),
            _ => came,
        }
    }

    /// Carries the outcome to the caller's revision.
    fn tell(&self, came: Result<CallOutcome, CallFailure>, trail: &CallRecord) -> Outcome {
        let (method, revision) = (self.call.method.method, self.call.revision);
        match came {
            Ok(CallOutcome::Told(told)) => Ok(told),
            Ok(CallOutcome::Ask(input)) => {
                Ok(stateless::encode_input_required(&input, &stateless::Extras::default()))
            }
            Ok(CallOutcome::Answer(said, from)) => {
                let schema = trail.tool.as_ref().and_then(|it| it.output_schema.as_ref());
                carry::result(method, said, from, revision, schema).map_err(|error| {
                    let message =
                        format!("The answer of the server cannot be told in {revision}: {error}.");
                    let mut failure = Failure::new(Reason::BadAnswer, Stage::Bridge, message);
                    failure.done = Done::Unknown;
                    failure.to_error(&trail.id.to_string())
                })
            }
            Err(CallFailure::Server(error, from)) => {
                Err(carry::error(method, error, from, revision))
            }
            Err(CallFailure::Plain(error)) => Err(error),
            Err(CallFailure::Here(failure)) => Err(failure.to_error(&trail.id.to_string())),
        }
    }

    fn may(&self, target: &Target) -> Effect {
        Visibility::new(&self.world, &self.caller).effect(target)
    }

    pub(crate) fn server(&self, target: &Target) -> Result<Arc<Server>, Failure> {
        let known = self.world.servers.get(&*target.server).cloned();
        let known = known.or_else(|| self.shared.world().servers.get(&*target.server).cloned());
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

/// Records the call as cancelled when its caller drops it before the end.
struct Noted {
    shared: Arc<GatewayState>,
    world: Arc<ActivePlan>,
    trail: Option<CallRecord>,
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(trail) = self.trail.take() {
            self.shared.note(&self.world, &trail, outcome::Outcome::Cancelled);
        }
    }
}

#[cfg(test)]
mod tests;
