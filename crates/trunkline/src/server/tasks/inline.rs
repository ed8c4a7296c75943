//! A call that may become a task → its result if that is there soon, else the task. Until then
//! nobody knows of the task, and it goes with the call.

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
    /// Whether calls wait for their results at all before they are tasks.
    pub(super) fn waits(&self) -> bool {
        !self.tasks.inline.is_zero()
    }

    /// Begins the work, and answers with what it came to or with the task.
    pub(super) fn answer_soon(
        self: &Arc<Self>,
        id: String,
        revision: Revision,
        job: Job,
        context: Context,
    ) -> Answer {
        lock(&self.tasks.register).draft(&id);
        let unheard = Unheard(Some((Arc::clone(self), id.clone())));
        self.work_on(&id, job, context.clone());
        let server = Arc::clone(self);
        Answer::later(async move {
            let told = server.wait_a_little(&id).await;
            unheard.keep();
            match told? {
                Told::Task(task) => server.tell_task(task).await,
                Told::Done(outcome) => {
                    context.be_heard().await;
                    Ok(stateful::encode(outcome?, revision, &server.extras(None)))
                }
            }
        })
    }

    /// Waits for the end of a task, as long as it asks nothing and does not take too long.
    async fn wait_a_little(self: &Arc<Self>, id: &str) -> Result<Told, ErrorObject> {
        let has_news = |record: &Record| {
            let asks = record.task().status == TaskStatus::InputRequired;
            (record.is_over() || asks || !record.is_draft()).then_some(())
        };
        // However that ends: how the task stands is looked up afterwards.
        let _ = timeout(self.tasks.inline, self.tasks.wait(self, id, has_news)).await;
        lock(&self.tasks.register).tell(id, now()).map_err(task_error)
    }

    /// Answers with a task that nobody has heard of before.
    async fn tell_task(self: &Arc<Self>, task: Task) -> Outcome {
        let (server, id) = (Arc::clone(self), task.task_id.clone());
        let kept = async move {
            // Nobody hears of a task that would not be there after a fall.
            let kept = server.keep_task(&id).await;
            if kept.is_err() {
                server.tasks.stop(&id);
                lock(&server.tasks.register).forget(&id);
            }
            kept
        };
        if self.tasks.keeper.is_some() {
            let gone = || Err(ErrorObject::internal("shutting_down", "The server ends."));
            self.see_through(kept).await.unwrap_or_else(gone)?;
        }
        Ok(stateless::encode_task_created(&task, &self.extras(None)))
    }

    /// Notes what a task came to that nobody has heard of. Says whether it was one.
    pub(super) fn done_at_once(&self, id: &str, outcome: &TaskOutcome) -> bool {
        {
            // Under one lock: whoever tells of the task does so before or after this.
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

    /// Whether nobody has heard of a task.
    pub(super) fn is_draft(&self, id: &str) -> bool {
        lock(&self.tasks.register).get(id, now()).is_ok_and(Record::is_draft)
    }
}

/// A task that nobody has heard of: it ends with the call.
struct Unheard(Option<(Arc<Inner>, String)>);

impl Unheard {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some((server, id)) = self.0.take() {
            server.tasks.stop(&id);
            lock(&server.tasks.register).forget(&id);
        }
    }
}
