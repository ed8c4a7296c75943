//! What happens when servers go, hang, crash or do not start.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::place::{Place, SOON, reason, until, write};

#[tokio::test]
async fn b11_a_server_that_is_removed_finishes_its_calls() {
    let place = Place::new("b11");
    let stays = place.fake("stays", &[], json!({}));
    let gateway = place
        .serve(json!({
            "stays": stays,
            "kind": place.fake("kind", &[], json!({ "drainTimeoutSeconds": 30 })),
            "deaf": place.fake("deaf", &["--ignore-eof", "--ignore-term"], json!({ "drainTimeoutSeconds": 0.5 })),
        }))
        .await;
    until("all to be known", SOON, async || {
        let status = gateway.told("GET /v1/status").await;
        status["servers"].as_array().unwrap().iter().all(|it| it["tools"].is_number())
    })
    .await;
    let mut client = gateway.client().await;
    let (kind, deaf) = (client.pid("kind.pid").await, client.pid("deaf.pid").await);
    let slow = client.spawn("kind.slow", json!({ "ms": 1500 }));
    let hung = client.spawn("deaf.hang", json!({}));
    until("both calls to arrive", SOON, async || {
        let calls = place.log().of("call");
        ["slow", "hang"].iter().all(|tool| calls.iter().any(|it| it["tool"] == *tool))
    })
    .await;
    place.write(&json!({ "mcpServers": { "stays": place.fake("stays", &[], json!({})) } }));
    until("the catalog to be followed", SOON, async || {
        gateway.told("GET /v1/status").await["servers"].as_array().unwrap().len() == 1
    })
    .await;
    let refused = client.call("kind.pid", json!({})).await;
    assert_eq!(reason(&refused), "unknown_tool", "nothing new is let in");

    assert_eq!(slow.await.unwrap(), Ok("slept".to_owned()), "what was begun is finished");
    let cut = hung.await.unwrap();
    assert!(cut.is_err(), "past its time it is cut off: {cut:?}");
    until("both to be gone", SOON, async || {
        place.running("kind").is_empty() && place.running("deaf").is_empty()
    })
    .await;
    let order = |pid: u32| -> Vec<String> {
        let all = place.log().all().into_iter().filter(|it| it["pid"] == pid);
        let all = all.filter_map(|it| Some(it["event"].as_str()?.to_owned()));
        all.filter(|it| ["eof", "signal", "exit"].contains(&it.as_str())).collect()
    };
    assert_eq!(order(kind), ["eof", "exit"], "stdin is closed, and it goes by itself");
    assert_eq!(
        order(deaf),
        ["eof", "signal"],
        "stdin, then TERM, then KILL, of which nobody tells"
    );
}

#[tokio::test]
async fn b12_hung_and_crashed_servers_are_replaced() {
    let place = Place::new("b12");
    let probe = json!({ "probe": { "everySeconds": 0.5, "timeoutSeconds": 0.5 } });
    let gateway = place
        .serve(json!({
            "hung": place.fake("hung", &["--hang-on", "ping"], probe),
            "frail": place.fake("frail", &["--stderr", "I was frail"], json!({})),
        }))
        .await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    let hung = client.pid("hung.pid").await;
    let began = Instant::now();
    until("the probe to find it", SOON, async || {
        let known = gateway.server("hung").await;
        let found = known["instances"].as_array().unwrap().iter();
        found.filter(|it| it["state"] == "ready").count() == 0
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_ne!(client.pid("hung.pid").await, hung);
    until("the hung one to be gone", SOON, async || !place.running("hung").contains(&hung)).await;

    let crash = client.call("frail.crash", json!({ "code": 3 })).await;
    assert_eq!(reason(&crash), "outcome_unknown");
    let told = crash.unwrap_err();
    assert!(told["data"]["exit"].as_str().is_some_and(|it| it.contains('3')), "{told}");
    // What it wrote is the operator's.
    assert!(!told.to_string().contains("I was frail"), "{told}");
    let logs = gateway.admin("GET /v1/logs?server=frail").await.1;
    assert!(logs.contains("I was frail"), "{logs}");
    let next = client.pid("frail.pid").await;
    super::place::signal("KILL", next);
    until("the dead one to be noticed", SOON, async || {
        gateway.server("frail").await["instances"] == json!([])
    })
    .await;
    assert_ne!(client.pid("frail.pid").await, next);
}

#[tokio::test]
async fn b13_a_server_that_does_not_start_is_tried_ever_more_seldom() {
    let place = Place::new("b13");
    write(&place.path("stop"), "");
    let stop = place.text("stop");
    let retry = json!({ "baseSeconds": 0.3, "maxSeconds": 0.6, "tries": 4 });
    let keys = json!({ "activation": "always-on", "retry": retry });
    let gateway = place
        .serve(json!({
            "bad": place.fake("bad", &["--exit-while", &stop, "--stderr", "no luck today"], keys),
            "missing": { "command": "/nowhere/at-all", "activation": "always-on" },
        }))
        .await;
    // Its status tells of the attempts.
    until("an attempt to be told", SOON, async || {
        let status = gateway.server("bad").await;
        status["attempt"].as_u64() > Some(0)
            && status["nextRetryMs"].as_u64().is_some()
            && status["lastError"].as_str().is_some_and(|it| it.contains("no luck today"))
    })
    .await;
    let state = async |server: &str| gateway.server(server).await["state"].clone();
    until("a missing program to be given up", SOON, async || state("missing").await == "suspended")
        .await;
    assert_eq!(gateway.server("missing").await["attempt"], 1, "at once");
    until("the other to be given up", SOON, async || state("bad").await == "suspended").await;

    let at: Vec<u64> = place.log().of("start").iter().filter_map(|it| it["at"].as_u64()).collect();
    let pauses: Vec<u64> = at.windows(2).map(|it| it[1] - it[0]).filter(|it| *it > 200).collect();
    assert!(pauses.len() >= 3, "{pauses:?}");
    // 0.3 s, 0.6 s, 0.6 s; a process is some milliseconds old before it can write its start down.
    assert!(pauses[0] >= 250 && pauses[1] >= 550 && pauses[2] >= 550, "{pauses:?}");
    assert!(pauses[2] < 1800, "no longer than the longest: {pauses:?}");
    let tried = at.len();
    let mut client = gateway.client_at("/mcp/server/bad").await;
    let status: Value = gateway.server("bad").await;
    assert!(status["attempt"].as_u64() >= Some(4), "{status}");
    assert_eq!(place.log().of("start").len(), tried, "nobody tries any more");

    std::fs::remove_file(place.path("stop")).unwrap();
    gateway.told("POST /v1/servers/bad/retry").await;
    until("it to run", SOON, async || state("bad").await == "ready").await;
    assert_eq!(gateway.server("bad").await["attempt"], 0);
    until("its tools to be known", SOON, async || gateway.server("bad").await["tools"] == 14).await;
    assert_eq!(client.call("echo", json!({ "text": "well" })).await, Ok("well".to_owned()));
}
