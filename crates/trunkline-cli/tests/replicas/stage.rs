//! Three gateways, the Redis that they share, and a balancer before them.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline_testkit::fake::{self, Log};
use trunkline_testkit::http::{Line, request};
use trunkline_testkit::ports::free_port;
use trunkline_testkit::process::{kill, signal};
use trunkline_testkit::redis::{self, Servers};

use crate::balancer::Balancer;
use crate::figures::Figures;

/// All that runs for a scene; it ends with this. What it wrote stays.
pub(crate) struct Stage {
    pub(crate) redis: Servers,
    pub(crate) balancer: Balancer,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) diary: Diary,
    /// What the metrics of replicas that were stopped said last.
    metrics: HashMap<String, u64>,
}

/// What happened when, for whoever looks why a scene failed: `diary` in its folder.
#[derive(Clone)]
pub(crate) struct Diary {
    file: Arc<Mutex<File>>,
    since: Instant,
}

impl Diary {
    fn begin(folder: &Path) -> Self {
        let file = File::create(folder.join("diary")).expect("a file");
        Self { file: Arc::new(Mutex::new(file)), since: Instant::now() }
    }

    pub(crate) fn note(&self, what: &str) {
        let at = self.since.elapsed().as_secs_f64();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{at:8.3} {what}").expect("the folder is ours");
    }
}

/// One gateway, at ports that it keeps.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    internal: SocketAddr,
    admin: SocketAddr,
    folder: PathBuf,
    process: Option<Child>,
}

impl Stage {
    /// The stage of most scenes: fake servers of both eras, two principals.
    pub(crate) async fn start(scene: &str) -> Self {
        Self::start_on(scene, redis::durable()).await
    }

    /// The same on a store of one's own.
    pub(crate) async fn start_on(scene: &str, redis: Servers) -> Self {
        let mut catalog = json!({ "mcpServers": servers() });
        catalog["gateway"] = json!({
            "auth": { "tokens": tokens() },
            "rules": [{ "tools": ["guarded.*"], "effect": "ask" }],
            "rates": [{ "tools": ["rated.*"], "perMinute": RATE, "burst": RATE }],
        });
        Self::set(scene, catalog, redis).await
    }

    /// A stage with a catalog of one's own, to which it adds what makes replicas one.
    pub(crate) async fn start_with(scene: &str, catalog: Value) -> Self {
        Self::set(scene, catalog, redis::durable()).await
    }

    async fn set(scene: &str, mut catalog: Value, redis: Servers) -> Self {
        let folder = Self::folder_of(scene);
        // What an earlier run left.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for what is temporary");
        let key = folder.join("key");
        std::fs::write(&key, KEY).expect("a file");
        let gateway = &mut catalog["gateway"];
        gateway["admin"] = json!({ "listen": "${REPLICA_ADMIN}", "token": ADMIN_TOKEN });
        if replicas() > 1 {
            gateway["store"] = json!(redis.address());
            gateway["replicas"] = json!({
                "listen": "${REPLICA_LISTEN}",
                "key": format!("${{file:{}}}", key.display()),
            });
        }
        let config = folder.join("trunkline.yaml");
        std::fs::write(&config, catalog.to_string()).expect("a file");
        let mut replicas: Vec<Replica> =
            (0..replicas()).map(|number| Replica::new(folder.join(number.to_string()))).collect();
        for replica in &mut replicas {
            replica.start();
        }
        for replica in &replicas {
            replica.ready().await;
        }
        let addresses: Vec<SocketAddr> = replicas.iter().map(|it| it.address).collect();
        let balancer = Balancer::start(&folder, &addresses);
        let (diary, metrics) = (Diary::begin(&folder), HashMap::new());
        let stage = Self { redis, balancer, replicas, diary, metrics };
        stage.whole().await;
        stage
    }

    /// Waits until every replica is in the balancer's rotation.
    pub(crate) async fn whole(&self) {
        self.balancer.whole().await;
    }

