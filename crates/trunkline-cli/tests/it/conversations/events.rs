//! What happens besides: logs, progress, cancellation, subscriptions, tasks.

use serde_json::{Value, json};
use trunkline::Revision::{V2025_11_25, V2026_07_28};
use trunkline_testkit::peer::Peer;

use super::{ALL, STATEFUL, names, notified, play, text};
use crate::stdio::{Session, Way};

#[tokio::test]
async fn a_log_message_is_sent_to_those_who_chose_its_level() {
    play(ALL, async |peer| {
        let level = "io.modelcontextprotocol/logLevel";
        for (chosen, sent, heard) in
            [("warning", "info", false), ("warning", "error", true), ("debug", "debug", true)]
        {
            match peer.is_stateless() {
                true => drop(peer.meta.insert(level.to_owned(), json!(chosen))),
                false => drop(peer.expect("logging/setLevel", json!({ "level": chosen })).await),
            }
            let before = notified(peer, "notifications/message").len();
            peer.tool("log", json!({ "level": sent, "message": "The kettle boils." })).await;
            let messages = notified(peer, "notifications/message");
            assert_eq!(messages.len() > before, heard, "{sent} when {chosen} was chosen");
            if heard {
                let expected =
                    json!({ "level": sent, "logger": "demo", "data": "The kettle boils." });
                assert_eq!(*messages[before], expected);
            }
        }
        peer.meta.clear();
        if peer.is_stateless() {
            let before = peer.heard.len();
            peer.tool("log", json!({ "level": "emergency", "message": "Fire!" })).await;
            assert_eq!(peer.heard.len(), before + 1, "who chose no level hears no log");
        } else {
            let loud = peer.call_unchecked("logging/setLevel", json!({ "level": "loud" })).await;
            assert_eq!(loud.unwrap_err()["code"], -32602);
        }
    })
    .await;
}

