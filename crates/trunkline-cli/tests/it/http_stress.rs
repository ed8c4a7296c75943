//! What many clients cost `trunkline demo --http`, which is a process of its own so that its memory
//! is its own: Show 6 of the HTTP transport.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use trunkline::Revision;
use trunkline_testkit::http::{Guest, Head, Line, request};
use trunkline_testkit::peer::PATIENCE;
use trunkline_testkit::repeats;

use crate::run::TRUNKLINE;

const NEWEST: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// The demo at a port of its own.
struct Demo {
    address: SocketAddr,
    process: Child,
}

impl Demo {
    async fn start() -> Self {
        let mut command = Command::new(TRUNKLINE);
        command.args(["demo", "--http", "127.0.0.1:0"]);
        Self::run(command).await
    }

    /// The demo with only so many files to open.
    async fn with_files(files: u32) -> Self {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {files} && exec \"$0\" demo --http 127.0.0.1:0");
        command.args(["-c", &script, TRUNKLINE]);
        Self::run(command).await
    }

    async fn run(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("the binary was built");
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.expect("it says where it is").unwrap().expect("it says something");
        let address = line.split_once("http://").and_then(|it| it.1.split_once('/'));
        let address = address.and_then(|it| it.0.parse().ok());
        let address = address.unwrap_or_else(|| panic!("There is no address in {line:?}."));
        // Whoever does not read what it says later would block it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { address, process }
    }

    /// A number out of `/proc/PID/status`.
    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.process.id().expect("it runs"));
        let text = std::fs::read_to_string(path).expect("Linux tells about its processes");
        let line = text.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
        number.unwrap_or_else(|| panic!("There is no `{name}` in {text}"))
    }

    /// Its memory in KiB.
    fn memory(&self) -> u64 {
        self.status("VmRSS")
    }

    /// The time it has computed for.
    fn worked(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.process.id().expect("it runs"));
        let text = std::fs::read_to_string(path).expect("Linux tells about its processes");
        let fields: Vec<_> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
        let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Its memory once everything that is needed for one client is there.
    async fn base(&self) -> u64 {
        for revision in [LEGACY, NEWEST] {
            let mut guest = Guest::open(self.address, revision).await;
            for _ in 0..50 {
                guest.tool("sum", json!({ "a": 1, "b": 2 })).await;
            }
            if revision == LEGACY {
                assert_eq!(guest.delete().await.status, 204);
            }
        }
        self.memory()
    }
}

/// Has so many files be open at once, here and in processes started from here; fails with a
/// sentence if that cannot be.
fn need_files(count: u64) {
    if may_open() < count {
        // Most systems let a process raise this for itself.
        let me = std::process::id().to_string();
        let raised = format!("--nofile={count}:");
        let _ = std::process::Command::new("prlimit").args(["--pid", &me, &raised]).status();
    }
    let soft = may_open();
    assert!(
        soft >= count,
        "This test opens {count} files and may open {soft}; raise it with `ulimit -n {count}`."
    );
}

fn may_open() -> u64 {
    let text = std::fs::read_to_string("/proc/self/limits").expect("Linux tells about itself");
    let line = text.lines().find(|it| it.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(u64::MAX)
}

/// Opens a session over a connection that others use too.
async fn shake_hands(line: &mut Line, address: SocketAddr) -> (Head, Option<Guest>) {
    let mut guest = Guest::new(address, LEGACY);
    let hello = guest.prepare("initialize", guest.hello());
    line.send(guest.text(&hello)).await;
    let head = line.head().await;
    line.body().await;
    let Some(session) = head.get("mcp-session-id") else { return (head, None) };
    guest.session = Some(session.to_owned());
    line.send(guest.text(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })))
        .await;
    assert_eq!(line.head().await.status, 202);
    line.body().await;
    (head, Some(guest))
}

