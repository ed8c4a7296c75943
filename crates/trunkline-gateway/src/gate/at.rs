//! One call at one server: leases an instance, makes the call and follows it until it ends or the caller
//! has to answer. Retries only what was not begun or may be repeated.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use trunkline_proto::input_required::missing_capability;
use trunkline_proto::{Call, CallError, HandlerEvent};
use trunkline_transport::budget::Held;
use trunkline_wire::era::stateless;
use trunkline_wire::json::Json;
use trunkline_wire::json::glance::{Glance, ResultType};
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{ElicitParams, InputRequest, InputRequired};
use trunkline_wire::revision::{Era, Revision};

use super::decide::Permit;
use super::placed::{Moving, was_not_there};
use super::{CallFailure, CallOutcome, Walk};
use crate::call_record::CallRecord;
use crate::catalog::plan::{Questions, Reach, ServerPlan, Strategy};
use crate::client_profile::ClientProfile;
use crate::failure::{Done, Failure, Reason, Stage};
use crate::forward::{self, Event, Forward};
use crate::parked_calls::Missing;
use crate::pool::{Cause, Lease, Leasing, Want};
use crate::question;
use crate::seal::Sealed;
use crate::server::{Hop, Server, Who, key_of, now};
use crate::upstream::{Instance, Upstream, timing};
use crate::upstream_call::{Guard, Origin, UpstreamCallContext};

impl Walk {
    /// Makes the call at a server and follows it until it ends or the caller has to answer. Retries it only
    /// if the server did not begin it, or if it is repeatable.
    pub(super) async fn at(
        &mut self,
        record: &mut CallRecord,
        permit: &Permit,
        is_repeatable: bool,
    ) -> Result<CallOutcome, CallFailure> {
        let plan = permit.plan();
        if plan.per_user().is_some()
            && let Some(question) = Box::pin(self.log_in_first(plan)).await?
        {
            return Ok(question);
        }
        // The instance that wrote the state, as long as it runs.
        let mut stay = None;
        if let Some(state) = self.call.params.take("requestState") {
            let state: String = state.to().map_err(|_| stale())?;
            let bound = self.bound_to(&plan.name);
            match self.shared.seals.open_state(&state, &bound).ok_or_else(stale)? {
                Sealed::Parked(name) => {
                    let is_held = self.shared.seals.holder(&state).is_some();
                    return Box::pin(self.resume(record, plan, &name, is_held)).await;
                }
                Sealed::Relayed(Some(state), instance) => {
                    stay = Some(instance);
                    self.call.params.set("requestState", Json::string(&state));
                }
                Sealed::Relayed(None, _) | Sealed::Login => {}
            }
        }
        // A session's state is lost with its instance, so a retry would run without it.
        let is_repeatable = is_repeatable && plan.strategy != Strategy::Stateful;
        let mut tries = 0;
        // After one try with an unknown outcome, no later failure may claim that nothing was done.
        let mut may_be_done = false;
        let mut moving = Moving::default();
        // Where the call goes if the catalog changed meanwhile.
        let mut replaced: Option<(Arc<Server>, Arc<ServerPlan>)> = None;
        loop {
            tries += 1;
            let is_last = tries >= TRIES;
            let (server, plan) = match &replaced {
                Some((server, plan)) => (server, plan),
                None => (permit.server(), permit.plan()),
            };
            let mut forward = match self.begin(record, server, plan, stay.take()).await {
                // The catalog changed meanwhile: the call goes to the server that has the name now.
                Err(failure) if failure.reason == Reason::Draining && !is_last => {
                    let now = self.shared.active_plan().servers.get(&*server.name).cloned();
                    let now = now.filter(|it| !Arc::ptr_eq(it, server));
                    let now = now.ok_or_else(|| or_unknown(failure.into(), may_be_done))?;
                    let plan = now.plan();
                    replaced = Some((now, plan));
                    continue;
                }
                Err(failure) if failure.reason == Reason::LoginRequired => {
                    return self.ask_to_log_in(plan);
                }
                Err(failure) if failure.reason == Reason::InstanceMoved && self.hop == Hop::May => {
                    tries -= 1;
                    match Box::pin(self.moves(server, plan, &mut moving)).await {
                        true => continue,
                        false => return Err(or_unknown(failure.into(), may_be_done)),
                    }
                }
                Err(failure) => return Err(or_unknown(failure.into(), may_be_done)),
                Ok(forward) => Some(forward),
            };
            let lives_elsewhere = forward.as_ref().is_some_and(|it| it.instance().peer.is_some());
            match self.follow(record, &mut forward, plan).await {
                Ok(result) => return Ok(result),
                Err((call_failure, Some(error))) if lives_elsewhere && was_not_there(&error) => {
                    tries -= 1;
                    if !Box::pin(self.moves(server, plan, &mut moving)).await {
                        return Err(or_unknown(call_failure, may_be_done));
                    }
                }
                Err((_, Some(error))) if !is_last && error.may_go_again(is_repeatable) => {
                    may_be_done |= error.done() == Some(Done::Unknown);
                }
                Err((_, Some(error)))
                    if matches!(*error, CallError::Credentials(_)) && self.has_to_log_in(plan) =>
                {
                    return self.ask_to_log_in(plan);
                }
                Err((call_failure, _)) => return Err(or_unknown(call_failure, may_be_done)),
            }
        }
    }

