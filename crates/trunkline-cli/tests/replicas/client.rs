//! A client that lives with what happens when replicas come and go: it says how each call ended, answers
//! questions, and resumes streams that were cut.
//!
//! Every request goes to the next of its addresses: the balancer, or the replicas in turn.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline::Revision;
use trunkline_testkit::http::{Event, Guest, Head, Line, request};

use crate::figures::{Figures, Told};

/// A client of one revision, with its session if that has any.
pub(crate) struct Caller {
    pub(crate) guest: Guest,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) figures: Figures,
    /// After how many events it hangs up, if it does; then it resumes the stream.
    pub(crate) cuts_after: Option<usize>,
    /// The progress of its last call, in the order in which it came.
    pub(crate) progress: Vec<u64>,
    name: String,
    token: &'static str,
    turn: usize,
    /// Where its last call began.
    began_at: Option<SocketAddr>,
    calls: u64,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// With its response.
    Answer(Value),
    /// With a status instead of a response.
    Status(u16, String),
    /// The connection broke, and nothing was said by which the stream could be resumed.
    Cut,
    /// The session is gone.
    Lost,
    /// Nothing came in time.
    Silence,
}

impl Caller {
    /// A client that has said nothing yet. Its name makes its arguments unique.
    pub(crate) fn new(
        name: impl Into<String>,
        token: &'static str,
        revision: Revision,
        addresses: &[SocketAddr],
    ) -> Self {
        let (figures, progress) = Default::default();
        let guest = Guest::new(addresses[0], revision);
        let (name, addresses) = (name.into(), addresses.to_vec());
        let (cuts_after, began_at, turn, calls) = Default::default();
        Self { guest, addresses, figures, cuts_after, progress, name, token, turn, began_at, calls }
    }

    /// Opens its session, if its revision has any. Panics unless that succeeds.
    pub(crate) async fn open(self) -> Self {
        self.open_within(Duration::ZERO).await
    }

    /// [`Self::open`] of replicas that may refuse new sessions for a while.
    pub(crate) async fn open_within(mut self, limit: Duration) -> Self {
        if self.is_stateless() {
            return self;
        }
        let since = Instant::now();
        let hello = self.guest.prepare("initialize", self.guest.hello());
        let (line, head) = loop {
            match self.post(&hello).await {
                Some((line, head)) if head.status == 200 => break (line, head),
                refused => {
                    let head = refused.map(|it| it.1);
                    assert!(since.elapsed() < limit, "`initialize` is answered with {head:?}");
                }
            }
            pause().await;
        };
        self.guest.session = head.get("mcp-session-id").map(str::to_owned);
        assert!(self.guest.session.is_some(), "{head:?}");
        let Ended::Answer(answer) = self.read(&hello, line, head).await else {
            panic!("`initialize` is not answered")
        };
        assert_eq!(answer["result"]["protocolVersion"], self.guest.revision.as_str(), "{answer}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.tell(&initialized).await, Some(202), "a replica knows the session");
        self.figures.add("sessions");
        self
    }

    /// How many requests it has sent.
    pub(crate) fn turn(&self) -> usize {
        self.turn
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.guest.revision == Revision::V2026_07_28
    }

    /// An argument that nobody else uses.
    pub(crate) fn unique(&mut self) -> String {
        self.calls += 1;
        format!("{}-{}", self.name, self.calls)
    }

    /// Calls a tool and waits for the end, over questions and cuts. A question is answered with `answer`.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value, answer: &str) -> Ended {
        self.figures.add("calls");
        let calling = Box::pin(self.call_in_rounds(tool, arguments, answer));
        match tokio::time::timeout(PATIENCE, calling).await {
            Ok(ended) => ended,
            Err(_) => Ended::Silence,
        }
    }

    async fn call_in_rounds(&mut self, tool: &str, arguments: Value, answer: &str) -> Ended {
        let mut params = json!({ "name": tool, "arguments": arguments });
        self.progress.clear();
        if tool.ends_with(".progress") {
            params["_meta"] = json!({ "progressToken": answer });
        }
        loop {
            let ended = self.request("tools/call", params.clone(), answer).await;
            let Ended::Answer(message) = &ended else { return ended };
            let Some(next) = self.next_round(&message["result"], &params, answer) else {
                return ended;
            };
            params = next;
        }
    }

