//! A caller with a token of its own who answers what it is asked, and remembers all that reached it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::AbortHandle;
use trunkline::Revision;
use trunkline_testkit::http::{Guest, Line, request};

/// Somebody who calls.
pub(crate) struct Person {
    pub(crate) name: String,
    guest: Guest,
    received: Arc<Mutex<Vec<String>>>,
    streams: Vec<AbortHandle>,
}

impl Drop for Person {
    fn drop(&mut self) {
        self.streams.iter().for_each(AbortHandle::abort);
    }
}

/// What an answer needs to be sent: a client's place, without its streams.
#[derive(Clone)]
struct Desk {
    name: String,
    guest: Guest,
    received: Arc<Mutex<Vec<String>>>,
}

impl Person {
    /// Shakes hands, and listens to what is said outside of calls.
    pub(crate) async fn open(address: SocketAddr, revision: Revision, name: &str) -> Self {
        Self::introduce(Guest::new(address, revision), name).await
    }

    /// The same for somebody who cannot be asked in a form or on a page.
    pub(crate) async fn open_mute(address: SocketAddr, revision: Revision, name: &str) -> Self {
        let mut guest = Guest::new(address, revision);
        let capabilities = guest.capabilities.as_object_mut().expect("they are an object");
        capabilities.remove("elicitation");
        Self::introduce(guest, name).await
    }

    async fn introduce(guest: Guest, name: &str) -> Self {
        let (revision, received) = (guest.revision, Arc::default());
        let mut this = Self { name: name.to_owned(), guest, received, streams: Vec::new() };
        if revision == Revision::V2026_07_28 {
            return this;
        }
        let hello = this.guest.prepare("initialize", this.guest.hello());
        let (mut line, head) = this.desk().post(&hello).await;
        assert_eq!(head.status, 200, "{name} is let in");
        this.guest.session = head.get("mcp-session-id").map(str::to_owned);
        this.note(&line.json().await);
        this.desk().post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        this.listen().await;
        this
    }

