//! Calls → POSTs on one hyper connection for each task, with serde_json and nothing around them.

use std::borrow::Cow;
use std::process::ExitCode;

use client_loop::{Caller, Mode, Options};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

fn main() -> ExitCode {
    client_loop::main(connect)
}

async fn connect(options: Options) -> Result<Vec<Connection>, String> {
    let mut connections = Vec::new();
    for _ in 0..options.tasks {
        connections.push(Connection::open(&options).await?);
    }
    Ok(connections)
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    path: String,
    headers: HeaderMap,
    meta: Option<Box<RawValue>>,
    id: u64,
}

impl Connection {
    async fn open(options: &Options) -> Result<Connection, String> {
        let url: hyper::Uri = options.url.parse().map_err(say)?;
        let host = url.authority().ok_or("The URL names no host.")?.as_str();
        let stream = tokio::net::TcpStream::connect(host).await.map_err(say)?;
        stream.set_nodelay(true).map_err(say)?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(say)?;
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().map_err(say)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let path = url.path().to_owned();
        let mut connection = Connection { sender, path, headers, meta: None, id: 0 };
        match options.mode {
            Mode::Session => connection.initialize().await?,
            Mode::Stateless | Mode::Shared => connection.stateless()?,
        }
        Ok(connection)
    }

    async fn initialize(&mut self) -> Result<(), String> {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info()},
        });
        let (head, _) = self.post(hello.to_string().into()).await?;
        let session = head.get("mcp-session-id").ok_or("The server gave no session.")?.clone();
        self.headers.insert("mcp-session-id", session);
        self.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post(ready.to_string().into()).await.map(drop)
    }

    fn stateless(&mut self) -> Result<(), String> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.meta = Some(RawValue::from_string(meta.to_string()).map_err(say)?);
        self.headers.insert("mcp-protocol-version", HeaderValue::from_static("2026-07-28"));
        self.headers.insert("mcp-method", HeaderValue::from_static("tools/call"));
        self.headers.insert("mcp-name", HeaderValue::from_static("echo"));
        Ok(())
    }

    async fn post(&mut self, body: Bytes) -> Result<(HeaderMap, Bytes), String> {
        let mut request = hyper::Request::post(&*self.path).body(Full::new(body)).map_err(say)?;
        *request.headers_mut() = self.headers.clone();
        let response = self.sender.send_request(request).await.map_err(say)?;
        if !response.status().is_success() {
            return Err(format!("The server answered {}.", response.status()));
        }
        let (head, body) = response.into_parts();
        Ok((head.headers, body.collect().await.map_err(say)?.to_bytes()))
    }
}

impl Caller for Connection {
    async fn call(&mut self, text: &str) -> Result<(), String> {
        self.id += 1;
        let params =
            Params { name: "echo", arguments: Arguments { text }, meta: self.meta.as_deref() };
        let call = Call { jsonrpc: "2.0", id: self.id, method: "tools/call", params };
        let (_, body) = self.post(serde_json::to_vec(&call).map_err(say)?.into()).await?;
        let answer: Answer = serde_json::from_slice(&body).map_err(say)?;
        match answer.result.content.as_slice() {
            [content] if answer.id == self.id && content.text == text => Ok(()),
            _ => Err("The server did not echo the text.".into()),
        }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'a str,
    id: u64,
    method: &'a str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    arguments: Arguments<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Arguments<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: Outcome<'a>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    content: Vec<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

fn client_info() -> serde_json::Value {
    json!({"name": "trunkline-bench", "version": env!("CARGO_PKG_VERSION")})
}

fn say(error: impl std::fmt::Display) -> String {
    format!("The call failed: {error}.")
}
