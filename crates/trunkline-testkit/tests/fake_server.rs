//! Conversations with the program itself, and what its log says of them.

#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
    next: u64,
}

impl Talk {
    fn start(name: &str, args: &[&str]) -> Talk {
        let log = std::env::temp_dir().join(format!("fake-{name}-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&log);
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-server"))
            .args(args)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        Talk { child, stdin, stdout: BufReader::new(stdout), log, next: 0 }
    }

    fn send(&mut self, message: Value) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{message}").expect("the program reads");
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the program writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    fn initialize(&mut self, capabilities: Value) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let answer = self.ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client }),
        );
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("`kill` is there").success());
    }

    /// Closes standard input and waits; the exit code and the events of the log.
    fn end(mut self) -> (Option<i32>, Vec<String>) {
        self.stdin = None;
        let code = self.child.wait().expect("it is our child").code();
        let text = std::fs::read_to_string(&self.log).expect("the log was written");
        let _ = std::fs::remove_file(&self.log);
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let event = |line: Value| line["event"].as_str().expect("each has its name").to_owned();
        (code, lines.map(|line| event(line.expect("each line is JSON"))).collect())
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_legacy_conversation_is_answered_and_logged() {
    let mut talk = Talk::start("legacy", &["--page", "3", "--name", "a"]);
    assert_eq!(talk.ask("server/discover", json!({}))["error"]["code"], -32601);
    let hello = talk.initialize(json!({}));
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(hello["result"]["serverInfo"]["name"], "a");
    let first = talk.ask("tools/list", json!({}));
    assert_eq!(first["result"]["tools"].as_array().map(Vec::len), Some(3));
    let cursor = &first["result"]["nextCursor"];
    assert_eq!(
        talk.ask("tools/list", json!({ "cursor": cursor }))["result"]["tools"][0]["name"],
        "count"
    );
    assert_eq!(text(&talk.call("echo", json!({ "text": "hi" }))), "hi");
    assert_eq!(text(&talk.call("count", json!({}))), "1");
    assert_eq!(text(&talk.call("count", json!({}))), "2");
    let (code, events) = talk.end();
    assert_eq!(code, Some(0));
    let is = |event: &str| events.iter().filter(|it| *it == event).count();
    assert_eq!(["start", "initialize", "call", "eof", "exit"].map(is), [1, 1, 3, 1, 1]);
    assert_eq!(events.last().map(String::as_str), Some("exit"));
}

#[test]
fn a_stateless_request_carries_its_envelope_or_is_refused() {
    let mut talk = Talk::start("stateless", &["--revision", "2026-07-28"]);
    let refused = talk.ask("initialize", json!({ "protocolVersion": "2025-11-25" }));
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(talk.ask("tools/list", json!({}))["error"]["code"], -32602);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let found = talk.ask("server/discover", json!({ "_meta": meta }));
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    let asks = talk.ask("tools/call", json!({ "_meta": meta, "name": "ask", "arguments": {} }));
    assert_eq!(asks["result"]["resultType"], "input_required", "{asks}");
    let (state, answer) = (&asks["result"]["requestState"], json!({ "action": "decline" }));
    let done = talk.ask(
        "tools/call",
        json!({
            "_meta": meta, "name": "ask", "arguments": {},
            "requestState": state, "inputResponses": { "question": answer },
        }),
    );
    assert_eq!(text(&done), r#"{"action":"decline"}"#);
    assert_eq!(done["result"]["resultType"], "complete");
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn a_legacy_server_asks_by_a_request_of_its_own() {
    let mut talk = Talk::start("ask", &[]);
    talk.initialize(json!({ "elicitation": {} }));
    let call = json!({ "name": "ask", "arguments": {} });
    talk.send(json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call }));
    let question = talk.read();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "action": "cancel" });
    talk.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    let done = talk.read();
    assert_eq!((&done["id"], text(&done)), (&json!(9), r#"{"action":"cancel"}"#));
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn what_takes_time_does_not_hold_up_the_rest() {
    let mut talk = Talk::start("slow", &[]);
    talk.initialize(json!({}));
    for (id, name) in [(7, "slow"), (8, "hang")] {
        let call = json!({ "name": name, "arguments": { "ms": 60_000 } });
        talk.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }));
    }
    assert_eq!(text(&talk.call("echo", json!({ "text": "first" }))), "first");
    let params =
        json!({ "name": "progress", "arguments": { "steps": 2 }, "_meta": { "progressToken": 5 } });
    talk.send(json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params }));
    let steps = [talk.read(), talk.read()];
    assert_eq!(steps.map(|it| it["params"]["progress"].clone()), [1, 2]);
    assert_eq!(text(&talk.read()), "2 steps");
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn signals_are_caught_and_told() {
    let mut talk = Talk::start("signals", &["--list-changed-on", "SIGUSR1", "--ignore-eof"]);
    talk.initialize(json!({}));
    talk.signal("USR1");
    assert_eq!(talk.read()["method"], "notifications/tools/list_changed");
    talk.signal("TERM");
    let (code, events) = talk.end();
    assert_eq!(code, Some(143));
    assert_eq!(events.iter().filter(|it| *it == "signal").count(), 2);
}

#[test]
fn it_ends_as_it_was_told_to() {
    let mut talk = Talk::start("crash", &["--hang-on", "ping"]);
    talk.initialize(json!({}));
    talk.send(json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }));
    let call = json!({ "name": "crash", "arguments": { "code": 41 } });
    talk.send(json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": call }));
    let (code, events) = talk.end();
    assert_eq!(code, Some(41));
    assert!(events.contains(&"hang".to_owned()));
    assert_eq!(Talk::start("at-start", &["--exit-at-start", "3"]).end().0, Some(3));
}