    /// Everything that reached it, as it came.
    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    /// What reached it and names one of these.
    pub(crate) fn received_of<'a>(&self, others: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let others: Vec<_> = others.into_iter().filter(|it| *it != self.name).collect();
        let all = self.received().into_iter();
        all.filter(|text| others.iter().any(|it| text.contains(it))).collect()
    }

    /// Subscribes to a resource.
    pub(crate) async fn subscribe(&mut self, uri: &str) {
        if self.guest.revision == Revision::V2026_07_28 {
            let filter = json!({ "resourceSubscriptions": [uri], "toolsListChanged": true });
            let params = json!({ "notifications": filter });
            let message = self.guest.prepare("subscriptions/listen", params);
            let (mut line, head) = self.desk().post(&message).await;
            assert!(head.is_events(), "{head:?}");
            let first = line.message().await.expect("it is acknowledged").1;
            self.note(&first);
            self.follow(line);
        } else {
            let told = self.ask("resources/subscribe", json!({ "uri": uri })).await;
            assert!(told["result"].is_object(), "{told}");
        }
    }

    /// Calls a tool, answering whatever is asked meanwhile; the response.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = self.params(tool, arguments);
        self.go_on("tools/call", params).await
    }

    /// The same; whoever has to come back with an answer does not.
    pub(crate) async fn call_once(&mut self, tool: &str, arguments: Value) -> Value {
        let params = self.params(tool, arguments);
        self.ask("tools/call", params).await
    }

    /// Calls a tool as a task, and waits for its end.
    pub(crate) async fn task(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params = self.params(tool, arguments);
        if self.guest.revision != Revision::V2026_07_28 {
            params["task"] = json!({});
            let begun = self.ask("tools/call", params).await;
            let Some(id) = begun["result"]["task"]["taskId"].as_str() else { return begun };
            return self.ask("tasks/result", json!({ "taskId": id })).await;
        }
        // This one may become a task, or not: it is looked at until it is over.
        let begun = self.go_on("tools/call", params).await;
        let Some(id) = begun["result"]["taskId"].as_str().map(str::to_owned) else { return begun };
        loop {
            let said = self.ask("tasks/get", json!({ "taskId": id })).await;
            let asked = said["result"]["inputRequests"].as_object().cloned().unwrap_or_default();
            if !asked.is_empty() {
                let answers = asked.into_iter().map(|(id, it)| (id, self.desk().answer(&it)));
                let answers: serde_json::Map<_, _> = answers.collect();
                let params = json!({ "taskId": id, "inputResponses": answers });
                self.ask("tasks/update", params).await;
            }
            match said["result"]["status"].as_str() {
                Some("working" | "input_required") => {
                    // the sleep is the subject: a client that looks again and again
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                _ => return said,
            }
        }
    }

    /// Forgets what reached it.
    pub(crate) fn forget(&mut self) {
        self.received.lock().unwrap().clear();
    }

    fn params(&self, tool: &str, arguments: Value) -> Value {
        let meta = json!({
            "progressToken": format!("token of {}", self.name),
            "io.modelcontextprotocol/logLevel": "debug",
        });
        json!({ "name": tool, "arguments": arguments, "_meta": meta })
    }

    async fn go_on(&mut self, method: &str, mut params: Value) -> Value {
        loop {
            let said = self.ask(method, params.clone()).await;
            if said["result"]["resultType"] != "input_required" {
                return said;
            }
            let asked = said["result"]["inputRequests"].as_object().cloned().unwrap_or_default();
            let answers = asked.into_iter().map(|(id, it)| (id, self.desk().answer(&it)));
            params["inputResponses"] = answers.collect::<serde_json::Map<_, _>>().into();
            params["requestState"] = said["result"]["requestState"].clone();
        }
    }

    /// The same, given up as soon as it was sent.
    pub(crate) async fn give_up(&mut self, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        let message = self.guest.prepare("tools/call", params);
        let mut line = Line::to(self.guest.address).await;
        line.send(self.desk().text(&message)).await;
        if self.guest.revision != Revision::V2026_07_28 {
            let params = json!({ "requestId": message["id"], "reason": "enough" });
            let method = "notifications/cancelled";
            self.desk()
                .post(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
                .await;
        }
    }

    /// Calls a tool and reads nothing of what comes.
    pub(crate) async fn begin(&mut self, tool: &str, arguments: Value) -> Line {
        let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let message = self.guest.prepare("tools/call", params);
        let mut line = Line::to(self.guest.address).await;
        line.send(self.desk().text(&message)).await;
        line
    }

    /// Makes a request; the response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = self.guest.prepare(method, params);
        let desk = self.desk();
        let (mut line, head) = desk.post(&message).await;
        if !head.is_events() {
            let said = line.json().await;
            self.note(&said);
            return said;
        }
        while let Some((_, said)) = line.quiet_message().await {
            desk.take(&said).await;
            if said.get("method").is_none() {
                return said;
            }
        }
        panic!("{} was not answered", self.name)
    }

    async fn listen(&mut self) {
        let mut headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(self.guest.session_headers());
        headers.push(self.desk().token());
        let mut line = Line::to(self.guest.address).await;
        line.send(request(self.guest.address, "GET /mcp", &headers, "")).await;
        let head = line.head().await;
        assert!(head.is_events(), "{head:?}");
        self.follow(line);
    }

    fn follow(&mut self, mut line: Line) {
        let desk = self.desk();
        let task = tokio::spawn(async move {
            while let Some((_, said)) = line.quiet_message().await {
                desk.take(&said).await;
            }
        });
        self.streams.push(task.abort_handle());
    }

    fn note(&self, said: &Value) {
        self.received.lock().unwrap().push(said.to_string());
    }

    fn desk(&self) -> Desk {
        let (name, guest) = (self.name.clone(), self.guest.clone());
        Desk { name, guest, received: Arc::clone(&self.received) }
    }
}

impl Desk {
    /// Notes what came, and answers it if it is a question.
    async fn take(&self, said: &Value) {
        self.received.lock().unwrap().push(said.to_string());
        if said.get("method").is_some() && said.get("id").is_some() {
            let result = self.answer(said);
            self.post(&json!({ "jsonrpc": "2.0", "id": said["id"], "result": result })).await;
        }
    }

    fn answer(&self, question: &Value) -> Value {
        let own = format!("the answer of {}", self.name);
        match question["method"].as_str() {
            Some("roots/list") => json!({ "roots": [{ "uri": format!("file:///{}", self.name) }] }),
            Some("sampling/createMessage") => {
                let content = json!({ "type": "text", "text": own });
                json!({ "role": "assistant", "content": content, "model": "none" })
            }
            _ => json!({ "action": "accept", "content": { "answer": own } }),
        }
    }

    async fn post(&self, message: &Value) -> (Line, trunkline_testkit::http::Head) {
        let mut line = Line::to(self.guest.address).await;
        line.send(self.text(message)).await;
        let head = line.slow_head(PATIENCE).await.expect("the gateway answers");
        (line, head)
    }

    fn text(&self, message: &Value) -> Vec<u8> {
        let mut headers = self.guest.headers(message);
        headers.push(self.token());
        request(self.guest.address, "POST /mcp", &headers, &message.to_string())
    }

    fn token(&self) -> (String, String) {
        ("Authorization".to_owned(), format!("Bearer {}", token(&self.name)))
    }
}

/// How long the gateway may take over anything, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(180);

/// The secret of somebody.
pub(crate) fn token(name: &str) -> String {
    format!("the-long-secret-token-of-{}", name.chars().rev().collect::<String>())
}
