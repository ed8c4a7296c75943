//! Tasks: tool calls that outlive their request. One register serves both generations, the
//! experimental tasks of 2025-11-25 and the extension of 2026-07-28.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{CallToolResult, InputRequest, TASKS_EXTENSION, Task, TaskStatus};

/// How many tasks there may be and how long they are kept.
/// ```
/// let bounds = trunkline_proto::task::TaskBounds { tasks: 10, ..Default::default() };
/// assert!(bounds.ttl < bounds.max_ttl);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskBounds {
    /// Tasks kept at once.
    pub tasks: usize,
    /// How long a task is kept after its end when the requestor does not say.
    pub ttl: Duration,
    /// The longest a task is kept after its end, and the longest it may work.
    pub max_ttl: Duration,
    /// How often a requestor should ask.
    pub poll: Duration,
}

impl Default for TaskBounds {
    fn default() -> Self {
        Self {
            tasks: 1024,
            ttl: Duration::from_secs(300),
            max_ttl: Duration::from_secs(24 * 3600),
            poll: Duration::from_millis(500),
        }
    }
}

/// The tasks of a server.
/// ```
/// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
/// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
/// # tasks.create("t".into(), None, None, noon(), now).unwrap();
/// let done = tasks.finish("t", Ok(CallToolResult::text("booked")), noon(), now).unwrap();
/// assert_eq!(done.task().status, TaskStatus::Completed);
/// ```
#[derive(Debug, Default)]
pub struct Tasks {
    bounds: TaskBounds,
    tasks: BTreeMap<String, Record>,
    created: u64,
}

/// One task.
/// ```
/// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
/// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
/// assert!(!tasks.get("t", now).unwrap().is_over());
/// ```
#[derive(Debug)]
pub struct Record {
    task: Task,
    /// Whom it belongs to, if it belongs to somebody.
    owner: Option<String>,
    order: u64,
    /// When its work must be over.
    ends: Instant,
    /// When it is forgotten; not before it is over.
    expires: Instant,
    outcome: Option<TaskOutcome>,
    questions: BTreeMap<String, InputRequest>,
    /// The answers so far, each with the question it was given to.
    answers: BTreeMap<String, (Json, Json)>,
    /// Whether somebody else works on it: what is known here may be old.
    is_elsewhere: bool,
}

/// What a task came to.
pub type TaskOutcome = Result<CallToolResult, ErrorObject>;

/// A task as it is kept where it outlives the process.
/// ```
/// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
/// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
/// # tasks.create("t".into(), None, None, noon(), now).unwrap();
/// let saved = tasks.get("t", now).unwrap().save();
/// assert_eq!(Json::of(&saved).to::<SavedTask>().unwrap(), saved);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedTask {
    /// The task.
    pub task: Task,
    /// Whom it belongs to.
    pub owner: Option<String>,
    /// What it came to, once it is over.
    pub outcome: Option<TaskOutcome>,
    /// The questions that wait for an answer.
    pub questions: BTreeMap<String, InputRequest>,
    /// The answers so far, each with the question it was given to.
    pub answers: BTreeMap<String, (Json, Json)>,
}

/// Why a task cannot be changed.
/// ```
/// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
/// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
/// tasks.cancel("t", "12:00".into(), now).unwrap();
/// assert_eq!(tasks.cancel("t", "12:01".into(), now).err(), Some(TaskError::Terminal));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// There is no such task, or it has been forgotten.
    Unknown,
    /// It is over.
    Terminal,
    /// There are too many.
    Full,
}

