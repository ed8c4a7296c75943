//! Servers that do not work, and command lines that make no sense.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::{TRUNKLINE, against_demo, run};

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
fn a_certificate_that_is_none() {
    let url = "https://127.0.0.1:9/mcp";
    let missing = ["ping", "--cacert", "no-such-file.pem", url];
    check(&missing, 2, &["`no-such-file.pem` cannot be read", "path of a PEM file"]);
    let wrong = ["ping", "--cacert", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), url];
    check(&wrong, 3, &["handshake failed", "holds no certificate", "give a PEM file"]);
    let command = ["ping", "--cacert", "x.pem", "--", "some-server"];
    check(&command, 2, &["`--cacert` is for servers at a URL"]);
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
        &["tools/call failed", "connection ended", "The server exited with code 9", "out of paper"],
    );
}

/// A script that shakes hands and then goes on with `rest`.
fn serving(capabilities: &str, rest: &str) -> String {
    let head = r#"read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":CAPABILITIES,"serverInfo":{"name":"sh","version":"1"}}}'
        read -r line; read -r line
        "#;
    format!("{}{rest}", head.replace("CAPABILITIES", capabilities))
}

/// Runs a verb with `--json` and gives the one line that stdout must be.
#[track_caller]
fn json_failure(args: &[&str], code: i32) -> Value {
    let found = run(args);
    assert_eq!(found.code, code, "{}{}", found.stdout, found.stderr);
    assert!(!found.stderr.is_empty(), "people are told too");
    assert_eq!(found.stdout.lines().count(), 1, "{}", found.stdout);
    serde_json::from_str(&found.stdout).unwrap_or_else(|err| panic!("{err}: {}", found.stdout))
}

#[test]
fn programs_get_failures_as_json() {
    let dies = serving(r#"{"tools":{}}"#, "exit 9");
    let sh = ["--json", "--protocol", "2025-06-18", "--", "sh", "-c"];
    let found = json_failure(&[&["call", "print"], &sh[..], &[&dies]].concat(), 3);
    assert_eq!(found["error"]["stage"], "tools/call");
    assert_eq!(found["error"]["exit"], json!({ "code": 9 }));
    let killed = serving(r#"{"tools":{}}"#, "kill -KILL $$");
    let found = json_failure(&[&["call", "print"], &sh[..], &[&killed]].concat(), 3);
    assert_eq!(found["error"]["exit"], json!({ "signal": 9 }));

    let refuses = serving(
        r#"{"tools":{}}"#,
        r#"printf '%s\n' '{"jsonrpc":"2.0","id":2,"error":{"code":-7,"message":"no\u009bpe","data":{"why":[1]}}}'; read -r line"#,
    );
    let found = json_failure(&[&["call", "print"], &sh[..], &[&refuses]].concat(), 4);
    let error = json!({ "stage": "tools/call", "message": "no\u{9b}pe", "code": -7, "data": { "why": [1] } });
    assert_eq!(found, json!({ "error": error }));

    let found = json_failure(&["ping", "--json", "--", "sh", "-c", "exit 7"], 3);
    assert_eq!(found["error"]["stage"], "handshake");
    assert_eq!(found["error"]["exit"], json!({ "code": 7 }));
    let found = json_failure(&["ping", "--json", "--", "no-such-program-anywhere"], 3);
    assert_eq!(found["error"]["stage"], "spawn");
    for args in [
        &["list", "--json"][..],
        &["list", "--json", "trunkline", "demo"],
        &["call", "echo", "--json", "--args", "[1]", "--", "x"],
    ] {
        assert_eq!(json_failure(args, 2)["error"]["stage"], "usage", "{args:?}");
    }
}

#[test]
fn what_cannot_be_written_is_no_fault_of_the_command_line() {
    for args in [&["list", "--", TRUNKLINE, "demo"][..], &["demo"]] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut child = Command::new(TRUNKLINE)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut stdin = child.stdin.take().expect("it is piped");
        let _ = stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {stderr}");
        assert!(stderr.contains("failed: "), "{args:?}: {stderr}");
        drop(stdin);
    }
}

#[test]
fn broken_framing_is_no_fault_of_the_command_line() {
    let mut child = Command::new(TRUNKLINE)
        .arg("demo")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(b"Content-Length: many\r\n\r\n{}").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("framing"), "{stderr}");
}

