//! Hostile connections, and many honest ones: no other client notices.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use trunkline::{Limits, Revision, tool};
use trunkline_testkit::http::{Guest, Line};
use trunkline_testkit::{Dice, repeats};

use crate::http::House;
use crate::server::builder;

const NEWEST: Revision = Revision::V2026_07_28;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_of_requests_are_closed_by_their_limit_while_good_calls_go_on() {
    // A soak test uses the default limits; otherwise the test would take too long.
    let usual = Limits::default();
    let soaks = repeats(0, 1) == 1;
    let (head, body) = match soaks {
        true => (usual.header_read, usual.body_read),
        false => (Duration::from_secs(2), Duration::from_secs(3)),
    };
    let (house, runs) = House::counting(usual.header_read(head).body_read(body)).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let text = guest.text(&asked);
    let end = text.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
    let mut dice = Dice(0x5107);
    let mut halves = JoinSet::new();
    for at in 0..1000 {
        let (cut, limit) = match at % 2 {
            0 => (1 + dice.below(end as u64 - 2) as usize, head),
            _ => (end + dice.below((text.len() - end) as u64) as usize, body),
        };
        let (half, address) = (text[..cut].to_vec(), house.address);
        halves.spawn(async move {
            let mut line = Line::to(address).await;
            line.send(half).await;
            let sent = Instant::now();
            // The test waits longer than these limits, except in a soak test.
            let (status, waited) = closed(&mut line, sent).await;
            (status, waited, limit)
        });
    }
    let good = async {
        let mut slowest = Duration::ZERO;
        for revision in [Revision::V2025_11_25, NEWEST] {
            let mut guest = Guest::open(house.address, revision).await;
            for _ in 0..50 {
                let started = Instant::now();
                assert_eq!(guest.tool("sum", json!({})).await, "3");
                slowest = slowest.max(started.elapsed());
            }
        }
        slowest
    };
    let slowest = good.await;
    assert_eq!(runs.load(SeqCst), 100);
    let mut late = Duration::ZERO;
    while let Some(closed) = halves.join_next().await {
        let (status, waited, limit) = closed.unwrap();
        assert_eq!(status, Some(408));
        assert!(
            waited + Duration::from_millis(50) >= limit,
            "closed after {waited:?} of {limit:?}"
        );
        late = late.max(waited.saturating_sub(limit));
    }
    assert!(late < Duration::from_secs(1 + u64::from(!soaks)), "{late:?} too late");
    assert_eq!(runs.load(SeqCst), 100, "no half was a whole");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

/// What the server sent before it closed the connection, and when it did.
async fn closed(line: &mut Line, since: Instant) -> (Option<u16>, Duration) {
    let head = line.slow_head(Duration::from_secs(120)).await;
    if head.is_some() {
        line.body().await;
        line.hung_up().await;
    }
    (head.map(|it| it.status), since.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_at_once_are_a_thousand_answers() {
    let millis = repeats(300, 3000) as u64;
    let sleep = move || async move {
        // the sleep is the subject
        tokio::time::sleep(Duration::from_millis(millis)).await;
        "slept"
    };
    let limits = Limits::default().in_flight(1000);
    let server = builder().limits(limits).tool(tool("sleep", sleep)).build();
    let house = House::of(&server).await;
    for revision in [Revision::V2025_11_25, NEWEST] {
        let mut guest = Guest::open(house.address, revision).await;
        let mut calls = JoinSet::new();
        for _ in 0..1000 {
            let asked = guest.prepare("tools/call", json!({ "name": "sleep" }));
            let guest = guest.clone();
            calls.spawn(async move {
                let (mut line, head) = guest.post(&asked).await;
                let answer = guest.answer(&asked, &mut line, head).await;
                (answer.message["id"] == asked["id"])
                    && answer.message["result"]["content"][0]["text"] == "slept"
            });
        }
        let mut answered = 0;
        while let Some(right) = calls.join_next().await {
            answered += u32::from(right.unwrap());
        }
        assert_eq!(answered, 1000, "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_never_cross() {
    // All clients use the same ids and the same progress tokens.
    #[derive(trunkline::serde::Deserialize, trunkline::schemars::JsonSchema)]
    struct Nonce {
        nonce: String,
    }
    let echo = async |cx: trunkline::Context, trunkline::Args(it): trunkline::Args<Nonce>| {
        cx.progress(1.0, 2.0).await;
        tokio::task::yield_now().await;
        it.nonce
    };
    let server = builder().tool(tool("echo", echo)).build();
    let house = House::of(&server).await;
    let rounds = repeats(20, 1000);
    let mut clients = JoinSet::new();
    for client in 0..50 {
        let revision = if client % 2 == 0 { Revision::V2025_11_25 } else { NEWEST };
        let address = house.address;
        clients.spawn(async move {
            let mut guest = Guest::open(address, revision).await;
            for round in 0..rounds {
                let nonce = format!("{client}/{round}");
                let params = json!({
                    "name": "echo",
                    "arguments": { "nonce": nonce },
                    "_meta": { "progressToken": round % 3 },
                });
                let answer = guest.call("tools/call", params).await;
                assert_eq!(answer.message["result"]["content"][0]["text"], *nonce);
                assert_eq!(answer.before.len(), 1);
            }
        });
    }
    let mut done = 0;
    while let Some(client) = clients.join_next().await {
        client.unwrap();
        done += 1;
    }
    assert_eq!(done, 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_and_its_cancellation_end_in_one_way_or_the_other() {
    let naps = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = Arc::clone(&naps);
    let nap = move || {
        let at = counter.fetch_add(1, SeqCst);
        async move {
            for _ in 0..at % 7 {
                tokio::task::yield_now().await;
            }
            "rested"
        }
    };
    let server = builder().tool(tool("nap", nap)).build();
    let house = House::of(&server).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let (mut answered, mut silent) = (0, 0);
    for _ in 0..repeats(300, 10_000) {
        let asked = guest.prepare("tools/call", json!({ "name": "nap" }));
        let cancel = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": asked["id"] },
        });
        let (a, b) = tokio::join!(guest.post(&asked), guest.post(&cancel));
        assert_eq!(b.1.status, 202);
        let (mut line, head) = a;
        assert_eq!(head.status, 200);
        let answer = guest.answer(&asked, &mut line, head).await;
        match answer.message.is_null() {
            true => silent += 1,
            false => {
                assert_eq!(answer.message["id"], asked["id"]);
                answered += 1;
            }
        }
    }
    assert_eq!(answered + silent, repeats(300, 10_000));
    // Nothing leaks: the session still accepts as many calls as its limit.
    for _ in 0..100 {
        assert_eq!(guest.tool("nap", json!({})).await, "rested");
    }
}
