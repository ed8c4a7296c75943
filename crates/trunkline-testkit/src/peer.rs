//! A byte stream → a client that does what its test says, in any revision and framing, and judges
//! every message it gets by the revision's schema.
//!
//! It is written apart from the project's own client and decoder, so that both ends cannot share a
//! mistake. It panics where a test would fail.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::time::timeout;
use trunkline_wire::frame::Framing;
use trunkline_wire::model::meta;
use trunkline_wire::revision::{Era, Revision};

use crate::oracle::{self, Side};

/// No message is waited for longer than this. Generous: build machines are slow and busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Answers a question of the server: its method and parameters → a result, or an error object.
pub type Host = Box<dyn FnMut(&str, &Value) -> Result<Value, Value> + Send>;

/// A scripted client.
pub struct Peer {
    reader: Box<dyn AsyncBufRead + Send + Unpin>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    framing: Framing,
    revision: Revision,
    next_id: i64,
    /// What was asked, by id: responses are judged by it.
    asked: HashMap<String, String>,
    /// Responses that came while another was waited for.
    early: Vec<Value>,
    /// What requests of the newest revision say about the client.
    pub capabilities: Value,
    /// What else each request of the newest revision says in `_meta`, the log level say.
    pub meta: Map<String, Value>,
    /// Who answers the server's questions.
    pub host: Host,
    /// The server's side of the handshake.
    pub opened: Value,
    /// Every message that came, in order.
    pub heard: Vec<Value>,
    /// The questions that came, those of one round together.
    pub rounds: Vec<Vec<String>>,
}

