//! Calls that outlive their request, carried between the two generations of tasks.
//!
//! Every task of a server is followed here to its end. A client that knows tasks is given one of
//! ours in its place, in its own generation and under a sealed name; for one that does not know them
//! the call stays open until the task is over.

mod drive;
mod entry;
mod methods;
mod registry;
mod wish;

use std::sync::{Arc, Weak};

use tokio::sync::Notify;
use trunkline_proto::{Call, CallError, Heard};
use trunkline_transport::handler::Answer;
use trunkline_wire::code;
use trunkline_wire::era::stateful::RequestMeta;
use trunkline_wire::era::{self, stateful, stateless};
use trunkline_wire::glance::{Glance, ResultType};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{TASKS_EXTENSION, Task, TaskRequest, Tool, meta};
use trunkline_wire::revision::{Era, Revision};

use crate::catalog::plan::ServerPlan;
use crate::failure::{Failure, Stage};
use crate::forward::Forward;
use crate::gate::{Came, Walk, Wrong};
use crate::gateway::Shared;
use crate::line::{Line, nobody};
use crate::merge::Offer;
use crate::policy::What;
use crate::policy::plugins::CallView;
use crate::pool::Lease;
use crate::seal::SealedTask;
use crate::server::Server;
use crate::trail::Trail;
use crate::upstream::{Upstream, Watcher};
use drive::{Drive, Ended};
use entry::{End, Entry, Known};
pub(crate) use methods::manage;
use registry::Asker;
pub(crate) use registry::{OnTask, Registry};
use wish::{Wish, decide};

/// Calls a tool, as a task where that is asked for or cannot be otherwise.
pub(crate) async fn call(
    walk: &mut Walk,
    trail: &mut Trail,
    server: &Arc<Server>,
    plan: &ServerPlan,
    tool: &Arc<Tool>,
    is_repeatable: bool,
) -> Result<Came, Wrong> {
    let wish = Wish::of(&mut walk.call)?;
    let offer = Offer::of(server.lists().as_deref(), tool);
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
    let mut came = walk.at(trail, server, is_repeatable).await;
    if let Some(params) = again
        && matches!(&came, Err(Wrong::Server(error, from)) if wants_task(error, *from))
    {
        // It runs as a task only: then it does, and we wait for it.
        walk.call.params = params;
        declare(&mut walk.call);
        (walk.as_task, may_be_task) = (true, true);
        came = Box::pin(walk.at(trail, server, is_repeatable)).await;
    }
    match came {
        Ok(Came::Answer(said, from)) if may_be_task => match (created(&said, from), wish) {
            (Some(task), _) if how.is_shown => show(walk, trail, server, plan, tool, task),
            (Some(task), _) => Box::pin(see_through(walk, trail, server, plan, task)).await,
            (None, Wish::Task(request)) => {
                // It was done at once, but a task was promised.
                Ok(Box::pin(mint(walk, trail, server, tool, request, said, from)).await?)
            }
            (None, _) => Ok(Came::Answer(said, from)),
        },
        came => came,
    }
}

/// A server told something of a task.
pub(crate) fn heard(shared: &Shared, _: &Arc<Server>, instance: u64, heard: Heard) {
    let is_of_task = matches!(heard.method, Method::TasksStatus | Method::Tasks);
    if is_of_task && let Some(id) = heard.params.get("taskId").and_then(|it| it.to::<String>().ok())
    {
        shared.tasks.nudge(instance, &id);
    }
}