    /// Goes on with a call that waited for its caller's answers.
    async fn resume(
        &mut self,
        record: &mut CallRecord,
        plan: &ServerPlan,
        name: &str,
        is_held: bool,
    ) -> Result<CallOutcome, CallFailure> {
        let resumed = self.shared.parked_calls.resume(name);
        let mut resumed = resumed.map_err(|missing| match missing {
            Missing::MadeWay => CallFailure::from(made_way(&plan.name)),
            Missing::Unknown if is_held => holder_gone(&plan.name).into(),
            Missing::Unknown => stale().into(),
        })?;
        let answers = self.call.params.take("inputResponses");
        let answers = answers.and_then(|it| Object::parse(it.get()).ok());
        resumed.answer(answers.unwrap_or_default());
        // From here on, events go to the caller of this round.
        record.leased(resumed.lease.id(), now());
        let mut forward = Some(resumed);
        let followed = self.follow(record, &mut forward, plan).await;
        followed.map_err(|(call_failure, _)| call_failure)
    }

    /// Leases an instance and makes the call there.
    async fn begin(
        &self,
        record: &mut CallRecord,
        server: &Arc<Server>,
        plan: &ServerPlan,
        stay: Option<u64>,
    ) -> Result<Forward, Box<Failure>> {
        if self.shared.subscriptions.is_any() {
            Box::pin(self.shared.subscriptions.settled(&self.caller, &server.name)).await;
        }
        let asked = now();
        let lease = match stay.and_then(|id| server.pool.lease_on(id)) {
            Some(lease) => {
                Box::pin(self.await_comparison(server, plan, lease.instance())).await?;
                lease
            }
            None => match self.ask(server, plan, asked) {
                Some(Leasing::Done(Ok(lease))) if self.may_use(plan, &lease) => lease,
                // In a box, so that calls that find an instance ready do not carry its size about.
                asked => {
                    let lease = noting_wait(&mut record.waits, self.lease(server, plan, asked));
                    Box::pin(self.with_progress(server, lease)).await?
                }
            },
        };
        // Most calls have not waited, and the moment is the same.
        let leased = if record.waits.is_some() { now() } else { asked };
        if self.shared.subscriptions.is_any() {
            let owner = server.pool.owner(lease.id());
            let subscriptions = &self.shared.subscriptions;
            let settled = subscriptions.settled_at(&*self.shared, owner.as_ref(), lease.instance());
            Box::pin(settled).await;
        }
        let is_anothers = lease.instance().owner.as_ref() != Some(&self.caller.id);
        if plan.per_user().is_some() && is_anothers && lease.instance().peer.is_none() {
            // The pool never lends another principal's instance. This check keeps accounts apart even if it
            // did.
            let message = format!("`{}` has no instance of your own.", plan.name);
            let failure = Failure::new(Reason::NotYours, Stage::Acquire, message);
            return Err(Box::new(failure.of(&plan.name)));
        }
        record.leased(lease.id(), leased);
        self.refuse_held(record, plan)?;
        let instance = lease.instance();
        if let Some(level) = instance.log_level_to_set(self.call.log_level, has_session(&self.call))
        {
            Box::pin(instance.raise_log_level(level)).await;
        }
        let era = instance.opened.revision.era();
        let mut params = self.call.params.clone_for_one_more();
        let meta = forward::meta_for(&self.call, era, &self.shared.envelopes);
        let meta = match plan.questions == Questions::default() || era == Era::Stateful {
            true => meta,
            false => question::offered_in(meta, plan.questions),
        };
        let span = record.span.as_ref().map(|it| {
            let is_http = matches!(plan.reach, Reach::Http { .. });
            it.child(instance.id, instance.opened.revision, is_http)
        });
        let meta = match &span {
            Some(span) => Some(span.context().within(meta)),
            None => meta,
        };
        let meta = match &instance.peer {
            Some(peer) => Some(self.meta_for_replica(server, peer, meta)),
            None => meta,
        };
        if let Some(meta) = meta {
            params.set("_meta", meta);
        }
        let relays = era == Era::Stateless && self.call.revision.era() == Era::Stateless;
        if !relays {
            params.take("inputResponses");
        }
        let context = self.context(record, self.listens(plan, instance));
        let method = self.call.method.method;
        if let Some(recording) = &record.recording {
            let moments = (record.waits.take(), record.leased.unwrap_or(record.began));
            let at = (instance.id, instance.opened.revision);
            instance.is_seen_by(|| self.shared.link_of(&instance.server, instance.id));
            let is_new = moments.0.is_some() && instance.is_newer(record.began);
            recording.sends(record.target(), moments, at, is_new, method, &params);
            record.is_sent = true;
        }
        let mut forward = Forward::begin(lease, context, method, params, timing(plan), relays);
        forward.span = span;
        Ok(forward)
    }

