//! Many callers at one server that keeps dying, and one bad server among good ones: nobody gets another's answer, and
//! nobody suffers for another.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use trunkline::Revision;
use trunkline_testkit::http::Guest;
use trunkline_testkit::repeats;

use crate::gateway_kit::{Caller, Gateway, Heard, Place, signal};

const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

async fn caller(address: SocketAddr, number: usize) -> Caller {
    let mut guest = Guest::new(address, REVISIONS[number % 2]);
    // All can be asked the same, so that one process can serve them all.
    guest.capabilities = json!({});
    guest.shake_hands().await;
    // Everybody's ids are the same.
    guest.last_id = 100;
    Caller::new(guest).await
}

/// What the calls of one client came to.
#[derive(Default)]
struct Tally {
    answered: Vec<String>,
    refused: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Tally {
    /// `text` was said by the caller, and only it can hear it again; `total` is the length of its progress.
    fn note(&mut self, text: String, token: usize, total: usize, heard: &Heard) {
        for said in &heard.before {
            let params = &said["params"];
            let is_own = said["method"] == "notifications/progress"
                && params["progressToken"] == token
                && params["total"] == total;
            if !is_own {
                self.wrong.push(format!("{text} heard {said}"));
            }
        }
        match (heard.text(), heard.reason()) {
            (Some(said), _) if said == text => self.answered.push(text),
            (None, Some(reason)) => *self.refused.entry(reason.to_owned()).or_default() += 1,
            _ => self.wrong.push(format!("{text} got {}", heard.message)),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figures are what a soak is run for.
async fn nobody_gets_the_answer_of_another_while_the_server_is_killed() {
    let (clients, calls) = (repeats(10, 50), repeats(2_000, 50_000));
    let every = Duration::from_millis(repeats(300, 2_000) as u64);
    let place = Place::new("isolation");
    let words = place.fake("pool", &[]);
    place.catalog(&json!({ "mcpServers": { "pool": {
        "command": words[0], "args": words[1..], "maxInstances": 1, "maxConcurrent": 64,
    }}}));
    let gateway = Gateway::start(&place).await;
    let address = gateway.address;
    let done = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        tasks.spawn(async move {
            let mut caller = caller(address, client).await;
            let mut tally = Tally::default();
            for call in 0..calls / clients {
                let text = format!("client {client} call {call}");
                let (tool, total) = match call % 10 {
                    9 => ("pool.progress", client + 1),
                    _ => ("pool.echo", 0),
                };
                let arguments = json!({ "text": text, "steps": total });
                let heard = caller.call(tool, arguments, json!({ "progressToken": call })).await;
                let heard = heard.unwrap_or_else(|| panic!("{text} was not answered"));
                tally.note(text, call, total, &heard);
            }
            tally
        });
    }
    let killing = async {
        let mut killed = 0;
        let mut clock = tokio::time::interval(every);
        clock.tick().await;
        while !done.load(Ordering::Relaxed) {
            clock.tick().await;
            let servers = place.servers();
            killed += servers.len();
            signal("KILL", &servers).await;
        }
        killed
    };
    let calling = async {
        let mut all = Tally::default();
        while let Some(tally) = tasks.join_next().await {
            let tally = tally.expect("no client fails");
            all.answered.extend(tally.answered);
            all.wrong.extend(tally.wrong);
            for (reason, count) in tally.refused {
                *all.refused.entry(reason).or_default() += count;
            }
        }
        done.store(true, Ordering::Relaxed);
        all
    };
    let (killed, tally) = tokio::join!(killing, calling);
    let took = began.elapsed();

    let mut made: HashMap<String, usize> = HashMap::new();
    for call in place.log().of("call") {
        let text = call["arguments"]["text"].as_str().expect("each call has its text");
        *made.entry(text.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = made.iter().filter(|(_, count)| **count > 1).collect();
    let refused: usize = tally.refused.values().sum();
    println!(
        "{calls} calls of {clients} clients in {took:.1?}, {killed} servers killed: {} answered, {refused} refused {:?}, \
         {} crossed, {} made twice",
        tally.answered.len(),
        tally.refused,
        tally.wrong.len(),
        twice.len()
    );
    assert_eq!(tally.wrong, [""; 0]);
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(tally.answered.len() + refused, calls / clients * clients);
    assert!(tally.answered.iter().all(|text| made.get(text) == Some(&1)));
    assert!(killed > 0 && !tally.answered.is_empty());
}

/// How a server is bad: what it is called for, and with what.
const BAD: [(&str, &str, &[&str]); 4] = [
    ("hangs", "hang", &[]),
    ("crashes when called", "crash", &[]),
    ("crashes when started", "echo", &["--exit-on", "initialize"]),
    ("writes lines of 100 MB", "big", &[]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figures are what a soak is run for.
async fn a_bad_server_does_no_harm_to_the_others() {
    let rounds = repeats(1, 5);
    let time = Duration::from_millis(repeats(300, 2_000) as u64);
    for (how, tool, more) in BAD {
        let place = Place::new("bad");
        let server = |name: &str, more: &[&str]| {
            let words = place.fake(name, more);
            json!({ "command": words[0], "args": words[1..], "timeouts": { "callSeconds": 1 } })
        };
        place.catalog(&json!({ "mcpServers": {
            "one": server("one", &[]), "two": server("two", &[]), "three": server("three", &[]),
            "bad": server("bad", more),
        }}));
        let gateway = Gateway::start(&place).await;
        let address = gateway.address;
        // What is started with the first call is not what is measured.
        load(address, Duration::from_millis(100)).await;
        let (mut quiet, mut disturbed, mut harm) = (0, 0, 0);
        for _ in 0..rounds {
            quiet += load(address, time).await;
            let (calls, met) = tokio::join!(load(address, time), disturb(address, tool, time));
            disturbed += calls;
            harm += met;
        }
        let ratio = disturbed as f64 / quiet as f64;
        println!(
            "one server {how} ({harm} calls of it): the others make {quiet} calls without, {disturbed} with: {ratio:.2}"
        );
        assert!(harm > 0, "{how}: nobody called the bad server");
        assert!(disturbed > 0, "{how}: nobody else came through");
        // A time is only a measure when nothing else is measured.
        if rounds > 1 {
            assert!(ratio >= 0.9, "{how}: the others are left with {ratio:.2}");
        }
    }
}

/// Two clients of each good server call for a time, and every call must be answered as it should be; how many.
async fn load(address: SocketAddr, time: Duration) -> u64 {
    let mut tasks = JoinSet::new();
    for number in 0..6 {
        let tool = ["one.echo", "two.echo", "three.echo"][number % 3];
        tasks.spawn(async move {
            let mut caller = caller(address, number / 3).await;
            let end = Instant::now() + time;
            let mut calls = 0;
            while Instant::now() < end {
                let text = format!("{number} {calls}");
                let heard = caller.call(tool, json!({ "text": text }), json!({})).await;
                let heard = heard.expect("the gateway answers");
                assert_eq!(heard.text(), Some(text.as_str()), "{}", heard.message);
                calls += 1;
                // the sleep is the subject: clients think, and the machine is not what is measured
                tokio::time::sleep(THOUGHT).await;
            }
            calls
        });
    }
    tasks.join_all().await.into_iter().sum()
}

/// Four clients call a tool of the bad server for a time, and are told why they get nothing; how often.
async fn disturb(address: SocketAddr, tool: &'static str, time: Duration) -> u64 {
    let made = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let made = Arc::clone(&made);
        tasks.spawn(async move {
            let mut caller = caller(address, number).await;
            let end = Instant::now() + time;
            while Instant::now() < end {
                made.fetch_add(1, Ordering::Relaxed);
                let arguments: Value = json!({ "bytes": 100_000_000 });
                let heard = caller.call(&format!("bad.{tool}"), arguments, json!({})).await;
                let heard = heard.expect("the gateway answers");
                let is_told = heard.reason().is_some() || heard.message["error"].is_object();
                assert!(is_told, "{}", clip(&heard.message));
                // the sleep is the subject: whoever is refused thinks too
                tokio::time::sleep(THOUGHT * 5).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no client fails");
    }
    made.load(Ordering::Relaxed)
}

fn clip(message: &Value) -> String {
    message.to_string().chars().take(300).collect()
}

/// How long clients think.
const THOUGHT: Duration = Duration::from_millis(4);
