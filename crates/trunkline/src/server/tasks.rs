//! Runs tools as tasks with the register of [`trunkline_proto::task`], in both generations. With a
//! store they outlive the process.

mod asker;
mod inline;
mod keep;
mod methods;
mod stamp;

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline_proto::input_required::Journal;
use trunkline_proto::task::{Record, TaskBounds, TaskError, TaskOutcome, Tasks, missing_extension};
use trunkline_proto::{Call, Change};
use trunkline_transport::clock::now;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_transport::handler::{Answer, panicked};
use trunkline_wire::code;
use trunkline_wire::era::{self, stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
#[cfg(feature = "replicas")]
use trunkline_wire::jsonrpc::Params;
use trunkline_wire::method::Gate;
#[cfg(feature = "replicas")]
use trunkline_wire::method::Method;
use trunkline_wire::model::{DetailedTask, TaskRequest, TaskSupport};
use trunkline_wire::revision::Revision;

use super::context::{Asker, Context, lock};
use super::job::{Job, Target};
use super::rounds::Notebook;
use super::{Inner, ToolEntry};
use crate::caller::principal;
use crate::observe::{Watch, follow};
pub(super) use asker::TaskAsker;
use keep::Saved;
pub(crate) use keep::{Keeper, LIFE};
use stamp::stamp;

/// The tasks of a server, and the futures that run them.
pub(crate) struct Runtime {
    register: Mutex<Tasks>,
    /// Notified whenever a task changes.
    changed: Notify,
    working: Mutex<Working>,
    /// The store of tasks that outlive the process.
    keeper: Option<Keeper>,
    /// How long a call waits for its result before it is answered with a task.
    inline: Duration,
}

#[derive(Default)]
struct Working {
    tasks: JoinSet<()>,
    live: HashMap<String, Arc<Live>>,
    /// Questions in flight, by task and key.
    answers: HashMap<(String, String), oneshot::Sender<Json>>,
}

/// A task that runs in this process.
struct Live {
    stop: Mutex<Option<tokio::task::AbortHandle>>,
    /// The answers and effects of the handler.
    notebook: Arc<Mutex<Notebook>>,
    saved: Saved,
}

impl Runtime {
    pub(super) fn new(bounds: TaskBounds, keeper: Option<Keeper>) -> Self {
        Self {
            register: Mutex::new(Tasks::new(bounds)),
            inline: bounds.inline,
            changed: Notify::new(),
            working: Mutex::default(),
            keeper,
        }
    }

    /// Whether this call runs as a task, by the rules of its revision.
    pub(super) fn wanted(
        &self,
        entry: &ToolEntry,
        asked: Option<&TaskRequest>,
        call: &Call,
    ) -> Result<Option<TaskRequest>, ErrorObject> {
        let refuse = |message: &str| Err(ErrorObject::new(code::METHOD_NOT_FOUND, message));
        match (call.revision.profile().tasks, entry.tool.task_support) {
            (era::Tasks::None, _) => Ok(None),
            (era::Tasks::Core, TaskSupport::Required) if asked.is_none() => {
                refuse("This tool runs as a task only; send `task`.")
            }
            (era::Tasks::Core, TaskSupport::Forbidden) if asked.is_some() => {
                refuse("This tool does not run as a task; leave out `task`.")
            }
            (era::Tasks::Core, _) => Ok(asked.cloned()),
            (era::Tasks::Extension, TaskSupport::Forbidden) => Ok(None),
            // The handler decides itself when to become a task.
            (era::Tasks::Extension, TaskSupport::Optional) if entry.leaves => Ok(None),
            (era::Tasks::Extension, support) => {
                match (call.peer.client.supports(Gate::TasksExtension), support) {
                    (true, _) => Ok(Some(TaskRequest::new())),
                    (false, TaskSupport::Required) => Err(missing_extension()),
                    (false, _) => Ok(None),
                }
            }
        }
    }

    /// Waits until `ready` returns something about a task.
    async fn wait<T>(
        &self,
        server: &Arc<Inner>,
        id: &str,
        mut ready: impl FnMut(&Record) -> Option<T>,
    ) -> Result<T, TaskError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Register before the check, so that no change is missed.
            changed.as_mut().enable();
            server.look_up(id).await;
            let is_elsewhere = {
                let mut register = lock(&self.register);
                let record = register.get(id, now())?;
                if let Some(found) = ready(record) {
                    return Ok(found);
                }
                record.is_elsewhere()
            };
            match is_elsewhere {
                // A task of another process does not notify us, so poll.
                true => drop(timeout(keep::POLL_INTERVAL, changed).await),
                false => changed.await,
            }
        }
    }

    /// Delivers answers to the questions that wait for them.
    fn deliver(&self, id: &str, answers: Vec<(String, Json)>) {
        let mut working = lock(&self.working);
        for (key, answer) in answers {
            if let Some(waiting) = working.answers.remove(&(id.to_owned(), key)) {
                let _ = waiting.send(answer);
            }
        }
    }

    fn live(&self, id: &str) -> Option<Arc<Live>> {
        lock(&self.working).live.get(id).cloned()
    }

    /// Stops the work on a task.
    fn stop(&self, id: &str) {
        let live = self.leave(id);
        if let Some(stop) = live.and_then(|it| lock(&it.stop).take()) {
            stop.abort();
        }
    }

    /// Spawns work that runs until it is done or the server is dropped.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> tokio::task::AbortHandle {
        let mut working = lock(&self.working);
        while working.tasks.try_join_next().is_some() {}
        working.tasks.spawn(work)
    }

    /// Removes a task whose work is over.
    fn leave(&self, id: &str) -> Option<Arc<Live>> {
        let mut working = lock(&self.working);
        working.answers.retain(|(task, _), _| task != id);
        working.live.remove(id)
    }

    /// Stops everything: the last owner of the server is gone, so no caller can ask for a task.
    pub(super) fn stop_all(&self) {
        let working = std::mem::take(&mut *lock(&self.working));
        // Outside the lock: the destructors of the dropped futures may do anything.
        drop(working);
    }

    /// Forgets an expired task. Callers that wait for it learn that it does not exist.
    fn forget(&self, id: &str) {
        self.leave(id);
        self.changed.notify_waiters();
    }
}

