//! `ps`, `logs`, `stats`, `reload`, `retry` and `approve` against a gateway that is made up.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle;
use trunkline_gateway::admin::{Complaint, Followed, Operate, open, serve};
use trunkline_gateway::catalog::plan::AdminPlan;
use trunkline_gateway::metrics::{Metrics, Outcome};
use trunkline_gateway::policy::pins::Approval;
use trunkline_wire::method::Method;

use crate::run::{Run, TRUNKLINE, run};

include!("../../../trunkline-transport/tests/it/pem.rs");

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_runs_and_has_things_done() {
    let gateway = Running::start(AdminPlan::default()).await;
    let ps = gateway.run(&["ps", "--instances"]).await;
    ps.says(
        0,
        &[
            "trunkline 9.9 at 127.0.0.1:7373, up 2.0 s, clients: 3",
            "SERVER  STATE      INSTANCES  CALLS  WAITING  TOOLS  NOTE",
            "git     suspended  0          0      0        0      1 held back",
            "time    ready      1          2      0        4",
            "7         time    busy   42   2      1.0 s        call",
        ],
    );
    let stats = gateway.run(&["stats", "--calls"]).await.stdout;
    assert!(stats.contains("time    2      1       ≤ 2 ms"), "{stats}");
    assert!(stats.contains("tools/call now"), "{stats}");
    for (line, expected) in [
        (&["logs"][..], "T1 time#7 hello\nT2 git broken\n"),
        (&["logs", "git"], "T2 git broken\n"),
        (&["logs", "-n", "1"], "T2 git broken\n"),
        (&["reload"], "The catalog was reloaded.\n  `git` is another now;"),
        (&["retry", "git"], "`git` is tried again with the next call.\n"),
        (
            &["approve", "git"],
            "tool `push` has changed since it was pinned.\n  pinned a\n  digest b\n",
        ),
        (&["approve", "git", "push", "--digest", "b"], "Clients see tool `push` of `git` as the"),
        (&["approve", "git", "--all", "--yes"], "tool `push` has changed since it was pinned.\n"),
    ] {
        let found = gateway.run(line).await;
        assert!(found.stdout.starts_with(expected), "{line:?}: {}{}", found.stdout, found.stderr);
        assert_eq!(found.code, 0, "{line:?}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_gets_json() {
    let gateway = Running::start(AdminPlan::default()).await;
    for (line, pointer, expected) in [
        (&["ps"][..], "/servers/0/name", json!("time")),
        (&["stats"], "/servers/0/failed", json!(1)),
        (&["stats", "--calls=1"], "/calls/0/outcome", json!("ok")),
        (&["reload"], "/changes/servers/git", json!("replaced")),
        (&["retry", "git"], "/retried", json!("git")),
        (&["approve", "git"], "/0/name", json!("push")),
        (&["approve", "git", "push"], "/error/message", json!("Nobody is there to be asked.")),
        (&["logs", "-n", "1"], "/line", json!("broken")),
        (&["retry", "nope"], "/error/message", json!("There is no server `nope`.")),
    ] {
        let found = gateway.run(&[line, &["--json"]].concat()).await;
        let json: Value = serde_json::from_str(&found.stdout).expect(&found.stdout);
        assert_eq!(json.pointer(pointer), Some(&expected), "{line:?}: {json}");
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed() {
    let gateway = Running::start(AdminPlan::default()).await;
    let mut child = tokio::process::Command::new(TRUNKLINE)
        .args(["logs", "-f", "time", "--state"])
        .arg(&gateway.state)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "T1 time#7 hello");
    for (server, text) in [("git", "no"), ("time", "again")] {
        gateway.operate.news.send(Arc::new(line_of("T3", server, text))).unwrap();
    }
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "T3 time again");
    // When the gateway ends, so does it.
    gateway.stop().await;
    assert!(lines.next_line().await.unwrap().is_none());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tcp_it_takes_the_token_and_over_tls_a_certificate() {
    let listen = Some("127.0.0.1:0".to_owned());
    let plan = AdminPlan { listen: listen.clone(), ..AdminPlan::default() };
    let gateway = Running::start(plan).await;
    let place = gateway.place.clone();
    for line in [&["ps", "--admin", &place][..], &["ps"]] {
        let found = gateway.run(line).await;
        assert_eq!(found.code, 0, "{}", found.stderr);
    }
    let other = gateway.state.join("other.token");
    std::fs::write(&other, "wrong-wrong-wrong-wrong\n").unwrap();
    let source = format!("file:{}", other.display());
    let found = gateway.run(&["ps", "--admin", &place, "--token", &source]).await;
    assert_eq!(found.code, 4);
    assert!(found.stderr.contains("That is not the admin token."), "{}", found.stderr);
    assert!(found.stderr.contains("Pass `--token env:NAME`"), "{}", found.stderr);
    gateway.stop().await;

    let own = "a-token-of-the-operators-own";
    let plan =
        AdminPlan { listen: listen.clone(), token: Some(own.into()), ..AdminPlan::default() };
    let gateway = Running::start(plan).await;
    let given = gateway.state.join("given.token");
    std::fs::write(&given, own).unwrap();
    let source = format!("file:{}", given.display());
    for line in [&["ps"][..], &["reload"], &["ps", "--token", &source]] {
        let found = gateway.run(line).await;
        assert_eq!(found.code, 0, "{line:?}: {}", found.stderr);
    }
    gateway.stop().await;

    let state = folder();
    std::fs::create_dir(&state).unwrap();
    let (certificate, key) = (state.join("c.pem"), state.join("k.pem"));
    let pair = self_signed();
    std::fs::write(&certificate, pair.0).unwrap();
    std::fs::write(&key, pair.1).unwrap();
    let mtls = Some((certificate.clone(), key.clone(), certificate.clone()));
    let gateway = Running::start(AdminPlan { listen, token: None, mtls }).await;
    let place = gateway.place.replace("127.0.0.1", "localhost");
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let base = ["ps", "--admin", &place];
    let known = [&base[..], &["--cacert", certificate]].concat();
    let found = gateway.run(&base).await;
    assert_eq!(found.code, 2);
    assert!(found.stderr.contains("`--cacert FILE`"), "{}", found.stderr);
    let found = gateway.run(&known).await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    let found = gateway.run(&[&known[..], &["--cert", certificate, "--key", key]].concat()).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    gateway.stop().await;
    std::fs::remove_dir_all(state).unwrap();
}

#[test]
fn without_a_gateway_it_says_how_to_start_one() {
    let state = folder();
    let state = state.to_str().unwrap();
    for verb in [&["ps"][..], &["logs", "-f"], &["stats"], &["reload"], &["retry", "git"]] {
        let found = run(&[verb, &["--state", state]].concat());
        assert_eq!((found.code, found.stdout.as_str()), (3, ""), "{verb:?}");
        let expected = format!("There is no gateway at `unix:{state}/admin.sock`.");
        assert!(found.stderr.contains(&expected), "{}", found.stderr);
        assert!(found.stderr.contains("Start one with `trunkline serve`"), "{}", found.stderr);
    }
    let found = run(&["ps", "--admin", "http://127.0.0.1:1", "--json"]);
    assert!(found.stdout.contains("There is no gateway at `http://127.0.0.1:1`."));
    let found = run(&["retry", "a/b"]);
    assert_eq!(found.code, 2);
    assert!(found.stderr.contains("a server's name has up to 64 letters"), "{}", found.stderr);
}

struct MadeUp {
    news: broadcast::Sender<Arc<Value>>,
    metrics: Metrics,
}

fn line_of(at: &str, server: &str, line: &str) -> Value {
    json!({ "at": at, "server": server, "source": "gateway", "line": line })
}

fn held() -> Value {
    json!({ "kind": "tool", "name": "push", "why": "changed", "pinned": "a", "seen": "b" })
}

impl Operate for MadeUp {
    type Line = Value;

    fn status(&self) -> Value {
        json!({
            "version": "9.9", "uptimeMs": 2000, "listen": "127.0.0.1:7373", "clients": 3,
            "servers": [
                { "name": "time", "state": "ready", "tools": 4, "waiters": 0, "heldBack": [],
                  "instances": [{ "id": 7, "state": "busy", "inFlight": 2, "ageMs": 1000, "pid": 42,
                                  "cause": "call" }] },
                { "name": "git", "state": "suspended", "instances": [], "heldBack": [held()],
                  "lastError": "It exited with code 1." },
            ],
        })
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn metrics(&self) -> String {
        self.metrics.render()
    }

    fn calls(&self, _: usize) -> Value {
        json!([{ "time": "T", "server": "time", "method": "tools/call", "name": "now", "ms": 3,
                 "outcome": "ok", "traceId": "abc" }])
    }

    fn logs(&self, server: Option<&str>) -> Followed<Value> {
        let mut first = line_of("T1", "time", "hello");
        first["instance"] = json!(7);
        let lines = [first, line_of("T2", "git", "broken")].into_iter();
        let fitting = lines.filter(|it| server.is_none_or(|server| Self::is_of(it, server)));
        (fitting.map(Arc::new).collect(), self.news.subscribe())
    }

    fn is_of(line: &Value, server: &str) -> bool {
        line["server"] == server
    }

    async fn reload(&self) -> Result<Value, Value> {
        Ok(json!({ "changed": true, "changes": { "servers": { "git": "replaced" } } }))
    }

    fn retry(&self, server: &str) -> Result<Value, Complaint> {
        match server {
            "git" => Ok(json!({ "retried": server })),
            _ => Err(Complaint::no_server(server)),
        }
    }

    fn held(&self, _: &str) -> Result<Value, Complaint> {
        let mut held = held();
        held["definition"] = json!(r#"{"description":"Pushes. And more.","name":"push"}"#);
        held["before"] = json!(r#"{"description":"Pushes.","name":"push"}"#);
        Ok(json!({ "held": [held] }))
    }

    async fn approve(&self, _: &str, which: &[Approval]) -> Result<Value, Complaint> {
        assert_eq!((which[0].name.as_str(), which[0].digest.as_str()), ("push", "b"));
        Ok(json!({ "approved": [held()] }))
    }

    async fn stop(&self, server: &str) -> Result<Value, Complaint> {
        Ok(json!({ "stopped": server }))
    }
}

struct Running {
    operate: Arc<MadeUp>,
    place: String,
    state: PathBuf,
    end: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Running {
    async fn start(plan: AdminPlan) -> Self {
        let state = folder();
        let opened = open(&plan, &state).await.unwrap();
        let place = opened.place.clone();
        let metrics = Metrics::default();
        let took = std::time::Duration::from_millis(2);
        for outcome in [Outcome::Ok, Outcome::ToolError] {
            metrics.call_finished(
                "time",
                Method::of("tools/call"),
                outcome,
                (Instant::now(), took),
            );
        }
        let operate = Arc::new(MadeUp { news: broadcast::Sender::new(8), metrics });
        let (end, ended) = oneshot::channel::<()>();
        let shutdown = async { drop(ended.await) };
        let served = tokio::spawn(serve(opened, Arc::clone(&operate), shutdown));
        Self { operate, place, state, end, served }
    }

    async fn run(&self, line: &[&str]) -> Run {
        let mut line: Vec<_> = line.iter().map(|it| (*it).to_owned()).collect();
        line.extend(["--state".to_owned(), self.state.to_str().unwrap().to_owned()]);
        let running = tokio::task::spawn_blocking(move || {
            run(&line.iter().map(String::as_str).collect::<Vec<_>>())
        });
        running.await.unwrap()
    }

    async fn stop(self) {
        self.end.send(()).unwrap();
        self.served.await.unwrap().unwrap();
        std::fs::remove_dir_all(self.state).unwrap();
    }
}

fn folder() -> PathBuf {
    let unique = rcgen::KeyPair::generate().unwrap().serialize_der();
    let name: String = unique[unique.len() - 6..].iter().map(|it| format!("{it:02x}")).collect();
    std::env::temp_dir().join(format!("trunkline-cli-{name}"))
}
