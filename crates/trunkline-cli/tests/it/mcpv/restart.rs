//! Sessions over HTTP outlive the process that opened them, and nobody else can use them.

use serde_json::json;
use trunkline::{Client, Revision};

use super::place::{Caller, Gateway, Place, SOON, lasting_address, signal, until};

/// Kills a gateway, and starts another at the same place.
async fn again(place: &Place, gateway: Gateway) -> Gateway {
    let (pid, address) = (gateway.pid(), gateway.address);
    signal("KILL", pid);
    drop(gateway);
    until("it to be gone", SOON, async || !std::path::Path::new(&format!("/proc/{pid}")).exists())
        .await;
    place.open(&address.to_string()).await
}

#[tokio::test]
async fn a_client_goes_on_when_the_gateway_was_killed_and_started_again() {
    let place = Place::new("restart-on");
    let mut gateway = place.serve(json!({ "a": place.fake("a", &[], json!({})) })).await;
    let revisions = [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
    let mut clients = Vec::new();
    for revision in revisions {
        clients.push(Caller::open_as(revision, gateway.address, "/mcp", &[]).await);
    }
    let ours = Client::builder("ours", "1").protocol(Revision::V2025_11_25);
    let ours = ours.on_ask(|it| async move { it.accept(json!({ "answer": "blue" })) });
    let ours = ours.connect_http(format!("http://{}/mcp", gateway.address)).await.unwrap();
    for _ in 0..2 {
        gateway = again(&place, gateway).await;
        for client in &mut clients {
            let said = client.call("a.echo", json!({ "text": "still here" })).await;
            assert_eq!(said.as_deref(), Ok("still here"));
        }
        // What it said that it can be asked is known again.
        let said = ours.call_tool("a.ask", json!({})).await.unwrap();
        let expected = r#"{"action":"accept","content":{"answer":"blue"}}"#;
        assert_eq!(said.content[0].as_text(), Some(expected));
    }
    // Requests that come back at the same moment find one session.
    gateway = again(&place, gateway).await;
    let client = &mut clients[0];
    let (one, other) = (client.spawn("a.pid", json!({})), client.spawn("a.pid", json!({})));
    assert_eq!(one.await.unwrap(), other.await.unwrap());
    let told = gateway.told("GET /v1/status").await;
    assert_eq!(told["clients"], 1, "{told}");
}

#[tokio::test]
async fn a_session_is_of_its_principal_and_its_key_and_ends_when_it_is_ended() {
    let place = Place::new("restart-whose");
    let servers = json!({ "a": place.fake("a", &[], json!({})) });
    let tokens = json!([{ "name": "ann", "token": ANN }, { "name": "bob", "token": BOB }]);
    place.write(&json!({ "mcpServers": servers, "gateway": { "auth": { "tokens": tokens } } }));
    let gateway = place.open(&lasting_address()).await;
    let (ann, bob) = (format!("Bearer {ANN}"), format!("Bearer {BOB}"));
    let (ann, bob) = ([("Authorization", &*ann)], [("Authorization", &*bob)]);
    let mut hers = Caller::open(gateway.address, "/mcp", &ann).await;
    let gateway = again(&place, gateway).await;
    let mut stolen = Caller::open(gateway.address, "/mcp", &bob).await;
    stolen.take_session_of(&hers);
    let refused = stolen.ask("tools/list", json!({})).await;
    assert_eq!(refused.head.status, 404, "{refused:?}");
    assert_eq!(hers.ask("tools/list", json!({})).await.head.status, 200);
    // Whoever ends a session does not get it back by naming it.
    let ended = hers.clone();
    hers.leave().await;
    let mut ended = ended;
    assert_eq!(ended.ask("tools/list", json!({})).await.head.status, 404);
    // Nor does a session last beyond the key.
    let mut last = Caller::open(gateway.address, "/mcp", &ann).await;
    std::fs::remove_file(place.path("state/session.key")).unwrap();
    let _gateway = again(&place, gateway).await;
    assert_eq!(last.ask("tools/list", json!({})).await.head.status, 404);
}

const ANN: &str = "the-token-of-ann-is-long";
const BOB: &str = "the-token-of-bob-is-long";
