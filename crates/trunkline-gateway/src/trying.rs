//! An operator's own call: made through the gateway as a client of any revision would make it, so that it goes the way
//! of every other call.

mod client;
mod followed_task;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use trunkline_auth::tag::random_name;
use trunkline_wire::code::METHOD_NOT_FOUND;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::revision::Revision;

use crate::gateway::Gateway;
use crate::merge::MISSING;
use crate::selector::Selector;
use crate::traffic;
use client::{Act, TryClient};

/// What an operator tries.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryRequest {
    /// The server; without one, all of them.
    #[serde(default)]
    pub server: Option<String>,
    /// The revision to speak; the newest if it is absent.
    #[serde(default)]
    pub revision: Option<String>,
    /// The method.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// An answer to a question of the call: either a `result` or an `error`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Answered")]
pub struct TryAnswer {
    /// The id of the question.
    pub question: String,
    /// The answer.
    pub outcome: Result<Value, ErrorObject>,
}

/// An answer as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    question: String,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

impl TryFrom<Answered> for TryAnswer {
    type Error = &'static str;

    fn try_from(sent: Answered) -> Result<Self, &'static str> {
        let outcome = match (sent.result, sent.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            _ => return Err("an answer has either a `result` or an `error`"),
        };
        Ok(Self { question: sent.question, outcome })
    }
}

/// The calls that operators try.
#[derive(Default)]
pub(crate) struct Tries(Arc<Mutex<HashMap<String, mpsc::Sender<Told>>>>);

/// What an operator says meanwhile.
enum Told {
    Answer(TryAnswer),
    Cancel,
}

/// Why a call cannot be tried.
pub(crate) enum Refused {
    /// No such revision.
    Revision(String),
    TooMany,
    /// No such call, or it has ended.
    Unknown,
}

