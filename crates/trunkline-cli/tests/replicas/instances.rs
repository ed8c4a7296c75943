//! Scene: a singleton, and the instance of a key, are one over all replicas, whatever happens to the one that has it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use trunkline::Revision;
use trunkline_testkit::fake::{self, Log};

use crate::client::{Caller, Ended, answered, judge};
use crate::figures::{Figures, Told};
use crate::stage::{PRINCIPALS, Stage, replicas, soon};

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start_with("instances", catalog()).await;
    let mut figures = Figures::default();
    if replicas() == 1 {
        return figures;
    }
    for server in ["old", "new"] {
        counted_once(&stage, server, &mut figures).await;
    }
    one_for_each_principal(&stage, &mut figures).await;
    questions_and_progress(&stage, &mut figures).await;
    no_more_than_the_total(&stage, &mut figures).await;
    tasks_of_all(&stage, &mut figures).await;
    store_away(&mut stage, &mut figures).await;
    owner_leaves(&mut stage, &mut figures).await;
    owner_dies(&mut stage, &mut figures).await;
    figures
}

/// The calls of all clients, at all replicas, meet in one process.
async fn counted_once(stage: &Stage, server: &str, figures: &mut Figures) {
    let mut calls = JoinSet::new();
    for (number, (at, revision)) in everywhere(stage).into_iter().enumerate() {
        let tool = format!("{server}.count");
        calls.spawn(async move {
            let (_, token) = PRINCIPALS[number % PRINCIPALS.len()];
            let caller = Caller::new(format!("{tool}-{number}"), token, revision, &[at]);
            let mut caller = caller.open().await;
            let mut counts = Vec::new();
            for _ in 0..CALLS {
                counts.push(number_of(&caller.call(&tool, json!({}), "").await));
            }
            counts
        });
    }
    let counts: Vec<u64> = calls.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<u64> = counts.iter().copied().collect();
    let all = counts.len() as u64;
    assert_eq!(distinct, (1..=all).collect(), "{server} was counted by one process");
    assert_eq!(log(server).running().len(), 1, "{server} runs once");
    figures.count(format!("calls counted by one, {server}"), all);
    let lives_at = lives_at(stage, server).await;
    assert!(stage_ids(stage).await.contains(&lives_at), "`ps` says where {server} lives");
}

/// `affinity: principal`: each principal has its own instance, wherever it calls.
async fn one_for_each_principal(stage: &Stage, figures: &mut Figures) {
    for (name, token) in PRINCIPALS {
        let mut expected = 0;
        for (at, revision) in everywhere(stage) {
            let caller = Caller::new(format!("keyed-{name}"), token, revision, &[at]);
            let mut caller = caller.open().await;
            expected += 1;
            let count = number_of(&caller.call("keyed.count", json!({}), "").await);
            assert_eq!(count, expected, "{name} at {at}, {revision}");
            figures.add("calls counted by one for each principal");
        }
    }
    assert_eq!(log("keyed").running().len(), PRINCIPALS.len());
}

/// What a server asks and says on the way reaches the caller at whatever replica.
async fn questions_and_progress(stage: &Stage, figures: &mut Figures) {
    for (at, revision) in everywhere(stage) {
        for (server, tool) in [("keyed", "ask"), ("new", "ask"), ("old", "progress")] {
            let (_, token) = PRINCIPALS[0];
            let caller =
                Caller::new(format!("{server}-{tool}-{at}-{revision}"), token, revision, &[at]);
            let mut caller = caller.open().await;
            let text = caller.unique();
            let arguments = json!({ "text": text, "steps": 3, "ms": 5 });
            let ended = caller.call(&format!("{server}.{tool}"), arguments, &text).await;
            assert_eq!(
                judge(&ended, &text).0,
                Told::Done,
                "{server}.{tool} at {at}, {revision}: {ended:?}"
            );
            if tool == "progress" {
                assert_eq!(caller.progress, [1, 2, 3], "{at}, {revision}");
            }
            figures.add(format!("{tool} over replicas"));
        }
    }
    for server in ["old", "new"] {
        assert_eq!(log(server).running().len(), 1, "{server} runs once");
    }
}

