//! Scopes of tools, prompts and resources: one challenge names all that a caller lacks.

use serde_json::{Value, json};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{Args, Era, Revision, Server, prompt, resource, template, tool};

use super::issuer::{Issuer, METADATA, Person, send};

#[derive(Deserialize, JsonSchema)]
struct File {
    name: String,
}

fn server() -> Server {
    let text = async |Args(it): Args<File>| it.name;
    Server::builder("files", "1")
        .tool(tool("look", async || "Fine."))
        .tool(tool("write", async || "Done.").scopes(["files:write"]))
        .tool(tool("move", async || "Done.").scopes(["files:read", "files:write", "moves"]))
        .tool(tool("hidden", async || "?").scopes(["secret"]).visible(|_| false))
        .prompt(prompt("plan", async || "Plan.".to_owned()).scopes(["plans"]))
        .resource(resource("files://all", "all", async || "a.txt").scopes(["files:read"]))
        .resource(
            template("files://{name}/text", "text", text)
                .scopes(["files:read"])
                .complete("name", |_, _| vec!["a".to_owned()]),
        )
        .build()
}

/// A request, and the scopes that it needs besides `mcp`.
fn asked(era: Era) -> Vec<(&'static str, Value, &'static str)> {
    let mut all = vec![
        ("tools/call", json!({ "name": "write" }), "files:write"),
        ("tools/call", json!({ "name": "move" }), "files:read files:write moves"),
        ("prompts/get", json!({ "name": "plan" }), "plans"),
        ("resources/read", json!({ "uri": "files://all" }), "files:read"),
        ("resources/read", json!({ "uri": "files://a/text" }), "files:read"),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "files://{name}/text" },
                "argument": { "name": "name", "value": "" },
            }),
            "files:read",
        ),
    ];
    all.push(match era {
        Era::Stateful => ("resources/subscribe", json!({ "uri": "files://all" }), "files:read"),
        Era::Stateless => {
            let wanted = json!({ "resourceSubscriptions": ["files://b/text", "files://all"] });
            ("subscriptions/listen", json!({ "notifications": wanted }), "files:read")
        }
    });
    all
}

/// Challenge and message for callers that have only `mcp`.
fn lacking(scopes: &str) -> (String, String) {
    let noun = if scopes.contains(' ') { "scopes" } else { "scope" };
    let why = format!("The token lacks the {noun} `{scopes}`.");
    let challenge = format!(
        r#"Bearer error="insufficient_scope", scope="mcp {scopes}", {METADATA}, error_description="{why}""#
    );
    (challenge, why)
}

#[tokio::test]
async fn who_lacks_scopes_is_told_all_of_them_in_one_challenge() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in Revision::ALL {
        let mut alice = Person::open(address, revision, issuer.token("alice", "mcp")).await;
        for (method, params, scopes) in asked(revision.era()) {
            let (head, answer) = alice.ask(method, params).await;
            let (challenge, why) = lacking(scopes);
            let at = format!("{method} in {revision}");
            let verdict = (head.status, head.get("www-authenticate"));
            assert_eq!(verdict, (403, Some(&*challenge)), "{at}");
            let error = json!({ "code": -32600, "message": why });
            let id = alice.guest.last_id;
            assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": id, "error": error }), "{at}");
        }
        alice.expect("tools/call", json!({ "name": "look" })).await;
        let tools = alice.expect("tools/list", json!({})).await;
        assert_eq!(tools["tools"].as_array().unwrap().len(), 3, "they stay listed");
    }
}

#[tokio::test]
async fn who_was_granted_them_or_what_implies_them_may_call() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in Revision::ALL {
        for scope in ["mcp plans moves files", "moves files:write files:read plans mcp"] {
            let mut alice = Person::open(address, revision, issuer.token("alice", scope)).await;
            for (method, params, _) in asked(revision.era()) {
                if method == "subscriptions/listen" {
                    let listen = alice.guest.prepare(method, params);
                    assert_eq!(alice.post(&listen).await.1.status, 200, "{revision}: {scope}");
                    continue;
                }
                alice.expect(method, params).await;
            }
        }
    }
}

#[tokio::test]
async fn a_hidden_tool_takes_no_scopes_since_there_is_none() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in Revision::ALL {
        let mut alice = Person::open(address, revision, issuer.token("alice", "mcp")).await;
        let (head, answer) = alice.ask("tools/call", json!({ "name": "hidden" })).await;
        assert_eq!(head.get("www-authenticate"), None);
        assert_eq!(answer["error"]["message"], "There is no tool `hidden`.", "{revision}");
    }
}

#[tokio::test]
async fn an_array_is_refused_if_any_part_is_with_the_scopes_of_all() {
    let (issuer, address) = Issuer::of(&server()).await;
    let token = issuer.token("alice", "mcp");
    let mut alice = Person::open(address, Revision::V2025_03_26, token).await;
    let calls = ["look", "write", "move"]
        .map(|name| alice.guest.prepare("tools/call", json!({ "name": name })));
    let headers = alice.signed(alice.guest.headers(&calls[0]));
    let body = json!(calls).to_string();
    let (mut line, head) = send(address, "POST /mcp", &headers, &body).await;
    let (challenge, why) = lacking("files:write files:read moves");
    assert_eq!((head.status, head.get("www-authenticate")), (403, Some(&*challenge)));
    let error = json!({ "code": -32600, "message": why });
    assert_eq!(line.json().await, json!({ "jsonrpc": "2.0", "error": error }));
}

#[tokio::test]
async fn the_dialect_is_no_way_around() {
    let (issuer, address) = Issuer::of(&server()).await;
    let bearer = format!("Bearer {}", issuer.token("alice", "mcp"));
    let headers = [("Content-Type", "application/json"), ("Authorization", &bearer)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (method, params, scopes) in [
        ("mcp/tool/execute", json!({ "toolId": "write", "inputs": {} }), "files:write"),
        ("mcp/tool/execute", json!(["write", {}]), "files:write"),
        ("mcp/resource/read", json!(["files://all"]), "files:read"),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let (mut line, head) = send(address, "POST /mcp", &headers, &body.to_string()).await;
        let (challenge, why) = lacking(scopes);
        assert_eq!((head.status, head.get("www-authenticate")), (403, Some(&*challenge)), "{body}");
        assert_eq!(line.json().await["error"]["message"], why);
    }
}

#[tokio::test]
async fn the_two_paths_of_2024_11_05_are_no_way_around() {
    let (issuer, address) = Issuer::of(&server()).await;
    let mut old = super::streams::OldLine::open(address, &issuer.token("alice", "mcp")).await;
    for (method, params, scopes) in asked(Era::Stateful) {
        let (head, answer) = old.post(method, params).await;
        let (challenge, why) = lacking(scopes);
        let verdict = (head.status, head.get("www-authenticate"));
        assert_eq!(verdict, (403, Some(&*challenge)), "{method}");
        assert_eq!(answer.unwrap()["error"]["message"], why);
    }
    let (head, answer) = old.post("tools/call", json!({ "name": "look" })).await;
    assert_eq!((head.status, answer), (202, None));
    assert_eq!(old.next().await["result"]["content"][0]["text"], "Fine.");
}