impl Peer {
    /// A peer that has said nothing yet.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        framing: Framing,
        revision: Revision,
    ) -> Self {
        Self {
            reader: Box::new(BufReader::with_capacity(1 << 16, reader)),
            writer: Some(Box::new(writer)),
            framing,
            revision,
            next_id: 0,
            asked: HashMap::new(),
            early: Vec::new(),
            capabilities: everything(revision),
            meta: Map::new(),
            host: Box::new(helpful),
            opened: Value::Null,
            heard: Vec::new(),
            rounds: Vec::new(),
        }
    }

    /// The revision it speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether it speaks the newest revision, which knows no sessions.
    pub fn is_stateless(&self) -> bool {
        self.revision.era() == Era::Stateless
    }

    /// Shakes hands as its revision has it.
    pub async fn open(&mut self) {
        if self.is_stateless() {
            self.opened = self.expect("server/discover", json!({})).await;
            return;
        }
        let params = json!({
            "protocolVersion": self.revision.as_str(),
            "capabilities": self.capabilities,
            "clientInfo": { "name": "peer", "version": "1" },
        });
        self.opened = self.expect("initialize", params).await;
        assert_eq!(self.opened["protocolVersion"], self.revision.as_str());
        self.notify("notifications/initialized", Value::Null).await;
    }

    /// Sends some text as one message, sense or nonsense.
    pub async fn send_text(&mut self, text: &str) {
        let bytes = match self.framing {
            Framing::Newline => format!("{text}\n"),
            Framing::ContentLength => format!("Content-Length: {}\r\n\r\n{text}", text.len()),
        };
        self.send_bytes(bytes.as_bytes()).await;
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().expect("the peer has hung up");
        let written = timeout(PATIENCE, async {
            writer.write_all(bytes).await?;
            writer.flush().await
        });
        written.await.expect("the server reads").expect("the server is there");
    }

    /// Sends a message that must be a proper one.
    pub async fn send(&mut self, message: &Value, in_answer_to: Option<&str>) {
        let text = message.to_string();
        oracle::validate(&text, self.revision, Side::Client, in_answer_to)
            .unwrap_or_else(|why| panic!("The test itself is wrong: {why}"));
        self.remember(message);
        self.send_text(&text).await;
    }

    /// Sends a request and returns its id.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let message = self.prepare(method, params);
        self.send(&message, None).await;
        message["id"].clone()
    }

    /// The next request, not sent; its answer is expected from now on.
    pub fn prepare(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let params = self.enveloped(params);
        let message =
            json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        self.remember(&message);
        message
    }

    /// Notes a request that is sent by other means.
    pub fn remember(&mut self, request: &Value) {
        if let (Some(id), Some(method)) = (request.get("id"), request["method"].as_str()) {
            self.asked.insert(id.to_string(), method.to_owned());
        }
    }

    /// Sends a notification; `null` for no parameters.
    pub async fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            message["params"] = params;
        }
        self.send(&message, None).await;
    }

    /// Gives up a request.
    pub async fn cancel(&mut self, id: &Value) {
        self.notify("notifications/cancelled", json!({ "requestId": id })).await;
    }

    /// The next message as it was written, unvalidated.
    pub async fn next_text(&mut self) -> String {
        let text = timeout(PATIENCE, self.read()).await.expect("a message comes in time");
        text.expect("the server is still there")
    }

    /// The next message, `None` if the server has hung up. It must be one the schema allows.
    pub async fn try_next(&mut self) -> Option<Value> {
        let text = timeout(PATIENCE, self.read()).await.expect("a message comes in time")?;
        let message: Value = serde_json::from_str(&text)
            .unwrap_or_else(|err| panic!("This is not JSON ({err}): {text}"));
        for part in message.as_array().unwrap_or(&vec![message.clone()]) {
            let answered = part.get("id").and_then(|id| self.asked.get(&id.to_string()));
            oracle::validate(
                &part.to_string(),
                self.revision,
                Side::Server,
                answered.map(|it| &**it),
            )
            .unwrap_or_else(|why| panic!("{why}"));
        }
        if message.is_array() {
            oracle::validate_batch(&text, self.revision).unwrap_or_else(|why| panic!("{why}"));
        }
        self.heard.push(message.clone());
        Some(message)
    }

    /// The next message.
    pub async fn next(&mut self) -> Value {
        self.try_next().await.expect("the server is still there")
    }

    /// The response to a request. Questions that come first are answered.
    pub async fn answer_to(&mut self, id: &Value) -> Result<Value, Value> {
        if let Some(at) = self.early.iter().position(|it| it["id"] == *id) {
            return outcome(self.early.swap_remove(at));
        }
        loop {
            let message = self.next().await;
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), Some(_)) => {
                    let method = method.to_owned();
                    self.rounds.push(vec![question(&method, &message["params"])]);
                    self.answer(&message, &method).await;
                }
                (Some(_), None) => {}
                (None, Some(other)) if other == id => return outcome(message),
                (None, _) => self.early.push(message),
            }
        }
    }

    /// Calls a method, answers every question on the way, and returns the result.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let mut round = Map::new();
        loop {
            let mut params = params.clone();
            for (name, value) in std::mem::take(&mut round) {
                params[name] = value;
            }
            let id = self.request(method, params).await;
            let result = self.answer_to(&id).await?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            round = self.answer_round(&result);
        }
    }

    /// [`Self::call`] for a method that must succeed.
    pub async fn expect(&mut self, method: &str, params: Value) -> Value {
        let outcome = self.call(method, params).await;
        outcome.unwrap_or_else(|error| panic!("`{method}` failed in {}: {error}", self.revision))
    }

    /// [`Self::call`] for a method that must fail; returns the error's code.
    pub async fn refused(&mut self, method: &str, params: Value) -> i64 {
        match self.call(method, params).await {
            Ok(result) => panic!("`{method}` succeeded in {}: {result}", self.revision),
            Err(error) => error["code"].as_i64().expect("codes are numbers"),
        }
    }

    /// Like [`Self::call`] for a request that the schema would not let pass.
    pub async fn call_unchecked(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let request = self.prepare(method, params);
        self.send_text(&request.to_string()).await;
        self.answer_to(&request["id"]).await
    }

    /// Calls a tool, which must not be a protocol error.
    pub async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.expect("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// What to add to the parameters after questions came back: the answers and the state.
    pub fn answer_round(&mut self, required: &Value) -> Map<String, Value> {
        let mut round = Map::new();
        if let Some(state) = required.get("requestState") {
            round.insert("requestState".to_owned(), state.clone());
        }
        let mut answers = Map::new();
        let mut questions = Vec::new();
        for (key, asked) in required["inputRequests"].as_object().into_iter().flatten() {
            let method = asked["method"].as_str().expect("a question has a method");
            questions.push(question(method, &asked["params"]));
            let answer = (self.host)(method, &asked["params"]);
            answers.insert(key.clone(), answer.expect("a round cannot carry an error"));
        }
        self.rounds.push(questions);
        round.insert("inputResponses".to_owned(), answers.into());
        round
    }

    /// Says no more; what the server still sends can be read.
    pub async fn hang_up(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            // Half of an in-memory stream does not end by being dropped; a server that is gone
            // already need not be told.
            let _ = writer.shutdown().await;
        }
    }

    /// Puts the envelope of the newest revision around parameters.
    pub fn enveloped(&self, params: Value) -> Value {
        let mut params = match params {
            Value::Object(object) => object,
            Value::Null => Map::new(),
            other => return other,
        };
        if self.is_stateless() {
            envelop(&mut params, "peer", self.revision, &self.capabilities, &self.meta);
        }
        params.into()
    }

    async fn answer(&mut self, request: &Value, method: &str) {
        let mut response = json!({ "jsonrpc": "2.0", "id": request["id"] });
        match (self.host)(method, &request["params"]) {
            Ok(result) => response["result"] = result,
            Err(error) => response["error"] = error,
        }
        self.send(&response, Some(method)).await;
    }

    async fn read(&mut self) -> Option<String> {
        let read = match self.framing {
            Framing::Newline => self.read_line().await,
            Framing::ContentLength => self.read_block().await,
        };
        read.expect("the stream does not fail")
    }

    async fn read_line(&mut self) -> std::io::Result<Option<String>> {
        let mut line = String::new();
        if self.reader.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        assert_eq!(line.pop(), Some('\n'), "a message ends with its line: {line}");
        Ok(Some(line))
    }

    async fn read_block(&mut self) -> std::io::Result<Option<String>> {
        let mut header = String::new();
        if self.reader.read_line(&mut header).await? == 0 {
            return Ok(None);
        }
        let length = header.strip_prefix("Content-Length: ").and_then(|it| it.strip_suffix("\r\n"));
        let length = length.and_then(|it| it.parse().ok());
        let length: usize = length.unwrap_or_else(|| panic!("This is no header: {header:?}"));
        let mut body = vec![0; length + 2];
        self.reader.read_exact(&mut body).await?;
        assert_eq!(&body[..2], b"\r\n", "one header is enough");
        Ok(Some(String::from_utf8(body.split_off(2)).expect("messages are UTF-8")))
    }
}