/// `maxInstancesTotal`: three replicas have no more than one would.
async fn no_more_than_the_total(stage: &Stage, figures: &mut Figures) {
    let mut calls = JoinSet::new();
    for (number, at) in stage.addresses().into_iter().cycle().take(9).enumerate() {
        calls.spawn(async move {
            let (_, token) = PRINCIPALS[0];
            let name = format!("few-{number}");
            let mut caller = Caller::new(name, token, Revision::V2026_07_28, &[at]);
            let text = caller.unique();
            let arguments = json!({ "text": text, "ms": 300 });
            let ended = caller.call("few.slow", arguments, &text).await;
            judge(&ended, &text)
        });
    }
    let mut most = 0;
    let mut outcomes = Vec::new();
    while let Some(outcome) = calls.join_next().await {
        most = most.max(log("few").running().len());
        outcomes.push(outcome.expect("no call panics"));
    }
    for (told, wrong) in &outcomes {
        let is_refused = wrong.as_deref().is_some_and(|it| it.ends_with("total_reached"));
        assert!(*told == Told::Done || is_refused && *told == Told::NotDone, "{outcomes:?}");
        figures.add(if is_refused { "refused by the total" } else { "served within the total" });
    }
    assert!(outcomes.iter().any(|it| it.0 == Told::Done), "{outcomes:?}");
    assert!((1..=TOTAL).contains(&most), "{most} at once");
}

/// A task that one replica holds is listed, shown and awaited at the others.
async fn tasks_of_all(stage: &Stage, figures: &mut Figures) {
    let (_, token) = PRINCIPALS[0];
    let mut begun = BTreeSet::new();
    let mut sessions = Vec::new();
    for at in stage.addresses() {
        let caller = Caller::new(format!("tasks-{at}"), token, Revision::V2025_11_25, &[at]);
        let mut caller = caller.open().await;
        let arguments = json!({ "steps": 1 });
        let call = json!({ "name": "demo.work", "arguments": arguments, "task": {} });
        let created = result_of(&caller.request("tools/call", call, "").await);
        begun.insert(created["task"]["taskId"].as_str().expect("a task").to_owned());
        sessions.push(caller);
    }
    for caller in &mut sessions {
        let list = result_of(&caller.request("tasks/list", json!({}), "").await);
        let ids = list["tasks"].as_array().expect("a list").iter();
        let listed: BTreeSet<_> = ids.filter_map(|it| it["taskId"].as_str()).collect();
        assert_eq!(listed, begun.iter().map(String::as_str).collect());
        for id in &begun {
            let one = json!({ "taskId": id });
            let task = result_of(&caller.request("tasks/get", one.clone(), "").await);
            assert_eq!(task["taskId"], **id);
            let result = result_of(&caller.request("tasks/result", one, "").await);
            assert!(result["content"].is_array(), "{result}");
            figures.add("tasks seen over replicas");
        }
    }
    let (_, stranger) = PRINCIPALS[1];
    let at = stage.addresses();
    let mut caller = Caller::new("others", stranger, Revision::V2025_11_25, &at[..1]).open().await;
    let list = result_of(&caller.request("tasks/list", json!({}), "").await);
    assert_eq!(list["tasks"], json!([]), "of another principal");
}

