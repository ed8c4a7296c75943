//! Tasks: tool calls that outlive their request. One register serves the experimental tasks of
//! 2025-11-25 and the extension of 2026-07-28.

mod record;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{
    CallToolResult, InputRequest, Progress, TASKS_EXTENSION, Task, TaskStatus,
};

/// How many tasks there may be, and their TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskBounds {
    /// Tasks kept at once.
    pub tasks: usize,
    /// The TTL after the end of a task if the requestor sets none.
    pub ttl: Duration,
    /// The longest TTL, and the longest a task may run.
    pub max_ttl: Duration,
    /// The polling interval for requestors.
    pub poll: Duration,
    /// How long to wait for the result before the server answers with a task, where the server decides
    /// that (2026-07-28).
    pub inline: Duration,
}

impl Default for TaskBounds {
    fn default() -> Self {
        Self {
            tasks: 1024,
            ttl: Duration::from_secs(300),
            max_ttl: Duration::from_secs(24 * 3600),
            poll: Duration::from_millis(500),
            inline: Duration::from_millis(200),
        }
    }
}

/// The tasks of a server.
#[derive(Debug, Default)]
pub struct Tasks {
    bounds: TaskBounds,
    tasks: BTreeMap<String, Record>,
    created: u64,
}

/// One task.
#[derive(Debug)]
pub struct Record {
    task: Task,
    /// The principal it belongs to, if any.
    owner: Option<String>,
    order: u64,
    /// The deadline of its work.
    ends: Instant,
    /// When it is removed; not before it is over.
    expires: Instant,
    outcome: Option<TaskOutcome>,
    questions: BTreeMap<String, InputRequest>,
    /// The answers so far, each with the question it answers.
    answers: BTreeMap<String, (Json, Json)>,
    /// Whether another process works on it: the state here may be stale.
    is_elsewhere: bool,
    /// Whether no requestor knows it yet: its call may still get the result instead.
    is_draft: bool,
    /// The last reported progress.
    progress: Option<Progress>,
}

/// The answer to a call that may become a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Its outcome; the task is removed.
    Done(TaskOutcome),
    /// The task, which the requestor knows from now on.
    Task(Task),
}

/// The outcome of a task.
pub type TaskOutcome = Result<CallToolResult, ErrorObject>;

/// A task as it is persisted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedTask {
    /// The task.
    pub task: Task,
    /// The principal it belongs to.
    pub owner: Option<String>,
    /// Its outcome, once it is over.
    pub outcome: Option<TaskOutcome>,
    /// The open questions.
    pub questions: BTreeMap<String, InputRequest>,
    /// The answers so far, each with the question it answers.
    pub answers: BTreeMap<String, (Json, Json)>,
}

/// Why a task cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// There is no such task, or it has expired.
    Unknown,
    /// It is over.
    Terminal,
    /// There are too many.
    Full,
}

