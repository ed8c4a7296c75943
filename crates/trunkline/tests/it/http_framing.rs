//! Raw bytes of HTTP/1.1 and HTTP/2 → the expected answers, and nothing more.
//!
//! Framing decides where one request ends and the next begins. A server that gets it wrong runs a
//! request that no client sent, or one that bypassed the gate in front (RFC 9112 §11.2). So each
//! row says which tools run, and a call hidden in the bytes of another request is never one of
//! them.

/// Tests that check a table of rows each.
macro_rules! checks {
    ($($name:ident = $rows:expr;)*) => { $(
        #[tokio::test]
        async fn $name() {
            Counted::new().await.check($rows).await;
        }
    )* };
}

mod chunks;
mod frames;
mod heads;
mod lengths;
mod pipelines;
mod second;
mod second_floods;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use trunkline::{Limits, Revision, Server, tool};
use trunkline_testkit::http::bad::rows::MODERN;
use trunkline_testkit::http::{Guest, Line, request};

use crate::http::House;
use crate::server::builder;

/// The bytes that a client sends on one connection, the statuses of the answers, what happens to
/// the connection, and how often the call and the hidden call run.
///
/// In the bytes `$HOST` stands for the server, `$LABELS` for the header lines of a call without its
/// length, `$POST` for its head up to there, `$BODY` for the text of the call, `$LENGTH` and `$SIZE`
/// for its length in decimal and in hex, `$CHUNKS` for the text as one chunk and the end, `$CALL` for
/// the whole call. `$HIDDEN` is a whole call of another tool, `$COVER` its length. `$LONG` is a text
/// of 70,000 letters.
type Row<'a> = (&'a str, Outcome<'a>);
type Outcome<'a> = (&'a [u16], Then, (u32, u32));

/// It is refused, and nothing more is read.
const MALFORMED: Outcome<'_> = (&[400], Then::Closed, (0, 0));
/// It is the call.
const RUNS: Outcome<'_> = (&[200], Then::Open, (1, 0));
/// It is the call, and the last.
const RUNS_LAST: Outcome<'_> = (&[200], Then::Closed, (1, 0));
/// It never ends.
const CUT_OFF: Outcome<'_> = (&[400], Then::CutOff, (0, 0));

/// What happens to a connection after the answers.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// The server closes it.
    Closed,
    /// It stays in sync: the next request on it is answered.
    Open,
    /// The client shuts down its write side in the middle of a request, and the server closes the
    /// connection, with or without an answer.
    CutOff,
}

/// A server that counts how often the call and the hidden call ran.
struct Counted {
    house: House,
    open: Arc<AtomicU32>,
    hidden: Arc<AtomicU32>,
}

impl Counted {
    async fn new() -> Self {
        let (server, open, hidden) = server();
        Self { house: House::of(&server).await, open, hidden }
    }

    /// How often each ran since the last time.
    fn runs(&self) -> (u32, u32) {
        (self.open.swap(0, SeqCst), self.hidden.swap(0, SeqCst))
    }

    /// Puts back counts that were read but not checked.
    fn restore(&self, (open, hidden): (u32, u32)) {
        self.open.fetch_add(open, SeqCst);
        self.hidden.fetch_add(hidden, SeqCst);
    }

    /// The bytes of a row.
    fn bytes(&self, text: &str) -> String {
        let (labels, hidden) = (self.labels(), self.call("sleep"));
        text.replace("$CALL", &self.call("sum"))
            .replace("$POST", "POST /mcp HTTP/1.1\r\nHost: $HOST\r\n$LABELS")
            .replace("$CHUNKS", "$SIZE\r\n$BODY\r\n0\r\n\r\n")
            .replace("$HIDDEN", &hidden)
            .replace("$COVER", &hidden.len().to_string())
            .replace("$LABELS", &labels)
            .replace("$BODY", MODERN)
            .replace("$LENGTH", &MODERN.len().to_string())
            .replace("$SIZE", &format!("{:x}", MODERN.len()))
            .replace("$LONG", &"x".repeat(70_000))
            .replace("$HOST", &self.house.address.to_string())
    }

