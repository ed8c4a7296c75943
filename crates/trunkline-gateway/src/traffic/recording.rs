//! What a call tells the recorder on its way: where it is, what is said to it and what it says.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Instant;

use trunkline_recording::line::Party;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Message, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::revision::Revision;

use super::Recorder;
use super::call_log::{CallTarget, Ended, Place, Stage, TO_CLIENT, TO_SERVER};
use super::journal::{Journal, Sends, What};
use super::kept_message::Heard;
use super::marked_tools::is_marked;
use crate::outcome;
use crate::trace::Trace;

/// A call while it is recorded.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(super) recorder: Arc<Recorder>,
    /// The number of the call.
    pub(super) number: u64,
    /// The id of the request, if nobody sees how its answer leaves.
    pub(super) answer_unseen: Option<Arc<Id>>,
    /// Whether the call began with a request that was received, and somebody sees how its answer leaves.
    pub(super) is_plain: bool,
}

impl Recording {
    fn note(&self, at: Instant, what: What) {
        self.recorder.traffic.kept().journal.note(self.number, at, what);
    }

    /// Those who follow the calls hear of it.
    fn tell(&self) {
        self.recorder.traffic.tell(self.number);
    }

    /// The call has waited for an instance since then, and got none.
    pub(crate) fn waited(&self, since: Instant) {
        self.note(since, What::Enters(Stage::Wait));
    }

    /// The call is about to reach an instance, which is new if it started for it. It got the instance at that moment, and
    /// has waited for it since another if at all. What is marked as secret in the call is learned first.
    #[inline]
    pub(crate) fn sends(
        &self,
        to: CallTarget,
        (waits, at): (Option<Instant>, Instant),
        (instance, revision): (u64, Revision),
        is_new: bool,
        method: Method,
        params: &Object,
    ) {
        let traffic = &self.recorder.traffic;
        let marked = to.tool().filter(|it| traffic.is_marked(it));
        if marked.is_some() || self.has_members() {
            traffic.learn_call(marked.map(|it| &**it), method, params);
        }
        let mut kept = traffic.kept();
        let sends = || Sends { to, instance, revision, is_new, waits };
        kept.journal.sends(self.number, at, sends);
    }

    /// The server has answered the call; with nothing if it has gone.
    pub(crate) fn answered(&self, told: Option<&Json>) {
        match told {
            // What the server said is in the log, and when.
            Some(result) if self.has_members() => {
                self.recorder.traffic.learn(Party::Server, "result", result);
            }
            Some(_) => {}
            None => self.note(Instant::now(), What::Enters(Stage::Carry)),
        }
    }

    /// A question of the server, or a question as it reaches the caller.
    pub(crate) fn asks(&self, place: Place, params: &Json) {
        if self.has_members() || is_marked(params) {
            self.recorder.traffic.learn(Party::Server, "params", params);
        }
        self.note(Instant::now(), What::Asks(u32::from(place == TO_CLIENT)));
        self.tell();
    }

    /// The answer to it. What its form marks as secret is learned before the server sees it.
    pub(crate) fn replies(&self, place: Place, told: Option<&Json>) {
        if let Some(answer) = told {
            self.recorder.traffic.learn(Party::Client, "result", answer);
        }
        if place == TO_SERVER {
            self.note(Instant::now(), What::Enters(Stage::Upstream));
        }
    }

    /// The round ends with questions; the caller comes back with the `requestState`.
    pub(crate) fn parks(&self, questions: usize, state: Option<&str>) {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.note(Instant::now(), What::Parks(questions));
        state.into_iter().for_each(|it| self.is_called(it));
    }

    /// The caller may come back to the call under this name: a `requestState`, or the id of a task.
    pub(crate) fn is_called(&self, name: &str) {
        let traffic = &self.recorder.traffic;
        let digest = traffic.digests.hash_one(name);
        traffic.kept().journal.name(self.number, digest);
    }

    /// Whether the answer, which is about to be sent, ends the call for those who look at it, if the call has reached a
    /// server and succeeds.
    #[inline]
    pub(crate) fn is_ended_by_answer(&self) -> bool {
        self.is_plain
    }

    /// The call ends at this moment, or its round does.
    pub(crate) fn end(
        &self,
        (outcome, reason, trace): (outcome::Outcome, Option<&'static str>, Trace),
        told: Option<&Outcome>,
        at: Instant,
        target: impl FnOnce() -> CallTarget,
    ) {
        let Recorder { traffic, file, .. } = &*self.recorder;
        if outcome == outcome::Outcome::Asked {
            self.learn_questions(told);
        }
        let ended = Ended { outcome, reason, trace };
        self.end_in(&mut traffic.kept().journal, at, ended, told, target);
        self.tell();
        // The answer is on its way, and is written with the rest.
        let is_complete = told.is_none() || self.answer_unseen.is_some();
        if let Some(file) = file.as_ref().filter(|_| is_complete) {
            file.write(self.number);
        }
    }

    /// The same, with the answer if nobody sees how it leaves.
    fn end_in(
        &self,
        journal: &mut Journal,
        at: Instant,
        ended: Ended,
        told: Option<&Outcome>,
        target: impl FnOnce() -> CallTarget,
    ) {
        if !journal.has_target(self.number) {
            journal.note(self.number, at, What::IsAbout(target()));
        }
        if let (Some(told), Some(id)) = (told, &self.answer_unseen) {
            let (id, outcome) = (Some(Id::clone(id)), told.clone());
            let answer = Message::Response { id, outcome };
            let mut room = Vec::new();
            let heard = Heard::of(&answer, None, &mut room);
            journal.say(self.number, TO_CLIENT, at, heard);
        }
        journal.ends(self.number, at, ended);
    }

    /// Learns what the questions that end a round mark as secret.
    #[cold]
    fn learn_questions(&self, told: Option<&Outcome>) {
        if let Some(Ok(input)) = told.filter(|it| it.as_ref().is_ok_and(is_marked)) {
            self.recorder.traffic.learn(Party::Server, "result", input);
        }
    }

    fn has_members(&self) -> bool {
        !self.recorder.plan.redact.is_empty()
    }
}