impl Inner {
    /// Nobody guesses it. One of several replicas puts its own id before it, so that others know whom to ask.
    fn new_task_id(&self) -> String {
        let name = self.sealer.random_name();
        match self.replica_id() {
            Some(me) => format!("{me}.{name}"),
            None => name,
        }
    }

    /// The id of this process among replicas, once it has joined them.
    fn replica_id(&self) -> Option<String> {
        #[cfg(feature = "replicas")]
        return self.replicas.as_ref()?.me.get().cloned();
        #[cfg(not(feature = "replicas"))]
        None
    }

    /// The replica that a request to change a task goes to. Whoever only looks finds it in the store.
    #[cfg(feature = "replicas")]
    pub(super) fn runner_of(&self, method: &str, params: &Params) -> Option<String> {
        let id = changed_task(method, params)?;
        id.rsplit_once('.').map(|(replica, _)| replica.to_owned())
    }

    /// The same for a task whose replica is gone: the one that has taken it over.
    #[cfg(feature = "replicas")]
    pub(super) async fn heir_of(&self, method: &str, params: &Params) -> Option<String> {
        self.replica_of(&changed_task(method, params)?).await
    }

    /// Starts a task in the background and answers with it. `rounds` is the journal of the call
    /// before it became a task.
    pub(super) fn start_task(
        self: &Arc<Self>,
        request: TaskRequest,
        call: Call,
        handle: ConversationHandle,
        job: Job,
        rounds: Option<Journal>,
    ) -> Answer {
        let id = self.new_task_id();
        let owner = principal(&call.attached).map(|it| it.id());
        let created =
            lock(&self.tasks.register).create(id.clone(), owner, request.ttl_ms, stamp(), now());
        let task = match created {
            Ok(task) => task,
            Err(error) => return Answer::Now(Err(task_error(error))),
        };
        let goes_on = rounds.is_some();
        let notebook = Arc::new(Mutex::new(Notebook::of(rounds.unwrap_or_default())));
        let asker = match call.revision.profile().tasks {
            era::Tasks::Extension => TaskAsker::new(self, &id, &notebook),
            _ => TaskAsker::on_the_wire(self, &id, &notebook, &handle, call.revision),
        };
        let saved = Saved::new(&call, &job);
        let context = Context::new(self, &call, &handle, Asker::Task(asker));
        self.register_task(&id, notebook, saved);
        // A handler that chose to become a task gets one at once.
        if call.revision.profile().tasks == era::Tasks::Extension && !goes_on && self.waits() {
            return self.answer_inline(id, call.revision, job, context);
        }
        let answer = match call.revision.profile().tasks {
            era::Tasks::Extension => stateless::encode_task_created(&task, &self.extras(None)),
            _ => stateful::encode_task_created(&task),
        };
        if self.tasks.keeper.is_none() {
            self.spawn_work(&id, job, context);
            return Answer::Now(Ok(answer));
        }
        let server = Arc::clone(self);
        let begun = async move {
            // The caller learns of a task only once it would survive a crash.
            if let Err(error) = server.keep_task(&id).await {
                server.tasks.forget(&id);
                lock(&server.tasks.register).forget(&id);
                return Err(error);
            }
            server.spawn_work(&id, job, context);
            Ok(answer)
        };
        let server = Arc::clone(self);
        Answer::later(async move {
            let gone = || Err(ErrorObject::internal("shutting_down", "The server ends."));
            server.run_detached(begun).await.unwrap_or_else(gone)
        })
    }

