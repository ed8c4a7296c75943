//! A panic is an answer: a sentence for the model, and a line in the log.

use std::future::Ready;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::unix::pipe;
use trunkline::client::Framing;
use trunkline::server::{FromCall, Input, Rejection};
use trunkline::{Args, Context, Revision, Server, ToolError, prompt, resource, template, tool};
use trunkline_testkit::peer::Peer;

use super::{Gate, Side, transports_of};
use crate::server::{ERAS, builder, soon, text};

/// The text of a panic goes to the log only.
const SECRET: &str = "the password is swordfish";

/// An extractor that panics.
struct Broken;

impl FromCall for Broken {
    fn from_call(_: &Input<'_>) -> Result<Self, Rejection> {
        panic!("{SECRET}")
    }
}

/// A value that panics when it is dropped.
struct Grudge;

impl Drop for Grudge {
    fn drop(&mut self) {
        panic!("{SECRET}")
    }
}

fn at_once() -> Ready<&'static str> {
    panic!("{SECRET}")
}

async fn later() -> &'static str {
    tokio::task::yield_now().await;
    panic!("{SECRET}")
}

async fn after_news(cx: Context) -> &'static str {
    cx.progress(1.0, 2.0).await;
    later().await
}

async fn in_once(cx: Context) -> Result<String, ToolError> {
    cx.once("effect", async || -> Result<String, ToolError> { panic!("{SECRET}") }).await
}

async fn at_the_end() -> &'static str {
    let _grudge = Grudge;
    tokio::task::yield_now().await;
    "done"
}

async fn unlucky() -> String {
    later().await.to_owned()
}

fn broken(gate: &Arc<Gate>) -> Server {
    let completed = prompt("greet", async |Args(_): Args<Name>| "Hello".to_owned())
        .complete("name", |_, _| panic!("{SECRET}"));
    builder()
        .shared_state(Arc::clone(gate))
        .tool(tool("wait", super::wait))
        .tool(tool("at_once", at_once))
        .tool(tool("later", later))
        .tool(tool("after_news", after_news))
        .tool(tool("in_once", in_once))
        .tool(tool("in_extractor", async |_: Broken| "no"))
        .tool(tool("at_the_end", at_the_end))
        .tool(tool("unsure", async || "no").visible(|_| panic!("{SECRET}")))
        .prompt(prompt("unlucky", unlucky))
        .prompt(completed)
        .resource(resource("test://unlucky", "unlucky", unlucky))
        .resource(template("test://unlucky/{n}", "unlucky", unlucky))
        .build()
}

#[derive(serde::Deserialize, trunkline::schemars::JsonSchema)]
#[allow(dead_code)]
struct Name {
    name: String,
}

const TOOLS: [&str; 6] =
    ["at_once", "later", "after_news", "in_once", "in_extractor", "at_the_end"];

fn assert_says_so(name: &str, result: &Value) {
    assert_eq!(result["isError"], true, "{result}");
    let text = text(result);
    assert!(text.starts_with(&format!("`{name}` failed unexpectedly.")), "{text}");
    assert!(text.contains("other arguments may work"), "{text}");
    assert!(!result.to_string().contains("swordfish"), "{result}");
}

#[tokio::test]
async fn a_panic_anywhere_is_one_answer_and_harms_no_other_call() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let gate = Gate::new();
        let mut side = Side::of(&broken(&gate), transport, revision).await;
        let waits = side.begin("tools/call", json!({ "name": "wait" })).await;
        gate.pass(&gate.entered).await;
        for name in TOOLS {
            let params = json!({ "name": name, "_meta": { "progressToken": 1 } });
            let result = side.call("tools/call", params).await;
            assert_says_so(name, &result.unwrap_or_else(|it| panic!("{name}, {revision}: {it}")));
        }
        let reference = json!({ "type": "ref/prompt", "name": "greet" });
        let argument = json!({ "name": "name", "value": "A" });
        for (method, params) in [
            ("prompts/get", json!({ "name": "unlucky" })),
            ("resources/read", json!({ "uri": "test://unlucky" })),
            ("resources/read", json!({ "uri": "test://unlucky/7" })),
            ("completion/complete", json!({ "ref": reference, "argument": argument })),
        ] {
            let error = side.call(method, params).await.unwrap_err();
            let reason = &error["data"]["reason"];
            assert_eq!((&error["code"], reason), (&json!(-32603), &json!("panic")), "{method}");
            assert!(!error.to_string().contains("swordfish"), "{error}");
        }
        gate.open.add_permits(1);
        assert_eq!(
            text(&side.answer_to(waits).await.unwrap()),
            "waited",
            "{transport:?} {revision}"
        );
        side.assert_no_answer_came_twice();
    }
}

