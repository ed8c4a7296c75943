//! A call that may become a task → its result if that is ready soon, else the task. Until then the
//! task is a draft: no client knows it, and it is cancelled with the call.

use std::sync::Arc;

use tokio::time::timeout;
use trunkline_proto::task::{Record, TaskOutcome, Told};
use trunkline_transport::clock::now;
use trunkline_transport::handler::Answer;
use trunkline_wire::era::{stateful, stateless};
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::model::{Task, TaskStatus};
use trunkline_wire::revision::Revision;

use super::{Inner, Job, stamp, task_error};
use crate::server::context::{Context, lock};

impl Inner {
    /// Whether calls wait for their results before they become tasks.
    pub(super) fn waits(&self) -> bool {
        !self.tasks.inline.is_zero()
    }

    /// Starts the work, and answers with its result or with the task.
    pub(super) fn answer_inline(
        self: &Arc<Self>,
        id: String,
        revision: Revision,
        job: Job,
        context: Context,
    ) -> Answer {
        lock(&self.tasks.register).draft(&id);
        let draft = DraftTask(Some((Arc::clone(self), id.clone())));
        self.spawn_work(&id, job, context);
        let server = Arc::clone(self);
        Answer::later(async move {
            let told = server.wait_inline(&id).await;
            draft.keep();
            match told? {
                Told::Task(task) => server.publish_task(task).await,
                Told::Done(outcome) => {
                    Ok(stateful::encode(outcome?, revision, &server.extras(None)))
                }
            }
        })
    }

    /// Waits until a task ends, asks something, or the time is up.
    async fn wait_inline(self: &Arc<Self>, id: &str) -> Result<Told, ErrorObject> {
        let has_news = |record: &Record| {
            let asks = record.task().status == TaskStatus::InputRequired;
            (record.is_over() || asks || !record.is_draft()).then_some(())
        };
        // Whatever the outcome: the state of the task is read below.
        let _ = timeout(self.tasks.inline, self.tasks.wait(self, id, has_news)).await;
        lock(&self.tasks.register).tell(id, now()).map_err(task_error)
    }

    /// Answers with a draft task, which is announced by this.
    async fn publish_task(self: &Arc<Self>, task: Task) -> Outcome {
        let (server, id) = (Arc::clone(self), task.task_id.clone());
        let kept = async move {
            // The caller learns of a task only once it would survive a crash.
            let kept = server.keep_task(&id).await;
            if kept.is_err() {
                server.tasks.stop(&id);
                lock(&server.tasks.register).forget(&id);
            }
            kept
        };
        if self.tasks.keeper.is_some() {
            let gone = || Err(ErrorObject::internal("shutting_down", "The server ends."));
            self.run_detached(kept).await.unwrap_or_else(gone)?;
        }
        Ok(stateless::encode_task_created(&task, &self.extras(None)))
    }

    /// Records the outcome of a draft task. Returns whether it was a draft.
    pub(super) fn finish_draft(&self, id: &str, outcome: &TaskOutcome) -> bool {
        {
            // Under one lock, so that a task is announced either before this or after it.
            let mut register = lock(&self.tasks.register);
            let now = now();
            if !register.get(id, now).is_ok_and(Record::is_draft)
                || register.finish(id, outcome.clone(), stamp(), now).is_err()
            {
                return false;
            }
        }
        self.tasks.leave(id);
        self.tasks.changed.notify_waiters();
        true
    }

    /// Whether no client knows this task yet.
    pub(super) fn is_draft(&self, id: &str) -> bool {
        lock(&self.tasks.register).get(id, now()).is_ok_and(Record::is_draft)
    }
}

/// A draft task, which ends with its call.
struct DraftTask(Option<(Arc<Inner>, String)>);

impl DraftTask {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for DraftTask {
    fn drop(&mut self) {
        if let Some((server, id)) = self.0.take() {
            server.tasks.stop(&id);
            lock(&server.tasks.register).forget(&id);
        }
    }
}
