//! Two replicas of a gateway answer as one.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use trunkline_store::suite::Switched;
use trunkline_store::{Memory, Store};
use trunkline_transport::Limits;
use trunkline_transport::http::SharedSessions;
use trunkline_transport::http::forward::Forward;

use super::*;
use crate::cache::Cache;
use crate::fleet::Fleet;
use crate::placement::FOR_CALLER;
use crate::policy::pins::{Approval, Part};

const RATED: &str = "
gateway:
  rates: [{ principals: [ann], perMinute: 6, burst: 5 }]
  rules: [{ tools: ['a.push'], effect: ask }]
mcpServers:
  a: { url: 'http://127.0.0.1:9/mcp' }
";

const SINGLETON: &str = "
mcpServers:
  a: { url: 'http://127.0.0.1:9/mcp', strategy: singleton }
";

/// A store, and a switch that takes it away.
fn switched() -> (Arc<AtomicBool>, Arc<dyn Store>) {
    let is_away = Arc::new(AtomicBool::default());
    let switch = Arc::clone(&is_away);
    let is_switched = move || switch.load(Ordering::Relaxed);
    (is_away, Arc::new(Switched::new(Arc::default(), is_switched)))
}

/// Two replicas, and a switch that takes their store away.
async fn pair() -> (Arc<AtomicBool>, [Gateway; 2]) {
    let (is_away, store) = switched();
    let mut gateways = Vec::new();
    for me in ["first", "second"] {
        let settings = Settings {
            store: Arc::clone(&store),
            pins: Some("unused".into()),
            fleet: Some(Fleet::new(Arc::clone(&store), vec![[7; 32]], me)),
            ..fixture::settings()
        };
        gateways.push(Gateway::open(fixture::plan(RATED), settings).await.unwrap());
    }
    let Ok(gateways) = gateways.try_into() else { unreachable!("there are two") };
    (is_away, gateways)
}

async fn offer(gateway: &Gateway, description: &str) {
    let server = Arc::clone(&gateway.0.active_plan().servers["a"]);
    gateway.0.take_over(&server, offers(description)).await;
}

/// Waits until something holds that another replica brings about.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    assert!(waited.is_ok(), "{what}");
}

fn why(outcome: &Outcome) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(error) if error.data.is_none() => error.message.clone(),
        Err(_) => reason(outcome),
    }
}

#[tokio::test]
async fn a_rate_counts_calls_at_all_replicas_together() {
    let (is_away, [a, b]) = pair().await;
    offer(&a, "l").await;
    offer(&b, "l").await;
    let log = || json!({ "name": "a.log" });
    let mut through = 0;
    for gateway in [&a, &b, &b, &a, &b, &a, &a, &b] {
        let told = call(gateway, "ann", "tools/call", log()).await;
        through += usize::from(why(&told) != "rate_limited");
    }
    assert_eq!(through, 5, "the burst");
    let told = call(&b, "bob", "tools/call", log()).await;
    assert_ne!(why(&told), "rate_limited", "each principal has its own");
    is_away.store(true, Ordering::Relaxed);
    let told = call(&a, "ann", "tools/call", log()).await;
    assert_eq!(why(&told), "store_unavailable", "it is not guessed");
    let data = told.unwrap_err().data.unwrap().to::<Value>().unwrap();
    assert_eq!((&data["done"], &data["retryAfterMs"]), (&"no".into(), &1000.into()), "{data}");
    let told = call(&a, "bob", "tools/call", log()).await;
    assert_ne!(why(&told), "store_unavailable", "no rate concerns this one");
}

#[tokio::test]
async fn an_approval_is_good_once_at_whatever_replica() {
    let (is_away, [a, b]) = pair().await;
    offer(&a, "l").await;
    offer(&b, "l").await;
    let asked = call(&a, "bob", "tools/call", json!({ "name": "a.push" })).await.unwrap();
    let asked = asked.to::<Value>().unwrap();
    let answered = || {
        json!({
            "name": "a.push",
            "requestState": asked["requestState"],
            "inputResponses": { "approve": { "action": "accept", "content": { "approve": true } } },
        })
    };
    is_away.store(true, Ordering::Relaxed);
    let told = call(&b, "bob", "tools/call", answered()).await;
    assert_eq!(why(&told), "store_unavailable");
    is_away.store(false, Ordering::Relaxed);
    let told = call(&b, "eve", "tools/call", answered()).await;
    assert_eq!(why(&told), "not_approved", "of another principal");
    let told = call(&b, "bob", "tools/call", answered()).await;
    let why_not = why(&told);
    assert!(
        ["handshake_failed", "backoff"].contains(&&*why_not),
        "approved; the server is not there: {why_not}"
    );
    for gateway in [&a, &b] {
        let told = call(gateway, "bob", "tools/call", answered()).await;
        assert_eq!(why(&told), "not_approved", "twice");
    }
}