    /// The parameters that answer the questions of a result, if it asks any (2026-07-28).
    pub(crate) fn next_round(
        &mut self,
        result: &Value,
        params: &Value,
        answer: &str,
    ) -> Option<Value> {
        let questions = result["inputRequests"].as_object()?;
        let mut next = params.clone();
        next["requestState"] = result["requestState"].clone();
        for (key, question) in questions {
            self.figures.add("questions");
            next["inputResponses"][key] = reply(question, answer);
        }
        Some(next)
    }

    /// Sends a request and reads on until its response.
    pub(crate) async fn request(&mut self, method: &str, params: Value, answer: &str) -> Ended {
        let asked = self.guest.prepare(method, params);
        let answered = self.post(&asked).await;
        self.began_at = Some(self.last_address());
        match answered {
            None => Ended::Cut,
            Some((line, head)) if head.is_events() => self.follow(&asked, line, answer).await,
            Some((line, head)) => self.read(&asked, line, head).await,
        }
    }

    async fn read(&mut self, asked: &Value, mut line: Line, head: Head) -> Ended {
        if head.is_events() {
            return Box::pin(self.follow(asked, line, "")).await;
        }
        let Some(body) = line.try_body().await else { return Ended::Cut };
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        if message["id"] == asked["id"] && !message["id"].is_null() {
            return Ended::Answer(message);
        }
        if head.status == 404 && self.guest.session.is_some() {
            return Ended::Lost;
        }
        Ended::Status(head.status, String::from_utf8_lossy(&body).trim().to_owned())
    }

    /// Reads a stream until the response, and resumes it where it is cut.
    async fn follow(&mut self, asked: &Value, mut line: Line, answer: &str) -> Ended {
        let (mut last, mut seen) = (None, HashSet::new());
        loop {
            let mut events = 0;
            while let Some(event) = line.event().await {
                events += 1;
                if let Some(id) = &event.id {
                    if !seen.insert(id.clone()) {
                        self.figures.add("doubled events");
                    }
                    last = Some(id.clone());
                }
                if let Some(message) = self.hear(asked, &event, answer).await {
                    return Ended::Answer(message);
                }
                if self.cuts_after.is_some_and(|most| events >= most && last.is_some()) {
                    break;
                }
            }
            drop(line);
            let Some(last) = &last else { return Ended::Cut };
            match self.resume(last).await {
                Ok(again) => line = again,
                Err(ended) => return ended,
            }
        }
    }

    /// Takes an event; the message if it is the response.
    async fn hear(&mut self, asked: &Value, event: &Event, answer: &str) -> Option<Value> {
        if event.data.is_empty() {
            return None;
        }
        let message: Value = serde_json::from_str(&event.data).expect("events hold messages");
        match (message.get("method"), message.get("id")) {
            (Some(_), Some(id)) => {
                self.figures.add("questions");
                let mut response = json!({ "jsonrpc": "2.0", "id": id });
                response["result"] = reply(&message, answer);
                self.tell_surely(&response).await;
            }
            (Some(method), None) => {
                if method == "notifications/progress" {
                    let params = &message["params"];
                    if params["progressToken"] != answer {
                        self.figures.add("crossed answers");
                    }
                    self.progress.extend(params["progress"].as_u64());
                }
            }
            (None, _) if message["id"] == asked["id"] => return Some(message),
            (None, _) => self.figures.add("crossed answers"),
        }
        None
    }

    /// The rest of a stream, from whichever replica.
    async fn resume(&mut self, last: &str) -> Result<Line, Ended> {
        let mut headers = self.guest.session_headers();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        headers.push(("Last-Event-ID".to_owned(), last.to_owned()));
        headers.push(self.authorization());
        loop {
            let address = self.next_address();
            let text = request(address, "GET /mcp", &headers, "");
            match self.exchange(address, text).await {
                Some((line, head)) if head.is_events() => {
                    self.figures.add("resumptions");
                    if self.began_at.is_some_and(|it| it != address) {
                        self.figures.add("resumptions at another replica");
                    }
                    return Ok(line);
                }
                Some((_, head)) if head.status == 404 => return Err(Ended::Lost),
                Some((_, head)) if head.status >= 500 => {
                    self.figures.add(format!("resumptions put off, HTTP {}", head.status));
                }
                Some((_, head)) => {
                    return Err(Ended::Status(head.status, "a resumption is refused".to_owned()));
                }
                None => self.figures.add("resumptions put off, cut"),
            }
            pause().await;
        }
    }

    /// Sends a message that has no response; the status that came.
    pub(crate) async fn tell(&mut self, message: &Value) -> Option<u16> {
        let (_, head) = self.post(message).await?;
        Some(head.status)
    }