    /// The context of the call at an instance.
    pub(super) fn context(&self, record: &CallRecord, listens: bool) -> Arc<UpstreamCallContext> {
        let origin = Origin {
            caller: Arc::clone(&self.caller),
            handle: self.handle.clone(),
            key: self.call.key,
            revision: self.call.revision,
        };
        let (notices, recording) = (Arc::clone(&self.shared.notices), record.recording.clone());
        UpstreamCallContext::new(origin, listens, notices, self.guard(), recording)
    }

    /// The plugins that inspect questions asked during the call.
    pub(crate) fn guard(&self) -> Option<Guard> {
        let view = self.plugged.as_ref()?;
        Some(Guard { plugins: Arc::clone(&self.active.plugins), view: Arc::clone(view) })
    }

    /// Whether the call listens for events of its own. What an HTTP server sends on a request's stream
    /// belongs to that request; on any other connection it could belong to any call.
    fn listens(&self, plan: &ServerPlan, instance: &Instance) -> bool {
        if self.call.wants_progress {
            return true;
        }
        let is_http = matches!(plan.reach, Reach::Http { .. }) || instance.peer.is_some();
        match has_session(&self.call) {
            true => is_http && instance.opened.capabilities.logging,
            false => self.call.log_level.is_some(),
        }
    }

    /// Asks for an instance, without waiting for it.
    fn ask(&self, server: &Server, plan: &ServerPlan, now: Instant) -> Option<Leasing<Upstream>> {
        let key = key_of(plan, &self.caller, self.call.meta.as_ref());
        server.ask(&|| self.want(server, plan, key.clone()), now)
    }

    /// What the call wants of a server's pool.
    fn want(&self, server: &Server, plan: &ServerPlan, key: Option<Box<str>>) -> Want {
        let era = if self.as_task { Era::Stateless } else { self.call.revision.era() };
        let profile = ClientProfile::of(&self.call.peer, era);
        server.want(plan, key, Who::Caller(&self.caller), profile, Cause::Call)
    }

    /// Whether a leased instance can take the call at once.
    fn may_use(&self, plan: &ServerPlan, lease: &Lease<Upstream>) -> bool {
        let instance = lease.instance();
        self.uncompared(plan, instance).is_none() && !instance.is_over()
    }

