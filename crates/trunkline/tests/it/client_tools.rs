//! The client and tools whose arguments travel in headers: what it lists, and how it recovers from
//! wrong headers.

use serde_json::{Value, json};
use trunkline::Revision;
use trunkline::client::CallError;

use crate::client_peer::{ERAS, Peer, builder, open};
use crate::server::soon;

fn tool(name: &str, property: Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": { "a": property } } })
}

fn annotated(kind: &str, header: &str) -> Value {
    json!({ "type": kind, "x-mcp-header": header })
}

async fn serve_tools(peer: &mut Peer, tools: &[Value]) {
    let request = peer.expect("tools/list").await;
    peer.reply(&request, json!({ "tools": tools })).await;
}

#[tokio::test]
async fn tools_that_must_not_be_used_are_left_out() {
    let tools = [
        tool("fine", annotated("string", "A")),
        tool("empty", annotated("string", "")),
        tool("fraction", annotated("number", "A")),
        tool("plain", json!({ "type": "number" })),
        tool("hidden", json!({ "anyOf": [annotated("string", "A")] })),
    ];
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let (listed, ()) =
            tokio::join!(client.list_tools().into_future(), serve_tools(&mut peer, &tools));
        let listed: Vec<_> = listed.unwrap().into_iter().map(|it| it.name).collect();
        let rejected = client.rejected_tools();
        let names: Vec<_> = rejected.iter().map(|it| it.name.as_str()).collect();
        match revision {
            Revision::V2026_07_28 => {
                assert_eq!(listed, ["fine", "plain"]);
                assert_eq!(names, ["empty", "fraction", "hidden"]);
                assert!(rejected[1].why.contains("neither `string`"), "{:?}", rejected[1]);
            }
            // Before, the annotation has no meaning.
            _ => {
                assert_eq!(listed.len(), 5);
                assert!(names.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn a_tool_that_was_mended_is_listed_again() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let broken = [tool("one", annotated("string", "")), tool("two", annotated("string", ""))];
    let (page, ()) =
        tokio::join!(client.list_tools_page(None).into_future(), serve_tools(&mut peer, &broken));
    assert!(page.unwrap().tools.is_empty());
    let mended = [tool("one", annotated("string", "One"))];
    let (tools, ()) =
        tokio::join!(client.list_tools().into_future(), serve_tools(&mut peer, &mended));
    assert_eq!(tools.unwrap().len(), 1);
    let names: Vec<_> = client.rejected_tools().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["two"]);
}

#[tokio::test]
async fn a_call_with_wrong_headers_is_made_again_after_a_look_at_the_tools() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let serve = async {
        let first = peer.refuse("tools/call", -32020).await;
        let list = peer.expect("tools/list").await;
        assert_eq!(list["params"].get("cursor"), None);
        peer.reply(&list, json!({ "tools": [], "nextCursor": "more" })).await;
        let list = peer.expect("tools/list").await;
        assert_eq!(list["params"]["cursor"], "more");
        peer.reply(&list, json!({ "tools": [tool("t", annotated("string", "A"))] })).await;
        let second = peer.expect("tools/call").await;
        assert_eq!(second["params"], first["params"]);
        assert_ne!(second["id"], first["id"]);
        peer.reply(&second, json!({ "content": [{ "type": "text", "text": "done" }] })).await;
    };
    let call = client.call_tool("t", json!({ "a": "x" }));
    let (result, ()) = tokio::join!(soon(call.into_future()), serve);
    assert_eq!(result.unwrap().content[0].as_text(), Some("done"));
}

#[tokio::test]
async fn a_call_with_wrong_headers_is_made_again_once() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let serve = async {
        for _ in 0..2 {
            peer.refuse("tools/call", -32020).await;
            let list = peer.next().await.unwrap();
            if list["method"] != "tools/list" {
                return list;
            }
            peer.reply(&list, json!({ "tools": [] })).await;
        }
        panic!("it did not stop");
    };
    let calls = async {
        let result = client.call_tool("t", json!({})).await;
        // The server sees this next, not a third attempt.
        tokio::spawn(client.list_prompts().into_future());
        result
    };
    let (result, next) = soon(async { tokio::join!(calls, serve) }).await;
    assert!(matches!(result, Err(CallError::Peer(error)) if error.code == -32020));
    assert_eq!(next["method"], "prompts/list");
}

#[tokio::test]
async fn a_look_at_the_tools_that_fails_leaves_the_first_error() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let serve = async {
        peer.refuse("tools/call", -32020).await;
        peer.refuse("tools/list", -32603).await;
    };
    let call = client.call_tool("t", json!({}));
    let (result, ()) = tokio::join!(soon(call.into_future()), serve);
    assert!(matches!(result, Err(CallError::Peer(error)) if error.code == -32020));
}

#[tokio::test]
async fn only_tools_and_only_the_newest_revision_have_such_headers() {
    let (client, mut peer) = open(builder(), Revision::V2025_11_25).await;
    let serve = peer.refuse("tools/call", -32020);
    let (result, _) = tokio::join!(soon(client.call_tool("t", ()).into_future()), serve);
    assert!(matches!(result, Err(CallError::Peer(_))));

    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let serve = async {
        peer.refuse("resources/read", -32020).await;
    };
    let (result, ()) = tokio::join!(soon(client.read_resource("x").into_future()), serve);
    assert!(matches!(result, Err(CallError::Peer(_))));
}

#[tokio::test]
async fn a_result_that_breaks_the_promise_of_its_schema_is_refused() {
    let schema = json!({
        "type": "object",
        "properties": { "total": { "type": "number", "minimum": 1 } },
        "required": ["total"],
    });
    let tool =
        json!({ "name": "book", "inputSchema": { "type": "object" }, "outputSchema": schema });
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let book = async |peer: &mut Peer, total: i32| {
            let serve = async {
                let request = peer.expect("tools/call").await;
                let result = json!({ "content": [], "structuredContent": { "total": total } });
                peer.reply(&request, result).await;
            };
            let call = client.call::<serde_json::Value>("book", ()).into_future();
            tokio::join!(call, serve).0
        };
        // No list has been fetched, so there is no schema to check against.
        assert_eq!(book(&mut peer, 0).await, Ok(json!({ "total": 0 })));
        let serve = async {
            let request = peer.expect("tools/list").await;
            peer.reply(&request, json!({ "tools": [tool] })).await;
        };
        tokio::join!(async { client.list_tools().await.unwrap() }, serve);
        assert_eq!(book(&mut peer, 7).await, Ok(json!({ "total": 7 })));
        let error = book(&mut peer, 0).await.unwrap_err();
        assert!(matches!(&error, CallError::Schema { tool, .. } if tool == "book"), "{error}");
        assert!(error.to_string().contains("/total"), "{error}");
    }
}
