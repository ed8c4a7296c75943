//! Servers that do not work, and command lines that make no sense.

use std::time::{Duration, Instant};

use crate::run::{against_demo, run};

/// Runs a verb, and compares the exit code and what must be in stderr.
#[track_caller]
fn check(args: &[&str], code: i32, parts: &[&str]) {
    let started = Instant::now();
    let found = run(args);
    assert!(started.elapsed() < Duration::from_secs(20), "it took {:?}", started.elapsed());
    for part in parts {
        assert!(found.stderr.contains(part), "`{part}` is not in: {}", found.stderr);
    }
    assert_eq!(found.code, code, "{}{}", found.stdout, found.stderr);
    assert_eq!(found.stdout, "");
}

#[test]
fn a_program_that_is_not_there() {
    check(
        &["list", "--", "no-such-program-anywhere"],
        3,
        &["spawn failed", "`no-such-program-anywhere` was not found on PATH", "Install it"],
    );
}

#[test]
fn a_server_that_exits_at_start() {
    check(
        &["list", "--", "sh", "-c", "echo 'no config file' >&2; exit 7"],
        3,
        &["handshake failed", "hung up", "exited with code 7", "try:", "no config file"],
    );
}

#[test]
fn a_server_that_hangs() {
    let parts = ["handshake failed", "did not answer", "try:", "thinking"];
    check(
        &["ping", "--timeout", "0.5", "--", "sh", "-c", "echo thinking >&2; sleep 100"],
        5,
        &parts,
    );
}

#[test]
fn a_server_that_speaks_garbage() {
    let script = "while read -r line; do echo 'Welcome to the server!'; done";
    check(&["ping", "--timeout", "0.5", "--", "sh", "-c", script], 5, &["handshake failed"]);
    let script = "read -r line; echo hello; echo '{\"jsonrpc\":'; exit 0";
    check(&["ping", "--", "sh", "-c", script], 3, &["handshake failed", "exited with code 0"]);
}

#[test]
fn a_server_that_dies_in_a_call() {
    let script = r#"
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}'
        read -r line; read -r line
        echo 'out of paper' >&2
        exit 9
    "#;
    check(
        &["call", "print", "--protocol", "2025-06-18", "--", "sh", "-c", script],
        3,
        &["tools/call failed", "connection ended", "out of paper"],
    );
}

#[test]
fn a_revision_the_server_lacks() {
    let script = r#"
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
        sleep 100
    "#;
    check(
        &["ping", "--protocol", "2025-11-25", "--", "sh", "-c", script],
        3,
        &["handshake failed", "2024-11-05", "2025-11-25", "try:"],
    );
}

#[test]
fn errors_of_the_server() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&["call", "nope"], &["tools/call failed", "`nope`", "-32602", "trunkline list"]),
        (&["call", "boom"], &["tools/call failed", "-32603"]),
        (&["read", "demo://nope"], &["resources/read failed", "demo://nope"]),
        (&["prompt", "nope"], &["prompts/get failed", "nope"]),
    ];
    for (args, parts) in cases {
        let found = against_demo(args);
        assert_eq!(found.code, 4, "{}", found.stderr);
        for part in parts {
            assert!(found.stderr.contains(part), "`{part}` is not in: {}", found.stderr);
        }
    }
}

#[test]
fn a_tool_that_takes_too_long() {
    let found = against_demo(&["call", "sleep", "ms=60000", "--timeout", "0.3"]);
    assert_eq!(found.code, 5, "{}", found.stderr);
    assert!(found.stderr.contains("did not answer in time"), "{}", found.stderr);
    assert!(found.stderr.contains("--timeout"), "{}", found.stderr);
}

#[test]
fn command_lines_that_make_no_sense() {
    let cases: [(&[&str], &str); 6] = [
        (&["list"], "COMMAND"),
        (&["dance"], "dance"),
        (&["ping", "--protocol", "2023-01-01", "--", "x"], "choose one of"),
        (&["ping", "--timeout", "soon", "--", "x"], "number of seconds"),
        (&["call", "echo", "--args", "[1]", "--", "x"], "`--args` takes one JSON object"),
        (&["call", "echo", "--args", "@no/such/file", "--", "x"], "`no/such/file` cannot be read"),
    ];
    for (args, part) in cases {
        check(args, 2, &[part]);
    }
    let found = against_demo(&["call", "work", "steps=many"]);
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("`steps` takes integer"), "{}", found.stderr);
}
