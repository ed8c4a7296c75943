//! The client against a scripted server that asks questions and sends notifications.

use serde_json::json;
use trunkline::Revision;
use trunkline::client::Hooks;
use trunkline::model::{ElicitResult, LogLevel, Root};

use crate::client_peer::{Diary, builder, discovered, open};

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
    let (client, mut peer) = open(builder().responder(host), Revision::V2025_06_18).await;
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
    let host = || {
        Hooks::new().elicit(|_| async { Ok(ElicitResult::accept(json!({ "name": "Ada" }).into())) })
    };
    let form = json!({
        "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
    });
    let done = json!({ "content": [{ "type": "text", "text": "Hello" }] });

    let (client, mut peer) = open(builder().responder(host()), Revision::V2025_06_18).await;
    let serve = async {
        let call = peer.expect("tools/call").await;
        // Without a mode it is a form.
        peer.send(
            json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form }),
        )
        .await;
        let answer = peer.next().await.unwrap();
        assert_eq!(answer["id"], "q");
        assert_eq!(answer["result"], json!({ "action": "accept", "content": { "name": "Ada" } }));
        peer.reply(&call, done.clone()).await;
    };
    let (result, ()) = tokio::join!(client.call_tool("greet", ()).into_future(), serve);
    assert_eq!(result.unwrap().content[0].as_text(), Some("Hello"));

    let (client, mut peer) = open(builder().responder(host()), Revision::V2026_07_28).await;
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
    impl trunkline::client::Responder for Forms {
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
    let url =
        json!({ "mode": "url", "message": "Go", "url": "https://x.example", "elicitationId": "1" });
    let cases = [
        ("elicitation/create", url, -32602),
        ("elicitation/create", json!({ "mode": "song", "message": "Sing" }), -32602),
        (
            "sampling/createMessage",
            json!({ "messages": say(text), "maxTokens": 1, "tools": [tool] }),
            -32602,
        ),
        ("sampling/createMessage", json!({ "messages": say(lonely), "maxTokens": 1 }), -32602),
        ("roots/list", json!({}), -32601),
    ];
    let (_client, mut peer) = open(builder().responder(Forms), Revision::V2025_11_25).await;
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
        let (client, mut peer) = open(builder().responder(host), Revision::V2024_11_05).await;
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
