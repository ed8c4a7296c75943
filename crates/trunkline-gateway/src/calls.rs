//! A ring of the last calls; once full, it records without allocating.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::policy::stamp::rfc3339;
use crate::trace::Trace;

/// What is recorded of a call. Never an argument or a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted<'a> {
    /// The server; empty if the call reached none.
    pub(crate) server: &'a str,
    /// `tools/call`, `resources/read`, …
    pub(crate) method: &'static str,
    /// The tool, prompt or resource.
    pub(crate) name: &'a str,
    /// The principal.
    pub(crate) principal: Option<&'a str>,
    /// When it ended.
    pub(crate) at: Instant,
    /// How long it took.
    pub(crate) took: Duration,
    /// The outcome.
    pub(crate) outcome: Outcome,
    /// The call's id in logs, in the audit and in errors to the caller.
    pub(crate) trace: Trace,
}

/// The last calls.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    slots: Vec<Slot>,
    /// The index of the next entry.
    next: usize,
}

#[derive(Debug)]
struct Slot {
    at: Instant,
    server: String,
    method: &'static str,
    name: String,
    principal: String,
    has_principal: bool,
    took: Duration,
    outcome: Outcome,
    trace: Trace,
}

impl Calls {
    /// Records a finished call.
    pub(crate) fn note(&self, call: Noted<'_>) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = ring.next;
        ring.next = (next + 1) % KEPT;
        if ring.slots.len() == next {
            ring.slots.push(Slot::new(call.at));
        }
        ring.slots[next].fill(call);
    }

    /// The last calls, newest first.
    pub(crate) fn recent(&self, limit: usize) -> Vec<Value> {
        let now = (Instant::now(), SystemTime::now());
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (newer, older) = ring.slots.split_at(ring.next.min(ring.slots.len()));
        let last = newer.iter().rev().chain(older.iter().rev()).take(limit);
        last.map(|it| it.to_json(now)).collect()
    }
}

impl Slot {
    fn new(at: Instant) -> Self {
        Self {
            at,
            server: String::new(),
            method: "",
            name: String::new(),
            principal: String::new(),
            has_principal: false,
            took: Duration::ZERO,
            outcome: Outcome::Ok,
            trace: Trace::default(),
        }
    }

    fn fill(&mut self, call: Noted<'_>) {
        (self.at, self.took, self.outcome) = (call.at, call.took, call.outcome);
        (self.trace, self.method) = (call.trace, call.method);
        self.has_principal = call.principal.is_some();
        for (slot, text) in [
            (&mut self.server, call.server),
            (&mut self.name, call.name),
            (&mut self.principal, call.principal.unwrap_or_default()),
        ] {
            slot.clear();
            slot.push_str(&text[..text.floor_char_boundary(LONGEST)]);
        }
    }

    /// The entry, at a moment whose time of day is known.
    fn to_json(&self, (now, today): (Instant, SystemTime)) -> Value {
        json!({
            "time": rfc3339(today - now.saturating_duration_since(self.at)),
            "server": if self.server.is_empty() { Value::Null } else { json!(self.server) },
            "method": self.method,
            "name": self.name,
            "principal": self.has_principal.then_some(&self.principal),
            "ms": (self.took.as_secs_f64() * 1e6).round() / 1e3,
            "outcome": self.outcome.word(),
            "traceId": self.trace.to_string(),
        })
    }
}

const KEPT: usize = 512;
/// The bytes kept of a name that a client chose.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn call<'a>(name: &'a str) -> Noted<'a> {
        Noted {
            server: "time",
            method: "tools/call",
            name,
            principal: None,
            at: Instant::now(),
            took: Duration::from_micros(1500),
            outcome: Outcome::Ok,
            trace: Trace::new(0, 1),
        }
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let calls = Calls::default();
        assert!(calls.recent(9).is_empty());
        for n in 0..KEPT + 3 {
            calls.note(call(&n.to_string()));
        }
        let all = calls.recent(usize::MAX);
        let names: Vec<_> = all.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), KEPT);
        assert_eq!((names[0], names[3], names[KEPT - 1]), ("514", "511", "3"));
        assert_eq!(calls.recent(2).len(), 2);
    }

    #[test]
    fn an_entry_shows_principal_target_and_duration() {
        let calls = Calls::default();
        calls.note(Noted { principal: Some("alice"), outcome: Outcome::ToolError, ..call("now") });
        calls.note(Noted { server: "", ..call(&"é".repeat(LONGEST)) });
        let mut recent = calls.recent(9);
        assert!(recent[0]["name"].as_str().unwrap().len() <= LONGEST);
        assert_eq!((&recent[0]["server"], &recent[0]["principal"]), (&Value::Null, &Value::Null));
        recent[1].as_object_mut().unwrap().remove("time").unwrap();
        assert_eq!(
            recent[1],
            json!({
                "server": "time", "method": "tools/call", "name": "now", "principal": "alice",
                "ms": 1.5, "outcome": "tool_error", "traceId": Trace::new(0, 1).to_string(),
            })
        );
    }
}
