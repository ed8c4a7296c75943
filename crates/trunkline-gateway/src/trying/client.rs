//! A client of any revision for one call: what the gateway says → what is sent, and what the operator is told. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::method::Method;
use trunkline_wire::model::{TASKS_EXTENSION, meta};
use trunkline_wire::revision::{Era, Revision};

use super::followed_task::{FollowedTask, Next};

/// What happens next.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// A line for the gateway.
    Send(String),
    /// An event for the operator: its name and its data. `done` is the last.
    Tell(&'static str, Value),
    /// After this long, [`TryClient::due`]. It takes the place of an earlier one.
    Wait(Duration),
}

/// A client that makes one call, and follows it if it becomes a task.
pub(super) struct TryClient {
    revision: Revision,
    info: Value,
    method: String,
    params: Map<String, Value>,
    /// The id of the last request.
    id: u64,
    /// The requests that are not answered.
    requests: BTreeMap<u64, Purpose>,
    /// The questions that are not answered.
    questions: BTreeMap<String, Question>,
    /// How many requests of the gateway there were.
    asked: u32,
    /// The answers of this round, in the stateless era.
    answers: Map<String, Value>,
    state: Option<Value>,
    /// What the call has become.
    task: Option<FollowedTask>,
    /// How it ended, while its last state is asked for.
    end: Option<Value>,
    /// The error that ends it once its task is cancelled.
    given_up: Option<Value>,
}

/// How a question came.
#[derive(Clone, Debug)]
enum Question {
    /// As a request of this id, in the stateful era.
    Request(Value),
    /// In a result, in the stateless era.
    Round { is_elicitation: bool },
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Handshake,
    Call,
    /// `tasks/get`.
    State,
    /// `tasks/result`, in 2025-11-25.
    Result,
    /// `tasks/update`, in 2026-07-28.
    Answer,
    /// `tasks/cancel`.
    Cancel,
}

impl TryClient {
    /// `id` is the version that the client claims to have, by which its call is found.
    pub(super) fn new(
        revision: Revision,
        id: &str,
        method: &str,
        params: Map<String, Value>,
    ) -> Self {
        Self {
            revision,
            info: json!({ "name": NAME, "version": id }),
            method: method.to_owned(),
            params,
            id: 0,
            requests: BTreeMap::new(),
            questions: BTreeMap::new(),
            asked: 0,
            answers: Map::new(),
            state: None,
            task: None,
            end: None,
            given_up: None,
        }
    }

    /// Opens the conversation, or makes the call where there is nothing to open.
    pub(super) fn begin(&mut self) -> Vec<Act> {
        match self.revision.era() {
            Era::Stateless => vec![self.call()],
            Era::Stateful => {
                let params = json!({
                    "protocolVersion": self.revision.as_str(),
                    "capabilities": capabilities(),
                    "clientInfo": self.info,
                });
                vec![self.request(Purpose::Handshake, "initialize", params)]
            }
        }
    }

