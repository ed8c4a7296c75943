//! Tool calls that may become tasks → their results, in both generations of tasks.
//!
//! In 2025-11-25 the client asks for a task and fetches its result with `tasks/result`; in
//! 2026-07-28 the server decides, the result stands in `tasks/get`, and questions are answered
//! with `tasks/update`.

use std::collections::HashSet;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};
use trunkline_proto::Timing;
use trunkline_wire::code;
use trunkline_wire::era::Tasks;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::{
    CallToolResult, DetailedTask, InputRequest, Task, TaskParams, TaskRequest, TaskStatus,
    UpdateTaskParams,
};
use trunkline_wire::revision::Era;

use super::call::{Ask, Caller, Running, read};
use super::error::CallError;

/// What became of a tool call that was allowed to become a task.
///
/// ```
/// # use trunkline::{Client, Server, client::ToolCall, tool};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// # let server = Server::builder("clock", "1.0.0").tool(tool("now", async || "noon")).build();
/// # let client = Client::in_memory(&server).await?;
/// match client.call_tool_task("now", ()).await? {
///     ToolCall::Done(result) => assert_eq!(result.content[0].as_text(), Some("noon")),
///     ToolCall::Task(task) => println!("{} goes on", task.task_id),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCall {
    /// The result was there at once.
    Done(CallToolResult),
    /// It runs on as a task.
    Task(Task),
}

/// Calls a tool; a task is followed to its end.
pub(super) fn call_tool(mut ask: Ask) -> Running<CallToolResult> {
    Box::pin(async move {
        match start(&mut ask).await? {
            ToolCall::Done(result) => Ok(result),
            ToolCall::Task(task) => follow(ask.caller, task, ask.timing).await,
        }
    })
}

/// Calls a tool as a task, if the server lets it be one.
pub(super) fn call_tool_task(mut ask: Ask) -> Running<ToolCall> {
    Box::pin(async move {
        ask.wish_task();
        start(&mut ask).await
    })
}

/// The result of a task, whenever it is there.
pub(super) fn result(ask: Ask) -> Running<CallToolResult> {
    Box::pin(async move {
        let mut now = ask.caller.ask_raw("tasks/get", ask.params);
        now.timing = ask.timing;
        let mut task = now.send_and_read::<DetailedTask>().await?.task;
        // The state of the task is known to the moment, so the first pause can be short.
        task.poll_interval_ms = Some(0);
        settle(&ask.caller, task, ask.timing).await
    })
}

async fn start(ask: &mut Ask) -> Result<ToolCall, CallError> {
    let raw = match ask.send().await {
        // 2025-11-25: a tool that can only be called as a task says so with this code.
        Err(CallError::Peer(error)) if error.code == code::METHOD_NOT_FOUND && ask.wish_task() => {
            ask.send().await?
        }
        outcome => outcome?,
    };
    let object = Object::parse(raw.get())
        .map_err(|err| CallError::Decode { method: ask.method, why: err.to_string() })?;
    let is_task = match ask.caller.revision().era() {
        Era::Stateful => object.get("task").is_some() && object.get("content").is_none(),
        Era::Stateless => object.get("resultType").is_some_and(|it| it.get() == "\"task\""),
    };
    match is_task {
        true => Task::read(&raw)
            .map(ToolCall::Task)
            .map_err(|err| CallError::Decode { method: ask.method, why: err.to_string() }),
        false => read(ask.method, &raw).map(ToolCall::Done),
    }
}

impl Ask {
    /// Asks for a task where the client has to. Returns whether that changed anything.
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

/// Follows a task of our own to its end; when nobody waits any more it is cancelled.
async fn follow(caller: Caller, task: Task, timing: Timing) -> Result<CallToolResult, CallError> {
    let mut guard = CancelOnDrop(Some((caller.clone(), task.task_id.clone())));
    let outcome = settle(&caller, task, timing).await;
    if !matches!(outcome, Err(CallError::TimedOut | CallError::Refused(_))) {
        guard.0 = None;
    }
    outcome
}

async fn settle(caller: &Caller, task: Task, timing: Timing) -> Result<CallToolResult, CallError> {
    let deadline = Instant::now() + timing.hard;
    let settled = async {
        match caller.revision().era() {
            Era::Stateful => settle_core(caller, task, timing).await,
            Era::Stateless => settle_extension(caller, task, timing).await,
        }
    };
    timeout_at(deadline, settled).await.unwrap_or(Err(CallError::TimedOut))
}

async fn settle_core(
    caller: &Caller,
    mut task: Task,
    timing: Timing,
) -> Result<CallToolResult, CallError> {
    // Questions come as requests of their own while `tasks/result` waits.
    while task.status == TaskStatus::Working {
        sleep(interval(&task)).await;
        task = get(caller, &task.task_id, timing).await?.task;
    }
    if task.status == TaskStatus::Cancelled {
        return Err(CallError::Cancelled);
    }
    let mut ask = caller.ask("tasks/result", TaskParams::new(task.task_id));
    // It blocks until the task is over, so silence means nothing.
    ask.timing = Timing { idle: timing.hard, hard: timing.hard };
    ask.send_and_read().await
}

async fn settle_extension(
    caller: &Caller,
    task: Task,
    timing: Timing,
) -> Result<CallToolResult, CallError> {
    let mut answered = HashSet::new();
    let mut pause = interval(&task);
    loop {
        sleep(pause).await;
        let now = get(caller, &task.task_id, timing).await?;
        pause = interval(&now.task);
        match now.task.status {
            TaskStatus::Working => {}
            TaskStatus::InputRequired => {
                let open =
                    now.input_requests.into_iter().filter(|(key, _)| answered.insert(key.clone()));
                answer(caller, &task.task_id, open.collect(), timing).await?;
            }
            TaskStatus::Completed => {
                let result = now.result.unwrap_or_else(Json::null);
                return read("tasks/get", &result);
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

async fn answer(
    caller: &Caller,
    task_id: &str,
    questions: Vec<(String, InputRequest)>,
    timing: Timing,
) -> Result<(), CallError> {
    let mut responses = Vec::with_capacity(questions.len());
    for (key, question) in questions {
        let answering = caller.shared.asked.answer(question, caller.revision());
        responses.push((key, answering.await.map_err(CallError::Refused)?));
    }
    if responses.is_empty() {
        return Ok(());
    }
    let mut ask = caller.ask("tasks/update", UpdateTaskParams::new(task_id, responses));
    ask.timing = timing;
    ask.send().await.map(drop)
}

async fn get(caller: &Caller, task_id: &str, timing: Timing) -> Result<DetailedTask, CallError> {
    let mut ask = caller.ask("tasks/get", TaskParams::new(task_id));
    ask.timing = timing;
    ask.send_and_read().await
}

fn interval(task: &Task) -> Duration {
    let wished = task.poll_interval_ms.map_or(DEFAULT_POLL, Duration::from_millis);
    wished.clamp(SHORTEST_POLL, LONGEST_POLL)
}

/// Cancels a task that nobody waits for.
struct CancelOnDrop(Option<(Caller, String)>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some((caller, id)), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            let mut ask = caller.ask("tasks/cancel", TaskParams::new(id));
            // Whether it still could be cancelled is nobody's business any more.
            runtime.spawn(async move { drop(ask.send().await) });
        }
    }
}

const DEFAULT_POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(20);
const LONGEST_POLL: Duration = Duration::from_secs(60);
