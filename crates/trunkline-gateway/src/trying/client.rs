//! A client of any revision for one call: what the gateway says → what is sent, and what the operator is told. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use trunkline_wire::model::meta;
use trunkline_wire::revision::{Era, Revision};

/// What happens next.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// A line for the gateway.
    Send(String),
    /// An event for the operator: its name and its data. `done` is the last.
    Tell(&'static str, Value),
}

/// A client that makes one call.
pub(super) struct TryClient {
    revision: Revision,
    info: Value,
    method: String,
    params: Map<String, Value>,
    /// The id of the last request.
    id: u64,
    is_open: bool,
    /// The questions that are not answered: in the stateful era with the ids of their requests.
    questions: BTreeMap<String, Value>,
    /// How many requests of the gateway there were.
    asked: u32,
    /// The answers of this round, in the stateless era.
    answers: Map<String, Value>,
    state: Option<Value>,
}

impl TryClient {
    /// `id` is the version that the client claims to have, by which its call is found.
    pub(super) fn new(
        revision: Revision,
        id: &str,
        method: &str,
        params: Map<String, Value>,
    ) -> Self {
        Self {
            revision,
            info: json!({ "name": NAME, "version": id }),
            method: method.to_owned(),
            params,
            id: 0,
            is_open: false,
            questions: BTreeMap::new(),
            asked: 0,
            answers: Map::new(),
            state: None,
        }
    }

    /// Opens the conversation, or makes the call where there is nothing to open.
    pub(super) fn begin(&mut self) -> Vec<Act> {
        match self.revision.era() {
            Era::Stateless => {
                self.is_open = true;
                vec![self.call()]
            }
            Era::Stateful => {
                self.id += 1;
                vec![send(&json!({
                    "jsonrpc": "2.0", "id": self.id, "method": "initialize",
                    "params": {
                        "protocolVersion": self.revision.as_str(),
                        "capabilities": capabilities(),
                        "clientInfo": self.info,
                    },
                }))]
            }
        }
    }

    /// The gateway says something.
    pub(super) fn hear(&mut self, line: &str) -> Vec<Act> {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("ping"), Some(id)) => {
                vec![send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }))]
            }
            (Some(method), Some(id)) => {
                self.asked += 1;
                let name = format!("r{}", self.asked);
                let told = json!({ "id": name, "method": method, "params": message["params"] });
                self.questions.insert(name, id.clone());
                vec![Act::Tell("question", told)]
            }
            (Some("notifications/progress"), None) => {
                vec![Act::Tell("progress", message["params"].clone())]
            }
            (Some("notifications/message"), None) => {
                vec![Act::Tell("log", message["params"].clone())]
            }
            (Some("notifications/tasks/status" | "notifications/tasks"), None) => {
                vec![Act::Tell("task", message["params"].clone())]
            }
            (None, Some(id)) if *id == json!(self.id) => self.answered(message),
            _ => Vec::new(),
        }
    }

    /// The operator answers a question.
    pub(super) fn answer(&mut self, question: &str, result: Value) -> Vec<Act> {
        let Some(id) = self.questions.remove(question) else { return Vec::new() };
        if self.revision.era() == Era::Stateful {
            return vec![send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))];
        }
        self.answers.insert(question.to_owned(), result);
        match self.questions.is_empty() {
            true => vec![self.call()],
            false => Vec::new(),
        }
    }

    /// The call ends without an answer.
    pub(super) fn ended(&self, why: &str) -> Act {
        Act::Tell("done", json!({ "error": { "code": -32000, "message": why } }))
    }

    fn answered(&mut self, mut message: Value) -> Vec<Act> {
        if let Some(error) = message.get("error") {
            return vec![Act::Tell("done", json!({ "error": error }))];
        }
        if !self.is_open {
            self.is_open = true;
            let heard = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            return vec![send(&heard), self.call()];
        }
        let mut result = message["result"].take();
        if result["resultType"] != "input_required" {
            return vec![Act::Tell("done", json!({ "result": result }))];
        }
        self.state = result.get_mut("requestState").map(Value::take);
        let Value::Object(asked) = result["inputRequests"].take() else {
            // There is nothing to answer: the call goes on as it is.
            return vec![self.call()];
        };
        if asked.is_empty() {
            return vec![self.call()];
        }
        let tell = |(name, question): (String, Value)| {
            self.questions.insert(name.clone(), Value::Null);
            let (method, params) = (&question["method"], &question["params"]);
            Act::Tell("question", json!({ "id": name, "method": method, "params": params }))
        };
        asked.into_iter().map(tell).collect()
    }

    /// The call, or its next round.
    fn call(&mut self) -> Act {
        self.id += 1;
        let mut params = self.params.clone();
        let given = params.remove("_meta");
        let mut envelope = match given {
            Some(Value::Object(given)) => given,
            _ => Map::new(),
        };
        if !self.method.ends_with("/list") {
            envelope.entry(meta::PROGRESS_TOKEN).or_insert_with(|| json!(PROGRESS));
        }
        if self.revision.era() == Era::Stateless {
            envelope.insert(meta::PROTOCOL_VERSION.to_owned(), json!(self.revision.as_str()));
            envelope.insert(meta::CLIENT_CAPABILITIES.to_owned(), capabilities());
            envelope.insert(meta::CLIENT_INFO.to_owned(), self.info.clone());
            envelope.entry(meta::LOG_LEVEL).or_insert_with(|| json!("debug"));
            if !self.answers.is_empty() {
                let answers = std::mem::take(&mut self.answers);
                params.insert("inputResponses".to_owned(), Value::Object(answers));
            }
            params.extend(self.state.take().map(|it| ("requestState".to_owned(), it)));
        }
        if !envelope.is_empty() {
            params.insert("_meta".to_owned(), Value::Object(envelope));
        }
        send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": self.method, "params": params }))
    }
}