impl Tasks {
    /// An empty register.
    pub fn new(bounds: TaskBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Creates a task under an unguessable id. `stamp` is the wall-clock time.
    pub fn create(
        &mut self,
        id: String,
        owner: Option<String>,
        ttl_ms: Option<u64>,
        stamp: String,
        now: Instant,
    ) -> Result<Task, TaskError> {
        self.expire(now);
        if self.tasks.len() >= self.bounds.tasks {
            return Err(TaskError::Full);
        }
        let ttl = ttl_ms.map_or(self.bounds.ttl, Duration::from_millis).min(self.bounds.max_ttl);
        let mut task = Task::new(id.clone(), stamp);
        task.ttl_ms = Some(millis(ttl));
        task.poll_interval_ms = Some(millis(self.bounds.poll));
        let order = self.next_order();
        let record = Record {
            task: task.clone(),
            owner,
            order,
            ends: now + self.bounds.max_ttl,
            expires: now + self.bounds.max_ttl + ttl,
            outcome: None,
            questions: BTreeMap::new(),
            answers: BTreeMap::new(),
            is_elsewhere: false,
            is_draft: false,
            progress: None,
        };
        self.tasks.insert(id, record);
        Ok(task)
    }

    /// Loads a persisted task, replacing the local copy. It is removed at `expires`.
    pub fn restore(
        &mut self,
        saved: SavedTask,
        is_elsewhere: bool,
        expires: Instant,
        now: Instant,
    ) -> Result<(), TaskError> {
        self.expire(now);
        let id = saved.task.task_id.clone();
        let known = self.tasks.get(&id).map(|it| it.order);
        if known.is_none() && self.tasks.len() >= self.bounds.tasks {
            return Err(TaskError::Full);
        }
        let order = known.unwrap_or_else(|| self.next_order());
        let SavedTask { task, owner, outcome, questions, answers } = saved;
        let ttl = Duration::from_millis(task.ttl_ms.unwrap_or(0));
        let ends = expires.checked_sub(ttl).unwrap_or(now);
        let record = Record {
            task,
            owner,
            order,
            ends,
            expires,
            outcome,
            questions,
            answers,
            is_elsewhere,
            is_draft: false,
            progress: None,
        };
        self.tasks.insert(id, record);
        Ok(())
    }

    /// One task.
    pub fn get(&mut self, id: &str, now: Instant) -> Result<&Record, TaskError> {
        self.expire(now);
        self.tasks.get(id).ok_or(TaskError::Unknown)
    }

    /// The tasks of `owner` in order of creation after `after`: at most `page`, and the cursor of the
    /// next page.
    pub fn list(
        &mut self,
        owner: Option<&str>,
        after: u64,
        page: usize,
        now: Instant,
    ) -> (Vec<&Record>, Option<u64>) {
        self.expire(now);
        let is_next =
            |it: &&Record| it.order > after && it.owner.as_deref() == owner && !it.is_draft;
        let mut found: Vec<_> = self.tasks.values().filter(is_next).collect();
        found.sort_by_key(|it| it.order);
        let more = found.len() > page;
        found.truncate(page);
        let next = more.then(|| found.last().map_or(after, |it| it.order));
        (found, next)
    }

    /// The handler has finished.
    pub fn finish(
        &mut self,
        id: &str,
        outcome: Result<CallToolResult, ErrorObject>,
        stamp: String,
        now: Instant,
    ) -> Result<&Record, TaskError> {
        let record = self.running(id)?;
        record.expires = record.expires_if_over(now);
        let mut saved = record.save();
        saved.finish(outcome, stamp);
        record.task = saved.task;
        record.outcome = saved.outcome;
        record.questions.clear();
        Ok(record)
    }

    /// The requestor cancels the task.
    pub fn cancel(&mut self, id: &str, stamp: String, now: Instant) -> Result<&Record, TaskError> {
        let record = self.running(id)?;
        record.expires = record.expires_if_over(now);
        record.task.status = TaskStatus::Cancelled;
        record.task.status_message = Some("The task was cancelled.".to_owned());
        record.questions.clear();
        record.task.last_updated_at = stamp;
        Ok(record)
    }

    /// The handler asks the requestor under a new key. Returns the answer if the same question was
    /// answered before a crash.
    pub fn ask(
        &mut self,
        id: &str,
        key: &str,
        question: InputRequest,
        stamp: String,
    ) -> Result<Option<Json>, TaskError> {
        let record = self.running(id)?;
        if let Some(answer) = record.answer(key, &Json::of(&question)) {
            return Ok(Some(answer.clone()));
        }
        record.questions.insert(key.to_owned(), question);
        record.task.status = TaskStatus::InputRequired;
        record.task.last_updated_at = stamp;
        Ok(None)
    }

    /// The handler reports progress.
    pub fn say(&mut self, id: &str, step: Progress, stamp: String) -> Result<&Record, TaskError> {
        let record = self.running(id)?;
        record.task.status_message = Some(match (&step.message, step.total) {
            (Some(message), _) => message.clone(),
            (None, Some(total)) => format!("{} of {total}", step.progress),
            (None, None) => format!("{}", step.progress),
        });
        record.progress = Some(step);
        record.task.last_updated_at = stamp;
        Ok(record)
    }

    /// The requestor answers; returns the answers to open questions.
    pub fn answer(
        &mut self,
        id: &str,
        responses: &Object,
        stamp: String,
    ) -> Result<Vec<(String, Json)>, TaskError> {
        let record = self.running(id)?;
        let mut answers = Vec::new();
        for (key, answer) in responses.iter() {
            if let Some(question) = record.questions.remove(key) {
                let given = (Json::of(&question), answer.clone());
                record.answers.insert(key.to_owned(), given);
                answers.push((key.to_owned(), answer.clone()));
            }
        }
        record.asked_enough(stamp);
        Ok(answers)
    }

    /// Removes a question that got no answer.
    pub fn withdraw(&mut self, id: &str, key: &str, stamp: String) -> Result<(), TaskError> {
        let record = self.running(id)?;
        record.questions.remove(key);
        record.asked_enough(stamp);
        Ok(())
    }

    fn running(&mut self, id: &str) -> Result<&mut Record, TaskError> {
        let record = self.tasks.get_mut(id).ok_or(TaskError::Unknown)?;
        if record.is_over() { Err(TaskError::Terminal) } else { Ok(record) }
    }

    /// Another process works on a task from now on.
    pub fn lend(&mut self, id: &str) {
        if let Some(record) = self.tasks.get_mut(id) {
            record.is_elsewhere = !record.is_over();
        }
    }

    /// Hides a task until it is [told](Self::tell).
    pub fn draft(&mut self, id: &str) {
        if let Some(record) = self.tasks.get_mut(id) {
            record.is_draft = true;
        }
    }

    /// Makes a hidden task visible: its call is answered with the outcome if there is one, else with
    /// the task.
    pub fn tell(&mut self, id: &str, now: Instant) -> Result<Told, TaskError> {
        self.expire(now);
        let record = self.tasks.get_mut(id).ok_or(TaskError::Unknown)?;
        if let Some(outcome) = record.outcome.take_if(|_| record.is_draft) {
            self.tasks.remove(id);
            return Ok(Told::Done(outcome));
        }
        record.is_draft = false;
        Ok(Told::Task(record.task.clone()))
    }

    /// Removes a task before its time.
    pub fn forget(&mut self, id: &str) {
        self.tasks.remove(id);
    }

    fn next_order(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    /// Removes expired tasks.
    fn expire(&mut self, now: Instant) {
        self.tasks.retain(|_, it| it.expires > now);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The error for a client that did not declare the extension of 2026-07-28.
/// ```
/// let message = trunkline_proto::task::missing_extension().message;
/// assert!(message.contains("`io.modelcontextprotocol/tasks`"));
/// ```
pub fn missing_extension() -> ErrorObject {
    let data = serde_json::json!({
        "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } }
    });
    let message = format!("This request must declare the extension `{TASKS_EXTENSION}`.");
    ErrorObject::new(code::MISSING_CLIENT_CAPABILITY, message).with_data(Json::of(&data))
}
