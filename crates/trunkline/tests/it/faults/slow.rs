//! A handler that takes too long is stopped, and its caller is told in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use trunkline::{Context, Revision, Server, State, ToolError, prompt, resource, template, tool};

use super::{Gate, Side, Transport, transports_of, wait};
use crate::server::{ERAS, builder, text};

const LIMIT: Duration = Duration::from_millis(250);

/// Reports progress forever.
async fn busy(cx: Context, State(gate): State<Gate>) {
    let _bell = super::Bell(gate);
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    for step in 1.. {
        pace.tick().await;
        cx.progress(step, 1e9).await;
    }
}

async fn wait_for_text(gate: State<Gate>) -> String {
    wait(gate).await.to_owned()
}

fn slow(gate: &Arc<Gate>) -> Server {
    builder()
        .shared_state(Arc::clone(gate))
        .tool(tool("wait", wait).timeout(LIMIT))
        .tool(tool("busy", busy).timeout(LIMIT))
        .tool(tool("quick", async || "quick").timeout(LIMIT))
        .prompt(prompt("wait", wait_for_text).timeout(LIMIT))
        .resource(resource("test://wait", "wait", wait).timeout(LIMIT))
        .resource(template("test://wait/{n}", "wait", wait).timeout(LIMIT))
        .build()
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_stopped_and_the_model_told() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let gate = Gate::new();
        let mut side = Side::of(&slow(&gate), transport, revision).await;
        for name in ["wait", "busy"] {
            let started = Instant::now();
            let params = json!({ "name": name, "_meta": { "progressToken": 1 } });
            let result = side.call("tools/call", params).await.unwrap();
            let took = started.elapsed();
            assert!(took >= LIMIT && took < 20 * LIMIT, "{name} took {took:?}");
            assert_eq!(result["isError"], true, "{transport:?} {revision}: {result}");
            let expected = format!(
                "`{name}` took longer than 250ms and was stopped. It may have done a part of its \
                 work."
            );
            assert_eq!(text(&result), expected);
            gate.pass(&gate.dropped).await;
        }
        assert_eq!(text(&side.tool("quick", json!({})).await), "quick");
        side.assert_no_answer_came_twice();
    }
}

#[tokio::test]
async fn prompts_and_resources_that_take_too_long_are_errors() {
    for (transport, revision) in transports_of(&ERAS) {
        let gate = Gate::new();
        let mut side = Side::of(&slow(&gate), transport, revision).await;
        for (method, params, name) in [
            ("prompts/get", json!({ "name": "wait" }), "wait"),
            ("resources/read", json!({ "uri": "test://wait" }), "test://wait"),
            ("resources/read", json!({ "uri": "test://wait/1" }), "test://wait/1"),
        ] {
            let error = side.call(method, params).await.unwrap_err();
            assert_eq!(
                (&error["code"], &error["data"]["reason"]),
                (&json!(-32603), &json!("timeout"))
            );
            let message = error["message"].as_str().unwrap();
            assert_eq!(message, format!("`{name}` took longer than 250ms and was stopped."));
            gate.pass(&gate.dropped).await;
        }
    }
}

#[tokio::test]
async fn the_time_of_a_tool_stands_still_while_somebody_is_asked() {
    async fn ask(cx: Context, gate: State<Gate>) -> Result<String, ToolError> {
        let folders = cx.roots().await?.len();
        wait(gate).await;
        Ok(format!("{folders} folders"))
    }
    let gate = Gate::new();
    let server =
        builder().shared_state(Arc::clone(&gate)).tool(tool("ask", ask).timeout(LIMIT)).build();
    for revision in ERAS {
        let mut side = Side::of(&server, Transport::Pipes, revision).await;
        let Side::Pipes(peer) = &mut side else { unreachable!() };
        for is_over_in_time in [true, false] {
            let id = peer.request("tools/call", json!({ "name": "ask" })).await;
            let question = peer.next().await;
            // The user takes longer than the tool may work.
            tokio::time::sleep(2 * LIMIT).await; // the sleep is the subject
            let answer = json!({ "roots": [] });
            let id = match revision {
                Revision::V2026_07_28 => {
                    let result = &question["result"];
                    let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap();
                    let params = json!({
                        "name": "ask",
                        "requestState": result["requestState"],
                        "inputResponses": { key: answer },
                    });
                    peer.request("tools/call", params).await
                }
                _ => {
                    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
                    peer.send(&reply, Some("roots/list")).await;
                    id
                }
            };
            gate.pass(&gate.entered).await;
            if is_over_in_time {
                gate.open.add_permits(1);
            }
            let result = peer.answer_to(&id).await.unwrap();
            gate.pass(&gate.dropped).await;
            match is_over_in_time {
                true => assert_eq!(text(&result), "0 folders", "{revision}"),
                false => assert!(text(&result).contains("took longer"), "{result}"),
            }
        }
    }
}
