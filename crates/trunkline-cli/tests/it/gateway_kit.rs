//! `trunkline serve` as a process of its own, its catalog, and every process that comes of it, seen from outside.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use trunkline_testkit::fake::{self, Log};
use trunkline_testkit::http::{Guest, Line};
use trunkline_testkit::peer::PATIENCE;

use crate::run::TRUNKLINE;

/// A folder of its own, named in the command line of every process that is started for it.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the folder for what is temporary can be written to");
        Self(path)
    }

    /// Writes the catalog.
    pub(crate) fn catalog(&self, catalog: &Value) {
        std::fs::write(self.config(), catalog.to_string()).expect("the folder is ours");
    }

    /// Writes a file, and says where it is.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the folder is ours");
        path.display().to_string()
    }

    /// The files of one of its folders, with their modes.
    pub(crate) fn files(&self, folder: &str) -> Vec<(PathBuf, u32)> {
        use std::os::unix::fs::PermissionsExt;
        let entries = std::fs::read_dir(self.0.join(folder)).expect("the folder is there");
        let mode = |it: &PathBuf| std::fs::metadata(it).map_or(0, |it| it.permissions().mode());
        entries.flatten().map(|it| it.path()).map(|it| (it.clone(), mode(&it))).collect()
    }

    /// The words that start a fake server.
    pub(crate) fn fake(&self, name: &str, more: &[&str]) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let mut words = vec![path(fake::server()), "--name".into(), name.into()];
        words.extend(["--log".into(), path(self.log().path())]);
        words.extend(more.iter().map(|it| (*it).to_owned()));
        words
    }

    /// What all fake servers of this place write down.
    pub(crate) fn log(&self) -> Log {
        Log::at(self.0.join("log.jsonl"))
    }

    /// The processes that have this place in their command lines. Corpses have none.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let entries = std::fs::read_dir("/proc").expect("Linux tells about its processes");
        let pids = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        let lines = pids.filter_map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
        });
        let place = self.0.display().to_string();
        lines.filter(|(_, line)| line.contains(&place)).collect()
    }

    /// The processes of the fake servers.
    pub(crate) fn servers(&self) -> Vec<u32> {
        let server = fake::server().display().to_string();
        let all = self.processes().into_iter();
        all.filter(|(_, line)| line.starts_with(&server)).map(|(pid, _)| pid).collect()
    }

    /// Waits until nobody is left, and says who is.
    pub(crate) async fn emptied(&self) -> Vec<(u32, String)> {
        down_to(0, || self.processes()).await
    }

    /// Waits until one server is left: what was started for its lists has gone.
    pub(crate) async fn one_server(&self) -> u32 {
        match down_to(1, || self.servers()).await[..] {
            [pid] => pid,
            ref pids => panic!("There is not one server, but {pids:?}."),
        }
    }

    /// What a file of it says.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).expect("the file is there")
    }

    /// Runs the binary for the gateway of this place, and says what it prints.
    pub(crate) async fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(TRUNKLINE);
        command.args(args).arg("--state").arg(self.0.join("state"));
        let done = command.output().await.expect("the binary was built");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
        said
    }

    /// `trunkline serve` with what every start of it needs.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(TRUNKLINE);
        command.arg("serve").arg("--config").arg(self.config());
        command.arg("--state").arg(self.0.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        command
    }

    fn config(&self) -> PathBuf {
        self.0.join("trunkline.yaml")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A gateway over HTTP, at a port of its own.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) process: Child,
}

impl Gateway {
    pub(crate) async fn start(place: &Place) -> Self {
        Self::start_at(place, "127.0.0.1:0").await
    }

    /// One at an address of one's own choice.
    pub(crate) async fn start_at(place: &Place, listen: &str) -> Self {
        let mut command = place.command();
        command.args(["--listen", listen]).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary was built");
        let mut lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
            let line = line.expect("it says where it is").expect("it says text");
            let line = line.unwrap_or_else(|| panic!("It ended and said {said:?}."));
            // What it logs meanwhile may name other URLs.
            let is_it = line.starts_with("The gateway serves ");
            let address = line.split_once("http://").filter(|_| is_it);
            let address = address.and_then(|it| it.1.split_once('/'));
            match address.and_then(|it| it.0.parse().ok()) {
                Some(address) => break address,
                None => said.push(line),
            }
        };
        // Whoever does not read what it says later would block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { address, process }
    }

    /// The URL of one of its paths.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id().expect("it runs")
    }
}

/// Waits until no more than so many are found, and says what is.
async fn down_to<T>(most: usize, find: impl Fn() -> Vec<T>) -> Vec<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = find();
        if left.len() <= most || Instant::now() > end {
            return left;
        }
        // The kernel tells nobody but a parent that a process has ended.
        tokio::time::sleep(Duration::from_millis(2)).await; // the sleep is the subject
    }
}

/// Sends a signal: `KILL`, `TERM`. A process that is gone is no failure.
pub(crate) async fn signal(name: &str, pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}")).args(pids.iter().map(u32::to_string));
    kill.stderr(Stdio::null()).status().await.expect("there is `kill`");
}

/// A client that keeps its connection.
pub(crate) struct Caller {
    pub(crate) guest: Guest,
    line: Line,
}

/// What came of a call: what was said meanwhile, and the response.
pub(crate) struct Heard {
    pub(crate) before: Vec<Value>,
    pub(crate) message: Value,
}

impl Caller {
    pub(crate) async fn new(guest: Guest) -> Self {
        let line = Line::to(guest.address).await;
        Self { guest, line }
    }

    /// Calls a tool; `None` if the gateway hung up.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        meta: Value,
    ) -> Option<Heard> {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let asked = self.guest.prepare("tools/call", params);
        self.line.send(self.guest.text(&asked)).await;
        let head = self.line.slow_head(Duration::from_secs(120)).await?;
        let (mut before, mut message) = (Vec::new(), Value::Null);
        if head.is_events() {
            while let Some((_, said)) = self.line.message().await {
                match said.get("method") {
                    Some(_) => before.push(said),
                    None => message = said,
                }
            }
        } else {
            message = self.line.json().await;
        }
        assert_eq!(message["id"], asked["id"], "{message}");
        Some(Heard { before, message })
    }
}

impl Heard {
    /// The first text of the result.
    pub(crate) fn text(&self) -> Option<&str> {
        self.message["result"]["content"][0]["text"].as_str()
    }

    /// Why there is no result, in one word.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.message["error"]["data"]["reason"].as_str()
    }
}
