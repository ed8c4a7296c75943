//! The client against a scripted server: the handshake and plain calls, as sent on the wire.

use std::time::Duration;

use serde_json::json;
use trunkline::client::{CallError, ConnectCause, OpenError};
use trunkline::model::{CompleteParams, Reference};
use trunkline::{Limits, Revision, Revisions};

use crate::client_peer::{Diary, ERAS, Peer, builder, discovered, open, pair};

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
    let late = client.ping().await.unwrap_err();
    assert!(matches!(late, CallError::Unreachable(_)), "it was not even made: {late:?}");
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
    let params = CompleteParams::new(Reference::prompt("review"), "language", "r").context(
        [("code".to_owned(), "x".to_owned())]
            .into_iter()
            .collect::<std::collections::BTreeMap<_, _>>(),
    );
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

#[cfg(feature = "http")]
#[test]
fn a_builder_does_not_show_what_is_in_its_headers() {
    let builder = trunkline::Client::builder("cli", "1").header("authorization", "Bearer hush");
    let shown = format!("{builder:?}");
    assert!(shown.contains("authorization"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[cfg(feature = "http")]
#[tokio::test]
async fn what_is_secret_in_a_url_is_not_shown() {
    let builder = trunkline::Client::builder("cli", "1");
    let failed = builder.connect_http("http://me:secret@127.0.0.1:1/mcp?key=hush").await;
    let shown = failed.expect_err("nobody is there").to_string();
    assert!(shown.contains("http://127.0.0.1:1/mcp"), "{shown}");
    assert!(!shown.contains("secret") && !shown.contains("hush"), "{shown}");
}
