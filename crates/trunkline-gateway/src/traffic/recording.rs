//! What a call tells the recorder on its way: where it is, what is said to it and what it says.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use trunkline_proto::HandlerEvent;
use trunkline_recording::line::Party;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::call_log::{CallTarget, Ended, FROM_SERVER, Place, Stage, TO_CLIENT, TO_SERVER};
use super::marked_tools::is_marked;
use super::{CallEntry, Recorder};
use crate::outcome;
use crate::trace::Trace;

/// A call while it is recorded.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(super) recorder: Arc<Recorder>,
    pub(super) entry: Arc<CallEntry>,
    /// How long before this round the call began.
    pub(super) earlier: Duration,
}

impl Recording {
    /// How long ago the call began, in its first round.
    pub(crate) fn now(&self) -> Duration {
        self.entry.now()
    }

    /// The call has waited for an instance since then, and got none.
    pub(crate) fn waited(&self, since: Duration) {
        self.entry.log().enter(Stage::Wait, since);
    }

    /// The call is about to reach an instance, which is new if it started for it. What is marked as secret in the
    /// call is learned first.
    pub(crate) fn sends(
        &self,
        target: (CallTarget, Option<Duration>),
        instance: (u64, Revision),
        is_new: bool,
        method: Method,
        params: &Object,
    ) {
        let at = self.entry.now();
        let (target, permitted) = target;
        let marked = {
            let mut log = self.entry.log();
            log.target = Some(target);
            log.enter(Stage::Wait, permitted.unwrap_or(at));
            log.leased(instance, is_new, at);
            log.call(TO_SERVER, (method, params, None), at);
            let tool = log.target.as_ref().and_then(|it| it.tool.as_ref());
            tool.filter(|it| self.recorder.traffic.is_marked(it)).cloned()
        };
        if marked.is_some() || self.has_members() {
            self.recorder.traffic.learn_call(marked.as_deref(), method, params);
        }
    }

    /// The server has answered the call; with nothing if it has gone.
    pub(crate) fn answered(&self, told: Option<Result<&Json, &ErrorObject>>) {
        let at = self.entry.now();
        {
            let mut log = self.entry.log();
            if let Some(told) = told {
                log.answer(FROM_SERVER, told, at);
            }
            log.enter(Stage::Carry, at);
        }
        if let Some(Ok(result)) = told.filter(|_| self.has_members()) {
            self.recorder.traffic.learn(Party::Server, "result", result);
        }
    }

    /// A progress or log message.
    pub(crate) fn event(&self, place: Place, event: &HandlerEvent) {
        let (at, mut log) = (self.entry.now(), self.entry.log());
        match event {
            HandlerEvent::Progress(it) => {
                let size = it.message.as_ref().map_or(0, String::len) + PROGRESS;
                log.notification(place, Method::Progress, size, || Object::of(it), at);
            }
            HandlerEvent::Log(it) => {
                let logger = it.logger.as_ref().map_or(0, String::len);
                let size = it.data.get().len() + logger + LOG;
                log.notification(place, Method::Message, size, || Object::of(it), at);
            }
            HandlerEvent::Pause(_) => {}
        }
    }

    /// A question of the server, or a question as it reaches the caller.
    pub(crate) fn asks(&self, place: Place, method: Method, params: &Json) -> i64 {
        if self.has_members() || is_marked(params) {
            self.recorder.traffic.learn(Party::Server, "params", params);
        }
        let object = Object::parse(params.get()).unwrap_or_default();
        let id = {
            let (at, mut log) = (self.entry.now(), self.entry.log());
            log.questions += u32::from(place == TO_CLIENT);
            log.enter(Stage::Question, at);
            log.request(place, (method, &object, None), at)
        };
        self.recorder.traffic.tell(&self.entry);
        id
    }

    /// The answer to it. What its form marks as secret is learned before the server sees it.
    pub(crate) fn replies(&self, place: Place, id: i64, told: Result<&Json, &ErrorObject>) {
        if let Ok(answer) = told {
            self.recorder.traffic.learn(Party::Client, "result", answer);
        }
        let (at, mut log) = (self.entry.now(), self.entry.log());
        log.response(place, id, told, at);
        if place == TO_SERVER {
            log.enter(Stage::Upstream, at);
        }
    }

    /// The round ends with questions; the caller comes back with the `requestState`.
    pub(crate) fn parks(&self, questions: usize, state: Option<&str>) {
        self.entry.log().questions += u32::try_from(questions).unwrap_or(u32::MAX);
        state.into_iter().for_each(|it| self.is_called(it));
    }

    /// The caller may come back to the call under this name: a `requestState`, or the id of a task.
    pub(crate) fn is_called(&self, name: &str) {
        let traffic = &self.recorder.traffic;
        let digest = traffic.digests.hash_one(name);
        traffic.kept().ring.name(self.entry.number, digest);
    }

    /// The call ends, or its round does, after this long.
    pub(crate) fn end(
        &self,
        ended: (outcome::Outcome, Option<&'static str>, Option<Trace>),
        told: Option<&Outcome>,
        after: Duration,
        target: impl FnOnce() -> CallTarget,
    ) {
        let (outcome, reason, trace) = ended;
        let Recorder { traffic, file, .. } = &*self.recorder;
        let (bytes, counted) = {
            let (at, mut log) = (self.earlier + after, self.entry.log());
            log.target.get_or_insert_with(target);
            if let Some(told) = told {
                log.answer(TO_CLIENT, told.as_ref(), at);
            }
            log.end(Ended { outcome, reason, after: at, trace: trace.unwrap_or(self.entry.id) });
            let server = log.target.as_ref().and_then(|it| it.server.clone());
            (log.bytes(), server.map(|it| (it, self.entry.began + at)))
        };
        if outcome == outcome::Outcome::Asked
            && let Some(Ok(input)) = told.filter(|it| it.as_ref().is_ok_and(is_marked))
        {
            traffic.learn(Party::Server, "result", input);
        }
        traffic.arrange(|kept| {
            kept.ring.takes(self.entry.number, bytes);
            if let Some((server, moment)) = &counted {
                let now = moment.saturating_duration_since(traffic.base.1);
                kept.count(server, after, outcome.is_failure(), now);
            }
        });
        traffic.tell(&self.entry);
        if let Some(file) = file {
            file.write(&self.entry);
        }
    }

    fn has_members(&self) -> bool {
        !self.recorder.plan.redact.is_empty()
    }
}

/// The parts of a progress or log message around its texts.
const PROGRESS: usize = 32;
const LOG: usize = 40;
