//! One task: its state, its outcome and its owner.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::{CallToolResult, InputRequest, Progress, Task, TaskStatus};

use super::{Record, SavedTask, TaskOutcome};

impl SavedTask {
    /// The handler has finished.
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
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The task as 2025-11-25 sees it: a tool that reports an error has failed.
    pub fn core_task(&self) -> Task {
        let mut task = self.task.clone();
        if self.outcome.as_ref().is_some_and(|it| it.as_ref().is_ok_and(CallToolResult::is_error)) {
            task.status = TaskStatus::Failed;
        }
        task
    }

    /// Its outcome, once it is over; a cancelled task has none.
    pub fn outcome(&self) -> Option<&Result<CallToolResult, ErrorObject>> {
        self.outcome.as_ref()
    }

    /// Whether `caller` may see it. A task with an owner is visible to that owner only.
    pub fn is_for(&self, caller: Option<&str>) -> bool {
        self.owner.is_none() || self.owner.as_deref() == caller
    }

    /// When it is removed.
    pub fn expires(&self) -> Instant {
        self.expires
    }

    /// When it is removed if it ends `now`.
    pub fn expires_if_over(&self, now: Instant) -> Instant {
        match self.is_over() {
            true => self.expires,
            false => now + Duration::from_millis(self.task.ttl_ms.unwrap_or(0)),
        }
    }

    /// The deadline of its work.
    pub fn ends(&self) -> Instant {
        self.ends
    }

    /// Whether another process works on it: the state here may be stale.
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Whether no requestor knows it yet.
    pub fn is_draft(&self) -> bool {
        self.is_draft
    }

    /// The last reported progress.
    pub fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    /// The answer given to exactly this question.
    pub fn answer(&self, key: &str, question: &Json) -> Option<&Json> {
        self.answers.get(key).filter(|(asked, _)| asked == question).map(|(_, answer)| answer)
    }

    /// The task as it is persisted.
    pub fn save(&self) -> SavedTask {
        SavedTask {
            task: self.task.clone(),
            owner: self.owner.clone(),
            outcome: self.outcome.clone(),
            questions: self.questions.clone(),
            answers: self.answers.clone(),
        }
    }

    /// The open questions.
    pub fn questions(&self) -> &BTreeMap<String, InputRequest> {
        &self.questions
    }

    pub(super) fn asked_enough(&mut self, stamp: String) {
        if self.questions.is_empty() {
            self.task.status = TaskStatus::Working;
        }
        self.task.last_updated_at = stamp;
    }

    /// Whether its state is terminal.
    pub fn is_over(&self) -> bool {
        matches!(
            self.task.status,
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Cancelled
        )
    }
}
