//! Tasks that outlive their process: every change goes to a store before anybody hears of it, and
//! whoever finds the task of a process that is gone takes it over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex as AsyncMutex;
use trunkline_auth::Principal;
use trunkline_auth::tag::random_name;
use trunkline_proto::input_required::Journal;
use trunkline_proto::task::{Record, SavedTask};
use trunkline_proto::{Attached, Call, CallKey, Peer};
use trunkline_store::{Entry, Expect, Lease, Store, StoreError, Swap, Version};
use trunkline_transport::clock::now;
use trunkline_transport::voice::Voice;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object};
use trunkline_wire::method;
use trunkline_wire::model::{ClientCapabilities, Implementation};
use trunkline_wire::revision::Revision;

use super::Live;
use super::asker::TaskAsker;
use crate::extract::principal;
use crate::server::Inner;
use crate::server::context::{Asker, Context, lock};
use crate::server::job::{Job, Target};
use crate::server::rounds::Notebook;

/// Where tasks are kept, and in whose name this process works on them.
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    /// How long a process counts as alive after its last sign.
    life: Duration,
    /// The name of this process among those that share the store.
    runner: String,
    lease: AsyncMutex<Option<Lease>>,
    /// Held while a task is taken over, so that this process does not race with itself.
    taking: AsyncMutex<()>,
    is_watching: AtomicBool,
}

/// What is needed to go on with a task elsewhere, and which version of it is kept.
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

/// A task as it lies in the store.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Who works on it.
    runner: String,
    /// When it is forgotten, in milliseconds since 1970.
    expires: u64,
    task: SavedTask,
    plan: Plan,
    journal: Journal,
}

