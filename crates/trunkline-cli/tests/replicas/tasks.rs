//! Scene: tasks that are begun at one replica and followed at another, until they end or their replica does.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline::Revision;

use crate::client::{Caller, Ended, pause};
use crate::figures::Figures;
use crate::stage::{NEW, OLD, PRINCIPALS, Stage, tokens};

pub(crate) async fn run() -> Figures {
    let mut stage = Stage::start_with("tasks", catalog()).await;
    let mut figures = Figures::default();
    let addresses = stage.addresses();
    let pairs = [Revision::V2025_11_25, Revision::V2026_07_28]
        .into_iter()
        .flat_map(|revision| ["old", "new"].map(|server| (revision, server)));
    for (revision, server) in pairs.clone() {
        let name = format!("{revision}-{server}");
        let mut task = Followed::begin(name, revision, server, SHORT, &addresses).await;
        let end = task.end(&addresses[1..]).await;
        assert_eq!(end, End::Done(SHORT), "{}: it goes on elsewhere", task.name);
        figures.add("tasks that ended");
    }
    let mut followed = Vec::new();
    for (revision, server) in pairs {
        let name = format!("{revision}-{server}-killed");
        let mut task = Followed::begin(name, revision, server, LONG, &addresses).await;
        assert_eq!(task.look(addresses[1]).await, None, "{}: it runs", task.name);
        followed.push(task);
    }
    stage.kill(0).await;
    let since = Instant::now();
    for mut task in followed {
        let end = task.end(&addresses[1..]).await;
        assert_eq!(end, End::Said("task_lost".to_owned()), "{}", task.name);
        figures.add("tasks said to be lost");
        assert!(task.is_served(&addresses[1..]).await, "{}: its session goes on", task.name);
    }
    figures.count("ms until all were told", since.elapsed().as_millis() as u64);
    stage.replicas[0].ready().await;
    stage.tell(&mut figures).await;
    figures
}

/// A task, and the client that began it.
struct Followed {
    name: String,
    caller: Caller,
    id: Value,
}

/// How a task ended.
#[derive(Debug, PartialEq)]
enum End {
    /// After so many steps.
    Done(u32),
    /// Somebody said that it will not.
    Said(String),
}

impl Followed {
    /// Begins a task at the first address.
    async fn begin(
        name: String,
        revision: Revision,
        server: &str,
        steps: u32,
        addresses: &[SocketAddr],
    ) -> Self {
        let (_, token) = PRINCIPALS[0];
        let mut caller = Caller::new(&*name, token, revision, &addresses[..1]);
        let mut params =
            json!({ "name": format!("{server}.work"), "arguments": { "steps": steps } });
        if caller.is_stateless() {
            caller.guest.capabilities["extensions"] =
                json!({ "io.modelcontextprotocol/tasks": {} });
        } else {
            params["task"] = json!({ "ttl": 120_000 });
        }
        let mut caller = caller.open().await;
        let ended = caller.request("tools/call", params, "").await;
        let Ended::Answer(message) = &ended else { panic!("{name}: {ended:?}") };
        let result = &message["result"];
        let id = result.pointer("/task/taskId").or(result.get("taskId")).cloned();
        let id = id.unwrap_or_else(|| panic!("{name}: this is no task: {message}"));
        Self { name, caller, id }
    }

    /// Looks at the task over these replicas in turn, until it has ended.
    async fn end(&mut self, addresses: &[SocketAddr]) -> End {
        let since = Instant::now();
        for at in addresses.iter().cycle() {
            if let Some(end) = self.look(*at).await {
                return end;
            }
            assert!(since.elapsed() < LIMIT, "{}: it has no end", self.name);
            pause().await;
        }
        unreachable!("the addresses repeat")
    }

    /// Looks at the task over one replica; `None` while it works, or while nobody can say.
    async fn look(&mut self, at: SocketAddr) -> Option<End> {
        let message = self.ask(at, "tasks/get").await?;
        if message.get("error").is_some() {
            return Some(End::Said(reason(&message["error"])));
        }
        let result = &message["result"];
        match result["status"].as_str() {
            Some("working") => None,
            Some("completed") => {
                let said = match self.caller.is_stateless() {
                    true => result["result"].clone(),
                    false => self.ask(at, "tasks/result").await?["result"].clone(),
                };
                let text = said["content"][0]["text"].as_str().unwrap_or_default().to_owned();
                let steps = text.strip_prefix("worked ").and_then(|it| it.strip_suffix(" steps"));
                let steps = steps.and_then(|it| it.parse().ok());
                Some(steps.map_or_else(|| End::Said(format!("crossed: {said}")), End::Done))
            }
            Some(status) => Some(End::Said(status.to_owned())),
            None => panic!("{}: this is no task: {message}", self.name),
        }
    }

    /// The response to a question about the task, if there is one: a replica may ask for patience.
    async fn ask(&mut self, at: SocketAddr, method: &str) -> Option<Value> {
        self.caller.addresses = vec![at];
        match self.caller.request(method, json!({ "taskId": self.id }), "").await {
            // The session has not been taken over yet.
            Ended::Answer(message) if reason(&message["error"]) == "owner_unavailable" => None,
            Ended::Answer(message) => Some(message),
            Ended::Status(503, _) | Ended::Cut => None,
            ended => panic!("{} {method}: {ended:?}", self.name),
        }
    }

    async fn is_served(&mut self, addresses: &[SocketAddr]) -> bool {
        self.caller.addresses = addresses.to_vec();
        let params = json!({ "name": "old.echo", "arguments": { "text": self.name } });
        let ended = self.caller.request("tools/call", params, "").await;
        matches!(ended, Ended::Answer(it) if it["result"]["content"][0]["text"] == *self.name)
    }
}

/// What a program can go by.
fn reason(error: &Value) -> String {
    let reason = error["data"]["reason"].as_str();
    reason.map_or_else(|| error.to_string(), str::to_owned)
}

/// The demo in the two revisions that have tasks.
fn catalog() -> Value {
    let demo = |revision: &str| {
        json!({
            "command": env!("CARGO_BIN_EXE_trunkline"), "args": ["demo"],
            "protocolVersion": revision,
        })
    };
    json!({
        "mcpServers": { "old": demo(OLD), "new": demo(NEW) },
        "gateway": { "auth": { "tokens": tokens() } },
    })
}

/// Steps of five milliseconds at least.
const SHORT: u32 = 60;
/// As many as the demo takes.
const LONG: u32 = 1_000;
/// Nobody is left without a word for longer.
const LIMIT: Duration = Duration::from_secs(30);