impl Tasks {
    /// An empty register.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*;
    /// let mut tasks = Tasks::new(TaskBounds { tasks: 0, ..TaskBounds::default() });
    /// let full = tasks.create("t".into(), None, None, "12:00".into(), Instant::now());
    /// assert_eq!(full, Err(TaskError::Full));
    /// ```
    pub fn new(bounds: TaskBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Begins a task under an id that nobody can guess. `stamp` is the wall clock's time.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// let task = tasks.create("other".into(), None, Some(5_000), "12:00".into(), now).unwrap();
    /// assert_eq!(task.ttl_ms, Some(5_000));
    /// ```
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
        };
        self.tasks.insert(id, record);
        Ok(task)
    }

    /// Takes in a task that was kept elsewhere, in the place of what is known of it. It is
    /// forgotten at `expires`.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// let (saved, later) = (tasks.get("t", now).unwrap().save(), now + Duration::from_secs(9));
    /// tasks.restore(saved, true, later, now).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().expires(), later);
    /// ```
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
        let record =
            Record { task, owner, order, ends, expires, outcome, questions, answers, is_elsewhere };
        self.tasks.insert(id, record);
        Ok(())
    }

    /// One task.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(tasks.get("t", now).is_ok() && tasks.get("other", now).is_err());
    /// ```
    pub fn get(&mut self, id: &str, now: Instant) -> Result<&Record, TaskError> {
        self.expire(now);
        self.tasks.get(id).ok_or(TaskError::Unknown)
    }

    /// The tasks of `owner` in order of creation, from `after` on: at most `page` of them, and
    /// where to go on.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// tasks.create("mine".into(), Some("alice".into()), None, "12:00".into(), now).unwrap();
    /// let (found, next) = tasks.list(Some("alice"), 0, 10, now);
    /// assert_eq!((found.len(), found[0].task().task_id.as_str(), next), (1, "mine", None));
    /// ```
    pub fn list(
        &mut self,
        owner: Option<&str>,
        after: u64,
        page: usize,
        now: Instant,
    ) -> (Vec<&Record>, Option<u64>) {
        self.expire(now);
        let is_next = |it: &&Record| it.order > after && it.owner.as_deref() == owner;
        let mut found: Vec<_> = self.tasks.values().filter(is_next).collect();
        found.sort_by_key(|it| it.order);
        let more = found.len() > page;
        found.truncate(page);
        let next = more.then(|| found.last().map_or(after, |it| it.order));
        (found, next)
    }

    /// The handler is done.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// let done = Ok(trunkline_wire::model::CallToolResult::text("booked"));
    /// assert!(tasks.finish("t", done, "12:00".into(), now).unwrap().is_over());
    /// ```
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

    /// The requestor does not want it any more.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(tasks.cancel("t", "12:00".into(), now).unwrap().is_over());
    /// ```
    pub fn cancel(&mut self, id: &str, stamp: String, now: Instant) -> Result<&Record, TaskError> {
        let record = self.running(id)?;
        record.expires = record.expires_if_over(now);
        record.task.status = TaskStatus::Cancelled;
        record.task.status_message = Some("The task was cancelled.".to_owned());
        record.questions.clear();
        record.task.last_updated_at = stamp;
        Ok(record)
    }

    /// The handler has a question for the requestor, under a key that the call has not used yet.
    /// Returns the answer if there is one already: to the same question before a fall.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// let roots = trunkline_wire::model::InputRequest::Roots;
    /// assert_eq!(tasks.ask("t", "where", roots, "12:00".into()), Ok(None));
    /// ```
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

    /// The handler says how it gets on.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// let task = tasks.say("t", "Half way.".into(), "12:00".into()).unwrap().task();
    /// assert_eq!(task.status_message.as_deref(), Some("Half way."));
    /// ```
    pub fn say(&mut self, id: &str, message: String, stamp: String) -> Result<&Record, TaskError> {
        let record = self.running(id)?;
        record.task.status_message = Some(message);
        record.task.last_updated_at = stamp;
        Ok(record)
    }

    /// The requestor answers; returns the answers to questions that are open.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
    /// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
    /// # tasks.create("t".into(), None, None, noon(), now).unwrap();
    /// tasks.ask("t", "where", InputRequest::Roots, noon()).unwrap();
    /// let given = trunkline_wire::jsonrpc::Object::parse(r#"{"where":{},"unasked":1}"#).unwrap();
    /// assert_eq!(tasks.answer("t", &given, noon()).unwrap().len(), 1);
    /// ```
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

    /// A question was not answered, and is no longer asked.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
    /// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
    /// # tasks.create("t".into(), None, None, noon(), now).unwrap();
    /// tasks.ask("t", "where", InputRequest::Roots, noon()).unwrap();
    /// tasks.withdraw("t", "where", noon()).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().task().status, TaskStatus::Working);
    /// ```
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

    /// Somebody else works on a task from now on.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// tasks.lend("t");
    /// assert!(tasks.get("t", now).unwrap().is_elsewhere());
    /// ```
    pub fn lend(&mut self, id: &str) {
        if let Some(record) = self.tasks.get_mut(id) {
            record.is_elsewhere = !record.is_over();
        }
    }

    /// Forgets a task before its time.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// tasks.forget("t");
    /// assert_eq!(tasks.get("t", now).err(), Some(TaskError::Unknown));
    /// ```
    pub fn forget(&mut self, id: &str) {
        self.tasks.remove(id);
    }

    fn next_order(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    /// Forgets what has been kept long enough.
    fn expire(&mut self, now: Instant) {
        self.tasks.retain(|_, it| it.expires > now);
    }
}

impl SavedTask {
    /// The handler is done.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
    /// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
    /// # tasks.create("t".into(), None, None, noon(), now).unwrap();
    /// let mut saved = tasks.get("t", now).unwrap().save();
    /// saved.finish(Ok(CallToolResult::text("booked")), noon());
    /// assert_eq!(saved.task.status, TaskStatus::Completed);
    /// ```
    pub fn finish(&mut self, outcome: TaskOutcome, stamp: String) {
        self.task.status = if outcome.is_ok() { TaskStatus::Completed } else { TaskStatus::Failed };
        self.task.status_message = outcome.as_ref().err().map(|error| error.message.clone());
        self.task.last_updated_at = stamp;
        self.outcome = Some(outcome);
        self.questions.clear();
    }
}

