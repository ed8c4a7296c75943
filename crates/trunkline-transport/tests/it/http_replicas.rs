//! Sessions that several replicas share: whichever one a request reaches, the owner answers it.

mod fleet;
mod internal;
mod leaving;
mod streams;

use std::future::{Future, poll_fn};
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Duration;

use serde_json::json;
use trunkline_testkit::http::Line;
use trunkline_transport::Limits;

use fleet::{Visitor, distinct, fleet, fleet_with_alice, fleet_within, lock, said, until};

const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn any_replica_takes_any_request_and_the_owner_answers() {
    let (world, [a, b, c], alice) = fleet_with_alice().await;
    assert_eq!(alice.post(&b, READY).await.head.status, 202, "notifications find the session too");
    assert_eq!(*lock(&a.tools.heard), ["notifications/initialized"]);
    for at in [&a, &b, &c, &b] {
        let sent = alice.call(at, 1, "echo").await;
        assert_eq!(
            (sent.head.status, sent.head.get("content-type")),
            (200, Some("application/json"))
        );
        assert_eq!(sent.said().await, "a for alice");
    }
    let mut changes = alice.get(&c, None).await;
    assert!(changes.head.is_events());
    alice.request(&b, 2, "resources/subscribe", r#"{"uri":"file:///x"}"#).await;
    a.tools.changed("file:///x").await;
    let (_, message) = changes.line.message().await.expect("it is passed on at once");
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(alice.delete(&b).await, 204);
    assert!(lock(&world).records.is_empty());
    assert_eq!(changes.line.message().await, None, "the stream ends with its session");
    for at in [&a, &b, &c] {
        assert_eq!(alice.call(at, 3, "echo").await.head.status, 404);
    }
}

#[tokio::test]
async fn a_long_answer_is_passed_on_whole_and_its_connection_is_used_again() {
    let (_world, [_a, b], alice) = fleet_with_alice().await;
    for id in 0..3 {
        let mut sent = alice.call(&b, id, "big").await;
        let length = sent.head.get("content-length").expect("its length is known").to_owned();
        let body = sent.line.body().await;
        assert_eq!(body.len().to_string(), length);
        assert!(body.len() > 3 << 20 && body.ends_with(b"xx\"}}"));
    }
}

#[tokio::test]
async fn a_session_is_for_its_own_principal_wherever_it_is_asked_for() {
    let (_world, [mut a, b, c], alice) = fleet_with_alice().await;
    let mallory = Visitor { session: alice.session.clone(), name: "mallory" };
    let unknown = Visitor { session: "session-9-of-a".to_owned(), name: "alice" };
    for at in [&a, &b] {
        assert_eq!(mallory.call(at, 1, "echo").await.head.status, 404);
        assert_eq!(mallory.delete(at).await, 404);
        assert_eq!(unknown.call(at, 1, "echo").await.head.status, 404);
    }
    a.kill();
    // Mallory's request makes b take the session over, and still it is not his.
    assert_eq!(mallory.call(&b, 2, "echo").await.head.status, 404);
    assert_eq!(mallory.call(&c, 2, "echo").await.head.status, 404);
    assert_eq!(alice.call(&c, 3, "echo").await.said().await, "b for alice");
}

#[tokio::test]
async fn a_session_outlives_its_owner_with_all_that_its_client_has_chosen() {
    let (world, [mut a, mut b, c], alice) = fleet_with_alice().await;
    alice.post(&a, READY).await;
    alice.request(&b, 1, "logging/setLevel", r#"{"level":"error"}"#).await;
    alice.request(&b, 2, "resources/subscribe", r#"{"uri":"file:///x"}"#).await;
    alice.request(&b, 3, "resources/subscribe", r#"{"uri":"file:///y"}"#).await;
    alice.request(&a, 4, "resources/unsubscribe", r#"{"uri":"file:///x"}"#).await;
    {
        let world = lock(&world);
        let (owner, record) = &world.records[&alice.session];
        assert_eq!((&**owner, record.level.as_deref()), ("a", Some("error")));
        assert_eq!(record.subscriptions, ["file:///y"]);
        assert!(record.hello.contains("2025-11-25") && record.path == "/mcp");
    }
    a.kill();
    assert_eq!(alice.call(&b, 5, "echo").await.said().await, "b for alice");
    assert_eq!(*lock(&b.tools.heard), ["resources/subscribe \"file:///y\""]);
    assert_eq!(alice.call(&c, 6, "echo").await.said().await, "b for alice", "c forwards to b");
    let mut changes = alice.get(&c, None).await;
    b.tools.changed("file:///x").await;
    b.tools.changed("file:///y").await;
    let (_, message) = changes.line.message().await.unwrap();
    assert_eq!(message["params"]["uri"], "file:///y");
    b.kill();
    assert_eq!(alice.call(&c, 7, "echo").await.said().await, "c for alice");
    assert_eq!(lock(&world).records[&alice.session].1.level.as_deref(), Some("error"));
}

#[tokio::test]
async fn concurrent_requests_after_a_takeover_meet_in_one_session() {
    let (_world, [mut a, b], alice) = fleet_with_alice().await;
    alice.request(&a, 1, "resources/subscribe", r#"{"uri":"file:///x"}"#).await;
    a.kill();
    let mut calls: Vec<_> = (0..20).map(|id| Box::pin(alice.call(&b, id, "echo"))).collect();
    let mut sent = Vec::new();
    poll_fn(|cx| {
        calls.retain_mut(|call| match call.as_mut().poll(cx) {
            Poll::Ready(answer) => {
                sent.push(answer);
                false
            }
            Poll::Pending => true,
        });
        if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let mut heard = Vec::new();
    for answer in sent {
        heard.push(answer.said().await);
    }
    assert_eq!((distinct(&heard), heard.len()), (1, 20));
    assert_eq!(lock(&b.tools.heard).len(), 1, "it was restored once");
}

#[tokio::test]
async fn without_the_store_owners_go_on_and_others_say_when_to_come_again() {
    let (world, [a, b], alice) = fleet_with_alice().await;
    lock(&world).is_away = true;
    assert_eq!(alice.call(&a, 1, "echo").await.said().await, "a for alice");
    for sent in [
        alice.call(&b, 2, "echo").await,
        alice.get(&b, None).await,
        Visitor { session: String::new(), name: "bob" }.request(&b, 3, "initialize", HELLO).await,
    ] {
        assert_eq!((sent.head.status, sent.head.get("retry-after")), (503, Some("1")));
        assert_eq!(sent.said().await, "owner_unavailable");
    }
    lock(&world).is_away = false;
    assert_eq!(alice.call(&b, 4, "echo").await.said().await, "a for alice");
}

const HELLO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}"#;

#[tokio::test]
async fn an_owner_that_lost_its_lease_answers_nothing_more() {
    let (_world, [a, b], alice) = fleet_with_alice().await;
    let mut changes = alice.get(&a, None).await;
    let waiting = alice.call(&b, 1, "wait");
    let fence = async {
        until(|| a.is_busy()).await;
        a.fake.has_lease.store(false, SeqCst);
        assert_eq!(changes.line.message().await, None, "its streams end");
        a.tools.go.add_permits(1);
    };
    let (sent, ()) = tokio::join!(waiting, fence);
    assert_eq!(sent.said().await, "outcome_unknown");
    let sent = alice.call(&b, 2, "echo").await;
    assert_eq!((sent.head.status, sent.head.get("retry-after")), (503, Some("1")));
    a.fake.has_lease.store(true, SeqCst);
    assert_eq!(alice.call(&b, 3, "echo").await.said().await, "a for alice", "it still has it");
}

#[tokio::test]
async fn a_replica_that_learns_of_its_takeover_stops_what_works_there() {
    let (world, [a, b], alice) = fleet_with_alice().await;
    let mut changes = alice.get(&a, None).await;
    lock(&world).records.get_mut(&alice.session).unwrap().0 = "b".to_owned();
    assert_eq!(changes.line.message().await, None);
    // b was not told that it owns it: it has no record in memory, and says so.
    assert_eq!(alice.call(&b, 1, "echo").await.head.status, 404);
}

#[tokio::test]
async fn a_stale_belief_about_the_owner_costs_one_more_look() {
    let (_world, [_a, mut b, c], alice) = fleet_with_alice().await;
    // c believes that b owns it; b knows better.
    lock(&c.fake.hints).insert(alice.session.clone(), "b".to_owned());
    assert_eq!(alice.call(&c, 1, "echo").await.said().await, "a for alice");
    assert!(lock(&c.fake.hints).is_empty());
    // It believes in one that listens no more: nothing of the call has arrived there.
    lock(&c.fake.hints).insert(alice.session.clone(), "b".to_owned());
    b.close_listeners().await;
    assert_eq!(alice.call(&c, 2, "echo").await.said().await, "a for alice");
}

#[tokio::test]
async fn an_owner_that_dies_during_a_forwarded_call_leaves_its_outcome_unknown() {
    let (_world, [mut a, b], alice) = fleet_with_alice().await;
    let mut line = Line::to(b.public).await;
    let body = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"wait"}}"#;
    let headers = [
        ("mcp-session-id", &*alice.session),
        ("mcp-protocol-version", "2025-11-25"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("x-name", "alice"),
    ];
    line.send(trunkline_testkit::http::request(b.public, "POST /mcp", &headers, body)).await;
    until(|| a.is_busy()).await;
    a.kill();
    assert_eq!(line.head().await.status, 200);
    let answer = line.json().await;
    assert_eq!((said(&answer), &answer["id"]), ("outcome_unknown".to_owned(), &json!("x")));
    assert_eq!(alice.call(&b, 2, "echo").await.said().await, "b for alice");
}

#[tokio::test]
async fn an_owner_that_falls_silent_is_given_up_once_another_takes_over() {
    let (_world, [a, b], alice) = fleet_with_alice().await;
    let silence = async {
        until(|| a.is_busy()).await;
        a.vanish();
    };
    // Its connection does not break: b looks now and then whether the owner is still there.
    let (sent, ()) = tokio::join!(alice.call(&b, 1, "wait"), silence);
    assert_eq!(sent.said().await, "outcome_unknown");
    assert_eq!(alice.call(&b, 2, "echo").await.said().await, "b for alice");
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_for_all_replicas() {
    let limits = Limits::default().session_idle(Duration::from_millis(20));
    let (world, [a, b]) = fleet_within(limits.session_sweep(Duration::from_millis(5))).await;
    let alice = Visitor::open(&a, "alice").await;
    until(|| lock(&world).records.is_empty()).await;
    assert_eq!(alice.call(&b, 1, "echo").await.head.status, 404);
}

#[tokio::test]
async fn a_question_is_answered_at_whichever_replica() {
    let (_world, [a, b, c], alice) = fleet_with_alice().await;
    alice.post(&a, READY).await;
    let mut asking = alice.call(&b, 1, "ask").await;
    let (_, question) = asking.line.message().await.unwrap();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    assert_eq!(alice.post(&c, &answer.to_string()).await.head.status, 202);
    let (_, answer) = asking.line.message().await.unwrap();
    assert_eq!(said(&answer), r#"Ok("{\"roots\":[]}")"#);
}

#[tokio::test]
async fn a_message_of_2024_11_05_finds_its_stream_at_another_replica() {
    let (world, [mut a, b]) = fleet().await;
    let mut events = a.send("GET /sse", &[("x-name", "alice")], "").await;
    let to = events.line.event().await.unwrap().data;
    let line = format!("POST {to}");
    let headers = [("content-type", "application/json"), ("x-name", "alice")];
    let hello = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{HELLO}}}"#);
    assert_eq!(b.send(&line, &headers, &hello).await.head.status, 202);
    let (_, answer) = events.line.message().await.unwrap();
    assert_eq!(answer["id"], 0);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    assert_eq!(a.send(&line, &headers, call).await.head.status, 202);
    let (_, answer) = events.line.message().await.unwrap();
    assert_eq!(said(&answer), "a for alice");
    let mallory = [("content-type", "application/json"), ("x-name", "mallory")];
    assert_eq!(b.send(&line, &mallory, call).await.head.status, 404);
    // The end of the owner is the end of the stream.
    a.kill();
    assert_eq!(b.send(&line, &headers, call).await.head.status, 404);
    until(|| lock(&world).records.is_empty()).await;
}
