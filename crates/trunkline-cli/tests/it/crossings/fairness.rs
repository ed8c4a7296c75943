//! One principal with as many calls, open questions and keys as it likes, and another with one call at a time:
//! the other is served as if it were nearly alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use trunkline_testkit::repeats;

use super::NEW;
use super::person::{Person, token};
use crate::gateway_kit::{Gateway, Place};

/// Servers whose instances all share, are one principal's, or are one key's; each has few places.
const SERVERS: [&str; 3] = ["shared", "own", "kept"];
/// What each server can do at a time.
const PLACES: usize = 4 * 4;
/// How long a call takes, in milliseconds.
const WORK: u64 = 50;
/// Questions that the one never answers.
const QUESTIONS: usize = 64;

/// What the other met at one server.
#[derive(Default)]
struct Met {
    took: Vec<Duration>,
    /// How many calls of the one were answered meanwhile.
    behind: Vec<usize>,
    refused: Vec<Value>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figures are what a soak is run for.
async fn one_with_hundreds_of_calls_does_not_keep_another_waiting() {
    let (calls, crowd) = (repeats(20, 400), repeats(240, 500));
    let place = Place::new("fairness");
    let server = |name: &str, more: Value| {
        let words = place.fake(name, &[]);
        let mut entry = json!({ "command": words[0], "args": words[1..] });
        entry["maxInstances"] = json!(4);
        entry["maxConcurrent"] = json!(PLACES / 4);
        entry["timeouts"] = json!({ "acquireSeconds": 120 });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let people = ["greedy", "modest"].map(|it| json!({ "name": it, "token": token(it) }));
    place.catalog(&json!({
        "mcpServers": {
            "shared": server("shared", json!({ "sharing": "shared" })),
            "own": server("own", json!({})),
            "kept": server("kept", json!({ "strategy": "stateful", "affinity": "meta:example.com/key" })),
        },
        "gateway": { "auth": { "tokens": people } },
    }));
    let gateway = Gateway::start(&place).await;
    let answered: Arc<[AtomicUsize; 3]> = Arc::default();

    let alone = visit(gateway.address, calls, &answered).await;
    let mut others = JoinSet::new();
    for number in 0..QUESTIONS {
        others.spawn(wonder(gateway.address, SERVERS[number % 2]));
    }
    for number in 0..crowd {
        others.spawn(press(gateway.address, number, Arc::clone(&answered)));
    }
    // Until all have come. Where its own questions take every place, its calls wait for itself.
    while answered.iter().map(|it| it.load(Ordering::Relaxed)).sum::<usize>() < 4 * PLACES {
        tokio::task::yield_now().await;
    }
    let beside = visit(gateway.address, calls, &answered).await;
    others.abort_all();

    for ((server, alone), beside) in SERVERS.iter().zip(&alone).zip(&beside) {
        let (one, other) = (percentile(&alone.took, 99), percentile(&beside.took, 99));
        println!(
            "{server}: p50 {:.1?} alone and {:.1?} beside {crowd} calls and {QUESTIONS} open questions, \
             p99 {one:.1?} and {other:.1?}, behind at most {} of them",
            percentile(&alone.took, 50),
            percentile(&beside.took, 50),
            beside.behind.iter().max().copied().unwrap_or_default(),
        );
        assert_eq!(beside.refused, [Value::Null; 0], "{server}");
        // All of those that were in a place may end before one does, and their successors while it works. In
        // the order they came, it would be all that waited: a third of the crowd.
        let behind = percentile(&beside.behind, 50);
        assert!(behind <= 3 * PLACES, "{server}: half of the calls came after {behind} others");
        if repeats(0, 1) == 1 {
            assert!(other <= 2 * one, "{server}: {other:?} is more than twice {one:?}");
        }
    }
}

/// One call after the other at each server.
async fn visit(address: SocketAddr, calls: usize, answered: &[AtomicUsize; 3]) -> [Met; 3] {
    let mut person = Person::open(address, NEW, "modest").await;
    let mut met: [Met; 3] = Default::default();
    for (at, server) in SERVERS.iter().enumerate() {
        // The first starts what is needed.
        for call in 0..=calls {
            let (began, before) = (Instant::now(), answered[at].load(Ordering::Relaxed));
            let said = person.ask("tools/call", work(server, "home")).await;
            if said["result"].is_null() {
                met[at].refused.push(said);
            } else if call > 0 {
                met[at].took.push(began.elapsed());
                met[at].behind.push(answered[at].load(Ordering::Relaxed) - before);
            }
        }
    }
    met
}

/// Calls again and again, each time with another key.
async fn press(address: SocketAddr, number: usize, answered: Arc<[AtomicUsize; 3]>) {
    let mut person = Person::open(address, NEW, "greedy").await;
    let at = number % 3;
    for key in 0.. {
        let said = person.ask("tools/call", work(SERVERS[at], &format!("{number}-{key}"))).await;
        person.forget();
        if said["result"].is_null() {
            // the sleep is the subject: one with more keys than there are instances is told when to come back
            tokio::time::sleep(Duration::from_secs(1)).await;
        } else {
            answered[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Has itself asked, and never answers: once that was given up, anew.
async fn wonder(address: SocketAddr, server: &str) {
    let mut person = Person::open(address, NEW, "greedy").await;
    loop {
        person.call_once(&format!("{server}.ask"), json!({ "message": "Well?" })).await;
        person.forget();
        // the sleep is the subject: somebody who asks again and again
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn work(server: &str, key: &str) -> Value {
    let meta = json!({ "example.com/key": key });
    json!({ "name": format!("{server}.slow"), "arguments": { "ms": WORK }, "_meta": meta })
}

fn percentile<T: Copy + Ord + Default>(of: &[T], percent: usize) -> T {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}