impl Tries {
    /// Makes a call. Its events come as they are sent to the operator; dropping the receiver cancels it.
    pub(crate) fn begin(
        &self,
        gateway: &Gateway,
        request: TryRequest,
    ) -> Result<mpsc::Receiver<Vec<u8>>, Refused> {
        let id = random_name();
        let mut client = client(&request, &id)?;
        let (tell, told) = mpsc::channel(QUEUE);
        {
            let mut all = self.lock();
            all.retain(|_, it| !it.is_closed());
            if all.len() >= MOST {
                return Err(Refused::TooMany);
            }
            all.insert(id.clone(), tell);
        }
        let (events, receiver) = mpsc::channel(QUEUE);
        let (gateway, all) = (gateway.clone(), Arc::clone(&self.0));
        let selector = request.server.map_or(Selector::All, Selector::Server);
        tokio::spawn(async move {
            let _ = events.send(event("begun", json!({ "try": id }).to_string())).await;
            let mut talk = Talk::begin(&gateway, selector);
            let is_over = tokio::select! {
                () = talk.run(&mut client, told, &events, &gateway, &id) => true,
                () = events.closed() => false,
            };
            if !is_over {
                talk.leave(&mut client).await;
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
        Ok(receiver)
    }

    /// Answers a question.
    pub(crate) fn answer(&self, id: &str, answer: TryAnswer) -> Result<(), Refused> {
        self.tell(id, Told::Answer(answer))
    }

    /// Cancels a call.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), Refused> {
        self.tell(id, Told::Cancel)
    }

    fn tell(&self, id: &str, told: Told) -> Result<(), Refused> {
        let all = self.lock();
        all.get(id).and_then(|it| it.try_send(told).ok()).ok_or(Refused::Unknown)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::Sender<Told>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a server offers to a client of this revision: every page of every list, and under `errors` why there is no such
/// list, or not all of it.
pub(crate) async fn offers(
    gateway: &Gateway,
    server: &str,
    revision: Option<String>,
) -> Result<Value, Refused> {
    let (mut told, mut errors) = (json!({}), Map::new());
    for (method, list, member) in LISTS {
        let mut all = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let mut params = Map::new();
            params.extend(cursor.take().map(|it| ("cursor".to_owned(), it)));
            let (of, revision) = (Some(server.to_owned()), revision.clone());
            let request = TryRequest { server: of, revision, method: method.to_owned(), params };
            let mut page = ask(gateway, request).await?;
            if let Some(why) = why_not(&page, server) {
                errors.insert(list.to_owned(), Value::from(why));
            }
            if let Value::Array(items) = page["result"][list].take() {
                all.extend(items);
            }
            cursor = Some(page["result"]["nextCursor"].take()).filter(Value::is_string);
            if cursor.is_none() {
                break;
            }
        }
        if cursor.is_some() {
            let why = format!("The list has more than {PAGES} pages; the rest was left out.");
            errors.insert(list.to_owned(), Value::from(why));
        }
        told[member] = Value::Array(all);
    }
    if !errors.is_empty() {
        told["errors"] = Value::Object(errors);
    }
    Ok(told)
}

/// Why a page of a list of this server was not given. That a server has no such list is no failure.
fn why_not(page: &Value, server: &str) -> Option<String> {
    if page["result"].is_object() {
        let missing = &page["result"]["_meta"][MISSING][server];
        return missing.as_str().map(str::to_owned);
    }
    if page["error"]["code"] == METHOD_NOT_FOUND {
        return None;
    }
    let message = page["error"]["message"].as_str().unwrap_or("The conversation has ended.");
    Some(message.to_owned())
}

/// One request and its response; questions are not answered.
async fn ask(gateway: &Gateway, request: TryRequest) -> Result<Value, Refused> {
    let mut client = client(&request, "lists")?;
    let mut talk = Talk::begin(gateway, request.server.map_or(Selector::All, Selector::Server));
    let mut acts = client.begin();
    loop {
        for act in acts {
            match act {
                Act::Send(line) => talk.send(&line).await,
                Act::Tell("done", done) => return Ok(done),
                Act::Tell(..) | Act::Wait(_) => {}
            }
        }
        let Some(line) = talk.line().await else { return Ok(json!({})) };
        acts = client.hear(&line);
    }
}

fn client(request: &TryRequest, id: &str) -> Result<TryClient, Refused> {
    let revision = match &request.revision {
        None => Revision::LATEST,
        Some(text) => text.parse().map_err(|_| Refused::Revision(text.clone()))?,
    };
    Ok(TryClient::new(revision, id, &request.method, request.params.clone()))
}

/// A conversation with the gateway in this process. Dropping it ends it.
struct Talk {
    lines: tokio::io::Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    out: tokio::io::WriteHalf<DuplexStream>,
    _serving: JoinSet<()>,
}

impl Talk {
    fn begin(gateway: &Gateway, selector: Selector) -> Self {
        let (near, far) = duplex(PIPE);
        let (gateway, mut serving) = (gateway.clone(), JoinSet::new());
        serving.spawn(async move {
            let stream = split(far);
            // How it ends is seen at the other end.
            let _ = gateway.serve_stream(selector, stream, std::future::pending()).await;
        });
        let (reader, out) = split(near);
        Self { lines: BufReader::new(reader).lines(), out, _serving: serving }
    }

    async fn send(&mut self, line: &str) {
        // A conversation that is over is noticed by whoever reads from it.
        let _ = self.out.write_all(format!("{line}\n").as_bytes()).await;
    }

    async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.ok().flatten()
    }

    async fn run(
        &mut self,
        client: &mut TryClient,
        mut told: mpsc::Receiver<Told>,
        events: &mpsc::Sender<Vec<u8>>,
        gateway: &Gateway,
        id: &str,
    ) {
        let mut acts = client.begin();
        let mut due = None;
        loop {
            for act in acts {
                match act {
                    Act::Send(line) => self.send(&line).await,
                    Act::Wait(time) => due = Some(Instant::now() + time),
                    Act::Tell("done", mut done) => {
                        done["call"] = json!(gateway.0.traffic.id_of(id));
                        let _ = events.send(event("done", gateway.0.traffic.clean(&done))).await;
                        return;
                    }
                    Act::Tell(name, data) => {
                        let _ = events.send(event(name, gateway.0.traffic.clean(&data))).await;
                    }
                }
            }
            acts = tokio::select! {
                line = self.line() => match line {
                    Some(line) => client.hear(&line),
                    None => vec![client.ended("The conversation has ended.")],
                },
                told = told.recv() => match told {
                    Some(Told::Answer(answer)) => client.answer(&answer.question, answer.outcome),
                    Some(Told::Cancel) => client.cancel(),
                    None => vec![client.ended("The call was cancelled.")],
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = None;
                    client.due()
                }
            };
        }
    }

    /// Cancels the task that the call has become: nobody follows it any more.
    async fn leave(&mut self, client: &mut TryClient) {
        let Some((id, line)) = client.leave() else { return };
        self.send(&line).await;
        let is_answer =
            |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|it| it["id"] == json!(id));
        // The gateway drops what it was told by a conversation that has ended.
        let told = async {
            while let Some(line) = self.line().await {
                if is_answer(&line) {
                    return;
                }
            }
        };
        let _ = timeout(LEAVING, told).await;
    }
}

fn event(name: &str, data: String) -> Vec<u8> {
    let mut out = Vec::new();
    traffic::event(&mut out, name, data);
    out
}

/// The lists of a server: the method, its member in the result, and ours.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "tools"),
    ("prompts/list", "prompts", "prompts"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "templates"),
];
/// The pages of one list.
const PAGES: usize = 64;
/// The calls that are tried at once.
const MOST: usize = 16;
/// The events that wait for an operator.
const QUEUE: usize = 64;
const PIPE: usize = 1 << 16;
/// How long the end of a call that nobody follows may take.
const LEAVING: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_why_it_is_missing_unless_its_server_has_none() {
        let lacks =
            json!({ "tools": [], "_meta": { "trunkline/missing": { "a": "It is starting." } } });
        let none = json!({ "code": -32601, "message": "There is no method `prompts/list` here." });
        for (page, why) in [
            (json!({ "result": { "tools": [] } }), None),
            (json!({ "result": lacks }), Some("It is starting.")),
            (json!({ "error": none }), None),
            (json!({ "error": { "code": -32603, "message": "Too busy." } }), Some("Too busy.")),
            (json!({}), Some("The conversation has ended.")),
        ] {
            assert_eq!(why_not(&page, "a").as_deref(), why, "{page}");
        }
        assert_eq!(why_not(&json!({ "result": lacks }), "b"), None);
    }
}
