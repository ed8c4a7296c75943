//! Servers that remember: whose instance is whose, and for how long.

use serde_json::json;

use super::place::{Place, SOON, reason, until};

#[tokio::test]
async fn b07_each_session_keeps_its_own_instance() {
    let place = Place::new("b07");
    let keys = json!({ "strategy": "stateful", "minReady": 1, "maxInstances": 2 });
    let gateway = place.serve(json!({ "a": place.fake("a", &[], keys) })).await;
    gateway.settled().await;
    let (mut one, mut other) = (gateway.client().await, gateway.client().await);
    until("one to be warm", SOON, async || place.running("a").len() == 1).await;
    let (mine, theirs) = (one.pid("a.pid").await, other.pid("a.pid").await);
    assert_ne!(mine, theirs, "a warm instance that somebody took is theirs alone");
    for turn in 1..=3 {
        assert_eq!(one.call("a.count", json!({})).await, Ok(turn.to_string()));
        assert_eq!(other.call("a.count", json!({})).await, Ok(turn.to_string()));
        assert_eq!((one.pid("a.pid").await, other.pid("a.pid").await), (mine, theirs));
    }
    let mut third = gateway.client().await;
    let refused = third.call("a.count", json!({})).await;
    assert_eq!(reason(&refused), "sticky_busy");
    assert_eq!(one.pid("a.pid").await, mine, "nobody lost theirs to it");

    // Whoever leaves makes room, and leaves nothing behind for the next.
    one.leave().await;
    until("the instance of a client that left to go", SOON, async || {
        !place.running("a").contains(&mine)
    })
    .await;
    assert_eq!(third.call("a.count", json!({})).await, Ok("1".to_owned()));
    assert_eq!(other.pid("a.pid").await, theirs);
}

#[tokio::test]
async fn b08_a_binding_ends_after_its_time() {
    let place = Place::new("b08");
    let keys =
        |ttl: f64| json!({ "strategy": "stateful", "sessionTTLSeconds": ttl, "idleSeconds": 0.2 });
    let gateway = place
        .serve(json!({
            "short": place.fake("short", &[], keys(1.0)),
            "ever": place.fake("ever", &[], keys(0.0)),
        }))
        .await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let ever = client.pid("ever.pid").await;
    let first = client.pid("short.pid").await;
    assert_eq!(client.pid("short.pid").await, first);
    until("the binding to end", SOON, async || place.running("short").is_empty()).await;
    assert_ne!(client.pid("short.pid").await, first, "the session gets a new one");
    assert_eq!(place.running("ever"), [ever], "0 is for ever");
    assert_eq!(client.pid("ever.pid").await, ever);
}