    /// The addresses of the replicas themselves.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.replicas.iter().map(|it| it.address).collect()
    }

    /// Ends a replica without a word, and starts another at its place.
    pub(crate) async fn kill(&mut self, number: usize) {
        self.remember(number).await;
        self.diary.note(&format!("replica {number} is killed"));
        let replica = &mut self.replicas[number];
        kill(replica.process.as_mut().expect("it runs"));
        replica.start();
    }

    /// Ends a replica as an operator would, and starts another at its place once it has gone; how long it took
    /// to go.
    pub(crate) async fn restart(&mut self, number: usize) -> Duration {
        self.remember(number).await;
        self.diary.note(&format!("replica {number} is asked to end"));
        let since = Instant::now();
        let replica = &mut self.replicas[number];
        let mut process = replica.process.take().expect("it runs");
        signal("TERM", process.id());
        let gone = async || process.try_wait().expect("it is our child").is_some();
        soon("a replica that was asked to end has ended", GRACE, gone).await;
        let took = since.elapsed();
        self.diary.note(&format!("replica {number} has ended"));
        self.replicas[number].start();
        self.replicas[number].ready().await;
        self.diary.note(&format!("replica {number} is ready"));
        took
    }

    /// How often each unique argument reached a server, over all replicas.
    pub(crate) fn executed(&self) -> HashMap<String, u64> {
        let mut executed = HashMap::new();
        for call in self.calls().into_iter().flatten() {
            if let Some(text) = call["arguments"]["text"].as_str() {
                *executed.entry(text.to_owned()).or_default() += 1;
            }
        }
        executed
    }

    /// Which gateway, by its process, carried out the call with each unique argument.
    pub(crate) fn carried_out(&self) -> HashMap<String, u64> {
        let mut carried_out = HashMap::new();
        for replica in &self.replicas {
            let starts = replica.log().of("start").into_iter();
            let gateways: HashMap<Option<u64>, Option<u64>> =
                starts.map(|it| (it["pid"].as_u64(), it["parent"].as_u64())).collect();
            for call in replica.log().of("call") {
                let gateway = gateways.get(&call["pid"].as_u64()).copied().flatten();
                if let (Some(text), Some(gateway)) = (call["arguments"]["text"].as_str(), gateway) {
                    carried_out.insert(text.to_owned(), gateway);
                }
            }
        }
        carried_out
    }

    /// The calls that reached the servers of each replica.
    pub(crate) fn calls(&self) -> Vec<Vec<Value>> {
        self.replicas.iter().map(|it| it.log().of("call")).collect()
    }

    /// Adds what the replicas tell about themselves, since the start of the scene.
    pub(crate) async fn tell(&mut self, figures: &mut Figures) {
        for number in 0..self.replicas.len() {
            self.remember(number).await;
        }
        for (name, value) in &self.metrics {
            figures.count(name, *value);
        }
        for (number, (requests, _)) in (0..).zip(self.balancer.servers()) {
            figures.count(format!("requests at {number}"), requests);
        }
    }

    /// Adds up the metrics of a replica, which end with its process.
    async fn remember(&mut self, number: usize) {
        let text = self.replicas[number].metrics().await;
        for line in text.lines().filter(|line| line.starts_with("trunkline_replica")) {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let is_counter = name.split('{').next().is_some_and(|it| it.ends_with("_total"));
            if let (true, Ok(value)) = (is_counter, value.parse::<u64>()) {
                let name = name.trim_start_matches("trunkline_").to_owned();
                *self.metrics.entry(name).or_default() += value;
            }
        }
    }

    /// The end of what each replica wrote to its stderr.
    pub(crate) fn last_words(folder: &Path) -> String {
        let mut words = String::new();
        for number in 0..replicas() {
            let text = std::fs::read_to_string(folder.join(format!("{number}/stderr")));
            let text = text.unwrap_or_default();
            let from = text.lines().count().saturating_sub(12);
            for line in text.lines().skip(from) {
                words.push_str(&format!("  replica {number}: {line}\n"));
            }
        }
        words
    }

    /// Where a scene writes.
    pub(crate) fn folder_of(scene: &str) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("replicas").join(scene)
    }
}

