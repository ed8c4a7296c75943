//! What a call tells the recorder on its way: where it is, what is said to it and what it says.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_recording::line::Party;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::call_log::{CallTarget, Ended, Place, Stage, TO_CLIENT, TO_SERVER};
use super::kept_message::{KeptMessage, size_of_outcome};
use super::marked_tools::is_marked;
use super::{CallEntry, Recorder};
use crate::outcome;
use crate::trace::Trace;

/// A call while it is recorded.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(super) recorder: Arc<Recorder>,
    pub(super) entry: Arc<CallEntry>,
    /// When this round began.
    pub(super) began: Instant,
    /// The id of the request, if nobody sees how its answer leaves.
    pub(super) unseen: Option<Box<Id>>,
}

impl Recording {
    /// Those who follow the calls hear of it.
    pub(super) fn tell(&self) {
        self.recorder.traffic.tell(&self.entry);
    }

    /// The call has waited for an instance since then, and got none.
    pub(crate) fn waited(&self, since: Instant) {
        self.entry.log().enter(Stage::Wait, since);
    }

    /// The call is about to reach an instance, which is new if it started for it; the call was permitted and got the
    /// instance at these moments. What is marked as secret in the call is learned first.
    pub(crate) fn sends(
        &self,
        target: CallTarget,
        (permitted, at): (Option<Instant>, Instant),
        instance: (u64, Revision),
        is_new: bool,
        method: Method,
        params: &Object,
    ) {
        let marked = {
            let mut log = self.entry.log();
            log.target = Some(target);
            log.enter(Stage::Wait, permitted.unwrap_or(at));
            log.leased(instance, is_new, at);
            let tool = log.target.as_ref().and_then(|it| it.tool.as_ref());
            tool.filter(|it| self.recorder.traffic.is_marked(it)).cloned()
        };
        if marked.is_some() || self.has_members() {
            self.recorder.traffic.learn_call(marked.as_deref(), method, params);
        }
    }

    /// The server has answered the call; with nothing if it has gone.
    pub(crate) fn answered(&self, told: Option<&Json>) {
        match told {
            // What the server said is in the log, and when.
            Some(result) if self.has_members() => {
                self.recorder.traffic.learn(Party::Server, "result", result);
            }
            Some(_) => {}
            None => self.entry.log().enter(Stage::Carry, Instant::now()),
        }
    }

    /// A question of the server, or a question as it reaches the caller.
    pub(crate) fn asks(&self, place: Place, params: &Json) {
        if self.has_members() || is_marked(params) {
            self.recorder.traffic.learn(Party::Server, "params", params);
        }
        {
            let (at, mut log) = (Instant::now(), self.entry.log());
            log.questions += u32::from(place == TO_CLIENT);
            log.asks(at);
        }
        self.tell();
    }

    /// The answer to it. What its form marks as secret is learned before the server sees it.
    pub(crate) fn replies(&self, place: Place, told: Option<&Json>) {
        if let Some(answer) = told {
            self.recorder.traffic.learn(Party::Client, "result", answer);
        }
        if place == TO_SERVER {
            let (at, mut log) = (Instant::now(), self.entry.log());
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
        let at = self.began + after;
        let (bytes, server) = {
            let mut log = self.entry.log();
            log.target.get_or_insert_with(target);
            if let (Some(told), Some(id)) = (told, &self.unseen) {
                let (id, outcome) = (Some(Id::clone(id)), told.clone());
                log.note(TO_CLIENT, at, KeptMessage::of(&Message::Response { id, outcome }));
            }
            log.end(Ended { outcome, reason, at, trace: trace.unwrap_or(self.entry.id) });
            // The answer is on its way. If it is as large as expected, the ring need not hear of it again.
            log.known_bytes = match told.filter(|_| self.unseen.is_none()) {
                Some(told) => log.bytes_with(size_of_outcome(told)),
                None => log.bytes(),
            };
            (log.known_bytes, log.target.as_ref().and_then(|it| it.server.clone()))
        };
        if outcome == outcome::Outcome::Asked
            && let Some(Ok(input)) = told.filter(|it| it.as_ref().is_ok_and(is_marked))
        {
            traffic.learn(Party::Server, "result", input);
        }
        traffic.arrange(|kept| {
            kept.ring.takes(self.entry.number, bytes);
            if let Some(server) = &server {
                let now = at.saturating_duration_since(traffic.base.1);
                kept.count(server, after, outcome.is_failure(), now);
            }
        });
        traffic.tell(&self.entry);
        // The answer is on its way, and is written with the rest.
        let is_complete = told.is_none() || self.unseen.is_some();
        if let Some(file) = file.as_ref().filter(|_| is_complete) {
            file.write(&self.entry);
        }
    }

    fn has_members(&self) -> bool {
        !self.recorder.plan.redact.is_empty()
    }
}
