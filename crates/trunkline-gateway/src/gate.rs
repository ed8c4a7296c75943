//! The walk of a call, from top to bottom: who calls, what is meant, whether it may be, where it
//! runs, what comes of it, and how the caller is told.

use std::sync::Arc;
use std::time::Instant;

use trunkline_proto::{Call, CallError};
use trunkline_transport::handler::Answer;
use trunkline_transport::voice::Voice;
use trunkline_wire::era::{carry, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::model::{
    CallToolResult, ElicitParams, InputRequest, InputRequired, Tool,
};
use trunkline_wire::revision::{Era, Revision};

use crate::able;
use crate::caller::Caller;
use crate::catalog::nearest;
use crate::catalog::plan::{Affinity, Effect, ServerPlan, Strategy};
use crate::face::{Sight, View, what};
use crate::failure::{Failure, Stage};
use crate::forward::{self, Event, Forward};
use crate::gateway::{Shared, World};
use crate::line::Line;
use crate::policy::{self, audit::Decision};
use crate::merge::{Cursor, Index, Item, Kind, Look, Target};
use crate::pool::Cause;
use crate::seal::Sealed;
use crate::server::Server;
use crate::trail::Trail;
use crate::upstream::{Instance, timing};

/// Answers a call.
pub(crate) fn call(shared: &Arc<Shared>, view: &Arc<View>, call: Call, voice: &Voice) -> Answer {
    let world = shared.world();
    let caller = Arc::new(Caller::of(&call, voice));
    if let Some(kind) = Kind::of_method(call.method.name) {
        if shared.is_complete(&world, view) {
            return Answer::Now(list(shared, &world, view, &caller, kind, &call));
        }
        let (shared, view) = (Arc::clone(shared), Arc::clone(view));
        return Answer::later(async move {
            shared.complete(&world, &view).await;
            list(&shared, &world, &view, &caller, kind, &call)
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
    index.page(kind, &look).map_err(|_| bad())
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
        let mut trail = Trail::new(&self);
        let came = self.route(&mut trail).await;
        if let Err(Wrong::Here(failure)) = &came {
            trail.failed(failure);
        }
        let outcome = self.tell(came, &trail);
        self.shared.note(&self.world, &trail, trail.outcome(&outcome));
        outcome
    }

    async fn route(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        match self.call.method.name {
            "tools/call" => self.tool(trail).await,
            "prompts/get" => self.prompt(trail).await,
            "resources/read" => self.resource(trail).await,
            "completion/complete" => self.completion(trail).await,
            method if method.starts_with("tasks/") => self.task(trail).await,
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
                    Failure::new(
                        "bad_answer",
                        Stage::Bridge,
                        format!("The answer of the server cannot be told in {revision}: {error}."),
                    )
                    .to_error(&trail.id)
                })
            }
            Err(Wrong::Server(error, from)) => Err(carry::error(method, error, from, revision)),
            Err(Wrong::Plain(error)) => Err(error),
            Err(Wrong::Here(failure)) => Err(failure.to_error(&trail.id)),
        }
    }

    async fn tool(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        let shown: String = self.named("name")?;
        if let Some(came) = crate::automatic::call(self, trail, &shown).await {
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
        let index = self.index(|it| it.tool(shown).is_some()).await;
        let found = index.tool(shown).filter(|it| self.may(it) != Effect::Deny).cloned();
        let Some(target) = found else {
            return Err(self.shared.held_back(&self.world, &self.view, shown).unwrap_or_else(|| {
                let mut failure = Failure::new(
                    "unknown_tool",
                    Stage::Route,
                    format!("There is no tool `{}` here.", clip(shown)),
                );
                let names = index.iter(Kind::Tools).filter(|(_, it)| self.may(it) != Effect::Deny);
                if let Some(near) = nearest(shown, names.map(|(name, _)| &**name)) {
                    failure = failure.advice(format!("Did you mean `{near}`?"));
                }
                failure.into()
            }));
        };
        let server = self.server(&target)?;
        let plan = server.plan();
        let Item::Tool(tool) = &target.item else {
            return Err(ErrorObject::invalid_params("That is no tool.").into());
        };
        trail.is(&plan, &target.name);
        trail.tool = Some(Arc::clone(tool));
        if let Some(came) = self.admit(trail, &target).await? {
            return Ok(came);
        }
        let view = crate::policy::plugins::CallView::new(
            &plan.name,
            &target.name,
            self.caller.name.as_deref(),
        );
        let world = Arc::clone(&self.world);
        let plugins = &world.plugins;
        if !plugins.is_empty() {
            let arguments = self.call.params.take("arguments").unwrap_or_else(Json::empty_object);
            match plugins.request(&view, arguments).await {
                Ok(arguments) => self.call.params.set("arguments", arguments),
                Err(rejected) => return Ok(self.rejected(trail, &rejected)),
            }
        }
        self.call.params.set("name", Json::string(&target.name));
        let is_repeatable = is_repeatable(&plan, tool);
        let came = crate::tasks::call(self, trail, &server, &plan, tool, is_repeatable).await;
        match came {
            Ok(Came::Answer(said, from)) if !plugins.is_empty() => {
                match plugins.response(&view, said).await {
                    Ok(said) => Ok(Came::Answer(said, from)),
                    Err(rejected) => Ok(self.rejected(trail, &rejected)),
                }
            }
            came => came,
        }
    }

    async fn prompt(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        let shown: String = self.named("name")?;
        let index = self.index(|it| it.prompt(&shown).is_some()).await;
        let target = index.prompt(&shown).filter(|it| self.may(it) != Effect::Deny).cloned();
        let target = target.ok_or_else(|| {
            let message = format!("There is no prompt `{}` here.", clip(&shown));
            Failure::new("unknown_prompt", Stage::Route, message)
        })?;
        let server = self.server(&target)?;
        trail.is(&server.plan(), &target.name);
        if let Some(came) = self.admit(trail, &target).await? {
            return Ok(came);
        }
        self.call.params.set("name", Json::string(&target.name));
        self.at(trail, &server, true).await
    }

    async fn resource(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        let uri: String = self.named("uri")?;
        let index = self.index(|it| it.resource(&uri).is_some()).await;
        let candidates: Vec<Target> = match index.resource(&uri) {
            Some(target) => vec![target],
            // Not listed: a tool may have named it. Whoever has resources is asked in turn.
            None => {
                let name: Arc<str> = Arc::from(uri.as_str());
                let target =
                    |server| Target { server, name: Arc::clone(&name), item: Item::Unlisted };
                index.candidates(&uri).into_iter().take(CANDIDATES).map(target).collect()
            }
        };
        let not_found = || ErrorObject::resource_not_found(&uri, self.call.revision);
        let mut last = Wrong::Plain(not_found());
        for target in candidates {
            if self.may(&target) == Effect::Deny {
                continue;
            }
            let server = self.server(&target)?;
            trail.is(&server.plan(), &target.name);
            if let Some(came) = self.admit(trail, &target).await? {
                return Ok(came);
            }
            self.call.params.set("uri", Json::string(&target.name));
            match self.at(trail, &server, true).await {
                Err(Wrong::Server(error, from)) => last = Wrong::Server(error, from),
                outcome => return outcome,
            }
        }
        Err(last)
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
        let index = self.index(|it| {
            let prompt = reference.name.as_deref().and_then(|name| it.prompt(name));
            prompt.is_some() || reference.uri.as_deref().is_some_and(|uri| it.template(uri).is_some())
        });
        let index = index.await;
        let (member, target) = match (&reference.name, &reference.uri) {
            (Some(name), _) => ("name", index.prompt(name).cloned()),
            (_, Some(uri)) => {
                ("uri", index.template(uri).cloned().or_else(|| index.resource(uri)))
            }
            _ => return Err(bad().into()),
        };
        let target = target.filter(|it| self.may(it) != Effect::Deny);
        let target = target.ok_or_else(|| {
            let message = "There is no such prompt or template here.";
            Failure::new("unknown_reference", Stage::Route, message)
        })?;
        let server = self.server(&target)?;
        trail.is(&server.plan(), &target.name);
        object.set(member, Json::string(&target.name));
        self.call.params.set("ref", object.to_json());
        self.at(trail, &server, true).await
    }

    async fn task(&mut self, trail: &mut Trail) -> Result<Came, Wrong> {
        crate::tasks::manage(self, trail).await
    }

    /// What there is. Servers that have not said what they offer are waited for only if what is
    /// looked for is not found without them.
    async fn index(&self, is_there: impl Fn(&Index) -> bool) -> Arc<Index> {
        let index = self.view.index(&self.shared);
        if is_there(&index) || self.shared.is_complete(&self.world, &self.view) {
            return index;
        }
        self.shared.complete(&self.world, &self.view).await;
        self.view.index(&self.shared)
    }

    /// Rates, and whether a person has to say yes first. `Some` ends the call with a question.
    async fn admit(&mut self, trail: &mut Trail, target: &Target) -> Result<Option<Came>, Wrong> {
        let world = Arc::clone(&self.world);
        if let Err(after) = world.take(self.caller.name.as_deref(), target) {
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
            Effect::Ask => crate::approve::approve(self, trail, target).await,
        }
    }

    /// Makes the call at a server, and goes on with it until it is over or the caller has to answer.
    /// It is made again only if it was not made, or may be.
    pub(crate) async fn at(
        &mut self,
        trail: &mut Trail,
        server: &Arc<Server>,
        is_repeatable: bool,
    ) -> Result<Came, Wrong> {
        let plan = server.plan();
        if let Some(state) = self.call.params.take("requestState") {
            let state: String = state.to().map_err(|_| stale())?;
            let bound = self.bound_to(&plan.name);
            match self.shared.seals.open_state(&state, &bound).ok_or_else(stale)? {
                Sealed::Parked(name) => {
                    let mut forward = self.shared.lot.resume(&name).ok_or_else(stale)?;
                    let answers = self.call.params.take("inputResponses");
                    let answers = answers.and_then(|it| Object::parse(it.get()).ok());
                    forward.answer(answers.unwrap_or_default());
                    // What is said from now on is said to whoever asks now.
                    return self.follow(trail, forward, &plan).await.map_err(|(wrong, _)| wrong);
                }
                Sealed::Relayed(Some(state)) => {
                    self.call.params.set("requestState", Json::string(&state));
                }
                Sealed::Relayed(None) => {}
            }
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let is_last = tries >= TRIES;
            let forward = self.begin(trail, server, &plan).await?;
            match self.follow(trail, forward, &plan).await {
                Ok(came) => return Ok(came),
                Err((wrong, Some(error))) if !is_last => {
                    let again = forward::was_not_made(&error)
                        || (is_repeatable && forward::is_unknown(&error));
                    if !again {
                        return Err(wrong);
                    }
                }
                Err((wrong, _)) => return Err(wrong),
            }
        }
    }

    /// Leases an instance and makes the call there.
    async fn begin(
        &self,
        trail: &mut Trail,
        server: &Arc<Server>,
        plan: &ServerPlan,
    ) -> Result<Forward, Failure> {
        let profile = able::profile(&self.call.peer.client);
        let want = server.want(self.key(plan), profile, Cause::Call);
        let lease = server.pool.lease(want).await?;
        trail.leased(lease.id());
        let instance = Arc::clone(lease.instance());
        instance.hear(self.call.log_level).await;
        let era = instance.opened.revision.era();
        let mut params = self.call.params.clone();
        if let Some(meta) = forward::meta_for(&self.call, era) {
            params.set("_meta", meta);
        }
        let relays = era == Era::Stateless && self.call.revision.era() == Era::Stateless;
        if !relays {
            params.take("inputResponses");
        }
        let line = Line::new(
            Arc::clone(&self.caller),
            self.voice.clone(),
            self.call.key,
            self.call.revision,
            self.call.log_level,
        );
        let (method, progress) = (self.call.method.name, self.call.wants_progress);
        Ok(Forward::begin(lease, line, method, params, timing(plan), progress, relays))
    }

    /// Goes on with a call until it is over or the caller has to answer.
    async fn follow(
        &self,
        trail: &mut Trail,
        mut forward: Forward,
        plan: &ServerPlan,
    ) -> Result<Came, (Wrong, Option<CallError>)> {
        let revision = forward.instance().opened.revision;
        trail.leased(forward.lease.id());
        loop {
            match forward.next().await {
                Event::Said(what) => self.voice.say(self.call.key, what).await,
                Event::Asked => {
                    let requests = forward.questions();
                    let parked = self.shared.lot.park(forward, &self.caller.id);
                    let name = parked.map_err(|failure| (failure.into(), None))?;
                    let state = Sealed::Parked(name);
                    let state = self.shared.seals.state(&state, &self.bound_to(&plan.name));
                    let mut input = InputRequired::new(requests);
                    input.state = Some(state);
                    return Ok(Came::Ask(input));
                }
                Event::Over(Ok(said)) => return Ok(self.over(said, revision, plan)),
                Event::Over(Err(CallError::Peer(error))) if is_about_urls(&error) => {
                    return Ok(self.urls(error, forward.instance())
                        .map_err(|error| (Wrong::Server(error, revision), None))?);
                }
                Event::Over(Err(error)) => {
                    let wrong = match forward::failed(error.clone(), forward.instance()).await {
                        Ok(said) => Wrong::Server(said, revision),
                        Err(failure) => failure.into(),
                    };
                    return Err((wrong, Some(error)));
                }
            }
        }
    }

    /// What the server's answer is for the caller: an answer, or its question with a state of ours
    /// around the server's.
    fn over(&self, said: Json, revision: Revision, plan: &ServerPlan) -> Came {
        let is_relayed = revision.era() == Era::Stateless && self.call.revision == revision;
        if !is_relayed || !said.get().contains("input_required") {
            return Came::Answer(said, revision);
        }
        match stateless::decode_result(said.clone()) {
            Ok(stateless::Decoded::InputRequired(mut input)) => {
                let state = Sealed::Relayed(input.state.take());
                input.state = Some(self.shared.seals.state(&state, &self.bound_to(&plan.name)));
                Came::Ask(input)
            }
            _ => Came::Answer(said, revision),
        }
    }

    /// A server of 2025-11-25 wants pages visited first. A caller of the new era is asked to; others
    /// are told as the server told us, and learn when it is done.
    fn urls(&self, error: ErrorObject, instance: &Instance) -> Result<Came, ErrorObject> {
        #[derive(serde::Deserialize)]
        struct Data {
            elicitations: Vec<ElicitParams>,
        }
        let asked = error.data.as_ref().and_then(|it| it.to::<Data>().ok());
        let asked = asked.map(|it| it.elicitations).unwrap_or_default().into_iter();
        let asked: Vec<_> = asked
            .filter_map(|it| match it {
                ElicitParams::Url(url) => Some(url),
                _ => None,
            })
            .collect();
        if self.call.revision.era() == Era::Stateful || asked.is_empty() {
            for id in asked.into_iter().filter_map(|it| it.elicitation_id) {
                instance.will_complete(id, &self.voice);
            }
            return Err(error);
        }
        let requests = asked.into_iter().enumerate().map(|(at, mut url)| {
            url.elicitation_id = None;
            (format!("q{}", at + 1), InputRequest::Elicit(ElicitParams::Url(url)))
        });
        Ok(Came::Ask(InputRequired::new(requests.collect())))
    }

    /// What a state that travels with the caller is bound to.
    pub(crate) fn bound_to(&self, server: &str) -> String {
        let what = self.call.params.get("name").or_else(|| self.call.params.get("uri"));
        let arguments = self.call.params.get("arguments").map(Json::get).unwrap_or_default();
        format!(
            "{}\0{}\0{server}\0{}\0{}",
            self.caller.id,
            self.call.method.name,
            what.map(Json::get).unwrap_or_default(),
            trunkline_auth::digest::sha256(arguments.as_bytes()),
        )
    }

    /// By what a stateful server knows this caller again.
    fn key(&self, plan: &ServerPlan) -> Option<Box<str>> {
        if plan.strategy != Strategy::Stateful {
            return None;
        }
        let has_session = self.call.revision.era() == Era::Stateful;
        Some(match &plan.affinity {
            Affinity::Session if has_session => session_key(self.caller.conversation),
            Affinity::Session | Affinity::Principal => format!("p{}", self.caller.id).into(),
            Affinity::Meta(name) => {
                let meta = self.call.meta.as_ref().and_then(|it| Object::parse(it.get()).ok());
                let value = meta.and_then(|it| it.get(name).map(|it| it.get().to_owned()));
                // A key that a client makes up is its own: others cannot use it.
                format!("m{}\0{}", self.caller.id, value.unwrap_or_default()).into()
            }
        })
    }

    fn may(&self, target: &Target) -> Effect {
        Sight::new(&self.world, &self.caller).effect(target)
    }

    pub(crate) fn server(&self, target: &Target) -> Result<Arc<Server>, Failure> {
        self.world.servers.get(&*target.server).cloned().ok_or_else(|| {
            Failure::new("gone", Stage::Route, "That server is no longer in the catalog.")
                .of(&target.server)
        })
    }

    fn named(&self, member: &'static str) -> Result<String, ErrorObject> {
        self.call.params.get(member).and_then(|it| it.to().ok()).ok_or_else(|| {
            ErrorObject::invalid_params(format!("`{member}` must be a string."))
        })
    }

    fn rejected(&self, trail: &mut Trail, rejected: &crate::policy::plugins::Rejected) -> Came {
        trail.decision = Decision::Rejected;
        let result = CallToolResult::error(rejected.to_string());
        let extras = stateless::Extras::default();
        Came::Told(trunkline_wire::era::stateful::encode(result, self.call.revision, &extras))
    }
}

/// Whether a tool may be called a second time when nobody knows what came of the first.
fn is_repeatable(plan: &ServerPlan, tool: &Tool) -> bool {
    let says = tool.annotations.as_ref().is_some_and(|it| {
        it.idempotent_hint == Some(true) || it.read_only_hint == Some(true)
    });
    says || plan.idempotent.iter().any(|it| crate::merge::names::is_like(it, &tool.name))
}

/// By what a stateful server knows a session.
pub(crate) fn session_key(conversation: u64) -> Box<str> {
    format!("s{conversation}").into()
}

fn is_about_urls(error: &ErrorObject) -> bool {
    error.code == trunkline_wire::code::URL_ELICITATION_REQUIRED
}

fn stale() -> ErrorObject {
    ErrorObject::invalid_params("`requestState` is not valid here any more. Make the call anew.")
}

fn clip(text: &str) -> &str {
    let end = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

const TRIES: u32 = 3;
const CANDIDATES: usize = 8;