impl Saved {
    pub(super) fn new(call: &Call, job: &Job) -> Self {
        let tool = match &job.target {
            Target::Tool(tool) => tool.tool.name.clone(),
            _ => String::new(),
        };
        let who = |it: &Principal| Who {
            issuer: it.issuer.clone(),
            subject: it.subject.clone(),
            scopes: it.scopes.clone(),
        };
        let plan = Plan {
            tool,
            arguments: job.arguments.clone(),
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
    /// The call again, without anybody who waits for it.
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
            method: method::TABLE.iter().find(|it| it.name == "tools/call")?,
            params: Object::default(),
            meta: self.meta.clone(),
            revision,
            peer: Arc::new(peer),
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

    /// Says that this process is alive, to whoever might take over its tasks.
    async fn sign(&self) -> Result<(), StoreError> {
        let mut lease = self.lease.lock().await;
        if let Some(held) = &*lease
            && self.store.renew(held, self.life).await?
        {
            return Ok(());
        }
        *lease = self.store.lease(&runner_key(&self.runner), self.life).await?;
        Ok(())
    }

    /// Whether the process `runner` is gone. If so, its name is taken: nobody else takes over what
    /// it left at the same time.
    async fn is_gone(&self, runner: &str) -> Result<bool, StoreError> {
        if runner == self.runner {
            return Ok(false);
        }
        match self.store.lease(&runner_key(runner), TAKING_OVER).await? {
            // It is let go at once: what decides in the end is the version of the task.
            Some(lease) => self.store.release(&lease).await.map(|_| true),
            None => Ok(false),
        }
    }
}

impl Inner {
    /// Keeps a task as it stands now. Nothing to do without a store.
    pub(super) async fn keep_task(&self, id: &str) -> Result<(), ErrorObject> {
        match self.tasks.live(id) {
            Some(live) => self.keep_now(id, &live).await,
            None => Ok(()),
        }
    }

    /// The same for a task that was worked on until now.
    pub(super) async fn keep_now(&self, id: &str, live: &Live) -> Result<(), ErrorObject> {
        let Some(keeper) = &self.tasks.keeper else { return Ok(()) };
        // One after the other, and each writes what is known when its turn comes.
        let mut version = live.saved.version.lock().await;
        let Some((stored, ttl)) = self.stored(id, &keeper.runner, &live.saved.plan, &live.notebook)
        else {
            return Ok(());
        };
        if version.is_none() {
            // Whoever finds the task must see that somebody works on it.
            keeper.sign().await.map_err(|error| not_kept(&error))?;
        }
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let key = task_key(id);
        let swap = keeper.store.swap(&key, expect, stored.get().as_bytes(), Some(ttl));
        match swap.await.map_err(|error| not_kept(&error))? {
            Swap::Done(kept) => {
                *version = Some(kept);
                Ok(())
            }
            Swap::Conflict(_) => {
                // Somebody took this process for gone and goes on with the task.
                drop(version);
                lock(&self.tasks.register).lend(id);
                self.tasks.stop(id);
                Err(ErrorObject::internal("taken_over", "Another process goes on with the task."))
            }
        }
    }

    fn stored(
        &self,
        id: &str,
        runner: &str,
        plan: &Plan,
        notebook: &Mutex<Notebook>,
    ) -> Option<(Json, Duration)> {
        let now = now();
        let mut register = lock(&self.tasks.register);
        let record = register.get(id, now).ok()?;
        let left = record.expires().saturating_duration_since(now).max(Duration::from_millis(1));
        let stored = Stored {
            runner: runner.to_owned(),
            expires: unix_millis().saturating_add(u64::try_from(left.as_millis()).ok()?),
            task: record.save(),
            plan: plan.clone(),
            journal: lock(notebook).journal().clone(),
        };
        Some((Json::of(&stored), left))
    }

    /// Finds out how a task stands that nobody here works on.
    pub(super) async fn look_up(self: &Arc<Self>, id: &str) {
        let Some(keeper) = &self.tasks.keeper else { return };
        let is_known = |it: &Record| it.is_over() || !it.is_elsewhere();
        if lock(&self.tasks.register).get(id, now()).is_ok_and(is_known) {
            return;
        }
        match keeper.store.get(&task_key(id)).await {
            Ok(Some(entry)) => self.take_in(keeper, id, &entry).await,
            Ok(None) => lock(&self.tasks.register).forget(id),
            Err(error) => tracing::error!(task = id, %error, "a task cannot be looked up"),
        }
    }

    async fn take_in(self: &Arc<Self>, keeper: &Keeper, id: &str, entry: &Entry) {
        let Ok(stored) = serde_json::from_slice::<Stored>(&entry.value) else {
            tracing::error!(task = id, "a kept task cannot be read");
            return;
        };
        let _taking = keeper.taking.lock().await;
        // Whoever had the word before may have taken it over already.
        let is_known = |it: &Record| it.is_over() || !it.is_elsewhere();
        if lock(&self.tasks.register).get(id, now()).is_ok_and(is_known) {
            return;
        }
        let left = Duration::from_millis(stored.expires.saturating_sub(unix_millis()));
        let now = now();
        let is_over = stored.task.task.status.is_terminal();
        let is_gone = !is_over && keeper.is_gone(&stored.runner).await.unwrap_or(false);
        let restored = lock(&self.tasks.register).restore(
            stored.task.clone(),
            !is_over && !is_gone,
            now + left,
            now,
        );
        if restored.is_ok() && is_gone {
            self.take_over(id, stored, entry.version).await;
        }
    }

    /// Goes on with a task that its process left. A tool that does not say that it can be begun
    /// again is not: nobody knows how far it got.
    async fn take_over(self: &Arc<Self>, id: &str, stored: Stored, version: Version) {
        let tool = self.tools.find(&stored.plan.tool).filter(|it| it.resumes);
        let call = stored.plan.call();
        let notebook = Arc::new(Mutex::new(Notebook::of(stored.journal)));
        let arguments = stored.plan.arguments.clone();
        let saved = Saved { plan: stored.plan, version: AsyncMutex::new(Some(version)) };
        self.take_on(id, Arc::clone(&notebook), saved);
        let (Some(tool), Some(call)) = (tool, call) else {
            let why = "The server ended while the task ran. What it has done is not known.";
            return self.task_done(id, Err(ErrorObject::internal("interrupted", why))).await;
        };
        // Only one of those who found it gets past this.
        if self.keep_task(id).await.is_err() {
            lock(&self.tasks.register).lend(id);
            return self.tasks.forget(id);
        }
        tracing::info!(task = id, tool = &*tool.tool.name, "a task goes on");
        let asker = TaskAsker::new(self, id, &notebook);
        let context = Context::new(self, &call, &Voice::unheard(), Asker::Task(asker));
        let job = Job { server: Arc::clone(self), target: Target::Tool(tool), arguments };
        self.work_on(id, job, context);
    }

    /// Looks for tasks that were left by processes that are gone, for as long as the server lives.
    pub(in crate::server) fn watch_tasks(self: &Arc<Self>) {
        let Some(keeper) = &self.tasks.keeper else { return };
        // The first look is the cheap one that every request can afford.
        if keeper.is_watching.load(Ordering::Relaxed)
            || keeper.is_watching.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let (server, pause) = (Arc::downgrade(self), keeper.life / 3);
        let watch = async move {
            while let Some(server) = server.upgrade() {
                server.find_tasks().await;
                drop(server);
                tokio::time::sleep(pause).await;
            }
        };
        lock(&self.tasks.working).tasks.spawn(watch);
    }

    async fn find_tasks(self: &Arc<Self>) {
        let Some(keeper) = &self.tasks.keeper else { return };
        if let Err(error) = keeper.sign().await {
            tracing::error!(%error, "the store of tasks cannot be reached");
            return;
        }
        let mut after = None;
        loop {
            let page = match keeper.store.scan(TASKS, after.as_deref(), PAGE).await {
                Ok(page) => page,
                Err(error) => return tracing::error!(%error, "kept tasks cannot be listed"),
            };
            for item in page.items {
                let id = item.key.trim_start_matches(TASKS).to_owned();
                let is_known = |it: &Record| it.is_over() || !it.is_elsewhere();
                let is_known = lock(&self.tasks.register).get(&id, now()).is_ok_and(is_known);
                if !is_known {
                    let entry = Entry { value: item.value, version: item.version };
                    self.take_in(keeper, &id, &entry).await;
                }
            }
            after = page.next;
            if after.is_none() {
                return;
            }
        }
    }
}

fn not_kept(error: &StoreError) -> ErrorObject {
    tracing::error!(%error, "a task cannot be kept");
    ErrorObject::internal("store", "The task cannot be kept. Try again later.")
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

/// How long a process counts as alive after its last sign, unless the server says otherwise.
pub(crate) const LIFE: Duration = Duration::from_secs(15);
const TAKING_OVER: Duration = Duration::from_secs(1);

/// How often somebody else's task is looked at while somebody waits for it.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(500);
