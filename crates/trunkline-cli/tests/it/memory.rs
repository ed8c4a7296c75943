//! What strangers and callers can make a gateway keep: at full rate from sixteen connections, for a while, with and
//! without a token. It never takes more than 64 MiB beyond what it had, and gives nearly all of it back; what the recorder
//! keeps has its own bound.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use trunkline::model::TaskSupport;
use trunkline::server::TaskBounds;
use trunkline::{Args, Revision, Server, tool};
use trunkline_testkit::http::{Guest, Head, Line, request};
use trunkline_testkit::repeats;

use crate::gateway_kit::{Gateway, Place};

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;
const TOKEN: &str = "the-long-secret-token-of-mallory";
const CONNECTIONS: usize = 16;
const MIB: usize = 1 << 20;
/// What may be taken beyond what there was, and what of it may stay.
const MOST: usize = 64 * MIB;
const LEFT: usize = 16 * MIB;
/// How long it may take to give it back.
const GRACE: Duration = Duration::from_secs(10);

type Attack = fn(Attacker) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// One of those who attack.
#[derive(Clone)]
struct Attacker {
    address: SocketAddr,
    number: usize,
    until: Instant,
}

/// Every way in which a peer can have the gateway keep something.
const VECTORS: &[(&str, Attack)] = &[
    ("no token: selectors", |it| Box::pin(selectors(it, false))),
    ("no token: bodies that stall", |it| Box::pin(stalled(it, false))),
    ("no token: heads that stall", |it| Box::pin(heads(it))),
    ("no token: wrong tokens", |it| Box::pin(wrong_tokens(it))),
    ("selectors", |it| Box::pin(selectors(it, true))),
    ("bodies that stall", |it| Box::pin(stalled(it, true))),
    ("large arguments", |it| Box::pin(large(it))),
    ("sessions", |it| Box::pin(sessions(it))),
    ("streams nobody reads", |it| Box::pin(unread(it))),
    ("notifications nobody reads", |it| Box::pin(notifications(it))),
    ("questions nobody answers", |it| Box::pin(questions(it))),
    ("calls that wait for a place", |it| Box::pin(waiting(it))),
    ("tasks with large results", |it| Box::pin(tasks(it))),
    ("subscriptions", |it| Box::pin(subscriptions(it))),
    ("copies of lists", |it| Box::pin(copies(it))),
    ("long lists nobody reads", |it| Box::pin(unread_lists(it))),
    ("batches", |it| Box::pin(batches(it))),
    ("keys of affinity", |it| Box::pin(keys(it))),
    ("lists that change for ever", |it| Box::pin(changes(it))),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The table is what a soak is run for.
async fn nothing_that_a_peer_sends_takes_more_than_a_bound() {
    let long = Duration::from_millis(repeats(300, 60_000) as u64);
    let only = std::env::var("TRUNKLINE_VECTOR").unwrap_or_default();
    println!("| vector | base | most | {} s after |\n|---|---|---|---|", GRACE.as_secs());
    let mut wrong = Vec::new();
    for (name, attack) in VECTORS.iter().filter(|it| it.0.contains(&only)) {
        let [base, most, after] = under(*attack, long).await.map(|it| it.cast_signed());
        let show = |bytes: isize| format!("{:.1}", bytes as f64 / MIB as f64);
        println!("| {name} | {} | +{} | +{} |", show(base), show(most - base), show(after - base));
        if most - base > MOST.cast_signed() || after - base > LEFT.cast_signed() {
            wrong.push(*name);
        }
    }
    assert_eq!(wrong, [""; 0], "in MiB, see above");
}

/// A server with a MiB of tools, whose results may be as long, and tasks.
async fn wide() -> SocketAddr {
    async fn echo(Args(it): Args<Map<String, Value>>) -> String {
        it.get("text").map(Value::to_string).unwrap_or_default()
    }
    async fn big() -> String {
        "x".repeat(MIB)
    }
    let long = "x".repeat(4 << 10);
    let mut server = Server::builder("wide", "1.0.0")
        .tasks(TaskBounds { inline: Duration::ZERO, ..TaskBounds::default() })
        .tool(tool("echo", echo))
        .tool(tool("big", big).task(TaskSupport::Optional));
    for number in 0..256 {
        server = server.tool(tool(format!("t{number}"), big).about(long.as_str()));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there are free ports");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(server.build().http().serve(listener, std::future::pending()));
    address
}

/// Choices of these are different ones.
const TAGS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// What a gateway takes before, at most during, and some time after an attack.
async fn under(attack: Attack, long: Duration) -> [usize; 3] {
    let place = Place::new("memory");
    let fake = |name: &str, more: Value| {
        let words = place.fake(name, &["--gossip", "--list-changed-on", "SIGUSR1"]);
        let mut entry = json!({ "command": words[0], "args": words[1..] });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    place.catalog(&json!({
        "mcpServers": {
            "one": fake("one", json!({ "maxInstances": 4 })),
            "few": fake("few", json!({ "maxInstances": 1, "maxConcurrent": 1 })),
            "wide": { "url": format!("http://{}/mcp", wide().await), "tags": TAGS },
            "kept": fake("kept", json!({ "strategy": "stateful", "affinity": "meta:example.com/key" })),
        },
        "gateway": {
            "auth": { "tokens": [{ "name": "mallory", "token": TOKEN }] },
            // What is recorded stays until it makes way, up to this: the default is as much as all may take here.
            "recording": { "keep": "4MiB" },
        },
    }));
    let gateway = Gateway::start(&place).await;
    let (pid, address) = (gateway.pid(), gateway.address);
    // What normal use takes is no part of it.
    for revision in [OLD, NEW] {
        let mut guest = Guest::new(address, revision);
        for _ in 0..20 {
            if revision == OLD {
                open(&mut guest).await;
            }
            for server in ["one", "few", "kept", "wide"] {
                let said =
                    call(&mut guest, &format!("{server}.echo"), json!({ "text": "hello" })).await;
                assert!(said["result"].is_object(), "{said}");
            }
        }
    }
    let base = resident(pid);
    let mut most = base;
    let mut attackers = JoinSet::new();
    let until = Instant::now() + long;
    for number in 0..CONNECTIONS {
        attackers.spawn(attack(Attacker { address, number, until }));
    }
    let look = Duration::from_millis(50);
    loop {
        tokio::select! {
            ended = attackers.join_next() => match ended {
                Some(ended) => ended.expect("nobody fails"),
                None => break,
            },
            // the sleep is the subject: the memory is looked at again and again
            () = tokio::time::sleep(look) => most = most.max(resident(pid)),
        }
    }
    let ended = Instant::now();
    let mut after = resident(pid);
    while ended.elapsed() < GRACE && after > base + LEFT {
        // the sleep is the subject: how much is left after a while
        tokio::time::sleep(look).await;
        after = resident(pid);
    }
    [base, most.max(after), after]
}

fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the gateway runs");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("it takes memory");
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
}

fn token() -> (String, String) {
    ("Authorization".to_owned(), format!("Bearer {TOKEN}"))
}

fn text(guest: &Guest, message: &Value) -> Vec<u8> {
    text_to(guest, "POST /mcp", message)
}

fn text_to(guest: &Guest, path: &str, message: &Value) -> Vec<u8> {
    let mut headers = guest.headers(message);
    headers.push(token());
    request(guest.address, path, &headers, &message.to_string())
}

async fn post(guest: &Guest, message: &Value) -> (Line, Head) {
    post_to(guest, "POST /mcp", message).await
}

async fn post_to(guest: &Guest, path: &str, message: &Value) -> (Line, Head) {
    let mut line = Line::to(guest.address).await;
    line.send(text_to(guest, path, message)).await;
    let head = line.slow_head(Duration::from_secs(180)).await.expect("the gateway answers");
    (line, head)
}

async fn open(guest: &mut Guest) -> u16 {
    let hello = guest.prepare("initialize", guest.hello());
    guest.session = None;
    let (mut line, head) = post(guest, &hello).await;
    guest.session = head.get("mcp-session-id").map(str::to_owned);
    line.body().await;
    head.status
}

async fn ask(guest: &mut Guest, method: &str, params: Value) -> Value {
    let message = guest.prepare(method, params);
    let (mut line, head) = post(guest, &message).await;
    if !head.is_events() {
        return serde_json::from_slice(&line.body().await).unwrap_or_default();
    }
    while let Some((_, said)) = line.quiet_message().await {
        if said.get("method").is_none() {
            return said;
        }
    }
    Value::Null
}

async fn call(guest: &mut Guest, tool: &str, arguments: Value) -> Value {
    ask(guest, "tools/call", json!({ "name": tool, "arguments": arguments })).await
}

impl Attacker {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// Until it is over, whatever is kept open meanwhile.
    async fn stay(&self) {
        // the sleep is the subject: an attack takes its time
        tokio::time::sleep_until(self.until.into()).await;
    }

    async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.until.into(), work).await.ok()
    }
}

