//! The client's `tasks/…` methods, in both generations.

use std::sync::Arc;

use tokio::task::JoinSet;
use trunkline_proto::{CallError, CallKey};
use trunkline_transport::conversation_handle::{ConversationHandle, Request};
use trunkline_wire::code;
use trunkline_wire::era::{self, stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::EmptyResult;
use trunkline_wire::revision::Revision;

use crate::call_record::CallRecord;
use crate::failure::{Failure, Reason, Stage};
use crate::forward;
use crate::gate::{CallFailure, CallOutcome, Walk};
use crate::merge::{Item, Target};
use crate::tasks::{End, Entry, Known, Taken, lost, named};

use super::{elsewhere, list};

/// Answers `tasks/…`.
pub(in crate::gate) async fn manage(
    walk: &mut Walk,
    record: &mut CallRecord,
) -> Result<CallOutcome, CallFailure> {
    let is_core = walk.call.revision.profile().tasks == era::Tasks::Core;
    if is_core && let Some(told) = elsewhere::ask_holder(walk).await? {
        return Ok(CallOutcome::Told(told));
    }
    let told = match walk.call.method.method {
        Method::TasksList => list::list(walk).await?,
        Method::TasksGet => {
            let (entry, _) = find(walk, record)?;
            entry.poll_now().await;
            match is_core {
                true => stateful::encode_task(&entry.task(true)),
                false => stateless::encode_task_detail(&entry.detail(), &extras()),
            }
        }
        Method::TasksResult => {
            let (entry, _) = find(walk, record)?;
            result(walk, &entry).await?
        }
        Method::TasksCancel => {
            let (entry, task) = find(walk, record)?;
            cancel(&entry, &task, is_core).await?
        }
        Method::TasksUpdate => {
            let (entry, _) = find(walk, record)?;
            update(walk, &entry)?
        }
        other => return Err(ErrorObject::method_not_found(other.name()).into()),
    };
    Ok(CallOutcome::Told(told))
}

/// The caller's task and its id at the server. Another caller's task does not exist.
fn find(walk: &Walk, record: &mut CallRecord) -> Result<(Arc<Entry>, String), CallFailure> {
    let bad = || ErrorObject::invalid_params("`taskId` must be a string.");
    let id = walk.call.params.get("taskId").ok_or_else(bad)?;
    let id: String = id.to().map_err(|_| bad())?;
    let unknown = || Failure::new(Reason::UnknownTask, Stage::Route, "There is no such task.");
    let sealed = walk.shared.seals.open_task(&id, &walk.caller.id).ok_or_else(unknown)?;
    let entry = walk.shared.tasks.get(&id).ok_or_else(|| match &sealed.replica {
        // It was held by a replica that is gone: else the request would have gone there.
        Some(holder) if walk.shared.seals.me() != Some(holder) => lost(&sealed.server),
        _ => unknown(),
    })?;
    let Known { server, tool, .. } = entry.known();
    let (server, name) = (Arc::clone(server), tool.name.as_str().into());
    record.is(&Arc::new(Target { server, name, item: Item::Tool(Arc::clone(tool)) }));
    record.instance = Some(sealed.instance);
    Ok((entry, sealed.task))
}

/// Waits for the end of a task, and asks its questions meanwhile.
async fn result(walk: &Walk, entry: &Arc<Entry>) -> Result<Json, ErrorObject> {
    let mut asking = JoinSet::new();
    loop {
        let mut changed = std::pin::pin!(entry.changed().notified());
        // Enabled before the check, so that no change is lost in between.
        changed.as_mut().enable();
        if let Some(end) = entry.end() {
            return entry.outcome(end, walk.call.revision);
        }
        for taken in entry.take_questions() {
            let (handle, key) = (walk.handle.clone(), walk.call.key);
            asking.spawn(ask(handle, key, walk.call.revision, taken));
        }
        tokio::select! {
            () = changed => {}
            Some(_) = asking.join_next(), if !asking.is_empty() => {}
        }
    }
}

/// Asks the client that waits for the task.
async fn ask(handle: ConversationHandle, during: CallKey, revision: Revision, taken: Taken) {
    let params = match taken.params(revision) {
        Ok(params) => params,
        Err(error) => return taken.told(Err(error)),
    };
    let mut request = Request::new(taken.request.method(), params);
    request.during = Some(during);
    request.timing = Some(crate::question::THINKING);
    match handle.ask(request).await {
        Ok(answer) => taken.told(Ok(answer)),
        Err(CallError::Peer(error) | CallError::Refused(error)) => taken.told(Err(error)),
        // The client went away without an answer: another client may answer.
        Err(_) => drop(taken),
    }
}

/// Cancels a task.
pub(super) async fn cancel(
    entry: &Arc<Entry>,
    task: &str,
    is_core: bool,
) -> Result<Json, CallFailure> {
    let over = || ErrorObject::invalid_params("The task is already over.");
    let Some(instance) = entry.place() else {
        // The extension treats "already over" as success.
        return if is_core { Err(over().into()) } else { Ok(empty()) };
    };
    let is_told = match instance.call(Request::new(Method::TasksCancel, named(task))).await {
        Ok(_) => true,
        // The task may have ended just now: then it was not cancelled.
        Err(CallError::Peer(error)) if error.code == code::INVALID_PARAMS => {
            entry.poll_now().await;
            if is_core { return Err(over().into()) } else { false }
        }
        // The server cannot cancel it: the gateway stops waiting.
        Err(CallError::Peer(_) | CallError::Refused(_)) => true,
        Err(error) => match forward::failed(error, &instance).await {
            Ok(error) => return Err(CallFailure::server(error, instance.opened.revision)),
            Err(_) => return Err(lost(&entry.known().server).into()),
        },
    };
    let is_settled = instance.opened.revision.profile().tasks == era::Tasks::Core || is_core;
    if is_told && is_settled {
        entry.settle(End::Cancelled);
    } else {
        // The next poll shows whether the server obeyed.
        entry.poll_now().await;
    }
    Ok(if is_core { stateful::encode_task(&entry.task(true)) } else { empty() })
}

/// Passes the client's answers on.
fn update(walk: &Walk, entry: &Entry) -> Result<Json, ErrorObject> {
    let answers = walk
        .call
        .params
        .get("inputResponses")
        .and_then(|it| Object::parse(it.get()).ok())
        .ok_or_else(|| ErrorObject::invalid_params("`inputResponses` must be an object."))?;
    if entry.is_over() {
        return Err(ErrorObject::invalid_params("The task is already over."));
    }
    entry.answer(&answers);
    Ok(empty())
}

fn empty() -> Json {
    stateless::encode_result(EmptyResult::new(), &extras())
}

fn extras() -> stateless::Extras<'static> {
    stateless::Extras::default()
}