    /// A whole, valid call of a tool.
    fn call(&self, name: &str) -> String {
        let message: Value = serde_json::from_str(MODERN).unwrap();
        let headers = self.guest().headers(&message);
        let text = request(self.house.address, "POST /mcp", &headers, MODERN);
        // The name stands in the head and in the body; only the body has a length.
        let text = String::from_utf8(text).unwrap().replace("sum", name);
        let grown = MODERN.len() + name.len() - "sum".len();
        let length = format!("Content-Length: {}\r\n", MODERN.len());
        text.replace(&length, &format!("Content-Length: {grown}\r\n"))
    }

    fn labels(&self) -> String {
        let message: Value = serde_json::from_str(MODERN).unwrap();
        let headers = self.guest().headers(&message);
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
    }

    fn guest(&self) -> Guest {
        Guest::new(self.house.address, Revision::V2026_07_28)
    }

    /// Sends each row over its own connection, and a valid call over the next.
    async fn check(&self, rows: &[Row<'_>]) {
        let mut wrong = Vec::new();
        for row in rows {
            let (text, (statuses, then, runs)) = row;
            let mut heard = Vec::new();
            let sent = self.send(text, statuses.len(), *then, &mut heard);
            let is_over = timeout(PATIENCE, sent).await.is_ok();
            let ran = self.runs();
            let is_silence = matches!(then, Then::CutOff) && heard.is_empty();
            if !is_over || (heard != *statuses && !is_silence) || ran != *runs {
                let over = if is_over { "over" } else { "not over" };
                wrong.push(format!("{row:?}: {over} after {heard:?}, and {ran:?} ran"));
            }
            assert_eq!(self.clean().await, 200, "after {row:?}");
            assert_eq!(self.runs(), (1, 0), "after {row:?}");
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// The calls ran this often, and a proper call is still answered.
    async fn goes_on(&self, ran: (u32, u32), after: impl std::fmt::Debug) {
        assert_eq!(self.runs(), ran, "{after:?}");
        assert_eq!((self.clean().await, self.runs()), (200, (1, 0)), "after {after:?}");
    }

    /// The status of a valid call over its own connection.
    async fn clean(&self) -> u16 {
        let mut line = Line::to(self.house.address).await;
        line.send(self.call("sum")).await;
        let status = line.head().await.status;
        line.body().await;
        status
    }

    /// Sends the bytes of a row and records the statuses until the connection ends. If it should
    /// stay open, the next request must get the next and last answer.
    async fn send(&self, text: &str, count: usize, then: Then, heard: &mut Vec<u16>) {
        let mut line = Line::to(self.house.address).await;
        line.send(self.bytes(text)).await;
        match then {
            Then::Closed => all(&mut line, heard).await,
            Then::CutOff => {
                line.finish().await;
                all(&mut line, heard).await;
            }
            Then::Open => {
                while heard.len() < count {
                    let Some(head) = line.try_head().await else { return };
                    heard.push(head.status);
                    line.body().await;
                }
                let probe = "GET /probe HTTP/1.1\r\nHost: $HOST\r\nConnection: close\r\n\r\n";
                line.send(self.bytes(probe)).await;
                let mut after = Vec::new();
                all(&mut line, &mut after).await;
                // That path is not served, and no other request was sent.
                if after != [404] {
                    heard.push(0);
                    heard.extend(after);
                }
            }
        }
    }
}

/// Rows with the same expectation.
fn rows<'a>(texts: &'a [String], outcome: Outcome<'a>) -> Vec<Row<'a>> {
    texts.iter().map(|text| (&**text, outcome)).collect()
}

/// Records the statuses of all answers until the server closes the connection.
async fn all(line: &mut Line, heard: &mut Vec<u16>) {
    while let Some(head) = line.try_head().await {
        heard.push(head.status);
        line.body().await;
    }
}

/// A server with a tool for the call and one for the hidden call, and how often each ran.
fn server() -> (Server, Arc<AtomicU32>, Arc<AtomicU32>) {
    let (open, hidden) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counted = |runs: &Arc<AtomicU32>| {
        let runs = Arc::clone(runs);
        move || {
            runs.fetch_add(1, SeqCst);
            async { "3" }
        }
    };
    let server = builder()
        .limits(Limits::default())
        .tool(tool("sum", counted(&open)))
        .tool(tool("sleep", counted(&hidden)))
        .build();
    (server, open, hidden)
}

/// Shorter than the socket's time-out, so that a hanging row is named.
const PATIENCE: Duration = Duration::from_secs(20);
