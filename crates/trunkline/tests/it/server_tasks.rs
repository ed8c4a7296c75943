//! Tools that run as tasks, in both generations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};
use trunkline::model::{CallToolResult, TaskSupport};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Serialize;
use trunkline::server::ToolEntry;
use trunkline::{Context, Form, Json, Limits, RawJson, Revision, Server, ToolError, tool};
use trunkline_proto::task::TaskBounds;
use trunkline_testkit::peer::Peer;

use crate::server::{at_once, builder, counted, deafen, open, soon, text, until};

const CORE: Revision = Revision::V2025_11_25;
const EXTENSION: Revision = Revision::V2026_07_28;

#[derive(Form)]
struct Name {
    name: String,
}

async fn greet(cx: Context) -> Result<String, ToolError> {
    let first = cx.ask::<Name>("Your name?").await?.accepted()?.name;
    let second = cx.ask::<Name>(format!("And your friend's, {first}?")).await?.accepted()?.name;
    Ok(format!("Hello, {first} and {second}!"))
}

async fn boom() -> &'static str {
    tokio::task::yield_now().await;
    panic!("inside a task")
}

fn boom_at_once() -> std::future::Ready<&'static str> {
    panic!("before there is a future")
}

async fn fail() -> Result<(), ToolError> {
    Err(ToolError::new("No bread."))
}

fn server() -> Server {
    builder()
        .tasks(at_once())
        .tool(tool("greet", greet).task(TaskSupport::Required))
        .tool(tool("boom", boom).task(TaskSupport::Optional))
        .tool(tool("boom_at_once", boom_at_once).task(TaskSupport::Optional))
        .tool(tool("fail", fail).task(TaskSupport::Optional))
        .build()
}

async fn peer(server: &Server, revision: Revision) -> Peer {
    let mut peer = open(server, revision).await;
    if peer.is_stateless() {
        peer.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    }
    peer
}

/// Starts a task and returns its id.
async fn start(peer: &mut Peer, name: &str, ttl: Option<u64>) -> Value {
    let mut params = json!({ "name": name });
    if !peer.is_stateless() {
        params["task"] = ttl.map_or(json!({}), |ttl| json!({ "ttl": ttl }));
    }
    let created = peer.expect("tools/call", params).await;
    let task = if peer.is_stateless() { &created } else { &created["task"] };
    assert_eq!(task["status"], "working", "{created}");
    task["taskId"].clone()
}

/// Starts a task and waits for its result.
async fn finished(peer: &mut Peer, name: &str) -> (Value, Value) {
    let id = start(peer, name, None).await;
    let result = peer.expect("tasks/result", json!({ "taskId": id })).await;
    (id, result)
}

#[tokio::test]
async fn whoever_waits_for_many_results_can_still_ask_and_cancel() {
    let endless = async || std::future::pending::<()>().await;
    let server = builder()
        .tasks(at_once())
        .tool(tool("endless", endless).task(TaskSupport::Required))
        .build();
    let mut peer = peer(&server, CORE).await;
    let id = start(&mut peer, "endless", None).await;
    for _ in 0..100 {
        peer.request("tasks/result", json!({ "taskId": id })).await;
    }
    assert_eq!(peer.expect("tasks/get", json!({ "taskId": id })).await["status"], "working");
    assert_eq!(peer.expect("tasks/cancel", json!({ "taskId": id })).await["status"], "cancelled");
}

/// The states that a peer was told of.
fn told<'a>(peer: &'a Peer, method: &str) -> Vec<&'a str> {
    let heard = peer.heard.iter().filter(|it| it["method"] == method);
    heard.map(|it| it["params"]["status"].as_str().unwrap()).collect()
}

