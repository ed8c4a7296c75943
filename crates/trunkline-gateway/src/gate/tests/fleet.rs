//! Two replicas of a gateway answer as one.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use trunkline_store::{
    Bucket, Capabilities, Entry, Expect, Lease, Listener, Memory, Page, Pending, Store, StoreError,
    Swap, Version,
};

use super::*;
use crate::fleet::Fleet;
use crate::policy::pins::{Approval, Part};

const RATED: &str = "
gateway:
  rates: [{ principals: [ann], perMinute: 6, burst: 5 }]
  rules: [{ tools: ['a.push'], effect: ask }]
mcpServers:
  a: { url: 'http://127.0.0.1:9/mcp' }
";

/// A store that can be switched away.
#[derive(Default)]
struct Switched {
    memory: Memory,
    is_away: AtomicBool,
}

impl Switched {
    fn or<'a, T>(&'a self, done: Pending<'a, T>) -> Pending<'a, T>
    where
        T: Send + 'a,
    {
        match self.is_away.load(Ordering::Relaxed) {
            false => done,
            true => Box::pin(async { Err(StoreError::Unavailable("It is away.".to_owned())) }),
        }
    }
}

impl Store for Switched {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        self.or(self.memory.get(key))
    }
    fn put<'a>(&'a self, k: &'a str, v: &'a [u8], t: Option<Duration>) -> Pending<'a, Version> {
        self.or(self.memory.put(k, v, t))
    }
    fn swap<'a>(
        &'a self,
        key: &'a str,
        expect: Expect,
        value: &'a [u8],
        ttl: Option<Duration>,
    ) -> Pending<'a, Swap> {
        self.or(self.memory.swap(key, expect, value, ttl))
    }
    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        self.or(self.memory.delete(key))
    }
    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Option<Duration>) -> Pending<'a, i64> {
        self.or(self.memory.count(key, by, ttl))
    }
    fn take<'a>(&'a self, k: &'a str, b: &'a [Bucket]) -> Pending<'a, Result<(), Duration>> {
        self.or(self.memory.take(k, b))
    }
    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        self.or(self.memory.lease(name, ttl))
    }
    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        self.or(self.memory.renew(lease, ttl))
    }
    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        self.or(self.memory.release(lease))
    }
    fn scan<'a>(&'a self, p: &'a str, after: Option<&'a str>, most: usize) -> Pending<'a, Page> {
        self.or(self.memory.scan(p, after, most))
    }
    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        self.or(self.memory.publish(channel, message))
    }
    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        self.or(self.memory.listen(channel))
    }
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }
}

async fn pair() -> (Arc<Switched>, [Gateway; 2]) {
    let store = Arc::new(Switched::default());
    let mut gateways = Vec::new();
    for me in ["first", "second"] {
        let shared: Arc<dyn Store> = store.clone();
        let settings = Settings {
            store: Arc::clone(&shared),
            pins: Some("unused".into()),
            fleet: Some(Fleet::new(shared, vec![[7; 32]], me)),
            ..fixture::settings()
        };
        gateways.push(Gateway::open(fixture::plan(RATED), settings).await.unwrap());
    }
    let Ok(gateways) = gateways.try_into() else { unreachable!("there are two") };
    (store, gateways)
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
    let (store, [a, b]) = pair().await;
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
    store.is_away.store(true, Ordering::Relaxed);
    let told = call(&a, "ann", "tools/call", log()).await;
    assert_eq!(why(&told), "store_unavailable", "it is not guessed");
    let data = told.unwrap_err().data.unwrap().to::<Value>().unwrap();
    assert_eq!((&data["done"], &data["retryAfterMs"]), (&"no".into(), &1000.into()), "{data}");
    let told = call(&a, "bob", "tools/call", log()).await;
    assert_ne!(why(&told), "store_unavailable", "no rate concerns this one");
}

#[tokio::test]
async fn an_approval_is_good_once_at_whatever_replica() {
    let (store, [a, b]) = pair().await;
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
    store.is_away.store(true, Ordering::Relaxed);
    let told = call(&b, "bob", "tools/call", answered()).await;
    assert_eq!(why(&told), "store_unavailable");
    store.is_away.store(false, Ordering::Relaxed);
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
