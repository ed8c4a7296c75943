//! A task as its client sees it: its status, questions and outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use trunkline_proto::Change;
use trunkline_wire::era::stateful::RequestMeta;
use trunkline_wire::era::{carry, stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{CallToolResult, DetailedTask, InputRequest, Task, TaskStatus, Tool};
use trunkline_wire::revision::Revision;

use super::drive::Drive;
use super::is_error;
use super::registry::Registry;
use crate::caller::Caller;
use crate::policy::plugins::{CallView, Kind, Pipeline};
use crate::policy::stamp::rfc3339;
use crate::upstream::Instance;
use crate::upstream_call::Guard;

/// What is known of a task from the beginning.
pub(crate) struct Known {
    /// Its sealed id.
    pub(crate) id: String,
    /// The trace id of the call that became the task.
    pub(crate) trace: String,
    pub(crate) server: Arc<str>,
    pub(crate) tool: Arc<Tool>,
    pub(crate) caller: Arc<Caller>,
    /// The registry that holds it.
    pub(crate) registry: Weak<Registry>,
    /// The plugins that inspect the result.
    pub(crate) plugins: Option<(Arc<Pipeline>, CallView)>,
}

/// A task.
pub(crate) struct Entry {
    known: Known,
    order: AtomicU64,
    state: Mutex<State>,
    /// Notified on every change.
    changed: Notify,
    /// Triggers a poll.
    nudge: Arc<Notify>,
    /// The task that follows it; aborted with the entry.
    driver: Mutex<Option<AbortHandle>>,
}

struct State {
    /// As 2026-07-28 represents it, without its questions.
    task: Task,
    end: Option<End>,
    questions: BTreeMap<String, Question>,
    asked: u64,
    /// The instance that works on it, until it ends.
    instance: Option<Arc<Instance>>,
    /// The number of polls.
    polls: u64,
    /// Whether a `tasks/result` waits for its end at the server.
    is_awaited: bool,
}

struct Question {
    request: InputRequest,
    tell: oneshot::Sender<Outcome>,
    /// Whether a request with it is in flight to a client.
    is_taken: bool,
}

/// The outcome of a task.
#[derive(Clone)]
pub(crate) enum End {
    /// A result, in the server's revision.
    Result(Json, Revision),
    /// An error, in the server's revision or unchanged.
    Error(ErrorObject, Option<Revision>),
    /// It was cancelled.
    Cancelled,
}

impl End {
    fn weight(&self) -> usize {
        match self {
            Self::Result(said, _) => said.get().len(),
            Self::Error(error, _) => {
                error.message.len() + error.data.as_ref().map_or(0, |it| it.get().len())
            }
            Self::Cancelled => 0,
        }
    }
}

impl Entry {
    /// A task of a server.
    pub(crate) fn of(
        known: Known,
        task: &Task,
        instance: Arc<Instance>,
        nudge: Arc<Notify>,
    ) -> Arc<Self> {
        let mut shown = task.clone();
        shown.task_id = known.id.clone();
        // Its outcome was not fetched yet, whatever its status.
        shown.status = TaskStatus::Working;
        Self::new(known, shown, Some(instance), nudge)
    }

    /// A task of the gateway's own.
    pub(crate) fn local(known: Known, ttl_ms: Option<u64>) -> Arc<Self> {
        let mut task = Task::new(known.id.clone(), rfc3339(SystemTime::now()));
        task.ttl_ms =
            Some(ttl_ms.map_or(TTL, Duration::from_millis).min(LONGEST).as_millis() as u64);
        Self::new(known, task, None, Arc::default())
    }

    fn new(
        known: Known,
        task: Task,
        instance: Option<Arc<Instance>>,
        nudge: Arc<Notify>,
    ) -> Arc<Self> {
        let state = State {
            task,
            end: None,
            questions: BTreeMap::new(),
            asked: 0,
            instance,
            polls: 0,
            is_awaited: false,
        };
        Arc::new(Self {
            known,
            order: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: Notify::new(),
            nudge,
            driver: Mutex::default(),
        })
    }

    /// Follows it to its end, and removes it when its TTL is over.
    pub(crate) fn follow(self: &Arc<Self>, mut drive: Drive) {
        let (entry, registry) = (Arc::downgrade(self), Weak::clone(&self.known.registry));
        let id = self.known.id.clone();
        let task = tokio::spawn(async move {
            let end = drive.end(LIFE).await;
            drop(drive);
            let Some(this) = entry.upgrade() else { return };
            this.finish(end).await;
            let kept = this.kept();
            drop(this);
            forget(registry, id, kept).await;
        });
        self.ends_with(task.abort_handle());
    }

    /// Removes it when its TTL is over.
    pub(crate) fn expire_later(self: &Arc<Self>) {
        let (registry, id) = (Weak::clone(&self.known.registry), self.known.id.clone());
        let kept = self.kept();
        let task = tokio::spawn(forget(registry, id, kept));
        self.ends_with(task.abort_handle());
    }

    fn ends_with(&self, task: AbortHandle) {
        *self.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    fn kept(&self) -> Duration {
        self.lock().task.ttl_ms.map_or(TTL, Duration::from_millis).min(LONGEST)
    }

    pub(crate) fn id(&self) -> &str {
        &self.known.id
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.known.caller
    }

    pub(crate) fn order(&self) -> u64 {
        self.order.load(Ordering::Relaxed)
    }

    pub(crate) fn set_order(&self, order: u64) {
        self.order.store(order, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().end.is_some()
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// The instance that works on it, until it ends.
    pub(crate) fn place(&self) -> Option<Arc<Instance>> {
        self.lock().instance.clone()
    }

    pub(crate) fn moved(&self, instance: &Arc<Instance>) {
        self.lock().instance = Some(Arc::clone(instance));
    }

    pub(crate) fn is_awaited(&self) {
        self.lock().is_awaited = true;
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// A poll returned this status.
    pub(crate) fn polled(&self, now: &Task) {
        let is_news = {
            let mut state = self.lock();
            state.polls += 1;
            let task = &mut state.task;
            let is_news = task.status_message != now.status_message;
            task.status_message.clone_from(&now.status_message);
            task.poll_interval_ms = now.poll_interval_ms.or(task.poll_interval_ms);
            task.ttl_ms = now.ttl_ms;
            task.last_updated_at.clone_from(&now.last_updated_at);
            is_news && state.end.is_none()
        };
        self.tell(is_news);
    }

    /// Triggers a poll and waits for its result.
    pub(crate) async fn poll_now(&self) {
        let before = {
            let state = self.lock();
            if state.end.is_some() || state.is_awaited {
                return;
            }
            state.polls
        };
        let found = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                {
                    let state = self.lock();
                    if state.polls > before || state.end.is_some() || state.is_awaited {
                        return;
                    }
                }
                self.nudge.notify_one();
                changed.await;
            }
        };
        // After the time-out, the known status is used.
        let _ = tokio::time::timeout(POLL, found).await;
    }

    /// Ends the task. Plugins see the outcome before any client does.
    pub(crate) async fn finish(&self, end: End) {
        let end = match (end, &self.known.plugins) {
            (End::Result(said, from), Some((plugins, view))) => {
                match plugins.response(view, said).await {
                    Ok(said) => End::Result(said, from),
                    Err(rejected) => {
                        let refused = CallToolResult::error(rejected.to_string());
                        End::Result(Json::of(&refused), Revision::V2025_11_25)
                    }
                }
            }
            (End::Error(error, Some(from)), Some((plugins, view))) => {
                let said = plugins.said(Kind::Error, view, Json::of(&error)).await;
                match said {
                    Ok(said) => End::Error(said.to().unwrap_or(error), Some(from)),
                    Err(rejected) => {
                        End::Error(ErrorObject::internal("rejected", rejected.to_string()), None)
                    }
                }
            }
            (end, _) => end,
        };
        self.settle(end);
    }

    /// The plugins that inspect its questions.
    pub(crate) fn guard(&self) -> Option<Guard> {
        let (plugins, view) = self.known.plugins.clone()?;
        Some(Guard { plugins, view: Arc::new(view) })
    }

    /// The bytes it holds.
    pub(crate) fn weight(&self) -> usize {
        self.lock().end.as_ref().map_or(0, End::weight)
    }

    /// Ends the task, unless it has ended.
    pub(crate) fn settle(&self, end: End) -> bool {
        if self.is_over() {
            return false;
        }
        // Outside our own lock: this locks all tasks.
        if let Some(registry) = self.known.registry.upgrade() {
            registry.grows(self, end.weight());
        }
        {
            let mut state = self.lock();
            if state.end.is_some() {
                return false;
            }
            state.task.status = match &end {
                End::Result(..) => TaskStatus::Completed,
                End::Error(..) => TaskStatus::Failed,
                End::Cancelled => TaskStatus::Cancelled,
            };
            match &end {
                End::Error(error, _) => state.task.status_message = Some(error.message.clone()),
                End::Cancelled => {
                    state.task.status_message = Some("The task was cancelled.".to_owned());
                }
                End::Result(..) => {}
            }
            state.task.last_updated_at = rfc3339(SystemTime::now());
            state.end = Some(end);
            state.questions.clear();
            state.instance = None;
        }
        self.tell(true);
        self.nudge.notify_one();
        true
    }

    /// Asks the client that polls the task. Dropping the future withdraws the question.
    pub(crate) fn ask(
        self: &Arc<Self>,
        method: Method,
        params: Object,
    ) -> Result<impl Future<Output = Outcome> + Send + use<>, ErrorObject> {
        let request =
            InputRequest::read(method.name(), Some(&params.to_json())).map_err(|error| {
                ErrorObject::invalid_params(format!("The question cannot be read: {error}."))
            })?;
        let (tell, told) = oneshot::channel();
        let key = {
            let mut state = self.lock();
            if state.end.is_some() {
                return Err(ErrorObject::internal("no_answer", "The task is over."));
            }
            if state.questions.len() >= QUESTIONS {
                let message = format!("A task may ask {QUESTIONS} questions at once.");
                return Err(ErrorObject::internal("too_many_questions", message));
            }
            state.asked += 1;
            let key = format!("q{}", state.asked);
            state.questions.insert(key.clone(), Question { request, tell, is_taken: false });
            state.task.last_updated_at = rfc3339(SystemTime::now());
            key
        };
        self.tell(true);
        let asked = Asked { entry: Arc::downgrade(self), key };
        Ok(async move {
            let _asked = asked;
            told.await.unwrap_or_else(|_| {
                Err(ErrorObject::internal("no_answer", "The task is over or was forgotten."))
            })
        })
    }

    /// Passes answers on; answers to unknown questions are ignored.
    pub(crate) fn answer(&self, answers: &Object) {
        for (key, answer) in answers.iter() {
            self.told(key, Ok(answer.clone()));
        }
    }

    /// Passes one answer on.
    pub(crate) fn told(&self, key: &str, answer: Outcome) {
        let question = self.lock().questions.remove(key);
        if let Some(question) = question {
            let _ = question.tell.send(answer);
            self.tell(true);
        }
    }

    /// The questions that no client is being asked. The taker asks each, until it drops it.
    pub(crate) fn take_questions(self: &Arc<Self>) -> Vec<Taken> {
        let mut state = self.lock();
        let open = state.questions.iter_mut().filter(|(_, it)| !it.is_taken);
        open.map(|(key, question)| {
            question.is_taken = true;
            Taken { entry: Arc::clone(self), key: key.clone(), request: question.request.clone() }
        })
        .collect()
    }

    /// The task as one generation sees it: in 2025-11-25 a tool error is a failed task.
    pub(crate) fn task(&self, is_core: bool) -> Task {
        self.lock().shown(is_core)
    }

    /// The task with all details of the newest revision.
    pub(crate) fn detail(&self) -> DetailedTask {
        let state = self.lock();
        let mut detail = DetailedTask::new(state.shown(false));
        match &state.end {
            Some(End::Result(said, from)) => {
                match self.carried(said.clone(), *from, Revision::LATEST) {
                    Ok(said) => detail.result = Some(said),
                    Err(error) => {
                        detail.task.status = TaskStatus::Failed;
                        detail.error = Some(error);
                    }
                }
            }
            Some(End::Error(error, from)) => {
                detail.error = Some(carried_error(error.clone(), *from, Revision::LATEST));
            }
            Some(End::Cancelled) | None => {}
        }
        let asked = state.questions.iter().filter_map(|(key, it)| {
            let request = carry::question(it.request.clone(), Revision::LATEST).ok()?;
            Some((key.clone(), request))
        });
        detail.input_requests = asked.collect();
        detail
    }

    /// The outcome, as the call itself would have been answered.
    pub(crate) fn outcome(&self, end: End, revision: Revision) -> Outcome {
        match end {
            End::Result(said, from) => {
                let told = self.carried(said, from, revision)?;
                let Ok(mut object) = Object::parse(told.get()) else { return Ok(told) };
                if let Some(meta) = related_to(&self.known.id, object.take("_meta")) {
                    object.set("_meta", meta);
                }
                Ok(object.to_json())
            }
            End::Error(error, from) => Err(carried_error(error, from, revision)),
            End::Cancelled => Err(ErrorObject::internal("cancelled", "The task was cancelled.")),
        }
    }

    fn carried(&self, said: Json, from: Revision, to: Revision) -> Outcome {
        let schema = self.known.tool.output_schema.as_ref();
        carry::result(Method::ToolsCall, said, from, to, schema).map_err(|error| {
            let message = format!("The result of the task cannot be expressed in {to}: {error}.");
            ErrorObject::internal("bad_answer", message)
        })
    }

    /// Wakes waiters, and notifies listeners if the status changed.
    fn tell(&self, is_news: bool) {
        self.changed.notify_waiters();
        let Some(registry) = self.known.registry.upgrade().filter(|_| is_news) else { return };
        let detail = stateless::encode_task_params(&self.detail());
        let change = Change::Task(Box::new(self.task(true)), detail);
        registry.listeners.tell(&change, |listener| listener.caller == self.known.caller.id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn shown(&self, is_core: bool) -> Task {
        let mut task = self.task.clone();
        match &self.end {
            Some(End::Result(said, _)) if is_core && is_error(said) => {
                task.status = TaskStatus::Failed;
            }
            None if !self.questions.is_empty() => task.status = TaskStatus::InputRequired,
            _ => {}
        }
        task
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let driver = self.driver.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = driver.take() {
            driver.abort();
        }
    }
}

/// Guard of a question whose answer the server waits for.
struct Asked {
    entry: Weak<Entry>,
    key: String,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(entry) = self.entry.upgrade() else { return };
        let question = entry.lock().questions.remove(&self.key);
        if question.is_some() {
            entry.tell(true);
        }
    }
}

/// A question in flight to a client.
pub(crate) struct Taken {
    entry: Arc<Entry>,
    pub(crate) key: String,
    pub(crate) request: InputRequest,
}

impl Taken {
    /// The parameters for a client of a revision; they name the task.
    pub(crate) fn params(&self, revision: Revision) -> Result<Object, ErrorObject> {
        let question = carry::question(self.request.clone(), revision).map_err(|unfit| {
            ErrorObject::invalid_params(format!("The caller cannot be asked this. {unfit}"))
        })?;
        let params = question.params().and_then(|it| Object::parse(it.get()).ok());
        let mut params = params.unwrap_or_default();
        if let Some(meta) = related_to(&self.entry.known.id, params.take("_meta")) {
            params.set("_meta", meta);
        }
        Ok(params)
    }

    pub(crate) fn told(self, answer: Outcome) {
        self.entry.told(&self.key, answer);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let was_open = {
            let mut state = self.entry.lock();
            let question = state.questions.get_mut(&self.key);
            question.map(|it| it.is_taken = false).is_some()
        };
        if was_open {
            self.entry.changed.notify_waiters();
        }
    }
}

async fn forget(registry: Weak<Registry>, id: String, after: Duration) {
    tokio::time::sleep(after).await;
    if let Some(registry) = registry.upgrade() {
        registry.remove(&id);
    }
}

fn carried_error(error: ErrorObject, from: Option<Revision>, to: Revision) -> ErrorObject {
    match from {
        Some(from) => carry::error(Method::ToolsCall, error, from, to),
        None => error,
    }
}

/// Adds the related task to a `_meta`.
fn related_to(task: &str, meta: Option<Json>) -> Option<Json> {
    let rest = meta.and_then(|it| Object::parse(it.get()).ok()).unwrap_or_default();
    let meta = stateful::RequestMeta {
        related_task: Some(task.to_owned()),
        rest,
        ..RequestMeta::default()
    };
    meta.to_json()
}

/// The default TTL of a finished task.
const TTL: Duration = Duration::from_secs(300);
/// The longest TTL.
const LONGEST: Duration = Duration::from_secs(3600);
/// The longest a task may run.
const LIFE: Duration = Duration::from_secs(24 * 3600);
/// How long to wait for a triggered poll.
const POLL: Duration = Duration::from_secs(2);
const QUESTIONS: usize = 64;

#[cfg(test)]
mod tests;
