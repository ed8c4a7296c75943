//! Servers of several processes, here in one, that share a store and a key.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use trunkline::model::TaskSupport;
use trunkline::server::Replicas;
use trunkline::store::{Memory, Store};
use trunkline::{Change, Context, Revision, Server, ToolError, tool};
use trunkline_testkit::http::{Answer, Guest};

use crate::http::House;
use crate::server::{at_once, builder, text};

const SESSIONS: [Revision; 3] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// One replica. Its tools say which one they run in; `gated` ends once `gate` is opened.
fn gated(store: &Arc<dyn Store>, name: &'static str, gate: &Arc<Notify>) -> Server {
    let ask = async |cx: Context| -> Result<String, ToolError> {
        Ok(format!("{} folders", cx.roots().await?.len()))
    };
    let steps = async |cx: Context| {
        cx.progress(1.0, 2.0).await;
        std::future::pending::<()>().await;
    };
    let gate = Arc::clone(gate);
    let waits = move |cx: Context| {
        let gate = Arc::clone(&gate);
        async move {
            cx.progress(1.0, 2.0).await;
            gate.notified().await;
            name
        }
    };
    builder()
        .tool(tool("gated", waits))
        .tool(tool("where", move || async move { name }))
        .tool(tool("ask", ask))
        .tool(tool("endless", steps))
        .tool(tool("learn", async |cx: Context| cx.changed(Change::Tools).await))
        .tool(tool("praise", async |cx: Context| cx.changed(Change::Prompts).await))
        .prompts_later()
        .tool(tool("film", move || async move { name }).task(TaskSupport::Required))
        .tool(tool("wait", std::future::pending::<String>).task(TaskSupport::Required))
        .tasks(at_once())
        .replicas(Replicas::new(Arc::clone(store), [7; 32], "127.0.0.1:0"))
        .build()
}

fn replica(store: &Arc<dyn Store>, name: &'static str) -> Server {
    gated(store, name, &Arc::default())
}

async fn fleet<const N: usize>() -> [House; N] {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let mut houses = Vec::new();
    for name in ["a", "b", "c"].into_iter().take(N) {
        houses.push(House::of(&replica(&store, name)).await);
    }
    houses.try_into().ok().expect("there are that many")
}

/// The first answer that is not "try again".
async fn patient(guest: &mut Guest, method: &str, params: Value) -> Answer {
    loop {
        let answer = guest.call(method, params.clone()).await;
        if answer.head.status != 503 {
            return answer;
        }
        let seconds = answer.head.get("retry-after").expect("it says when").parse().unwrap();
        let pause = Duration::from_secs(seconds);
        tokio::time::sleep(pause).await; // the sleep is the subject: the server asked for it
    }
}

async fn called(guest: &mut Guest, at: SocketAddr, name: &str) -> String {
    guest.address = at;
    let answer = patient(guest, "tools/call", json!({ "name": name })).await;
    assert_eq!(answer.head.status, 200, "{answer:?}");
    text(&answer.message["result"]).to_owned()
}

/// A session, once the replica has had its first heartbeat.
async fn opened(at: SocketAddr, revision: Revision) -> Guest {
    let mut guest = Guest::new(at, revision);
    let hello = guest.hello();
    let answer = patient(&mut guest, "initialize", hello).await;
    guest.session = answer.head.get("mcp-session-id").map(str::to_owned);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(guest.post(&initialized).await.1.status, 202);
    guest
}

#[tokio::test]
async fn any_replica_takes_any_request_of_a_session() {
    let [a, b, c] = fleet().await;
    for revision in SESSIONS {
        let mut guest = opened(a.address, revision).await;
        for at in [&a, &b, &c] {
            assert_eq!(called(&mut guest, at.address, "where").await, "a", "{revision}");
        }
        guest.address = b.address;
        let ask = guest.prepare("tools/call", json!({ "name": "ask" }));
        let (mut line, _) = guest.post(&ask).await;
        let (_, question) = line.message().await.expect("it asks");
        guest.address = c.address;
        let roots = json!({ "roots": [] });
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots });
        assert_eq!(guest.post(&answer).await.1.status, 202);
        let (_, answer) = line.message().await.expect("it is answered");
        assert_eq!(text(&answer["result"]), "0 folders", "{revision}");
    }
}

