//! The door: stdin and stdout, HTTP, who is let in, and what clients are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use trunkline::client::Command;
use trunkline::model::SubscriptionFilter;
use trunkline::{Change, Client, Revision};

use super::place::{Caller, Gateway, Place, SOON, signal, until, write};
use crate::run::{Run, TRUNKLINE};

/// A client that counts how often it is told that the tools changed.
pub(super) struct Heard {
    tools: Arc<AtomicUsize>,
    pub(super) client: Client,
}

impl Heard {
    pub(super) fn tools(&self) -> usize {
        self.tools.load(Ordering::Acquire)
    }
}

/// Connects such a client.
pub(super) async fn hear(gateway: &Gateway, revision: Revision) -> Heard {
    let url = format!("http://{}/mcp", gateway.address);
    let builder = Client::builder("listener", "1").protocol(revision).cache(false);
    let client = builder.connect_http(url).await.unwrap();
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut listener = client.listen(filter).await.unwrap();
    let tools = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tools);
    tokio::spawn(async move {
        while let Some(change) = listener.next().await {
            if change == Change::Tools {
                count.fetch_add(1, Ordering::AcqRel);
            }
        }
    });
    Heard { tools, client }
}

fn one_tool(name: &str) -> String {
    json!([{ "name": name, "inputSchema": { "type": "object" } }]).to_string()
}

#[tokio::test]
async fn b17_the_door_over_stdio() {
    let place = Place::new("b17-stdio");
    place.write(&json!({ "mcpServers": {
        "a": place.fake("a", &[], json!({ "tags": ["x"] })),
        "b": place.fake("b", &[], json!({ "tags": ["y"] })),
    } }));
    let (catalog, state) = (place.text("catalog.json"), place.text("state"));
    let serve = ["serve", "--stdio", "--config", &catalog, "--state", &state];
    for (more, tool, count) in
        [(&[][..], "a.echo", 28), (&["--server", "a"], "echo", 14), (&["--tag", "X"], "a.echo", 14)]
    {
        let command = Command::new(TRUNKLINE).args(serve).args(more);
        let client = Client::builder("host", "1").connect(command).await.unwrap();
        assert_eq!(client.list_tools().await.unwrap().len(), count, "{more:?}");
        let said = client.call_tool(tool, json!({ "text": "hello" })).await.unwrap();
        assert_eq!(said.content[0].as_text(), Some("hello"));
        client.close().await;
        until("its children to go with it", SOON, async || place.log().running().is_empty()).await;
    }
}