/// Who has an instance goes on without the store, and nobody starts another.
async fn store_away(stage: &mut Stage, figures: &mut Figures) {
    soon("it does not run", PATIENCE, async || log("idle").running().is_empty()).await;
    stage.redis.shut_down();
    for at in stage.addresses() {
        let (_, token) = PRINCIPALS[0];
        let mut caller = Caller::new(format!("away-{at}"), token, Revision::V2026_07_28, &[at]);
        let text = caller.unique();
        let ended = caller.call("old.echo", json!({ "text": text }), &text).await;
        assert_eq!(judge(&ended, &text).0, Told::Done, "at {at}: {ended:?}");
        let text = caller.unique();
        let ended = caller.call("idle.echo", json!({ "text": text }), &text).await;
        let (told, wrong) = judge(&ended, &text);
        assert_eq!(told, Told::NotDone, "{ended:?}");
        assert!(wrong.is_some_and(|it| it.ends_with("store_unavailable")), "{ended:?}");
        figures.add("calls while the store is away");
    }
    stage.redis.start();
    assert_eq!(log("idle").running().len(), 0, "nobody has started it");
    for at in stage.addresses() {
        let (_, token) = PRINCIPALS[0];
        let mut caller = Caller::new(format!("back-{at}"), token, Revision::V2026_07_28, &[at]);
        assert!(answered(&mut caller, "idle.echo", PATIENCE).await.is_some());
    }
    assert_eq!(log("idle").running().len(), 1);
}

/// The replica that has the instance is restarted: calls go on at the next, and none is lost.
async fn owner_leaves(stage: &mut Stage, figures: &mut Figures) {
    let owner = owner_of(stage, "old").await;
    let others = others(stage, owner);
    let mut calls = JoinSet::new();
    for (number, at) in others.iter().copied().enumerate() {
        calls.spawn(async move {
            let (_, token) = PRINCIPALS[number % PRINCIPALS.len()];
            let name = format!("leaves-{number}");
            let mut caller = Caller::new(name, token, Revision::V2026_07_28, &[at]);
            let mut outcomes = Vec::new();
            for _ in 0..60 {
                let text = caller.unique();
                let arguments = json!({ "text": text, "ms": 100 });
                let ended = caller.call("old.slow", arguments, &text).await;
                outcomes.push((judge(&ended, &text), ended));
            }
            outcomes
        });
    }
    stage.restart(owner).await;
    for ((told, wrong), ended) in calls.join_all().await.into_iter().flatten() {
        assert_eq!(told, Told::Done, "{wrong:?} {ended:?}");
        figures.add("calls while the owner leaves");
    }
    assert_eq!(log("old").running().len(), 1, "it runs once again");
}

/// The replica that has the instance is killed: the call in flight is told as unknown and not made again, and another
/// replica has the next instance.
async fn owner_dies(stage: &mut Stage, figures: &mut Figures) {
    let owner = owner_of(stage, "old").await;
    let at = others(stage, owner)[0];
    let (_, token) = PRINCIPALS[0];
    let mut caller = Caller::new("dies", token, Revision::V2026_07_28, &[at]);
    let text = caller.unique();
    let arguments = json!({ "text": text, "ms": 60_000 });
    let calling = tokio::spawn({
        let text = text.clone();
        async move { caller.call("old.slow", arguments, &text).await }
    });
    let is_begun = || log("old").of("call").iter().any(|it| it["arguments"]["text"] == *text);
    soon("the call has begun", PATIENCE, async || is_begun()).await;
    stage.kill(owner).await;
    let ended = calling.await.expect("no call panics");
    let (told, wrong) = judge(&ended, &text);
    assert_eq!(told, Told::Unknown, "{ended:?}");
    assert!(wrong.is_some_and(|it| it.ends_with("outcome_unknown")), "{ended:?}");
    let mut caller = Caller::new("after", token, Revision::V2026_07_28, &[at]);
    let took = answered(&mut caller, "old.echo", PATIENCE).await.expect("another has it");
    figures.count("ms until another replica has the instance", took.as_millis() as u64);
    let times = log("old").of("call").iter().filter(|it| it["arguments"]["text"] == *text).count();
    assert_eq!(times, 1, "it was not made again");
    assert_eq!(log("old").running().len(), 1, "it runs once");
    stage.replicas[owner].ready().await;
    assert_ne!(owner_of(stage, "old").await, owner);
}

