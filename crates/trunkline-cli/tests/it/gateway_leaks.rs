//! Clients come, call and go; servers, gateways and clients are killed. No process outlives what it was started for.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;
use trunkline::Revision;
use trunkline_testkit::http::Guest;
use trunkline_testkit::peer::PATIENCE;
use trunkline_testkit::repeats;

use crate::gateway_kit::{Caller, Gateway, Place, signal};

/// A server that is its own process, one below a shell below a shell, and one that starts a helper which stays whatever
/// happens around it.
fn place() -> Place {
    let place = Place::new("leaks");
    let below = |script: &str, words: Vec<String>| {
        let shell = ["sh", "-c", script].map(str::to_owned).into_iter();
        shell.chain(words).collect::<Vec<String>>()
    };
    let server = |words: Vec<String>| json!({ "command": words[0], "args": words[1..] });
    // A command that is not the last is a process of its own, and the shell stays above it.
    let wrapped = below(BELOW, below(BELOW, place.fake("wrapped", &[])));
    let helped = below(BESIDE, place.fake("helped", &[]));
    place.catalog(&json!({ "mcpServers": {
        "plain": server(place.fake("plain", &[])), "wrapped": server(wrapped), "helped": server(helped),
    }}));
    place
}

const SERVERS: [&str; 3] = ["plain", "wrapped", "helped"];
const BELOW: &str = r#""$0" "$@"; exit $?"#;
const BESIDE: &str = r#""$0" "$@" --ignore-eof --ignore-term < /dev/null & exec "$0" "$@""#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)] // The figure is what a soak is run for.
async fn no_process_outlives_what_it_was_started_for() {
    let cycles = repeats(30, 1000);
    let place = place();
    let mut running: Option<Gateway> = None;
    let (mut killed, mut most) = (0, 0);
    for cycle in 0..cycles {
        let mut gateway = match running.take() {
            Some(gateway) => gateway,
            None if cycle % 6 == 5 => {
                over_stdio(&place, cycle).await;
                assert_eq!(place.emptied().await, [], "cycle {cycle}");
                continue;
            }
            None => Gateway::start(&place).await,
        };
        let revision = if cycle % 2 == 0 { Revision::V2026_07_28 } else { Revision::V2025_11_25 };
        let guest = Guest::open(gateway.address, revision).await;
        let mut caller = Caller::new(guest.clone()).await;
        for server in SERVERS {
            echo(&mut caller, server, &format!("cycle {cycle}")).await;
        }
        most = most.max(place.processes().len());
        match cycle % 6 {
            // The client goes in the middle of a call.
            0 => {
                begin(&guest, &SERVERS, "slow", json!({ "ms": 100 })).await;
                running = Some(gateway);
            }
            // The servers go in the middle of a call.
            1 | 3 => {
                let mut hanging = Caller::new(guest.clone()).await;
                let waiting = hanging.call("wrapped.hang", json!({}), json!({}));
                // The first is polled first: it has looked at the log before the call is made.
                let ((), heard) = tokio::join!(kill_once_called(&place), waiting);
                let heard = heard.expect("the gateway answers");
                assert_eq!(heard.reason(), Some("outcome_unknown"), "{}", heard.message);
                running = Some(gateway);
            }
            // The gateway goes in the middle of calls, every other time also of starting what they need.
            2 => {
                let servers = if cycle % 12 == 2 { &SERVERS[..] } else { &SERVERS[..2] };
                if servers.len() < SERVERS.len() {
                    signal("KILL", &place.servers()).await;
                }
                begin(&guest, servers, "slow", json!({ "ms": 10_000 })).await;
                // the sleep is the subject: it is killed at another moment each time
                tokio::time::sleep(Duration::from_micros(cycle as u64 * 611 % 30_000)).await;
                gateway.process.kill().await.expect("it runs");
                killed += 1;
                assert_eq!(place.emptied().await, [], "cycle {cycle}: killed");
            }
            // The gateway is asked to stop.
            _ => {
                signal("TERM", &[gateway.pid()]).await;
                let ended = timeout(PATIENCE, gateway.process.wait()).await.expect("it ends");
                assert_eq!(ended.expect("it is our child").code(), Some(0));
                assert_eq!(place.emptied().await, [], "cycle {cycle}: stopped");
            }
        }
    }
    drop(running);
    assert_eq!(place.emptied().await, []);
    let starts = place.log().of("start").len();
    println!(
        "{cycles} cycles, {killed} gateways killed, {starts} servers started, {most} processes at most, 0 left"
    );
    assert!(killed > 0 && most >= 6, "{killed} killed, {most} processes at most");
}

/// Has a server say something. One that was killed just now may take a call with it.
async fn echo(caller: &mut Caller, server: &str, text: &str) {
    let tool = format!("{server}.echo");
    for _ in 0..20 {
        let heard = caller.call(&tool, json!({ "text": text }), json!({})).await;
        let heard = heard.expect("the gateway answers");
        if heard.reason() != Some("outcome_unknown") {
            return assert_eq!(heard.text(), Some(text), "{}", heard.message);
        }
    }
    panic!("`{server}` does not come back");
}

/// Calls servers and goes without waiting for their answers.
async fn begin(guest: &Guest, servers: &[&str], tool: &str, arguments: Value) {
    let mut guest = guest.clone();
    for server in servers {
        let params = json!({ "name": format!("{server}.{tool}"), "arguments": arguments });
        let asked = guest.prepare("tools/call", params);
        let mut line = trunkline_testkit::http::Line::to(guest.address).await;
        line.send(guest.text(&asked)).await;
    }
}

/// Kills every server once one of them hangs that did not before.
async fn kill_once_called(place: &Place) {
    let log = place.log();
    let hangs = |all: &[Value]| {
        all.iter().filter(|it| it["event"] == "call" && it["tool"] == "hang").count()
    };
    let before = hangs(&log.all());
    let called = tokio::task::spawn_blocking(move || log.wait(PATIENCE, |all| hangs(all) > before));
    assert!(called.await.expect("it does not panic"), "the server was called");
    signal("KILL", &place.servers()).await;
}

/// One client over stdin and stdout, which ends or is killed with the gateway.
async fn over_stdio(place: &Place, cycle: usize) {
    let mut command = place.command();
    command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().expect("the binary was built");
    let mut pipes = Pipes::of(&mut process);
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
    });
    pipes.call(1, "initialize", hello).await;
    pipes.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    for (at, server) in SERVERS.iter().enumerate() {
        let params = json!({ "name": format!("{server}.echo"), "arguments": { "text": "hello" } });
        let answer = pipes.call(2 + at as u64, "tools/call", params).await;
        assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
    }
    if cycle % 12 == 5 {
        process.kill().await.expect("it runs");
        return;
    }
    drop(pipes);
    let ended = timeout(PATIENCE, process.wait()).await.expect("it ends when nobody is there");
    assert_eq!(ended.expect("it is our child").code(), Some(0));
}

struct Pipes {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Pipes {
    fn of(process: &mut Child) -> Self {
        let stdin = process.stdin.take().expect("it is piped");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { stdin, lines }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await.expect("the gateway reads");
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await.expect("it answers");
            let line = line.expect("it writes text").expect("it is there");
            let message: Value = serde_json::from_str(&line).expect("it writes messages");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }
}