#[test]
fn b17_a_host_that_leaves_during_the_first_start_sees_no_warning() {
    let place = Place::new("b17-leaves");
    let never_answers = json!({ "command": "sleep", "args": ["60"] });
    place.write(&json!({ "mcpServers": { "slow": never_answers } }));
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    std::fs::write(place.path("said"), format!("{hello}\n")).unwrap();
    let (catalog, state) = (place.text("catalog.json"), place.text("state"));
    let mut command = std::process::Command::new(TRUNKLINE);
    command.args(["serve", "--stdio", "--own", "--config", &catalog, "--state", &state]);
    command.stdin(std::fs::File::open(place.path("said")).unwrap());
    let left = Run::of(command);
    left.says(0, &[r#""protocolVersion":"2025-11-25""#]);
    assert_eq!(left.stderr, "");
}

#[tokio::test]
async fn b17_the_door_over_http_lets_in_who_may() {
    let place = Place::new("b17-http");
    let servers = json!({ "a": place.fake("a", &[], json!({})) });
    place.write(&json!({ "mcpServers": servers }));
    let open = place.command().args(["--listen", "0.0.0.0:0"]).output().await.unwrap();
    let said = String::from_utf8(open.stderr).unwrap();
    assert!(!open.status.success(), "{said}");
    assert!(said.contains("`0.0.0.0`") && said.contains("`auth`"), "{said}");

    let token = "a-token-of-some-length";
    let auth = json!({ "tokens": [{ "name": "alice", "token": token }] });
    place.write(&json!({ "mcpServers": servers, "gateway": { "auth": auth } }));
    let gateway = place.open("127.0.0.1:0").await;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    let headers = |extra: &[(&'static str, &'static str)]| {
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend_from_slice(extra);
        all
    };
    let status = async |extra: &[(&'static str, &'static str)]| {
        gateway.http("POST /mcp", &headers(extra), hello).await.0
    };
    const GOOD: (&str, &str) = ("Authorization", "Bearer a-token-of-some-length");
    assert_eq!(status(&[]).await, 401);
    assert_eq!(status(&[("Authorization", "Bearer another-of-some-length")]).await, 401);
    assert_eq!(status(&[GOOD]).await, 200);
    assert_eq!(status(&[GOOD, ("Origin", "https://evil.example")]).await, 403);
    assert_eq!(gateway.http("GET /healthz", &[("Accept", "*/*")], "").await.0, 200);
    let mut client = Caller::open(gateway.address, "/mcp", &[GOOD]).await;
    assert_eq!(client.call("a.echo", json!({ "text": "in" })).await, Ok("in".to_owned()));
}

#[tokio::test]
async fn b17_a_reload_does_not_open_the_door_to_other_machines() {
    let place = Place::new("b17-reload");
    let servers = json!({ "a": place.fake("a", &[], json!({})) });
    let auth = json!({ "tokens": [{ "name": "alice", "token": "a-token-of-some-length" }] });
    place.write(&json!({ "mcpServers": servers, "gateway": { "auth": auth, "plaintext": true } }));
    let gateway = place.open("0.0.0.0:0").await;
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], gateway.address.port()));
    let status = async || {
        let mut line = trunkline_testkit::http::Line::to(here).await;
        let headers = [("Accept", "application/json, text/event-stream")];
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        line.send(trunkline_testkit::http::request(here, "POST /mcp", &headers, ping)).await;
        line.head().await.status
    };
    assert_eq!(status().await, 401);
    // As a catalog of its own it would be good: it says nothing of where to listen.
    for open in [json!({}), json!({ "auth": { "tokens": [] } })] {
        place.write(&json!({ "mcpServers": {}, "gateway": open }));
        let (refused, why) = gateway.admin("POST /v1/reload").await;
        assert!(refused == 422 && why.contains("other machines"), "{refused}: {why}");
        assert_eq!(status().await, 401, "the door stays as it was");
        assert_eq!(gateway.server("a").await["name"], "a", "and so does all else");
    }
}

#[tokio::test]
async fn b17_clients_hear_of_changes_and_outlive_a_restart() {
    let place = Place::new("b17-changes");
    write(&place.path("tools.json"), &one_tool("before"));
    let file = place.text("tools.json");
    let options = ["--tools-file", &file, "--list-changed-on", "SIGUSR1"];
    let mut gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    gateway.settled().await;
    let old = hear(&gateway, Revision::V2025_11_25).await;
    let new = hear(&gateway, Revision::V2026_07_28).await;
    let names = async |client: &Client| -> Vec<String> {
        client.list_tools().await.unwrap().into_iter().map(|it| it.name).collect()
    };
    assert_eq!(names(&old.client).await, ["a.before"]);
    old.client.call_tool("a.before", json!({})).await.unwrap();
    write(&place.path("tools.json"), &one_tool("after"));
    signal("USR1", place.running("a")[0]);
    until("both to hear", SOON, async || old.tools() > 0 && new.tools() > 0).await;
    assert_eq!(names(&old.client).await, ["a.after"]);
    assert_eq!(names(&new.client).await, ["a.after"]);

    // The gateway dies and comes back at the same place; its clients go on.
    let address = gateway.address.to_string();
    gateway.process.kill().await.unwrap();
    until("the children to die with it", SOON, async || place.log().running().is_empty()).await;
    drop(gateway);
    let _gateway = place.open(&address).await;
    for client in [&old.client, &new.client] {
        until("the client to be back", SOON, async || {
            client.call_tool("a.after", json!({})).await.is_ok()
        })
        .await;
    }
}