/// Endpoints for tags that nobody has, each with as many as fit into a line.
async fn selectors(it: Attacker, has_token: bool) {
    let mut count = 0;
    while it.goes_on() {
        let mut line = Line::to(it.address).await;
        for _ in 0..100 {
            count += 1;
            let tags: Vec<String> =
                (0..4000).map(|tag| format!("{:x}{count:x}{tag:x}", it.number)).collect();
            let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
            headers.extend(has_token.then(token));
            let target = format!("POST /mcp/tags/{}", tags.join(","));
            line.send(request(it.address, &target, &headers, "{}")).await;
            if line.try_head().await.is_none() || !it.goes_on() {
                break;
            }
            line.body().await;
        }
    }
}

/// Bodies of four MiB that lack their last byte.
async fn stalled(it: Attacker, has_token: bool) {
    let mut lines = Vec::new();
    let body = vec![b' '; 4 * MIB - 1];
    while it.goes_on() {
        let mut line = Line::to(it.address).await;
        let auth =
            if has_token { format!("Authorization: Bearer {TOKEN}\r\n") } else { String::new() };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\n{auth}Content-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nContent-Length: {}\r\n\r\n",
            it.address,
            body.len() + 1
        );
        line.send(head).await;
        if it.within(line.send(&body)).await.is_none() {
            return;
        }
        lines.push(line);
        if lines.len() > 64 {
            lines.remove(0);
        }
    }
}

