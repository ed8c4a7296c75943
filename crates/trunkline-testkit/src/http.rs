//! A socket ⇄ HTTP/1.1, as bare as tests need it: what is sent goes out as it stands, what comes is
//! taken apart. [`Guest`] adds what a proper client of a revision would say.
//!
//! It shares nothing with the project's own client, so that both ends cannot share a mistake. It
//! panics where a test would fail.

pub mod bad;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trunkline_wire::method::Method;
use trunkline_wire::revision::{Era, Revision};

use crate::oracle::{self, Side};
use crate::peer::{PATIENCE, everything};

/// One connection.
pub struct Line {
    stream: TcpStream,
    /// Bytes that came and were not looked at.
    raw: Vec<u8>,
    rest: Rest,
    /// The part of a body that belongs to no event yet.
    text: Vec<u8>,
    /// Blocks of a stream that were no events.
    pub comments: usize,
}

/// How much of a body is still to come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rest {
    Nothing,
    Bytes(usize),
    Chunks,
    UntilTheEnd,
}

/// The first half of a response.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its status.
    pub status: u16,
    /// Its headers, their names in lower case.
    pub headers: Vec<(String, String)>,
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Its name; `message` if it has none.
    pub event: Option<String>,
    /// Its id.
    pub id: Option<String>,
    /// After how many milliseconds to come back.
    pub retry: Option<u64>,
    /// What it says.
    pub data: String,
}

impl Line {
    /// Connects.
    pub async fn to(address: SocketAddr) -> Self {
        Self::try_to(address).await.expect("the server listens")
    }

    /// Connects to a server that may be gone.
    pub async fn try_to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true).expect("this is a socket");
        let (raw, text) = Default::default();
        Ok(Self { stream, raw, rest: Rest::Nothing, text, comments: 0 })
    }

    /// Sends bytes as they are. A server that has hung up is no failure: its answer decides.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = timeout(PATIENCE, self.stream.write_all(bytes.as_ref())).await;
        let _ = sent.expect("the server reads");
    }

    /// Says that nothing more comes; what the server still sends can be read.
    pub async fn finish(&mut self) {
        // A server that is gone already need not be told.
        let _ = self.stream.shutdown().await;
    }

    /// The head of the next response; `None` if the server hung up instead.
    pub async fn try_head(&mut self) -> Option<Head> {
        let end = loop {
            match find(&self.raw, b"\r\n\r\n") {
                Some(at) => break at,
                None if self.read().await => {}
                None => return None,
            }
        };
        let text = String::from_utf8(self.raw.drain(..end + 4).collect()).expect("heads are text");
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().and_then(|it| it.split(' ').nth(1)?.parse().ok());
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').expect("a header has a colon");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        let head = Head {
            status: status.unwrap_or_else(|| panic!("This is no head: {text}")),
            headers: headers.collect(),
        };
        self.text.clear();
        self.rest = match (head.get("transfer-encoding"), head.get("content-length")) {
            _ if matches!(head.status, 100..200 | 204 | 304) => Rest::Nothing,
            (Some(coding), length) => {
                assert_eq!((coding, length), ("chunked", None), "one length, and one we know");
                Rest::Chunks
            }
            (None, Some(length)) => Rest::Bytes(length.parse().expect("a length is a number")),
            (None, None) => Rest::UntilTheEnd,
        };
        Some(head)
    }

    /// [`Self::try_head`] for a server that may take its time.
    pub async fn slow_head(&mut self, patience: Duration) -> Option<Head> {
        let patience = patience.saturating_sub(PATIENCE);
        if self.raw.is_empty() {
            let _ = timeout(patience, self.stream.readable()).await;
        }
        self.try_head().await
    }

    /// The head of the next response.
    pub async fn head(&mut self) -> Head {
        self.try_head().await.expect("the server answers")
    }

    /// What is left of the body.
    pub async fn body(&mut self) -> Vec<u8> {
        let mut body = std::mem::take(&mut self.text);
        while let Some(piece) = self.piece().await {
            body.extend(piece);
        }
        if let Rest::Bytes(left) = self.rest {
            panic!("{left} bytes of the body are missing");
        }
        body
    }

    /// What is left of the body; `None` if the server hung up before its end.
    pub async fn try_body(&mut self) -> Option<Vec<u8>> {
        let mut body = std::mem::take(&mut self.text);
        while let Some(piece) = self.piece().await {
            body.extend(piece);
        }
        matches!(self.rest, Rest::Nothing | Rest::UntilTheEnd).then_some(body)
    }

    /// The body as JSON.
    pub async fn json(&mut self) -> Value {
        let body = self.body().await;
        serde_json::from_slice(&body)
            .unwrap_or_else(|why| panic!("not JSON ({why}): {}", String::from_utf8_lossy(&body)))
    }

    /// The next event; `None` at the end of the stream, whole or cut. Comments are passed over.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            while let Some(at) = find(&self.text, b"\n\n") {
                let block: Vec<u8> = self.text.drain(..at + 2).collect();
                let event = Event::read(std::str::from_utf8(&block).expect("events are UTF-8"));
                if event != Event::default() {
                    return Some(event);
                }
                self.comments += 1;
            }
            let piece = self.piece().await?;
            self.text.extend(piece);
        }
    }

    /// The next event that says something.
    pub async fn message(&mut self) -> Option<(Event, Value)> {
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                let message = serde_json::from_str(&event.data).expect("events hold messages");
                return Some((event, message));
            }
        }
    }

    /// [`Self::message`] of a stream that may be silent for as long as it likes.
    pub async fn quiet_message(&mut self) -> Option<(Event, Value)> {
        if self.raw.is_empty() && find(&self.text, b"\n\n").is_none() {
            let _ = self.stream.readable().await;
        }
        self.message().await
    }

    /// Waits until the server hangs up, and returns what it said before.
    pub async fn hung_up(&mut self) -> Vec<u8> {
        while self.read().await {}
        std::mem::take(&mut self.raw)
    }

    /// The next piece of a body; `None` at its end.
    async fn piece(&mut self) -> Option<Vec<u8>> {
        match self.rest {
            Rest::Nothing => None,
            Rest::Bytes(0) => {
                self.rest = Rest::Nothing;
                None
            }
            Rest::Bytes(left) => {
                if self.raw.is_empty() && !self.read().await {
                    return None;
                }
                let length = left.min(self.raw.len());
                self.rest = Rest::Bytes(left - length);
                Some(self.raw.drain(..length).collect())
            }
            Rest::UntilTheEnd => {
                if self.raw.is_empty() && !self.read().await {
                    return None;
                }
                Some(std::mem::take(&mut self.raw))
            }
            Rest::Chunks => {
                let at = loop {
                    match find(&self.raw, b"\r\n") {
                        Some(at) => break at,
                        None if self.read().await => {}
                        None => return None,
                    }
                };
                let size = std::str::from_utf8(&self.raw[..at]).ok();
                let size = size.and_then(|it| usize::from_str_radix(it, 16).ok());
                let size = size.expect("a chunk has a size");
                while self.raw.len() < at + 2 + size + 2 {
                    if !self.read().await {
                        return None;
                    }
                }
                let piece = self.raw.drain(..at + 2 + size + 2).skip(at + 2).take(size).collect();
                if size == 0 {
                    self.rest = Rest::Nothing;
                    return None;
                }
                Some(piece)
            }
        }
    }

    /// Reads something; `false` if the server has hung up.
    async fn read(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.raw)).await;
        read.expect("something comes in time").is_ok_and(|count| count > 0)
    }
}

