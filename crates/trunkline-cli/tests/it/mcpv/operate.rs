//! A gateway seen and run by a person: the admin API, the verbs, the numbers, and two tools for many.

use std::process::Output;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::place::{Place, SOON, until, write};
use crate::clients::Home;
use crate::run::TRUNKLINE;

mod pem {
    include!("../../../../trunkline-transport/tests/it/pem.rs");
}

#[tokio::test]
async fn b20_a_gateway_is_operated_by_api_and_verbs() {
    let place = Place::new("b20");
    let (certificate, key) = pem::self_signed();
    write(&place.path("c.pem"), &certificate);
    write(&place.path("k.pem"), &key);
    write(&place.path("token"), "a-token-of-some-length");
    write(&place.path("other"), "another-of-some-length");
    write(&place.path("stop"), "");
    let (c, k, stop) = (place.text("c.pem"), place.text("k.pem"), place.text("stop"));
    let catalog = json!({
        "mcpServers": {
            "a": place.fake("a", &["--stderr", "hello from a"], json!({ "maxConcurrent": 1, "maxInstances": 1, "timeouts": { "acquireSeconds": 1.5 } })),
            "bad": place.fake("bad", &["--exit-while", &stop], json!({ "retry": { "tries": 1 }, "activation": "always-on" })),
        },
        "gateway": { "admin": {
            "listen": "127.0.0.1:0", "token": { "file": place.text("token") },
            "mtls": { "certificate": c, "key": k, "clientCertificates": c },
        } },
    });
    place.write(&catalog);
    let gateway = place.open("127.0.0.1:0").await;
    until("the admin API to be told of", SOON, async || gateway.said().contains("https://")).await;
    let said = gateway.said();
    let admin = said.split("admin API is at ").nth(1).and_then(|it| it.split(['\n', ' ']).next());
    let admin = admin.unwrap().trim_end_matches('.').replace("127.0.0.1", "localhost");
    let verb = async |words: &[&str], token: &str, extra: &[&str]| -> Output {
        let token = format!("file:{}", place.text(token));
        let mut command = Command::new(TRUNKLINE);
        command
            .args(words)
            .args(["--admin", &admin, "--cacert", &c, "--token", &token])
            .args(extra);
        command.output().await.unwrap()
    };
    let mine = ["--cert", &c, "--key", &k];
    let run = async |words: &[&str]| -> String {
        let output = verb(words, "token", &mine).await;
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out
    };
    // Whoever lacks the certificate or the token learns nothing.
    assert!(!verb(&["ps"], "token", &[]).await.status.success(), "no certificate");
    assert!(!verb(&["ps"], "other", &mine).await.status.success(), "another token");

    let mut client = gateway.client().await;
    assert_eq!(client.call("a.echo", json!({ "text": "x" })).await, Ok("x".to_owned()));
    let both = client.at_once(2, "a.slow", json!({ "ms": 4000 })).await;
    assert_eq!(both.iter().filter(|it| it.is_err()).count(), 1, "there is room for one: {both:?}");
    let status: Value = serde_json::from_str(&run(&["ps", "--json"]).await).unwrap();
    assert_eq!(status["clients"], 1);
    assert!(run(&["ps", "--instances"]).await.contains("SERVER"));
    assert!(run(&["logs", "a"]).await.contains("hello from a"));
    assert!(run(&["stats", "--calls"]).await.contains("echo"));
    assert!(run(&["reload"]).await.contains("reloaded"));

    let url = format!("http://{}/mcp", gateway.address);
    let listed = crate::run::run(&["list", "tools", &url]);
    assert!(listed.stdout.contains("a.echo("), "{}{}", listed.stdout, listed.stderr);
    let called = crate::run::run(&["call", "a.echo", "text=by hand", &url]);
    assert_eq!(called.stdout, "by hand\n", "{}", called.stderr);

    // A server that was given up is tried again when told to.
    until("it to be given up", SOON, async || run(&["ps"]).await.contains("suspended")).await;
    std::fs::remove_file(place.path("stop")).unwrap();
    run(&["retry", "bad"]).await;
    until("it to run", SOON, async || place.running("bad").len() == 1).await;

    // What is watched tells of what happens next.
    let mut follow = Command::new(TRUNKLINE);
    let token = format!("file:{}", place.text("token"));
    follow
        .args(["logs", "-f", "-n", "0", "--admin", &admin, "--cacert", &c, "--token", &token])
        .args(mine);
    let mut watch = follow.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let seen = tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains("not in order") {
                return true;
            }
        }
        false
    });
    until("a line to be followed", SOON, async || {
        // Each wrong catalog is told of.
        let _ = verb(&["reload"], "token", &mine).await;
        place.write(&json!({ "mcpServers": { "a": {} } }));
        seen.is_finished()
    })
    .await;
    assert!(seen.await.unwrap());
}

