//! The `mcp/…` dialect: its five methods against the demo, with `Content-Length` headers.

use serde_json::{Value, json};
use trunkline::Revision;
use trunkline::client::Framing;
use trunkline_testkit::peer::Peer;

use crate::stdio::{Session, Way};

async fn session() -> Session {
    Session::new(Way::Process(Framing::ContentLength), Revision::LATEST).await
}

/// Plays a script and sees that the server ends well.
async fn play(script: impl AsyncFnOnce(&mut Peer)) {
    let mut session = session().await;
    script(&mut session.peer).await;
    session.end().await;
}

/// Sends one request, its parameters as they are, and returns the whole response.
async fn ask(peer: &mut Peer, id: Value, method: &str, params: Option<Value>) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if let Some(params) = params {
        request["params"] = params;
    }
    peer.remember(&request);
    peer.send_text(&request.to_string()).await;
    let response = peer.next().await;
    assert_eq!(response["jsonrpc"], "2.0");
    assert_eq!(response.get("id"), Some(&id), "the id comes back as it was: {response}");
    let has = |name: &str| response.get(name).is_some();
    assert!(has("result") ^ has("error"), "one of the two: {response}");
    response
}

async fn result(peer: &mut Peer, method: &str, params: Option<Value>) -> Value {
    let response = ask(peer, json!(1), method, params).await;
    response.get("result").unwrap_or_else(|| panic!("{method} failed: {response}")).clone()
}

async fn error(peer: &mut Peer, method: &str, params: Option<Value>) -> Value {
    let response = ask(peer, json!("one"), method, params).await;
    response.get("error").unwrap_or_else(|| panic!("{method} succeeded: {response}")).clone()
}

#[tokio::test]
async fn the_server_introduces_itself_whatever_the_client_says() {
    play(async |peer| {
        for params in [
            None,
            Some(Value::Null),
            Some(json!({})),
            Some(json!({ "transports": ["stdio"], "auth": { "token": null } })),
            Some(json!([{ "transports": ["stdio"] }])),
        ] {
            let introduced = result(peer, "mcp/initialize", params).await;
            assert_eq!(introduced["name"], "trunkline-demo");
            assert_eq!(introduced["version"], env!("CARGO_PKG_VERSION"));
            let methods = [
                "mcp/initialize",
                "mcp/listTools",
                "mcp/listResources",
                "mcp/tool/execute",
                "mcp/resource/read",
            ];
            assert_eq!(introduced["methods"], json!(methods));
            assert!(introduced["capabilities"]["tools"].is_object());
        }
    })
    .await;
}

#[tokio::test]
async fn lists_are_bare_arrays() {
    play(async |peer| {
        for params in [None, Some(Value::Null), Some(json!({})), Some(json!([]))] {
            let tools = result(peer, "mcp/listTools", params.clone()).await;
            let sum = tools.as_array().unwrap().iter().find(|it| it["toolId"] == "sum").unwrap();
            assert_eq!(sum["description"], "Adds two numbers.");
            assert_eq!(sum["inputSchema"]["required"], json!(["a", "b"]));

            let resources = result(peer, "mcp/listResources", params).await;
            let found: Vec<_> =
                resources.as_array().unwrap().iter().map(|it| &it["resourceId"]).collect();
            assert_eq!(found, ["demo://readme", "demo://logo", "demo://greeting/{name}"]);
            let template = &resources[2]["querySchema"];
            assert_eq!(template["required"], json!(["name"]));
            assert_eq!(template["properties"]["name"]["type"], "string");
        }
        let too_many = error(peer, "mcp/listTools", Some(json!([1]))).await;
        assert_eq!(too_many["code"], -32602);
    })
    .await;
}

