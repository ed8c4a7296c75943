//! Tasks that outlive their process: every change is stored before a client hears of it, and other
//! processes take over the tasks of a process that died.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::timeout;
use trunkline_auth::Principal;
use trunkline_auth::tag::random_name;
use trunkline_proto::input_required::Journal;
use trunkline_proto::task::{Record, SavedTask, TaskOutcome};
use trunkline_proto::{Attached, Call, CallKey, Peer, RequestStream};
use trunkline_store::{Entry, Expect, Lease, Pending, Store, StoreError, Swap, Version};
use trunkline_transport::clock::now;
use trunkline_transport::conversation_handle::ConversationHandle;
use trunkline_wire::era;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Object};
use trunkline_wire::method::Method;
use trunkline_wire::model::{ClientCapabilities, Implementation};
use trunkline_wire::revision::Revision;

use super::Live;
use super::asker::TaskAsker;
use super::stamp::stamp;
use crate::caller::principal;
use crate::server::Inner;
use crate::server::context::{Asker, Context, lock};
use crate::server::job::{Job, Target};
use crate::server::rounds::Notebook;

/// The store of the tasks, and this process's name in it.
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    /// How long after its last heartbeat a process counts as alive.
    life: Duration,
    /// The name of this process among those that share the store.
    runner: String,
    lease: AsyncMutex<Option<Lease>>,
    /// Held during a takeover, so that this process does not race with itself.
    taking: AsyncMutex<()>,
    is_watching: AtomicBool,
}

/// What another process needs to continue a task, and the stored version of it.
pub(super) struct Saved {
    plan: Plan,
    version: AsyncMutex<Option<Version>>,
}

/// The call that became a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plan {
    tool: String,
    arguments: Option<Json>,
    meta: Option<Json>,
    revision: String,
    client: ClientCapabilities,
    info: Option<Implementation>,
    principal: Option<Who>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Who {
    issuer: Option<String>,
    subject: String,
    scopes: Vec<String>,
}

/// A task as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The process that runs it.
    runner: String,
    /// The id of that process among replicas, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replica: Option<String>,
    /// When it expires, in milliseconds since 1970.
    expires: u64,
    task: SavedTask,
    plan: Plan,
    journal: Journal,
}

impl Saved {
    pub(super) fn new(call: &Call, job: &Job) -> Self {
        let (tool, resumes) = match &job.target {
            Target::Tool(tool) => (tool.tool.name.clone(), tool.resumes),
            _ => (String::new(), false),
        };
        let who = |it: &Principal| Who {
            issuer: it.issuer.clone(),
            subject: it.subject.clone(),
            scopes: it.scopes.clone(),
        };
        let plan = Plan {
            tool,
            // Only a task that can be resumed needs its arguments.
            arguments: job.arguments.clone().filter(|_| resumes),
            meta: call.meta.clone(),
            revision: call.revision.as_str().to_owned(),
            client: call.peer.client.clone(),
            info: call.peer.info.clone(),
            principal: principal(&call.attached).map(who),
        };
        Self { plan, version: AsyncMutex::new(None) }
    }
}

impl Plan {
    /// The original call, without a connection.
    fn call(&self) -> Option<Call> {
        let revision = Revision::parse(&self.revision)?;
        let attached = self.principal.as_ref().map_or_else(Attached::default, |it| {
            let mut principal = Principal::new(&*it.subject);
            principal.issuer = it.issuer.clone();
            principal.scopes = it.scopes.clone();
            Attached::new(principal)
        });
        let (client, info) = (self.client.clone(), self.info.clone());
        let peer = Peer { client, info, ..Peer::default() };
        Some(Call {
            key: CallKey(u64::MAX),
            id: Id::Null,
            method: Method::ToolsCall.oldest_row(),
            params: Object::default(),
            meta: self.meta.clone(),
            revision,
            peer: Arc::new(peer),
            via: RequestStream::default(),
            is_unseen: false,
            wants_progress: false,
            log_level: None,
            attached,
        })
    }
}

impl Keeper {
    pub(crate) fn new(store: Arc<dyn Store>, life: Duration) -> Self {
        Self {
            store,
            life,
            runner: random_name(),
            lease: AsyncMutex::new(None),
            taking: AsyncMutex::new(()),
            is_watching: AtomicBool::new(false),
        }
    }