#[tokio::test]
async fn progress_is_reported_to_those_who_ask_for_it() {
    play(ALL, async |peer| {
        for token in [json!("a token"), json!(7)] {
            let before = notified(peer, "notifications/progress").len();
            let params = json!({
                "name": "progress",
                "arguments": { "steps": 3 },
                "_meta": { "progressToken": token },
            });
            assert_eq!(text(&peer.expect("tools/call", params).await), "done");
            let steps = &notified(peer, "notifications/progress")[before..];
            assert_eq!(steps.len(), 3);
            for (at, step) in steps.iter().enumerate() {
                assert_eq!(step["progressToken"], token);
                assert_eq!(
                    (step["progress"].as_f64(), step["total"].as_f64()),
                    (Some(at as f64 + 1.0), Some(3.0))
                );
                assert_eq!(step["message"], format!("step {} of 3", at + 1));
            }
        }
        let before = peer.heard.len();
        peer.tool("progress", json!({ "steps": 2 })).await;
        assert_eq!(peer.heard.len(), before + 1, "nobody asked for progress");
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_the_next_one_is() {
    play(ALL, async |peer| {
        let sleep = json!({ "name": "sleep", "arguments": { "ms": 600_000 } });
        let id = peer.request("tools/call", sleep).await;
        peer.cancel(&id).await;
        peer.cancel(&json!("nobody")).await;
        let before = peer.heard.len();
        peer.tool("echo", json!({ "text": "awake" })).await;
        assert_eq!(peer.heard.len(), before + 1, "the cancelled call is silent");
        // Its id is free again.
        let again = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": peer.enveloped(json!({})) });
        peer.send(&again, None).await;
        assert!(peer.answer_to(&id).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_subscriber_hears_of_what_it_subscribed_to() {
    play(STATEFUL, async |peer| {
        let updated = "notifications/resources/updated";
        let (readme, logo) = (json!({ "uri": "demo://readme" }), json!({ "uri": "demo://logo" }));
        peer.tool("touch", readme.clone()).await;
        assert!(notified(peer, updated).is_empty(), "nobody has subscribed yet");
        peer.expect("resources/subscribe", readme.clone()).await;
        peer.tool("touch", logo).await;
        peer.tool("touch", readme.clone()).await;
        assert_eq!(notified(peer, updated), [&readme]);
        peer.expect("resources/unsubscribe", readme.clone()).await;
        peer.tool("touch", readme.clone()).await;
        assert_eq!(notified(peer, updated).len(), 1);

        for kind in ["tools", "prompts", "resources"] {
            peer.tool("announce", json!({ "kind": kind })).await;
            let method = format!("notifications/{kind}/list_changed");
            assert_eq!(notified(peer, &method).len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_listener_hears_of_what_it_listens_to() {
    play([V2026_07_28], async |peer| {
        let tag = |id: &Value| json!({ "io.modelcontextprotocol/subscriptionId": id });
        let filter =
            json!({ "toolsListChanged": true, "resourceSubscriptions": ["demo://readme"] });
        let first = peer.request("subscriptions/listen", json!({ "notifications": filter })).await;
        let acknowledged = peer.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(
            acknowledged["params"],
            json!({ "notifications": filter, "_meta": tag(&first) })
        );
        let prompts = json!({ "promptsListChanged": true });
        let second =
            peer.request("subscriptions/listen", json!({ "notifications": prompts })).await;
        peer.next().await;

        for kind in ["tools", "prompts", "resources"] {
            peer.tool("announce", json!({ "kind": kind })).await;
        }
        peer.tool("touch", json!({ "uri": "demo://logo" })).await;
        peer.tool("touch", json!({ "uri": "demo://readme" })).await;
        let only = |method: &str| {
            let found = notified(peer, method);
            assert!(found.len() <= 1, "{method}");
            found.first().map(|it| (*it).clone())
        };
        assert_eq!(only("notifications/tools/list_changed").unwrap()["_meta"], tag(&first));
        assert_eq!(only("notifications/prompts/list_changed").unwrap()["_meta"], tag(&second));
        assert_eq!(only("notifications/resources/list_changed"), None);
        let updated = only("notifications/resources/updated").unwrap();
        assert_eq!(updated, json!({ "uri": "demo://readme", "_meta": tag(&first) }));

        peer.cancel(&first).await;
        let before = peer.heard.len();
        peer.tool("announce", json!({ "kind": "tools" })).await;
        assert_eq!(peer.heard.len(), before + 1, "who stopped listening hears nothing");
        peer.cancel(&second).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_ends_says_goodbye_to_its_listeners() {
    for way in Way::ALL {
        let mut session = Session::new(way, V2026_07_28).await;
        let peer = &mut session.peer;
        peer.open().await;
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let id = peer.request("subscriptions/listen", filter).await;
        peer.next().await;
        peer.hang_up().await;
        let result = peer.answer_to(&id).await.unwrap();
        assert_eq!(result["resultType"], "complete", "{way:?}");
        assert_eq!(peer.try_next().await, None);
    }
}

/// Asks how a task stands until it stands so. Only the last answer counts as heard.
async fn until(peer: &mut Peer, task: &Value, status: &str) -> Value {
    let params = peer.enveloped(json!({ "taskId": task }));
    let request =
        json!({ "jsonrpc": "2.0", "id": "poll", "method": "tasks/get", "params": params });
    loop {
        let before = peer.heard.len();
        peer.send(&request, None).await;
        let task = peer.answer_to(&request["id"]).await.unwrap();
        if task["status"] == status {
            return task;
        }
        assert_eq!(task["status"], "working", "{task}");
        peer.heard.truncate(before);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_tool_runs_as_a_task_when_its_caller_wants_one() {
    play([V2025_11_25], async |peer| {
        let work =
            json!({ "name": "work", "arguments": { "steps": 2 }, "task": { "ttl": 60_000 } });
        let created = peer.expect("tools/call", work).await;
        let (task, id) = (&created["task"], &created["task"]["taskId"]);
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)));

        let result = peer.expect("tasks/result", json!({ "taskId": id })).await;
        assert_eq!(text(&result), "worked 2 steps");
        let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
        assert_eq!(result["_meta"], related);
        let task = peer.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "completed");
        let listed = peer.expect("tasks/list", json!({})).await;
        assert_eq!(names(&listed, "tasks", "status"), ["completed"]);
        assert_eq!(peer.refused("tasks/cancel", json!({ "taskId": id })).await, -32602);

        let long = json!({ "name": "work", "arguments": { "steps": 1000 }, "task": {} });
        let id = peer.expect("tools/call", long).await["task"]["taskId"].clone();
        let cancelled = peer.expect("tasks/cancel", json!({ "taskId": id })).await;
        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(peer.refused("tasks/get", json!({ "taskId": "guess" })).await, -32602);

        let no_task = json!({ "name": "echo", "arguments": { "text": "" }, "task": {} });
        assert_eq!(peer.refused("tools/call", no_task).await, -32601);
        let plain = peer.tool("work", json!({ "steps": 1 })).await;
        assert_eq!(text(&plain), "worked 1 steps");
    })
    .await;
}

#[tokio::test]
async fn a_tool_runs_as_a_task_for_those_who_know_the_extension() {
    play([V2026_07_28], async |peer| {
        let work = json!({ "name": "work", "arguments": { "steps": 2 } });
        let plain = peer.expect("tools/call", work.clone()).await;
        assert_eq!((&plain["resultType"], text(&plain)), (&json!("complete"), "worked 2 steps"));
        assert_eq!(peer.refused("tasks/get", json!({ "taskId": "guess" })).await, -32021);

        peer.capabilities["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        let created = peer.expect("tools/call", work).await;
        assert_eq!(
            (&created["resultType"], &created["status"]),
            (&json!("task"), &json!("working"))
        );
        let done = until(peer, &created["taskId"], "completed").await;
        assert_eq!(text(&done["result"]), "worked 2 steps");

        let long = json!({ "name": "work", "arguments": { "steps": 1000 } });
        let created = peer.expect("tools/call", long).await;
        let id = json!({ "taskId": created["taskId"] });
        peer.expect("tasks/cancel", id.clone()).await;
        until(peer, &created["taskId"], "cancelled").await;
        // Too late is no error in this generation.
        peer.expect("tasks/cancel", id).await;
        assert_eq!(peer.refused("tasks/get", json!({ "taskId": "guess" })).await, -32602);
    })
    .await;
}