#[tokio::test]
async fn a_tool_is_executed_with_named_and_with_positional_parameters() {
    play(async |peer| {
        for params in [
            json!({ "toolId": "sum", "inputs": { "a": 2, "b": 3 } }),
            json!(["sum", { "a": 2, "b": 3 }]),
            json!({ "name": "sum", "arguments": { "a": 2, "b": 3 } }),
        ] {
            let sum = result(peer, "mcp/tool/execute", Some(params)).await;
            assert_eq!(sum, json!({ "sum": 5 }), "the structured value itself");
        }
        let echoed =
            result(peer, "mcp/tool/execute", Some(json!(["echo", { "text": "你好" }]))).await;
        assert_eq!(echoed, json!({ "content": [{ "type": "text", "text": "你好" }] }));
        let kinds = result(peer, "mcp/tool/execute", Some(json!(["kinds"]))).await;
        assert_eq!(kinds["content"].as_array().unwrap().len(), 5);

        for wrong in [
            None,
            Some(Value::Null),
            Some(json!({})),
            Some(json!({ "toolId": 7 })),
            Some(json!({ "toolId": "sum", "inputs": [2, 3] })),
            Some(json!(["sum", { "a": 1, "b": 2 }, "more"])),
            Some(json!(["nobody", {}])),
        ] {
            let refused = error(peer, "mcp/tool/execute", wrong.clone()).await;
            assert_eq!(refused["code"], -32602, "{wrong:?}: {refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_tool_that_fails_is_a_json_rpc_error() {
    play(async |peer| {
        let failed =
            error(peer, "mcp/tool/execute", Some(json!(["fail", { "message": "No bread." }])))
                .await;
        let code = failed["code"].as_i64().unwrap();
        assert!(!(-32768..=-32000).contains(&code), "{code} is reserved");
        assert_eq!(failed["message"], "No bread.");
        assert_eq!(failed["data"]["isError"], true);
        assert_eq!(failed["data"]["content"][0]["text"], "No bread.");

        let misfit = error(peer, "mcp/tool/execute", Some(json!(["sum", { "a": "two" }]))).await;
        assert!(misfit["message"].as_str().unwrap().contains("do not fit"), "{misfit}");
        let boom = error(peer, "mcp/tool/execute", Some(json!(["boom"]))).await;
        let told = boom["message"].as_str().unwrap();
        assert!(told.starts_with("`boom` failed unexpectedly."), "{boom}");
        // The dialect has no questions, so a tool that asks cannot go on.
        let asks = error(peer, "mcp/tool/execute", Some(json!(["greet"]))).await;
        assert_eq!(asks["code"], -32021, "{asks}");
    })
    .await;
}

#[tokio::test]
async fn a_resource_is_read_and_a_template_filled_in() {
    play(async |peer| {
        let readme = json!({ "resourceId": "demo://readme" });
        for params in [readme, json!(["demo://readme"]), json!(["demo://readme", null])] {
            let read = result(peer, "mcp/resource/read", Some(params)).await;
            assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
        }
        for params in [
            json!({ "resourceId": "demo://greeting/{name}", "query": { "name": "Ada Lovelace" } }),
            json!(["demo://greeting/{name}", { "name": "Ada Lovelace" }]),
            json!({ "resourceId": "demo://greeting/Ada%20Lovelace" }),
        ] {
            let read = result(peer, "mcp/resource/read", Some(params)).await;
            assert_eq!(read["contents"][0]["text"], "Hello, Ada Lovelace!");
        }
        for wrong in [json!({ "resourceId": "demo://nowhere" }), json!({}), json!(["a", {}, 3])] {
            let refused = error(peer, "mcp/resource/read", Some(wrong.clone())).await;
            assert_eq!(refused["code"], -32602, "{wrong}: {refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_id_may_be_a_text_a_number_or_null() {
    play(async |peer| {
        let sum = json!(["sum", { "a": 1, "b": 1 }]);
        for id in [
            json!("a"),
            json!(""),
            json!(0),
            json!(-7),
            json!(9_007_199_254_740_993_i64),
            Value::Null,
        ] {
            let response = ask(peer, id, "mcp/tool/execute", Some(sum.clone())).await;
            assert_eq!(response["result"], json!({ "sum": 2 }));
        }
        // One request without a name may be open at a time.
        let slow = json!({
            "jsonrpc": "2.0", "id": null, "method": "mcp/tool/execute",
            "params": ["sleep", { "ms": 200 }],
        });
        peer.send_text(&slow.to_string()).await;
        let refused = ask(peer, Value::Null, "mcp/listTools", None).await;
        assert_eq!(refused["error"]["code"], -32600);
        let slept = peer.next().await;
        assert_eq!(slept["result"]["content"][0]["text"], "slept 200 ms");
        let listed = ask(peer, Value::Null, "mcp/listTools", None).await;
        assert!(listed["result"].is_array());
    })
    .await;
}

#[tokio::test]
async fn a_method_that_the_dialect_does_not_have_is_not_found() {
    play(async |peer| {
        for method in ["mcp/listPrompts", "mcp/", "mcp/tool/execute/", "mcp/Initialize"] {
            assert_eq!(error(peer, method, Some(json!({}))).await["code"], -32601, "{method}");
        }
    })
    .await;
}

/// The example of the text that defined the dialect announces two bytes more than follow; with the
/// right number it is a proper message.
#[tokio::test]
async fn the_dialects_own_example_is_understood_once_its_length_is_right() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"mcp/tool/execute","params":{"toolId":"filesystem/readFile","inputs":{"path":"/path/to/file.txt"}}}"#;
    assert_eq!(body.len(), 132);
    play(async |peer| {
        peer.remember(&serde_json::from_str(body).unwrap());
        peer.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
        let response = peer.next().await;
        assert_eq!(response["id"], 1);
        assert_eq!(response["error"]["code"], -32602, "the demo has no such tool: {response}");
        assert!(response["error"]["message"].as_str().unwrap().contains("filesystem/readFile"));
    })
    .await;
}

#[tokio::test]
async fn the_same_process_speaks_mcp_proper_too() {
    for revision in Revision::ALL {
        for framing in [Framing::ContentLength, Framing::Newline] {
            let mut session = Session::new(Way::Process(framing), revision).await;
            let peer = &mut session.peer;
            let before =
                result(peer, "mcp/tool/execute", Some(json!(["sum", { "a": 1, "b": 2 }]))).await;
            assert_eq!(before, json!({ "sum": 3 }));
            peer.open().await;
            let sum = peer.tool("sum", json!({ "a": 1, "b": 2 })).await;
            assert_eq!(sum["content"][0]["text"], r#"{"sum":3}"#);
            let after = ask(peer, Value::Null, "mcp/listTools", Some(Value::Null)).await;
            assert!(after["result"].is_array());
            session.end().await;
        }
    }
}
