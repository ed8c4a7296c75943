//! Scene: sessions of every revision through a balancer that sends each request to another replica.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use trunkline::Revision;
use trunkline_testkit::http::{Line, request};
use trunkline_testkit::repeats;

use crate::client::{Caller, judge};
use crate::figures::{Figures, Ledger, NEVER, Told};
use crate::load::REVISIONS;
use crate::stage::{PRINCIPALS, Stage, replicas};

/// Every revision at once: calls, progress, questions, notifications.
pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start("spread").await;
    let before = stage.balancer.servers();
    let balancer = stage.balancer.address;
    let mut clients = JoinSet::new();
    for (revision, (_, token)) in REVISIONS.into_iter().zip(PRINCIPALS.into_iter().cycle()) {
        clients.spawn(one(revision, token, balancer));
    }
    let mut figures = event_stream(balancer).await;
    let mut ledger = Ledger::default();
    for (counted, told) in clients.join_all().await {
        figures.merge(&counted);
        ledger.merge(told);
    }
    ledger.compare(&stage.executed(), &mut figures);
    figures.merge(&strangers(&stage).await);

    let share = figures.of("calls") / replicas() as u64 / 2;
    for (number, (after, before)) in stage.balancer.servers().iter().zip(&before).enumerate() {
        let requests = after.0 - before.0;
        assert!(requests > share, "replica {number} got {requests} requests of {figures}");
    }
    one_owner_each(&stage);
    stage.tell(&mut figures).await;
    figures.none(NEVER);
    assert_eq!(figures.errors(), 0, "{figures}");
    figures
}

/// 200 calls of one client, and between them what else a client says.
async fn one(revision: Revision, token: &'static str, at: SocketAddr) -> (Figures, Ledger) {
    let mut caller = Caller::new(revision.as_str(), token, revision, &[at]).open().await;
    let mut ledger = Ledger::default();
    for number in 0..repeats(200, 2_000) {
        let text = caller.unique();
        let (tool, arguments) = match number % 20 {
            7 => ("asks.sample", json!({ "text": text })),
            13 => ("new.progress", json!({ "steps": 3, "ms": 1, "text": text })),
            number if number % 2 == 0 => ("old.echo", json!({ "text": text })),
            _ => ("new.echo", json!({ "text": text })),
        };
        let ended = caller.call(tool, arguments, &text).await;
        let (told, wrong) = judge(&ended, &text);
        if let Some(wrong) = wrong {
            caller.figures.add(wrong);
        }
        ledger.note(text, told);
        if number % 20 == 0 && !caller.is_stateless() {
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
            assert_eq!(caller.tell(&changed).await, Some(202), "{revision}");
            caller.figures.add("notifications");
        }
    }
    (caller.figures, ledger)
}

/// HTTP with a stream of events, 2024-11-05: the answers come on a stream that another replica may hold.
async fn event_stream(at: SocketAddr) -> Figures {
    let token = ("Authorization", format!("Bearer {}", PRINCIPALS[0].1));
    let mut stream = Line::to(at).await;
    let accept = ("Accept", "text/event-stream".to_owned());
    stream.send(request(at, "GET /sse", &[token.clone(), accept], "")).await;
    let head = stream.head().await;
    assert!(head.status == 200 && head.is_events(), "{head:?}");
    let endpoint = stream.event().await.expect("the stream begins with where to post");
    assert_eq!(endpoint.event.as_deref(), Some("endpoint"), "{endpoint:?}");
    let post = async |message: Value| {
        let json = ("Content-Type", "application/json".to_owned());
        let mut line = Line::to(at).await;
        let first = format!("POST {}", endpoint.data);
        line.send(request(at, &first, &[token.clone(), json], &message.to_string())).await;
        let head = line.head().await;
        assert_eq!(head.status, 202, "{message}: {head:?}");
    };
    let hello = json!({
        "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": { "name": "stream", "version": "1" },
    });
    post(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).await;
    let (_, answer) = stream.message().await.expect("the stream is open");
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05", "{answer}");
    post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let mut figures = Figures::default();
    for id in 1..=repeats(50, 500) {
        let text = format!("event-stream-{id}");
        let params = json!({ "name": "old.echo", "arguments": { "text": text } });
        post(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
        let (_, answer) = stream.message().await.expect("the stream is open");
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
        figures.add("calls");
    }
    figures
}

/// Whoever has an id that is not theirs gets nowhere with it, at any replica.
async fn strangers(stage: &Stage) -> Figures {
    let [(_, alice), (_, bob)] = PRINCIPALS;
    let revision = Revision::V2025_11_25;
    let mut owner = Caller::new("owner", alice, revision, &stage.addresses()).open().await;
    let mut stranger = Caller::new("stranger", bob, revision, &stage.addresses());
    stranger.guest.session = owner.guest.session.clone();
    let mut forged = Caller::new("forged", alice, revision, &stage.addresses());
    let session = owner.guest.session.clone().expect("it is open");
    let other = if session[9..].starts_with('A') { 'B' } else { 'A' };
    forged.guest.session = Some(format!("{}{other}{}", &session[..9], &session[10..]));
    for caller in [&mut stranger, &mut forged] {
        for _ in 0..2 * replicas() {
            let text = caller.unique();
            let ended = caller.call("old.echo", json!({ "text": text }), &text).await;
            let (told, _) = judge(&ended, &text);
            assert_ne!(told, Told::Done, "{ended:?}");
        }
    }
    for _ in 0..2 * replicas() {
        let text = owner.unique();
        let ended = owner.call("old.echo", json!({ "text": text }), &text).await;
        assert_eq!(judge(&ended, &text), (Told::Done, None), "{ended:?}");
    }
    owner.figures
}

/// The calls of a session ran at one replica, those of 2026-07-28 at all.
fn one_owner_each(stage: &Stage) {
    for revision in REVISIONS {
        let calls = stage.calls();
        let is_its = |call: &Value| {
            let text = call["arguments"]["text"].as_str();
            text.is_some_and(|it| it.starts_with(revision.as_str()))
        };
        let at: Vec<usize> =
            calls.iter().map(|calls| calls.iter().filter(|it| is_its(it)).count()).collect();
        let places = at.iter().filter(|count| **count > 0).count();
        let expected = if revision == Revision::V2026_07_28 { replicas() } else { 1 };
        assert_eq!(places, expected, "{revision} ran at {at:?}");
    }
}
