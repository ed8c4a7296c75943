//! What one server asks and tells, outside its answers → whoever it is for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use trunkline_proto::{Call, Change, Heard, Utterance};
use trunkline_transport::handler::{Answer, Handler};
use trunkline_transport::voice::Voice;
use trunkline_wire::model::LogMessage;

use crate::caller::Caller;
use crate::line::{Line, OnLine, no_roots, nobody};
use crate::tasks;
use crate::upstream::Watcher;

/// Where the questions and notifications of one connection go.
pub(crate) struct Switch {
    id: u64,
    server: Arc<str>,
    watcher: Weak<dyn Watcher>,
    lines: Mutex<Lines>,
    /// Who waits to hear that a page was visited, by its name.
    visits: Mutex<VecDeque<(String, Voice)>>,
}

/// Who may be meant by what does not say whom it means.
#[derive(Default)]
struct Lines {
    open: Vec<Arc<Line>>,
    /// Callers who gave a call up, and until when the server may still be at work on it.
    left: Vec<(Arc<Caller>, Instant)>,
}

impl Lines {
    /// Whether nobody but this caller can be meant.
    fn are_all_of(&mut self, caller: &Caller) -> bool {
        let now = Instant::now();
        self.left.retain(|(_, until)| *until > now);
        self.open.iter().all(|it| it.caller.is(caller))
            && self.left.iter().all(|(it, _)| it.is(caller))
    }

    fn leave(&mut self, caller: &Arc<Caller>) {
        let now = Instant::now();
        self.left.retain(|(it, until)| *until > now && !it.is(caller));
        self.left.push((Arc::clone(caller), now + AFTERMATH));
    }
}

impl Switch {
    pub(crate) fn new(id: u64, server: Arc<str>, watcher: Weak<dyn Watcher>) -> Arc<Self> {
        let (lines, visits) = (Mutex::default(), Mutex::default());
        Arc::new(Self { id, server, watcher, lines, visits })
    }

    /// Opens a line for as long as the guard lives.
    pub(crate) fn open_line(self: &Arc<Self>, line: &Arc<Line>) -> OpenLine {
        self.lock().open.push(Arc::clone(line));
        OpenLine { switch: Arc::clone(self), line: Arc::clone(line), is_over: false }
    }

    /// Somebody is to hear when a page was visited. The oldest are forgotten.
    pub(crate) fn will_complete(&self, id: String, voice: &Voice) {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if visits.len() >= VISITS {
            visits.pop_front();
        }
        visits.push_back((id, voice.clone()));
    }

    fn completed(&self, id: &str) {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = visits.iter().position(|(it, _)| it == id)
            && let Some((id, voice)) = visits.remove(at)
        {
            // One whose queue is full has more to read than this.
            let _ = voice.try_changed(Change::ElicitationComplete(id));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line that a question belongs to, if that is beyond doubt: it says so itself, or all calls
    /// that are open are of one caller.
    fn line_of(&self, call: &Call) -> Result<Arc<Line>, &'static str> {
        if let Some(OnLine(line)) = call.attached.get() {
            return Ok(Arc::clone(line));
        }
        let mut lines = self.lock();
        let last = lines.open.last().cloned();
        let last = last.ok_or("No call is open that the question could belong to.")?;
        match lines.are_all_of(&last.caller) {
            true => Ok(last),
            false => Err("Several callers share this instance, and the question does not say \
                          which of them it is for. Set `maxConcurrent: 1` for this server."),
        }
    }
}

impl Handler for Switch {
    fn call(&self, call: Call, _: &Voice) -> Answer {
        let call = match tasks::route(call, self.id, &self.watcher) {
            Ok(answer) => return answer,
            Err(call) => call,
        };
        let method = call.method.name;
        match self.line_of(&call) {
            Ok(line) => {
                let mut params = call.params;
                let id = params.get("elicitationId").and_then(|it| it.to::<String>().ok());
                if let Some(id) = id {
                    self.will_complete(id, &line.voice);
                }
                if let Some(meta) = call.meta {
                    params.set("_meta", meta);
                }
                Answer::later(line.ask(method, params))
            }
            Err(_) if method == "roots/list" => Answer::Now(Ok(no_roots())),
            Err(why) => Answer::Now(nobody(why)),
        }
    }

    fn heard(&self, heard: Heard, _: &Voice) {
        if heard.method == "notifications/message" {
            let mut lines = self.lock();
            let [line] = &lines.open[..] else { return };
            let line = Arc::clone(line);
            // What belongs to a call that listens was said there.
            if (line.listens && heard.ticket.is_some()) || !lines.are_all_of(&line.caller) {
                return;
            }
            drop(lines);
            if let Ok(message) = heard.params.to::<LogMessage>() {
                line.say(Utterance::Log(message));
            }
            return;
        }
        if heard.method == "notifications/elicitation/complete" {
            let id = heard.params.get("elicitationId").and_then(|it| it.to::<String>().ok());
            return id.iter().for_each(|it| self.completed(it));
        }
        if let Some(watcher) = self.watcher.upgrade() {
            watcher.changed(&self.server, self.id, heard);
        }
    }
}

/// A line while its call is open.
pub(crate) struct OpenLine {
    switch: Arc<Switch>,
    line: Arc<Line>,
    is_over: bool,
}

impl OpenLine {
    /// Its call was answered: nothing more comes of it.
    pub(crate) fn over(&mut self) {
        self.is_over = true;
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        let mut lines = self.switch.lock();
        if let Some(at) = lines.open.iter().position(|it| Arc::ptr_eq(it, &self.line)) {
            lines.open.swap_remove(at);
        }
        if !self.is_over {
            lines.leave(&self.line.caller);
        }
    }
}

/// How long a server may still ask on behalf of a call that was given up.
const AFTERMATH: Duration = Duration::from_secs(10);
/// How many visited pages one instance can tell of.
const VISITS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_call_that_was_given_up_is_nobody_elses() {
        let (alice, bob) = (Arc::new(Caller::named("alice")), Caller::named("bob"));
        let mut lines = Lines::default();
        assert!(lines.are_all_of(&bob));
        lines.leave(&alice);
        lines.leave(&alice);
        assert_eq!(lines.left.len(), 1, "one caller is noted once");
        assert!(!lines.are_all_of(&bob), "it may be about the work of alice");
        assert!(lines.are_all_of(&alice));
        lines.left[0].1 = Instant::now();
        assert!(lines.are_all_of(&bob), "it is long ago");
        assert!(lines.left.is_empty());
    }
}
