//! The tap on stdio: everything passes as it is, and ends as it does.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use trunkline_testkit::Folder;

use super::{against, lines, record};
use crate::run::{TRUNKLINE, run};

/// A tap on a shell script.
fn tap(file: &Path, script: &str) -> Child {
    let mut command = Command::new(TRUNKLINE);
    command.arg("record").arg(file).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary was built")
}

#[test]
fn bytes_pass_untouched_and_so_do_stderr_and_the_exit_code() {
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    let mut child = tap(&file, "printf 'w\\033[1m\\377\\n' >&2; cat; exit 7");
    let mut sent = b"{\"jsonrpc\": \"2.0\",  \"method\":\"a\"}\r\n\n\xff\xfe not json\n".to_vec();
    // More than a pipe holds, in one line.
    sent.extend(std::iter::repeat_n(b'x', 1 << 20));
    sent.extend(b"\n{\"jsonrpc\":\"2.0\",\"method\":\"without an end\"}");
    let mut stdin = child.stdin.take().unwrap();
    let writing = sent.clone();
    let writer = thread::spawn(move || stdin.write_all(&writing));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(output.stdout, sent);
    assert_eq!(output.stderr, b"w\x1b[1m\xff\n");
    assert_eq!(output.status.code(), Some(7));
    let lines = lines(&file);
    let messages = lines.iter().filter(|it| !it["message"].is_null());
    assert_eq!(messages.count(), 4, "two there and two back");
    assert_eq!(lines.last().unwrap()["note"], serde_json::json!({ "what": "exited", "code": 7 }));
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_signal_reaches_the_server_and_the_tap_ends_as_it_does() {
    let folder = Folder::new();
    let script = "trap 'echo got it; exit 5' TERM; echo ready; sleep 1000 & wait";
    let mut child = tap(&folder.join("a.jsonl"), script);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "got it\n");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_killed_tap_leaves_no_process() {
    let folder = Folder::new();
    let fifo = folder.join("held");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Waits for a line, so that it is known to run.
    let script = "read -r line; exec 3>\"$line\"; sleep 1000 & echo started >&3; wait";
    let mut child = tap(&folder.join("a.jsonl"), script);
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", fifo.display()).unwrap();
    let (tell, told) = mpsc::channel();
    // A thread of its own: if somebody holds the pipe for ever, the test does not wait for ever.
    thread::spawn(move || {
        let mut held = BufReader::new(File::open(fifo).unwrap());
        let mut line = String::new();
        held.read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        held.read_to_end(&mut Vec::new()).unwrap();
        let _ = tell.send(line);
    });
    let line = told.recv_timeout(Duration::from_secs(60)).expect("nobody is left within 60 s");
    assert_eq!(line, "started\n");
}

#[test]
fn a_file_is_not_overwritten_nor_shared() {
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    let verb = ["call", "sum", "a=1", "b=2"];
    record(&verb, &file, &[]).says(0, &["{\"sum\":3}"]);
    let before = fs::read(&file).unwrap();
    let path = file.to_str().unwrap();
    let refused = run(&["record", path, "--", TRUNKLINE, "demo"]);
    refused.fails(2, "exists already");
    assert_eq!(fs::read(&file).unwrap(), before);

    record(&verb, &file, &["--append"]).says(0, &["{\"sum\":3}"]);
    let runs = lines(&file).iter().filter(|it| !it["recording"].is_null()).count();
    assert_eq!(runs, 2);
    against(&verb, &file).says(0, &["{\"sum\":3}"]);

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&["record", path, "--append", "--", TRUNKLINE, "demo"]);
    refused.fails(2, "Others can read");
}

#[test]
fn a_full_recording_says_so_and_everything_still_passes() {
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    let recorded = record(&["list", "--verbose"], &file, &["--max", "2KiB"]);
    recorded.says(0, &["demo://readme"]);
    assert!(fs::metadata(&file).unwrap().len() <= 2048);
    assert!(recorded.stderr.contains("is full (`--max`)"), "{}", recorded.stderr);
    let lines = lines(&file);
    let dropped = &lines.last().unwrap()["note"];
    assert_eq!(dropped["what"], "dropped");
    assert!(dropped["messages"].as_u64() > Some(1), "{dropped}");
}

#[test]
fn a_server_that_cannot_start_is_a_failure_of_its_own() {
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    let failed = run(&["record", file.to_str().unwrap(), "--", "no-such-program-here"]);
    failed.fails(3, "no-such-program-here");
}