/// Opens `count` sessions over a few connections.
async fn sessions(address: SocketAddr, count: usize) -> Vec<Guest> {
    const LINES: usize = 8;
    let mut tasks = JoinSet::new();
    for at in 0..LINES {
        let share = count / LINES + usize::from(at < count % LINES);
        tasks.spawn(async move {
            let mut line = Line::to(address).await;
            let mut guests = Vec::with_capacity(share);
            for _ in 0..share {
                let (head, guest) = shake_hands(&mut line, address).await;
                guests.push(guest.unwrap_or_else(|| panic!("there is room: {head:?}")));
            }
            guests
        });
    }
    let mut guests = Vec::with_capacity(count);
    while let Some(share) = tasks.join_next().await {
        guests.extend(share.unwrap());
    }
    guests
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figure is what a soak is run for.
async fn ten_thousand_sessions_cost_less_than_80_mib() {
    let demo = Demo::start().await;
    let base = demo.base().await;
    let mut guests = sessions(demo.address, 10_000).await;
    let mut line = Line::to(demo.address).await;
    for _ in 0..10 {
        let (head, _) = shake_hands(&mut line, demo.address).await;
        assert_eq!(head.status, 503);
        assert!(head.get("retry-after").is_some());
    }
    let grown = demo.memory().saturating_sub(base);
    println!(
        "10,000 sessions: {base} KiB before, {grown} KiB more, {} bytes each",
        grown * 1024 / 10_000
    );
    assert!(grown <= 80 << 10, "{grown} KiB for 10,000 sessions");
    // None of those that were there has suffered.
    for at in [0, 4_999, 9_999] {
        assert_eq!(guests[at].tool("echo", json!({ "text": "here" })).await, "here");
    }
    for guest in guests.iter().take(10) {
        assert_eq!(guest.delete().await.status, 204);
    }
    sessions(demo.address, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figure is what a soak is run for.
async fn five_thousand_streams_cost_less_than_20_kib_each() {
    const COUNT: usize = 5000;
    need_files(COUNT as u64 + 200);
    let demo = Demo::start().await;
    let base = demo.base().await;
    let guests = sessions(demo.address, COUNT).await;
    let between = demo.memory();
    let mut lines = Vec::with_capacity(COUNT);
    for guest in &guests {
        let (mut line, head) = guest.get(None).await;
        assert_eq!(head.status, 200);
        assert!(line.event().await.is_some(), "a stream begins with an id");
        lines.push(line);
    }
    let grown = demo.memory().saturating_sub(base);
    let sessions = between.saturating_sub(base);
    println!(
        "5,000 sessions with streams: {base} KiB before, {grown} KiB more, {} bytes each; {} of that the session",
        grown * 1024 / COUNT as u64,
        sessions * 1024 / COUNT as u64
    );
    assert!(grown <= 20 * COUNT as u64, "{grown} KiB for {COUNT} streams");
    // All of them hear of a change.
    let mut caller = Guest::open(demo.address, NEWEST).await;
    caller.tool("announce", json!({ "kind": "tools" })).await;
    for line in &mut lines {
        let (_, news) = line.message().await.expect("the stream is open");
        assert_eq!(news["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figure is what a soak is run for.
async fn a_thousand_calls_of_three_seconds_are_all_answered() {
    need_files(1200);
    let millis = repeats(1000, 3000);
    let demo = Demo::start().await;
    let base = demo.base().await;
    let (mut lines, mut calls) = (Vec::new(), JoinSet::new());
    for _ in 0..1000 {
        lines.push(Line::to(demo.address).await);
    }
    let started = Instant::now();
    for (at, mut line) in lines.into_iter().enumerate() {
        let mut guest = Guest::new(demo.address, NEWEST);
        guest.last_id = at as i64;
        let asked =
            guest.prepare("tools/call", json!({ "name": "sleep", "arguments": { "ms": millis } }));
        calls.spawn(async move {
            line.send(guest.text(&asked)).await;
            let head = line.head().await;
            assert_eq!(head.status, 200);
            let answer = line.json().await;
            answer.get("result").is_some() && answer["id"] == asked["id"]
        });
    }
    let mut answered = 0;
    while let Some(right) = calls.join_next().await {
        answered += u32::from(right.unwrap());
    }
    let took = started.elapsed();
    let grown = demo.memory().saturating_sub(base);
    println!("1,000 calls of {millis} ms: {took:?}, {grown} KiB more");
    assert_eq!(answered, 1000);
    assert!(took < Duration::from_millis(millis as u64) + Duration::from_secs(6), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_lets_four_hundred_calls_finish() {
    need_files(600);
    let mut demo = Demo::start().await;
    let mut lines = Vec::new();
    for at in 0..400 {
        let mut guest = Guest::new(demo.address, NEWEST);
        guest.last_id = at;
        let params = json!({
            "name": "progress",
            "arguments": { "steps": 100 },
            "_meta": { "progressToken": at },
        });
        let asked = guest.prepare("tools/call", params);
        let (line, head) = guest.post(&asked).await;
        lines.push((guest, asked, line, head));
    }
    let pid = demo.process.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status().await.expect("there is `kill`");
    assert!(sent.success());
    for (guest, asked, mut line, head) in lines {
        let answer = guest.answer(&asked, &mut line, head).await;
        assert_eq!(answer.message["result"]["content"][0]["text"], "done");
    }
    let ended = tokio::time::timeout(PATIENCE, demo.process.wait()).await.expect("it ends");
    assert_eq!(ended.unwrap().code(), Some(0));
    assert!(tokio::net::TcpStream::connect(demo.address).await.is_err(), "nobody listens");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_files_left_goes_on_with_those_it_has() {
    let demo = Demo::with_files(256).await;
    let mut guest = Guest::new(demo.address, NEWEST);
    let asked =
        guest.prepare("tools/call", json!({ "name": "echo", "arguments": { "text": "x" } }));
    // This one is in before it gets tight.
    let mut early = Line::to(demo.address).await;
    early.send(guest.text(&asked)).await;
    assert_eq!(early.head().await.status, 200);
    early.body().await;
    let mut crowd = Vec::new();
    // More than it has files for, and no more over that than a kernel keeps waiting.
    for _ in 0..340 {
        crowd.push(Line::to(demo.address).await);
    }
    let (worked, since) = (demo.worked(), Instant::now());
    for _ in 0..50 {
        early.send(guest.text(&asked)).await;
        assert_eq!(early.head().await.status, 200);
        early.body().await;
        // the sleep is the subject: a server that waits does not compute
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let share = (demo.worked() - worked).as_secs_f64() / since.elapsed().as_secs_f64();
    assert!(share < 0.5, "it spins: {share:.2} of a processor while it waits");
    // Those that did not fit are served as soon as others go.
    drop(crowd);
    let freed = Instant::now();
    let mut late = Line::to(demo.address).await;
    late.send(request(demo.address, "POST /mcp", &guest.headers(&asked), &asked.to_string())).await;
    assert_eq!(late.head().await.status, 200);
    assert!(freed.elapsed() < Duration::from_secs(3), "{:?}", freed.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figure is what a soak is run for.
async fn clients_without_sessions_leave_nothing_behind() {
    let count = repeats(5_000, 100_000);
    let demo = Demo::start().await;
    let base = demo.base().await;
    let mut line = Line::to(demo.address).await;
    for at in 0..count {
        let mut guest = Guest::new(demo.address, NEWEST);
        let mut asked =
            guest.prepare("tools/call", json!({ "name": "sum", "arguments": { "a": 1, "b": 2 } }));
        let name = json!({ "name": format!("client {}", at % 10_000), "version": "1" });
        asked["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = name;
        line.send(guest.text(&asked)).await;
        assert_eq!(line.head().await.status, 200);
        line.body().await;
    }
    let grown = demo.memory().saturating_sub(base);
    println!("{count} requests of 10,000 names: {base} KiB before, {grown} KiB more");
    assert!(grown <= 4 << 10, "{grown} KiB are left of {count} requests");
}