    /// [`Self::tell`] until somebody takes it.
    async fn tell_surely(&mut self, message: &Value) {
        loop {
            match self.tell(message).await {
                Some(202) => return,
                Some(status) if status < 500 => {
                    return self.figures.add(format!("answers refused, HTTP {status}"));
                }
                Some(status) => self.figures.add(format!("answers put off, HTTP {status}")),
                None => self.figures.add("answers put off, cut"),
            }
            pause().await;
        }
    }

    /// Posts a message to the next address; `None` if the connection breaks before the head of the answer.
    async fn post(&mut self, message: &Value) -> Option<(Line, Head)> {
        let mut headers = self.guest.headers(message);
        headers.push(self.authorization());
        let address = self.next_address();
        let text = request(address, "POST /mcp", &headers, &message.to_string());
        self.exchange(address, text).await
    }

    async fn exchange(&mut self, address: SocketAddr, text: Vec<u8>) -> Option<(Line, Head)> {
        let mut line = Line::try_to(address).await.ok()?;
        line.send(text).await;
        let head = line.try_head().await?;
        Some((line, head))
    }

    fn authorization(&self) -> (String, String) {
        ("Authorization".to_owned(), format!("Bearer {}", self.token))
    }

    fn next_address(&mut self) -> SocketAddr {
        self.turn += 1;
        self.last_address()
    }

    fn last_address(&self) -> SocketAddr {
        self.addresses[self.turn % self.addresses.len()]
    }
}

/// What a caller was told of a call whose answer must be `text`, and a word for what went wrong.
pub(crate) fn judge(ended: &Ended, text: &str) -> (Told, Option<String>) {
    let message = match ended {
        Ended::Answer(message) => message,
        // The id of its last event says what the stream owed, whatever its owner kept.
        Ended::Status(204, _) => {
            return (
                Told::Unknown,
                Some("error, a resumed stream ended without the answer".into()),
            );
        }
        Ended::Status(status, _) => return (Told::Unknown, Some(format!("error HTTP {status}"))),
        Ended::Cut => return (Told::Unknown, Some("error cut".to_owned())),
        Ended::Lost => return (Told::Unknown, Some("lost sessions".to_owned())),
        Ended::Silence => return (Told::Unknown, Some("unanswered calls".to_owned())),
    };
    let error = &message["error"];
    if let Some(code) = error["code"].as_i64() {
        let reason = error["data"]["reason"].as_str().unwrap_or("without a reason");
        let told = if error["data"]["done"] == "no" { Told::NotDone } else { Told::Unknown };
        return (told, Some(format!("error {code} {reason}")));
    }
    let result = &message["result"];
    let said = result["content"][0]["text"].as_str().unwrap_or_default();
    match said.contains(text) {
        true => (Told::Done, None),
        false if result["isError"] == true => {
            (Told::Unknown, Some(format!("error of a tool: {said}")))
        }
        false => (Told::Unknown, Some("crossed answers".to_owned())),
    }
}

/// The answer to a question: a form's, or a model's.
fn reply(question: &Value, answer: &str) -> Value {
    match question["method"].as_str() {
        Some("elicitation/create") => {
            let wanted = &question["params"]["requestedSchema"]["properties"];
            let names = wanted.as_object().into_iter().flatten();
            let content: serde_json::Map<String, Value> = names
                .map(|(name, schema)| {
                    let value = match schema["type"].as_str() {
                        Some("boolean") => json!(true),
                        _ => json!(answer),
                    };
                    (name.clone(), value)
                })
                .collect();
            json!({ "action": "accept", "content": content })
        }
        Some("sampling/createMessage") => json!({
            "role": "assistant", "model": "none",
            "content": { "type": "text", "text": answer },
        }),
        _ => json!({ "roots": [] }),
    }
}

/// Between two attempts of a client that was refused.
pub(crate) async fn pause() {
    // the sleep is the subject: a client that comes back later
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Calls `echo` until it is answered, and says how long that took; `None` if the session is lost or the limit
/// passes.
pub(crate) async fn answered(caller: &mut Caller, tool: &str, limit: Duration) -> Option<Duration> {
    let since = Instant::now();
    while since.elapsed() < limit {
        let text = caller.unique();
        let ended = caller.call(tool, json!({ "text": text }), &text).await;
        match judge(&ended, &text) {
            (Told::Done, _) => return Some(since.elapsed()),
            _ if ended == Ended::Lost => return None,
            _ => pause().await,
        }
    }
    None
}

/// No call takes longer, whatever happens to replicas.
const PATIENCE: Duration = Duration::from_secs(40);