    /// Writes the heartbeat of this process.
    async fn sign(&self) -> Result<(), StoreError> {
        let mut lease = self.lease.lock().await;
        if let Some(held) = &*lease
            && in_time(self.store.renew(held, self.life)).await?
        {
            return Ok(());
        }
        let name = runner_key(&self.runner);
        *lease = in_time(self.store.lease(&name, self.life)).await?;
        match *lease {
            Some(_) => Ok(()),
            None => Err(StoreError::Unavailable("somebody else has our name".to_owned())),
        }
    }

    /// Whether the process `runner` is gone. The compare-and-set on the task's version decides who
    /// takes over, so this releases the name at once.
    async fn is_gone(&self, runner: &str) -> Result<bool, StoreError> {
        if runner == self.runner {
            return Ok(false);
        }
        match in_time(self.store.lease(&runner_key(runner), TAKING_OVER)).await? {
            Some(lease) => in_time(self.store.release(&lease)).await.map(|_| true),
            None => Ok(false),
        }
    }
}

/// Why a task could not be stored.
pub(super) enum NotKept {
    /// Another process took this one for dead and continues the task.
    Taken,
    /// The store failed.
    Failed(ErrorObject),
}

impl From<NotKept> for ErrorObject {
    fn from(why: NotKept) -> Self {
        match why {
            NotKept::Failed(error) => error,
            NotKept::Taken => {
                Self::internal("taken_over", "Another process goes on with the task.")
            }
        }
    }
}

impl Inner {
    /// Stores the current state of a task. Does nothing without a store.
    pub(super) async fn keep_task(&self, id: &str) -> Result<(), ErrorObject> {
        match self.tasks.live(id) {
            Some(live) => Ok(self.keep_now(id, &live, None).await?),
            None => Ok(()),
        }
    }

    /// Stores the outcome of a task before a client hears of it, and retries until that succeeds.
    /// Returns whether this process may announce it.
    pub(super) async fn keep_outcome(&self, id: &str, outcome: &TaskOutcome) -> bool {
        // Without a store there is nothing to keep. With one, a task that no longer runs here
        // belongs to another process.
        let Some(live) = self.tasks.live(id) else { return self.tasks.keeper.is_none() };
        let mut pause = Duration::from_millis(100);
        loop {
            match self.keep_now(id, &live, Some(outcome)).await {
                Ok(()) => return true,
                Err(NotKept::Taken) => return false,
                Err(NotKept::Failed(_)) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(Duration::from_secs(5));
        }
    }

    /// The same for a task that ran until now. If this future is dropped halfway, the next write
    /// finds the conflict and resolves it.
    pub(super) async fn keep_now(
        &self,
        id: &str,
        live: &Live,
        outcome: Option<&TaskOutcome>,
    ) -> Result<(), NotKept> {
        let Some(keeper) = &self.tasks.keeper else { return Ok(()) };
        if self.is_draft(id) {
            // No client knows the task, so none will miss it.
            return Ok(());
        }
        let key = task_key(id);
        // Writes are serialized, and each one writes the state at its turn.
        let mut version = live.saved.version.lock().await;
        if version.is_none() {
            // A reader of the stored task must see that its runner is alive.
            keeper.sign().await.map_err(|error| not_kept(&error))?;
        }
        loop {
            let Some((stored, ttl)) = self.stored(id, &keeper.runner, live, outcome) else {
                // It has expired.
                return Ok(());
            };
            let expect = version.map_or(Expect::Absent, Expect::Version);
            let swap = keeper.store.swap(&key, expect, stored.get().as_bytes(), Some(ttl));
            match in_time(swap).await.map_err(|error| not_kept(&error))? {
                Swap::Done(kept) => {
                    *version = Some(kept);
                    return Ok(());
                }
                // An earlier write of ours whose future was dropped.
                Swap::Conflict(Some(entry)) if runner_of(&entry) == Some(keeper.runner.clone()) => {
                    *version = Some(entry.version);
                }
                Swap::Conflict(_) => break,
            }
        }
        drop(version);
        lock(&self.tasks.register).lend(id);
        self.tasks.stop(id);
        Err(NotKept::Taken)
    }

    fn stored(
        &self,
        id: &str,
        runner: &str,
        live: &Live,
        outcome: Option<&TaskOutcome>,
    ) -> Option<(Json, Duration)> {
        let now = now();
        let mut register = lock(&self.tasks.register);
        let record = register.get(id, now).ok()?;
        let mut task = record.save();
        let mut expires = record.expires();
        if let Some(outcome) = outcome
            && !record.is_over()
        {
            task.finish(outcome.clone(), stamp());
            expires = record.expires_if_over(now);
        }
        let left = expires.saturating_duration_since(now).max(Duration::from_millis(1));
        // A finished task is never resumed, so neither plan nor journal is needed.
        let (mut plan, mut journal) = (live.saved.plan.clone(), Journal::default());
        match task.task.status.is_terminal() {
            true => plan.arguments = None,
            false => journal = lock(&live.notebook).journal().clone(),
        }
        let stored = Stored {
            runner: runner.to_owned(),
            replica: self.replica_id(),
            expires: unix_millis().saturating_add(u64::try_from(left.as_millis()).ok()?),
            task,
            plan,
            journal,
        };
        Some((Json::of(&stored), left))
    }

    /// The replica that runs a task now, as the store says.
    #[cfg(feature = "replicas")]
    pub(super) async fn replica_of(&self, id: &str) -> Option<String> {
        let keeper = self.tasks.keeper.as_ref()?;
        let entry = in_time(keeper.store.get(&task_key(id))).await.ok()??;
        left_of(&entry)?.replica
    }

    /// Runs a future to its end, even if its caller is cancelled.
    pub(super) async fn run_detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = oneshot::channel();
        self.tasks.spawn(async move {
            let _ = tell.send(work.await);
        });
        told.await.ok()
    }

