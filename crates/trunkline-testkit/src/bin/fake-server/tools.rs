//! Calls of tools into results, some of them late, some never.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Options;
use crate::ask;
use crate::gossip;
use crate::out::{self, error, text};
use crate::process::Server;

/// The tools, from the file if there is one.
pub(crate) fn list(options: &Options) -> Result<Vec<Value>, Value> {
    let Some(path) = &options.tools_file else { return Ok(built_in(options)) };
    let text = std::fs::read_to_string(path).map_err(|fault| error(-32603, &fault.to_string()))?;
    serde_json::from_str(&text).map_err(|fault| error(-32603, &fault.to_string()))
}

/// Does what the tool does; answers now, from a thread later, or never.
pub(crate) fn call(server: &Arc<Server>, id: &Value, params: &Value) {
    if !server.state().left.is_empty() {
        let (server, id, params) = (Arc::clone(server), id.clone(), params.clone());
        thread::spawn(move || {
            gossip::haunt(&server);
            call(&server, &id, &params);
        });
        return;
    }
    let arguments = &params["arguments"];
    let number = |name: &str| arguments[name].as_u64().unwrap_or_default();
    let outcome = match params["name"].as_str().unwrap_or_default() {
        "echo" => Ok(text(arguments["text"].as_str().unwrap_or_default())),
        "pid" => Ok(text(&std::process::id().to_string())),
        "count" => Ok(text(&server.count().to_string())),
        "crash" => server.journal.exit(arguments["code"].as_i64().unwrap_or(1) as i32),
        "hang" => return,
        "env" => {
            let name = arguments["name"].as_str().unwrap_or_default();
            Ok(text(&std::env::var(name).unwrap_or_default()))
        }
        "big" => Ok(text(&"x".repeat(number("bytes") as usize))),
        "kept" => Ok(text(&server.state().roots.clone().unwrap_or_default().to_string())),
        "touch" => {
            server.resource_updated(arguments["uri"].as_str().unwrap_or_default());
            Ok(text("touched"))
        }
        "log" => {
            let data = &arguments["text"];
            out::notify("notifications/message", json!({ "level": "warning", "data": data }));
            Ok(text("logged"))
        }
        "slow" | "progress" | "ask" | "sample" | "roots" | "gossip" => {
            let (server, id, params) = (Arc::clone(server), id.clone(), params.clone());
            thread::spawn(move || {
                let outcome = later(&server, &params);
                server.finish(&id, outcome);
            });
            return;
        }
        name => {
            let all = list(&server.options).unwrap_or_default();
            if all.iter().any(|tool| tool["name"] == name) {
                Ok(text(&format!("{name} {arguments}")))
            } else {
                Err(error(-32602, &format!("Unknown tool: {name}")))
            }
        }
    };
    server.finish(id, outcome);
}

/// What takes time.
fn later(server: &Arc<Server>, params: &Value) -> Result<Value, Value> {
    let arguments = &params["arguments"];
    let pause = Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default());
    match params["name"].as_str() {
        Some("slow") => {
            thread::sleep(pause); // the sleep is the subject
            Ok(text(arguments["text"].as_str().unwrap_or("slept")))
        }
        Some("progress") => {
            let (steps, token) = (arguments["steps"].as_u64(), &params["_meta"]["progressToken"]);
            let steps = steps.unwrap_or_default();
            for step in 1..=steps {
                thread::sleep(pause); // the sleep is the subject
                if !token.is_null() {
                    let mut told =
                        json!({ "progressToken": token, "progress": step, "total": steps });
                    if server.revision() > "2024-11-05" {
                        told["message"] = format!("step {step}").into();
                    }
                    out::notify("notifications/progress", told);
                }
            }
            let said = arguments["text"].as_str().map(str::to_owned);
            Ok(text(&said.unwrap_or_else(|| format!("{steps} steps"))))
        }
        Some("gossip") => gossip::call(server, params),
        Some(kind) => ask::ask(server, kind, params),
        None => Err(error(-32602, "A call has a name")),
    }
}

fn built_in(options: &Options) -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        let schema = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "description": format!("The tool {name}."), "inputSchema": schema })
    };
    let (string, integer) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let mut tools = vec![
        tool("echo", json!({ "text": string })),
        tool("slow", json!({ "ms": integer, "text": string })),
        tool("pid", json!({})),
        tool("count", json!({})),
        tool("crash", json!({ "code": integer })),
        tool("hang", json!({})),
        tool("ask", json!({})),
        tool("env", json!({ "name": string })),
        tool("big", json!({ "bytes": integer })),
        tool("progress", json!({ "steps": integer, "ms": integer, "text": string })),
        tool("sample", json!({})),
        tool("roots", json!({})),
        tool("touch", json!({ "uri": string })),
        tool("log", json!({ "text": string })),
    ];
    if options.asks_at_start {
        tools.push(tool("kept", json!({})));
    }
    if options.gossips {
        tools.push(tool("gossip", json!({ "text": string })));
    }
    tools
}
