//! Tools that run as tasks: the register of [`trunkline_proto::task`] put to work, in both
//! generations.

mod methods;

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline_proto::input_required::Journal;
use trunkline_proto::task::{Record, TaskBounds, TaskError, Tasks, missing_extension};
use trunkline_proto::{Call, Change};
use trunkline_transport::handler::panicked;
use trunkline_transport::voice::Voice;
use trunkline_wire::code;
use trunkline_wire::era::{self, stateful, stateless};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Outcome};
use trunkline_wire::method::Gate;
use trunkline_wire::model::{CallToolResult, DetailedTask, InputRequest, TaskRequest, TaskSupport};
use trunkline_wire::revision::Revision;

use super::ask::{AskError, Key, question_params};
use super::context::{Asker, Context, lock};
use super::job::Job;
use super::rounds::Notebook;
use super::{Inner, ToolEntry};

/// The tasks of a server, and what works on them.
pub(crate) struct Runtime {
    register: Mutex<Tasks>,
    /// Rung whenever a task changes.
    changed: Notify,
    working: Mutex<Working>,
}

#[derive(Default)]
struct Working {
    tasks: JoinSet<()>,
    stops: HashMap<String, tokio::task::AbortHandle>,
    /// Questions that wait for an answer, by task and key.
    answers: HashMap<(String, String), oneshot::Sender<Json>>,
}

impl Runtime {
    pub(super) fn new(bounds: TaskBounds) -> Self {
        Self {
            register: Mutex::new(Tasks::new(bounds)),
            changed: Notify::new(),
            working: Mutex::default(),
        }
    }

    /// Whether this call runs as a task, as its revision rules.
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
            // It says by itself when the rest is a task.
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

    /// Waits until `ready` has something to say about a task.
    async fn wait<T>(
        &self,
        id: &str,
        mut ready: impl FnMut(&Record) -> Option<T>,
    ) -> Result<T, TaskError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Listen before looking, so that no change falls in between.
            changed.as_mut().enable();
            if let Some(found) = ready(lock(&self.register).get(id, Instant::now())?) {
                return Ok(found);
            }
            changed.await;
        }
    }

    /// Hands answers to those who wait for them.
    fn deliver(&self, id: &str, answers: Vec<(String, Json)>) {
        let mut working = lock(&self.working);
        for (key, answer) in answers {
            if let Some(waiting) = working.answers.remove(&(id.to_owned(), key)) {
                let _ = waiting.send(answer);
            }
        }
    }

    fn stop(&self, id: &str) {
        let mut working = lock(&self.working);
        if let Some(stop) = working.stops.remove(id) {
            stop.abort();
        }
        working.answers.retain(|(task, _), _| task != id);
    }

    /// The last owner of the server is gone, and with it everybody who could ask for a task.
    pub(super) fn stop_all(&self) {
        let working = std::mem::take(&mut *lock(&self.working));
        // Outside the lock: work that is dropped may do anything.
        drop(working);
    }

    /// A task's time is over: those who wait for it learn that there is no such task.
    fn forget(&self, id: &str) {
        let mut working = lock(&self.working);
        working.stops.remove(id);
        working.answers.retain(|(task, _), _| task != id);
        drop(working);
        self.changed.notify_waiters();
    }
}

impl Inner {
    /// Begins a task and answers with it; the work goes on by itself. `rounds` is what the call
    /// did before it became a task.
    pub(super) fn start_task(
        self: &Arc<Self>,
        request: TaskRequest,
        call: &Call,
        voice: &Voice,
        job: Job,
        rounds: Option<Journal>,
    ) -> Outcome {
        let id = self.sealer.random_name();
        let task = lock(&self.tasks.register)
            .create(id.clone(), request.ttl_ms, stamp(), Instant::now())
            .map_err(task_error)?;
        let asker = match call.revision.profile().tasks {
            era::Tasks::Extension => Asker::Task(TaskAsker::new(self, &id, rounds)),
            _ => Asker::Task(TaskAsker::on_the_wire(self, &id, voice, call.revision)),
        };
        let context = Context::new(self, call, voice, asker);
        let server = Arc::downgrade(self);
        let ttl = Duration::from_millis(task.ttl_ms.unwrap_or(u64::MAX));
        let work = async move {
            // Nobody can ask for a task once its time is over, so its work is over too.
            let outcome = timeout(ttl, run(job, context)).await;
            match (server.upgrade(), outcome) {
                (Some(server), Ok(outcome)) => server.task_done(&id, outcome),
                (Some(server), Err(_)) => server.tasks.forget(&id),
                (None, _) => {}
            }
        };
        let mut working = lock(&self.tasks.working);
        while working.tasks.try_join_next().is_some() {}
        let stop = working.tasks.spawn(work);
        working.stops.insert(task.task_id.clone(), stop);
        drop(working);
        Ok(match call.revision.profile().tasks {
            era::Tasks::Extension => stateless::encode_task_created(&task, &self.extras(None)),
            _ => stateful::encode_task_created(&task),
        })
    }

