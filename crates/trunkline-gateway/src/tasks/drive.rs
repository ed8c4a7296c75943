//! Follows a task at a server to its end: polls in the server's generation and passes its questions on.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use trunkline_proto::{Attached, CallError, Timing};
use trunkline_transport::conversation_handle::Request;
use trunkline_wire::era::Tasks;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Object, Outcome};
use trunkline_wire::method::Method;
use trunkline_wire::model::{DetailedTask, InputRequest, Task, TaskStatus};
use trunkline_wire::revision::Era;

use super::entry::{End, Entry};
use super::lost;
use super::registry::{Asker, Followed, Registry};
use crate::catalog::plan::{Questions, Reach, Strategy};
use crate::client_profile::ClientProfile;
use crate::forward;
use crate::pool::{Cause, Hold, Lease};
use crate::question::{self, unrelated};
use crate::server::{Server, Who};
use crate::upstream::{Instance, Upstream, timing};
use crate::upstream_call::OnTask;

/// A task that is being followed. Dropping it before the end cancels the task.
pub(crate) struct Drive {
    server: Arc<Server>,
    instance: Arc<Instance>,
    registry: Arc<Registry>,
    /// Keeps the instance alive where no lease does.
    pub(crate) hold: Option<Hold<Upstream>>,
    task: Task,
    asker: Asker,
    /// The task that a client got for it.
    pub(crate) entry: Option<Weak<Entry>>,
    nudge: Arc<Notify>,
    followed: Followed,
    is_over: bool,
    trace: String,
    /// The principal it runs for.
    pub(crate) owner: Arc<str>,
}

/// How a task ended.
pub(crate) enum Ended {
    /// With a result.
    Result(Json),
    /// With an error.
    Error(ErrorObject),
    /// It was cancelled.
    Cancelled,
}

impl Drive {
    pub(crate) fn new(
        registry: &Arc<Registry>,
        server: &Arc<Server>,
        lease: &Lease<Upstream>,
        task: Task,
        asker: Asker,
        nudge: Arc<Notify>,
    ) -> Self {
        let registry = Arc::clone(registry);
        let (asked, rung) = (asker.clone(), Arc::clone(&nudge));
        let followed = registry.follow(lease.id(), &task.task_id, asked, rung);
        Self {
            server: Arc::clone(server),
            instance: Arc::clone(lease.instance()),
            registry,
            hold: None,
            task,
            asker,
            entry: None,
            nudge,
            followed,
            is_over: false,
            trace: String::new(),
            owner: Arc::default(),
        }
    }

    /// Follows a task that a client holds to its end.
    pub(crate) async fn end(&mut self, within: Duration) -> End {
        if let Some(entry) = self.entry() {
            self.trace.clone_from(&entry.known().trace);
        }
        let ended = timeout(within, self.run()).await.unwrap_or(Err(CallError::TimedOut));
        let revision = self.instance.opened.revision;
        match ended {
            Ok(Ended::Result(said)) => End::Result(said, revision),
            Ok(Ended::Error(error)) => End::Error(error, Some(revision)),
            Ok(Ended::Cancelled) => End::Cancelled,
            Err(error) if is_gone(&error) => {
                let mut failure = lost(&self.server.name);
                let gone = self.instance.gone().await;
                failure.instance = gone.instance;
                (failure.exit, failure.stderr) = (gone.exit, gone.stderr);
                End::Error(failure.to_error(&self.trace), None)
            }
            Err(error) => match forward::failed(error, &self.instance).await {
                Ok(error) => End::Error(error, Some(revision)),
                Err(failure) => End::Error(failure.to_error(&self.trace), None),
            },
        }
    }

    /// Follows the task to its end.
    pub(crate) async fn run(&mut self) -> Result<Ended, CallError> {
        let ended = match self.instance.opened.revision.profile().tasks {
            Tasks::Core => self.core().await,
            _ => self.extension().await,
        };
        self.is_over = ended.is_ok();
        ended
    }