impl Record {
    /// The task as 2026-07-28 sees it: a tool that reports an error has still completed.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().task().task_id, "t");
    /// ```
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The task as 2025-11-25 sees it: a tool that reports an error has failed.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
    /// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
    /// # tasks.create("t".into(), None, None, noon(), now).unwrap();
    /// let record = tasks.finish("t", Ok(CallToolResult::error("Full.")), noon(), now).unwrap();
    /// assert_eq!(record.core_task().status, TaskStatus::Failed);
    /// ```
    pub fn core_task(&self) -> Task {
        let mut task = self.task.clone();
        if self.outcome.as_ref().is_some_and(|it| it.as_ref().is_ok_and(CallToolResult::is_error)) {
            task.status = TaskStatus::Failed;
        }
        task
    }

    /// What it came to, once it is over; a cancelled task has no outcome.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(tasks.get("t", now).unwrap().outcome().is_none(), "it is at work");
    /// ```
    pub fn outcome(&self) -> Option<&Result<CallToolResult, ErrorObject>> {
        self.outcome.as_ref()
    }

    /// Whether it is there for `caller`. What belongs to somebody is there for nobody else.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// tasks.create("mine".into(), Some("alice".into()), None, "12:00".into(), now).unwrap();
    /// let record = tasks.get("mine", now).unwrap();
    /// assert!(record.is_for(Some("alice")) && !record.is_for(Some("bob")));
    /// ```
    pub fn is_for(&self, caller: Option<&str>) -> bool {
        self.owner.is_none() || self.owner.as_deref() == caller
    }

    /// When it will be forgotten.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// tasks.cancel("t", "12:00".into(), now).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().expires(), now + TaskBounds::default().ttl);
    /// ```
    pub fn expires(&self) -> Instant {
        self.expires
    }

    /// When it will be forgotten if it is over `now`.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(tasks.get("t", now).unwrap().expires_if_over(now) > now);
    /// ```
    pub fn expires_if_over(&self, now: Instant) -> Instant {
        match self.is_over() {
            true => self.expires,
            false => now + Duration::from_millis(self.task.ttl_ms.unwrap_or(0)),
        }
    }

    /// When its work must be over.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().ends(), now + TaskBounds::default().max_ttl);
    /// ```
    pub fn ends(&self) -> Instant {
        self.ends
    }

    /// Whether somebody else works on it: what is known here may be old.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(!tasks.get("t", now).unwrap().is_elsewhere());
    /// ```
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// The answer that was given to exactly this question.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
    /// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
    /// # tasks.create("t".into(), None, None, noon(), now).unwrap();
    /// tasks.ask("t", "where", InputRequest::Roots, noon()).unwrap();
    /// let given = trunkline_wire::jsonrpc::Object::parse(r#"{"where":{}}"#).unwrap();
    /// tasks.answer("t", &given, noon()).unwrap();
    /// let record = tasks.get("t", now).unwrap();
    /// assert!(record.answer("where", &Json::of(&InputRequest::Roots)).is_some());
    /// ```
    pub fn answer(&self, key: &str, question: &Json) -> Option<&Json> {
        self.answers.get(key).filter(|(asked, _)| asked == question).map(|(_, answer)| answer)
    }

    /// The task as it is kept where it outlives the process.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().save().task.task_id, "t");
    /// ```
    pub fn save(&self) -> SavedTask {
        SavedTask {
            task: self.task.clone(),
            owner: self.owner.clone(),
            outcome: self.outcome.clone(),
            questions: self.questions.clone(),
            answers: self.answers.clone(),
        }
    }

    /// The questions that wait for an answer.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; use trunkline_wire::{json::*, model::*};
    /// # let (mut tasks, now, noon) = (Tasks::default(), Instant::now(), || "12:00".to_owned());
    /// # tasks.create("t".into(), None, None, noon(), now).unwrap();
    /// tasks.ask("t", "where", InputRequest::Roots, noon()).unwrap();
    /// assert!(tasks.get("t", now).unwrap().questions().contains_key("where"));
    /// ```
    pub fn questions(&self) -> &BTreeMap<String, InputRequest> {
        &self.questions
    }

    fn asked_enough(&mut self, stamp: String) {
        if self.questions.is_empty() {
            self.task.status = TaskStatus::Working;
        }
        self.task.last_updated_at = stamp;
    }

    /// Whether nothing will change any more.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(tasks.cancel("t", "12:00".into(), now).unwrap().is_over());
    /// ```
    pub fn is_over(&self) -> bool {
        matches!(
            self.task.status,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled
        )
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What a client hears that did not declare the extension of 2026-07-28.
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