#[tokio::test]
async fn a_session_goes_on_after_its_owner_has_left_or_died() {
    let [mut a, b, c] = fleet().await;
    let mut guest = opened(a.address, Revision::V2025_11_25).await;
    // It leaves: its sessions are handed over before it ends.
    a.close();
    a.ended().await;
    let owner = called(&mut guest, b.address, "where").await;
    assert_eq!(called(&mut guest, c.address, "where").await, owner);
    // The next one dies: its heartbeat has to run out.
    let (dies, lives, heir) = if owner == "b" { (b, c, "c") } else { (c, b, "b") };
    guest.address = lives.address;
    let endless = json!({ "name": "endless", "_meta": { "progressToken": "t" } });
    let endless = guest.prepare("tools/call", endless);
    let id = endless["id"].clone();
    let (mut line, head) = guest.post(&endless).await;
    assert!(head.is_events());
    let (event, _) = line.message().await.expect("it has begun");
    dies.kill().await;
    while line.message().await.is_some() {}
    assert_eq!(called(&mut guest, lives.address, "where").await, heir);
    // What was in flight is told as lost, once.
    let (mut line, _) = guest.get(event.id.as_deref()).await;
    let (event, answer) = line.message().await.expect("it is told");
    assert_eq!(
        (&answer["id"], &answer["error"]["data"]["reason"]),
        (&id, &json!("outcome_unknown"))
    );
    assert_eq!(line.message().await, None);
    assert_eq!(guest.get(event.id.as_deref()).await.1.status, 204);
}

#[tokio::test]
async fn a_replica_that_leaves_answers_first_what_another_has_forwarded() {
    let (store, gate): (Arc<dyn Store>, _) = (Arc::new(Memory::default()), Arc::new(Notify::new()));
    let mut a = House::of(&gated(&store, "a", &gate)).await;
    let b = House::of(&replica(&store, "b")).await;
    let mut busy = opened(a.address, Revision::V2025_11_25).await;
    let mut quiet = opened(a.address, Revision::V2025_11_25).await;
    assert_eq!(called(&mut busy, b.address, "where").await, "a", "they know each other");
    let call = json!({ "name": "gated", "_meta": { "progressToken": "t" } });
    let call = busy.prepare("tools/call", call);
    let (mut line, _) = busy.post(&call).await;
    line.message().await.expect("it has begun");
    a.close();
    // It gives away what is quiet, and keeps what is not.
    while called(&mut quiet, b.address, "where").await != "b" {}
    gate.notify_one();
    let (_, answer) = line.message().await.expect("it is answered");
    assert_eq!(text(&answer["result"]), "a");
    a.ended().await;
    assert_eq!(called(&mut busy, b.address, "where").await, "b");
}

