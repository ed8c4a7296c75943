//! One gateway, or three as one, and behind it the demo in every revision: over stdio, and over HTTP.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{Args, Era, Revision, tool};
use trunkline_testkit::peer::PATIENCE;

use crate::stdio::{TRUNKLINE, binary};

/// How the gateway reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Over {
    Stdio,
    Http,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        })
    }
}

/// Which revisions a server behind the gateway is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Speaks {
    Only(Revision),
    /// Those of both eras.
    All,
}

impl fmt::Display for Speaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only(revision) => revision.fmt(f),
            Self::All => f.write_str("both eras"),
        }
    }
}

/// A server behind the gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upstream {
    pub(super) speaks: Speaks,
    pub(super) over: Over,
}

impl Upstream {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let both = [Over::Stdio, Over::Http];
        both.into_iter().flat_map(|over| {
            let each = Revision::ALL.map(Speaks::Only).into_iter().chain([Speaks::All]);
            each.map(move |speaks| Self { speaks, over })
        })
    }

    /// The revision that the gateway speaks to it on behalf of a client: the newest of the client's era, if
    /// it has the choice.
    pub(super) fn revision(self, client: Revision) -> Revision {
        match (self.speaks, client.era()) {
            (Speaks::Only(revision), _) => revision,
            (Speaks::All, Era::Stateful) => Revision::LATEST_STATEFUL,
            (Speaks::All, Era::Stateless) => Revision::LATEST,
        }
    }

    pub(super) fn name(self) -> String {
        match self.speaks {
            Speaks::Only(revision) => format!("{}-{revision}", self.over),
            Speaks::All => format!("{}-all", self.over),
        }
    }

    /// The same server, but all callers share one process: for what happens inside of it.
    pub(super) fn shared(self) -> String {
        format!("{}-one", self.name())
    }
}

/// Everything that runs. Dropped, it ends.
pub(super) struct Place {
    /// Where the gateway is: `http://127.0.0.1:1234`.
    pub(super) url: String,
    folder: PathBuf,
    hung: Arc<watch::Sender<Vec<Hung>>>,
    _gateway: Child,
}

/// A call of `hang` at the HTTP upstream: begun, and given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hung {
    Begun(u64),
    GivenUp(u64),
}

