//! A task that an operator's call has become: its states → what the operator is told, and what is asked next. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};
use trunkline_wire::era::Tasks;

/// A task, in the generation of the revision that is spoken.
pub(super) struct FollowedTask {
    pub(super) id: String,
    /// Whether `tasks/cancel` was sent.
    pub(super) is_cancelled: bool,
    tasks: Tasks,
    /// The status and its message that the operator knows.
    told: Option<(Value, Value)>,
    /// The questions that the operator was asked: a key is used once in the life of a task.
    asked: BTreeSet<String>,
}

/// What follows from a state.
pub(super) enum Next {
    /// The data of the last event.
    Done(Value),
    /// Ask for its state after this long.
    Wait(Duration),
    /// As well, and these questions are open (2026-07-28).
    Asks(Map<String, Value>, Duration),
    /// Wait for its result (2025-11-25), and meanwhile ask for its state if there is a time.
    Result(Option<Duration>),
}

impl FollowedTask {
    /// The task that the result of a call reports, and its state.
    pub(super) fn of(tasks: Tasks, result: &mut Value) -> Option<(Self, Value)> {
        let state = match tasks {
            Tasks::Core if result["task"].is_object() && result.get("content").is_none() => {
                result["task"].take()
            }
            Tasks::Extension if result["resultType"] == "task" => result.take(),
            _ => return None,
        };
        let id = state["taskId"].as_str()?.to_owned();
        let (told, asked) = (None, BTreeSet::new());
        Some((Self { id, is_cancelled: false, tasks, told, asked }, state))
    }

    /// Whether a notification is about it.
    pub(super) fn is_of(&self, params: &Value) -> bool {
        params["taskId"] == self.id.as_str()
    }

    /// Whether the operator knows that it has ended.
    pub(super) fn is_over(&self) -> bool {
        let status = self.told.as_ref().and_then(|it| it.0.as_str());
        matches!(status, Some("completed" | "failed" | "cancelled"))
    }

    /// Whether it ended so.
    pub(super) fn was_cancelled(&self) -> bool {
        self.told.as_ref().is_some_and(|it| it.0 == "cancelled")
    }

    /// Whether the operator was not asked this before.
    pub(super) fn is_new(&mut self, question: &str) -> bool {
        self.asked.insert(question.to_owned())
    }

    /// The task is in this state. Returns what the operator does not know yet.
    pub(super) fn is_at(&mut self, mut state: Value) -> (Option<Value>, Next) {
        let next = self.next(&mut state);
        let now = (state["status"].clone(), state["statusMessage"].clone());
        let is_news = self.told.as_ref() != Some(&now);
        self.told = Some(now);
        let Value::Object(mut shown) = state else { return (None, next) };
        for member in NOT_SHOWN {
            shown.remove(*member);
        }
        (is_news.then_some(Value::Object(shown)), next)
    }

    fn next(&self, state: &mut Value) -> Next {
        let wished = ["pollIntervalMs", "pollInterval"].iter().find_map(|it| state[*it].as_u64());
        let time = wished.map_or(POLL, Duration::from_millis).clamp(SHORTEST, LONGEST);
        let status = state["status"].as_str().unwrap_or_default().to_owned();
        match (status.as_str(), self.tasks) {
            ("cancelled", _) => {
                let message = "The task was cancelled.";
                Next::Done(json!({ "error": { "code": -32000, "message": message } }))
            }
            ("completed" | "failed", Tasks::Core) => Next::Result(None),
            ("input_required", Tasks::Core) => Next::Result(Some(time)),
            // A notification says how it stands, and not always all of it.
            ("completed", _) if state["result"].is_object() => {
                Next::Done(json!({ "result": state["result"].take() }))
            }
            ("failed", _) if state["error"].is_object() => {
                Next::Done(json!({ "error": state["error"].take() }))
            }
            (_, Tasks::Core) => Next::Wait(time),
            _ => match state["inputRequests"].take() {
                Value::Object(open) => Next::Asks(open, time),
                _ => Next::Asks(Map::new(), time),
            },
        }
    }
}

/// The members of a state that the operator gets in another way.
const NOT_SHOWN: &[&str] = &["resultType", "result", "error", "inputRequests", "_meta"];
/// How long to wait if the server does not say, and the bounds of what it may say.
const POLL: Duration = Duration::from_millis(500);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(10);
