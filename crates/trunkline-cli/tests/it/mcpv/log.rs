//! What a gateway says of itself on stderr.

use serde_json::{Value, json};

use super::place::{Caller, Gateway, Place, SOON, signal, until};

const TOKEN: &str = "a-token-of-ada-that-is-long";

fn lines(gateway: &Gateway) -> Vec<Value> {
    gateway.said().lines().filter_map(|it| serde_json::from_str(it).ok()).collect()
}

/// Waits for a line that has all of this.
async fn line(gateway: &Gateway, what: Value) -> Value {
    let has = |line: &Value| what.as_object().unwrap().iter().all(|(name, it)| line[name] == *it);
    until(&format!("a line with {what}"), SOON, async || lines(gateway).iter().any(has)).await;
    lines(gateway).into_iter().find(has).expect("it was there")
}

#[tokio::test]
async fn each_line_says_which_server_instance_principal_and_trace() {
    let place = Place::new("log");
    place.write(&json!({
        "mcpServers": {
            "a": place.fake("a", &[], json!({})),
            "gone": { "command": place.text("no-such-program") },
        },
        "gateway": { "auth": { "tokens": [{ "name": "ada", "token": TOKEN }] } },
    }));
    let mut command = place.command();
    command.args(["--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.args(["--log", "info,trunkline::call=debug"]);
    let gateway = Gateway::start(&mut command, place.path("state/admin.sock")).await;
    let started =
        line(&gateway, json!({ "message": "started", "server": "a", "cause": "List" })).await;
    assert_eq!(
        (&started["level"], started["instance"].is_u64()),
        (&json!("INFO"), true),
        "{started}"
    );
    line(&gateway, json!({ "level": "WARN", "server": "gone", "reason": "not_found" })).await;

    let bearer = format!("Bearer {TOKEN}");
    let mut ada = Caller::open(gateway.address, "/mcp", &[("authorization", &bearer)]).await;
    ada.call("a.echo", json!({ "text": "x" })).await.unwrap();
    let done = line(&gateway, json!({ "target": "trunkline::call", "message": "done" })).await;
    assert_eq!((&done["principal"], &done["name"]), (&json!("ada"), &json!("echo")), "{done}");
    assert!(done["instance"].is_u64() && done["trace"].as_str().is_some_and(|it| it.len() == 32));
    ada.call("a.crash", json!({})).await.unwrap_err();
    line(&gateway, json!({ "level": "WARN", "message": "failed", "outcome": "unknown" })).await;

    for _ in 0..3 {
        let (status, _) =
            gateway.http("POST /mcp", &[("authorization", "Bearer wrong")], "{}").await;
        assert_eq!(status, 401);
    }
    let refused = line(&gateway, json!({ "target": "trunkline::door", "status": 401 })).await;
    assert_eq!((&refused["level"], &refused["count"]), (&json!("WARN"), &json!(1)));
    let refusals = lines(&gateway).iter().filter(|it| it["target"] == "trunkline::door").count();
    assert_eq!(refusals, 1, "the others are counted");
    let (_, metrics) = gateway.admin("GET /metrics").await;
    assert!(metrics.contains(r#"door_refusals_total{status="401"} 3"#), "{metrics}");

    signal("HUP", gateway.pid());
    line(&gateway, json!({ "level": "INFO", "target": "trunkline::catalog" })).await;
    std::fs::write(place.path("catalog.json"), "{").unwrap();
    signal("HUP", gateway.pid());
    line(&gateway, json!({ "level": "WARN", "target": "trunkline::catalog" })).await;
}

#[tokio::test]
async fn a_filter_that_means_nothing_is_refused_in_words() {
    let place = Place::new("log-bad");
    place.write(&json!({ "mcpServers": {} }));
    let mut command = place.command();
    let said = command.args(["--log", "trunkline=loud"]).output().await.unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{text}");
    assert!(text.contains("`--log trunkline=loud` cannot be understood"), "{text}");
}
