//! An address → the bytes of requests to it, and one exchange at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::response::Response;
use crate::calls::{Calls, HANDSHAKE_ID, Revision};

/// Where the server is reached.
pub struct Endpoint {
    address: String,
    path: String,
}

impl Endpoint {
    pub fn new(address: String) -> Endpoint {
        Endpoint { address, path: "/mcp".into() }
    }

    /// The same server at another path.
    pub fn at(self, path: &str) -> Endpoint {
        Endpoint { path: path.into(), ..self }
    }

    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    pub fn connect(&self) -> Result<Connection, String> {
        let stream = TcpStream::connect(&self.address).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        let stream =
            stream.map_err(|error| format!("`{}` cannot be reached: {error}.", self.address))?;
        Ok(Connection { stream, host: self.address.clone(), path: self.path.clone() })
    }
}

impl Endpoint {
    /// A session on a connection of its own, with a GET stream open.
    pub fn stream(&self, calls: &Calls) -> Result<Connection, String> {
        let mut own = self.connect()?;
        let session = own.greet(calls)?.ok_or(NO_SESSION)?;
        let request = own.about("GET", &session);
        let (response, _) = own.open(&request)?;
        match response.status == 200 && response.is_stream {
            true => Ok(own),
            false => Err(format!("it answered GET with {}.", response.status)),
        }
    }
}

/// A connection that is kept alive.
pub struct Connection {
    pub stream: TcpStream,
    host: String,
    path: String,
}

impl Connection {
    /// The handshake of the revision: its session, if it gives one.
    pub fn greet(&mut self, calls: &Calls) -> Result<Option<String>, String> {
        let hello = calls.hello();
        let method = match calls.revision {
            Revision::V2025_11_25 => "initialize",
            Revision::V2026_07_28 => "server/discover",
        };
        let head = self.post(calls.revision, method, None, None, hello.as_bytes());
        let (response, bytes) = self.exchange(&head)?;
        let mut is_accepted = false;
        response.messages(&bytes, |message| {
            let message: Value = serde_json::from_slice(message)
                .map_err(|error| format!("it sent a message that is no JSON: {error}."))?;
            is_accepted |= message["id"] == HANDSHAKE_ID && calls.accepts(&message);
            Ok(())
        })?;
        if response.status != 200 || !is_accepted {
            let shown = String::from_utf8_lossy(&bytes);
            return Err(format!(
                "it does not speak {}; it answered {shown}",
                calls.revision.name()
            ));
        }
        let session = response.header(&bytes, SESSION).map(str::to_owned);
        if let Some(ready) = calls.ready() {
            let notification = "notifications/initialized";
            let request =
                self.post(calls.revision, notification, None, session.as_deref(), ready.as_bytes());
            let (response, _) = self.exchange(&request)?;
            if response.status != 202 {
                return Err(format!("it answered `{notification}` with {}.", response.status));
            }
        }
        Ok(session)
    }

    /// A POST of one message with every header its revision asks for.
    pub fn post(
        &self,
        revision: Revision,
        method: &str,
        name: Option<&str>,
        session: Option<&str>,
        body: &[u8],
    ) -> Vec<u8> {
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            self.path, self.host
        );
        if method != "initialize" {
            head += &format!("MCP-Protocol-Version: {}\r\n", revision.name());
        }
        if revision == Revision::V2026_07_28 {
            head += &format!("Mcp-Method: {method}\r\n");
            if let Some(name) = name {
                head += &format!("Mcp-Name: {name}\r\n");
            }
        }
        if let Some(session) = session {
            head += &format!("Mcp-Session-Id: {session}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        request
    }

    /// A request without a body about a session.
    pub fn about(&self, method: &str, session: &str) -> Vec<u8> {
        format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: {}\r\nMcp-Session-Id: {session}\r\n\r\n",
            self.path,
            self.host,
            Revision::V2025_11_25.name()
        )
        .into_bytes()
    }

    /// Sends a request and waits for all of the response.
    pub fn exchange(&mut self, request: &[u8]) -> Result<(Response, Vec<u8>), String> {
        self.receive(request, |response, bytes| response.advance(bytes))
    }

    /// Sends a request and waits for the head of the response, which goes on.
    pub fn open(&mut self, request: &[u8]) -> Result<(Response, Vec<u8>), String> {
        self.receive(request, |response, bytes| Ok(response.advance(bytes)? || response.has_head()))
    }

    /// Sends a call and waits until it asks.
    pub fn question(&mut self, request: &[u8]) -> Result<(), String> {
        let asks = |bytes: &[u8]| memchr::memmem::find(bytes, b"elicitation/create").is_some();
        let is_asked = |response: &mut Response, bytes: &[u8]| {
            Ok(response.advance(bytes)? || (response.has_head() && asks(bytes)))
        };
        match self.receive(request, is_asked)? {
            (_, bytes) if asks(&bytes) => Ok(()),
            (_, bytes) => {
                Err(format!("it asked nothing; it answered {}", String::from_utf8_lossy(&bytes)))
            }
        }
    }

    fn receive(
        &mut self,
        request: &[u8],
        is_enough: impl Fn(&mut Response, &[u8]) -> Result<bool, String>,
    ) -> Result<(Response, Vec<u8>), String> {
        self.stream
            .write_all(request)
            .map_err(|error| format!("the connection cannot be written: {error}."))?;
        let mut response = Response::default();
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        while !is_enough(&mut response, &bytes)? {
            let read = self.stream.read(&mut part);
            match read.map_err(|error| format!("the connection cannot be read: {error}."))? {
                0 => return Err("it closed the connection.".into()),
                count => bytes.extend_from_slice(&part[..count]),
            }
        }
        Ok((response, bytes))
    }
}

pub const NO_SESSION: &str = "it gave no session.";
const SESSION: &str = "mcp-session-id";
/// Longer than any answer outside a measurement takes.
const PATIENCE: Duration = Duration::from_secs(30);