    /// In 2025-11-25 `tasks/result` returns the end, and questions are requests that name the task.
    async fn core(&mut self) -> Result<Ended, CallError> {
        let mut now = self.task.clone();
        while now.status == TaskStatus::Working {
            self.pause(&now).await;
            if self.is_settled() {
                return Ok(Ended::Cancelled);
            }
            now = self.get().await?.task;
        }
        if now.status == TaskStatus::Cancelled {
            return Ok(Ended::Cancelled);
        }
        // Questions may arrive only on this stream, which lasts until the task ends.
        if let Some(entry) = self.entry() {
            entry.is_awaited();
        }
        let mut request = Request::new(Method::TasksResult, self.params());
        request.timing = Some(Timing { idle: LONG, hard: LONG });
        request.attached = Attached::new(OnTask(Arc::new(self.asker.clone())));
        let mut call = std::pin::pin!(self.instance.call(request));
        let said = loop {
            tokio::select! {
                said = &mut call => break said,
                () = self.nudge.notified() => {
                    if self.is_settled() {
                        return Ok(Ended::Cancelled);
                    }
                }
            }
        };
        match said {
            Ok(said) => match Object::parse(said.get()) {
                Ok(object) => Ok(Ended::Result(unrelated(object).to_json())),
                Err(error) => Err(CallError::Invalid(error.to_string())),
            },
            Err(CallError::Peer(error)) => match self.get().await {
                Ok(now) if now.task.status == TaskStatus::Cancelled => Ok(Ended::Cancelled),
                _ => Ok(Ended::Error(error)),
            },
            Err(error) => Err(error),
        }
    }

    /// In 2026-07-28 `tasks/get` returns everything, and answers go into `tasks/update`.
    async fn extension(&mut self) -> Result<Ended, CallError> {
        let mut now = self.task.clone();
        let mut asking: JoinSet<(String, bool, Outcome)> = JoinSet::new();
        let mut asked: HashMap<String, AbortHandle> = HashMap::new();
        loop {
            let answered = tokio::select! {
                () = self.pause(&now) => None,
                Some(answered) = asking.join_next(), if !asking.is_empty() => answered.ok(),
            };
            if self.is_settled() {
                return Ok(Ended::Cancelled);
            }
            if let Some((key, is_elicitation, answer)) = answered {
                let answer = match answer {
                    Ok(answer) => answer,
                    // The extension has no error answers; an elicitation can be cancelled.
                    Err(_) if is_elicitation => cancelled_form(),
                    Err(error) => {
                        self.cancel();
                        return Ok(Ended::Error(error));
                    }
                };
                self.update(&key, answer).await?;
            }
            let detail = self.get().await?;
            now = detail.task;
            match now.status {
                TaskStatus::Working | TaskStatus::InputRequired => {
                    let open = detail.input_requests;
                    asked.retain(|key, asking| {
                        let is_open = open.iter().any(|(it, _)| it == key);
                        // The question was withdrawn or answered.
                        if !is_open {
                            asking.abort();
                        }
                        // A key is used once in the life of a task.
                        true
                    });
                    for (key, request) in open {
                        if asked.contains_key(&key) {
                            continue;
                        }
                        let asker = self.asker.clone();
                        let who = (Arc::clone(&self.server.name), self.server.plan().questions);
                        let handle = asking.spawn(ask(asker, who, key.clone(), request));
                        asked.insert(key, handle);
                    }
                }
                TaskStatus::Completed => return finished(detail.result),
                TaskStatus::Failed => {
                    return match detail.error {
                        Some(error) => Ok(Ended::Error(error)),
                        None => Err(CallError::Invalid("a failed task without an error".into())),
                    };
                }
                TaskStatus::Cancelled => return Ok(Ended::Cancelled),
            }
        }
    }