/// Heads without an end.
async fn heads(it: Attacker) {
    while it.goes_on() {
        let mut line = Line::to(it.address).await;
        line.send(format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", it.address)).await;
        for number in 0..2000 {
            line.send(format!("x-{number}: {}\r\n", "y".repeat(40))).await;
        }
        let _ = it.within(line.try_head()).await;
    }
}

async fn wrong_tokens(it: Attacker) {
    let mut count = 0;
    while it.goes_on() {
        let mut line = Line::to(it.address).await;
        for _ in 0..100 {
            count += 1;
            let wrong = format!("Bearer {}-{count}-{}", it.number, "x".repeat(4000));
            let headers = [("Authorization".to_owned(), wrong)];
            line.send(request(it.address, "POST /mcp", &headers, "{}")).await;
            if line.try_head().await.is_none() {
                break;
            }
            line.body().await;
        }
    }
}

/// Calls with nearly as much as a body may have.
async fn large(it: Attacker) {
    let (mut guest, text) = (Guest::new(it.address, NEW), "x".repeat(3 * MIB));
    while it.goes_on() {
        call(&mut guest, "one.echo", json!({ "text": text })).await;
    }
}

/// Sessions that nobody ends.
async fn sessions(it: Attacker) {
    let mut guest = Guest::new(it.address, OLD);
    while it.goes_on() {
        open(&mut guest).await;
    }
}

/// Answers of a MiB that nobody reads.
async fn unread(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let mut unread = Unread::new(32, Duration::from_millis(100));
    while it.goes_on() {
        let params = json!({ "name": "one.big", "arguments": { "bytes": MIB } });
        unread.send(&mut guest, "tools/call", params).await;
    }
}

/// The lists of a server that lists much, to somebody who does not read.
async fn unread_lists(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let mut unread = Unread::new(64, Duration::from_millis(10));
    while it.goes_on() {
        unread.send(&mut guest, "tools/list", json!({})).await;
    }
}

/// Logs of sixteen KiB, one after the other, to somebody who does not read.
async fn notifications(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let during = vec!["log"; 200];
    let mut unread = Unread::new(8, Duration::from_millis(50));
    while it.goes_on() {
        let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        let arguments = json!({ "text": "x".repeat(16 << 10), "during": during });
        let params = json!({ "name": "one.gossip", "arguments": arguments, "_meta": meta });
        unread.send(&mut guest, "tools/call", params).await;
    }
}

/// Requests whose answers are not read: so many at once, and the oldest is hung up on after a while.
struct Unread {
    lines: VecDeque<Line>,
    most: usize,
    pause: Duration,
}

impl Unread {
    fn new(most: usize, pause: Duration) -> Self {
        Self { lines: VecDeque::new(), most, pause }
    }

    async fn send(&mut self, guest: &mut Guest, method: &str, params: Value) {
        let message = guest.prepare(method, params);
        let mut line = Line::to(guest.address).await;
        line.send(text(guest, &message)).await;
        self.lines.push_back(line);
        if self.lines.len() > self.most {
            // the sleep is the subject: whoever has many open waits, and reads nothing
            tokio::time::sleep(self.pause).await;
            self.lines.pop_front();
        }
    }
}

/// Calls that are asked about, with long questions, and not gone on with.
async fn questions(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let message = "x".repeat(MIB);
    while it.goes_on() {
        let _ = it.within(call(&mut guest, "one.ask", json!({ "message": message }))).await;
    }
}

/// Calls for which there is no place, with large arguments.
async fn waiting(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let text = "x".repeat(MIB);
    let mut lines = Vec::new();
    for _ in 0..64 {
        let params = json!({ "name": "few.hang", "arguments": { "text": text } });
        let message = guest.prepare("tools/call", params);
        let mut line = Line::to(it.address).await;
        if it.within(line.send(self::text(&guest, &message))).await.is_none() {
            return;
        }
        lines.push(line);
    }
    it.stay().await;
}

/// Tasks whose results nobody fetches.
async fn tasks(it: Attacker) {
    let mut guest = Guest::new(it.address, OLD);
    open(&mut guest).await;
    while it.goes_on() {
        let params = json!({ "name": "wide.big", "arguments": {}, "task": { "ttl": 3_600_000 } });
        let begun = ask(&mut guest, "tools/call", params).await;
        let id = &begun["result"]["task"]["taskId"];
        assert!(id.is_string() || begun["error"]["code"].is_i64(), "{begun}");
    }
}

/// Subscriptions to as many long names as go into a request.
async fn subscriptions(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let mut lines = Vec::new();
    let mut count = 0;
    while it.goes_on() {
        count += 1;
        // As many as one may have by itself, and far more than that.
        let tail = "x".repeat([400, 2000][count % 2]);
        let uris: Vec<String> =
            (0..1000).map(|uri| format!("fake://one/{}-{count}-{uri}-{tail}", it.number)).collect();
        let params = json!({ "notifications": { "resourceSubscriptions": uris } });
        let message = guest.prepare("subscriptions/listen", params);
        let (line, _) = post(&guest, &message).await;
        lines.push(line);
        if lines.len() > 4 {
            lines.remove(0);
        }
    }
}

/// The lists of every choice of servers there is, in every revision.
async fn copies(it: Attacker) {
    for choice in (1..1_usize << TAGS.len()).cycle() {
        let tags = TAGS.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1);
        let tags: Vec<_> = tags.map(|(_, it)| *it).collect();
        let path = format!("POST /mcp/tags/{}", tags.join(","));
        for revision in [Revision::V2025_03_26, Revision::V2025_06_18, OLD, NEW] {
            if !it.goes_on() {
                return;
            }
            let mut guest = Guest::new(it.address, revision);
            if revision != NEW {
                let hello = guest.prepare("initialize", guest.hello());
                let (_, head) = post_to(&guest, &path, &hello).await;
                guest.session = head.get("mcp-session-id").map(str::to_owned);
            }
            let list = guest.prepare("tools/list", json!({}));
            let (mut line, _) = post_to(&guest, &path, &list).await;
            it.within(line.body()).await;
        }
    }
}