    /// Leases an instance, the one that was asked for if any was. The pool may still lend one that has just ended:
    /// it learns of the end only after the instance's last messages are read.
    async fn lease(
        &self,
        server: &Arc<Server>,
        plan: &ServerPlan,
        mut asked: Option<Leasing<Upstream>>,
    ) -> Result<Lease<Upstream>, Failure> {
        let key = key_of(plan, &self.caller, self.call.meta.as_ref());
        let want = || self.want(server, plan, key.clone());
        let mut tries = 0;
        loop {
            tries += 1;
            let lease = match asked.take() {
                Some(asked) => server.leased(asked, &want).await?,
                None => server.lease(self.hop, &want).await?,
            };
            let compared = self.await_comparison(server, plan, lease.instance()).await;
            let is_gone = compared.as_ref().is_err_and(|it| it.reason == ENDED);
            if tries >= TRIES || !(is_gone || lease.instance().is_over()) {
                return compared.map(|()| lease);
            }
            if !is_gone {
                lease.instance().gone().await;
            }
            server.pool.kill(lease.id());
        }
    }

    /// Follows a call until it ends or the caller has to answer, and takes it from its place then. It is not moved
    /// before: it is large.
    pub(crate) async fn follow(
        &self,
        record: &mut CallRecord,
        place: &mut Option<Forward>,
        plan: &ServerPlan,
    ) -> Result<CallOutcome, (CallFailure, Option<Box<CallError>>)> {
        loop {
            let Some(forward) = place else { unreachable!("it is taken at the end") };
            let revision = forward.instance().opened.revision;
            match forward.next().await {
                Event::Said(said) => Box::pin(self.pass_on(*said)).await,
                Event::Asked => {
                    let requests = forward.questions();
                    let forward = place.take().expect("it is there");
                    let parked = self.shared.parked_calls.park(forward, &self.caller.id);
                    let name = parked.map_err(|failure| (failure.into(), None))?;
                    let state = Sealed::Parked(name);
                    let state = self.shared.seals.state(&state, &self.bound_to(&plan.name));
                    let mut input = InputRequired::new(requests);
                    input.state = Some(state);
                    return Ok(CallOutcome::Ask(Box::new(input)));
                }
                Event::MadeWay => {
                    place.take();
                    return Err((made_way(&plan.name).into(), None));
                }
                Event::Over(Ok(said)) => {
                    // The lease is kept, so that a task begun there finds its instance alive.
                    let lease = place.take().expect("it is there").into_lease();
                    let result = self.answer_for_caller(said, revision, plan, lease.id());
                    record.kept = Some(lease);
                    return result.map_err(|error| (error.into(), None));
                }
                Event::Over(Err(CallError::Peer(error))) if is_about_urls(&error) => {
                    let asked = self.urls(error, forward.instance()).and_then(|mut result| {
                        if let CallOutcome::Ask(input) = &mut result {
                            self.admit_all(plan, input)?;
                        }
                        Ok(result)
                    });
                    place.take();
                    return asked.map_err(|error| (CallFailure::server(error, revision), None));
                }
                Event::Over(Err(error)) => {
                    let failed = Box::pin(self.failed(error, forward.instance())).await;
                    place.take();
                    return Err(failed);
                }
            }
        }
    }

    /// Passes an event on to the caller. It counts against the budget until the caller's queue has it.
    async fn pass_on(&self, (what, _held): (HandlerEvent, Held)) {
        let what = match &self.plugged {
            Some(view) => self.inspect_event(view, what).await,
            None => Some(what),
        };
        if let Some(what) = what {
            self.handle.say(self.call.key, what).await;
        }
    }

    /// Why a call failed, and with which error.
    async fn failed(
        &self,
        error: CallError,
        instance: &Instance,
    ) -> (CallFailure, Option<Box<CallError>>) {
        let error = self.or_unread(error, instance).await;
        let call_failure = match forward::failed(error.clone(), instance).await {
            Ok(said) => CallFailure::server(said, instance.opened.revision),
            Err(failure) => failure.into(),
        };
        (call_failure, Some(Box::new(error)))
    }

