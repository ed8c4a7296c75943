//! `doctor`, with servers that are well and servers that are not.

use std::net::TcpListener;

use serde_json::Value;
use trunkline_testkit::ports::free_port;

use crate::clients::Home;
use crate::run::TRUNKLINE;

fn catalog(name: &str, servers: &str) -> Home {
    let home = Home::new(name);
    let port = free_port();
    home.write(
        "project/trunkline.yaml",
        &format!("mcpServers:\n{servers}gateway:\n  listen: 127.0.0.1:{port}\n"),
    );
    home
}

#[test]
fn a_server_that_is_well_passes_every_stage() {
    let home =
        catalog("doctor-well", &format!("  demo: {{ command: {TRUNKLINE}, args: [demo] }}\n"));
    let found = home.run(&["doctor"]);
    found.says(
        0,
        &[
            "✓ catalog    ~/project/trunkline.yaml, 1 server  (",
            "✓ variables",
            "✓ state",
            "– admin      no gateway is running",
            "✓ port",
            "✓ command",
            "✓ spawn",
            "✓ handshake  trunkline-demo",
            "speaks 2026-07-28",
            "✓ tools",
            "✓ prompts",
            "✓ resources",
            "✓ ping",
            "✓ stop       it exited with code 0",
            "Everything is in order.",
        ],
    );
    let state = home.path(".local/state/trunkline");
    assert!(!state.exists(), "looking makes nothing");
}

#[test]
fn what_is_wrong_is_told_with_its_end_its_last_words_and_what_to_do() {
    let servers = "  dies: { command: sh, args: ['-c', 'echo \"the key $$KEY is wrong\" >&2; exit 3'], env: { KEY: hunter2-hunter2 } }
  killed: { command: sh, args: ['-c', 'kill -9 $$$$'] }
  mute: { command: sleep, args: ['60'], timeouts: { startSeconds: 1 } }
  missing: { command: no-such-server }
  prints: { command: sh, args: ['-c', 'echo Listening on port 3000; exec sleep 60'] }
  far: { url: 'http://127.0.0.1:9/mcp' }
";
    let home = catalog("doctor-ill", servers);
    let found = home.run(&["doctor"]);
    found.says(
        1,
        &[
            "✗ handshake  The server hung up during the handshake. It exited with code 3.",
            "stderr: the key *** is wrong",
            "try: Run the command in a terminal to see why it ends.",
            "It was ended by signal 9.",
            "✗ handshake  The server did not answer the handshake in time.",
            "✗ command    `no-such-server` was not found on PATH.",
            "try: Install it, or give its full path.",
            "✓ dns        127.0.0.1",
            "✗ tcp        127.0.0.1:9",
            "It prints to stdout what is no message of MCP",
            "stdout: Listening on port 3000",
            "1 of 7 are in order. See ✗ at `dies`, `far`, `killed`, `missing`, `mute`, `prints`.",
        ],
    );
    assert!(!found.stdout.contains("hunter2"), "{}", found.stdout);
    let found = home.run(&["doctor", "missing", "--json"]);
    let value: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((found.code, &value["ok"]), (1, &Value::Bool(false)));
    assert_eq!(value["servers"].as_array().unwrap().len(), 1);
    assert_eq!(value["servers"][0]["stages"][0]["stage"], "command");
    assert_eq!(value["gateway"]["ok"], true);
    let found = home.run(&["doctor", "nobody"]);
    assert_eq!(found.code, 2);
    assert!(found.stderr.contains("dies, far"), "{}", found.stderr);
}

#[test]
fn a_catalog_that_is_wrong_and_a_port_that_is_taken_are_told() {
    let home = catalog("doctor-catalog", "  a: { command: '${NO_SUCH_VARIABLE}' }\n  b: {}\n");
    let found = home.run(&["doctor"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert!(found.stdout.contains("✗ catalog    ~/project/trunkline.yaml:3:"), "{}", found.stdout);
    assert!(found.stdout.contains("✗ variables  ~/project/trunkline.yaml:2:"), "{}", found.stdout);
    assert!(found.stdout.contains("NO_SUCH_VARIABLE"), "{}", found.stdout);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.write(
        "project/trunkline.yaml",
        &format!("mcpServers: {{}}\ngateway: {{ listen: '127.0.0.1:{port}' }}\n"),
    );
    home.write(".local/state/trunkline", "in the way");
    let found = home.run(&["doctor"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert!(found.stdout.contains("✗ port       Another program listens"), "{}", found.stdout);
    assert!(found.stdout.contains("✗ state"), "{}", found.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_a_url_passes_its_own_stages() {
    use trunkline::{Server, tool};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = Server::builder("far", "2.0.0").tool(tool("now", async || "noon")).build();
    let serving = tokio::spawn(async move {
        let _ = server.http().serve(listener, std::future::pending()).await;
    });
    let home = catalog("doctor-url", &format!("  far: {{ url: '{url}' }}\n"));
    let found = tokio::task::spawn_blocking(move || home.run(&["doctor"])).await.unwrap();
    found.says(
        0,
        &[
            "✓ dns",
            "✓ tcp",
            "✓ http",
            "✓ auth       it asks for nothing",
            "far 2.0.0, speaks 2026-07-28",
            "✓ tools      1 listed",
            "– prompts",
            "✓ stop",
        ],
    );
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_a_login_says_so() {
    let mut demo = std::process::Command::new(TRUNKLINE);
    demo.args(["demo", "--http", "127.0.0.1:0", "--auth", "--auth-address", "127.0.0.1:0"]);
    demo.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    let mut demo = demo.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(demo.stderr.take().unwrap()));
    let url = lines.by_ref().map(Result::unwrap).find_map(|line| {
        let rest = line.strip_prefix("Serving MCP at ")?.to_owned();
        Some(rest.split(' ').next()?.to_owned())
    });
    let url = url.expect("it says where it is");
    let home = catalog("doctor-auth", &format!("  locked: {{ url: '{url}' }}\n"));
    let found = tokio::task::spawn_blocking(move || home.run(&["doctor", "locked"])).await.unwrap();
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert_eq!(found.code, 1, "{}", found.stdout);
    assert!(found.stdout.contains("✓ http       status 401"), "{}", found.stdout);
    assert!(found.stdout.contains("✗ auth"), "{}", found.stdout);
    assert!(found.stdout.contains("trunkline login http://"), "{}", found.stdout);
}