    fn task_done(&self, id: &str, outcome: Result<CallToolResult, ErrorObject>) {
        lock(&self.tasks.working).stops.remove(id);
        let finished =
            lock(&self.tasks.register).finish(id, outcome, stamp()).map(|it| self.change(it));
        if let Ok(change) = finished {
            self.task_changed(&change);
        }
    }

    fn task_changed(&self, change: &Change) {
        self.tasks.changed.notify_waiters();
        self.listeners.tell(change);
    }

    fn change(&self, record: &Record) -> Change {
        Change::Task(
            Box::new(record.core_task()),
            stateless::encode_task_params(&self.detail(record)),
        )
    }

    /// A task with everything the newest revision tells about it.
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
        detail.input_requests =
            record.questions().iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        detail
    }
}

/// Runs a tool to its end. A panic is an outcome too, as it is for a plain call.
async fn run(job: Job, context: Context) -> Result<CallToolResult, ErrorObject> {
    let mut running = None;
    let outcome = poll_fn(|cx| {
        let step = || running.get_or_insert_with(|| job.start(&context)).poll_tool(cx);
        catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    });
    outcome.await.map(|result| job.fit(result, context.revision()))
}

/// Asks on behalf of a task.
pub(super) struct TaskAsker {
    server: Weak<Inner>,
    task: String,
    wire: Option<(Voice, Revision)>,
    /// What the call did before it became a task.
    rounds: Option<Mutex<Notebook>>,
}

impl TaskAsker {
    fn new(server: &Arc<Inner>, task: &str, rounds: Option<Journal>) -> Self {
        let rounds = rounds.map(|journal| Mutex::new(Notebook::of(journal)));
        Self { server: Arc::downgrade(server), task: task.to_owned(), wire: None, rounds }
    }

    fn on_the_wire(server: &Arc<Inner>, task: &str, voice: &Voice, revision: Revision) -> Self {
        Self { wire: Some((voice.clone(), revision)), ..Self::new(server, task, None) }
    }

    pub(super) fn notebook(&self) -> Option<&Mutex<Notebook>> {
        self.rounds.as_ref()
    }

    /// The answer to a question, if it was given before the call became a task.
    pub(super) fn known(&self, key: &Key, request: &InputRequest) -> Option<Json> {
        lock(self.rounds.as_ref()?).known(key, request)
    }

    pub(super) async fn ask(&self, request: InputRequest) -> Result<Json, AskError> {
        let server = self.server.upgrade().ok_or(AskError::Closed)?;
        match &self.wire {
            None => {
                let told = self.wait_for_answer(&server, request)?;
                self.announce(&server);
                drop(server);
                told.await.map_err(|_| AskError::Closed)
            }
            Some((voice, revision)) => {
                let asked = lock(&server.tasks.register).ask(&self.task, request.clone(), stamp());
                let key = asked.map_err(|_| AskError::Closed)?;
                self.announce(&server);
                let params = question_params(&server, request.clone(), *revision);
                let answer = methods::ask_for_task(voice, &self.task, &request, params).await;
                let mut answered = trunkline_wire::jsonrpc::Object::default();
                answered.set(key, Json::null());
                let _ = lock(&server.tasks.register).answer(&self.task, &answered, stamp());
                self.announce(&server);
                answer
            }
        }
    }

    /// Makes a question part of the task's state. Whoever sees it there may answer at once, so the
    /// place for the answer is made under the same lock that answers are delivered under.
    fn wait_for_answer(
        &self,
        server: &Inner,
        request: InputRequest,
    ) -> Result<oneshot::Receiver<Json>, AskError> {
        let (tell, told) = oneshot::channel();
        let mut working = lock(&server.tasks.working);
        let asked = lock(&server.tasks.register).ask(&self.task, request, stamp());
        let key = asked.map_err(|_| AskError::Closed)?;
        working.answers.insert((self.task.clone(), key), tell);
        Ok(told)
    }

    fn announce(&self, server: &Inner) {
        let change = lock(&server.tasks.register)
            .get(&self.task, Instant::now())
            .map(|record| server.change(record));
        if let Ok(change) = change {
            server.task_changed(&change);
        }
    }
}

fn task_error(error: TaskError) -> ErrorObject {
    match error {
        TaskError::Unknown => ErrorObject::invalid_params("There is no such task."),
        TaskError::Terminal => ErrorObject::invalid_params("The task is already over."),
        TaskError::Full => ErrorObject::internal("overloaded", "Too many tasks are kept."),
    }
}

/// Now, as RFC 3339 writes it, in UTC.
fn stamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The Gregorian date of a day counted from 1970-01-01, by counting whole years and months.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (11_016, (2000, 2, 29)),
            (20_662, (2026, 7, 28)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
