//! Calls of an operator that become tasks, for every pairing of client and server generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use serde_json::{Value, json};
use trunkline_testkit::http::Line;
use trunkline_testkit::peer::PATIENCE;

use crate::console::{ADMIN, Operator};
use crate::gateway_kit::{Gateway, Place};
use crate::gateway_tasks::house;

const WITH_TASKS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A gateway before a server of each generation, named by its revision.
struct Scene {
    operator: Operator,
    /// How often `endless` was given up.
    given_up: Arc<AtomicU32>,
    _gateway: Gateway,
    _place: Place,
}

impl Scene {
    async fn open(name: &str) -> Self {
        let (address, given_up) = house().await;
        let server =
            |it: &str| json!({ "url": format!("http://{address}/mcp"), "protocolVersion": it });
        let place = Place::new(name);
        let servers = WITH_TASKS.map(|it| (format!("r{it}"), server(it)));
        place.catalog(&json!({
            "gateway": { "admin": { "listen": ADMIN } },
            "mcpServers": serde_json::Map::from_iter(servers),
        }));
        let gateway = Gateway::start(&place).await;
        let operator = Operator::of(&place);
        Self { operator, given_up, _gateway: gateway, _place: place }
    }

    /// Calls a tool as a task, as a client of a revision; the id of the call, and its events.
    async fn run(&self, revision: &str, server: &str, tool: &str) -> (String, Line) {
        let mut params = json!({ "name": tool, "arguments": {} });
        if revision == "2025-11-25" {
            params["task"] = json!({});
        }
        let body = json!({
            "server": format!("r{server}"), "revision": revision, "method": "tools/call",
            "params": params,
        });
        let (mut stream, _) = self.operator.send("POST /v1/try", &body).await;
        let (_, begun) = stream.message().await.unwrap();
        (begun["try"].as_str().unwrap().to_owned(), stream)
    }
}

/// The next event that is no log.
async fn next(stream: &mut Line) -> (String, Value) {
    loop {
        let (event, data) = stream.message().await.expect("it ends with `done`");
        match event.event.as_deref() {
            Some("log" | "progress") => {}
            name => return (name.unwrap_or_default().to_owned(), data),
        }
    }
}

/// Reads on to this event; returns the states of the task until then, and the event.
async fn until(stream: &mut Line, wanted: &str) -> (Vec<String>, Value) {
    let mut states = Vec::new();
    loop {
        match next(stream).await {
            (name, data) if name == wanted => return (states, data),
            (name, data) if name == "task" => {
                states.push(data["status"].as_str().unwrap().to_owned());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_task_is_followed_through_its_question_to_its_result() {
    let scene = Scene::open("try-tasks").await;
    for revision in WITH_TASKS {
        for server in WITH_TASKS {
            let pair = format!("{revision} at {server}");
            let (id, mut stream) = scene.run(revision, server, "ask").await;
            let (before, question) = until(&mut stream, "question").await;
            // That it asks may be told before the answer that names the task.
            assert!(["working", "input_required"].contains(&&*before[0]), "{pair}: {before:?}");
            assert_eq!(question["method"], "elicitation/create", "{pair}: {question}");
            let answer = json!({ "action": "accept", "content": { "value": true } });
            let answer = json!({ "question": question["id"], "result": answer });
            scene.operator.post(&format!("/v1/try/{id}/answer"), &answer).await;
            let (after, done) = until(&mut stream, "done").await;
            assert_eq!(done["result"]["content"][0]["text"], "true", "{pair}: {done}");
            let states: Vec<_> = before.into_iter().chain(after).collect();
            assert!(states.iter().any(|it| it == "input_required"), "{pair}: {states:?}");
            assert_eq!(states.last().unwrap(), "completed", "{pair}: {states:?}");
            assert_eq!(stream.event().await, None, "the stream ends");
        }
    }
}

#[tokio::test]
async fn a_task_is_cancelled_at_its_server_by_a_request_or_by_leaving() {
    let scene = Scene::open("try-cancels").await;
    let mut count = 0;
    for revision in WITH_TASKS {
        for server in WITH_TASKS {
            for leaves in [false, true] {
                let pair = format!("{revision} at {server}, leaves: {leaves}");
                let (id, mut stream) = scene.run(revision, server, "endless").await;
                let (_, task) = until(&mut stream, "task").await;
                assert_eq!(task["status"], "working", "{pair}");
                if leaves {
                    drop(stream);
                } else {
                    scene.operator.post(&format!("/v1/try/{id}/cancel"), &json!({})).await;
                    let (states, done) = until(&mut stream, "done").await;
                    let why = &done["error"]["message"];
                    assert_eq!(why, "The task was cancelled.", "{pair}: {done}");
                    assert_eq!(states.last().unwrap(), "cancelled", "{pair}: {states:?}");
                }
                count += 1;
                let given_up = async {
                    while scene.given_up.load(SeqCst) < count {
                        tokio::task::yield_now().await;
                    }
                };
                tokio::time::timeout(PATIENCE, given_up).await.expect(&pair);
            }
        }
    }
}