    /// The gateway says something.
    pub(super) fn hear(&mut self, line: &str) -> Vec<Act> {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("ping"), Some(id)) => {
                vec![send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }))]
            }
            (Some(method), Some(id)) => {
                self.asked += 1;
                let name = format!("r{}", self.asked);
                let told = json!({ "id": name, "method": method, "params": message["params"] });
                self.questions.insert(name, Question::Request(id.clone()));
                vec![Act::Tell("question", told)]
            }
            (Some("notifications/progress"), None) => {
                vec![Act::Tell("progress", message["params"].clone())]
            }
            (Some("notifications/message"), None) => {
                vec![Act::Tell("log", message["params"].clone())]
            }
            (Some("notifications/cancelled"), None) => {
                self.withdrawn(&message["params"]["requestId"])
            }
            (Some("notifications/tasks/status" | "notifications/tasks"), None) => {
                let is_ours = self.task.as_ref().is_some_and(|it| it.is_of(&message["params"]));
                if is_ours { self.is_at(message["params"].clone()) } else { Vec::new() }
            }
            (None, Some(id)) => {
                let purpose = id.as_u64().and_then(|it| self.requests.remove(&it));
                purpose.map_or_else(Vec::new, |purpose| self.answered(purpose, message))
            }
            _ => Vec::new(),
        }
    }

    /// The operator answers a question, or says why not.
    pub(super) fn answer(&mut self, name: &str, outcome: Result<Value, ErrorObject>) -> Vec<Act> {
        let is_elicitation = match self.questions.remove(name) {
            None => return Vec::new(),
            Some(Question::Request(id)) => {
                let (member, value) = match outcome {
                    Ok(result) => ("result", result),
                    Err(error) => ("error", json!(error)),
                };
                return vec![send(&json!({ "jsonrpc": "2.0", "id": id, member: value }))];
            }
            Some(Question::Round { is_elicitation }) => is_elicitation,
        };
        let result = match outcome {
            Ok(result) => result,
            // `inputResponses` hold results alone (2026-07-28): a form can be cancelled, for the rest there is no way to
            // say no.
            Err(_) if is_elicitation => json!({ "action": "cancel" }),
            Err(error) => return self.gives_up(&error),
        };
        if let Some(task) = &self.task {
            let params = json!({ "taskId": task.id, "inputResponses": { name: result } });
            return vec![self.request(Purpose::Answer, "tasks/update", params)];
        }
        self.answers.insert(name.to_owned(), result);
        match self.questions.is_empty() {
            true => vec![self.call()],
            false => Vec::new(),
        }
    }

    /// A question has an error for an answer, which cannot be said: the call ends, and its task is cancelled.
    fn gives_up(&mut self, error: &ErrorObject) -> Vec<Act> {
        let (revision, why) = (self.revision.as_str(), &error.message);
        let message = format!(
            "A client of {revision} cannot answer this question with an error, so the call was given up. {why}"
        );
        let end = json!({ "error": ErrorObject { message, ..error.clone() } });
        if self.task.is_none() {
            return vec![Act::Tell("done", end)];
        }
        self.given_up = Some(end);
        let cancel = self.leave().map(|it| Act::Send(it.1));
        cancel.into_iter().collect()
    }

    /// The time of [`Act::Wait`] is over.
    pub(super) fn due(&mut self) -> Vec<Act> {
        let is_asking = self.requests.values().any(|it| *it == Purpose::State);
        match &self.task {
            Some(task) if !is_asking => {
                let params = json!({ "taskId": task.id });
                vec![self.request(Purpose::State, "tasks/get", params)]
            }
            _ => Vec::new(),
        }
    }

    /// The operator cancels the call. A task is cancelled at its server, and followed to that end; whoever cancels again
    /// does not wait for it.
    pub(super) fn cancel(&mut self) -> Vec<Act> {
        match self.leave() {
            Some((_, line)) => vec![Act::Send(line)],
            None => vec![self.ended("The call was cancelled.")],
        }
    }

    /// Nobody is interested any more: what cancels the task, unless that was sent before, with its id.
    pub(super) fn leave(&mut self) -> Option<(u64, String)> {
        let task = self.task.as_mut().filter(|it| !it.is_cancelled)?;
        task.is_cancelled = true;
        let params = json!({ "taskId": task.id });
        match self.request(Purpose::Cancel, "tasks/cancel", params) {
            Act::Send(line) => Some((self.id, line)),
            _ => None,
        }
    }

    /// The call ends without an answer.
    pub(super) fn ended(&self, why: &str) -> Act {
        Act::Tell("done", json!({ "error": { "code": -32000, "message": why } }))
    }

    fn answered(&mut self, purpose: Purpose, mut message: Value) -> Vec<Act> {
        let result = message.get_mut("result").map(Value::take);
        if purpose == Purpose::Result {
            let end = result.map_or_else(
                || json!({ "error": message["error"] }),
                |result| json!({ "result": result }),
            );
            if self.task.as_ref().is_some_and(FollowedTask::is_over) {
                return vec![Act::Tell("done", end)];
            }
            self.end = Some(end);
            return self.due();
        }
        let Some(result) = result else {
            return match purpose {
                // The task may have ended meanwhile: its state says so.
                Purpose::Answer | Purpose::Cancel => self.due(),
                _ => {
                    let failed = || json!({ "error": message["error"] });
                    vec![Act::Tell("done", self.end.take().unwrap_or_else(failed))]
                }
            };
        };
        match purpose {
            Purpose::Handshake => {
                let heard = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                vec![send(&heard), self.call()]
            }
            Purpose::Call => self.called(result),
            Purpose::State => self.is_at(result),
            // In 2025-11-25 the answer is the state.
            Purpose::Cancel if result["status"].is_string() => self.is_at(result),
            Purpose::Answer | Purpose::Cancel | Purpose::Result => self.due(),
        }
    }

    /// The call has a result, has become a task, or asks.
    fn called(&mut self, mut result: Value) -> Vec<Act> {
        let tasks = self.revision.profile().tasks;
        if let Some((task, state)) = FollowedTask::of(tasks, &mut result) {
            self.task = Some(task);
            return self.is_at(state);
        }
        if result["resultType"] != "input_required" {
            return vec![Act::Tell("done", json!({ "result": result }))];
        }
        self.state = result.get_mut("requestState").map(Value::take);
        let asked = match result["inputRequests"].take() {
            Value::Object(asked) => asked,
            _ => Map::new(),
        };
        if asked.is_empty() {
            // There is nothing to answer: the call goes on as it is.
            return vec![self.call()];
        }
        asked.into_iter().map(|(name, question)| self.asks(name, &question)).collect()
    }

    /// The task is in this state.
    fn is_at(&mut self, state: Value) -> Vec<Act> {
        let Some(task) = &mut self.task else { return Vec::new() };
        let (told, next) = task.is_at(state);
        let mut acts: Vec<_> = told.into_iter().map(|it| Act::Tell("task", it)).collect();
        if let Some(end) = self.end.take() {
            acts.push(Act::Tell("done", end));
            return acts;
        }
        match next {
            Next::Done(data) => {
                let given_up = self.given_up.take().filter(|_| task.was_cancelled());
                acts.push(Act::Tell("done", given_up.unwrap_or(data)));
            }
            Next::Wait(time) => acts.push(Act::Wait(time)),
            Next::Asks(open, time) => {
                let gone: Vec<_> =
                    self.questions.keys().filter(|it| !open.contains_key(*it)).cloned().collect();
                for name in gone {
                    self.questions.remove(&name);
                    acts.push(Act::Tell("withdrawn", json!({ "id": name })));
                }
                for (name, question) in open {
                    if self.task.as_mut().is_some_and(|it| it.is_new(&name)) {
                        acts.push(self.asks(name, &question));
                    }
                }
                acts.push(Act::Wait(time));
            }
            Next::Result(time) => {
                let params = json!({ "taskId": task.id });
                // Questions come while it waits (2025-11-25 §Tasks, "Input Required Status").
                if !self.requests.values().any(|it| *it == Purpose::Result) {
                    acts.push(self.request(Purpose::Result, "tasks/result", params));
                }
                acts.extend(time.map(Act::Wait));
            }
        }
        acts
    }

    fn asks(&mut self, name: String, question: &Value) -> Act {
        let is_elicitation = question["method"] == Method::ElicitationCreate.name();
        self.questions.insert(name.clone(), Question::Round { is_elicitation });
        let (method, params) = (&question["method"], &question["params"]);
        Act::Tell("question", json!({ "id": name, "method": method, "params": params }))
    }

    /// The gateway no longer waits for the answer to its request.
    fn withdrawn(&mut self, request: &Value) -> Vec<Act> {
        let is_it = |it: &Question| matches!(it, Question::Request(id) if id == request);
        let found = self.questions.iter().find(|(_, it)| is_it(it));
        let Some(name) = found.map(|it| it.0.clone()) else { return Vec::new() };
        self.questions.remove(&name);
        vec![Act::Tell("withdrawn", json!({ "id": name }))]
    }

    /// The call, or its next round.
    fn call(&mut self) -> Act {
        let mut params = self.params.clone();
        if !self.method.ends_with("/list") {
            let given = params.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(given) = given {
                given.entry(meta::PROGRESS_TOKEN).or_insert_with(|| json!(PROGRESS));
            }
        }
        if self.revision.era() == Era::Stateless {
            if !self.answers.is_empty() {
                let answers = std::mem::take(&mut self.answers);
                params.insert("inputResponses".to_owned(), Value::Object(answers));
            }
            params.extend(self.state.take().map(|it| ("requestState".to_owned(), it)));
        }
        let method = self.method.clone();
        self.request(Purpose::Call, &method, Value::Object(params))
    }

    /// A request, in the stateless era with its envelope.
    fn request(&mut self, purpose: Purpose, method: &str, mut params: Value) -> Act {
        self.id += 1;
        self.requests.insert(self.id, purpose);
        if self.revision.era() == Era::Stateless {
            let mut envelope = match params["_meta"].take() {
                Value::Object(given) => given,
                _ => Map::new(),
            };
            let mut capabilities = capabilities();
            capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
            envelope.insert(meta::PROTOCOL_VERSION.to_owned(), json!(self.revision.as_str()));
            envelope.insert(meta::CLIENT_CAPABILITIES.to_owned(), capabilities);
            envelope.insert(meta::CLIENT_INFO.to_owned(), self.info.clone());
            envelope.entry(meta::LOG_LEVEL).or_insert_with(|| json!("debug"));
            params["_meta"] = Value::Object(envelope);
        }
        send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }))
    }
}

fn send(message: &Value) -> Act {
    Act::Send(message.to_string())
}

/// A person answers everything.
fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// The name of the client.
pub(crate) const NAME: &str = "trunkline-console";
const PROGRESS: &str = "try";

#[cfg(test)]
mod tests;