impl Head {
    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| &**value)
    }

    /// Whether the body is a stream of events.
    pub fn is_events(&self) -> bool {
        self.get("content-type") == Some("text/event-stream")
    }
}

impl Event {
    fn read(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => event.event = Some(value.to_owned()),
                "id" => event.id = Some(value.to_owned()),
                "retry" => event.retry = Some(value.parse().expect("`retry` is a number")),
                "data" => event.data.push_str(value),
                "" => {}
                other => panic!("There is no field `{other}` in {block:?}."),
            }
        }
        event
    }
}

/// The text of a request. `Content-Length` is added where there is a body, `Host` always.
pub fn request(
    address: SocketAddr,
    line: &str,
    headers: &[(impl AsRef<str>, impl AsRef<str>)],
    body: &str,
) -> Vec<u8> {
    let mut text = format!("{line} HTTP/1.1\r\nHost: {address}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{}: {}\r\n", name.as_ref(), value.as_ref()));
    }
    if line.starts_with("POST") {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// A client of one revision, with its session if that has any. Each message gets a connection of
/// its own.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Where the server is.
    pub address: SocketAddr,
    /// Its revision.
    pub revision: Revision,
    /// Its session.
    pub session: Option<String>,
    /// What it can do.
    pub capabilities: Value,
    /// What else it says in every `_meta`.
    pub meta: Map<String, Value>,
    /// The id of its last request.
    pub last_id: i64,
}

/// How a POST was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The head.
    pub head: Head,
    /// Messages that came first.
    pub before: Vec<Value>,
    /// The response itself; `null` if none came.
    pub message: Value,
}

impl Guest {
    /// A client that has said nothing yet.
    pub fn new(address: SocketAddr, revision: Revision) -> Self {
        let capabilities = everything(revision);
        Self { address, revision, session: None, capabilities, meta: Map::new(), last_id: 0 }
    }

    /// A client past its handshake.
    pub async fn open(address: SocketAddr, revision: Revision) -> Self {
        let mut guest = Self::new(address, revision);
        guest.shake_hands().await;
        guest
    }