/// Every capability that a client of `revision` can have, as far as servers may ask for it.
pub fn everything(revision: Revision) -> Value {
    let mut capabilities = json!({ "sampling": {}, "roots": {} });
    if revision >= Revision::V2025_06_18 {
        capabilities["elicitation"] = json!({});
    }
    if revision >= Revision::V2025_11_25 {
        capabilities["elicitation"] = json!({ "form": {}, "url": {} });
        capabilities["sampling"] = json!({ "tools": {} });
    }
    capabilities
}

/// Answers every question with a default: the user is Ada and agrees to everything.
pub fn helpful(method: &str, params: &Value) -> Result<Value, Value> {
    Ok(match method {
        "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
        "elicitation/create" => {
            let schema = &params["requestedSchema"];
            let content = schema["required"].as_array().into_iter().flatten().map(|name| {
                let name = name.as_str().expect("names are texts").to_owned();
                let value = match schema["properties"][&name]["type"].as_str() {
                    Some("boolean") => json!(true),
                    Some("string") => json!("Ada"),
                    _ => json!(1),
                };
                (name, value)
            });
            json!({ "action": "accept", "content": content.collect::<Map<_, _>>() })
        }
        "sampling/createMessage" => json!({
            "role": "assistant",
            "content": { "type": "text", "text": "forty-two" },
            "model": "oracle-1",
            "stopReason": "endTurn",
        }),
        "roots/list" => json!({ "roots": [
            { "uri": "file:///home/ada", "name": "home" },
            { "uri": "file:///srv" },
        ] }),
        "ping" => json!({}),
        _ => return Err(json!({ "code": -32601, "message": "The peer has no such method." })),
    })
}

/// The same message without what differs from run to run.
pub fn masked(message: &Value) -> Value {
    const VARIES: [&str; 5] =
        ["requestState", "taskId", "createdAt", "lastUpdatedAt", "elicitationId"];
    match message {
        Value::Object(object) => {
            let mask = |(name, value): (&String, &Value)| {
                let value = if VARIES.contains(&&**name) { json!("*") } else { masked(value) };
                (name.clone(), value)
            };
            Value::Object(object.iter().map(mask).collect())
        }
        Value::Array(items) => items.iter().map(masked).collect(),
        other => other.clone(),
    }
}

fn outcome(response: Value) -> Result<Value, Value> {
    match response.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(response["result"].clone()),
    }
}

/// What is asked, in a word or in the server's own.
fn question(method: &str, params: &Value) -> String {
    params["message"].as_str().unwrap_or(method).to_owned()
}

/// Puts the envelope of the newest revision into parameters: who calls, what it can, and more.
pub(crate) fn envelop(
    params: &mut Map<String, Value>,
    client: &str,
    revision: Revision,
    capabilities: &Value,
    more: &Map<String, Value>,
) {
    let own = params.entry("_meta").or_insert_with(|| json!({}));
    own[meta::PROTOCOL_VERSION] = json!(revision.as_str());
    own[meta::CLIENT_INFO] = json!({ "name": client, "version": "1" });
    own[meta::CLIENT_CAPABILITIES] = capabilities.clone();
    for (name, value) in more {
        own[name] = value.clone();
    }
}
