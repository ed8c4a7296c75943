//! Tasks: calls that outlive their request.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::meta::TASK_PROGRESS;
use super::spelling::ordered;
use super::{InputRequest, InputResponse, Progress};
use crate::json::Json;
use crate::jsonrpc::{ErrorObject, Object};

model! {
    /// A task. Written in the spelling of the 2026-07-28 extension, read in both; [`crate::era::stateful`]
    /// writes that of 2025-11-25.
    #[derive(Eq)]
    pub struct Task {
        /// Its id, which is unguessable.
        pub task_id: String,
        /// Its status.
        pub status: TaskStatus,
        /// A message about the status.
        pub status_message?: String,
        /// When it began, in RFC 3339.
        pub created_at: String,
        /// When its status last changed, in RFC 3339.
        pub last_updated_at: String,
        /// Its TTL after it began; unlimited if `None`.
        #[serde(default, alias = "ttl")]
        pub ttl_ms: Option<u64>,
        /// The polling interval.
        #[serde(alias = "pollInterval")]
        pub poll_interval_ms?: u64,
    }
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It has questions.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has an error. In 2025-11-25 also: the tool's result has `isError`.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A task with its outcome so far.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    pub task: Task,
    /// The result, once completed.
    pub result: Option<Json>,
    /// The error, once failed.
    pub error: Option<ErrorObject>,
    /// The questions, while it has any.
    pub input_requests: Vec<(String, InputRequest)>,
    /// Its progress, if reported.
    pub progress: Option<Progress>,
}

model! {
    /// The request to run as a task (2025-11-25).
    #[derive(Copy, Default, Eq)]
    pub struct TaskRequest {
        /// Its TTL in milliseconds.
        #[serde(rename = "ttl")]
        pub ttl_ms?: u64,
    }

    /// The parameters of `tasks/get`, `tasks/result` and `tasks/cancel`.
    #[derive(Eq)]
    pub struct TaskParams {
        /// Which task.
        pub task_id: String,
    }

    /// The parameters of `tasks/update`.
    pub struct UpdateTaskParams {
        /// Which task.
        pub task_id: String,
        /// Answers, by the question's key.
        #[serde(default, with = "ordered")]
        pub input_responses: Vec<(String, InputResponse)>,
    }
}

/// The JSON is not a task in either spelling.
#[derive(Debug)]
pub struct UnknownTaskShape(serde_json::Error);

impl Task {
    /// A task that has just begun.
    pub fn new(task_id: impl Into<String>, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status: TaskStatus::Working,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }

    /// Reads a task that stands alone, or inside `task` as in the 2025-11-25 answer that creates it.
    pub fn read(raw: &Json) -> Result<Self, UnknownTaskShape> {
        let object = Object::parse(raw.get()).map_err(UnknownTaskShape)?;
        object.get("task").unwrap_or(raw).to().map_err(UnknownTaskShape)
    }
}

setters! { Task = Task::new("t-1", "2026-07-28T12:00:00Z");
    /// Sets its status.
    status(TaskStatus) = TaskStatus::Completed => r#""status":"completed""#;
    /// Sets the status message.
    status_message(String) = "Half of it is done." => r#""statusMessage":"Half of it is done.""#;
    /// Sets when its status last changed.
    last_updated_at(String) = "2026-07-28T12:00:05Z" => r#""lastUpdatedAt":"2026-07-28T12:00:05Z""#;
    /// Sets its TTL.
    ttl_ms(u64) = 60_000_u64 => r#""ttlMs":60000"#;
    /// Sets the polling interval.
    poll_interval_ms(u64) = 500_u64 => r#""pollIntervalMs":500"#;
}

impl TaskStatus {
    /// Whether the status is terminal.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl DetailedTask {
    /// A task without an outcome yet.
    pub fn new(task: Task) -> Self {
        Self { task, result: None, error: None, input_requests: Vec::new(), progress: None }
    }
}

setters! { DetailedTask = DetailedTask::new(Task::new("t-1", "2026-07-28T12:00:00Z"));
    /// Adds its result.
    result(Json) = Json::of(&CallToolResult::text("done")) => r#""result":{"content":"#;
    /// Adds its error.
    error(ErrorObject) = ErrorObject::new(-32603, "It broke.")
        => r#""error":{"code":-32603,"message":"It broke."}"#;
    /// Adds its questions.
    input_requests(Vec<(String, InputRequest)>) = [("where".to_owned(), InputRequest::Roots)]
        => r#""inputRequests":{"where":{"method":"roots/list"}}"#;
    /// Sets its progress.
    progress(Progress) = Progress::new(1.0).total(2.0)
        => r#""_meta":{"trunkline/progress":{"progress":1,"total":2}}"#;
}

impl TaskRequest {
    /// A TTL of the receiver's choice.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! { TaskRequest = TaskRequest::new();
    /// Sets its TTL in milliseconds.
    ttl_ms(u64) = 60_000_u64 => r#"{"ttl":60000}"#;
}

impl TaskParams {
    /// Names this task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into() }
    }
}

impl UpdateTaskParams {
    /// Answers questions of this task.
    pub fn new(task_id: impl Into<String>, input_responses: Vec<(String, InputResponse)>) -> Self {
        Self { task_id: task_id.into(), input_responses }
    }
}

impl fmt::Display for UnknownTaskShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "This is not a task: {}.", self.0)
    }
}

impl std::error::Error for UnknownTaskShape {}

/// The members beside a task's own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default)]
    result: Option<Json>,
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(default, with = "ordered")]
    input_requests: Vec<(String, InputRequest)>,
    #[serde(default, rename = "_meta")]
    meta: Option<Json>,
}

impl Outcome {
    /// The progress of the task; ignores a member of another shape.
    fn progress(&self) -> Option<Progress> {
        let meta = Object::parse(self.meta.as_ref()?.get()).ok()?;
        meta.get(TASK_PROGRESS)?.to().ok()
    }
}

impl<'de> Deserialize<'de> for DetailedTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let raw = Json::deserialize(deserializer)?;
        let task = Task::read(&raw).map_err(D::Error::custom)?;
        let outcome: Outcome = raw.to().map_err(D::Error::custom)?;
        let progress = outcome.progress();
        let Outcome { result, error, input_requests, .. } = outcome;
        Ok(Self { task, result, error, input_requests, progress })
    }
}

impl Serialize for DetailedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::of(&self.task);
        if let Some(result) = &self.result {
            object.set("result", result.clone());
        }
        if let Some(error) = &self.error {
            object.set("error", Json::of(error));
        }
        if !self.input_requests.is_empty() {
            object.set("inputRequests", Json::of(&Entries(&self.input_requests)));
        }
        if let Some(progress) = &self.progress {
            object.set("_meta", progress_meta(progress));
        }
        object.serialize(serializer)
    }
}

/// The `_meta` with the progress of a task.
pub(crate) fn progress_meta(progress: &Progress) -> Json {
    let mut meta = Object::default();
    meta.set(TASK_PROGRESS, Json::of(progress));
    meta.to_json()
}

struct Entries<'a>(&'a [(String, InputRequest)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ordered::serialize(self.0, serializer)
    }
}
