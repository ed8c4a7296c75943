//! A catalog of a test's own → the binary that serves it, and clients that call it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use trunkline::{Client, Revision};
use trunkline_testkit::fake::{self, Log};
use trunkline_testkit::http::{Answer, Guest, Line, request};
use trunkline_testkit::ports::free_port;

use crate::run::TRUNKLINE;

/// How long anything may take on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// No process.
pub(super) const NOTHING: [u32; 0] = [];

/// An address for a gateway that is started there again: no connection is given it meanwhile.
pub(super) fn lasting_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// A folder with a catalog, the log of its servers, and the state of its gateway. Gone at the end.
pub(super) struct Place(PathBuf);

impl Place {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("trunkline-mcpv-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path of a file in it, as text.
    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// What happened to all servers.
    pub(super) fn log(&self) -> Log {
        Log::at(self.path("log.jsonl"))
    }

    /// An entry of the catalog: the server that logs, by its name and its options, and the keys
    /// beside its command.
    pub(super) fn fake(&self, name: &str, options: &[&str], keys: Value) -> Value {
        let log = self.text("log.jsonl");
        let args = ["--name", name, "--log", &log].into_iter().chain(options.iter().copied());
        let args: Vec<_> = args.collect();
        let mut entry = json!({ "command": fake::server(), "args": args });
        entry.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        entry
    }

    /// Writes the catalog, in one move as editors do.
    pub(super) fn write(&self, catalog: &Value) {
        fs::write(self.path("next"), catalog.to_string()).unwrap();
        fs::rename(self.path("next"), self.path("catalog.json")).unwrap();
    }

    /// Writes a catalog of these servers and serves it.
    pub(super) async fn serve(&self, servers: Value) -> Gateway {
        self.write(&json!({ "mcpServers": servers }));
        self.open(&lasting_address()).await
    }

    /// Serves the catalog that is there.
    pub(super) async fn open(&self, listen: &str) -> Gateway {
        Gateway::start(self.command().args(["--listen", listen]), self.path("state/admin.sock"))
            .await
    }

    /// `trunkline serve` with this catalog.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(TRUNKLINE);
        command.arg("serve").arg("--config").arg(self.path("catalog.json"));
        command.arg("--state").arg(self.path("state"));
        command.env_remove("TRUNKLINE_CONFIG").env_remove("TRUNKLINE_STATE");
        command
    }

    /// The processes of a server that were ever started.
    pub(super) fn starts(&self, server: &str) -> Vec<u32> {
        let events = self.log().of("start").into_iter().filter(|it| it["name"] == server);
        events.filter_map(|it| it["pid"].as_u64()).map(|pid| pid as u32).collect()
    }

    /// Those of them that are there now.
    pub(super) fn running(&self, server: &str) -> Vec<u32> {
        self.starts(server).into_iter().filter(|pid| fake::is_running(*pid)).collect()
    }