impl Replica {
    fn new(folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).expect("a folder for what is temporary");
        let [address, internal, admin] =
            [(); 3].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        Self { address, internal, admin, folder, process: None }
    }

    fn start(&mut self) {
        let stderr = self.folder.join("stderr");
        let stderr: File =
            OpenOptions::new().create(true).append(true).open(stderr).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.arg("serve").arg("--config").arg(self.folder.with_file_name("trunkline.yaml"));
        command.arg("--state").arg(self.folder.join("state"));
        command.args(["--listen", &self.address.to_string()]);
        command.env("REPLICA_LISTEN", self.internal.to_string());
        command.env("REPLICA_ADMIN", self.admin.to_string());
        command.env("REPLICA_LOG", self.folder.join("log.jsonl"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        self.process = Some(command.spawn().expect("the binary was built"));
    }

    /// Waits until it is ready to serve.
    pub(crate) async fn ready(&self) {
        let is_ready = async || get(self.address, "/readyz", None).await.starts_with("200 ");
        soon("a replica is ready", PATIENCE, is_ready).await;
    }

    fn log(&self) -> Log {
        Log::at(self.folder.join("log.jsonl"))
    }

    /// What `trunkline ps` shows of it.
    pub(crate) async fn status(&self) -> Value {
        let text = get(self.admin, "/v1/status", Some(ADMIN_TOKEN)).await;
        let body = text.split_once(' ').map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_default()
    }

    async fn metrics(&self) -> String {
        get(self.admin, "/metrics", Some(ADMIN_TOKEN)).await
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            kill(process);
        }
    }
}

/// How many gateways run.
pub(crate) fn replicas() -> usize {
    std::env::var(REPLICAS).ok().and_then(|it| it.parse().ok()).unwrap_or(3)
}

/// The status and body of a page; an empty text if nobody answers.
async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> String {
    let Ok(mut line) = Line::try_to(address).await else { return String::new() };
    let token = token.map(|it| ("Authorization", format!("Bearer {it}")));
    let headers: Vec<_> = token.into_iter().collect();
    line.send(request(address, &format!("GET {path}"), &headers, "")).await;
    let Some(head) = line.try_head().await else { return String::new() };
    let body = line.try_body().await.unwrap_or_default();
    format!("{} {}", head.status, String::from_utf8_lossy(&body))
}

/// Looks again until it is so: other processes have no other way to tell us.
pub(crate) async fn soon(what: &str, limit: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < limit, "waited {} s, and not: {what}", limit.as_secs());
        // the sleep is the subject: a program that is asked again and again
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// `old` and `new` in the two eras; `asks` has one call at a time, so that nobody doubts whose question it is.
fn servers() -> Value {
    let server = |revision: &str, more: Value| {
        let mut server = json!({
            "command": fake::server().display().to_string(),
            "args": ["--revision", revision, "--log", "${REPLICA_LOG}"],
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            server[name] = value.clone();
        }
        server
    };
    json!({
        "old": server(OLD, json!({})),
        "new": server(NEW, json!({})),
        "asks": server(OLD, json!({ "maxConcurrent": 1, "maxInstances": 32 })),
        "rated": server(NEW, json!({})),
        "guarded": server(NEW, json!({})),
    })
}

pub(crate) fn tokens() -> Value {
    PRINCIPALS.map(|(name, token)| json!({ "name": name, "token": token })).into()
}

/// Who calls, each with its token.
pub(crate) const PRINCIPALS: [(&str, &str); 2] =
    [("alice", "the-token-of-alice"), ("bob", "the-token-of-bob")];
/// Calls per minute of the server `rated`, and at once.
pub(crate) const RATE: u64 = 100;
/// No replica takes longer than this to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Nor longer than this to end: the files in `packaging` have it killed then.
const GRACE: Duration = Duration::from_secs(60);
/// How many gateways run: as many as this variable says. One runs without a store, for comparison.
pub(crate) const REPLICAS: &str = "TRUNKLINE_REPLICAS";
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const ADMIN_TOKEN: &str = "the-token-of-the-operator";
pub(crate) const OLD: &str = "2025-11-25";
pub(crate) const NEW: &str = "2026-07-28";
