//! Failures of the gateway: why a call failed, with a message that says what to do.

mod reason;

use std::fmt;
use std::time::Duration;

use serde::Serialize;
pub use trunkline_proto::client::Done;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;

pub use reason::Reason;

/// How far a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A rule, a rate limit or a plugin refused it.
    Policy,
    /// There is nothing by that name.
    Route,
    /// No instance was free.
    Acquire,
    /// The program did not start.
    Spawn,
    /// The program started, but the handshake failed.
    Handshake,
    /// The call was made.
    Call,
    /// The answer cannot be carried to the caller's revision.
    Bridge,
}

/// A failure of the gateway itself, as opposed to an error that a server answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Why, for programs.
    pub reason: Reason,
    /// How far the call got.
    pub stage: Stage,
    /// The server.
    pub server: Option<String>,
    /// The instance.
    pub instance: Option<u64>,
    /// What happened, in a sentence.
    pub message: String,
    /// Whether the work was done, as far as known.
    pub done: Done,
    /// How the process ended: `exited with code 1`.
    pub exit: Option<String>,
    /// The last lines of stderr, redacted. For the operator only: other callers' work may be in them.
    pub stderr: Vec<String>,
    /// When a retry makes sense; `None` if it does not.
    pub retry_after: Option<Duration>,
    /// What to do, in a sentence.
    pub advice: Option<String>,
}

impl Failure {
    /// A failure at a stage, with nothing done.
    pub fn new(reason: Reason, stage: Stage, message: impl Into<String>) -> Self {
        Self {
            reason,
            stage,
            server: None,
            instance: None,
            message: message.into(),
            done: Done::No,
            exit: None,
            stderr: Vec::new(),
            retry_after: None,
            advice: None,
        }
    }

    /// Whether no instance could be started because all replicas have enough, or cannot be counted. It says nothing
    /// about the server.
    pub(crate) fn is_about_places(&self) -> bool {
        matches!(self.reason, Reason::TotalReached | Reason::StoreUnavailable)
    }

    /// Adds the server.
    #[must_use]
    pub fn of(mut self, server: &str) -> Self {
        self.server = Some(server.to_owned());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The error for the caller; `trace` identifies the call in logs and in the audit. It leaves out stderr,
    /// which may be about other callers.
    pub fn to_error(&self, trace: &str) -> ErrorObject {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            reason: &'a str,
            stage: Stage,
            done: Done,
            #[serde(skip_serializing_if = "Option::is_none")]
            server: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            instance: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            exit: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after_ms: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            advice: Option<&'a str>,
            trace_id: &'a str,
        }
        let data = Data {
            reason: self.reason.word(),
            stage: self.stage,
            done: self.done,
            server: self.server.as_deref(),
            instance: self.instance,
            exit: self.exit.as_deref(),
            retry_after_ms: self.retry_after.map(|it| it.as_millis() as u64),
            advice: self.advice.as_deref(),
            trace_id: trace,
        };
        let code = match self.stage {
            Stage::Route => trunkline_wire::code::INVALID_PARAMS,
            _ => trunkline_wire::code::INTERNAL_ERROR,
        };
        ErrorObject::new(code, self.told()).with_data(Json::of(&data))
    }
}

impl Failure {
    /// The sentences for a caller.
    fn told(&self) -> String {
        let logs = match &self.server {
            Some(server) if !self.stderr.is_empty() => {
                Some(format!("`trunkline logs {server}` shows what it wrote."))
            }
            _ => None,
        };
        self.sentences(logs.as_deref())
    }

    fn sentences(&self, last: Option<&str>) -> String {
        let mut all = self.message.clone();
        if let Some(exit) = &self.exit {
            all.push_str(&format!(" It {exit}."));
        }
        for more in [last, self.advice.as_deref()].into_iter().flatten() {
            all.push(' ');
            all.push_str(more);
        }
        all
    }
}

/// For the operator, with the last lines of stderr.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = last_words(&self.stderr).map(|it| format!("Its last words: {it}"));
        f.write_str(&self.sentences(last.as_deref()))
    }
}

impl std::error::Error for Failure {}

/// The most telling of the last lines of stderr. Node ends with its version; Python tracebacks and Rust panics
/// say what is wrong before they say where.
fn last_words(stderr: &[String]) -> Option<&String> {
    let says_why = |it: &&String| {
        let lower = it.to_lowercase();
        (lower.contains("error") || lower.contains("panicked"))
            && !it.trim_start().starts_with("at ")
    };
    let is_said = |it: &&String| !it.trim().is_empty() && !it.starts_with("Node.js v");
    let near = stderr.len().saturating_sub(NEAR);
    stderr[near..].iter().rev().find(says_why).or_else(|| stderr.iter().rev().find(is_said))
}

/// How many lines from the end are searched.
const NEAR: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_shown_to_the_operator_alone() {
        let mut failure = Failure::new(Reason::InstanceEnded, Stage::Call, "It ended.").of("time");
        failure.exit = Some("exited with code 1".to_owned());
        failure.stderr = vec!["alice was here".to_owned()];
        let told = Json::of(&failure.to_error("t1"));
        assert!(!told.get().contains("alice"), "{}", told.get());
        assert!(told.get().contains("exited with code 1. `trunkline logs time` shows"));
        assert!(failure.to_string().ends_with("Its last words: alice was here"), "{failure}");
        let node = [
            "x.js:1",
            "Error: no such key",
            "    at Object.<error> (x.js:1)",
            "",
            "Node.js v20.20.2",
        ];
        failure.stderr = node.map(str::to_owned).to_vec();
        assert!(failure.to_string().ends_with("Its last words: Error: no such key"), "{failure}");
    }
}