#[tokio::test]
async fn lists_that_one_replica_learns_are_shown_by_all() {
    let (_, [a, b]) = pair().await;
    let shown = |gateway: &Gateway| {
        let lists = gateway.0.active_plan().servers["a"].lists();
        lists.map(|it| it.etag().to_owned())
    };
    for description in ["l", "m"] {
        offer(&a, description).await;
        until("the other has them", || shown(&b) == shown(&a)).await;
    }
}

#[tokio::test]
async fn a_replica_that_is_asked_for_the_lists_of_its_singleton_answers_when_the_store_has_them() {
    let ((is_away, store), keys) = (switched(), vec![[7; 32]]);
    let forward = Forward::new(&keys, &[], &Limits::default()).unwrap();
    let sessions = SharedSessions::new(Arc::new(fixture::Away("first")), &keys, forward);
    let settings = Settings {
        store: Arc::clone(&store),
        fleet: Some(Fleet::new(Arc::clone(&store), keys, "first")),
        sessions: Some(sessions),
        ..fixture::settings()
    };
    let gateway = Gateway::open(fixture::plan(SINGLETON), settings).await.unwrap();
    let server = Arc::clone(&gateway.0.active_plan().servers["a"]);
    // It has the lists already, and the store does not.
    is_away.store(true, Ordering::Relaxed);
    offer(&gateway, "l").await;
    is_away.store(false, Ordering::Relaxed);
    let reader = Cache::new(store);
    assert_eq!(reader.load(&server.plan().fingerprint()).await, None);
    let sealed = server.placement.as_ref().unwrap().seal_caller("first", None);
    let asks = call_of(Attached::default(), "tools/list", json!({}));
    let asks = Call { meta: Some(Json::of(&json!({ FOR_CALLER: sealed }))), ..asks };
    let view = gateway.0.view(Selector::All);
    let told = call_placed(&gateway.0, &view, "a", asks, &ConversationHandle::unheard());
    let Answer::Later(told) = told else { panic!("it is asked for lists") };
    told.await.unwrap();
    assert_eq!(reader.load(&server.plan().fingerprint()).await, Some(offers("l")));
}

#[tokio::test]
async fn the_first_replica_brings_the_pins_of_its_file() {
    let folder = Folder::new();
    let path = folder.join("pins.json");
    let alone = open(settings(Some(path.clone()))).await;
    offer(&alone, "l").await;
    let shared: Arc<dyn Store> = Arc::new(Memory::default());
    let fleet = Some(Fleet::new(Arc::clone(&shared), vec![[7; 32]], "first"));
    let joined = open(Settings { store: shared, fleet, ..settings(Some(path)) }).await;
    offer(&joined, "another").await;
    let held = joined.0.pins.as_ref().unwrap().held("a");
    assert_eq!(held.len(), 1, "it differs from what was pinned before: {held:?}");
}

#[tokio::test]
async fn a_pin_and_its_approval_hold_at_all_replicas() {
    let (_, [a, b]) = pair().await;
    offer(&a, "l").await;
    let held = |gateway: &Gateway| {
        let pins = gateway.0.pins.as_ref().unwrap();
        pins.held("a").into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    offer(&b, "another").await;
    assert_eq!(held(&b), ["log"], "it differs from what the other replica pinned");
    until("the other took the lists over", || held(&a) == ["log"]).await;
    let pins = b.0.pins.as_ref().unwrap();
    let found = pins.held("a").remove(0);
    let approval = Approval { kind: Part::Tool, name: "log".to_owned(), digest: found.seen };
    pins.approve("a", &[approval], &[]).await.unwrap();
    assert_eq!(held(&b), [""; 0]);
    until("the other knows of the approval", || held(&a).is_empty()).await;
}
