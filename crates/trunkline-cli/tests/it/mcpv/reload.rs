//! A catalog that is edited while its gateway is at work.

use serde_json::{Value, json};

use super::place::{Gateway, Place, SOON, until};

/// Waits until the catalog was read once more, and says how that went.
async fn reloaded(gateway: &Gateway, before: &Value) -> Value {
    until("the catalog to be read", SOON, async || {
        gateway.told("GET /v1/status").await["lastReload"] != *before
    })
    .await;
    gateway.told("GET /v1/status").await["lastReload"].clone()
}

#[tokio::test]
async fn b19_a_reload_changes_what_was_edited_and_nothing_else() {
    let place = Place::new("b19");
    let catalog = |a: Value, b: Value, gateway: Value| json!({ "mcpServers": { "a": a, "b": b }, "gateway": gateway });
    let plain = |name: &str| place.fake(name, &[], json!({}));
    place.write(&catalog(plain("a"), plain("b"), json!({})));
    let gateway = place.open("127.0.0.1:0").await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let (a, b) = (client.pid("a.pid").await, client.pid("b.pid").await);
    let mut last = Value::Null;

    // What is shown of a server restarts nothing.
    let few = place.fake("a", &[], json!({ "exposeTools": ["p*", "slow"] }));
    place.write(&catalog(few.clone(), plain("b"), json!({})));
    last = reloaded(&gateway, &last).await;
    assert_eq!(last["ok"], true, "{last}");
    let shown = client.tools().await;
    assert_eq!(shown.iter().filter(|it| it.starts_with("a.")).count(), 3, "{shown:?}");
    assert_eq!(client.pid("a.pid").await, a);

    // Nor does how long it may idle.
    let idle = |options: &[&str]| {
        place.fake("a", options, json!({ "exposeTools": ["p*", "slow"], "idleSeconds": 77 }))
    };
    place.write(&catalog(idle(&[]), plain("b"), json!({})));
    last = reloaded(&gateway, &last).await;
    assert_eq!(last["ok"], true, "{last}");
    assert_eq!(client.pid("a.pid").await, a);

    // Another command does: its calls end first, and the next go to a new process.
    let slow = client.spawn("a.slow", json!({ "ms": 1200 }));
    until("the call to arrive", SOON, async || {
        place.log().of("call").iter().any(|it| it["tool"] == "slow")
    })
    .await;
    place.write(&catalog(idle(&["--stderr", "new"]), plain("b"), json!({})));
    last = reloaded(&gateway, &last).await;
    assert_eq!(last["ok"], true, "{last}");
    let next = client.pid("a.pid").await;
    assert_ne!(next, a);
    assert_eq!(slow.await.unwrap(), Ok("slept".to_owned()));
    until("the old one to be gone", SOON, async || !place.running("a").contains(&a)).await;

    // A catalog that is wrong changes nothing, and the next that is right changes everything.
    let wrong = json!({ "command": "x", "strategy": "sharded" });
    place.write(&catalog(plain("a"), wrong, json!({ "naming": "flat" })));
    last = reloaded(&gateway, &last).await;
    assert_eq!(last["ok"], false, "{last}");
    assert!(last.to_string().contains("mcpServers.b.strategy"), "{last}");
    assert_eq!((client.pid("a.pid").await, client.pid("b.pid").await), (next, b));
    // Part of it could be taken over, and part of it not.
    let audit = json!({ "audit": place.text("no/such/folder/audit.jsonl"), "naming": "flat" });
    let hidden = place.fake("b", &[], json!({ "exposeTools": ["nothing"] }));
    place.write(&catalog(idle(&["--stderr", "never"]), hidden, audit));
    last = reloaded(&gateway, &last).await;
    assert_eq!(last["ok"], false, "{last}");
    assert_eq!((client.pid("a.pid").await, client.pid("b.pid").await), (next, b));
    let count = place.starts("a").len();

    let elsewhere = json!({ "naming": "flat", "listen": "127.0.0.1:1" });
    place.write(&catalog(idle(&["--stderr", "newer"]), plain("b"), elsewhere));
    last = reloaded(&gateway, &last).await;
    assert_eq!(last["ok"], true, "{last}");
    assert!(
        client.tools().await.contains(&"echo".to_owned()),
        "only `b` shows it: {:?}",
        client.tools().await
    );
    assert_ne!(client.pid("pid_a").await, next);
    assert_eq!(client.pid("pid_b").await, b, "nobody touched this one");
    assert!(place.starts("a").len() > count);
    let told = gateway.told("GET /v1/status").await["lastReload"].to_string();
    assert!(told.contains(r#""restart":["listen"]"#), "what takes a restart is told: {told}");
}
