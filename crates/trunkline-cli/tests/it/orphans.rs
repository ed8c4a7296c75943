//! What is left of a server when the command that started it is killed with SIGKILL.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::run::TRUNKLINE;

#[test]
fn a_call_that_is_killed_leaves_neither_its_server_nor_what_that_started() {
    let fifo =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("orphans-{}", std::process::id()));
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("there is `mkfifo`").success());
    let mut call = Command::new(TRUNKLINE)
        .args(["call", "anything", "--", "sh", "-c", SERVER])
        .arg(&fifo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("`trunkline` starts");
    let (tell, told) = mpsc::channel();
    let pipe = fifo.clone();
    // A thread of its own: if somebody holds the pipe for ever, the test does not wait for ever.
    thread::spawn(move || {
        let mut held = BufReader::new(File::open(pipe).expect("the server opens its end"));
        let mut line = String::new();
        held.read_line(&mut line).expect("the server says that all is started");
        call.kill().expect("it can be killed");
        call.wait().expect("it is ours to wait for");
        // Ends when nobody holds the other end any more.
        held.read_to_end(&mut Vec::new()).expect("the pipe can be read");
        let _ = tell.send(line);
    });
    let line = told.recv_timeout(Duration::from_secs(60)).expect("nobody is left within 60 s");
    assert_eq!(line, "started\n");
    std::fs::remove_file(fifo).expect("it can be removed");
}

/// Waits for the first message, so that it is known to run; then holds a pipe, together with a process in
/// the background, and answers nothing.
const SERVER: &str = r#"read -r line; exec 3>"$0"; sleep 1000 & echo started >&3; wait"#;
