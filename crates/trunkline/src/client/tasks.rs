//! Tool calls that may become tasks → their results, in both generations of tasks.
//!
//! In 2025-11-25 the client asks for a task and fetches its result with `tasks/result`. In
//! 2026-07-28 the server decides, `tasks/get` contains the result, and `tasks/update` answers
//! questions.

use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};
use trunkline_proto::Timing;
use trunkline_wire::code;
use trunkline_wire::era::Tasks;
use trunkline_wire::json::Json;
use trunkline_wire::json::glance::{Glance, ResultType};
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;
use trunkline_wire::model::{
    CallToolResult, DetailedTask, InputRequest, Progress, Task, TaskParams, TaskRequest,
    TaskStatus, UpdateTaskParams,
};
use trunkline_wire::revision::Era;

use super::call::{Ask, Caller, Running, read};
use super::error::CallError;

/// The outcome of a tool call that may become a task.
///
/// ```
/// use trunkline::{Client, Server, client::ToolCall, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// let client = Client::in_memory(&server).await?;
/// match client.call_tool_task("now", ()).await? {
///     ToolCall::Done(result) => assert_eq!(result.content[0].as_text(), Some("noon")),
///     ToolCall::Task(task) => println!("{} goes on", task.task_id),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCall {
    /// The result came at once.
    Done(CallToolResult),
    /// It continues as a task.
    Task(Task),
}

/// Calls a tool; a task is followed to its end.
pub(super) fn call_tool(mut ask: Ask) -> Running<CallToolResult> {
    Box::pin(async move {
        match start(&mut ask).await? {
            ToolCall::Done(result) => Ok(result),
            // Boxed where it is rare, so that the future of a call does not carry its size.
            ToolCall::Task(task) => Box::pin(follow(&mut ask, task)).await,
        }
    })
}

/// Calls a tool as a task, if the server allows it.
pub(super) fn call_tool_task(mut ask: Ask) -> Running<ToolCall> {
    Box::pin(async move {
        ask.wish_task();
        start(&mut ask).await
    })
}

/// Waits for the result of a task.
pub(super) fn result(mut ask: Ask) -> Running<CallToolResult> {
    Box::pin(async move {
        let mut now = ask.caller.ask_raw(Method::TasksGet, ask.params.clone());
        now.timing = ask.timing;
        let task = now.send_and_read::<DetailedTask>().await?.task;
        settle(&mut ask, task).await
    })
}

async fn start(ask: &mut Ask) -> Result<ToolCall, CallError> {
    let raw = match ask.send().await {
        // 2025-11-25: the error of a tool that can only be called as a task.
        Err(CallError::Peer(error)) if error.code == code::METHOD_NOT_FOUND && ask.wish_task() => {
            ask.send().await?
        }
        outcome => outcome?,
    };
    let unreadable =
        |why: &dyn Display| CallError::Decode { method: ask.method.name(), why: why.to_string() };
    let glance = Glance::of(&raw);
    if glance.is_doubtful || !raw.is_object() {
        Object::parse(raw.get()).map_err(|err| unreadable(&err))?;
    }
    let is_task = match ask.caller.revision().era() {
        Era::Stateful => glance.has_task && !glance.has_content,
        Era::Stateless => glance.result_type == ResultType::Task,
    };
    match is_task {
        true => Task::read(&raw).map(ToolCall::Task).map_err(|err| unreadable(&err)),
        false => CallToolResult::read(&raw).map(ToolCall::Done).map_err(|err| unreadable(&err)),
    }
}

impl Ask {
    /// Asks for a task where the client has to. Returns whether that changed the request.
    fn wish_task(&mut self) -> bool {
        let opened = &self.caller.opened;
        let is_offered = opened.revision.profile().tasks == Tasks::Core
            && opened.capabilities.tasks.is_some_and(|it| it.tools_call);
        match &mut self.params {
            Ok(params) if is_offered && params.get("task").is_none() => {
                params.set("task", Json::of(&TaskRequest::new()));
                true
            }
            _ => false,
        }
    }
}

/// Follows a task of our own to its end, and cancels it when the future is dropped.
async fn follow(ask: &mut Ask, task: Task) -> Result<CallToolResult, CallError> {
    let mut guard = CancelOnDrop(Some((ask.caller.clone(), task.task_id.clone())));
    let outcome = settle(ask, task).await;
    if !matches!(outcome, Err(CallError::TimedOut | CallError::Refused(_))) {
        guard.0 = None;
    }
    outcome
}

async fn settle(ask: &mut Ask, task: Task) -> Result<CallToolResult, CallError> {
    let deadline = Instant::now() + ask.timing.hard;
    let settled = async {
        match ask.caller.revision().era() {
            Era::Stateful => settle_core(ask, task).await,
            Era::Stateless => settle_extension(ask, task).await,
        }
    };
    timeout_at(deadline, settled).await.unwrap_or(Err(CallError::TimedOut))
}

