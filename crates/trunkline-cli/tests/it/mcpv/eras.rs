//! Servers that speak both eras, and subscriptions that meet the calls of their session.

use serde_json::{Value, json};
use trunkline::model::SubscriptionFilter;
use trunkline::{Change, Client, Revision};
use trunkline_testkit::peer::PATIENCE;

use super::place::{Place, SOON, person, text, until};
use crate::run::TRUNKLINE;

/// The revisions that a server was asked to shake hands in.
fn handshakes(place: &Place) -> usize {
    place.log().all().iter().filter(|it| it["event"] == "initialize").count()
}

#[tokio::test]
async fn a_server_of_both_eras_asks_each_caller_in_its_own() {
    let place = Place::new("eras-both");
    let options = ["--revision", "2026-07-28", "--also", "2025-11-25"];
    let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    for revision in Revision::ALL {
        let client = person(&gateway, revision).await;
        let expected = match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 => "This client has no elicitation.",
            Revision::V2026_07_28 => "There is no session to ask in.",
            _ => r#"{"action":"accept","content":{"answer":"blue"}}"#,
        };
        assert_eq!(text(&client, "a.ask", json!({})).await, expected, "{revision}");
    }
    assert!(handshakes(&place) > 0);
}

#[tokio::test]
async fn a_server_of_the_new_era_alone_is_asked_for_the_old_one_once() {
    let place = Place::new("eras-new");
    let options = ["--revision", "2026-07-28"];
    let gateway = place.serve(json!({ "a": place.fake("a", &options, json!({})) })).await;
    gateway.settled().await;
    let client = person(&gateway, Revision::V2025_11_25).await;
    for _ in 0..3 {
        let said = text(&client, "a.ask", json!({})).await;
        assert_eq!(said, r#"{"action":"accept","content":{"answer":"blue"}}"#);
    }
    assert_eq!((handshakes(&place), place.starts("a").len()), (1, 2), "for its lists, and to call");
}

#[tokio::test]
async fn a_catalog_says_up_to_which_revision_a_server_is_spoken_to() {
    let place = Place::new("eras-range");
    let options = ["--revision", "2026-07-28", "--also", "2025-11-25"];
    let keys = json!({ "protocolVersion": "<=2025-11-25" });
    let gateway = place.serve(json!({ "a": place.fake("a", &options, keys) })).await;
    let client = person(&gateway, Revision::LATEST).await;
    let said = text(&client, "a.ask", json!({})).await;
    assert_eq!(said, r#"{"action":"accept","content":{"answer":"blue"}}"#);
}

/// Subscribes, and says which instance the first call goes to; and what tells of changes.
async fn subscribed(client: &Client) -> (String, trunkline::client::Listener) {
    let filter = SubscriptionFilter::new().resource_subscriptions(vec!["fake://a/one".to_owned()]);
    let listener = client.listen(filter).await.unwrap();
    (text(client, "a.pid", json!({})).await, listener)
}

async fn changed(listener: &mut trunkline::client::Listener) -> bool {
    let next = tokio::time::timeout(SOON, listener.next()).await;
    next.is_ok_and(|it| it == Some(Change::Resource("fake://a/one".to_owned())))
}

#[tokio::test]
async fn a_session_hears_of_what_its_own_calls_change() {
    for server in [&["--revision", "2025-11-25"][..], &["--revision", "2026-07-28"]] {
        for keys in [json!({ "strategy": "stateful" }), json!({})] {
            let place = Place::new("eras-session");
            let gateway = place.serve(json!({ "a": place.fake("a", server, keys.clone()) })).await;
            gateway.settled().await;
            for revision in [Revision::V2025_06_18, Revision::LATEST] {
                let client = person(&gateway, revision).await;
                let before = place.starts("a").len();
                let (_, mut listener) = subscribed(&client).await;
                let touched = text(&client, "a.touch", json!({ "uri": "fake://a/one" })).await;
                assert_eq!(touched, "touched");
                let name = format!("{server:?} {keys} {revision}");
                assert!(changed(&mut listener).await, "{name}");
                let more = place.starts("a").len() - before;
                assert!(
                    more <= 1,
                    "{name}: one instance for the calls and the subscription: {more}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_change_is_heard_from_whichever_instance_it_happens_in() {
    for server in ["2025-11-25", "2026-07-28"] {
        let place = Place::new("eras-many");
        let keys = json!({ "maxConcurrent": 1, "maxInstances": 3 });
        let gateway =
            place.serve(json!({ "a": place.fake("a", &["--revision", server], keys) })).await;
        gateway.settled().await;
        for revision in [Revision::V2025_11_25, Revision::LATEST] {
            let client = person(&gateway, revision).await;
            let (first, mut listener) = subscribed(&client).await;
            // Somebody works in that one, so that the next call goes to another.
            let busy = client.call_tool("a.hang", json!({}));
            let busy = tokio::spawn(busy.into_future());
            until("a call to hang", SOON, async || {
                let server = gateway.server("a").await;
                server["instances"].as_array().unwrap().iter().any(|it| it["state"] == "busy")
            })
            .await;
            assert_ne!(text(&client, "a.pid", json!({})).await, first, "{server} {revision}");
            let touched = text(&client, "a.touch", json!({ "uri": "fake://a/one" })).await;
            assert_eq!(touched, "touched");
            assert!(changed(&mut listener).await, "{server} {revision}");
            busy.abort();
        }
    }
}

#[tokio::test]
async fn what_one_principal_changes_in_its_own_instance_others_do_not_hear() {
    let place = Place::new("eras-apart");
    let options = ["--revision", "2026-07-28", "--also", "2025-11-25"];
    let servers = json!({ "a": place.fake("a", &options, json!({})) });
    let tokens = json!([{ "name": "ann", "token": ANN }, { "name": "bob", "token": BOB }]);
    place.write(&json!({ "mcpServers": servers, "gateway": { "auth": { "tokens": tokens } } }));
    let gateway = place.open("127.0.0.1:0").await;
    let connect = async |token: &str, revision: Revision| {
        let builder = Client::builder("person", "1").protocol(revision);
        let url = format!("http://{}/mcp", gateway.address);
        let builder = builder.header("authorization", format!("Bearer {token}"));
        builder.connect_http(url).await.unwrap()
    };
    let (ann, bob) =
        (connect(ANN, Revision::V2025_11_25).await, connect(BOB, Revision::V2025_11_25).await);
    let eve = connect(BOB, Revision::LATEST).await;
    let (hers, mut heard) = subscribed(&ann).await;
    let (his, mut also) = subscribed(&bob).await;
    let (_, mut new) = subscribed(&eve).await;
    assert_ne!(hers, his, "each has a process of the old era");
    text(&ann, "a.touch", json!({ "uri": "fake://a/one" })).await;
    assert!(changed(&mut heard).await);
    text(&bob, "a.touch", json!({ "uri": "fake://a/one" })).await;
    assert!(changed(&mut also).await, "his own, and only that");
    text(&eve, "a.touch", json!({ "uri": "fake://a/one" })).await;
    assert!(changed(&mut new).await);
    for (whose, listener) in [("ann", &mut heard), ("bob", &mut also), ("eve", &mut new)] {
        let more = hears_more(listener).await;
        assert!(!more, "{whose} heard of what others did");
    }
}

/// Whether something more has been heard already.
async fn hears_more(listener: &mut trunkline::client::Listener) -> bool {
    let soon = std::time::Duration::from_millis(200);
    tokio::time::timeout(soon, listener.next()).await.is_ok()
}

const ANN: &str = "the-token-of-ann-is-long";
const BOB: &str = "the-token-of-bob-is-long";

/// The demo, which is told of subscriptions to resources only behind a call of `echo`.
fn deaf_at_first(revision: Revision) -> Value {
    let holding = r#"/"resourceSubscriptions":\["|resources\/subscribe/{h;d};/"name":"echo"/{p;x}"#;
    json!({
        "command": "sh",
        "args": ["-c", "sed -u -E \"$1\" | \"$0\" demo", TRUNKLINE, holding],
        "protocolVersion": revision.to_string(),
        "strategy": "singleton",
    })
}

#[tokio::test]
async fn a_change_that_a_late_subscription_missed_is_told_once_it_is_in_place() {
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let place = Place::new("eras-late");
        let gateway = place.serve(json!({ "a": deaf_at_first(server) })).await;
        let client = person(&gateway, Revision::V2025_11_25).await;
        client.list_resources().await.unwrap();
        let readme = "demo://readme".to_owned();
        let filter = SubscriptionFilter::new().resource_subscriptions(vec![readme.clone()]);
        let mut listener = client.listen(filter).await.unwrap();
        text(&client, "a.touch", json!({ "uri": readme })).await;
        // Nothing changes from now on.
        text(&client, "a.echo", json!({ "text": "go on" })).await;
        let heard = tokio::time::timeout(PATIENCE, listener.next()).await;
        assert_eq!(heard.ok().flatten(), Some(Change::Resource(readme)), "{server}");
    }
}
