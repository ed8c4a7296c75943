//! The suite on a real Redis: one server, sentinels with a failover, a cluster of three.

#![expect(clippy::disallowed_methods, reason = "The time of a Redis cannot be moved.")]

use std::time::Duration;

use tokio::task::JoinSet;
use trunkline_store::suite::{self, Subject};
use trunkline_store::{
    Bounds, Expect, Heard, Redis, RedisAddress, RedisSettings, Store, StoreError, Swap,
};
use trunkline_testkit::redis::{Servers, cluster, sentinels, single};

fn bounds() -> Bounds {
    Bounds::default().value(1 << 16)
}

fn open(servers: &Servers, prefix: &str) -> Redis {
    let address = RedisAddress::parse(&servers.address()).expect("an address");
    let settings = RedisSettings::new(address).prefix(prefix).bounds(bounds());
    Redis::open(settings.patience(Duration::from_secs(20))).expect("a store")
}

/// Every promise, each under a prefix of its own and all at once: the time of a Redis cannot be moved, so the cases wait.
async fn keeps_every_promise(servers: Servers) {
    let mut cases = JoinSet::new();
    for (number, case) in suite::cases().iter().enumerate() {
        let store = open(&servers, &format!("case-{number}:"));
        // the sleep is the subject: nobody can move the clock of a Redis
        let subject = Subject::new(store, bounds(), tokio::time::sleep).unit(UNIT);
        cases.spawn(async move { case.check(subject).await.map_err(|why| (case.name(), why)) });
    }
    let failed: Vec<_> = cases.join_all().await.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Things live for ten of these and are looked at after eight, so a machine may stand still for twice this.
const UNIT: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_keeps_every_promise() {
    keeps_every_promise(single()).await;
}

#[tokio::test]
async fn one_server_keeps_every_promise_on_one_thread() {
    keeps_every_promise(single()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_every_promise() {
    keeps_every_promise(cluster()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_keep_every_promise() {
    keeps_every_promise(sentinels()).await;
}

#[tokio::test]
async fn a_failover_loses_no_confirmed_write_and_gives_no_version_again() {
    let servers = sentinels();
    let store = open(&servers, "failover:");
    let mut listener = store.listen("news").await.expect("the primary is there");
    let before = store.put("a", b"before", None).await.expect("the primary is there");
    let lease = store.lease("work", Duration::from_secs(3_600)).await.expect("it is there");
    let lease = lease.expect("nobody has it");
    servers.wait_for_replicas();
    servers.kill_primary();

    // A write may fail while there is no primary, and says so; then it is possible again.
    let after = loop {
        match store.put("a", b"after", None).await {
            Ok(version) => break version,
            Err(StoreError::Unavailable(why)) => {
                assert!(why.contains("redis+sentinel://"), "{why}")
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert!(after > before);
    assert_eq!(store.lease("work", Duration::from_secs(1)).await, Ok(None));
    assert_eq!(store.renew(&lease, Duration::from_secs(60)).await, Ok(true));
    assert_eq!(listener.next().await, Some(Heard::Lost(1)));
    store.publish("news", b"on").await.expect("the new primary is there");
    assert_eq!(listener.next().await, Some(Heard::Message(b"on".as_slice().into())));
}

#[tokio::test]
async fn a_redis_that_went_away_is_an_error_and_its_return_is_not() {
    let mut servers = single();
    let address = RedisAddress::parse(&servers.address()).expect("an address");
    let settings = RedisSettings::new(address).patience(Duration::from_secs(2));
    let store = Redis::open(settings).expect("a store");
    store.put("a", b"1", None).await.expect("it is there");
    let mut listener = store.listen("news").await.expect("it is there");

    servers.stop();
    let refused = store.put("a", b"2", None).await.expect_err("it is away");
    let StoreError::Unavailable(why) = refused else { panic!("{refused}") };
    assert!(
        why.starts_with("Redis at redis://127.0.0.1:") && why.contains("check that it runs"),
        "{why}"
    );
    assert!(matches!(store.get("a").await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.listen("other").await, Err(StoreError::Unavailable(_))));

    servers.start();
    store.put("a", b"3", None).await.expect("it is back");
    assert_eq!(store.get("a").await.expect("it is back").expect("an entry").value[..], *b"3");
    assert_eq!(listener.next().await, Some(Heard::Lost(1)));
    store.publish("news", b"on").await.expect("it is back");
    assert_eq!(listener.next().await, Some(Heard::Message(b"on".as_slice().into())));
}

#[tokio::test]
async fn a_frozen_redis_ends_a_call_in_time_and_thawed_serves_on() {
    let servers = single();
    let address = RedisAddress::parse(&servers.address()).expect("an address");
    let settings = RedisSettings::new(address).patience(Duration::from_secs(2));
    let store = Redis::open(settings).expect("a store");
    store.put("a", b"1", None).await.expect("it is there");
    servers.freeze();
    let refused = store.put("a", b"2", None).await.expect_err("it is frozen");
    assert!(refused.to_string().contains("no answer in time"), "{refused}");
    servers.thaw();
    loop {
        // What it was asked while it stood still may come first.
        match store.put("a", b"3", None).await {
            Ok(_) => break,
            Err(StoreError::Unavailable(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    let entry = store.get("a").await.expect("it is back").expect("an entry");
    assert_eq!(entry.value[..], *b"3");
    let swap = store.swap("a", Expect::Version(entry.version), b"4", None).await;
    assert!(matches!(swap, Ok(Swap::Done(_))), "{swap:?}");
}

#[tokio::test]
async fn a_full_redis_refuses_and_keeps_what_it_has() {
    let servers = single();
    servers.command(&["CONFIG", "SET", "maxmemory", "3mb"]);
    let store = open(&servers, "full:");
    let mut kept = 0;
    let refused = loop {
        match store.put(&format!("{kept}"), &[7; 60_000], None).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1_000, "3 MB hold no 60 MB");
    };
    assert!(matches!(refused, StoreError::Full { what: "bytes", .. }), "{refused:?}");
    let page = store.scan("", None, 1_000).await.expect("a page");
    assert_eq!(page.items.len(), kept);
    for item in &page.items {
        assert_eq!(store.delete(&item.key).await, Ok(true));
    }
    store.put("x", &[7; 50_000], None).await.expect("there is room again");
}

#[tokio::test]
async fn a_wrong_password_is_told_and_never_shown() {
    let servers = single();
    servers.command(&["CONFIG", "SET", "requirepass", "right"]);
    let open = |credentials: &str| {
        let address = servers.address().replace("://", &format!("://{credentials}"));
        let address = RedisAddress::parse(&address).expect("an address");
        Redis::open(RedisSettings::new(address).patience(Duration::from_secs(5))).expect("a store")
    };
    let refused = open(":wrong-secret@").ping().await.expect_err("it is wrong").to_string();
    assert!(refused.contains("Redis at redis://127.0.0.1:"), "{refused}");
    assert!(!refused.contains("wrong-secret"), "{refused}");
    open(":right@").ping().await.expect("it is right");
    assert!(!format!("{:?}", open(":right@")).contains("right"));
}

#[tokio::test]
async fn expired_entries_leave_the_index_as_others_come() {
    let servers = single();
    let store = open(&servers, "churn:");
    for number in 0..400 {
        let key = number.to_string();
        store.put(&key, b"1", Some(Duration::from_millis(1))).await.expect("it is there");
    }
    while store.get("399").await.expect("it is there").is_some() {}
    for number in 0..100 {
        store.put(&format!("new/{number}"), b"1", None).await.expect("it is there");
    }
    let indexed: usize = (0..16)
        .map(|bucket| servers.command(&["ZCARD", &format!("churn:{{{bucket}}}i")]))
        .map(|count| count.trim().parse::<usize>().expect("a number"))
        .sum();
    assert_eq!(indexed, 100);
}
