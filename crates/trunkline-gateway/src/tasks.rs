//! Tasks: calls that outlive their request. Follows each task of a server to its end, in its own generation.

mod drive;
mod entry;
mod registry;

use std::sync::Arc;

use trunkline_proto::PeerNotification;
use trunkline_transport::handler::Answer;
use trunkline_wire::json::Json;
use trunkline_wire::json::glance::Glance;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;

use crate::failure::{Done, Failure, Reason, Stage};
use crate::question::unrelated;
use crate::upstream_call::nobody;
pub(crate) use drive::{Drive, Ended, named};
pub(crate) use entry::{End, Entry, Known, Taken};
pub(crate) use registry::{Asker, Registry};

/// A server sent a notification about a task.
pub(crate) fn heard(registry: &Registry, instance: u64, heard: &PeerNotification) {
    let is_of_task = matches!(heard.method, Method::TasksStatus | Method::Tasks);
    if is_of_task && let Some(id) = heard.params.get("taskId").and_then(|it| it.to::<String>().ok())
    {
        registry.nudge(instance, &id);
    }
}

/// A server asks on behalf of a task. The question may arrive before the answer that names the task.
pub(crate) fn question(
    registry: &Arc<Registry>,
    instance: u64,
    task: String,
    method: Method,
    params: Object,
) -> Answer {
    let registry = Arc::clone(registry);
    Answer::later(async move {
        match registry.asker(instance, &task).await {
            Some(asker) => asker.asked(method, unrelated(params)).await,
            None => nobody("The question is for a task that nobody waits for."),
        }
    })
}

/// Whether a result reports a tool error.
fn is_error(said: &Json) -> bool {
    Glance::of(said).is_error
}

pub(crate) fn lost(server: &str) -> Failure {
    let message = format!("The instance of `{server}` that worked on the task is gone.");
    let mut failure = Failure::new(Reason::TaskLost, Stage::Call, message).of(server);
    failure.done = Done::Unknown;
    failure.advice("Look at what was done before trying again.")
}
