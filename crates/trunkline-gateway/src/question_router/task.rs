//! Routes the questions of a task to the caller that answers for it.

use std::sync::{Arc, Weak};

use trunkline_proto::Call;
use trunkline_transport::handler::Answer;
use trunkline_wire::era::stateful::RequestMeta;
use trunkline_wire::model::meta;

use crate::question::unrelated;
use crate::upstream_call::{OnTask, nobody};
use crate::watcher::Watcher;

/// Answers a question that belongs to a task. Returns any other.
pub(super) fn route(
    mut call: Call,
    instance: u64,
    watcher: &Weak<dyn Watcher>,
) -> Result<Answer, Call> {
    let related = call.meta.as_ref().filter(|it| it.get().contains(meta::RELATED_TASK));
    let task = related.and_then(|it| RequestMeta::read(Some(it)).ok()?.related_task);
    let asker = call.attached.get::<OnTask>().map(|it| Arc::clone(&it.0));
    if asker.is_none() && task.is_none() {
        return Err(call);
    }
    let method = call.method.method;
    let mut params = std::mem::take(&mut call.params);
    if let Some(meta) = call.meta.take() {
        params.set("_meta", meta);
    }
    Ok(match (asker, task, watcher.upgrade()) {
        (Some(asker), ..) => Answer::later(asker.ask(method, unrelated(params))),
        (None, Some(task), Some(watcher)) => watcher.question(instance, task, method, params),
        _ => Answer::Now(nobody("The gateway ends.")),
    })
}