/// Many requests in one body, of the revision that had that.
async fn batches(it: Attacker) {
    let mut guest = Guest::new(it.address, Revision::V2025_03_26);
    open(&mut guest).await;
    while it.goes_on() {
        let calls: Vec<Value> = (0..100)
            .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} }))
            .collect();
        let mut line = Line::to(it.address).await;
        let mut headers = guest.session_headers();
        headers.push(token());
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        headers.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
        line.send(request(it.address, "POST /mcp", &headers, &Value::Array(calls).to_string()))
            .await;
        line.try_head().await;
        it.within(line.body()).await;
    }
}

/// Each call with another key.
async fn keys(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    let mut count = 0;
    while it.goes_on() {
        count += 1;
        let key = format!("{}-{count}-{}", it.number, "x".repeat(100_000));
        let meta = json!({ "example.com/key": key });
        let params = json!({ "name": "kept.echo", "arguments": { "text": "x" }, "_meta": meta });
        ask(&mut guest, "tools/call", params).await;
    }
}

/// Has the server say that its lists have changed, again and again, and asks for them.
async fn changes(it: Attacker) {
    let mut guest = Guest::new(it.address, NEW);
    while it.goes_on() {
        let arguments = json!({ "text": "x", "during": ["list"] });
        let _ = it.within(call(&mut guest, "one.gossip", arguments)).await;
        let _ = it.within(ask(&mut guest, "tools/list", json!({}))).await;
    }
}
