//! Questions to the client: a request of ours, or an answer that asks and a second call.

use std::sync::mpsc;

use serde_json::{Value, json};

use crate::out::{self, error, failed, text};
use crate::process::{CAPABILITIES, Server};

/// Asks what the tool `kind` asks, and answers the call with what came back.
pub(crate) fn ask(server: &Server, kind: &str, params: &Value) -> Result<Value, Value> {
    let (capability, method, question) = match kind {
        "ask" => ("elicitation", "elicitation/create", form(server)),
        "sample" => ("sampling", "sampling/createMessage", prompt()),
        _ => ("roots", "roots/list", json!({})),
    };
    if server.is_stateless() && server.options.also.is_some() {
        return Ok(failed("There is no session to ask in."));
    }
    if server.is_stateless() {
        return round(Some(capability), method, question, params);
    }
    let can = server.state().capabilities[capability].is_object();
    if !can || (kind == "ask" && server.revision() < "2025-06-18") {
        return Ok(failed(&format!("This client has no {capability}.")));
    }
    let (_, answer) = put(server, method, question);
    let answer = answer.recv().map_err(|_| error(-32603, "Nobody answers any more"))?;
    Ok(match answer.get("error") {
        Some(error) => failed(&error.to_string()),
        None => text(&answer["result"].to_string()),
    })
}

/// Puts a question; its id, and where its answer comes.
pub(crate) fn put(server: &Server, method: &str, question: Value) -> (u64, mpsc::Receiver<Value>) {
    let (sender, answer) = mpsc::channel();
    let id = {
        let mut state = server.state();
        state.next_ask += 1;
        let id = state.next_ask;
        state.asked.insert(id, sender);
        id
    };
    server.journal.write("asked", json!({ "id": id, "method": method }));
    out::send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": question }));
    (id, answer)
}

/// Asks a client that has roots for them, and keeps what it says.
pub(crate) fn keep_roots(server: &Server) {
    if server.is_stateless() || !server.state().capabilities["roots"].is_object() {
        return;
    }
    let (id, _) = put(server, "roots/list", json!({}));
    server.state().keeps = Some(id);
}

/// One round of 2026-07-28: the question, or what its answer was. Without a capability, whoever calls is asked.
pub(crate) fn round(
    capability: Option<&str>,
    method: &str,
    question: Value,
    params: &Value,
) -> Result<Value, Value> {
    let answer = &params["inputResponses"]["question"];
    if answer.is_object() {
        let is_ours = params["requestState"] == STATE;
        return if is_ours {
            Ok(text(&answer.to_string()))
        } else {
            Err(error(-32602, "The request state is not the one given out"))
        };
    }
    let declared = &params["_meta"][CAPABILITIES];
    if let Some(capability) = capability.filter(|it| !declared[it].is_object()) {
        let mut refusal = error(-32021, "Missing required client capability");
        refusal["data"] = json!({ "requiredCapabilities": { capability: {} } });
        return Err(refusal);
    }
    let question = json!({ "question": { "method": method, "params": question } });
    let mut asks = json!({ "resultType": "input_required", "inputRequests": question });
    asks["requestState"] = STATE.into();
    Ok(asks)
}

fn form(server: &Server) -> Value {
    form_about(server, "What is it?")
}

/// A form with one answer to a question.
pub(crate) fn form_about(server: &Server, question: &str) -> Value {
    let answer = json!({ "type": "string" });
    let schema =
        json!({ "type": "object", "properties": { "answer": answer }, "required": ["answer"] });
    let mut form = json!({ "message": question, "requestedSchema": schema });
    if server.revision() > "2025-06-18" {
        form["mode"] = "form".into();
    }
    form
}

fn prompt() -> Value {
    let content = json!({ "type": "text", "text": "Say something." });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 10 })
}

const STATE: &str = "the state of the fake server";
