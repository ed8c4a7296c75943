//! One task: how it stands, what it came to, and for whom it is there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CallToolResult, InputRequest, Progress, Task, TaskStatus};

use super::{Record, SavedTask, TaskOutcome};

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

    /// Whether nobody has heard of it.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert!(!tasks.get("t", now).unwrap().is_draft());
    /// ```
    pub fn is_draft(&self) -> bool {
        self.is_draft
    }

    /// How far it is, as it was last said.
    /// ```
    /// # use std::time::*; use trunkline_proto::task::*; let mut tasks = Tasks::default();
    /// # let now = Instant::now(); tasks.create("t".into(), None, None, "".into(), now).unwrap();
    /// assert_eq!(tasks.get("t", now).unwrap().progress(), None);
    /// ```
    pub fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
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

    pub(super) fn asked_enough(&mut self, stamp: String) {
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
