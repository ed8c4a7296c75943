//! The client against a scripted server that turns calls into tasks.

use serde_json::json;
use trunkline::client::{Hooks, ToolCall};
use trunkline::model::{ElicitResult, TaskStatus};
use trunkline::{RawJson, Revision};

use crate::client_peer::{builder, discovered, open};

#[tokio::test]
async fn a_call_that_becomes_a_task_is_followed_to_its_end() {
    let text = json!({ "content": [{ "type": "text", "text": "worked" }] });

    // 2025-11-25: the tool runs only as a task.
    let (client, mut peer) = open(builder(), Revision::V2025_11_25).await;
    let task = |status: &str| {
        json!({
            "taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": null, "pollInterval": 1,
        })
    };
    let serve = async {
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"].get("task"), None);
        peer.fail(&call, -32601).await;
        let call = peer.expect("tools/call").await;
        assert_eq!(call["params"]["task"], json!({}));
        peer.reply(&call, json!({ "task": task("working") })).await;
        for status in ["working", "completed"] {
            let get = peer.expect("tasks/get").await;
            assert_eq!(get["params"], json!({ "taskId": "t1" }));
            peer.reply(&get, task(status)).await;
        }
        let result = peer.expect("tasks/result").await;
        peer.reply(&result, text.clone()).await;
    };
    let (result, ()) = tokio::join!(client.call_tool("work", json!({})).into_future(), serve);
    assert_eq!(result.unwrap().content[0].as_text(), Some("worked"));

    // 2026-07-28: the server decides, and asks in between.
    let host = Hooks::new().elicit(|_| async { Ok(ElicitResult::accept(RawJson::empty_object())) });
    let (client, mut peer) = open(builder().responder(host), Revision::V2026_07_28).await;
    let task = |status: &str| {
        json!({
            "resultType": "complete", "taskId": "t2", "status": status,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
            "ttlMs": null, "pollIntervalMs": 1,
        })
    };
    let serve = async {
        let call = peer.expect("tools/call").await;
        let mut created = task("working");
        created["resultType"] = json!("task");
        peer.reply(&call, created).await;
        let form = json!({ "message": "Go on?", "requestedSchema": { "type": "object", "properties": {} } });
        let mut asking = task("input_required");
        asking["inputRequests"] =
            json!({ "q1": { "method": "elicitation/create", "params": form } });
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, asking).await;
        let update = peer.expect("tasks/update").await;
        assert_eq!(update["params"]["inputResponses"]["q1"]["action"], "accept");
        peer.reply(&update, json!({ "resultType": "complete" })).await;
        let get = peer.expect("tasks/get").await;
        let mut completed = task("completed");
        completed["result"] = text.clone();
        peer.reply(&get, completed).await;
    };
    let (result, ()) = tokio::join!(client.call_tool("work", json!({})).into_future(), serve);
    assert_eq!(result.unwrap().content[0].as_text(), Some("worked"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_waits_for_is_cancelled() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let created = json!({
        "resultType": "task", "taskId": "t", "status": "working",
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": null, "pollIntervalMs": 60000,
    });
    let mut call = Box::pin(client.call_tool("work", json!({})).into_future());
    let serve = async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, created.clone()).await;
        // The answer is processed before any other message.
        let ping = client.ping().into_future();
        let pong = async {
            let request = peer.expect("server/discover").await;
            peer.reply(&request, discovered(&["2026-07-28"])).await;
        };
        let (pong, ()) = tokio::join!(ping, pong);
        pong.unwrap();
    };
    tokio::select! {
        biased;
        _ = &mut call => panic!("the task is not over"),
        () = serve => {}
    }
    drop(call);
    let cancel = peer.expect("tasks/cancel").await;
    assert_eq!(cancel["params"]["taskId"], "t");

    let serve = async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, created.clone()).await;
    };
    let (started, ()) = tokio::join!(client.call_tool_task("work", json!({})).into_future(), serve);
    match started.unwrap() {
        ToolCall::Task(task) => assert_eq!(task.status, TaskStatus::Working),
        ToolCall::Done(result) => panic!("{result:?}"),
    }
}