    /// Turns the server's answer into an answer for the caller, or into its question with the server's
    /// state sealed inside ours.
    fn answer_for_caller(
        &self,
        said: Json,
        revision: Revision,
        plan: &ServerPlan,
        instance: u64,
    ) -> Result<CallOutcome, ErrorObject> {
        let is_relayed = revision.era() == Era::Stateless && self.call.revision == revision;
        let asks = || Glance::of(&said).result_type == ResultType::InputRequired;
        if !is_relayed || !asks() {
            return Ok(CallOutcome::Answer(said, revision));
        }
        Ok(match stateless::decode_result(said.clone()) {
            Ok(stateless::Decoded::InputRequired(mut input)) => {
                self.admit_all(plan, &mut input)?;
                let state = Sealed::Relayed(input.state.take(), instance);
                input.state = Some(self.shared.seals.state(&state, &self.bound_to(&plan.name)));
                CallOutcome::Ask(Box::new(input))
            }
            _ => CallOutcome::Answer(said, revision),
        })
    }

    /// Admits questions for the caller that the catalog allows and that its request says it can answer.
    fn admit_all(&self, plan: &ServerPlan, input: &mut InputRequired) -> Result<(), ErrorObject> {
        question::admit_all(&plan.name, plan.questions, input)?;
        let able = &self.call.peer.client;
        let missing = input.requests.iter().find_map(|(_, it)| missing_capability(it, able));
        missing.map_or(Ok(()), Err)
    }

    /// A server of 2025-11-25 answered `URLElicitationRequired`. A caller of the stateless era gets the pages as
    /// questions. Others get the server's error, and a notification when the page is done.
    fn urls(&self, error: ErrorObject, instance: &Instance) -> Result<CallOutcome, ErrorObject> {
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
                instance.will_complete(id, &self.handle);
            }
            return Err(error);
        }
        let requests = asked.into_iter().enumerate().map(|(at, mut url)| {
            url.elicitation_id = None;
            (format!("q{}", at + 1), InputRequest::Elicit(ElicitParams::Url(url)))
        });
        Ok(CallOutcome::Ask(Box::new(InputRequired::new(requests.collect()))))
    }

    /// What a sealed `requestState` is bound to.
    pub(crate) fn bound_to(&self, server: &str) -> String {
        let what = self.call.params.get("name").or_else(|| self.call.params.get("uri"));
        let arguments = self.call.params.get("arguments");
        let digest = self.digest.clone().unwrap_or_else(|| super::digest(arguments));
        format!(
            "{}\0{}\0{server}\0{}\0{}",
            self.caller.id,
            self.call.method.name,
            what.map(Json::get).unwrap_or_default(),
            digest,
        )
    }
}

/// Waits for a future, and notes since when if that takes time.
async fn noting_wait<T>(since: &mut Option<Instant>, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            since.get_or_insert_with(now);
        }
        polled
    })
    .await
}

/// Whether the caller has a session; every caller of the stateful era has one.
fn has_session(call: &Call) -> bool {
    call.revision.era() == Era::Stateful
}

/// Marks the outcome as unknown if an earlier try may have done the work.
fn or_unknown(mut call_failure: CallFailure, may_be_done: bool) -> CallFailure {
    if may_be_done && let CallFailure::Here(failure) = &mut call_failure {
        failure.done = Done::Unknown;
    }
    call_failure
}

fn is_about_urls(error: &ErrorObject) -> bool {
    error.code == trunkline_wire::code::URL_ELICITATION_REQUIRED
}

fn stale() -> ErrorObject {
    ErrorObject::invalid_params(
        "`requestState` is not valid here any more. Make the call again without it.",
    )
}

/// The call gave up its place to waiting calls while its question was open.
fn made_way(server: &str) -> Failure {
    let mut failure = Failure::new(
        Reason::MadeWay,
        Stage::Bridge,
        format!(
            "The call to `{server}` was cancelled while its question was open: another caller waited for \
             its place, and you had more places."
        ),
    );
    failure.done = Done::Unknown;
    failure.of(server).advice("Make the call again, with fewer calls at a time.")
}

/// The replica that held the call while its question was open is gone, and the call with it.
fn holder_gone(server: &str) -> Failure {
    let message = format!(
        "The replica of this gateway that had the call to `{server}` open is gone; the work may have been done."
    );
    let mut failure = Failure::new(Reason::OutcomeUnknown, Stage::Bridge, message);
    failure.done = Done::Unknown;
    failure.of(server).advice("Look at what was done before trying again.")
}

const ENDED: Reason = Reason::InstanceEnded;
const TRIES: u32 = 3;
