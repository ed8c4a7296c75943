//! Calls of `gossip`: a server that talks about its caller, also when somebody else calls.
//!
//! Whatever is said names the caller by the call's `text`. What `after` lists is said when the next call
//! arrives at this process, whoever makes it, and before that call is handled.

use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::ask;
use crate::out::{self, text};
use crate::process::{Left, Server};

/// Does what `during` lists, and leaves what `after` lists.
pub(crate) fn call(server: &Arc<Server>, params: &Value) -> Result<Value, Value> {
    let arguments = &params["arguments"];
    let own = arguments["text"].as_str().unwrap_or_default();
    let token = &params["_meta"]["progressToken"];
    let words = |name: &str| -> Vec<String> {
        let words = arguments[name].as_array().into_iter().flatten();
        words.filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let does = |word: &str| words("during").iter().any(|it| it == word);
    // Whoever insists asks those who cannot be asked, too.
    if server.is_stateless() && (does("ask") || does("insist")) {
        let question = ask::form_about(server, own);
        let capability = Some("elicitation").filter(|_| !does("insist"));
        let round = ask::round(capability, "elicitation/create", question, params)?;
        if round["resultType"] == "input_required" {
            return Ok(round);
        }
    }
    if does("fail") {
        return Err(out::error(-32000, own));
    }
    let mut said = Vec::new();
    for word in words("during") {
        said.extend(say(server, &word, own, token));
    }
    if does("flood") {
        server.journal.write("flooded", json!({ "text": own }));
    }
    let after = words("after");
    if !after.is_empty() {
        let left = Left { text: own.to_owned(), token: token.clone(), what: after };
        server.state().left.push(left);
    }
    Ok(text(&format!("{own}: {}", said.join(", "))))
}

/// Says what earlier calls have left to be said. Waits for the answers to its questions.
pub(crate) fn haunt(server: &Server) {
    let all = std::mem::take(&mut server.state().left);
    for left in all {
        for word in &left.what {
            let answer = say(server, word, &left.text, &left.token);
            let fields = json!({ "text": left.text, "what": word, "answer": answer });
            server.journal.write("haunted", fields);
        }
    }
}

/// Says one thing; what was answered, if it was a question.
fn say(server: &Server, word: &str, own: &str, token: &Value) -> Option<String> {
    match word {
        "log" => {
            out::notify("notifications/message", json!({ "level": "warning", "data": own }));
            None
        }
        "progress" => {
            let told = json!({ "progressToken": token, "progress": 1, "message": own });
            if !token.is_null() {
                out::notify("notifications/progress", told);
            }
            None
        }
        "stderr" => {
            let _ = writeln!(io::stderr(), "{own}");
            None
        }
        "flood" => {
            let data = format!("{own} {}", "x".repeat(1 << 20));
            out::notify("notifications/message", json!({ "level": "warning", "data": data }));
            None
        }
        "list" => {
            server.tools_changed();
            None
        }
        "update" => {
            server.resource_updated(&format!("fake://{}/one", server.options.name));
            None
        }
        "complete" => {
            let told = json!({ "elicitationId": own });
            out::notify("notifications/elicitation/complete", told);
            None
        }
        // It may not come to the journal before the process is gone.
        "crash" => server.journal.exit(1),
        "ask" if !server.is_stateless() => {
            Some(ask(server, "elicitation/create", ask::form_about(server, own)))
        }
        "roots" if !server.is_stateless() => Some(ask(server, "roots/list", json!({}))),
        "sample" if !server.is_stateless() => {
            let content = json!({ "type": "text", "text": own });
            let messages = json!([{ "role": "user", "content": content }]);
            let params = json!({ "messages": messages, "maxTokens": 10 });
            Some(ask(server, "sampling/createMessage", params))
        }
        _ => None,
    }
}

fn ask(server: &Server, method: &str, params: Value) -> String {
    let answer = ask::put(server, method, params).1.recv().unwrap_or_default();
    let part = if answer["error"].is_object() { &answer["error"] } else { &answer["result"] };
    part.to_string()
}