    async fn update(&mut self, key: &str, answer: Json) -> Result<(), CallError> {
        let mut answers = Object::default();
        answers.set(key.to_owned(), answer);
        let mut params = self.params();
        params.set("inputResponses", answers.to_json());
        match self.call(Method::TasksUpdate, params).await {
            // The task may have ended meanwhile: the next poll says so.
            Ok(_) | Err(CallError::Peer(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Polls the task.
    async fn get(&mut self) -> Result<DetailedTask, CallError> {
        let said = self.call(Method::TasksGet, self.params()).await?;
        let detail: DetailedTask =
            said.to().map_err(|error| CallError::Invalid(error.to_string()))?;
        if let Some(entry) = self.entry() {
            entry.polled(&detail.task);
        }
        Ok(detail)
    }

    /// Makes an idempotent request. If the instance of a stateless server is gone, another instance is asked.
    async fn call(&mut self, method: Method, params: Object) -> Result<Json, CallError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.instance.call(self.request(method, params.clone())).await {
                Ok(said) => return Ok(said),
                Err(error) => error,
            };
            let may_pass = matches!(error, CallError::TimedOut | CallError::Http(_));
            if tries >= TRIES || !(is_gone(&error) || may_pass) {
                return Err(error);
            }
            if is_gone(&error) {
                self.switch_instance().await.map_err(|()| error)?;
            }
            sleep(AGAIN * tries).await;
        }
    }

    /// Continues at another instance, if any instance will do.
    async fn switch_instance(&mut self) -> Result<(), ()> {
        let plan = self.server.plan();
        let is_remote = matches!(plan.reach, Reach::Http { .. });
        let is_stateless = self.instance.opened.revision.era() == Era::Stateless;
        if !is_remote || !is_stateless || plan.strategy == Strategy::Stateful {
            return Err(());
        }
        let who = Who::Principal(&self.owner);
        let want =
            self.server.want(&self.server.plan(), None, who, ClientProfile::ALL, Cause::Retry);
        let lease = self.server.pool.lease(want).await.map_err(drop)?;
        if lease.instance().opened.revision != self.instance.opened.revision {
            return Err(());
        }
        self.instance = Arc::clone(lease.instance());
        let (asker, nudge) = (self.asker.clone(), Arc::clone(&self.nudge));
        self.followed = self.registry.follow(lease.id(), &self.task.task_id, asker, nudge);
        if let Some(entry) = self.entry() {
            entry.moved(&self.instance);
        }
        self.hold = Some(lease.hold());
        Ok(())
    }

    /// Waits until the next poll is due.
    async fn pause(&self, task: &Task) {
        let wished = task.poll_interval_ms.map_or(POLL, Duration::from_millis);
        tokio::select! {
            () = sleep(wished.clamp(SHORTEST, LONGEST)) => {}
            () = self.nudge.notified() => {}
        }
    }

    fn entry(&self) -> Option<Arc<Entry>> {
        self.entry.as_ref().and_then(Weak::upgrade)
    }

    /// Whether the client's task has ended or was forgotten: its outcome is settled.
    fn is_settled(&self) -> bool {
        self.entry.is_some() && self.entry().is_none_or(|it| it.is_over())
    }

    fn params(&self) -> Object {
        named(&self.task.task_id)
    }

    fn request(&self, method: Method, params: Object) -> Request {
        let mut request = Request::new(method, params);
        request.timing = Some(timing(&self.server.plan()));
        request
    }

    /// Cancels the task at the server without waiting for the answer.
    fn cancel(&self) {
        if let Ok(runtime) = Handle::try_current() {
            let call = self.instance.call(Request::new(Method::TasksCancel, self.params()));
            runtime.spawn(async move { drop(call.await) });
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancel();
        }
    }
}

/// The parameters that name a task.
pub(crate) fn named(task: &str) -> Object {
    let mut params = Object::default();
    params.set("taskId", Json::string(task));
    params
}

async fn ask(
    asker: Asker,
    (server, allowed): (Arc<str>, Questions),
    key: String,
    request: InputRequest,
) -> (String, bool, Outcome) {
    let method = request.method();
    let params = request.params().and_then(|it| Object::parse(it.get()).ok());
    let mut params = params.unwrap_or_default();
    let answer = match question::admit(&server, allowed, method, &mut params) {
        Ok(()) => asker.asked(method, params).await,
        Err(refused) => Err(refused),
    };
    (key, method == Method::ElicitationCreate, answer)
}

/// A result in the form of an answer to `tools/call`.
fn finished(result: Option<Json>) -> Result<Ended, CallError> {
    let missing = || CallError::Invalid("a completed task without a result".to_owned());
    let result = result.ok_or_else(missing)?;
    let object = Object::parse(result.get()).map_err(|it| CallError::Invalid(it.to_string()))?;
    if object.get("resultType").is_some() {
        return Ok(Ended::Result(result));
    }
    let mut stamped = Object::default();
    stamped.set("resultType", Json::string("complete"));
    for (name, value) in object.iter() {
        stamped.set(name.to_owned(), value.clone());
    }
    Ok(Ended::Result(stamped.to_json()))
}

/// The answer of a user who closes the form.
fn cancelled_form() -> Json {
    Json::parse(r#"{"action":"cancel"}"#).expect("this is JSON")
}

fn is_gone(error: &CallError) -> bool {
    matches!(error, CallError::Closed | CallError::Unreachable(_) | CallError::Lost(_))
}

const POLL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(24 * 3600);
const TRIES: u32 = 4;
const AGAIN: Duration = Duration::from_millis(200);
