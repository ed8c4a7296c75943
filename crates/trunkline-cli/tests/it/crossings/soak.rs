//! Many principals at servers of both eras, over stdio and HTTP, that talk about their callers at all times and
//! are killed on the way. Every text names its caller: nobody may receive a text of another.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use trunkline::model::{LogLevel, Progress, TaskSupport};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{Args, Context, Form, Server, ToolError, tool};
use trunkline_testkit::{Dice, repeats};

use super::person::{Person, token};
use super::{NEW, OLD, remote};
use crate::gateway_kit::{Gateway, Place, signal};

#[derive(Deserialize, JsonSchema)]
struct Said {
    text: String,
}

#[derive(Form)]
struct Reply {
    answer: String,
}

/// What people answered.
pub(super) type Heard = Arc<Mutex<Vec<String>>>;

/// A server over HTTP that speaks both eras, whose tools may be tasks, and who goes on about a call after it was
/// answered.
async fn house() -> SocketAddr {
    listening().await.0
}

/// The same, and what it was answered to its first questions.
pub(super) async fn listening() -> (SocketAddr, Heard) {
    async fn chat(cx: Context, Args(it): Args<Said>, heard: Heard) -> Result<String, ToolError> {
        cx.log(LogLevel::Warning, &it.text).await;
        cx.report(Progress::new(1.0).message(it.text.as_str())).await;
        let answer = cx.ask::<Reply>(it.text.clone()).await?.accepted()?.answer;
        heard.lock().unwrap().push(answer.clone());
        let (later, text) = (cx.clone(), it.text.clone());
        tokio::spawn(async move {
            later.log(LogLevel::Warning, &text).await;
            later.report(Progress::new(2.0).message(text.as_str())).await;
            let _ = later.ask::<Reply>(text).await;
        });
        Ok(format!("{}: {answer}", it.text))
    }
    async fn fail(Args(it): Args<Said>) -> Result<String, ToolError> {
        Err(ToolError::new(it.text))
    }
    let heard = Heard::default();
    let noted = Arc::clone(&heard);
    let chat = move |cx: Context, args: Args<Said>| chat(cx, args, Arc::clone(&noted));
    let server = Server::builder("house", "1.0.0")
        .tool(tool("chat", chat).task(TaskSupport::Optional))
        .tool(tool("fail", fail))
        .build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.http().serve(listener, std::future::pending()));
    (address, heard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figures are what a soak is run for.
async fn no_text_of_one_principal_reaches_another() {
    let (people, calls) = (20, repeats(600, 20_000));
    // With dots, which no sealed text has.
    let names: Arc<Vec<String>> = Arc::new((0..people).map(|it| format!("p.{it:02}.x")).collect());
    let place = Place::new("soak");
    let house = house().await;
    let session = remote::serve(place.fake("session", &["--gossip"])).await;
    let fake = |name: &str, more: &[&str]| {
        let options: Vec<_> =
            ["--gossip", "--list-changed-on", "SIGUSR1"].iter().chain(more).copied().collect();
        let words = place.fake(name, &options);
        json!({ "command": words[0], "args": words[1..], "timeouts": { "callSeconds": 5 } })
    };
    let mut shared = fake("shared", &[]);
    shared["sharing"] = json!("shared");
    let mut few = fake("few", &[]);
    few["maxInstances"] = json!(3);
    // Nobody kills these: one for each, so that those who do not come back keep nobody else waiting.
    let url = |address: SocketAddr, revision: &str| {
        let url = format!("http://{address}/mcp");
        json!({ "url": url, "protocolVersion": revision, "maxInstances": people })
    };
    let tokens: Vec<_> = names.iter().map(|it| json!({ "name": it, "token": token(it) })).collect();
    place.catalog(&json!({
        "mcpServers": {
            "old": fake("old", &[]), "shared": shared, "few": few,
            "older": fake("older", &["--revision", "2025-03-26"]),
            "new": fake("new", &["--revision", "2026-07-28"]),
            "session": url(session, "2025-11-25"),
            "house11": url(house, "2025-11-25"), "house07": url(house, "2026-07-28"),
        },
        "gateway": { "auth": { "tokens": tokens } },
    }));
    let gateway = Gateway::start(&place).await;
    let address = gateway.address;
    let (done, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let mut tasks = JoinSet::new();
    for number in 0..people {
        let names = Arc::clone(&names);
        tasks.spawn(async move { live(address, number, &names, calls / people).await });
    }
    let killing = async {
        let mut killed = 0;
        let mut clock = tokio::time::interval(Duration::from_millis(500));
        clock.tick().await;
        let mut dice = Dice(7);
        while !done.load(Ordering::Relaxed) {
            clock.tick().await;
            let servers = place.servers();
            if let Some(one) = servers.get(dice.below(servers.len().max(1) as u64) as usize) {
                killed += 1;
                signal("KILL", &[*one]).await;
            }
        }
        killed
    };
    let living = async {
        let mut all = Lived::default();
        for lived in tasks.join_all().await {
            all.crossed.extend(lived.crossed);
            all.received += lived.received;
            all.slowest = all.slowest.max(lived.slowest);
            for (word, count) in lived.outcomes {
                *all.outcomes.entry(word).or_default() += count;
            }
        }
        done.store(true, Ordering::Relaxed);
        all
    };
    let (killed, all) = tokio::join!(killing, living);
    println!(
        "{calls} calls of {people} principals in {:.1?}, {killed} servers killed: {:?}, {} messages received, {} crossed, the slowest took {:.1?}: {}",
        began.elapsed(),
        all.outcomes,
        all.received,
        all.crossed.len(),
        all.slowest.0,
        all.slowest.1,
    );
    assert_eq!(all.crossed, [""; 0]);
    assert!(
        all.slowest.0 < HANGS,
        "this one waited for somebody who did not come: {:?}",
        all.slowest
    );
    let made: usize = all.outcomes.values().sum();
    assert_eq!(made, calls / people * people, "every call came to something");
    assert!(all.outcomes.get("answered").is_some_and(|it| *it > calls / 4), "{:?}", all.outcomes);
}

#[derive(Default)]
struct Lived {
    outcomes: BTreeMap<String, usize>,
    received: usize,
    crossed: Vec<String>,
    /// How long the longest call took, and which it was.
    slowest: (Duration, String),
}

/// Longer than any clock of a call: whatever takes that long waits for a question that nobody is asked.
const HANGS: Duration = Duration::from_secs(120);

/// What one of them does and gets.
async fn live(address: SocketAddr, number: usize, names: &[String], calls: usize) -> Lived {
    let mut dice = Dice(number as u64 * 0x9e37_79b9 + 1);
    let name = &names[number];
    let revision = if number.is_multiple_of(2) { OLD } else { NEW };
    let mut person = Person::open(address, revision, name).await;
    let mut lived = Lived::default();
    for server in ["old", "new", "shared"] {
        if dice.below(2) == 0 {
            person.subscribe(&format!("fake://{server}/one")).await;
        }
    }
    for call in 0..calls {
        let text = format!("text {call} of {name}");
        let mut some = |words: &[&str]| -> Vec<String> {
            let chosen = words.iter().filter(|_| dice.below(3) == 0);
            chosen.map(|it| (*it).to_owned()).collect()
        };
        let during =
            some(&["log", "progress", "ask", "roots", "sample", "stderr", "list", "update"]);
        let after = some(&["log", "progress", "ask", "roots", "sample", "stderr", "complete"]);
        let arguments = json!({ "text": text, "during": during, "after": after });
        let server = ["old", "older", "new", "shared", "few", "session"][dice.below(6) as usize];
        let tool = format!("{server}.gossip");
        let (began, kind) = (Instant::now(), dice.below(20));
        let said = match kind {
            0 => {
                person.give_up(&tool, arguments).await;
                Value::Null
            }
            1 => {
                let arguments = json!({ "text": text, "during": ["stderr", "crash"] });
                person.call(&tool, arguments).await
            }
            // One who is asked, and does not come back.
            2 => person.call_once(&tool, arguments).await,
            3..6 => person.call("house11.chat", json!({ "text": text })).await,
            6..9 => person.call("house07.chat", json!({ "text": text })).await,
            9 => person.call("house11.fail", json!({ "text": text })).await,
            10 => person.task("house11.chat", json!({ "text": text })).await,
            11 => person.task("house07.chat", json!({ "text": text })).await,
            _ => person.call(&tool, arguments).await,
        };
        let outcome = match (&said["result"], &said["error"]) {
            (Value::Null, Value::Null) => "given up",
            (_, Value::Null) => "answered",
            (_, error) => error["data"]["reason"].as_str().unwrap_or("error"),
        };
        *lived.outcomes.entry(outcome.to_owned()).or_default() += 1;
        if began.elapsed() > lived.slowest.0 {
            lived.slowest = (began.elapsed(), format!("{text}, {tool}, kind {kind}, {outcome}"));
        }
        if call % 64 == 63 {
            lived.look(&person, names);
            person.forget();
        }
    }
    lived.look(&person, names);
    lived
}

impl Lived {
    fn look(&mut self, person: &Person, names: &[String]) {
        self.received += person.received().len();
        let crossed = person.received_of(names.iter().map(String::as_str));
        self.crossed.extend(crossed.into_iter().map(|it| format!("{} got {it}", person.name)));
    }
}
