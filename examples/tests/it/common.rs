//! How the tests reach an example.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use trunkline::model::CallToolResult;
use trunkline::{Client, Revision, client::ClientBuilder};

/// The newest revision of each era.
pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// The path of an example.
macro_rules! example {
    ($name:literal) => {
        env!(concat!("CARGO_BIN_EXE_", $name))
    };
}
pub(crate) use example;

pub(crate) fn builder(revision: Revision) -> ClientBuilder {
    Client::builder("examples", "1.0.0").protocol(revision)
}

/// A client of an example that is started for it.
pub(crate) async fn connect(path: &str, revision: Revision) -> Client {
    builder(revision).connect_args([path]).await.unwrap()
}

/// The only text of a successful result.
#[track_caller]
pub(crate) fn text(result: &CallToolResult) -> &str {
    assert!(!result.is_error(), "{result:?}");
    result.content[0].as_text().unwrap()
}

/// What an example prints.
pub(crate) fn printed(path: &str, args: &[&str]) -> String {
    let output = Command::new(path).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{path}` failed: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// An example that serves HTTP, as long as this lives.
pub(crate) struct Served {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) url: String,
}

impl Served {
    /// Starts it, and waits until it says where it listens.
    pub(crate) fn start(path: &str, args: &[&str]) -> Self {
        let mut command = Command::new(path);
        let mut child = command.args(args).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut served = Self { child, stderr, url: String::new() };
        let line = served.line_with("Listening at ");
        served.url = line.trim_start_matches("Listening at ").to_owned();
        served
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its stderr that contains `words`.
    pub(crate) fn line_with(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let read = self.stderr.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before it said `{words}`");
        }
        line.trim_end().to_owned()
    }
}

/// A page of the web server beside MCP.
pub(crate) fn page(url: &str, path: &str) -> String {
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

/// Follows a page's redirects, as a browser does.
pub(crate) fn follow(url: &str) {
    let mut next = Some(url.to_owned());
    while let Some(url) = next {
        let rest = url.trim_start_matches("http://");
        let (address, path) = rest.split_at(rest.find('/').unwrap());
        let mut stream = TcpStream::connect(address).unwrap();
        let ask = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let head = answer.lines().take_while(|line| !line.is_empty());
        let mut names = head.filter_map(|line| line.split_once(": "));
        next = names.find(|it| it.0.eq_ignore_ascii_case("location")).map(|it| it.1.to_owned());
        assert!(next.is_some() || answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