    /// The most calls that any process of a server had in flight at once.
    pub(super) fn most_in_flight(&self, server: &str) -> usize {
        let (mut open, mut most) = (std::collections::HashMap::<u64, usize>::new(), 0);
        let mut calls = std::collections::HashSet::new();
        for event in self.log().all().into_iter().filter(|it| it["name"] == server) {
            let pid = event["pid"].as_u64().unwrap();
            let key = (pid, event["id"].to_string());
            let count = open.entry(pid).or_default();
            if event["event"] == "call" && calls.insert(key.clone()) {
                *count += 1;
                most = most.max(*count);
            } else if event["event"] == "answer" && calls.remove(&key) {
                *count -= 1;
            }
        }
        most
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `trunkline serve` at work. Killed at the end.
pub(super) struct Gateway {
    pub(super) process: Child,
    pub(super) address: SocketAddr,
    admin: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
}

impl Gateway {
    /// Starts it and waits until it says where it listens.
    pub(super) async fn start(command: &mut Command, admin: PathBuf) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("the binary was built");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let address = loop {
            let line = timeout(SOON, lines.next_line()).await.expect("it says where it is");
            let Some(line) = line.unwrap() else { panic!("It ended: {said:?}") };
            let found = line.split_once(" at http").and_then(|it| it.1.split_once("://"));
            let found = found.and_then(|it| it.1.split_once('/')).and_then(|it| it.0.parse().ok());
            said.lock().unwrap().push(line);
            if let Some(address) = found {
                break address;
            }
        };
        let more = Arc::clone(&said);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                more.lock().unwrap().push(line);
            }
        });
        Self { process, address, admin, said }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    /// What it wrote to its stderr.
    pub(super) fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }

    /// Asks the admin API at its socket: `GET /v1/status`. The status and the body.
    pub(super) async fn admin(&self, line: &str) -> (u16, String) {
        let mut socket = UnixStream::connect(&self.admin).await.expect("the admin API listens");
        let text = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        socket.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(SOON, socket.read_to_end(&mut answer)).await.expect("it answers").unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        (status.expect("an answer has a status"), body.to_owned())
    }

    /// The admin API's answer as JSON; it must be a good one.
    pub(super) async fn told(&self, line: &str) -> Value {
        let (status, body) = self.admin(line).await;
        assert_eq!(status, 200, "{line}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|why| panic!("{why}: {body}"))
    }

    /// What is known of a server.
    pub(super) async fn server(&self, name: &str) -> Value {
        self.told(&format!("GET /v1/servers/{name}")).await
    }

    /// Waits until every server has said what it offers and those that were asked have ended.
    pub(super) async fn settled(&self) {
        until("every server to be known and idle", SOON, async || {
            let status = self.told("GET /v1/status").await;
            let servers = status["servers"].as_array().unwrap().clone();
            servers.iter().all(|it| it["tools"].is_number() && it["instances"] == json!([]))
        })
        .await;
    }

    /// A client of the last revision with sessions, at all servers.
    pub(super) async fn client(&self) -> Caller {
        self.client_at("/mcp").await
    }

    /// A client at a path.
    pub(super) async fn client_at(&self, path: &str) -> Caller {
        Caller::open(self.address, path, &[]).await
    }

    /// One bare request; the status, and the body.
    pub(super) async fn http(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (u16, String) {
        let mut to = Line::to(self.address).await;
        to.send(request(self.address, line, headers, body)).await;
        let head = to.head().await;
        let body = if head.is_events() { Vec::new() } else { to.body().await };
        (head.status, String::from_utf8_lossy(&body).into_owned())
    }

    /// Sends SIGTERM.
    pub(super) fn terminate(&self) {
        signal("TERM", self.pid());
    }
}

/// A client of a gateway.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) guest: Guest,
    path: String,
    headers: Vec<(String, String)>,
}

/// A tool's first text; or else the error, or the whole result of a tool that failed.
pub(super) type Said = Result<String, Value>;

impl Caller {
    /// Connects and shakes hands in 2025-11-25.
    pub(super) async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Self {
        Self::open_as(Revision::V2025_11_25, address, path, headers).await
    }

    /// The same in any revision.
    pub(super) async fn open_as(
        revision: Revision,
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers = headers.iter().map(own).collect();
        let guest = Guest::new(address, revision);
        let mut caller = Self { guest, path: path.to_owned(), headers };
        if revision == Revision::V2026_07_28 {
            return caller;
        }
        let answer = caller.ask("initialize", caller.guest.hello()).await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        caller.guest.session = answer.head.get("mcp-session-id").map(str::to_owned);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let (_, head) = caller.post(&initialized).await;
        assert_eq!(head.status, 202);
        caller
    }

    /// Uses the session of another from now on.
    pub(super) fn take_session_of(&mut self, other: &Self) {
        self.guest.session.clone_from(&other.guest.session);
    }

    async fn post(&self, message: &Value) -> (Line, trunkline_testkit::http::Head) {
        let mut headers = self.guest.headers(message);
        headers.extend(self.headers.clone());
        let line = format!("POST {}", self.path);
        let mut to = Line::to(self.guest.address).await;
        to.send(request(self.guest.address, &line, &headers, &message.to_string())).await;
        let head = to.head().await;
        (to, head)
    }