    /// Loads the state of a task that does not run here.
    pub(super) async fn look_up(self: &Arc<Self>, id: &str) {
        let Some(keeper) = &self.tasks.keeper else { return };
        if self.is_known(id) {
            return;
        }
        match in_time(keeper.store.get(&task_key(id))).await {
            Ok(Some(entry)) => {
                let (server, id) = (Arc::clone(self), id.to_owned());
                self.run_detached(async move { server.take_in(&id, &entry, None).await }).await;
            }
            Ok(None) => lock(&self.tasks.register).forget(id),
            Err(error) => tracing::error!(task = id, %error, "a task cannot be looked up"),
        }
    }

    /// Whether this process already has the final state of a task.
    fn is_known(&self, id: &str) -> bool {
        let is_known = |it: &Record| it.is_over() || !it.is_elsewhere();
        lock(&self.tasks.register).get(id, now()).is_ok_and(is_known)
    }

    async fn take_in(self: &Arc<Self>, id: &str, entry: &Entry, gone: Option<bool>) {
        let Some(keeper) = &self.tasks.keeper else { return };
        let Ok(stored) = serde_json::from_slice::<Stored>(&entry.value) else {
            return tracing::error!(task = id, "a kept task cannot be read");
        };
        let _taking = keeper.taking.lock().await;
        // Another caller of this process may have taken it over while we waited.
        if self.is_known(id) {
            return;
        }
        let left = Duration::from_millis(stored.expires.saturating_sub(unix_millis()));
        let now = now();
        let is_over = stored.task.task.status.is_terminal();
        let is_gone = match gone {
            Some(gone) => gone,
            None => !is_over && keeper.is_gone(&stored.runner).await.unwrap_or(false),
        };
        let restored = lock(&self.tasks.register).restore(
            stored.task.clone(),
            !is_over && !is_gone,
            now + left,
            now,
        );
        match restored {
            Ok(()) if is_gone => self.take_over(id, stored, entry.version).await,
            Ok(()) => {}
            Err(_) => tracing::warn!(task = id, "there is no room for a kept task"),
        }
    }

    /// Takes over a task that its process left. A tool that did not declare `ToolEntry::resume`
    /// is not run again: how far it got is unknown.
    async fn take_over(self: &Arc<Self>, id: &str, stored: Stored, version: Version) {
        let tool = self.tools.find(&stored.plan.tool).filter(|it| it.resumes);
        let call = stored.plan.call();
        let notebook = Arc::new(Mutex::new(Notebook::of(stored.journal)));
        let arguments = stored.plan.arguments.clone();
        let saved = Saved { plan: stored.plan, version: AsyncMutex::new(Some(version)) };
        self.register_task(id, Arc::clone(&notebook), saved);
        let (Some(tool), Some(call)) = (tool, call) else {
            let why = "The server ended while the task ran. What it has done is not known.";
            return self.task_done(id, Err(ErrorObject::internal("interrupted", why))).await;
        };
        // The compare-and-set lets only one of the processes continue.
        if self.keep_task(id).await.is_err() {
            lock(&self.tasks.register).lend(id);
            return self.tasks.forget(id);
        }
        tracing::info!(task = id, tool = &*tool.tool.name, "a task goes on");
        let handle = ConversationHandle::unheard();
        let asker = match call.revision.profile().tasks {
            era::Tasks::Extension => TaskAsker::new(self, id, &notebook),
            // Its questions went over a connection that is closed now.
            _ => TaskAsker::on_the_wire(self, id, &notebook, &handle, call.revision),
        };
        let context = Context::new(self, &call, &handle, Asker::Task(asker));
        let job = Job { server: Arc::clone(self), target: Target::Tool(tool), arguments };
        self.spawn_work(id, job, context);
    }

