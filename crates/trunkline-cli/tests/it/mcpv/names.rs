//! What tools are called, and who sees which.

use serde_json::{Value, json};

use super::place::{Caller, Place, reason, write};

/// A server whose tools have these names.
fn with_tools(place: &Place, name: &str, tools: &[&str], keys: Value) -> Value {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let tools: Vec<_> = tools.iter().map(tool).collect();
    let file = format!("{name}.tools.json");
    write(&place.path(&file), &json!(tools).to_string());
    place.fake(name, &["--tools-file", &place.text(&file)], keys)
}

#[tokio::test]
async fn b15_names_are_prefixed_flat_or_the_servers_own() {
    let place = Place::new("b15");
    let servers = json!({
        "a": with_tools(&place, "a", &["get", "put", "drop"], json!({ "exposeTools": ["get", "p*"] })),
        "b": with_tools(&place, "b", &["get", "only"], json!({ "renameTools": { "only": "sole" } })),
    });
    let gateway = place.serve(servers.clone()).await;
    let mut client = gateway.client().await;
    assert_eq!(client.tools().await, ["a.get", "a.put", "b.get", "b.sole"]);
    let said = client.call("b.sole", json!({ "x": 1 })).await;
    assert_eq!(said, Ok("only {\"x\":1}".to_owned()), "the server knows it by its own name");
    for hidden in ["a.drop", "drop", "b.only"] {
        let refused = client.call(hidden, json!({})).await;
        assert_eq!(reason(&refused), "unknown_tool", "{hidden}");
    }
    let mut raw = gateway.client_at("/mcp/server/a").await;
    assert_eq!(raw.tools().await, ["get", "put"]);
    assert_eq!(raw.call("put", json!({})).await, Ok("put {}".to_owned()));
    assert_eq!(reason(&raw.call("drop", json!({})).await), "unknown_tool");
    assert!(!place.log().of("call").iter().any(|it| it["tool"] == "drop"), "it never got there");
    drop(gateway);

    // Flat: the server behind a name that two have; a number where that is taken, too.
    let servers = json!({
        "a": with_tools(&place, "a", &["get", "put", "drop"], json!({})),
        "b": with_tools(&place, "b", &["get", "only"], json!({})),
        "c": with_tools(&place, "c", &["get_a"], json!({})),
    });
    place.write(&json!({ "mcpServers": servers, "gateway": { "naming": "flat" } }));
    let gateway = place.open("127.0.0.1:0").await;
    let mut client = gateway.client().await;
    let mut names = client.tools().await;
    names.sort();
    assert_eq!(names, ["drop", "get_a_2", "get_a_c", "get_b", "only", "put"]);
    assert_eq!(client.call("get_a_2", json!({})).await, Ok("get {}".to_owned()));
    assert_eq!(client.call("get_a_c", json!({})).await, Ok("get_a {}".to_owned()));
    let calls = place.log().of("call");
    let at: Vec<_> = calls[calls.len() - 2..].iter().map(|it| &it["name"]).collect();
    assert_eq!(at, ["a", "c"]);
}

#[tokio::test]
async fn b16_servers_are_chosen_by_path_or_header() {
    let place = Place::new("b16");
    let tool =
        |name: &str, tags: &[&str]| with_tools(&place, name, &["t"], json!({ "tags": tags }));
    place.write(&json!({
        "mcpServers": { "x": tool("x", &["A"]), "y": tool("y", &["b"]), "z": tool("z", &["c"]), "free": tool("free", &[]) },
        "gateway": { "requireSelector": true },
    }));
    let gateway = place.open("127.0.0.1:0").await;
    let tools = async |path: &str, headers: &[(&str, &str)]| {
        Caller::open(gateway.address, path, headers).await.tools().await
    };
    assert_eq!(tools("/mcp/server/x", &[]).await, ["t"]);
    assert_eq!(tools("/mcp", &[("X-Mcp-Server", "x")]).await, ["t"]);
    let both = ["free.t", "x.t", "y.t"];
    assert_eq!(tools("/mcp/tags/a,B", &[]).await, both, "the untagged one is everybody's");
    assert_eq!(tools("/mcp", &[("X-Mcp-Tags", "b, a")]).await, both);
    assert_eq!(tools("/mcp/tags/a", &[("X-Mcp-Tags", "a")]).await, ["free.t", "x.t"]);

    let json =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let status = async |path: &str, more: &[(&str, &str)]| {
        let headers = [&json[..], more].concat();
        gateway
            .http(&format!("POST {path}"), &headers, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
            .await
            .0
    };
    assert_eq!(status("/mcp", &[]).await, 400, "none");
    assert_eq!(status("/mcp/server/x", &[("X-Mcp-Server", "y")]).await, 400, "two that differ");
    assert_eq!(status("/mcp/server/x", &[("X-Mcp-Tags", "a")]).await, 400);
    assert_eq!(status("/mcp", &[("X-Mcp-Server", "x"), ("X-Mcp-Tags", "a")]).await, 400);
    assert_eq!(status("/mcp/server/nobody", &[]).await, 404);

    let mut client = gateway.client_at("/mcp/tags/a").await;
    let hidden = client.call("y.t", json!({})).await;
    let unknown = client.call("nobody.t", json!({})).await;
    assert_eq!((reason(&hidden), reason(&unknown)), ("unknown_tool", "unknown_tool"));
    assert_eq!(client.call("x.t", json!({})).await, Ok("t {}".to_owned()));
}