fn send(message: &Value) -> Act {
    Act::Send(message.to_string())
}

/// A person answers everything.
fn capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// The name of the client.
pub(crate) const NAME: &str = "trunkline-console";
const PROGRESS: &str = "try";

#[cfg(test)]
mod tests {
    use super::*;

    fn client(revision: Revision) -> TryClient {
        let params = json!({ "name": "push", "arguments": { "a": 1 } });
        let Value::Object(params) = params else { unreachable!("it is an object") };
        TryClient::new(revision, "t1", "tools/call", params)
    }

    fn sent(acts: &[Act], place: usize) -> Value {
        match &acts[place] {
            Act::Send(line) => serde_json::from_str(line).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_old_revision_is_opened_and_asks_by_requests() {
        let mut client = client(Revision::V2025_06_18);
        let hello = sent(&client.begin(), 0);
        assert_eq!(hello["params"]["protocolVersion"], "2025-06-18");
        assert_eq!(hello["params"]["clientInfo"]["version"], "t1");
        let acts =
            client.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
        assert_eq!(sent(&acts, 0)["method"], "notifications/initialized");
        let call = sent(&acts, 1);
        assert_eq!((&call["id"], &call["params"]["arguments"]["a"]), (&json!(2), &json!(1)));
        let acts = client
            .hear(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#);
        assert_eq!(acts, [Act::Tell("progress", json!({ "progress": 1 }))]);
        let acts = client.hear(
            r#"{"jsonrpc":"2.0","id":"s7","method":"elicitation/create","params":{"message":"?"}}"#,
        );
        let asked =
            json!({ "id": "r1", "method": "elicitation/create", "params": { "message": "?" } });
        assert_eq!(acts, [Act::Tell("question", asked)]);
        assert_eq!(client.answer("r9", json!({})), [], "nobody asked that");
        let acts = client.answer("r1", json!({ "action": "accept" }));
        assert_eq!(
            sent(&acts, 0),
            json!({ "jsonrpc": "2.0", "id": "s7", "result": { "action": "accept" } })
        );
        let acts = client.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
        assert_eq!(acts, [Act::Tell("done", json!({ "result": { "content": [] } }))]);
    }

    #[test]
    fn the_new_revision_asks_by_results_and_goes_on_with_all_answers() {
        let mut client = client(Revision::V2026_07_28);
        let call = sent(&client.begin(), 0);
        assert_eq!(call["params"]["_meta"][meta::PROTOCOL_VERSION], "2026-07-28");
        let acts = client.hear(
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s",
                "inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{}}}}}"#,
        );
        assert_eq!(acts.len(), 2);
        assert_eq!(client.answer("a", json!({ "roots": [] })), []);
        let acts = client.answer("b", json!({ "action": "decline" }));
        let again = sent(&acts, 0);
        assert_eq!((&again["id"], &again["params"]["requestState"]), (&json!(2), &json!("s")));
        assert_eq!(
            again["params"]["inputResponses"],
            json!({ "a": { "roots": [] }, "b": { "action": "decline" } })
        );
        let acts = client.hear(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"No."}}"#);
        assert_eq!(acts, [Act::Tell("done", json!({ "error": { "code": -1, "message": "No." } }))]);
    }

    #[test]
    fn a_handshake_that_fails_is_the_end() {
        let mut client = client(Revision::V2024_11_05);
        client.begin();
        let acts =
            client.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-2,"message":"Never."}}"#);
        assert_eq!(
            acts,
            [Act::Tell("done", json!({ "error": { "code": -2, "message": "Never." } }))]
        );
        let lost = client.hear("no JSON");
        assert_eq!(lost, []);
    }
}