#[tokio::test]
async fn a_call_of_2026_07_28_goes_on_at_another_replica() {
    let [a, b] = fleet().await;
    let mut guest = Guest::open(a.address, Revision::V2026_07_28).await;
    let asked = guest.expect("tools/call", json!({ "name": "ask" })).await;
    assert_eq!(asked["resultType"], "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    guest.address = b.address;
    let again = json!({
        "name": "ask",
        "requestState": asked["requestState"],
        "inputResponses": { key: { "roots": [] } },
    });
    assert_eq!(text(&guest.expect("tools/call", again).await), "0 folders");
    guest.address = a.address;
    guest.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let task = guest.expect("tools/call", json!({ "name": "film" })).await;
    guest.address = b.address;
    let id = task["taskId"].clone();
    let done = loop {
        let task = guest.expect("tasks/get", json!({ "taskId": id })).await;
        if task["status"] != "working" {
            break task;
        }
    };
    assert_eq!(text(&done["result"]), "a", "{done}");
}

#[tokio::test]
async fn a_task_is_cancelled_over_a_replica_that_does_not_run_it() {
    let [a, b] = fleet().await;
    let mut guest = Guest::open(a.address, Revision::V2026_07_28).await;
    guest.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let task = guest.expect("tools/call", json!({ "name": "wait" })).await;
    guest.address = b.address;
    let id = json!({ "taskId": task["taskId"] });
    guest.expect("tasks/cancel", id.clone()).await;
    let task = loop {
        let task = guest.expect("tasks/get", id.clone()).await;
        if task["status"] != "working" {
            break task;
        }
    };
    assert_eq!(task["status"], "cancelled", "{task}");
}

#[tokio::test]
async fn a_task_that_was_taken_over_is_cancelled_over_a_third_replica() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let (runs, mut running) = tokio::sync::mpsc::unbounded_channel();
    let server = |name: &'static str| {
        let runs = runs.clone();
        let lasts = move || {
            runs.send(name).expect("the test listens");
            std::future::pending::<String>()
        };
        builder()
            .tool(tool("lasts", lasts).task(TaskSupport::Required).resume())
            .tasks(at_once())
            .take_over_after(Duration::from_millis(300))
            .replicas(Replicas::new(Arc::clone(&store), [7; 32], "127.0.0.1:0"))
            .build()
    };
    let a = House::of(&server("a")).await;
    let mut guest = Guest::open(a.address, Revision::V2026_07_28).await;
    guest.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    let task = guest.expect("tools/call", json!({ "name": "lasts" })).await;
    let id = json!({ "taskId": task["taskId"] });
    assert_eq!(running.recv().await, Some("a"));
    let [b, c] = [House::of(&server("b")).await, House::of(&server("c")).await];
    // Whoever is asked for a task watches for those that are left.
    for house in [&b, &c] {
        guest.address = house.address;
        guest.expect("tasks/get", id.clone()).await;
    }
    a.kill().await;
    let third = match running.recv().await {
        Some("b") => &c,
        Some("c") => &b,
        other => panic!("{other:?} goes on with the task"),
    };
    guest.address = third.address;
    let cancelled = patient(&mut guest, "tasks/cancel", id.clone()).await;
    assert!(cancelled.message["error"].is_null(), "{cancelled:?}");
    let task = guest.expect("tasks/get", id).await;
    assert_eq!(task["status"], "cancelled", "{task}");
}

#[tokio::test]
async fn a_change_is_told_to_the_clients_of_every_replica_once() {
    let [a, b] = fleet().await;
    let mut listening = Vec::new();
    for house in [&a, &b] {
        let mut guest = Guest::open(house.address, Revision::V2026_07_28).await;
        let filter = json!({ "toolsListChanged": true, "promptsListChanged": true });
        let asked = guest.prepare("subscriptions/listen", json!({ "notifications": filter }));
        let (mut line, _) = guest.post(&asked).await;
        let (_, first) = line.message().await.expect("it is acknowledged");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        listening.push(line);
    }
    let mut guest = Guest::open(a.address, Revision::V2026_07_28).await;
    for (name, list) in [("learn", "tools"), ("praise", "prompts"), ("learn", "tools")] {
        guest.expect("tools/call", json!({ "name": name })).await;
        for line in &mut listening {
            let (_, news) = line.message().await.expect("it is told");
            assert_eq!(news["method"], format!("notifications/{list}/list_changed"), "{news}");
        }
    }
}

#[tokio::test]
async fn a_replica_that_others_cannot_reach_does_not_start() {
    let store = Arc::new(Memory::default());
    let nowhere = Replicas::new(store, [7; 32], "0.0.0.0:0");
    let served = builder().replicas(nowhere.clone()).build().http().shared_service().await;
    let error = served.expect_err("it is refused").to_string();
    assert!(error.contains("`reached_at`"), "{error}");
    let known = nowhere.reached_at("http://replica-1:7474");
    let service = builder().replicas(known).build().http().shared_service().await.unwrap();
    service.leave().await;
}
