//! A scripted server, one message at a time.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use trunkline::client::{Client, ClientBuilder, Responder};
use trunkline::{Revision, transport::memory};

pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
}

/// All server capabilities.
pub(crate) fn everything() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "logging": {},
        "completions": {},
        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    })
}

/// Two ends, the near one for `connect_io`.
pub(crate) fn pair() -> (memory::End, Peer) {
    let (near, (reader, out)) = memory::pair();
    (near, Peer { lines: BufReader::new(reader).lines(), out })
}

/// A client and its server, past the handshake in `revision`.
pub(crate) async fn open<H: Responder>(
    builder: ClientBuilder<H>,
    revision: Revision,
) -> (Client, Peer) {
    let ((reader, writer), mut peer) = pair();
    let handshake = async {
        match revision {
            Revision::V2026_07_28 => peer.discover().await,
            _ => peer.initialize(revision).await,
        }
    };
    let connecting = builder.protocol(revision).connect_io(reader, writer);
    let (client, ()) = tokio::join!(connecting, handshake);
    (client.expect("the scripted server shakes hands"), peer)
}

impl Peer {
    /// The next message; `None` once the client has disconnected.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.expect("the pair does not fail")?;
        Some(serde_json::from_str(&line).expect("clients write JSON"))
    }

    /// The next message, which must be of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await.unwrap_or_else(|| panic!("`{method}` did not come"));
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).await.expect("the client reads");
    }

    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    pub(crate) async fn fail(&mut self, request: &Value, code: i64) {
        let error = json!({ "code": code, "message": "No." });
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    }

    /// Fails the next message, which must be of this method.
    pub(crate) async fn refuse(&mut self, method: &str, code: i64) -> Value {
        let request = self.expect(method).await;
        self.fail(&request, code).await;
        request
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    pub(crate) async fn discover(&mut self) {
        let request = self.expect("server/discover").await;
        self.reply(&request, discovered(&["2026-07-28"])).await;
    }

    pub(crate) async fn initialize(&mut self, revision: Revision) {
        let request = self.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], revision.as_str());
        self.reply(
            &request,
            json!({
                "protocolVersion": revision.as_str(),
                "capabilities": everything(),
                "serverInfo": { "name": "scripted", "version": "1" },
                "instructions": "Follow the script.",
            }),
        )
        .await;
        self.expect("notifications/initialized").await;
    }
}

pub(crate) fn discovered(revisions: &[&str]) -> Value {
    json!({
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "supportedVersions": revisions,
        "capabilities": everything(),
        "instructions": "Follow the script.",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" } },
    })
}

/// One revision of each era.
pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A client that answers nothing.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1")
}

/// A log of events, in order.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}
