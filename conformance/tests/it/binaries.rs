//! The two binaries as the suite starts them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;
use trunkline::Revision;
use trunkline::client::Client;
use trunkline_conformance::scenarios::answers;
use trunkline_testkit::http::bad::Inputs;

/// A server at a port of its own, and its URL.
struct Running(Child, String);

impl Running {
    fn start(told: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conformance-server"));
        command.args(["--port", "0"]).args(told);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it was piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        Self(child, line.trim().to_owned())
    }

    fn url(&self) -> &str {
        &self.1
    }

    fn host(&self) -> &str {
        let host = self.1.strip_prefix("http://").and_then(|it| it.strip_suffix("/mcp"));
        host.expect("a URL")
    }

    /// What `GET /calls` says, as a plain HTTP client sees it.
    fn calls(&self) -> u64 {
        let host = self.host();
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(stream, "GET /calls HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain"), "{answer}");
        answer.rsplit("\r\n").next().and_then(|it| it.parse().ok()).expect("a number")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_counter_counts_what_was_executed_and_nothing_else() {
    let server = Running::start(&[]);
    let mut expected = 0;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let builder = Client::builder("test", "1").protocol(revision).responder(answers());
        let client = builder.connect_http(server.url()).await.expect("the server is there");
        let sum = client.call_tool("sum", json!({ "a": 1, "b": 2 })).await.expect("an answer");
        assert_eq!(sum.content[0].as_text(), Some("3"));
        expected += 1;
        assert_eq!(server.calls(), expected, "{revision}");
        for arguments in [json!({ "a": 1 }), json!({ "a": "1", "b": 2 })] {
            let refused = client.call_tool("sum", arguments).await.expect("a result");
            assert!(refused.is_error());
        }
        client.call_tool("no_such_tool", ()).await.expect_err("there is none");
        client.list_tools().await.expect("tools");
        assert_eq!(server.calls(), expected, "{revision}");
        client.close().await;
    }
}

#[tokio::test]
async fn bad_inputs_are_refused_and_none_is_executed() {
    for told in [&[][..], &["--json"]] {
        let server = Running::start(told);
        let inputs = Inputs::at(server.host().parse().expect("an address")).await;
        let wrong = inputs.refused(|| server.calls() > 0).await;
        assert!(wrong.is_empty(), "{told:?}: {}", wrong.join("\n"));
    }
}

fn play(scenario: &str, revision: &str, url: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_conformance-client"))
        .env("MCP_CONFORMANCE_SCENARIO", scenario)
        .env("MCP_CONFORMANCE_PROTOCOL_VERSION", revision)
        .arg(url)
        .output()
        .expect("it runs")
}

#[test]
fn the_client_plays_its_scenarios_and_says_why_it_does_not() {
    let server = Running::start(&[]);
    for revision in ["2025-11-25", "2026-07-28"] {
        for scenario in ["initialize", "sep-2640-client-no-prefetch", "sep-2640-client-verify-size"]
        {
            let played = play(scenario, revision, server.url());
            assert!(played.status.success(), "{scenario} in {revision}: {played:?}");
        }
    }
    for (scenario, revision, why) in [
        ("auth/metadata-default", "2025-11-25", "There is no tool `test-tool`"),
        ("no-such-scenario", "2025-11-25", "There is no scenario `no-such-scenario` here"),
        ("initialize", "1999-01-01", "`1999-01-01` is no revision"),
        ("tools_call", "2025-11-25", "There is no tool `add_numbers`"),
    ] {
        let played = play(scenario, revision, server.url());
        assert_eq!(played.status.code(), Some(1), "{scenario}");
        let said = String::from_utf8_lossy(&played.stderr);
        assert!(said.contains(why), "{scenario}: {said}");
    }
}