    /// Writes heartbeats and looks for tasks of dead processes, for as long as the server lives.
    pub(in crate::server) fn watch_tasks(self: &Arc<Self>) {
        let Some(keeper) = &self.tasks.keeper else { return };
        // The relaxed load keeps this cheap for every request.
        if keeper.is_watching.load(Ordering::Relaxed)
            || keeper.is_watching.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let pause = keeper.life / 3;
        let server = Arc::downgrade(self);
        self.tasks.spawn(async move {
            while let Some(server) = server.upgrade() {
                server.sign().await;
                drop(server);
                tokio::time::sleep(pause).await;
            }
        });
        let server = Arc::downgrade(self);
        self.tasks.spawn(async move {
            while let Some(server) = server.upgrade() {
                server.find_tasks(false).await;
                drop(server);
                tokio::time::sleep(pause).await;
            }
        });
    }

    async fn sign(&self) {
        let Some(keeper) = &self.tasks.keeper else { return };
        if let Err(error) = keeper.sign().await {
            tracing::error!(%error, "the store of tasks cannot be reached");
        }
    }

    /// Takes over orphaned tasks. `all`: also loads those that are over or run elsewhere.
    pub(super) async fn find_tasks(self: &Arc<Self>, all: bool) {
        let Some(keeper) = &self.tasks.keeper else { return };
        let (mut after, mut gone) = (None, HashMap::new());
        loop {
            let page = match in_time(keeper.store.scan(TASKS, after.as_deref(), PAGE)).await {
                Ok(page) => page,
                Err(error) => return tracing::error!(%error, "kept tasks cannot be listed"),
            };
            for item in page.items {
                let id = item.key.strip_prefix(TASKS).unwrap_or(&item.key);
                let entry = Entry { value: item.value, version: item.version };
                let Some(left) = left_of(&entry).filter(|_| !self.is_known(id)) else { continue };
                let is_gone = match (left.task.task.status.is_terminal(), gone.get(&left.runner)) {
                    (true, _) => false,
                    (false, Some(gone)) => *gone,
                    (false, None) => {
                        let is_gone = keeper.is_gone(&left.runner).await.unwrap_or(false);
                        *gone.entry(left.runner).or_insert(is_gone)
                    }
                };
                if all || is_gone {
                    self.take_in(id, &entry, Some(is_gone)).await;
                }
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }
}

/// The part of a stored task that names its runner.
#[derive(Deserialize)]
struct Left {
    runner: String,
    #[cfg(feature = "replicas")]
    replica: Option<String>,
    task: SavedTask,
}

fn left_of(entry: &Entry) -> Option<Left> {
    serde_json::from_slice(&entry.value).ok()
}

fn runner_of(entry: &Entry) -> Option<String> {
    left_of(entry).map(|it| it.runner)
}

/// A store that does not answer in time counts as unavailable.
async fn in_time<T>(asked: Pending<'_, T>) -> Result<T, StoreError> {
    timeout(STORE, asked)
        .await
        .unwrap_or_else(|_| Err(StoreError::Unavailable("it does not answer".to_owned())))
}

fn not_kept(error: &StoreError) -> NotKept {
    tracing::error!(%error, "a task cannot be kept");
    NotKept::Failed(ErrorObject::internal("store", "The task cannot be kept. Try again later."))
}

fn task_key(id: &str) -> String {
    format!("{TASKS}{id}")
}

fn runner_key(runner: &str) -> String {
    format!("runner/{runner}")
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

const TASKS: &str = "task/";
const PAGE: usize = 100;

/// The time-out of a store operation.
const STORE: Duration = Duration::from_secs(10);

/// How long after its last heartbeat a process counts as alive, by default.
pub(crate) const LIFE: Duration = Duration::from_secs(15);
const TAKING_OVER: Duration = Duration::from_secs(1);

/// How often a task of another process is polled while a caller waits for it.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(500);