    /// Registers a task that runs in this process.
    fn register_task(&self, id: &str, notebook: Arc<Mutex<Notebook>>, saved: Saved) {
        let live = Arc::new(Live { stop: Mutex::default(), notebook, saved });
        lock(&self.tasks.working).live.insert(id.to_owned(), live);
    }

    /// Runs a task in the background.
    fn spawn_work(self: &Arc<Self>, id: &str, job: Job, context: Context) {
        let now = now();
        let ends = lock(&self.tasks.register).get(id, now).map(Record::ends);
        let time = ends.map_or(Duration::ZERO, |it| it.saturating_duration_since(now));
        let (server, task) = (Arc::downgrade(self), id.to_owned());
        let watch = match &job.target {
            Target::Tool(tool) => Watch::on_task(&tool.tool.name),
            _ => None,
        };
        let work = async move {
            let outcome = timeout(time, follow(watch, run(job, context))).await;
            let outcome = outcome.unwrap_or_else(|_| {
                let why = "The task took longer than the server lets tasks work.";
                Err(ErrorObject::internal("timeout", why))
            });
            if let Some(server) = server.upgrade() {
                server.task_done(&task, outcome).await;
            }
        };
        let stop = self.tasks.spawn(work);
        match self.tasks.live(id) {
            Some(live) => *lock(&live.stop) = Some(stop),
            // It was cancelled meanwhile, or is already done.
            None => stop.abort(),
        }
    }

    async fn task_done(&self, id: &str, outcome: TaskOutcome) {
        if self.finish_draft(id, &outcome) || !self.keep_outcome(id, &outcome).await {
            return;
        }
        let finished = lock(&self.tasks.register)
            .finish(id, outcome, stamp(), now())
            .map(|it| self.change(it));
        self.tasks.leave(id);
        if let Ok(change) = finished {
            self.task_changed(&change);
        }
    }

    fn task_changed(&self, change: &Change) {
        self.tasks.changed.notify_waiters();
        self.listeners.tell(change, |_| true);
    }

    fn change(&self, record: &Record) -> Change {
        Change::Task(
            Box::new(record.core_task()),
            stateless::encode_task_params(&self.detail(record)),
        )
    }

    /// Announces the state of a task to every listener.
    fn announce(&self, id: &str) {
        let change = lock(&self.tasks.register).get(id, now()).map(|record| self.change(record));
        if let Ok(change) = change {
            self.task_changed(&change);
        }
    }

    /// A task with all that 2026-07-28 says about it.
    fn detail(&self, record: &Record) -> DetailedTask {
        let mut detail = DetailedTask::new(record.task().clone());
        match record.outcome() {
            Some(Ok(result)) => {
                detail.result = Some(stateful::encode(
                    result.clone(),
                    Revision::LATEST,
                    &stateless::Extras::default(),
                ));
            }
            Some(Err(error)) => detail.error = Some(error.clone()),
            None => {}
        }
        detail.progress = record.progress().cloned();
        detail.input_requests =
            record.questions().iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        detail
    }
}

/// The task that a request changes, if it does.
#[cfg(feature = "replicas")]
fn changed_task(method: &str, params: &Params) -> Option<String> {
    let changes = [Method::TasksCancel, Method::TasksUpdate];
    Method::of(method).filter(|it| changes.contains(it))?;
    params.get("taskId")?.to().ok()
}

/// Runs a tool to its end. A panic is an outcome too, as for a plain call.
async fn run(job: Job, context: Context) -> TaskOutcome {
    let mut running = None;
    let outcome = poll_fn(|cx| {
        let start = || job.clone().start(context.revision(), &|_| context.clone());
        let step = || running.get_or_insert_with(start).poll_tool(cx);
        catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    });
    outcome.await.map(|mut result| {
        job.fit(&mut result, context.revision());
        result
    })
}

fn task_error(error: TaskError) -> ErrorObject {
    match error {
        TaskError::Unknown => ErrorObject::invalid_params("There is no such task."),
        TaskError::Terminal => ErrorObject::invalid_params("The task is already over."),
        TaskError::Full => ErrorObject::internal("overloaded", "Too many tasks are kept."),
    }
}
