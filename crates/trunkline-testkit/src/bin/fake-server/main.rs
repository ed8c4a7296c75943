//! `fake-server`: lines of JSON-RPC on standard input into answers, and all that happens into a log.
//!
//! Plain Rust without the SDK, so that a test of ours never asks our own code what is right.

#![forbid(unsafe_code)]

mod ask;
mod gossip;
mod journal;
mod options;
mod out;
mod process;
mod server;
mod signals;
mod tools;

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use journal::Journal;
use options::Announces;
use process::Server;

/// How this server behaves.
#[derive(Debug, Default, PartialEq)]
struct Options {
    revision: String,
    also: Option<String>,
    name: String,
    instructions: Option<String>,
    log: Option<PathBuf>,
    tools_file: Option<PathBuf>,
    page: Option<usize>,
    exit_at_start: Option<i32>,
    exit_while: Option<PathBuf>,
    exit_on: Vec<String>,
    hang_on: Vec<String>,
    start_delay: Duration,
    ignores_eof: bool,
    ignores_term: bool,
    tells_changes: bool,
    announces: Announces,
    lists_by_client: bool,
    stderr: Vec<String>,
    gossips: bool,
    asks_at_start: bool,
}

fn main() {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(sentence) => {
            let _ = writeln!(io::stderr(), "{sentence}\n\n{}", options::USAGE);
            exit(2)
        }
    };
    let journal = Journal::open(&options);
    let cwd = std::env::current_dir().map(|it| it.display().to_string()).unwrap_or_default();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parent = std::os::unix::process::parent_id();
    journal.write("start", json!({ "args": args, "cwd": cwd, "parent": parent }));
    for line in &options.stderr {
        let _ = writeln!(io::stderr(), "{line}");
    }
    let is_told = options.exit_while.as_ref().is_some_and(|file| file.exists());
    if let Some(code) = options.exit_at_start.or(is_told.then_some(1)) {
        journal.exit(code)
    }
    let server = Arc::new(Server::new(options, journal));
    signals::watch(&server);
    // The delay is what the test asked for.
    thread::sleep(server.options.start_delay); // the sleep is the subject
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str::<Value>(&line) {
            Ok(message) => server.hear(message),
            Err(error) => server.journal.write("garbage", json!({ "error": error.to_string() })),
        }
    }
    server.journal.write("eof", json!({}));
    if !server.options.ignores_eof {
        server.journal.exit(0)
    }
    loop {
        thread::park();
    }
}