    /// Opens a session, if its revision has them.
    pub async fn shake_hands(&mut self) {
        if self.revision.era() == Era::Stateless {
            self.expect("server/discover", json!({})).await;
            return;
        }
        let answer = self.call("initialize", self.hello()).await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        assert_eq!(answer.message["result"]["protocolVersion"], self.revision.as_str());
        self.session = answer.head.get("mcp-session-id").map(str::to_owned);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&initialized).await.1.status, 202);
    }

    /// The parameters of `initialize`.
    pub fn hello(&self) -> Value {
        json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": { "name": "guest", "version": "1" },
        })
    }

    /// The next request.
    pub fn prepare(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.revision.era() == Era::Stateless {
            let own = params.as_object_mut().expect("parameters are an object");
            crate::peer::envelop(own, "guest", self.revision, &self.capabilities, &self.meta);
        }
        json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params })
    }

    /// The headers that go with a message.
    pub fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![
            own("Content-Type", "application/json"),
            own("Accept", "application/json, text/event-stream"),
        ];
        let method = message["method"].as_str().unwrap_or_default();
        if self.revision.era() == Era::Stateless {
            headers.push(own("MCP-Protocol-Version", self.revision.as_str()));
            headers.push(own("Mcp-Method", method));
            let name = Method::of(method).and_then(trunkline_wire::header::name_member);
            if let Some(name) = name.and_then(|it| message["params"][it].as_str()) {
                headers.push(own("Mcp-Name", name));
            }
        } else if method != "initialize" {
            headers.extend(self.session_headers());
        }
        headers
    }

    /// The text of a POST of `message`.
    pub fn text(&self, message: &Value) -> Vec<u8> {
        request(self.address, "POST /mcp", &self.headers(message), &message.to_string())
    }

    /// Posts a message over a connection of its own, and reads the head of the answer.
    pub async fn post(&self, message: &Value) -> (Line, Head) {
        let mut line = Line::to(self.address).await;
        line.send(self.text(message)).await;
        let head = line.head().await;
        (line, head)
    }

    /// Posts a request and waits for its response, which must be one that the schema allows.
    pub async fn call(&mut self, method: &str, params: Value) -> Answer {
        let message = self.prepare(method, params);
        let (mut line, head) = self.post(&message).await;
        self.answer(&message, &mut line, head).await
    }

    /// Reads the answer to a request whose head has come.
    pub async fn answer(&self, asked: &Value, line: &mut Line, head: Head) -> Answer {
        let (mut before, mut response) = (Vec::new(), Value::Null);
        if head.is_events() {
            while let Some((_, message)) = line.message().await {
                self.judge(&message, asked);
                assert_eq!(response, Value::Null, "nothing follows the response: {message}");
                match message.get("method") {
                    Some(_) => before.push(message),
                    None => response = message,
                }
            }
        } else {
            response = line.json().await;
            self.judge(&response, asked);
        }
        Answer { head, before, message: response }
    }

    /// [`Self::call`] for a method that must succeed.
    pub async fn expect(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).await;
        assert_eq!(answer.head.status, 200, "`{method}`: {answer:?}");
        let result = answer.message.get("result");
        result.unwrap_or_else(|| panic!("`{method}` failed: {answer:?}")).clone()
    }

    /// Calls a tool, and returns its first text.
    pub async fn tool(&mut self, name: &str, arguments: Value) -> String {
        let params = json!({ "name": name, "arguments": arguments });
        let result = self.expect("tools/call", params).await;
        let text = result["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("`{name}` says nothing: {result}")).to_owned()
    }

    /// Asks for the session's stream, or for the rest of one.
    pub async fn get(&self, last_event: Option<&str>) -> (Line, Head) {
        let mut headers = self.session_headers();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        if let Some(id) = last_event {
            headers.push(("Last-Event-ID".to_owned(), id.to_owned()));
        }
        let mut line = Line::to(self.address).await;
        line.send(request(self.address, "GET /mcp", &headers, "")).await;
        let head = line.head().await;
        (line, head)
    }

    /// Ends the session.
    pub async fn delete(&self) -> Head {
        let mut line = Line::to(self.address).await;
        line.send(request(self.address, "DELETE /mcp", &self.session_headers(), "")).await;
        line.head().await
    }

    /// Panics unless the schema allows a message of the server.
    pub fn judge(&self, message: &Value, asked: &Value) {
        let method = asked["method"].as_str();
        oracle::validate(&message.to_string(), self.revision, Side::Server, method)
            .unwrap_or_else(|why| panic!("{why}"));
    }

    /// The headers that name its session and revision.
    pub fn session_headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if self.revision >= Revision::V2025_06_18 {
            let version = self.revision.as_str().to_owned();
            headers.push(("MCP-Protocol-Version".to_owned(), version));
        }
        if let Some(session) = &self.session {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        headers
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|it| it == needle)
}