async fn settle_core(ask: &mut Ask, mut task: Task) -> Result<CallToolResult, CallError> {
    let mut pace = Pace::default();
    let mut last_status = LastStatus::default();
    // Questions arrive as separate requests while `tasks/result` waits.
    while task.status == TaskStatus::Working {
        sleep(pace.next(&task)).await;
        task = poll_task(ask, &task.task_id, &mut last_status).await?.task;
    }
    if task.status == TaskStatus::Cancelled {
        return Err(CallError::Cancelled);
    }
    let mut result = ask.caller.ask(Method::TasksResult, TaskParams::new(task.task_id));
    // It blocks until the task is over, so no idle time-out applies.
    result.timing = Timing { idle: ask.timing.hard, hard: ask.timing.hard };
    result.send_and_read().await
}

async fn settle_extension(ask: &mut Ask, mut task: Task) -> Result<CallToolResult, CallError> {
    let mut answered = HashSet::new();
    let mut pace = Pace::default();
    let mut last_status = LastStatus::default();
    loop {
        sleep(pace.next(&task)).await;
        let now = poll_task(ask, &task.task_id, &mut last_status).await?;
        task = now.task;
        match task.status {
            TaskStatus::Working => {}
            TaskStatus::InputRequired => {
                let open =
                    now.input_requests.into_iter().filter(|(key, _)| answered.insert(key.clone()));
                if answer(&ask.caller, &task.task_id, open.collect(), ask.timing).await? {
                    // The question is answered, and the rest may be quick.
                    pace = Pace::default();
                }
            }
            TaskStatus::Completed => {
                let result = now.result.unwrap_or_else(Json::null);
                return read(Method::TasksGet, &result);
            }
            TaskStatus::Failed => {
                return Err(match now.error {
                    Some(error) => CallError::Peer(error),
                    None => CallError::Invalid("a failed task without an error.".to_owned()),
                });
            }
            TaskStatus::Cancelled => return Err(CallError::Cancelled),
        }
    }
}

/// Fetches the state of a task, and reports news as progress of the call.
async fn poll_task(
    ask: &mut Ask,
    task_id: &str,
    last_status: &mut LastStatus,
) -> Result<DetailedTask, CallError> {
    let mut get = ask.caller.ask(Method::TasksGet, TaskParams::new(task_id));
    get.timing = ask.timing;
    let task: DetailedTask = get.send_and_read().await?;
    if let Some(step) = last_status.step(&task, ask.last_step) {
        ask.report(step);
    }
    Ok(task)
}

/// The last status message of a task.
#[derive(Default)]
struct LastStatus(Option<String>);

impl LastStatus {
    /// The new progress of a task. If the server sends no numbers, each new status message counts
    /// as a step.
    fn step(&mut self, now: &DetailedTask, last: Option<f64>) -> Option<Progress> {
        let is_new = |step: &Progress| last.is_none_or(|last| step.progress > last);
        if let Some(step) = &now.progress {
            return Some(step.clone()).filter(is_new);
        }
        let message = now.task.status_message.clone();
        let is_same = message == self.0 || now.task.status.is_terminal();
        self.0.clone_from(&message);
        let step = last.map_or(1.0, |last| last + 1.0);
        message.filter(|_| !is_same).map(|it| Progress::new(step).message(it))
    }
}

/// The polling interval: short at first, because most work is quick, then as the server asks.
#[derive(Default)]
struct Pace(usize);

impl Pace {
    fn next(&mut self, task: &Task) -> Duration {
        let wished = task.poll_interval_ms.map_or(DEFAULT_POLL, Duration::from_millis);
        let wished = wished.clamp(SHORTEST_POLL, LONGEST_POLL);
        let first = FIRST_POLLS.get(self.0).copied().map(Duration::from_millis);
        self.0 += 1;
        first.map_or(wished, |first| first.min(wished))
    }
}

/// Answers the questions of a task. Returns whether there were any.
async fn answer(
    caller: &Caller,
    task_id: &str,
    questions: Vec<(String, InputRequest)>,
    timing: Timing,
) -> Result<bool, CallError> {
    let mut responses = Vec::with_capacity(questions.len());
    for (key, question) in questions {
        let answering = caller.shared.asked.answer(question, caller.revision());
        responses.push((key, answering.await.map_err(CallError::Refused)?));
    }
    if responses.is_empty() {
        return Ok(false);
    }
    let mut ask = caller.ask(Method::TasksUpdate, UpdateTaskParams::new(task_id, responses));
    ask.timing = timing;
    ask.send().await.map(|_| true)
}

/// Cancels a task that nothing waits for.
struct CancelOnDrop(Option<(Caller, String)>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some((caller, id)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            let mut ask = caller.ask(Method::TasksCancel, TaskParams::new(id));
            // Whether it could still be cancelled no longer matters.
            runtime.spawn(async move { drop(ask.send().await) });
        }
    }
}

/// The first intervals, in milliseconds.
const FIRST_POLLS: [u64; 7] = [1, 10, 20, 50, 100, 200, 500];
const DEFAULT_POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
