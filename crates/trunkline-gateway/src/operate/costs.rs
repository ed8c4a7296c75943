//! The tools of all servers → what their definitions cost a model's context. Pure.

use serde_json::{Value, json};
use trunkline_wire::model::Tool;

/// A tool as a client sees it: its server, its shown name, its definition.
pub(super) type Shown<'a> = (&'a str, &'a str, &'a Tool);

/// What each tool costs, by server, and what the two tools of automatic mode cost instead.
pub(super) fn costs<'a>(tools: impl Iterator<Item = Shown<'a>>, automatic: &[Tool]) -> Value {
    let mut servers: Vec<(&str, Vec<(&str, usize)>)> = Vec::new();
    for (server, name, tool) in tools {
        let cost = (name, bytes(name, tool));
        match servers.iter_mut().find(|(it, _)| *it == server) {
            Some((_, tools)) => tools.push(cost),
            None => servers.push((server, vec![cost])),
        }
    }
    let sum = |tools: &[(&str, usize)]| tools.iter().map(|it| it.1).sum::<usize>();
    let total: usize = servers.iter().map(|(_, tools)| sum(tools)).sum();
    let instead: usize = automatic.iter().map(|it| bytes(&it.name, it)).sum();
    let shown = servers.iter().map(|(server, tools)| {
        let each = tools.iter().map(|(name, bytes)| cost(json!({ "name": name }), *bytes));
        cost(json!({ "server": server, "tools": each.collect::<Vec<_>>() }), sum(tools))
    });
    json!({
        "how": HOW,
        "servers": shown.collect::<Vec<_>>(),
        "total": cost(json!({}), total),
        "automatic": cost(json!({ "saved": tokens(total).saturating_sub(tokens(instead)) }), instead),
    })
}

fn cost(mut of: Value, bytes: usize) -> Value {
    of["bytes"] = json!(bytes);
    of["tokens"] = json!(tokens(bytes));
    of
}

/// The bytes of what hosts send to a model: name, description and input schema, without spaces between tokens.
fn bytes(name: &str, tool: &Tool) -> usize {
    let schema = tool.input_schema.to::<Value>().unwrap_or_default();
    let mut sent = json!({ "name": name, "inputSchema": schema });
    if let Some(description) = &tool.description {
        sent["description"] = json!(description);
    }
    sent.to_string().len()
}

fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

const HOW: &str = "Bytes of `name`, `description` and `inputSchema` as JSON without spaces, divided by four: an estimate. \
                   Tokenizers differ by about a fifth.";

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &str) -> Tool {
        let text = format!(r#"{{"name":"{name}","description":"d","inputSchema":{schema}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_tool_costs_what_a_model_reads_of_it() {
        let (one, other) = (tool("x", "{}"), tool("y", r#"{ "type" : "object" }"#));
        let all = [("a", "a.x", &one), ("b", "b.y", &other), ("a", "a.y", &other)];
        let told = costs(all.into_iter(), &[tool("find", "{}")]);
        let small = r#"{"description":"d","inputSchema":{},"name":"a.x"}"#.len();
        assert_eq!(told["servers"][0]["tools"][0]["bytes"], json!(small));
        assert_eq!(told["servers"][0]["tools"][0]["tokens"], json!(small.div_ceil(4)));
        let large = small + r#""type":"object""#.len();
        assert_eq!(told["servers"][1]["tools"][0]["bytes"], json!(large), "spaces cost nothing");
        assert_eq!(told["servers"][0]["bytes"], json!(small + large));
        assert_eq!(told["total"]["bytes"], json!(small + 2 * large));
        assert!(told["automatic"]["saved"].as_u64().unwrap() > 0);
    }
}