#[tokio::test]
async fn b20_the_numbers_have_the_names_that_are_known() {
    let place = Place::new("b20-metrics");
    let keys =
        json!({ "maxConcurrent": 1, "maxInstances": 1, "timeouts": { "acquireSeconds": 1.5 } });
    let gateway = place.serve(json!({ "a": place.fake("a", &[], keys) })).await;
    gateway.settled().await;
    let mut client = gateway.client().await;
    // One waits and gets its turn, one waits in vain.
    let said = client.at_once(2, "a.slow", json!({ "ms": 100 })).await;
    assert!(said.iter().all(Result::is_ok), "{said:?}");
    let said = client.at_once(2, "a.slow", json!({ "ms": 4000 })).await;
    assert_eq!(said.iter().filter(|it| it.is_err()).count(), 1, "{said:?}");
    let (status, text) = gateway.admin("GET /metrics").await;
    assert_eq!(status, 200);
    for line in [
        "trunkline_instance_starts_total{server=\"a\",cause=\"call\"} 1",
        "trunkline_instance_starts_total{server=\"a\",cause=\"list\"} ",
        "trunkline_pool_acquire_fail_total{server=\"a\",reason=\"busy\"} 1",
        "trunkline_pool_wait_seconds_count{server=\"a\"} ",
        "trunkline_route_duration_seconds_count{server=\"a\",method=\"tools/call\",outcome=\"ok\"} 3",
        "trunkline_route_duration_seconds_count{server=\"a\",method=\"tools/call\",outcome=\"unavailable\"} 1",
        "trunkline_active_instances{server=\"a\"} 1",
        "trunkline_inflight_routes{server=\"a\"} 0",
        "trunkline_pool_waiters{server=\"a\"} 0",
        "trunkline_instance_start_duration_seconds_count{server=\"a\"} ",
        "trunkline_instance_start_result_total{server=\"a\",result=\"ok\"} ",
        "trunkline_instance_stops_total{server=\"a\",reason=",
        "trunkline_instance_starting{server=\"a\"} 0",
        "trunkline_pool_capacity_ratio{server=\"a\"} 0",
    ] {
        assert!(text.lines().any(|it| it.starts_with(line)), "{line}\n{text}");
    }
}

#[tokio::test]
async fn b20_two_tools_stand_for_many_and_no_schema_comes_twice() {
    let place = Place::new("b20-automatic");
    let tool = |name: &str, what: &str| json!({ "name": name, "description": what, "inputSchema": { "type": "object", "properties": { "path": { "type": "string" } } } });
    let mut tools: Vec<_> =
        (0..30).map(|at| tool(&format!("weather_{at}"), "Tells the weather.")).collect();
    tools.push(tool("read_file", "Reads a file from the disk."));
    write(&place.path("tools.json"), &json!(tools).to_string());
    let entry = place.fake("a", &["--tools-file", &place.text("tools.json")], json!({}));
    place.write(&json!({
        "mcpServers": { "a": entry },
        "gateway": { "automatic": { "tags": ["agent"], "limit": 5 } },
    }));
    let gateway = place.open("127.0.0.1:0").await;
    let mut client = gateway.client_at("/mcp/tags/agent").await;
    assert_eq!(client.tools().await, ["trunkline.find_tools", "trunkline.call_tool"]);
    let find = json!({ "name": "trunkline.find_tools", "arguments": { "query": "read a file" } });
    let found =
        client.expect("tools/call", find.clone()).await["structuredContent"]["tools"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1, "only what is meant: {found}");
    assert_eq!(found[0]["name"], "a.read_file");
    assert!(found[0]["inputSchema"]["properties"]["path"].is_object(), "{found}");
    let again =
        client.expect("tools/call", find.clone()).await["structuredContent"]["tools"].clone();
    assert_eq!((&again[0]["name"], again[0].get("inputSchema")), (&json!("a.read_file"), None));
    let mut other = gateway.client_at("/mcp/tags/agent").await;
    let found = other.expect("tools/call", find).await["structuredContent"]["tools"].clone();
    assert!(found[0]["inputSchema"].is_object(), "another session has not seen it: {found}");
    let inner = json!({ "name": "a.read_file", "arguments": { "path": "/x" } });
    let said = client.call("trunkline.call_tool", inner).await;
    assert_eq!(said, Ok("read_file {\"path\":\"/x\"}".to_owned()));
    assert_eq!(gateway.client().await.tools().await.len(), 31, "others see all");
}

#[test]
fn b20_servers_of_other_programs_are_previewed_with_their_conflicts() {
    let home = Home::new("mcpv");
    home.write(".claude.json", r#"{ "mcpServers": { "git": { "command": "git-mcp" }, "time": { "command": "uvx", "args": ["t"] } } }"#);
    home.write(".codex/config.toml", "[mcp_servers.git]\ncommand = \"another-git\"\n");
    home.write(
        ".gemini/settings.json",
        r#"{ "mcpServers": { "web": { "httpUrl": "http://localhost:9/mcp" } } }"#,
    );
    let preview = home.run(&["import", "--from", "claude-code,codex,gemini"]);
    for expected in ["git", "time", "web", "another-git"] {
        assert!(
            preview.stdout.contains(expected),
            "{expected}\n{}{}",
            preview.stdout,
            preview.stderr
        );
    }
    let told = home.run(&["import", "--from", "claude-code,codex,gemini", "--json"]).stdout;
    assert!(told.contains("conflict"), "{told}");
    assert!(!home.path("project/trunkline.yaml").exists(), "a preview writes nothing");
    let written =
        home.run(&["import", "--from", "claude-code,codex,gemini", "--rename", "--write"]);
    assert_eq!(written.code, 0, "{}{}", written.stdout, written.stderr);
    assert_eq!(home.run(&["check"]).code, 0);
}
