//! The client against a scripted server whose lists and resources change.

use std::time::Duration;

use serde_json::json;
use trunkline::client::{CallError, Hooks};
use trunkline::model::SubscriptionFilter;
use trunkline::{Change, Limits, Revision};

use crate::client_peer::{Diary, ERAS, builder, open};
use crate::server::soon;

#[tokio::test]
async fn a_listener_hears_changes_in_order_in_both_eras() {
    let filter = SubscriptionFilter::new()
        .tools_list_changed(true)
        .resource_subscriptions(vec!["demo://a".to_owned()]);
    let expected = [
        Change::Resource("demo://a".to_owned()),
        Change::Tools,
        Change::Resource("demo://a/part".to_owned()),
        Change::Resource("demo://a".to_owned()),
    ];

    let (client, mut peer) = open(builder(), Revision::V2025_06_18).await;
    let serve = async {
        let request = peer.expect("resources/subscribe").await;
        assert_eq!(request["params"], json!({ "uri": "demo://a" }));
        peer.reply(&request, json!({})).await;
    };
    let (listener, ()) = tokio::join!(client.listen(filter.clone()), serve);
    let mut listener = listener.unwrap();
    assert_eq!(*listener.honoured(), filter);
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://other" })).await;
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a" })).await;
    peer.notify("notifications/tools/list_changed", json!({})).await;
    peer.notify("notifications/prompts/list_changed", json!({})).await;
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a/part" })).await;
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a" })).await;
    for change in &expected {
        assert_eq!(listener.next().await.as_ref(), Some(change));
    }
    drop(listener);
    let request = peer.expect("resources/unsubscribe").await;
    assert_eq!(request["params"], json!({ "uri": "demo://a" }));

    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let tag = |request: &serde_json::Value, mut params: serde_json::Value| {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
        params
    };
    let serve = async {
        let request = peer.expect("subscriptions/listen").await;
        let wanted = &request["params"]["notifications"];
        assert_eq!(
            *wanted,
            json!({ "toolsListChanged": true, "resourceSubscriptions": ["demo://a"] })
        );
        let params = tag(&request, json!({ "notifications": wanted }));
        peer.notify("notifications/subscriptions/acknowledged", params).await;
        request
    };
    let (listener, request) = tokio::join!(client.listen(filter.clone()), serve);
    let mut listener = listener.unwrap();
    assert_eq!(*listener.honoured(), filter);
    for change in &expected {
        match change {
            Change::Resource(uri) => {
                let params = tag(&request, json!({ "uri": uri }));
                peer.notify("notifications/resources/updated", params).await;
            }
            _ => peer.notify("notifications/tools/list_changed", tag(&request, json!({}))).await,
        }
    }
    for change in &expected {
        assert_eq!(listener.next().await.as_ref(), Some(change));
    }
    drop(listener);
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn a_listener_ends_with_the_connection() {
    for revision in ERAS {
        let (client, mut peer) = open(builder(), revision).await;
        let serve = async {
            if revision == Revision::V2026_07_28 {
                let request = peer.expect("subscriptions/listen").await;
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
                let params = json!({ "notifications": {}, "_meta": meta });
                peer.notify("notifications/subscriptions/acknowledged", params).await;
            }
        };
        let (listener, ()) = tokio::join!(client.listen(SubscriptionFilter::new()), serve);
        drop(peer);
        assert_eq!(listener.unwrap().next().await, None, "{revision}");
    }
}

#[tokio::test]
async fn a_subscription_that_is_never_acknowledged_is_given_up() {
    let limits = Limits::default().call_deadline(Duration::from_millis(100));
    let (client, mut peer) = open(builder().limits(limits), Revision::V2026_07_28).await;
    let listening = soon(client.listen(SubscriptionFilter::new().tools_list_changed(true)));
    let (listener, request) = tokio::join!(listening, peer.expect("subscriptions/listen"));
    assert!(matches!(listener, Err(CallError::TimedOut)), "{listener:?}");
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn a_subscription_is_made_once_and_ended_once() {
    let diary = Diary::default();
    let heard = diary.clone();
    let host = Hooks::new().on_change(move |it| heard.note(format!("{it:?}")));
    let (client, mut peer) = open(builder().responder(host), Revision::V2025_11_25).await;
    let serve = async {
        let request = peer.expect("resources/subscribe").await;
        peer.reply(&request, json!({})).await;
    };
    let (first, ()) = tokio::join!(client.subscribe("demo://a"), serve);
    first.unwrap();
    let filter = SubscriptionFilter::new().resource_subscriptions(vec!["demo://a".to_owned()]);
    let listener = client.listen(filter).await.unwrap();
    peer.notify("notifications/resources/updated", json!({ "uri": "demo://a" })).await;
    client.unsubscribe("demo://a").await;
    let serve = async {
        // Only the last listener unsubscribes.
        let request = peer.expect("resources/unsubscribe").await;
        peer.reply(&request, json!({})).await;
    };
    tokio::join!(listener.close(), serve);
    assert_eq!(diary.read(), [r#"Resource("demo://a")"#]);
}
