//! The minimal valid parameters and result of every method in the table.

use serde_json::{Value, json};
use trunkline_wire::revision::{Era, Revision};

/// A request or notification, and its result.
pub(crate) struct Sample {
    pub(crate) params: Value,
    result: Option<Value>,
    is_cacheable: bool,
}

impl Sample {
    /// The result as `revision` spells it.
    pub(crate) fn result(&self, revision: Revision) -> Value {
        let mut result = self.result.clone().expect("requests have a result");
        if revision.era() == Era::Stateless {
            result["resultType"] = "complete".into();
            if self.is_cacheable {
                result["ttlMs"] = 0.into();
                result["cacheScope"] = "private".into();
            }
        }
        result
    }

    fn kept(mut self) -> Self {
        self.is_cacheable = true;
        self
    }
}

/// The sample for `method`.
#[track_caller]
pub(crate) fn sample(method: &str, revision: Revision) -> Sample {
    let request = |params, result| Sample { params, result: Some(result), is_cacheable: false };
    let notification = |params| Sample { params, result: None, is_cacheable: false };
    let text = json!({ "type": "text", "text": "hello" });
    let task = match revision.era() {
        Era::Stateful => {
            json!({ "taskId": "t", "status": "working", "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": 1000 })
        }
        Era::Stateless => {
            json!({ "taskId": "t", "status": "working", "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": 1000 })
        }
    };
    let skill = json!({
        "uri": "skill://a/SKILL.md",
        "frontmatter": { "name": "a", "description": "A." },
        "resources": "dynamic",
    });
    match method {
        "initialize" => request(
            json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": { "name": "cli", "version": "1" } }),
            json!({}),
        ),
        "server/discover" => {
            request(json!({}), json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }))
                .kept()
        }
        "ping" => request(json!({}), json!({})),
        "tools/call" => request(
            json!({ "name": "add", "arguments": { "a": 1, "b": 1 } }),
            json!({ "content": [text] }),
        ),
        "tools/list" => request(
            json!({ "cursor": "" }),
            json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }] }),
        )
        .kept(),
        "resources/list" => request(
            json!({}),
            json!({ "resources": [{ "uri": "file:///a", "name": "a" }], "nextCursor": "2" }),
        )
        .kept(),
        "resources/templates/list" => request(
            json!({}),
            json!({ "resourceTemplates": [{ "uriTemplate": "file:///{a}", "name": "a" }] }),
        )
        .kept(),
        "resources/read" => request(
            json!({ "uri": "file:///a" }),
            json!({ "contents": [{ "uri": "file:///a", "text": "A" }] }),
        )
        .kept(),
        "resources/subscribe" | "resources/unsubscribe" => {
            request(json!({ "uri": "file:///a" }), json!({}))
        }
        "prompts/list" => request(json!({}), json!({ "prompts": [{ "name": "p" }] })).kept(),
        "prompts/get" => request(
            json!({ "name": "p" }),
            json!({ "messages": [{ "role": "user", "content": text }] }),
        ),
        "completion/complete" => request(
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "x" } }),
            json!({ "completion": { "values": ["xy"] } }),
        ),
        "logging/setLevel" => request(json!({ "level": "warning" }), json!({})),
        "subscriptions/listen" => {
            request(json!({ "notifications": { "toolsListChanged": true } }), json!({}))
        }
        "tasks/get" | "tasks/cancel" => request(json!({ "taskId": "t" }), task),
        "tasks/result" => request(json!({ "taskId": "t" }), json!({ "content": [text] })),
        "tasks/list" => request(json!({}), json!({ "tasks": [task] })),
        "tasks/update" => request(json!({ "taskId": "t", "inputResponses": {} }), json!({})),
        "skills/list" => request(json!({}), json!({ "skills": [skill] })).kept(),
        "skills/get" => {
            request(json!({ "uri": "skill://a/SKILL.md" }), json!({ "skill": skill })).kept()
        }
        "resources/directory/read" => request(
            json!({ "uri": "skill://a" }),
            json!({ "resources": [{ "uri": "skill://a/SKILL.md", "name": "SKILL.md" }] }),
        )
        .kept(),
        "sampling/createMessage" => request(
            json!({ "messages": [{ "role": "user", "content": text }], "maxTokens": 9 }),
            json!({ "role": "assistant", "content": text, "model": "m" }),
        ),
        "roots/list" => request(json!({}), json!({ "roots": [{ "uri": "file:///r" }] })),
        "elicitation/create" => request(
            json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": { "n": { "type": "number" } } } }),
            json!({ "action": "accept", "content": { "n": 1.5 } }),
        ),
        "notifications/initialized"
        | "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/roots/list_changed" => notification(json!({})),
        "notifications/cancelled" => notification(json!({ "requestId": 99, "reason": "late" })),
        "notifications/progress" => notification(json!({ "progressToken": 99, "progress": 1 })),
        "notifications/message" => notification(json!({ "level": "info", "data": "hello" })),
        "notifications/resources/updated" => notification(json!({ "uri": "file:///a" })),
        "notifications/elicitation/complete" => notification(json!({ "elicitationId": "e" })),
        "notifications/tasks/status" | "notifications/tasks" => notification(task),
        "notifications/subscriptions/acknowledged" => notification(json!({ "notifications": {} })),
        other => panic!("`{other}` has no sample; add one, so that it is exercised."),
    }
}