    /// Makes a request.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Answer {
        let message = self.guest.prepare(method, params);
        let (mut line, head) = self.post(&message).await;
        self.guest.answer(&message, &mut line, head).await
    }

    /// Makes a request that must succeed.
    pub(super) async fn expect(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        let result = answer.message.get("result").cloned();
        result.unwrap_or_else(|| panic!("`{method}` failed: {answer:?}"))
    }

    /// All pages of a list: `tools`, `prompts`, `resources`; and how many pages there were.
    pub(super) async fn list(&mut self, what: &str) -> (Vec<Value>, usize) {
        let (mut all, mut pages, mut params) = (Vec::new(), 0, json!({}));
        loop {
            let page = self.expect(&format!("{what}/list"), params).await;
            all.extend(page[what].as_array().unwrap().iter().cloned());
            pages += 1;
            match page.get("nextCursor") {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return (all, pages),
            }
        }
    }

    /// The names of all tools.
    pub(super) async fn tools(&mut self) -> Vec<String> {
        let (all, _) = self.list("tools").await;
        all.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool. The call is under way once this is polled; others may be made meanwhile.
    pub(super) fn call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> impl Future<Output = Said> + Send + use<> {
        let params = json!({ "name": tool, "arguments": arguments });
        let message = self.guest.prepare("tools/call", params);
        let caller = self.clone();
        async move {
            let (mut line, head) = caller.post(&message).await;
            said(caller.guest.answer(&message, &mut line, head).await)
        }
    }

    /// Calls a tool in the background.
    pub(super) fn spawn(&mut self, tool: &str, arguments: Value) -> tokio::task::JoinHandle<Said> {
        tokio::spawn(self.call(tool, arguments))
    }

    /// Calls a tool so many times at once.
    pub(super) async fn at_once(
        &mut self,
        count: usize,
        tool: &str,
        arguments: Value,
    ) -> Vec<Said> {
        let calls: Vec<_> = (0..count).map(|_| self.spawn(tool, arguments.clone())).collect();
        let mut said = Vec::new();
        for call in calls {
            said.push(call.await.unwrap());
        }
        said
    }

    /// The process that a call arrives at.
    pub(super) async fn pid(&mut self, tool: &str) -> u32 {
        let said = self.call(tool, json!({})).await;
        said.unwrap_or_else(|why| panic!("`{tool}` failed: {why}")).parse().unwrap()
    }

    /// Ends its session.
    pub(super) async fn leave(self) {
        let message = json!({ "method": "delete" });
        let mut headers = self.guest.headers(&message);
        headers.extend(self.headers);
        let mut line = Line::to(self.guest.address).await;
        let text = format!("DELETE {}", self.path);
        line.send(request(self.guest.address, &text, &headers, "")).await;
        let status = line.head().await.status;
        assert!((200..300).contains(&status), "{status}");
    }
}

fn said(answer: Answer) -> Said {
    if let Some(error) = answer.message.get("error") {
        return Err(error.clone());
    }
    let result = &answer.message["result"];
    match result["content"][0]["text"].as_str() {
        Some(text) if result["isError"] != true => Ok(text.to_owned()),
        _ => Err(result.clone()),
    }
}

/// The word for what went wrong.
pub(super) fn reason(said: &Said) -> &str {
    let error = said.as_ref().expect_err("this was to fail");
    error["data"]["reason"].as_str().unwrap_or_else(|| panic!("There is no reason in {error}."))
}

/// Waits until something is so.
#[track_caller]
pub(super) fn until(
    what: &str,
    limit: Duration,
    mut is_so: impl AsyncFnMut() -> bool,
) -> impl Future<Output = Duration> {
    let caller = std::panic::Location::caller();
    async move {
        let began = Instant::now();
        while !is_so().await {
            assert!(began.elapsed() < limit, "{caller}: {what}: not within {limit:?}");
            // Other processes tell nobody of what they do: looking again is the only way.
            tokio::time::sleep(Duration::from_millis(10)).await; // the sleep is the subject
        }
        began.elapsed()
    }
}

/// A client of a revision that answers every question.
pub(super) async fn person(gateway: &Gateway, revision: Revision) -> Client {
    let builder = Client::builder("person", "1").protocol(revision);
    let builder =
        builder.on_ask(|question| async move { question.accept(json!({ "answer": "blue" })) });
    builder.connect_http(format!("http://{}/mcp", gateway.address)).await.unwrap()
}

/// What a tool says.
pub(super) async fn text(client: &Client, tool: &str, arguments: Value) -> String {
    let said = client.call_tool(tool, arguments).await.unwrap();
    said.content[0].as_text().expect("it says a text").to_owned()
}

/// Sends a signal.
pub(super) fn signal(name: &str, pid: u32) {
    let sent =
        std::process::Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(sent.expect("`kill` is there").success());
}

/// A file of a place, written.
pub(super) fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}