#[tokio::test]
async fn what_cannot_be_decided_on_is_hidden() {
    for (transport, revision) in transports_of(&ERAS) {
        let mut side = Side::of(&broken(&Gate::new()), transport, revision).await;
        let list = side.call("tools/list", json!({})).await.unwrap();
        let names = list["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str());
        assert_eq!(names.flatten().filter(|it| *it == "unsure").count(), 0);
        assert_eq!(
            list["tools"].as_array().unwrap().len(),
            TOOLS.len() + 1,
            "the others are there"
        );
        let error = side.call("tools/call", json!({ "name": "unsure" })).await.unwrap_err();
        assert_eq!(error["message"], "There is no tool `unsure`.", "{transport:?} {revision}");
    }
}

#[tokio::test]
async fn what_a_cancelled_handler_holds_may_panic_too() {
    async fn grudging(gate: trunkline::State<Gate>) -> &'static str {
        let _grudge = Grudge;
        super::wait(gate).await
    }
    for (transport, revision) in transports_of(&ERAS) {
        let gate = Gate::new();
        let server = super::with_hi(&gate, tool("grudging", grudging));
        let mut side = Side::of(&server, transport, revision).await;
        let begun = side.begin("tools/call", json!({ "name": "grudging" })).await;
        gate.pass(&gate.entered).await;
        let params = json!({ "requestId": begun.asked["id"] });
        match &mut side {
            Side::Pipes(peer) => peer.notify("notifications/cancelled", params).await,
            Side::Http(guest, _) if guest.session.is_some() => {
                let message = json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
                });
                assert_eq!(guest.post(&message).await.1.status, 202);
            }
            // Closing the stream cancels the call.
            Side::Http(..) => drop(begun),
        }
        gate.pass(&gate.dropped).await;
        assert_eq!(text(&side.tool("hi", json!({})).await), "hi", "{transport:?} {revision}");
    }
}

/// Set in the child process, which is the server.
const CHILD: &str = "TRUNKLINE_TEST_PANICS";
const READY: &str = "ready to serve";

#[test]
fn a_process_with_panics_lives_on_and_says_on_stderr_what_happened() {
    if std::env::var_os(CHILD).is_some() {
        // The test harness has written to stdout, perhaps without a newline.
        std::io::stdout().write_all(format!("\n{READY}\n").as_bytes()).unwrap();
        broken(&Gate::new()).run_stdio().unwrap();
        std::process::exit(0);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for revision in ERAS {
        let name =
            "faults::panics::a_process_with_panics_lives_on_and_says_on_stderr_what_happened";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).map(|_| log)
        });
        let mut said = Vec::new();
        while !said.ends_with(format!("\n{READY}\n").as_bytes()) {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            said.push(byte[0]);
        }
        runtime.block_on(soon(async {
            let reader = pipe::Receiver::from_owned_fd(stdout.into()).unwrap();
            let writer = pipe::Sender::from_owned_fd(stdin.into()).unwrap();
            let mut peer = Peer::new(reader, writer, Framing::Newline, revision);
            peer.open().await;
            for name in TOOLS {
                assert_says_so(name, &peer.tool(name, json!({})).await);
            }
            peer.hang_up().await;
            assert_eq!(peer.try_next().await, None);
        }));
        assert!(child.wait().unwrap().success());
        let log = log.join().unwrap().unwrap();
        assert_eq!(log.matches(SECRET).count(), TOOLS.len(), "{revision}: {log}");
    }
}
