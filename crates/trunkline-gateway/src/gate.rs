//! The walk of a call, from top to bottom: who calls, what is meant, whether it may be, where it
//! runs, what comes of it, and how the caller is told.

mod at;
mod completed;
mod held;
mod login;
mod plugged;
mod skills;
mod visible;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use trunkline_proto::{Call, Utterance};
use trunkline_transport::handler::Answer;
use trunkline_transport::voice::Voice;
use trunkline_wire::era::{carry, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::model::{CallToolResult, InputRequired, LogLevel, LogMessage, Tool};
use trunkline_wire::revision::Revision;

use crate::caller::Caller;
use crate::catalog::nearest;
use crate::catalog::plan::{Effect, ServerPlan};
use crate::face::{Sight, View, what};
use crate::failure::{Done, Failure, Stage};
use crate::gateway::{Shared, World};
use crate::merge::{Cursor, Index, Item, Kind, Look, Target};
use crate::metrics;
use crate::policy::pins::Part;
use crate::policy::plugins::{CallView, Rejected};
use crate::policy::{self, ask::Binding, audit::Decision};
use crate::server::Server;
use crate::trail::Trail;

use completed::Completed;

/// Answers a call.
pub(crate) fn call(shared: &Arc<Shared>, view: &Arc<View>, call: Call, voice: &Voice) -> Answer {
    let world = shared.world();
    let caller = Arc::new(Caller::of(&call, voice));
    if let Some(kind) = Kind::of_method(call.method.name) {
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
            voice.say(call.key, Utterance::Log(message)).await;
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

/// One page of what there is.
fn list(
    shared: &Shared,
    world: &World,
    view: &View,
    caller: &Caller,
    kind: Kind,
    call: &Call,
) -> Outcome {
    let index = view.index(shared);
    let sight = Sight::new(world, caller);
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
        && let Some(tools) = crate::automatic::tools(shared, world, view, caller, call.revision)
    {
        return Ok(tools);
    }
    let page = index.page(kind, &look).map_err(|_| bad());
    view.count(shared, &index);
    page
}

/// A call on its way.
pub(crate) struct Walk {
    pub(crate) shared: Arc<Shared>,
    pub(crate) world: Arc<World>,
    pub(crate) view: Arc<View>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) voice: Voice,
    pub(crate) began: Instant,
    pub(crate) call: Call,
    /// What a person said yes to, where one had to.
    pub(crate) approved: Option<Box<Binding>>,
    /// Of the arguments, before plugins changed them.
    digest: Option<String>,
    /// What plugins are told of the call, if there are any.
    pub(crate) plugged: Option<Arc<CallView>>,
    /// Whether it is to become a task of 2026-07-28, which takes a connection of that era.
    pub(crate) as_task: bool,
    /// How often its caller was told what it waits for.
    pub(crate) steps: AtomicU32,
}

/// What a call comes to, before the caller's revision is considered.
pub(crate) enum Came {
    /// The server's answer, in its revision.
    Answer(Json, Revision),
    /// The caller is to come back with answers.
    Ask(InputRequired),
    /// Done already: in the caller's revision.
    Told(Json),
}

/// Why it comes to nothing.
pub(crate) enum Wrong {
    /// The server said so, in its revision.
    Server(ErrorObject, Revision),
    /// We say so.
    Here(Box<Failure>),
    /// An error as it stands.
    Plain(ErrorObject),
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        Self::Here(Box::new(failure))
    }
}

impl From<ErrorObject> for Wrong {
    fn from(error: ErrorObject) -> Self {
        Self::Plain(error)
    }
}

impl Walk {
    async fn go(mut self) -> Outcome {
        let trail = Trail::new(&self);
        let mut noted = Noted {
            shared: Arc::clone(&self.shared),
            world: Arc::clone(&self.world),
            trail: Some(trail),
        };
        let Some(trail) = &mut noted.trail else { unreachable!("nobody has taken it") };
        let mut came = self.route(trail).await;
        if let (Ok(Came::Ask(input)), Some(binding)) = (&mut came, &self.approved) {
            crate::approve::once(&self.shared, binding, input);
        }
        if let Err(Wrong::Here(failure)) = &came {
            trail.failed(failure);
        }
        if let (Ok(Came::Answer(said, _) | Came::Told(said)), Some(server)) = (&came, &trail.server)
        {
            crate::named::remember(&self.shared, &self.view, &self.caller, server, said);
        }
        let outcome = self.tell(came, trail);
        if let Some(trail) = noted.trail.take() {
            let word = trail.outcome(&outcome);
            self.shared.note(&self.world, &trail, word);
            trail.end(word, &outcome);
        }
        outcome
    }

    async fn route(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        if let Some(audit) = &self.world.audit {
            audit.admit()?;
        }
        match self.call.method.name {
            "tools/call" => self.tool(trail).await,
            // In boxes, so that a call of a tool does not carry their size about.
            "prompts/get" => Box::pin(self.prompt(trail)).await,
            "resources/read" => Box::pin(self.resource(trail)).await,
            "completion/complete" => Box::pin(self.completion(trail)).await,
            "skills/list" => Box::pin(self.skills(trail)).await,
            "skills/get" | "resources/directory/read" => Box::pin(self.skill(trail)).await,
            method if method.starts_with("tasks/") => Box::pin(self.task(trail)).await,
            method => Err(ErrorObject::method_not_found(method).into()),
        }
    }

    /// As the caller reads it.
    fn tell(&self, came: Result<Came, Wrong>, trail: &Trail) -> Outcome {
        let (method, revision) = (self.call.method.name, self.call.revision);
        match came {
            Ok(Came::Told(told)) => Ok(told),
            Ok(Came::Ask(input)) => {
                Ok(stateless::encode_input_required(&input, &stateless::Extras::default()))
            }
            Ok(Came::Answer(said, from)) => {
                let schema = trail.tool.as_ref().and_then(|it| it.output_schema.as_ref());
                carry::result(method, said, from, revision, schema).map_err(|error| {
                    let message =
                        format!("The answer of the server cannot be told in {revision}: {error}.");
                    let mut failure = Failure::new("bad_answer", Stage::Bridge, message);
                    failure.done = Done::Unknown;
                    failure.to_error(&trail.id.to_string())
                })
            }
            Err(Wrong::Server(error, from)) => Err(carry::error(method, error, from, revision)),
            Err(Wrong::Plain(error)) => Err(error),
            Err(Wrong::Here(failure)) => Err(failure.to_error(&trail.id.to_string())),
        }
    }

    async fn tool(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        let shown: String = self.named("name")?;
        if self.world.plan.gateway.automatic.is_some()
            && let Some(came) = Box::pin(crate::automatic::call(self, trail, &shown)).await
        {
            return came;
        }
        self.call_tool(trail, &shown).await
    }

    /// Calls the tool that is shown by a name, with the arguments of the call.
    pub(crate) async fn call_tool(
        &mut self,
        trail: &mut Trail,
        shown: &str,
    ) -> Result<Came, Wrong> {
        let mut index = self.index(shown, |it| it.tool(shown).is_some()).await;
        if index.tool(shown).is_none() && self.may_log_in_to_unknown(shown) {
            if let Some(came) = self.log_in_to_unknown(shown).await? {
                return Ok(came);
            }
            index = self.index(shown, |it| it.tool(shown).is_some()).await;
        }
        let found = index.tool(shown).filter(|it| self.is_allowed(trail, it)).cloned();
        let Some(target) = found else {
            return Err(self.no_tool(trail, &index, shown));
        };
        let server = self.server(&target)?;
        let plan = server.plan();
        let Item::Tool(tool) = &target.item else {
            return Err(ErrorObject::invalid_params("That is no tool.").into());
        };
        trail.is(&target);
        trail.tool = Some(Arc::clone(tool));
        if let Some(came) = self.admit(trail, &target).await? {
            return Ok(came);
        }
        let plugins = match self.ask_plugins(trail, &target).await {
            Ok(plugins) => plugins,
            Err(rejected) => return self.rejected(trail, &target, &rejected),
        };
        self.call.params.set("name", Json::string(&target.name));
        let is_repeatable = is_repeatable(&plan, tool);
        let came = crate::tasks::call(self, trail, &server, &plan, tool, is_repeatable).await;
        self.tell_plugins(trail, &target, plugins, came).await
    }

    /// Why there is no tool by a name.
    fn no_tool(&self, trail: &mut Trail, index: &Index, shown: &str) -> Wrong {
        trail.name.get_or_insert_with(|| clip(shown).into());
        if let Some(held) = self.held(trail, Part::Tool, shown) {
            return held;
        }
        let message = format!("There is no tool `{}` here.", clip(shown));
        let mut failure = Failure::new("unknown_tool", Stage::Route, message);
        let sight = Sight::new(&self.world, &self.caller);
        if let Some(why) = self.world.why_not(&sight, shown) {
            return failure.advice(why).into();
        }
        let names = || {
            let seen = index.iter(Kind::Tools).filter(|(_, it)| self.may(it) != Effect::Deny);
            seen.map(|(name, _)| &**name)
        };
        // Whoever knows the server by itself leaves out the name that it has here.
        let is_own = |name: &str| name.split_once('.').is_some_and(|(_, own)| own == shown);
        if let Some(near) = names().find(|it| is_own(it)).or_else(|| nearest(shown, names())) {
            failure = failure.advice(format!("Did you mean `{near}`?"));
        }
        failure.into()
    }

    /// Whether rules let the caller know of this. What they do not is noted as such, whatever the
    /// caller is told.
    fn is_allowed(&self, trail: &mut Trail, target: &Target) -> bool {
        let is_allowed = self.may(target) != Effect::Deny;
        if !is_allowed {
            trail.is(target);
            trail.decision = Decision::Denied;
        }
        is_allowed
    }

    async fn prompt(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        let shown: String = self.named("name")?;
        let mut index = self.index(&shown, |it| it.prompt(&shown).is_some()).await;
        if index.prompt(&shown).is_none() && self.may_log_in_to_unknown(&shown) {
            if let Some(came) = self.log_in_to_unknown(&shown).await? {
                return Ok(came);
            }
            index = self.index(&shown, |it| it.prompt(&shown).is_some()).await;
        }
        let target = index.prompt(&shown).filter(|it| self.is_allowed(trail, it)).cloned();
        let target = target.ok_or_else(|| {
            trail.name.get_or_insert_with(|| clip(&shown).into());
            if let Some(held) = self.held(trail, Part::Prompt, &shown) {
                return held;
            }
            let message = format!("There is no prompt `{}` here.", clip(&shown));
            Failure::new("unknown_prompt", Stage::Route, message).into()
        })?;
        let server = self.server(&target)?;
        trail.is(&target);
        if let Some(came) = self.admit(trail, &target).await? {
            return Ok(came);
        }
        let plugins = match self.ask_plugins(trail, &target).await {
            Ok(plugins) => plugins,
            Err(rejected) => return self.rejected(trail, &target, &rejected),
        };
        self.call.params.set("name", Json::string(&target.name));
        let came = self.at(trail, &server, true).await;
        self.tell_plugins(trail, &target, plugins, came).await
    }

    async fn resource(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        let uri: String = self.named("uri")?;
        self.call.params.take("arguments");
        let index = self.index("", |it| !it.claims(&uri).is_empty()).await;
        trail.name = Some(clip(&uri).into());
        let target = self.find(trail, &index, &uri)?;
        let server = self.server(&target)?;
        trail.is(&target);
        if let Some(came) = self.admit(trail, &target).await? {
            return Ok(came);
        }
        let plugins = match self.ask_plugins(trail, &target).await {
            Ok(plugins) => plugins,
            Err(rejected) => return self.rejected(trail, &target, &rejected),
        };
        self.call.params.take("arguments");
        self.call.params.set("uri", Json::string(&target.name));
        let came = self.at(trail, &server, true).await;
        self.tell_plugins(trail, &target, plugins, came).await
    }

    /// Where a resource is that the caller may read: at the one server that claims it, or else at the
    /// one whose result named it.
    fn find(&self, trail: &mut Trail, index: &Index, uri: &str) -> Result<Target, Wrong> {
        let claims = crate::named::places(&self.shared, index, &self.caller, uri);
        let may = |it: &&Target| self.may(it) != Effect::Deny;
        let mut found: Vec<Target> = claims.iter().filter(may).cloned().collect();
        match found.len() {
            0 => {
                claims.first().map(|it| self.is_allowed(trail, it));
                Err(ErrorObject::resource_not_found(uri, self.call.revision).into())
            }
            1 => Ok(found.remove(0)),
            _ => Err(crate::named::ambiguous(uri, &found).into()),
        }
    }

    async fn completion(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        #[derive(serde::Deserialize)]
        struct Reference {
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            uri: Option<String>,
        }
        let bad = || ErrorObject::invalid_params("`ref` names neither a prompt nor a template.");
        let reference = self.call.params.get("ref").ok_or_else(bad)?;
        let mut object = Object::parse(reference.get()).map_err(|_| bad())?;
        let reference: Reference = object.to().map_err(|_| bad())?;
        let index = self.index("", |it| {
            let prompt = reference.name.as_deref().and_then(|name| it.prompt(name));
            prompt.is_some()
                || reference.uri.as_deref().is_some_and(|uri| it.template(uri).is_some())
        });
        let index = index.await;
        let (member, target) = match (&reference.name, &reference.uri) {
            (Some(name), _) => ("name", index.prompt(name).cloned()),
            (_, Some(uri)) => ("uri", index.template(uri).cloned().or_else(|| index.resource(uri))),
            _ => return Err(bad().into()),
        };
        let target = target.filter(|it| self.is_allowed(trail, it));
        let target = target.ok_or_else(|| {
            let message = "There is no such prompt or template here.";
            Failure::new("unknown_reference", Stage::Route, message)
        })?;
        let server = self.server(&target)?;
        trail.is(&target);
        object.set(member, Json::string(&target.name));
        self.call.params.set("ref", object.to_json());
        let completed = Completed::of(self, &target, &self.call.params);
        let typed = completed.as_ref().map(Completed::target);
        if typed.as_ref().is_some_and(|it| !self.is_allowed(trail, it)) {
            let message = "There is no such prompt or template here.";
            return Err(Failure::new("unknown_reference", Stage::Route, message).into());
        }
        let typed = typed.filter(|it| self.may(it) == Effect::Ask);
        // Rules, people and plugins see what is completed as arguments.
        let mut arguments = Object::default();
        for member in COMPLETED {
            if let Some(value) = self.call.params.take(member) {
                arguments.set(member, value);
            }
        }
        self.call.params.set("arguments", arguments.to_json());
        if let Some(came) = self.admit(trail, typed.as_ref().unwrap_or(&target)).await? {
            return Ok(came);
        }
        let plugins = match self.ask_plugins(trail, &target).await {
            Ok(plugins) => plugins,
            Err(rejected) => return self.rejected(trail, &target, &rejected),
        };
        let arguments = self.call.params.take("arguments");
        let arguments = arguments.and_then(|it| Object::parse(it.get()).ok());
        let mut arguments = arguments.unwrap_or_default();
        for member in COMPLETED {
            if let Some(value) = arguments.take(member) {
                self.call.params.set(member, value);
            }
        }
        let came = self.at(trail, &server, true).await;
        let came = match completed {
            Some(completed) => came.map(|it| completed.filter(self, it)),
            None => came,
        };
        self.tell_plugins(trail, &target, plugins, came).await
    }

    async fn task(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        crate::tasks::manage(self, trail).await
    }

    /// What there is. Servers that have not said what they offer are waited for only if what is
    /// looked for is not found without them: the one that a name begins with as long as its start takes,
    /// all of them for a while.
    async fn index(&self, shown: &str, is_there: impl Fn(&Index) -> bool) -> Arc<Index> {
        let index = self.view.index(&self.shared);
        if is_there(&index) {
            return index;
        }
        if let Some(server) = self.unknown_server(shown) {
            Box::pin(self.visibly(&server, self.shared.refresh(&server, true))).await;
            return self.view.index(&self.shared);
        }
        // The index is of the plan in force now, which need not be the one that the call began with.
        self.shared.complete(&self.shared.world(), &self.view).await;
        self.view.index(&self.shared)
    }

    /// Rates, and whether a person has to say yes first. `Some` ends the call with a question.
    async fn admit(&mut self, trail: &mut Trail, target: &Target) -> Result<Option<Came>, Wrong> {
        self.approved = None;
        let world = Arc::clone(&self.world);
        if let Err(after) = world.take(self.caller.bearer.names(), target) {
            trail.decision = Decision::RateLimited;
            return Err(policy::limited(&target.server, what(target), after).into());
        }
        match self.may(target) {
            Effect::Allow => Ok(None),
            Effect::Deny => {
                trail.decision = Decision::Denied;
                let message = format!("`{}` may not be used.", target.name);
                Err(Failure::new("denied", Stage::Policy, message).of(&target.server).into())
            }
            Effect::Ask => Box::pin(crate::approve::approve(self, trail, target)).await,
        }
    }

    fn may(&self, target: &Target) -> Effect {
        Sight::new(&self.world, &self.caller).effect(target)
    }

    pub(crate) fn server(&self, target: &Target) -> Result<Arc<Server>, Failure> {
        let known = self.world.servers.get(&*target.server).cloned();
        let known = known.or_else(|| self.shared.world().servers.get(&*target.server).cloned());
        known.ok_or_else(|| {
            Failure::new("gone", Stage::Route, "That server is no longer in the catalog.")
                .of(&target.server)
        })
    }

    fn named(&self, member: &'static str) -> Result<String, ErrorObject> {
        self.call
            .params
            .get(member)
            .and_then(|it| it.to().ok())
            .ok_or_else(|| ErrorObject::invalid_params(format!("`{member}` must be a string.")))
    }

    /// A plugin said no. Models read that of a tool; everything else is an error.
    fn rejected(
        &self,
        trail: &mut Trail,
        target: &Target,
        rejected: &Rejected,
    ) -> Result<Came, Wrong> {
        trail.decision = Decision::Rejected;
        let Item::Tool(_) = target.item else {
            return Err(rejected.to_failure(&target.server).into());
        };
        let result = CallToolResult::error(rejected.to_string());
        let extras = stateless::Extras::default();
        Ok(Came::Told(trunkline_wire::era::stateful::encode(result, self.call.revision, &extras)))
    }
}

/// Whether a tool may be called a second time when nobody knows what came of the first.
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

/// The digest of arguments that a state is bound to.
fn digest(arguments: Option<&Json>) -> String {
    trunkline_auth::digest::sha256(arguments.map(Json::get).unwrap_or_default().as_bytes())
}

/// Sees to it that a call is noted also if its caller does not wait for what comes of it.
struct Noted {
    shared: Arc<Shared>,
    world: Arc<World>,
    trail: Option<Trail>,
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(trail) = self.trail.take() {
            self.shared.note(&self.world, &trail, metrics::Outcome::Cancelled);
        }
    }
}

/// What says what is to be completed.
const COMPLETED: [&str; 2] = ["argument", "context"];

#[cfg(test)]
mod tests;