#[test]
fn what_a_server_calls_itself_and_its_things_stays_on_one_line() {
    let lists = serving(
        r#"{"tools":{},"logging":{}}"#,
        r#"
        printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{}}'
        read -r line
        printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"l\u001b[2J\ntrunkline","data":"a\nforged: b"}}'
        printf '%s\n' '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a\n  forged","description":"x\u009b2Jy\u202e","inputSchema":{"type":"object"}}]}}'
        read -r line"#,
    );
    let end = ["--log", "debug", "--protocol", "2025-06-18", "--", "sh", "-c", &lists];
    let found = run(&[&["list"], &end[..]].concat());
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("  a\\n  forged()  x\\u{9b}2Jy\\u{202e}\n"), "{}", found.stdout);
    assert!(
        found.stderr.contains("error l\\u{1b}[2J\\ntrunkline: a\n  forged: b\n"),
        "{}",
        found.stderr
    );
    let found = run(&[&["list", "--json"], &end[..]].concat());
    assert!(found.stdout.contains("x\\u009b2Jy\\u202e"), "{}", found.stdout);
    let list: Value = serde_json::from_str(&found.stdout).expect("it is still JSON");
    assert_eq!(list["tools"][0]["description"], "x\u{9b}2Jy\u{202e}");
}

/// Signals the binary while a server that ignores what it is asked is in `stage`, and sees that
/// nothing is left of the server and of what the server started.
#[track_caller]
fn check_signal(signal: &str, number: i32, stage: &str) {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let fifo = format!("{folder}/alive-{signal}-{stage}-{}", std::process::id());
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it is installed").success());
    // Whoever lives holds the fifo open.
    let stay = "trap '' TERM INT HUP QUIT; exec 3>\"$0\"; sleep 1000 & echo up >&3; wait";
    let script = match stage {
        "handshake" => stay.to_owned(),
        _ => serving(r#"{"tools":{}}"#, stay),
    };
    let verb = ["call", "print", "--protocol", "2025-06-18", "--", "sh", "-c", &script, &fifo];
    // Whoever runs the tests may ignore some of them, as `nohup` has it.
    let mut child = Command::new("env")
        .args(["--default-signal=INT,TERM,HUP,QUIT", TRUNKLINE])
        .args(verb)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built");
    let mut alive = BufReader::new(File::open(&fifo).expect("the server opens it"));
    let mut up = String::new();
    alive.read_line(&mut up).expect("a fifo can be read");
    assert_eq!(up, "up\n");
    std::fs::remove_file(&fifo).expect("it was made above");

    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status().expect("it is installed");
    assert!(sent.success());
    let (gone, all_gone) = mpsc::channel();
    thread::spawn(move || gone.send(alive.read_to_end(&mut Vec::new()).is_ok()));
    let is_gone = all_gone.recv_timeout(Duration::from_secs(5));
    assert_eq!(is_gone, Ok(true), "{signal} in the {stage}: a process is left");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(128 + number), "{signal} in the {stage}: {status}");
}

#[test]
fn signals_end_the_server_and_all_it_started() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        for stage in ["handshake", "call"] {
            check_signal(signal, number, stage);
        }
    }
}

#[test]
fn a_signal_that_is_to_be_ignored_is() {
    let serves = serving(
        "{}",
        r#"kill -HUP "$PPID"; echo '{"jsonrpc":"2.0","id":2,"result":{}}'; read -r line"#,
    );
    let found = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", TRUNKLINE])
        .args(["ping", "--protocol", "2025-06-18", "--", "sh", "-c", &serves])
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
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
    let cases: [(&[&str], &[&str]); 3] = [
        (&["call", "nope"], &["tools/call failed", "`nope`", "-32602", "trunkline list"]),
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
fn a_tool_that_panics() {
    let found = against_demo(&["call", "boom"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert!(found.stdout.contains("`boom` failed unexpectedly."), "{}", found.stdout);
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
    let cases: [(&[&str], &str); 11] = [
        (&["list"], "COMMAND"),
        (&["dance"], "dance"),
        (&["ping", "--protocol", "2023-01-01", "--", "x"], "choose one of"),
        (&["ping", "--timeout", "soon", "--", "x"], "number of seconds"),
        (&["call", "echo", "--args", "[1]", "--", "x"], "`--args` takes one JSON object"),
        (&["call", "echo", "--args", "@no/such/file", "--", "x"], "`no/such/file` cannot be read"),
        (&["call", "sum", "--args", r#"{"a":1,"a":2}"#, "--", "x"], "`a` is given twice"),
        (&["prompt", "review", "code=x", "code=y", "--", "x"], "`code` is given twice"),
        (&["list", "--env", "=x", "--", "x"], "NAME=VALUE"),
        (&["list", "--env", "", "--", "x"], "NAME=VALUE"),
        (&["list", "trunkline", "demo"], "try: `trunkline list -- trunkline demo`"),
    ];
    for (args, part) in cases {
        check(args, 2, &[part]);
    }
    let found = against_demo(&["call", "work", "steps=many"]);
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("`steps` takes integer"), "{}", found.stderr);
    let found = against_demo(&["call", "sum", "a=1", "a=2", "b=3"]);
    assert_eq!(found.code, 2, "{}", found.stderr);
    assert!(found.stderr.contains("`a` is given twice"), "{}", found.stderr);
}
