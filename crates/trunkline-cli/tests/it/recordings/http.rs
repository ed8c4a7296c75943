//! The tap on HTTP, and a played server there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use trunkline_testkit::Folder;

use super::{BOOK, lines};
use crate::run::{TRUNKLINE, run};

/// A running binary that has said where it listens; killed when it is dropped.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(TRUNKLINE);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built");
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let at = line.find("http://").unwrap_or_else(|| panic!("no address in `{line}`"));
        let url = line[at..].split_whitespace().next().unwrap_or_default();
        Self { child, url: url.trim_end_matches(['.', ';']).to_owned() }
    }

    fn demo() -> Self {
        Self::start(&["demo", "--http", "127.0.0.1:0"])
    }

    /// Ends it as an operator does, and waits.
    fn stop(mut self) -> Option<i32> {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

/// A tap before a demo, and the recording.
struct Tapped {
    demo: Serving,
    tap: Serving,
    file: PathBuf,
    _folder: Folder,
}

impl Tapped {
    fn start() -> Self {
        let (demo, folder) = (Serving::demo(), Folder::new());
        let file = folder.join("a.jsonl");
        let path = file.to_str().unwrap();
        let tap = Serving::start(&["record", path, &demo.url, "--listen", "127.0.0.1:0"]);
        Self { demo, tap, file, _folder: folder }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client does; the same words against each server.
fn use_it(url: &str) -> Vec<String> {
    let mut said = Vec::new();
    for revision in ["2025-03-26", "2025-11-25", "2026-07-28"] {
        let mut verbs = vec![
            vec!["call", "progress", "steps=3"],
            vec!["list"],
            vec!["call", "roots", "--root", "/"],
        ];
        if revision != "2025-03-26" {
            verbs.push(BOOK.to_vec());
        }
        for verb in verbs {
            let used = run(&[&verb, ["--protocol", revision, "--json", url].as_slice()].concat());
            assert_eq!(used.code, 0, "{revision} {verb:?}: {}", used.stderr);
            said.push(used.stdout);
        }
    }
    said
}

#[test]
fn a_server_at_a_url_is_recorded_and_played_from_both_ends() {
    let Tapped { demo, tap, file, _folder } = Tapped::start();
    let path = file.to_str().unwrap();
    assert!(tap.url.ends_with("/mcp"), "{}", tap.url);
    let recorded = use_it(&tap.url);
    assert_eq!(tap.stop(), Some(0));
    let lines = lines(&file);
    let sessions = lines.iter().filter_map(|it| it["session"].as_u64()).max();
    // Seven of the stateful era, and one for all that have no session.
    assert_eq!(sessions, Some(8));
    let heads = lines.iter().filter(|it| it["http"]["headers"]["mcp-session-id"] == "***").count();
    assert!(heads > 7, "the ids of sessions are masked");

    let again = run(&["replay", path, &demo.url]);
    again.says(0, &["No difference in "]);
    let stage = Serving::start(&["replay", path, "--as-server", "--listen", "127.0.0.1:0"]);
    assert_eq!(use_it(&stage.url), recorded);
    // The same client, twice.
    assert_eq!(use_it(&stage.url), recorded);
    // Players of both ends, and nothing else.
    run(&["replay", path, &stage.url]).says(0, &["No difference in "]);
    // From HTTP to stdio.
    let used = run(&[
        &BOOK,
        ["--protocol", "2025-11-25", "--", TRUNKLINE, "replay", path, "--as-server"].as_slice(),
    ]
    .concat());
    used.says(0, &["R-ROME"]);
}

#[test]
fn other_pages_and_other_names_are_refused() {
    let Tapped { demo, tap, file, _folder } = Tapped::start();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ask = |headers: &str| {
        let address = tap.url.trim_start_matches("http://").trim_end_matches("/mcp");
        let mut stream = TcpStream::connect(address).unwrap();
        let head = "content-type: application/json\r\naccept: application/json, text/event-stream";
        let length = body.len();
        write!(stream, "POST /mcp HTTP/1.1\r\n{headers}\r\n{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(ask("host: evil.example"), "HTTP/1.1 403 Forbidden");
    assert_eq!(ask("host: localhost\r\norigin: https://evil.example"), "HTTP/1.1 403 Forbidden");
    assert_eq!(ask("host: localhost\r\nauthorization: Bearer hunter2"), "HTTP/1.1 400 Bad Request");
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text.matches("\"method\":\"ping\"").count(), 1, "what is refused is not recorded");
    assert!(text.contains(r#""authorization":"***""#) && !text.contains("hunter2"), "{text}");
    let open = run(&["record", "x.jsonl", &demo.url, "--listen", "0.0.0.0:0"]);
    open.fails(2, "can be reached from other machines");
}

#[test]
fn a_server_that_is_gone_is_a_502_and_a_failed_replay() {
    let Tapped { demo, tap, file, _folder } = Tapped::start();
    let url = demo.url.clone();
    run(&["call", "sum", "a=1", "b=2", &tap.url]).says(0, &["{\"sum\":3}"]);
    drop(demo);
    let failed = run(&["call", "sum", "a=1", "b=2", &tap.url]);
    assert!(failed.stderr.contains("502"), "{}", failed.stderr);
    let found = run(&["replay", file.to_str().unwrap(), &url]);
    found.says(1, &["server/discover", "/answer"]);
}

#[test]
fn a_response_that_is_cut_off_does_not_pass_as_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for media in ["text/event-stream", "application/json", "text/plain"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"{}") {
                let mut piece = [0; 1024];
                let n = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..n]);
            }
            let head = format!("content-type: {media}\r\ntransfer-encoding: chunked");
            write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n9\r\ndata").unwrap();
        }
    });
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    let tap = Serving::start(&["record", file.to_str().unwrap(), &url, "--listen", "127.0.0.1:0"]);
    let address = tap.url.trim_start_matches("http://").trim_end_matches("/mcp");
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2";
        write!(stream, "{head}\r\n\r\n{{}}").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("the connection ends");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(!said.ends_with("\r\n0\r\n\r\n"), "{said}");
    }
    server.join().unwrap();
}

#[test]
fn a_client_that_leaves_before_its_answer_has_cancelled_its_call() {
    let Tapped { demo, tap, file, _folder } = Tapped::start();
    let path = file.to_str().unwrap();
    let late = run(&["call", "sleep", "ms=60000", "--timeout", "0.5", &tap.url]);
    assert_eq!(late.code, 5, "{}", late.stderr);
    assert_eq!(tap.stop(), Some(0));
    let ask = lines(&file).into_iter().find(|it| it["message"]["params"]["name"] == "sleep");
    let stream = ask.expect("the call is recorded")["stream"].clone();
    let left = |it: &serde_json::Value| it["note"]["what"] == "ended" && it["stream"] == stream;
    assert!(lines(&file).iter().any(left), "{stream} was left");
    // The call is made again, and nobody waits for its answer.
    run(&["replay", path, &demo.url]).says(0, &["No difference in "]);
}
