//! The client against a scripted server whose results stay fresh for a while.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::advance;
use trunkline::client::{Client, Listener};
use trunkline::model::{ResourceData, SubscriptionFilter};
use trunkline::{Change, Limits, Revision};

use crate::client_peer::{Peer, builder, open};
use crate::server::soon;

/// A result that stays fresh for a second.
fn kept(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(1000);
    result["cacheScope"] = json!("private");
    result
}

fn prompts(names: &[&str]) -> Value {
    let prompts: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    json!({ "prompts": prompts })
}

/// Serves one request for a list of prompts.
async fn serve(peer: &mut Peer, result: Value) -> Value {
    let request = peer.expect("prompts/list").await;
    peer.reply(&request, result).await;
    request
}

/// The names of the prompts while the server answers nothing: they must be cached.
async fn known(client: &Client) -> Vec<String> {
    let prompts = soon(client.list_prompts().into_future()).await;
    prompts.unwrap().into_iter().map(|it| it.name).collect()
}

/// The names of the prompts, which the server is asked for.
async fn asked(client: &Client, peer: &mut Peer, result: Value) -> Vec<String> {
    let (names, _) = soon(async { tokio::join!(known(client), serve(peer, result)) }).await;
    names
}

#[tokio::test(start_paused = true)]
async fn a_fresh_answer_is_not_asked_for_again() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    assert_eq!(asked(&client, &mut peer, kept(prompts(&["a"]))).await, ["a"]);
    advance(Duration::from_millis(900)).await;
    assert_eq!(known(&client).await, ["a"]);
    advance(Duration::from_millis(100)).await;
    assert_eq!(asked(&client, &mut peer, kept(prompts(&["b"]))).await, ["b"]);
    assert_eq!(known(&client).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_says_nothing_is_asked_for_every_time() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    for ttl in [json!(0), json!(-5), Value::Null] {
        let mut result = prompts(&["a"]);
        result["ttlMs"] = ttl;
        asked(&client, &mut peer, result.clone()).await;
        asked(&client, &mut peer, result).await;
    }
    let (client, mut peer) = open(builder(), Revision::V2025_11_25).await;
    for name in ["a", "b"] {
        assert_eq!(asked(&client, &mut peer, kept(prompts(&[name]))).await, [name]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_wants_nothing_kept_asks_every_time() {
    let few = Limits::default().cache_bytes(10);
    for builder in [builder().cache(false), builder().limits(few)] {
        let (client, mut peer) = open(builder, Revision::V2026_07_28).await;
        for name in ["a", "b"] {
            assert_eq!(asked(&client, &mut peer, kept(prompts(&[name]))).await, [name]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_wants_it_fresh_or_in_their_own_way_asks_the_server() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    asked(&client, &mut peer, kept(prompts(&["a"]))).await;
    let fresh = client.list_prompts().fresh().into_future();
    let (names, _) = tokio::join!(fresh, serve(&mut peer, kept(prompts(&["b"]))));
    assert_eq!(names.unwrap()[0].name, "b");
    assert_eq!(known(&client).await, ["b"]);
    let own = client.list_prompts().meta("example.org/in", json!("French")).into_future();
    let (names, _) = tokio::join!(own, serve(&mut peer, kept(prompts(&["c"]))));
    assert_eq!(names.unwrap()[0].name, "c");
    assert_eq!(known(&client).await, ["b"]);
    client.clear_cache();
    assert_eq!(asked(&client, &mut peer, prompts(&["d"])).await, ["d"]);
}

#[tokio::test(start_paused = true)]
async fn each_page_has_its_own_time() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let page = |name: &str, next: Option<&str>, ttl: u64| {
        let mut result = kept(prompts(&[name]));
        result["ttlMs"] = json!(ttl);
        if let Some(next) = next {
            result["nextCursor"] = json!(next);
        }
        result
    };
    let first = async {
        serve(&mut peer, page("a", Some("2"), 5000)).await;
        serve(&mut peer, page("b", None, 100)).await;
    };
    let (names, ()) = tokio::join!(known(&client), first);
    assert_eq!(names, ["a", "b"]);
    assert_eq!(known(&client).await, ["a", "b"]);
    advance(Duration::from_millis(200)).await;
    let (names, request) = tokio::join!(known(&client), serve(&mut peer, page("c", None, 100)));
    assert_eq!(request["params"]["cursor"], "2");
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_page_that_leads_nowhere_starts_the_list_anew() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let mut first = kept(prompts(&["a"]));
    first["nextCursor"] = json!("2");
    let served = async {
        serve(&mut peer, first).await;
        serve(&mut peer, prompts(&["b"])).await;
    };
    let (names, ()) = tokio::join!(known(&client), served);
    assert_eq!(names, ["a", "b"]);
    let served = async {
        let request = peer.expect("prompts/list").await;
        assert_eq!(request["params"]["cursor"], "2");
        peer.fail(&request, -32602).await;
        let request = serve(&mut peer, kept(prompts(&["x", "y"]))).await;
        assert_eq!(request["params"].get("cursor"), None);
    };
    let (names, ()) = tokio::join!(known(&client), served);
    assert_eq!(names, ["x", "y"]);
    assert_eq!(known(&client).await, ["x", "y"]);
}

/// A listener for the list of prompts and one resource, and the id of its subscription.
async fn listen(client: &Client, peer: &mut Peer) -> (Listener, Value) {
    let filter = SubscriptionFilter::new()
        .prompts_list_changed(true)
        .resource_subscriptions(vec!["demo://a".to_owned()]);
    let acknowledge = async {
        let request = peer.expect("subscriptions/listen").await;
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
        let params = json!({ "notifications": request["params"]["notifications"], "_meta": meta });
        peer.notify("notifications/subscriptions/acknowledged", params).await;
        meta
    };
    let (listener, meta) = tokio::join!(client.listen(filter), acknowledge);
    (listener.unwrap(), meta)
}

#[tokio::test(start_paused = true)]
async fn news_of_a_changed_list_end_its_freshness() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let (mut listener, meta) = listen(&client, &mut peer).await;
    asked(&client, &mut peer, kept(prompts(&["a"]))).await;
    let params = json!({ "uri": "demo://a", "_meta": meta });
    peer.notify("notifications/resources/updated", params).await;
    assert_eq!(listener.next().await, Some(Change::Resource("demo://a".to_owned())));
    assert_eq!(known(&client).await, ["a"]);
    peer.notify("notifications/prompts/list_changed", json!({ "_meta": meta })).await;
    assert_eq!(listener.next().await, Some(Change::Prompts));
    assert_eq!(asked(&client, &mut peer, kept(prompts(&["b"]))).await, ["b"]);
}

/// The text of a resource.
async fn read(client: &Client) -> String {
    let result = soon(client.read_resource("demo://a").into_future()).await.unwrap();
    match &result.contents[0].data {
        ResourceData::Text(text) => text.clone(),
        ResourceData::Blob(_) => panic!("the server sent text"),
    }
}

fn text(text: &str) -> Value {
    kept(json!({ "contents": [{ "uri": "demo://a", "text": text }] }))
}

#[tokio::test(start_paused = true)]
async fn news_of_a_changed_resource_end_its_freshness() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    let (mut listener, meta) = listen(&client, &mut peer).await;
    for (at, expected) in ["one", "two"].into_iter().enumerate() {
        let served = async {
            let request = peer.expect("resources/read").await;
            peer.reply(&request, text(expected)).await;
        };
        let (first, ()) = tokio::join!(read(&client), served);
        assert_eq!((&*first, &*read(&client).await), (expected, expected), "{at}");
        let params = json!({ "uri": "demo://a", "_meta": meta });
        peer.notify("notifications/resources/updated", params).await;
        assert_eq!(listener.next().await, Some(Change::Resource("demo://a".to_owned())));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_asked_back_about_is_never_kept() {
    let (client, mut peer) = open(builder(), Revision::V2026_07_28).await;
    for _ in 0..2 {
        let served = async {
            let request = peer.expect("resources/read").await;
            assert_eq!(request["params"].get("requestState"), None);
            let more = json!({ "resultType": "input_required", "requestState": "s" });
            peer.reply(&request, more).await;
            let request = peer.expect("resources/read").await;
            assert_eq!(request["params"]["requestState"], "s");
            peer.reply(&request, text("for you")).await;
        };
        let (result, ()) = tokio::join!(read(&client), served);
        assert_eq!(result, "for you");
    }
}