/// Answers a question that is a task's. Gives any other back.
pub(crate) fn route(
    mut call: Call,
    instance: u64,
    watcher: &Weak<dyn Watcher>,
) -> Result<Answer, Call> {
    let related = call.meta.as_ref().filter(|it| it.get().contains(meta::RELATED_TASK));
    let task = related.and_then(|it| RequestMeta::read(Some(it)).ok()?.related_task);
    let asker = call.attached.get::<OnTask>().map(|it| it.0.clone());
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

/// A server asks for a task. The question may come before the answer that made the task known.
pub(crate) fn question(
    shared: &Shared,
    instance: u64,
    task: String,
    method: Method,
    params: Object,
) -> Answer {
    let registry = Arc::clone(&shared.tasks);
    Answer::later(async move {
        match registry.asker(instance, &task).await {
            Some(asker) => asker.ask(method, unrelated(params)).await,
            None => nobody("The question is for a task that nobody waits for."),
        }
    })
}

/// Gives the client a task of ours in the place of the server's.
fn show(
    walk: &Walk,
    trail: &mut Trail,
    server: &Arc<Server>,
    plan: &ServerPlan,
    tool: &Arc<Tool>,
    task: Task,
) -> Result<Came, Wrong> {
    let lease = lease(server, trail)?;
    let id = seal(walk, lease.id(), plan, &task.task_id);
    let known = known(walk, trail, server, tool, id);
    let nudge = Arc::new(Notify::new());
    let instance = Arc::clone(lease.instance());
    let entry = Entry::of(known, &task, instance, Arc::clone(&nudge));
    let asker = Asker::Entry(Arc::downgrade(&entry));
    let mut drive = Drive::new(&walk.shared, server, &lease, task, asker, nudge);
    drive.owner.clone_from(&walk.caller.id);
    drive.entry = Some(Arc::downgrade(&entry));
    drive.hold = Some(lease.hold());
    // If there is no room after all, the task is cancelled with what would have followed it.
    walk.shared.tasks.add(&entry).map_err(begun)?;
    entry.follow(drive);
    Ok(Came::Told(tell_created(walk, &entry)))
}

/// Makes a task of a result that was there at once.
async fn mint(
    walk: &Walk,
    trail: &Trail,
    server: &Arc<Server>,
    tool: &Arc<Tool>,
    request: TaskRequest,
    said: Json,
    from: Revision,
) -> Result<Came, Failure> {
    let own = format!("\0{}", trunkline_auth::tag::random_name());
    let id = seal(walk, trail.instance.unwrap_or_default(), &server.plan(), &own);
    let entry = Entry::local(known(walk, trail, server, tool, id), request.ttl_ms);
    walk.shared.tasks.add(&entry).map_err(begun)?;
    entry.finish(End::Result(said, from)).await;
    entry.expire_later();
    Ok(Came::Told(tell_created(walk, &entry)))
}

/// Waits for a task whose client does not know of tasks.
async fn see_through(
    walk: &Walk,
    trail: &mut Trail,
    server: &Arc<Server>,
    plan: &ServerPlan,
    task: Task,
) -> Result<Came, Wrong> {
    let lease = lease(server, trail)?;
    let line = Line::new(
        Arc::clone(&walk.caller),
        walk.voice.clone(),
        walk.call.key,
        walk.call.revision,
        false,
        Arc::clone(&walk.shared.notices),
        walk.guard(),
    );
    let asker = Asker::Line(Arc::clone(&line));
    let nudge = Arc::new(Notify::new());
    let mut drive = Drive::new(&walk.shared, server, &lease, task, asker, nudge);
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
    let forward = Forward::driving(lease, line, Box::pin(call));
    walk.follow(trail, forward, plan).await.map_err(|(wrong, _)| wrong)
}

/// The place where the task was begun: the call's own, so that nothing happens to it in between.
fn lease(server: &Arc<Server>, trail: &mut Trail) -> Result<Lease<Upstream>, Failure> {
    if let Some(kept) = trail.kept.take() {
        return Ok(kept);
    }
    trail.instance.and_then(|id| server.pool.lease_on(id)).ok_or_else(|| lost(&server.name))
}

fn seal(walk: &Walk, instance: u64, plan: &ServerPlan, task: &str) -> String {
    let task = SealedTask { server: plan.name.clone(), instance, task: task.to_owned() };
    walk.shared.seals.task(&task, &walk.caller.id)
}

fn known(walk: &Walk, trail: &Trail, server: &Server, tool: &Arc<Tool>, id: String) -> Known {
    let plugins = (!walk.world.plugins.is_empty()).then(|| {
        let what = What::Tool(&tool.name);
        let view = CallView::about(&server.name, what, walk.caller.name.as_deref());
        (Arc::clone(&walk.world.plugins), view.trace(trail.id.to_string()))
    });
    Known {
        id,
        trace: trail.id.to_string(),
        server: Arc::clone(&server.name),
        tool: Arc::clone(tool),
        caller: Arc::clone(&walk.caller),
        shared: walk.shared.weak(),
        plugins,
    }
}

/// The answer that a call became a task.
fn tell_created(walk: &Walk, entry: &Entry) -> Json {
    match walk.call.revision.profile().tasks {
        era::Tasks::Extension => {
            stateless::encode_task_created(&entry.task(false), &stateless::Extras::default())
        }
        _ => stateful::encode_task_created(&entry.task(true)),
    }
}

/// The task that an answer to `tools/call` says the call became.
fn created(said: &Json, from: Revision) -> Option<Task> {
    let glance = Glance::at(said.get());
    let is_task = match from.era() {
        Era::Stateful => glance.has_task && !glance.has_content,
        Era::Stateless => glance.result_type == ResultType::Task,
    };
    is_task.then(|| Task::read(said).ok()).flatten()
}

/// Whether a server refused a call because it was not to be a task: in the new era because nobody said
/// that tasks are known, in the old one by the code that 2025-11-25 has for it.
fn wants_task(error: &ErrorObject, from: Revision) -> bool {
    match from.era() {
        Era::Stateful => error.code == code::METHOD_NOT_FOUND,
        Era::Stateless => {
            error.code == code::MISSING_CLIENT_CAPABILITY
                && error.data.as_ref().is_some_and(|it| it.get().contains(TASKS_EXTENSION))
        }
    }
}

/// Says to a server of the new era that tasks are known: to us, if not to the caller.
fn declare(call: &mut Call) {
    if call.peer.client.extensions.contains_key(TASKS_EXTENSION) {
        return;
    }
    let mut peer = trunkline_proto::Peer::clone(&call.peer);
    peer.client.extensions.insert(TASKS_EXTENSION.to_owned(), Json::empty_object());
    call.peer = Arc::new(peer);
    if call.revision.era() == Era::Stateless {
        // What else the caller says of itself stays as it is.
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

/// The same parameters or result, without the name of the server's task.
fn unrelated(mut object: Object) -> Object {
    if let Some(meta) = object.take("_meta") {
        match Object::parse(meta.get()) {
            Ok(mut rest) => {
                rest.take(meta::RELATED_TASK);
                if !rest.is_empty() {
                    object.set("_meta", rest.to_json());
                }
            }
            Err(_) => object.set("_meta", meta),
        }
    }
    object
}

/// Whether a result says that the tool failed.
fn is_error(said: &Json) -> bool {
    Glance::at(said.get()).is_error
}

/// A failure after the server has begun the work.
fn begun(mut failure: Failure) -> Failure {
    failure.done = crate::failure::Done::Unknown;
    failure
}

fn lost(server: &str) -> Failure {
    let message = format!("The instance of `{server}` that worked on the task is gone.");
    let mut failure = Failure::new("task_lost", Stage::Call, message).of(server);
    failure.done = crate::failure::Done::Unknown;
    failure.advice("Look at what was done before trying again.")
}
