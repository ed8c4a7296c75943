//! Tool calls that become tasks, carried between the two generations of tasks.
//!
//! A client that supports tasks gets a task of the gateway in place of the server's, in its own generation
//! and under a sealed id. For other clients the call stays open until the task ends.

mod elsewhere;
mod list;
mod methods;
mod wish;

use std::sync::Arc;

use tokio::sync::Notify;
use trunkline_proto::{Call, CallError};
use trunkline_wire::code;
use trunkline_wire::era::{self, stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::json::glance::{Glance, ResultType};
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::model::{TASKS_EXTENSION, Task, TaskRequest, Tool, meta};
use trunkline_wire::revision::{Era, Revision};

use super::decide::Permit;
use super::{CallFailure, CallOutcome, Walk};
use crate::call_record::CallRecord;
use crate::catalog::plan::ServerPlan;
use crate::failure::{Done, Failure};
use crate::forward::Forward;
use crate::merge::Offer;
use crate::policy::What;
use crate::policy::plugins::CallView;
use crate::pool::Lease;
use crate::seal::SealedTask;
use crate::server::Server;
use crate::tasks::{Asker, Drive, End, Ended, Entry, Known, lost};
use crate::upstream::Upstream;
pub(crate) use elsewhere::{PATH, answer_replica};
pub(super) use methods::manage;
use wish::{Wish, decide};

/// Calls a tool, as a task if the client asks for one or the server allows nothing else.
pub(super) async fn call(
    walk: &mut Walk,
    record: &mut CallRecord,
    permit: &Permit,
    tool: &Arc<Tool>,
) -> Result<CallOutcome, CallFailure> {
    let server = permit.server();
    let plan = &**permit.plan();
    let is_repeatable = super::is_repeatable(plan, tool);
    let wish = Wish::of(&mut walk.call)?;
    let offer = server.look_at_lists(|lists| Offer::of(lists, tool));
    let how = decide(wish, offer)?;
    let mut may_be_task = how.task.is_some() || how.declares;
    if how.is_shown {
        walk.shared.tasks.room(&walk.caller)?;
    }
    if let Some(task) = how.task {
        walk.call.params.set("task", Json::of(&task));
    }
    if how.declares {
        declare(&mut walk.call);
    }
    walk.as_task = how.declares;
    let may_refuse = offer == Offer::Extension && !may_be_task;
    let again = may_refuse.then(|| walk.call.params.clone());
    // In a box of its own: two small futures are cheaper to keep and to move than a large one.
    let mut result = Box::pin(walk.at(record, permit, is_repeatable)).await;
    if let Some(params) = again
        && matches!(&result, Err(CallFailure::Server(error, from)) if wants_task(error, *from))
    {
        // The tool runs only as a task: the gateway retries it as one and waits for the end.
        walk.call.params = params;
        declare(&mut walk.call);
        (walk.as_task, may_be_task) = (true, true);
        result = Box::pin(walk.at(record, permit, is_repeatable)).await;
    }
    match result {
        Ok(CallOutcome::Answer(said, from)) if may_be_task => {
            let wanted = (wish, how.is_shown);
            Box::pin(look_for_task(walk, record, permit, tool, wanted, (said, from))).await
        }
        result => result,
    }
}

/// What becomes of an answer that may report a task.
async fn look_for_task(
    walk: &Walk,
    record: &mut CallRecord,
    permit: &Permit,
    tool: &Arc<Tool>,
    (wish, is_shown): (Wish, bool),
    (said, from): (Json, Revision),
) -> Result<CallOutcome, CallFailure> {
    let (server, plan) = (permit.server(), &**permit.plan());
    match (created(&said, from), wish) {
        (Some(task), _) if is_shown => show(walk, record, server, plan, tool, task),
        (Some(task), _) => await_task_inline(walk, record, server, plan, task).await,
        // The result came at once, but the client was promised a task.
        (None, Wish::Task(request)) => {
            Ok(wrap_as_task(walk, record, server, tool, request, said, from).await?)
        }
        (None, _) => Ok(CallOutcome::Answer(said, from)),
    }
}

/// Gives the client a task of the gateway in place of the server's.
fn show(
    walk: &Walk,
    record: &mut CallRecord,
    server: &Arc<Server>,
    plan: &ServerPlan,
    tool: &Arc<Tool>,
    task: Task,
) -> Result<CallOutcome, CallFailure> {
    let lease = lease(server, record)?;
    let id = seal(walk, lease.id(), plan, &task.task_id);
    let known = known(walk, record, server, tool, id);
    let nudge = Arc::new(Notify::new());
    let instance = Arc::clone(lease.instance());
    let entry = Entry::of(known, &task, instance, Arc::clone(&nudge));
    let asker = Asker::Entry(Arc::downgrade(&entry));
    let mut drive = Drive::new(&walk.shared.tasks, server, &lease, task, asker, nudge);
    drive.owner.clone_from(&walk.caller.id);
    drive.entry = Some(Arc::downgrade(&entry));
    drive.hold = Some(lease.hold());
    // If the registry is full by now, dropping `drive` cancels the task.
    walk.shared.tasks.add(&entry).map_err(begun)?;
    entry.follow(drive);
    record.is_task(&entry.known().id);
    Ok(CallOutcome::Told(tell_created(walk, &entry)))
}

/// Wraps an immediate result as a finished task.
async fn wrap_as_task(
    walk: &Walk,
    record: &CallRecord,
    server: &Arc<Server>,
    tool: &Arc<Tool>,
    request: TaskRequest,
    said: Json,
    from: Revision,
) -> Result<CallOutcome, Failure> {
    let own = format!("\0{}", trunkline_auth::tag::random_name());
    let id = seal(walk, record.instance.unwrap_or_default(), &server.plan(), &own);
    let entry = Entry::local(known(walk, record, server, tool, id), request.ttl_ms);
    walk.shared.tasks.add(&entry).map_err(begun)?;
    entry.finish(End::Result(said, from)).await;
    entry.expire_later();
    record.is_task(&entry.known().id);
    Ok(CallOutcome::Told(tell_created(walk, &entry)))
}

/// Waits for the task on behalf of a client that does not support tasks.
async fn await_task_inline(
    walk: &Walk,
    record: &mut CallRecord,
    server: &Arc<Server>,
    plan: &ServerPlan,
    task: Task,
) -> Result<CallOutcome, CallFailure> {
    let lease = lease(server, record)?;
    let context = walk.context(record, false);
    let asker = Asker::Caller(Arc::clone(&context));
    let nudge = Arc::new(Notify::new());
    let mut drive = Drive::new(&walk.shared.tasks, server, &lease, task, asker, nudge);
    drive.owner.clone_from(&walk.caller.id);
    let within = plan.timeouts.hard;
    let call = async move {
        match tokio::time::timeout(within, drive.run()).await {
            Ok(Ok(Ended::Result(said))) => Ok(said),
            Ok(Ok(Ended::Error(error))) => Err(CallError::Peer(error)),
            Ok(Ok(Ended::Cancelled)) => Err(CallError::Cancelled),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(CallError::TimedOut),
        }
    };
    let mut forward = Some(Forward::driving(lease, context, Box::pin(call)));
    walk.follow(record, &mut forward, plan).await.map_err(|(call_failure, _)| call_failure)
}

/// The lease of the call that began the task, so that the instance cannot end in between.
fn lease(server: &Arc<Server>, record: &mut CallRecord) -> Result<Lease<Upstream>, Failure> {
    if let Some(kept) = record.kept.take() {
        return Ok(kept);
    }
    record.instance.and_then(|id| server.pool.lease_on(id)).ok_or_else(|| lost(&server.name))
}

fn seal(walk: &Walk, instance: u64, plan: &ServerPlan, task: &str) -> String {
    let replica = walk.shared.seals.me().map(str::to_owned);
    let task = SealedTask { server: plan.name.clone(), instance, task: task.to_owned(), replica };
    walk.shared.seals.task(&task, &walk.caller.id)
}

fn known(walk: &Walk, record: &CallRecord, server: &Server, tool: &Arc<Tool>, id: String) -> Known {
    let plugins = (!walk.active.plugins.is_empty()).then(|| {
        let what = What::Tool(&tool.name);
        let view = CallView::about(&server.name, what, walk.caller.name.as_deref());
        (Arc::clone(&walk.active.plugins), view.trace(record.id.to_string()))
    });
    Known {
        id,
        trace: record.id.to_string(),
        server: Arc::clone(&server.name),
        tool: Arc::clone(tool),
        caller: Arc::clone(&walk.caller),
        registry: Arc::downgrade(&walk.shared.tasks),
        plugins,
    }
}

/// The answer `CreateTaskResult` for the client.
fn tell_created(walk: &Walk, entry: &Entry) -> Json {
    match walk.call.revision.profile().tasks {
        era::Tasks::Extension => {
            stateless::encode_task_created(&entry.task(false), &stateless::Extras::default())
        }
        _ => stateful::encode_task_created(&entry.task(true)),
    }
}

/// The task that an answer to `tools/call` reports, if any.
fn created(said: &Json, from: Revision) -> Option<Task> {
    let glance = Glance::of(said);
    let is_task = match from.era() {
        Era::Stateful => glance.has_task && !glance.has_content,
        Era::Stateless => glance.result_type == ResultType::Task,
    };
    is_task.then(|| Task::read(said).ok()).flatten()
}

/// Whether a server refused the call because it runs only as a task: in the stateless era because the client did
/// not declare the extension, in the stateful era with the code that 2025-11-25 defines.
fn wants_task(error: &ErrorObject, from: Revision) -> bool {
    match from.era() {
        Era::Stateful => error.code == code::METHOD_NOT_FOUND,
        Era::Stateless => {
            error.code == code::MISSING_CLIENT_CAPABILITY
                && error.data.as_ref().is_some_and(|it| it.get().contains(TASKS_EXTENSION))
        }
    }
}

/// Declares the tasks extension to a server of the stateless era: the gateway supports it, even if the caller
/// does not.
fn declare(call: &mut Call) {
    if call.peer.client.extensions.contains_key(TASKS_EXTENSION) {
        return;
    }
    let mut peer = trunkline_proto::Peer::clone(&call.peer);
    peer.client.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
    call.peer = Arc::new(peer);
    if call.revision.era() == Era::Stateless {
        // Everything else that the caller declares stays as it is.
        let inside = |object: &Object, name: &str| {
            object.get(name).and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default()
        };
        let known = call.meta.as_ref().and_then(|it| Object::parse(it.get()).ok());
        let mut object = known.unwrap_or_default();
        let mut caps = inside(&object, meta::CLIENT_CAPABILITIES);
        let mut extensions = inside(&caps, "extensions");
        extensions.set(TASKS_EXTENSION, Json::empty_object());
        caps.set("extensions", extensions.to_json());
        object.set(meta::CLIENT_CAPABILITIES, caps.to_json());
        call.meta = Some(object.to_json());
    }
}

/// Marks the outcome as unknown: the server has begun the work.
fn begun(mut failure: Failure) -> Failure {
    failure.done = Done::Unknown;
    failure
}