impl Place {
    pub(super) async fn open() -> Self {
        let folder = std::env::temp_dir().join(format!("trunkline-bridge-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let hung = Arc::new(watch::channel(Vec::new()).0);
        let http = serve_http(Arc::clone(&hung)).await;
        let config = folder.join("catalog.json");
        std::fs::write(&config, catalog(&folder, &http).to_string()).expect("it can be written");
        let (gateway, url) = match std::env::var_os(STAGE) {
            None => one(&config, &folder.join("state")).await,
            Some(stage) => three(&stage, &config).await,
        };
        Self { url, folder, hung, _gateway: gateway }
    }

    /// Waits until a call of `hang` has begun, or was given up.
    pub(super) async fn hung(&self, wanted: Hung) {
        let mut seen = self.hung.subscribe();
        seen.wait_for(|it| it.contains(&wanted)).await.expect("the sender is ours");
    }

    /// What a stdio server was sent so far, message by message.
    pub(super) fn sent(&self, server: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(log(&self.folder, server)).unwrap_or_default();
        // The last line may be half written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits until a stdio server was sent a message like that, after so many others; which one it was.
    pub(super) async fn until_sent(
        &self,
        server: &str,
        after: usize,
        is_so: impl Fn(&Value) -> bool,
    ) -> (usize, Value) {
        loop {
            let mut sent = self.sent(server).into_iter().enumerate().skip(after);
            if let Some(found) = sent.find(|(_, it)| is_so(it)) {
                return found;
            }
            // A file says nothing when it grows.
            tokio::time::sleep(Duration::from_millis(20)).await; // the sleep is the subject: it paces the looking
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A gateway, and where it is.
async fn one(config: &Path, state: &Path) -> (Child, String) {
    let mut command = Command::new(TRUNKLINE);
    command.arg("serve").arg("--config").arg(config).args(["--listen", "127.0.0.1:0"]);
    command.arg("--state").arg(state);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut gateway = command.kill_on_drop(true).spawn().expect("the binary was built");
    let said = gateway.stderr.take().expect("it is piped");
    (gateway, address(said).await)
}

/// Three gateways behind a balancer, and where that is. They end with their input, which ends with this.
async fn three(stage: &OsStr, config: &Path) -> (Child, String) {
    let mut command = Command::new(stage);
    command.arg("stage").arg(config).env("TRUNKLINE_REPLICAS", "3");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut stage = command.spawn().expect("`cargo xtask replicas bridge` has built it");
    let said = stage.stdout.take().expect("it is piped");
    (stage, address(said).await)
}

/// The address that a program says, without its path.
async fn address(said: impl AsyncRead + Send + Unpin + 'static) -> String {
    let mut lines = BufReader::new(said).lines();
    let url = tokio::time::timeout(PATIENCE, async {
        while let Some(line) = lines.next_line().await.expect("it can be read") {
            if let Some((_, rest)) = line.split_once(" at http://") {
                return format!("http://{}", rest.split('/').next().unwrap_or_default().trim());
            }
        }
        panic!("It ended without saying where it is.")
    });
    let url = url.await.expect("it starts in time");
    // Whoever does not read what it says later would block it.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    url
}

fn log(folder: &Path, server: &str) -> PathBuf {
    folder.join(format!("{server}.jsonl"))
}

/// Every server twice: as it is started by default, and as one process for all callers.
fn catalog(folder: &Path, http: &str) -> Value {
    let mut servers = Map::new();
    for upstream in Upstream::all() {
        for (name, strategy) in [(upstream.name(), "stateless"), (upstream.shared(), "singleton")] {
            let mut entry = match upstream.over {
                // Everything that the server is sent is written down on its way.
                Over::Stdio => json!({
                    "command": "sh",
                    "args": ["-c", "tee -a \"$1\" | \"$0\" demo", TRUNKLINE, log(folder, &name)],
                }),
                Over::Http => json!({ "url": http }),
            };
            if let Speaks::Only(revision) = upstream.speaks {
                entry["protocolVersion"] = json!(revision.to_string());
            }
            entry["strategy"] = json!(strategy);
            if strategy == "stateless" && matches!(upstream.over, Over::Stdio) {
                // Its questions and log do not say whom they are for.
                entry["sharing"] = json!("isolated");
                entry["maxInstances"] = json!(16);
            }
            servers.insert(name, entry);
        }
    }
    json!({ "mcpServers": servers })
}

#[derive(Deserialize, JsonSchema)]
struct Hang {
    mark: u64,
}

/// The demo over HTTP, with one tool more that tells when it is given up.
async fn serve_http(hung: Arc<watch::Sender<Vec<Hung>>>) -> String {
    let server = binary::demo::server().expect("the demo can be built");
    let hang = tool("hang", move |Args(it): Args<Hang>| {
        let hung = Arc::clone(&hung);
        async move {
            hung.send_modify(|all| all.push(Hung::Begun(it.mark)));
            let _given_up = GivenUp(hung, it.mark);
            std::future::pending::<String>().await
        }
    });
    server.put_tool(hang.about("Never answers.")).expect("the tool is a good one");
    let listener = trunkline::server::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}/mcp", listener.local_addr().expect("it is bound"));
    tokio::spawn(server.http().serve(listener, std::future::pending()));
    url
}

struct GivenUp(Arc<watch::Sender<Vec<Hung>>>, u64);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.send_modify(|all| all.push(Hung::GivenUp(self.1)));
    }
}

/// Names the program that puts three gateways where there is one otherwise; `cargo xtask replicas bridge` sets it.
const STAGE: &str = "TRUNKLINE_STAGE";
