//! A fault in one entry of a catalog is a fault of one server: the others are served.

use std::process::Command;

use serde_json::{Map, Value, json};

use super::place::{Gateway, Place, SOON, reason, signal, until};
use crate::run::TRUNKLINE;

/// Entries that are wrong, each in its own way, and a word of what is said about them.
fn broken() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("unset", json!({ "command": "x", "env": { "A": "${NOT_SET_ANYWHERE}" } }), "is not set"),
        ("word", json!({ "command": "x", "strategy": "sharded" }), "sharded"),
        ("empty", json!({}), "neither a command nor a URL"),
        ("header", json!({ "url": "http://localhost:1/", "headers": { "a b": "c" } }), "a b"),
        ("text", json!("npx something"), "must be"),
        ("far", json!({ "url": "nonsense" }), "URL"),
    ]
}

fn catalog(place: &Place, good: usize) -> Value {
    let mut servers = Map::new();
    for at in 0..good {
        let name = format!("good{at}");
        servers.insert(name.clone(), place.fake(&name, &[], json!({})));
    }
    for (name, entry, _) in broken() {
        servers.insert(name.to_owned(), entry);
    }
    // This one is well written, and is not there.
    servers.insert("gone".to_owned(), json!({ "command": "/no/such/program" }));
    json!({ "mcpServers": servers })
}

async fn out(gateway: &Gateway) -> Vec<String> {
    let status = gateway.told("GET /v1/status").await;
    let servers = status["servers"].as_array().expect("there are servers").clone();
    let out = servers.into_iter().filter(|it| it["state"] == "out");
    out.map(|it| it["name"].as_str().expect("it has a name").to_owned()).collect()
}

#[tokio::test]
async fn of_twenty_two_servers_seven_are_broken_and_fifteen_work() {
    let place = Place::new("left-out");
    place.write(&catalog(&place, 15));
    let gateway = place.open("127.0.0.1:0").await;
    let said = gateway.said();
    let mut client = gateway.client().await;
    let tools = client.tools().await;
    for at in 0..15 {
        let (name, text) = (format!("good{at}.echo"), format!("{at}"));
        assert!(tools.contains(&name), "{name}: {tools:?}");
        assert_eq!(client.call(&name, json!({ "text": text })).await, Ok(text));
    }
    assert_eq!(out(&gateway).await.len(), 6);
    for (name, _, word) in broken() {
        assert!(said.contains(word), "{name}: {said}");
        let server = gateway.server(name).await;
        assert_eq!(server["state"], "out", "{server}");
        let why = server["lastError"].as_str().expect("it says why");
        assert!(why.contains(word), "{name}: {why}");
        let failed = client.call(&format!("{name}.echo"), json!({})).await;
        assert_eq!(reason(&failed), "unknown_tool");
        let told = failed.unwrap_err()["message"].to_string();
        assert!(told.contains("is left out") && told.contains(word), "{name}: {told}");
        let (status, body) = gateway.http(&format!("GET /mcp/server/{name}"), &[], "").await;
        assert!(status == 404 && body.contains("is left out"), "{name}: {status} {body}");
    }
    let failed = client.call("gone.echo", json!({})).await.unwrap_err();
    let told = failed["message"].to_string();
    assert!(told.contains("has not listed yet") && told.contains("/no/such/program"), "{told}");
    let hint = format!("trunkline ps --state {}", place.text("state"));
    until("the hint to lead there", SOON, async || gateway.said().contains(&hint)).await;
}

#[tokio::test]
async fn what_was_wrong_at_the_start_keeps_nothing_else_from_changing() {
    let place = Place::new("left-out-reload");
    let mut catalog = catalog(&place, 1);
    place.write(&catalog);
    let gateway = place.open("127.0.0.1:0").await;
    let mut client = gateway.client().await;

    // One more that is good: it comes, and the others are still out.
    catalog["mcpServers"]["more"] = place.fake("more", &[], json!({}));
    place.write(&catalog);
    assert_eq!(gateway.admin("POST /v1/reload").await.0, 200);
    assert_eq!(client.call("more.echo", json!({ "text": "hi" })).await.as_deref(), Ok("hi"));
    assert_eq!(out(&gateway).await.len(), 6);

    // One more that is wrong: nothing changes, though another is mended.
    let wrong = json!({ "command": "x", "strategy": "sharded" });
    let good = std::mem::replace(&mut catalog["mcpServers"]["more"], wrong);
    catalog["mcpServers"]["empty"] = place.fake("empty", &[], json!({}));
    place.write(&catalog);
    let (status, why) = gateway.admin("POST /v1/reload").await;
    assert!(status == 422 && why.contains("mcpServers.more.strategy"), "{status}: {why}");
    assert_eq!(client.call("more.echo", json!({ "text": "ho" })).await.as_deref(), Ok("ho"));

    // SIGHUP is how services are told to read their files.
    catalog["mcpServers"]["more"] = good;
    place.write(&catalog);
    signal("HUP", gateway.pid());
    until("the mended one to be there", SOON, async || {
        client.call("empty.echo", json!({ "text": "here" })).await.as_deref() == Ok("here")
    })
    .await;
    assert_eq!(out(&gateway).await.len(), 5);
}

#[test]
fn doctor_and_check_say_what_is_left_out() {
    let place = Place::new("left-out-doctor");
    place.write(&catalog(&place, 1));
    let trunkline = |words: &[&str]| {
        let mut command = Command::new(TRUNKLINE);
        command.args(words).env_remove("TRUNKLINE_CONFIG");
        let output = command.output().expect("the binary was built");
        let said =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        (output.status.code(), said.concat())
    };
    let (file, state) = (place.text("catalog.json"), place.text("state"));
    let (code, said) = trunkline(&["check", &file]);
    assert_eq!(code, Some(2));
    for (name, _, word) in broken() {
        assert!(said.contains(word), "{name}: {said}");
        let (code, said) = trunkline(&["doctor", name, "--config", &file, "--state", &state]);
        assert_ne!(code, Some(0), "{said}");
        assert!(said.contains("left out") && said.contains(word), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_fault_in_who_is_let_in_stops_everything() {
    let place = Place::new("left-out-door");
    let mut catalog = catalog(&place, 1);
    catalog["gateway"] = json!({ "auth": { "tokens": [{ "name": "a", "token": "${NOT_SET}" }] } });
    place.write(&catalog);
    let output = place.command().args(["--listen", "127.0.0.1:0"]).output();
    let output = output.await.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("gateway.auth.tokens") && said.contains("mcpServers.unset"), "{said}");
}
