//! Many at once: clients that only look, reloads under load, and the end with calls in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use trunkline_testkit::repeats;

use super::place::{NOTHING, Place, SOON, until, write};

#[tokio::test]
async fn show5_ten_servers_with_five_clients_each_need_no_process() {
    let place = Place::new("show5");
    let mut servers = json!({});
    for at in 0..10 {
        let name = format!("s{at}");
        servers[&name] = place.fake(&name, &[], json!({}));
    }
    let gateway = place.serve(servers).await;
    gateway.settled().await;
    let mut clients = Vec::new();
    for at in 0..50 {
        clients.push(gateway.client_at(&format!("/mcp/server/s{}", at / 5)).await);
    }
    clients.push(gateway.client().await);
    for client in &mut clients[..50] {
        assert_eq!(client.tools().await.len(), 14);
        assert_eq!(client.list("prompts").await.0.len(), 2);
        assert_eq!(client.list("resources").await.0.len(), 2);
    }
    assert_eq!(clients[50].tools().await.len(), 140);
    assert_eq!(gateway.told("GET /v1/status").await["clients"], 51);
    assert_eq!(place.log().running(), NOTHING, "no process for any of them");
    assert_eq!(children_of(gateway.pid()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn show8_reloads_under_load_fail_nobody() {
    let place = Place::new("show8-reload");
    let catalog = |turn: usize| {
        let is_odd = turn % 2 == 1;
        let shown = if is_odd { json!(["pid", "echo"]) } else { json!(["*"]) };
        let stage = (turn / 4).to_string();
        json!({ "mcpServers": {
            "a": place.fake("a", &[], json!({ "idleSeconds": 300 + turn % 2 })),
            "b": place.fake("b", &["--stderr", &stage], json!({})),
            "c": place.fake("c", &[], json!({ "exposeTools": shown })),
        } })
    };
    place.write(&catalog(0));
    let gateway = place.open("127.0.0.1:0").await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let (a, c) = (client.pid("a.pid").await, client.pid("c.pid").await);
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    let each = Duration::from_millis(30);
    for at in 0..6 {
        let mut caller = gateway.client().await;
        let (stop, made) = (Arc::clone(&stop), Arc::clone(&made));
        callers.spawn(async move {
            let tool = ["a.echo", "b.echo", "c.echo"][at % 3];
            let mut ticks = tokio::time::interval(each);
            while !stop.load(Ordering::Acquire) {
                ticks.tick().await;
                let text = format!("{at} {}", made.fetch_add(1, Ordering::AcqRel));
                let said = caller.call(tool, json!({ "text": text })).await;
                assert_eq!(said, Ok(text), "{tool}");
            }
        });
    }
    let began = Instant::now();
    let (mut turn, mut good, mut bad) = (0, 0, 0);
    while began.elapsed() < Duration::from_secs(repeats(4, 30) as u64) {
        let before = gateway.told("GET /v1/status").await["lastReload"].clone();
        if turn % 3 == 2 {
            write(&place.path("catalog.json"), "mcpServers: { a: { command: 3, strategy: [] }");
        } else {
            place.write(&catalog(turn));
        }
        turn += 1;
        until("the catalog to be read", SOON, async || {
            gateway.told("GET /v1/status").await["lastReload"] != before
        })
        .await;
        match gateway.told("GET /v1/status").await["lastReload"]["ok"].as_bool() {
            Some(true) => good += 1,
            _ => bad += 1,
        }
    }
    stop.store(true, Ordering::Release);
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    assert!(good >= 3 && bad >= 1, "{good} good and {bad} bad catalogs were read");
    assert_eq!(
        (client.pid("a.pid").await, client.pid("c.pid").await),
        (a, c),
        "they keep their processes"
    );
    let rate = made.load(Ordering::Acquire) as f64 / began.elapsed().as_secs_f64();
    assert!(rate > 100.0, "{rate} calls a second are no load");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn show8_all_calls_in_flight_are_answered_at_the_end() {
    let place = Place::new("show8-term");
    let keys = json!({ "maxConcurrent": 100, "maxInstances": 4 });
    let mut gateway = place.serve(json!({ "a": place.fake("a", &[], keys) })).await;
    gateway.settled().await;
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let mut client = gateway.client().await;
        for _ in 0..50 {
            calls.spawn(client.call("a.slow", json!({ "ms": 2500 })));
        }
    }
    until("400 calls to arrive", SOON, async || place.log().of("call").len() == 400).await;
    gateway.terminate();
    let mut answered = 0;
    while let Some(said) = calls.join_next().await {
        assert_eq!(said.unwrap(), Ok("slept".to_owned()));
        answered += 1;
    }
    assert_eq!(answered, 400);
    let ended = tokio::time::timeout(SOON, gateway.process.wait()).await.unwrap().unwrap();
    assert!(ended.success(), "{ended}");
    assert_eq!(place.log().running(), NOTHING, "and nothing is left");
}

/// How many processes a process has started that are there.
fn children_of(pid: u32) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = all.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    let parent =
        |stat: String| -> Option<u32> { stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok() };
    stats.filter_map(parent).filter(|it| *it == pid).count()
}