/// Every replica, in both eras.
fn everywhere(stage: &Stage) -> Vec<(SocketAddr, Revision)> {
    let revisions = [Revision::V2025_11_25, Revision::V2026_07_28];
    let addresses = stage.addresses();
    addresses.into_iter().flat_map(|at| revisions.map(|revision| (at, revision))).collect()
}

fn others(stage: &Stage, owner: usize) -> Vec<SocketAddr> {
    let all = stage.addresses().into_iter().enumerate();
    all.filter(|(number, _)| *number != owner).map(|(_, at)| at).collect()
}

/// The number of the replica at which a singleton lives, once it is known.
async fn owner_of(stage: &Stage, server: &str) -> usize {
    loop {
        let lives_at = lives_at(stage, server).await;
        let ids = stage_ids(stage).await;
        if let Some(number) = ids.iter().position(|it| *it == lives_at) {
            return number;
        }
        crate::client::pause().await;
    }
}

/// Where a singleton lives, as the first replica that knows it says.
async fn lives_at(stage: &Stage, server: &str) -> String {
    let mut found = String::new();
    soon("`ps` says where it lives", PATIENCE, async || {
        for replica in &stage.replicas {
            let status = replica.status().await;
            let servers = status["servers"].as_array().cloned().unwrap_or_default();
            let it = servers.iter().find(|it| it["name"] == server).cloned().unwrap_or_default();
            if let Some(replica) = it["replica"].as_str() {
                replica.clone_into(&mut found);
                return true;
            }
        }
        false
    })
    .await;
    found
}

async fn stage_ids(stage: &Stage) -> Vec<String> {
    let mut ids = Vec::new();
    for replica in &stage.replicas {
        ids.push(replica.status().await["replicas"]["me"].as_str().unwrap_or_default().to_owned());
    }
    ids
}

fn result_of(ended: &Ended) -> Value {
    let Ended::Answer(message) = ended else { panic!("no answer: {ended:?}") };
    assert!(message["error"].is_null(), "{message}");
    message["result"].clone()
}

fn number_of(ended: &Ended) -> u64 {
    let Ended::Answer(message) = ended else { panic!("no answer: {ended:?}") };
    let text = message["result"]["content"][0]["text"].as_str();
    text.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no number: {message}"))
}

/// What all instances of a server have done, at whatever replica.
fn log(server: &str) -> Log {
    Log::at(log_path(server))
}

fn log_path(server: &str) -> PathBuf {
    Stage::folder_of("instances").join(format!("{server}.jsonl"))
}

fn catalog() -> Value {
    let server = |name: &str, revision: &str, more: Value| {
        let mut server = json!({
            "command": fake::server().display().to_string(),
            "args": ["--revision", revision, "--log", log_path(name).display().to_string()],
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            server[name] = value.clone();
        }
        server
    };
    let one = json!({ "strategy": "singleton" });
    let keyed = json!({ "strategy": "stateful", "affinity": "principal" });
    let few = json!({ "maxInstancesTotal": TOTAL, "maxConcurrent": 1, "idleSeconds": 1 });
    let tokens = PRINCIPALS.map(|(name, token)| json!({ "name": name, "token": token }));
    json!({
        "mcpServers": {
            "old": server("old", "2025-11-25", one.clone()),
            "new": server("new", "2026-07-28", one.clone()),
            "idle": server("idle", "2025-11-25", one),
            "keyed": server("keyed", "2025-11-25", keyed),
            "few": server("few", "2026-07-28", few),
            "demo": { "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo"] },
        },
        "gateway": { "auth": { "tokens": tokens } },
    })
}

/// Calls of each client.
const CALLS: usize = 5;
/// Instances of `few` at all replicas.
const TOTAL: usize = 2;
const PATIENCE: Duration = Duration::from_secs(30);