/// Polls a task until its status changes.
async fn while_it_is(peer: &mut Peer, id: &Value, status: &str) -> Value {
    soon(async {
        loop {
            let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
            if task["status"] != status {
                return task;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_task_of_the_first_generation_asks_on_the_wire() {
    let server = server();
    let mut peer = peer(&server, CORE).await;
    let (id, result) = finished(&mut peer, "greet").await;
    assert_eq!(text(&result), "Hello, Ada and Ada!");
    assert_eq!(peer.rounds, [["Your name?"], ["And your friend's, Ada?"]]);
    let related = json!({ "taskId": id });
    for question in peer.heard.iter().filter(|it| it["method"] == "elicitation/create") {
        let meta = &question["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/related-task"], related, "{question}");
    }
    let seen = told(&peer, "notifications/tasks/status");
    assert_eq!(seen, ["input_required", "working", "input_required", "working", "completed"]);
}

#[tokio::test]
async fn a_task_of_the_extension_keeps_its_questions_until_they_are_answered() {
    let server = server();
    let mut peer = peer(&server, EXTENSION).await;
    let id = start(&mut peer, "greet", None).await;
    let mut keys = Vec::new();
    for (question, name) in [("Your name?", "Ada"), ("And your friend's, Ada?", "Grace")] {
        let task = while_it_is(&mut peer, &id, "working").await;
        assert_eq!(task["status"], "input_required", "{task}");
        let asked = task["inputRequests"].as_object().unwrap();
        assert_eq!(asked.len(), 1);
        let (key, request) = asked.iter().next().unwrap();
        assert_eq!(request["method"], "elicitation/create");
        assert_eq!(request["params"]["message"], question);
        assert!(!keys.contains(key), "a key is never used twice");
        keys.push(key.clone());

        let answer = |name: &str| json!({ "action": "accept", "content": { "name": name } });
        // No question has these keys: the answers change nothing.
        let stray = json!({ "taskId": id, "inputResponses": { "q99": answer("Mallory") } });
        peer.expect("tasks/update", stray).await;
        let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "input_required");
        let update = json!({ "taskId": id, "inputResponses": { key: answer(name) } });
        peer.expect("tasks/update", update).await;
    }
    let task = while_it_is(&mut peer, &id, "working").await;
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(text(&task["result"]), "Hello, Ada and Grace!");
}

#[tokio::test]
async fn an_answer_counts_as_soon_as_the_question_can_be_seen() {
    // A peer that does not read delays the notification of the question.
    let limits = Limits::default().queue(1).unsent_bytes(1);
    let server = builder()
        .tasks(at_once())
        .limits(limits)
        .tool(tool("greet", greet).task(TaskSupport::Required))
        .build();
    let _deaf = deafen(&server, CORE).await;
    let mut peer = peer(&server, EXTENSION).await;
    let id = start(&mut peer, "greet", None).await;
    for key in ["q1", "q2"] {
        let task = while_it_is(&mut peer, &id, "working").await;
        assert!(task["inputRequests"].get(key).is_some(), "{task}");
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let update = json!({ "taskId": id, "inputResponses": { key: answer } });
        peer.expect("tasks/update", update).await;
    }
    let task = while_it_is(&mut peer, &id, "working").await;
    assert_eq!(text(&task["result"]), "Hello, Ada and Ada!");
}

#[tokio::test]
async fn a_task_asks_and_answers_in_the_words_of_a_plain_call() {
    #[derive(Serialize, JsonSchema)]
    #[serde(untagged)]
    enum Found {
        Here { page: u32 },
        There { shelf: u32 },
    }
    async fn find(cx: Context) -> Result<Json<Found>, ToolError> {
        match cx.ask_url("Please look.", "https://example.com/").await?.accepted() {
            Ok(()) => Ok(Json(Found::Here { page: 7 })),
            Err(_) => Ok(Json(Found::There { shelf: 3 })),
        }
    }
    async fn noted() -> CallToolResult {
        let mut result = CallToolResult::text("noted");
        result.meta = Some(RawJson::of(&json!({ "example.com/own": 1 })));
        result
    }
    let server = builder()
        .tool(tool("find", find).task(TaskSupport::Optional))
        .tool(tool("noted", noted).task(TaskSupport::Optional))
        .build();
    let mut peer = peer(&server, CORE).await;
    for name in ["find", "noted"] {
        let plain = peer.tool(name, json!({})).await;
        let id = start(&mut peer, name, None).await;
        let mut result = peer.expect("tasks/result", json!({ "taskId": id })).await;
        let meta = result["_meta"].as_object_mut().unwrap();
        let related = meta.remove("io.modelcontextprotocol/related-task");
        assert_eq!(related, Some(json!({ "taskId": id })));
        if meta.is_empty() {
            result.as_object_mut().unwrap().remove("_meta");
        }
        assert_eq!(result, plain, "{name}");
    }
    let asked = peer.heard.iter().filter(|it| it["method"] == "elicitation/create");
    let names: Vec<_> = asked.filter_map(|it| it["params"]["elicitationId"].as_str()).collect();
    assert_eq!(names.len(), 2, "the plain call and the task each name their visit");
    assert_ne!(names[0], names[1]);
}

#[tokio::test]
async fn a_listener_hears_of_every_step_of_its_task() {
    let server = server();
    let mut peer = peer(&server, EXTENSION).await;
    let id = start(&mut peer, "greet", None).await;
    while_it_is(&mut peer, &id, "working").await;
    let filter = json!({ "notifications": { "taskIds": [id] } });
    peer.request("subscriptions/listen", filter).await;
    peer.next().await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let update = json!({ "taskId": id, "inputResponses": { "q1": answer } });
    peer.expect("tasks/update", update).await;
    while_it_is(&mut peer, &id, "working").await;
    peer.expect("tasks/cancel", json!({ "taskId": id })).await;
    while_it_is(&mut peer, &id, "input_required").await;
    let seen = told(&peer, "notifications/tasks");
    assert_eq!(seen, ["working", "input_required", "cancelled"]);
}

#[tokio::test]
async fn a_task_that_panics_has_failed() {
    let server = server();
    for name in ["boom", "boom_at_once"] {
        let mut core = peer(&server, CORE).await;
        let id = start(&mut core, name, None).await;
        let result = soon(core.expect("tasks/result", json!({ "taskId": id }))).await;
        assert_eq!(result["isError"], true, "{result}");
        let task = core.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "failed");

        let mut extension = peer(&server, EXTENSION).await;
        let id = start(&mut extension, name, None).await;
        let task = while_it_is(&mut extension, &id, "working").await;
        // In this generation a task fails only if its call got an error.
        assert_eq!(task["status"], "completed", "{task}");
        assert_eq!(task["result"]["isError"], true, "{task}");
    }
}

#[tokio::test]
async fn a_tool_error_is_a_failed_task_in_one_generation_and_a_result_in_the_other() {
    let server = server();
    let mut core = peer(&server, CORE).await;
    let (id, result) = finished(&mut core, "fail").await;
    assert_eq!((&result["isError"], text(&result)), (&json!(true), "No bread."));
    let task = core.expect("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(task["status"], "failed");

    let mut extension = peer(&server, EXTENSION).await;
    let id = start(&mut extension, "fail", None).await;
    let task = while_it_is(&mut extension, &id, "working").await;
    assert_eq!((&task["status"], &task["result"]["isError"]), (&json!("completed"), &json!(true)));
}

#[tokio::test]
async fn a_tool_that_runs_as_a_task_only_says_so() {
    let server = server();
    let mut core = peer(&server, CORE).await;
    assert_eq!(core.refused("tools/call", json!({ "name": "greet" })).await, -32601);
    let mut extension = open(&server, EXTENSION).await;
    let error = extension.call("tools/call", json!({ "name": "greet" })).await.unwrap_err();
    assert_eq!(error["code"], -32021);
    let required = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    assert_eq!(error["data"]["requiredCapabilities"], required);
}

/// Counts its instances.
struct Alive(Arc<AtomicU32>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A tool that never ends and keeps its context, and how many instances run.
fn endless() -> (Arc<AtomicU32>, ToolEntry) {
    let (alive, endless) = counted(|cx, alive| {
        alive.fetch_add(1, SeqCst);
        let alive = Alive(alive);
        async move {
            let _alive = (alive, cx);
            std::future::pending::<()>().await;
        }
    });
    (alive, tool("endless", endless).task(TaskSupport::Optional))
}

#[tokio::test]
async fn a_task_that_works_for_too_long_has_failed_and_says_so() {
    let (alive, endless) = endless();
    let limit = Duration::from_millis(100);
    let bounds = TaskBounds { ttl: limit, max_ttl: limit, ..at_once() };
    let server = builder().tasks(bounds).tool(endless).build();
    let mut core = peer(&server, CORE).await;
    let id = start(&mut core, "endless", Some(100)).await;
    let waited = soon(core.call("tasks/result", json!({ "taskId": id }))).await.unwrap_err();
    assert_eq!(waited["message"], "The task took longer than the server lets tasks work.");
    assert_eq!(alive.load(SeqCst), 0, "the work is over");

    let mut extension = peer(&server, EXTENSION).await;
    let id = start(&mut extension, "endless", None).await;
    let task = while_it_is(&mut extension, &id, "working").await;
    assert_eq!(task["status"], "failed", "{task}");
    // Some time after its end it is forgotten.
    until(async || extension.call("tasks/get", json!({ "taskId": id })).await.is_err()).await;
}

#[tokio::test]
async fn a_task_that_works_is_not_forgotten_however_short_it_is_to_be_kept() {
    let (alive, endless) = endless();
    let server = builder().tool(endless).build();
    let mut core = peer(&server, CORE).await;
    let id = start(&mut core, "endless", Some(1)).await;
    // New tasks start, and expired ones are removed.
    for _ in 0..50 {
        start(&mut core, "endless", Some(1)).await;
        assert_eq!(core.expect("tasks/get", json!({ "taskId": id })).await["status"], "working");
    }
    assert_eq!(alive.load(SeqCst), 51);
    core.expect("tasks/cancel", json!({ "taskId": id })).await;
    until(async || core.call("tasks/get", json!({ "taskId": id })).await.is_err()).await;
}

#[tokio::test]
async fn a_cancelled_task_is_stopped() {
    let (alive, endless) = endless();
    let server = builder().tasks(at_once()).tool(endless).build();
    for revision in [CORE, EXTENSION] {
        let mut peer = peer(&server, revision).await;
        let id = start(&mut peer, "endless", None).await;
        peer.expect("tasks/cancel", json!({ "taskId": id })).await;
        let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "cancelled");
        until(async || alive.load(SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn a_task_ends_with_the_last_owner_of_its_server() {
    for revision in [CORE, EXTENSION] {
        let (alive, endless) = endless();
        let server = builder().tasks(at_once()).tool(endless).build();
        let mut peer = peer(&server, revision).await;
        let id = start(&mut peer, "endless", None).await;
        until(async || alive.load(SeqCst) > 0).await;
        // Another connection does not need the one that started the task.
        let mut other = self::peer(&server, revision).await;
        drop((peer, server));
        let task = other.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!((&task["status"], alive.load(SeqCst)), (&json!("working"), 1));
        drop(other);
        until(async || alive.load(SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn too_many_tasks_are_refused() {
    let bounds = TaskBounds { tasks: 2, ..at_once() };
    let endless = || std::future::pending::<()>();
    let server =
        builder().tasks(bounds).tool(tool("endless", endless).task(TaskSupport::Optional)).build();
    for revision in [CORE, EXTENSION] {
        let mut peer = peer(&server, revision).await;
        if revision == CORE {
            start(&mut peer, "endless", None).await;
            start(&mut peer, "endless", None).await;
        }
        let mut params = json!({ "name": "endless" });
        if revision == CORE {
            params["task"] = json!({});
        }
        let error = peer.call("tools/call", params).await.unwrap_err();
        assert_eq!(error["data"]["reason"], "overloaded", "{error}");
    }
}

#[tokio::test]
async fn a_call_may_ask_first_and_become_a_task_then() {
    let (effects, order) = counted(|cx, effects| async move {
        let name = cx.ask::<Name>("Your name?").key("name").await?.accepted()?.name;
        let pay = async || Ok::<_, ToolError>(effects.fetch_add(1, SeqCst) + 1);
        let paid = cx.once("pay", pay).await?;
        cx.become_task().await;
        let friend = cx.ask::<Name>("And your friend's?").await?.accepted()?.name;
        Ok::<_, ToolError>(format!("{name} and {friend} have paid {paid} time"))
    });
    // Some tool must be a task from its start, or the server would not declare tasks.
    let with_tasks = || tool("fail", fail).task(TaskSupport::Optional);
    let server = builder().tool(tool("order", order)).tool(with_tasks()).build();

    let mut peer = peer(&server, EXTENSION).await;
    let params = peer.enveloped(json!({ "name": "order" }));
    let asked = peer.call_unchecked("tools/call", params).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let params = peer.enveloped(json!({
        "name": "order",
        "inputResponses": { "name": answer },
        "requestState": asked["requestState"],
    }));
    let created = peer.call_unchecked("tools/call", params).await.unwrap();
    assert_eq!(created["resultType"], "task", "{created}");
    let absent = ["requestState", "inputRequests", "result"];
    assert!(absent.iter().all(|it| created.get(it).is_none()), "{created}");
    let id = &created["taskId"];
    let task = while_it_is(&mut peer, id, "working").await;
    let questions = task["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 1, "the first was answered before: {task}");
    let key = questions.keys().next().unwrap();
    let answer = json!({ "action": "accept", "content": { "name": "Eve" } });
    let update = json!({ "taskId": id, "inputResponses": { key: answer } });
    peer.expect("tasks/update", update).await;
    let task = while_it_is(&mut peer, id, "working").await;
    assert_eq!(text(&task["result"]), "Ada and Eve have paid 1 time");

    // Where the server cannot decide that, the call continues unchanged.
    for (revision, paid) in [(CORE, 2), (EXTENSION, 3)] {
        let mut peer = open(&server, revision).await;
        let result = peer.tool("order", json!({})).await;
        assert_eq!(text(&result), format!("Ada and Ada have paid {paid} time"), "{revision}");
    }
    assert_eq!(effects.load(SeqCst), 3);
}
