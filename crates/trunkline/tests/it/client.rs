//! The client against a scripted server: what goes over the wire, in both eras.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use trunkline::client::{CallError, Client, ClientBuilder, ConnectCause, Hooks, OpenError, ToolCall};
use trunkline::model::{
    CompleteParams, ElicitResult, LogLevel, Reference, Root, SubscriptionFilter, TaskStatus,
};
use trunkline::{Change, Limits, RawJson, Revision, Revisions};

use crate::client_peer::{Peer, discovered, open, pair};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

fn builder() -> ClientBuilder {
    Client::builder("test", "1")
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn the_handshake_tells_who_the_server_is() {
    for revision in Revision::ALL {
        let (client, _peer) = open(builder(), revision).await;
        assert_eq!(client.revision(), revision);
        assert_eq!(client.server_info().map(|it| it.name.as_str()), Some("scripted"));
        assert_eq!(client.instructions(), Some("Follow the script."));
        assert!(client.server_capabilities().completions);
    }
}

/// Connects with every revision allowed; `script` plays an old server that is probed first.
async fn falls_back(limits: Limits, script: impl AsyncFnOnce(&mut Peer)) {
    let ((reader, writer), mut peer) = pair();
    let serve = async {
        script(&mut peer).await;
        let request = peer.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
        let result = json!({
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "serverInfo": { "name": "old", "version": "1" },
        });
        peer.reply(&request, result).await;
        peer.expect("notifications/initialized").await;
    };
    let (client, ()) = tokio::join!(builder().limits(limits).connect_io(reader, writer), serve);
    assert_eq!(client.unwrap().revision(), Revision::V2025_03_26);
}

#[tokio::test]
async fn an_old_server_is_found_by_its_refusal() {
    for code in [-32601, -32602, -32000, -32600] {
        falls_back(Limits::default(), async |peer| {
            let probe = peer.expect("server/discover").await;
            peer.fail(&probe, code).await;
        })
        .await;
    }
}

#[tokio::test]
async fn an_old_server_is_found_by_its_silence() {
    let limits = Limits::default().init_deadline(Duration::from_millis(200));
    falls_back(limits, async |peer| {
        peer.expect("server/discover").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_discovers_only_old_revisions_is_initialized() {
    falls_back(Limits::default(), async |peer| {
        let probe = peer.expect("server/discover").await;
        peer.reply(&probe, discovered(&["2025-11-25", "2025-06-18"])).await;
    })
    .await;
}

#[tokio::test]
async fn a_refused_handshake_says_what_both_sides_speak() {
    let ((reader, writer), mut peer) = pair();
    let serve = async {
        let probe = peer.expect("server/discover").await;
        let data = json!({ "supported": ["2027-01-01"], "requested": "2026-07-28" });
        let error = json!({ "code": -32022, "message": "No.", "data": data });
        peer.send(json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error })).await;
    };
    let (client, ()) = tokio::join!(builder().connect_io(reader, writer), serve);
    let error = client.unwrap_err();
    assert!(matches!(
        &error.cause,
        ConnectCause::Handshake(OpenError::NoCommonRevision { theirs, .. }) if theirs == &["2027-01-01"]
    ));
    assert_eq!(error.stage(), "handshake");
    assert!(error.to_string().contains("2027-01-01"), "{error}");
    assert!(error.to_string().contains("Allow a revision that both sides speak"), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_up_is_an_error_at_once() {
    let ((reader, writer), peer) = pair();
    drop(peer);
    let only = Revisions::only(Revision::V2025_06_18);
    let error = builder().protocols(only).connect_io(reader, writer).await.unwrap_err();
    assert!(matches!(error.cause, ConnectCause::Handshake(OpenError::Closed { probing: false })));
}

#[tokio::test]
async fn pages_are_followed_and_the_empty_cursor_is_one() {
    for revision in Revision::ALL {
        let (client, mut peer) = open(builder(), revision).await;
        let serve = async {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            let first = peer.expect("tools/list").await;
            assert_eq!(first["params"].get("cursor"), None);
            peer.reply(&first, json!({ "tools": [tool("a"), tool("b")], "nextCursor": "" })).await;
            let second = peer.expect("tools/list").await;
            assert_eq!(second["params"]["cursor"], "");
            peer.reply(&second, json!({ "tools": [], "nextCursor": "x" })).await;
            let third = peer.expect("tools/list").await;
            assert_eq!(third["params"]["cursor"], "x");
            peer.reply(&third, json!({ "tools": [tool("c")] })).await;
        };
        let (tools, ()) = tokio::join!(client.list_tools().into_future(), serve);
        let names: Vec<_> = tools.unwrap().into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let limits = Limits::default().list_pages(3);
    let (client, mut peer) = open(builder().limits(limits), Revision::V2026_07_28).await;
    let serve = async {
        for at in 0..3 {
            let request = peer.expect("prompts/list").await;
            peer.reply(&request, json!({ "prompts": [], "nextCursor": format!("{at}") })).await;
        }
    };
    let (prompts, ()) = tokio::join!(client.list_prompts().into_future(), serve);
    let error = prompts.unwrap_err();
    assert_eq!(error, CallError::TooLong { method: "prompts/list", limit: "3 pages".to_owned() });
}

#[tokio::test]
async fn a_cursor_that_repeats_is_not_followed_for_ever() {
    let (client, mut peer) = open(builder(), Revision::V2025_06_18).await;
    let serve = async {
        for _ in 0..2 {
            let request = peer.expect("resources/list").await;
            peer.reply(&request, json!({ "resources": [], "nextCursor": "same" })).await;
        }
    };
    let (resources, ()) = tokio::join!(client.list_resources().into_future(), serve);
    assert!(matches!(resources.unwrap_err(), CallError::Invalid(why) if why.contains("same")));
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_result() {
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let diary = Diary::default();
        let serve = async {
            let call = peer.expect("tools/call").await;
            let token = &call["params"]["_meta"]["progressToken"];
            for step in 1..=50 {
                let params = json!({ "progressToken": token, "progress": step, "total": 50 });
                peer.notify("notifications/progress", params).await;
            }
            peer.reply(&call, json!({ "content": [{ "type": "text", "text": "done" }] })).await;
        };
        let steps = diary.clone();
        let call = async {
            let call = client.call_tool("work", json!({}));
            let result = call.on_progress(move |it| steps.note(it.progress.to_string())).await;
            diary.note(result.unwrap().content[0].as_text().unwrap());
        };
        tokio::join!(call, serve);
        let mut expected: Vec<_> = (1..=50).map(|step| step.to_string()).collect();
        expected.push("done".to_owned());
        assert_eq!(diary.read(), expected, "{revision}");
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_on_the_wire() {
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let mut call = Box::pin(client.call_tool("sleep", ()).into_future());
        let request = tokio::select! {
            _ = &mut call => panic!("nobody answered"),
            request = peer.expect("tools/call") => request,
        };
        assert_eq!(request["params"].get("arguments"), None);
        drop(call);
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"], "{revision}");
    }
}

#[tokio::test]
async fn a_late_answer_is_a_timeout_and_cancels() {
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let call = client.read_resource("demo://x").timeout(Duration::from_millis(30));
        let serve = async {
            let request = peer.expect("resources/read").await;
            let cancelled = peer.expect("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], request["id"]);
        };
        let (result, ()) = tokio::join!(call.into_future(), serve);
        assert_eq!(result.unwrap_err(), CallError::TimedOut);
    }
}

#[tokio::test]
async fn a_server_that_dies_ends_every_call() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let serve = async {
        peer.expect("tools/call").await;
        drop(peer);
    };
    let (result, ()) = tokio::join!(client.call_tool("x", ()).into_future(), serve);
    assert_eq!(result.unwrap_err(), CallError::Closed);
    assert_eq!(client.ping().await.unwrap_err(), CallError::Closed);
}

#[tokio::test]
async fn a_structured_result_is_read_as_the_caller_wants_it() {
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Sum {
        sum: f64,
    }
    let answers = [
        (json!({ "content": [], "structuredContent": { "sum": 3 } }), Ok(3.0)),
        (json!({ "content": [{ "type": "text", "text": "{\"sum\":4}" }] }), Ok(4.0)),
        (json!({ "content": [{ "type": "text", "text": "oh" }], "isError": true }), Err("oh")),
        (json!({ "content": [{ "type": "text", "text": "four" }] }), Err("expected")),
    ];
    let (client, mut peer) = open(builder(), Revision::V2025_06_18).await;
    for (answer, expected) in answers {
        let serve = async {
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"]["arguments"], json!({ "a": 1, "b": 2 }));
            peer.reply(&request, answer).await;
        };
        let call = client.call::<Sum>("sum", json!({ "a": 1, "b": 2 }));
        let (sum, ()) = tokio::join!(call.into_future(), serve);
        match expected {
            Ok(expected) => assert_eq!(sum.unwrap().sum, expected),
            Err(part) => assert!(sum.unwrap_err().to_string().contains(part)),
        }
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_sent() {
    let (client, _peer) = open(builder(), Revision::V2026_07_28).await;
    let error = client.call_tool("x", [1, 2]).await.unwrap_err();
    assert!(matches!(error, CallError::Refused(_)), "{error}");
}

#[tokio::test]
async fn an_answer_of_another_shape_names_the_method() {
    let (client, mut peer) = open(builder(), Revision::V2025_11_25).await;
    let serve = async {
        let request = peer.expect("prompts/get").await;
        assert_eq!(request["params"], json!({ "name": "review", "arguments": { "code": "x" } }));
        peer.reply(&request, json!({ "messages": 7 })).await;
    };
    let call = client.get_prompt("review", [("code", "x")]);
    let (result, ()) = tokio::join!(call.into_future(), serve);
    assert!(matches!(result.unwrap_err(), CallError::Decode { method: "prompts/get", .. }));
}

#[tokio::test]
async fn what_a_revision_lacks_is_not_sent() {
    let (client, mut peer) = open(builder(), Revision::V2025_03_26).await;
    let params = CompleteParams::new(Reference::prompt("review"), "language", "r")
        .context([("code".to_owned(), "x".to_owned())].into_iter().collect::<std::collections::BTreeMap<_, _>>());
    let serve = async {
        let request = peer.expect("completion/complete").await;
        assert_eq!(request["params"].get("context"), None);
        let completion = json!({ "values": ["rust", "ruby"], "hasMore": false });
        peer.reply(&request, json!({ "completion": completion })).await;
    };
    let (completion, ()) = tokio::join!(client.complete(params).into_future(), serve);
    assert_eq!(completion.unwrap().values, ["rust", "ruby"]);
    assert!(matches!(client.get_task("t").await.unwrap_err(), CallError::Refused(_)));
}

#[tokio::test]
async fn the_log_level_is_set_once_or_with_every_request() {
    let (client, mut peer) = open(builder(), Revision::V2025_11_25).await;
    let serve = async {
        let request = peer.expect("logging/setLevel").await;
        assert_eq!(request["params"], json!({ "level": "warning" }));
        peer.reply(&request, json!({})).await;
    };
    let (set, ()) = tokio::join!(client.set_log_level(LogLevel::Warning), serve);
    set.unwrap();

    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    for level in [LogLevel::Warning, LogLevel::Debug] {
        client.set_log_level(level).await.unwrap();
        let serve = async {
            let request = peer.expect("server/discover").await;
            let meta = &request["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/logLevel"], level.as_str());
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
            peer.reply(&request, discovered(&["2026-07-28"])).await;
        };
        let (pong, ()) = tokio::join!(client.ping().into_future(), serve);
        pong.unwrap();
    }
}

#[tokio::test]
async fn logs_and_changes_reach_the_host_in_order() {
    let diary = Diary::default();
    let (logs, changes) = (diary.clone(), diary.clone());
    let host = Hooks::new()
        .on_log(move |it| logs.note(it.data.get()))
        .on_change(move |it| changes.note(format!("{it:?}")));
    let (client, mut peer) = open(builder().host(host), Revision::V2025_06_18).await;
    for at in 0..3 {
        peer.notify("notifications/message", json!({ "level": "info", "data": at })).await;
        peer.notify("notifications/tools/list_changed", json!({})).await;
    }
    let serve = async {
        let ping = peer.expect("ping").await;
        peer.reply(&ping, json!({})).await;
    };
    let (pong, ()) = tokio::join!(client.ping().into_future(), serve);
    pong.unwrap();
    assert_eq!(diary.read(), ["0", "Tools", "1", "Tools", "2", "Tools"]);
}

#[tokio::test]
async fn a_question_is_answered_by_the_host_in_both_eras() {
    let host = || Hooks::new().elicit(|_| async { Ok(ElicitResult::accept(json!({ "name": "Ada" }).into())) });
    let form = json!({
        "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    let done = json!({ "content": [{ "type": "text", "text": "Hello" }] });

    let (client, mut peer) = open(builder().host(host()), Revision::V2025_06_18).await;
    let serve = async {
        let call = peer.expect("tools/call").await;
        // Without a mode it is a form.
        peer.send(json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form })).await;
        let answer = peer.next().await.unwrap();
        assert_eq!(answer["id"], "q");
        assert_eq!(answer["result"], json!({ "action": "accept", "content": { "name": "Ada" } }));
        peer.reply(&call, done.clone()).await;
    };
    let (result, ()) = tokio::join!(client.call_tool("greet", ()).into_future(), serve);
    assert_eq!(result.unwrap().content[0].as_text(), Some("Hello"));

    let (client, mut peer) = open(builder().host(host()), Revision::V2026_07_28).await;
    let serve = async {
        let call = peer.expect("tools/call").await;
        let declared = &call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["elicitation"], json!({ "form": {}, "url": {} }));
        let question = json!({ "method": "elicitation/create", "params": form });
        let required = json!({
            "resultType": "input_required",
            "inputRequests": { "who": question },
            "requestState": "s",
        });
        peer.reply(&call, required).await;
        let again = peer.expect("tools/call").await;
        assert_ne!(again["id"], call["id"]);
        assert_eq!(again["params"]["requestState"], "s");
        assert_eq!(again["params"]["inputResponses"]["who"]["content"]["name"], "Ada");
        peer.reply(&again, done.clone()).await;
    };
    let (result, ()) = tokio::join!(client.call_tool("greet", ()).into_future(), serve);
    assert_eq!(result.unwrap().content[0].as_text(), Some("Hello"));
}

#[tokio::test]
async fn questions_that_were_not_declared_or_make_no_sense_are_refused() {
    struct Forms;
    impl trunkline::client::Host for Forms {
        fn capabilities(&self) -> trunkline::model::ClientCapabilities {
            use trunkline::model::{ClientCapabilities, ElicitationCapability, SamplingCapability};
            ClientCapabilities::new()
                .elicitation(ElicitationCapability::FORM)
                .sampling(SamplingCapability::new())
        }
    }
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    let lonely = json!({ "type": "tool_result", "toolUseId": "u", "content": [] });
    let say = |content| json!([{ "role": "user", "content": content }]);
    let text = json!({ "type": "text", "text": "Hi" });
    let url = json!({ "mode": "url", "message": "Go", "url": "https://x.example", "elicitationId": "1" });
    let cases = [
        ("elicitation/create", url, -32602),
        ("elicitation/create", json!({ "mode": "song", "message": "Sing" }), -32602),
        ("sampling/createMessage", json!({ "messages": say(text), "maxTokens": 1, "tools": [tool] }), -32602),
        ("sampling/createMessage", json!({ "messages": say(lonely), "maxTokens": 1 }), -32602),
        ("roots/list", json!({}), -32601),
    ];
    let (_client, mut peer) = open(builder().host(Forms), Revision::V2025_11_25).await;
    for (method, params, code) in cases {
        peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        let answer = peer.next().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
}

#[tokio::test]
async fn roots_are_told_and_must_be_files() {
    let cases = [("file:///home/ada", true), ("https://x.example", false)];
    for (uri, is_told) in cases {
        let host = Hooks::new().roots([Root::new(uri)]);
        let (client, mut peer) = open(builder().host(host), Revision::V2024_11_05).await;
        peer.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" })).await;
        let answer = peer.next().await.unwrap();
        match is_told {
            true => assert_eq!(answer["result"], json!({ "roots": [{ "uri": uri }] })),
            false => assert_eq!(answer["error"]["code"], -32603),
        }
        client.roots_changed().await;
        peer.expect("notifications/roots/list_changed").await;
    }
}

#[tokio::test]
async fn a_listener_hears_changes_in_order_in_both_eras() {
    let filter = SubscriptionFilter::new()
        .tools_list_changed(true)
        .resource_subscriptions(vec!["demo://a".to_owned()]);
    let expected = [
        Change::Resource("demo://a".to_owned()),
        Change::Tools,
        Change::Resource("demo://a/part".to_owned()),
        Change::Resource("demo://a".to_owned()),
    ];

    let (client, mut peer) = open(builder(), Revision::V2025_06_18).await;
    let serve = async {
        let request = peer.expect("resources/subscribe").await;
        assert_eq!(request["params"], json!({ "uri": "demo://a" }));
        peer.reply(&request, json!({})).await;
    };
    let (listener, ()) = tokio::join!(client.listen(filter.clone()), serve);
    let mut listener = listener.unwrap();
    assert_eq!(*listener.honoured(), filter);
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://other" })).await;
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a" })).await;
    peer.notify("notifications/tools/list_changed", json!({})).await;
    peer.notify("notifications/prompts/list_changed", json!({})).await;
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a/part" })).await;
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a" })).await;
    for change in &expected {
        assert_eq!(listener.next().await.as_ref(), Some(change));
    }
    drop(listener);
    let request = peer.expect("resources/unsubscribe").await;
    assert_eq!(request["params"], json!({ "uri": "demo://a" }));

    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let tag = |request: &serde_json::Value, mut params: serde_json::Value| {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
        params
    };
    let serve = async {
        let request = peer.expect("subscriptions/listen").await;
        let wanted = &request["params"]["notifications"];
        assert_eq!(*wanted, json!({ "toolsListChanged": true, "resourceSubscriptions": ["demo://a"] }));
        let params = tag(&request, json!({ "notifications": wanted }));
        peer.notify("notifications/subscriptions/acknowledged", params).await;
        request
    };
    let (listener, request) = tokio::join!(client.listen(filter.clone()), serve);
    let mut listener = listener.unwrap();
    assert_eq!(*listener.honoured(), filter);
    for change in &expected {
        match change {
            Change::Resource(uri) => {
                let params = tag(&request, json!({ "uri": uri }));
                peer.notify("notifications/resources/updated", params).await;
            }
            _ => peer.notify("notifications/tools/list_changed", tag(&request, json!({}))).await,
        }
    }
    for change in &expected {
        assert_eq!(listener.next().await.as_ref(), Some(change));
    }
    drop(listener);
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn a_listener_ends_with_the_connection() {
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let serve = async {
            if revision == Revision::V2026_07_28 {
                let request = peer.expect("subscriptions/listen").await;
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
                let params = json!({ "notifications": {}, "_meta": meta });
                peer.notify("notifications/subscriptions/acknowledged", params).await;
            }
        };
        let (listener, ()) = tokio::join!(client.listen(SubscriptionFilter::new()), serve);
        drop(peer);
        assert_eq!(listener.unwrap().next().await, None, "{revision}");
    }
}

#[tokio::test]
async fn a_subscription_is_made_once_and_ended_once() {
    let diary = Diary::default();
    let heard = diary.clone();
    let host = Hooks::new().on_change(move |it| heard.note(format!("{it:?}")));
    let (client, mut peer) = open(builder().host(host), Revision::V2025_11_25).await;
    let serve = async {
        let request = peer.expect("resources/subscribe").await;
        peer.reply(&request, json!({})).await;
    };
    let (first, ()) = tokio::join!(client.subscribe("demo://a"), serve);
    first.unwrap();
    let filter = SubscriptionFilter::new().resource_subscriptions(vec!["demo://a".to_owned()]);
    let listener = client.listen(filter).await.unwrap();
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a" })).await;
    client.unsubscribe("demo://a").await;
    let serve = async {
        // Only the last one who listened unsubscribes.
        let request = peer.expect("resources/unsubscribe").await;
        peer.reply(&request, json!({})).await;
    };
    tokio::join!(listener.close(), serve);
    assert_eq!(diary.read(), [r#"Resource("demo://a")"#]);
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_followed_to_its_end() {
    let text = json!({ "content": [{ "type": "text", "text": "worked" }] });

    // 2025-11-25: the tool insists on being a task.
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
    let (client, mut peer) = open(builder().host(host), Revision::V2026_07_28).await;
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
        asking["inputRequests"] = json!({ "q1": { "method": "elicitation/create", "params": form } });
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

#[tokio::test]
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
        // The answer is taken in before anything else can be said.
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
