//! A request that is right + what is wrong with it → its bytes, and whether a server refuses it.

use std::net::SocketAddr;

use serde_json::Value;
use trunkline_wire::revision::Revision;

use super::{Guest, Line};

pub mod bodies;
pub mod rows;

use bodies::EITHER_ERA;
use rows::Twist::{self, *};
use rows::{LEGACY, MODERN, STATEFUL, STATELESS};

/// A server, and a guest of either era that was let in.
pub struct Inputs {
    house: SocketAddr,
    /// Of the newest revision.
    pub newest: Guest,
    /// In a session of the last stateful one.
    pub guest: Guest,
}

impl Inputs {
    /// Opens a session at a server that has the tools `sum` and `sleep`.
    pub async fn at(house: SocketAddr) -> Self {
        let newest = Guest::new(house, Revision::V2026_07_28);
        Self { house, newest, guest: Guest::open(house, Revision::V2025_11_25).await }
    }

    /// The bytes of a call of the newest revision, twisted.
    pub fn modern(&self, twists: &[Twist]) -> Vec<u8> {
        self.twisted(&self.newest, MODERN, twists)
    }

    /// The bytes of a call in the session, twisted.
    pub fn legacy(&self, twists: &[Twist]) -> Vec<u8> {
        self.twisted(&self.guest, LEGACY, twists)
    }

    /// Sends every row, and returns a sentence about each that was not refused as it says or made
    /// `ran` say that a tool ran.
    pub async fn refused(&self, ran: impl Fn() -> bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let legacy = STATEFUL.iter().chain(EITHER_ERA).map(|row| (row, self.legacy(row.2)));
        let modern = STATELESS.iter().chain(EITHER_ERA).map(|row| (row, self.modern(row.2)));
        for ((status, code, twists), request) in modern.chain(legacy) {
            let (got, answer, headers) = ask(self.house, &request).await;
            let error = answer["error"]["code"].as_i64();
            let has = |name: &str| headers.iter().any(|(it, _)| it.starts_with(name));
            if got != *status
                || (code.is_some() && error != *code)
                // What could not be read has no id that could be told.
                || (error == Some(-32700) && !answer["id"].is_null())
                || answer.get("result").is_some()
                || has("access-control-")
                || has("mcp-session-id")
                || ran()
            {
                let request = String::from_utf8_lossy(&request[..request.len().min(120)]);
                wrong.push(format!("{twists:?}: {got}, not {status}: {answer}; {request}"));
            }
        }
        wrong
    }

    fn twisted(&self, guest: &Guest, body: &str, twists: &[Twist]) -> Vec<u8> {
        let message: Value = serde_json::from_str(MODERN).expect("the call is JSON");
        let mut line = "POST /mcp".to_owned();
        let mut headers = guest.headers(&message);
        headers.insert(0, ("Host".to_owned(), self.house.to_string()));
        let mut body = body.as_bytes().to_vec();
        let swap = |body: Vec<u8>, from: &str, to: &str| {
            let text = String::from_utf8(body).expect("the body is text");
            assert!(text.contains(from), "{from} is not in {text}");
            text.replacen(from, to, 1).into_bytes()
        };
        for twist in twists {
            match *twist {
                Asks(it) => line = it.to_owned(),
                Set(name, value) => {
                    let at = headers.iter().position(|it| it.0 == name);
                    headers[at.expect("there is such a header")].1 = value.to_owned();
                }
                Add(name, value) => headers.push((name.to_owned(), value.to_owned())),
                Drop(name) => headers.retain(|it| it.0 != name),
                Body(text) => body = text.as_bytes().to_vec(),
                Bytes(bytes) => body = bytes.to_vec(),
                Swap(from, to) => body = swap(body, from, to),
                Tail(text) => body.extend(text.as_bytes()),
                Deep(from, to, open, close) => {
                    let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
                    body = swap(body, from, &to.replace('@', &deep));
                }
                Recode(how) => {
                    body = how(std::str::from_utf8(&body).expect("the body is text"));
                }
            }
        }
        let mut head = format!("{line} HTTP/1.1\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !line.starts_with("GET") && !line.starts_with("DELETE") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        } else {
            body.clear();
        }
        head.push_str("Connection: close\r\n\r\n");
        let session = self.guest.session.as_deref().unwrap_or_default();
        let head = head.replace("$HOST", &self.house.to_string()).replace("$SESSION", session);
        [head.into_bytes(), body].concat()
    }
}

/// The status, what the body says, and the headers.
pub async fn ask(house: SocketAddr, request: &[u8]) -> (u16, Value, Vec<(String, String)>) {
    let mut line = Line::to(house).await;
    line.send(request).await;
    let head = line.head().await;
    let body = if head.is_events() {
        line.message().await.map(|it| it.1).unwrap_or_default()
    } else {
        serde_json::from_slice(&line.body().await).unwrap_or_default()
    };
    (head.status, body, head.headers)
}
