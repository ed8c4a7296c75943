//! How many processes there are, and how many calls each has at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::place::{Place, SOON, Said, reason, until, write};

#[tokio::test]
async fn b05_a_server_grows_with_its_calls_up_to_its_limit() {
    let place = Place::new("b05");
    let gateway = place
        .serve(json!({
            "a": place.fake("a", &[], json!({ "maxConcurrent": 1, "maxInstances": 8 })),
            "capped": place.fake("capped", &[], json!({ "maxConcurrent": 1, "maxInstances": 2 })),
            "two": place.fake("two", &[], json!({ "maxConcurrent": 2, "maxInstances": 2 })),
        }))
        .await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let said = client.at_once(3, "a.slow", json!({ "ms": 1000 })).await;
    assert!(said.iter().all(Result::is_ok), "{said:?}");
    assert_eq!(place.running("a").len(), 3, "one for each");
    let said = client.at_once(3, "capped.slow", json!({ "ms": 300 })).await;
    assert!(said.iter().all(Result::is_ok), "{said:?}");
    assert_eq!(place.running("capped").len(), 2, "no more than there may be");
    assert_eq!((place.most_in_flight("a"), place.most_in_flight("capped")), (1, 1));

    // Three at once need two; from then on they take turns, and the one with less to do is taken.
    let said = client.at_once(3, "two.slow", json!({ "ms": 500 })).await;
    assert!(said.iter().all(Result::is_ok), "{said:?}");
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(client.pid("two.pid").await);
    }
    assert!(turns[0] != turns[1] && turns[..2] == turns[2..], "round robin: {turns:?}");
    let busy = client.spawn("two.slow", json!({ "ms": 1500 }));
    let slows = |place: &Place| {
        place
            .log()
            .of("call")
            .into_iter()
            .filter(|it| it["name"] == "two" && it["tool"] == "slow")
            .collect::<Vec<_>>()
    };
    until("the slow call to arrive", SOON, async || slows(&place).len() == 4).await;
    let loaded = slows(&place)[3]["pid"].as_u64().unwrap() as u32;
    for _ in 0..3 {
        assert_ne!(client.pid("two.pid").await, loaded, "least loaded first");
    }
    assert_eq!(busy.await.unwrap(), Ok("slept".to_owned()));
    assert!(place.most_in_flight("two") <= 2);
}

#[tokio::test]
async fn b06_calls_that_come_together_share_one_start() {
    let place = Place::new("b06");
    let stop = place.text("stop");
    let gateway = place
        .serve(json!({
            "a": place.fake("a", &["--start-delay", "300"], json!({ "maxConcurrent": 50 })),
            "bad": place.fake("bad", &["--start-delay", "300", "--exit-while", &stop], json!({})),
        }))
        .await;
    gateway.settled().await;
    let before = place.starts("a").len();
    let mut client = gateway.client().await;
    let said = client.at_once(50, "a.echo", json!({ "text": "x" })).await;
    assert!(said.iter().all(|it| it.as_deref() == Ok("x")), "{said:?}");
    assert_eq!(place.starts("a").len(), before + 1);

    write(&place.path("stop"), "");
    let before = place.starts("bad").len();
    let said = client.at_once(10, "bad.echo", json!({ "text": "x" })).await;
    for one in &said {
        assert!(["handshake_failed", "backoff"].contains(&reason(one)), "{one:?}");
    }
    // One start, which may try a second time in case the server speaks another revision by now.
    let tried = place.starts("bad").len() - before;
    assert!((1..=2).contains(&tried), "all waited for the same start, not {tried}");
}

#[tokio::test]
async fn b09_persistent_and_singleton_servers_stay() {
    let place = Place::new("b09");
    let keys = |strategy: &str| json!({ "strategy": strategy, "idleSeconds": 0.5 });
    let mut single = keys("singleton");
    single["maxConcurrent"] = json!(4);
    single["timeouts"] = json!({ "acquireSeconds": 1 });
    let gateway = place
        .serve(json!({
            "less": place.fake("less", &[], keys("stateless")),
            "kept": place.fake("kept", &[], keys("persistent")),
            "single": place.fake("single", &[], single),
        }))
        .await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let kept = client.pid("kept.pid").await;
    let said = client.at_once(100, "single.pid", json!({})).await;
    let pids: BTreeSet<_> = said.iter().map(|it| it.clone().unwrap()).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_eq!(place.running("single").len(), 1);
    assert!(place.most_in_flight("single") <= 4);

    // When it is full, one more waits until its deadline.
    let slow: Vec<_> = (0..4).map(|_| client.spawn("single.slow", json!({ "ms": 2500 }))).collect();
    until("four calls to arrive", SOON, async || {
        place.log().of("call").iter().filter(|it| it["tool"] == "slow").count() == 4
    })
    .await;
    let began = Instant::now();
    let late: Said = client.call("single.pid", json!({})).await;
    assert_eq!(reason(&late), "busy");
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    for one in slow {
        assert_eq!(one.await.unwrap(), Ok("slept".to_owned()));
    }

    client.pid("less.pid").await;
    until("the stateless one to go", SOON, async || place.running("less").is_empty()).await;
    assert_eq!(place.running("kept"), [kept], "it was idle for longer");
    assert_eq!(place.running("single").len(), 1);
    assert_eq!(client.pid("kept.pid").await, kept);
}
