//! The two tools of automatic mode: one finds tools, one calls them.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::json;
use trunkline_auth::digest::sha256;
use trunkline_wire::json::Json;
use trunkline_wire::model::{CallToolParams, CallToolResult, Tool, ToolAnnotations};

use super::Seen;
use crate::merge::Index;

/// The tool that finds tools.
pub(crate) const FIND_TOOLS: &str = "trunkline.find_tools";
/// The tool that calls them.
pub(crate) const CALL_TOOL: &str = "trunkline.call_tool";

/// The arguments of [`FIND_TOOLS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// What the tools should do.
    pub(crate) query: String,
    /// How many are wanted, at least one.
    pub(crate) limit: usize,
    /// Whether to send schemas again that were sent before.
    pub(crate) again: bool,
}

/// The definition of the tool that finds tools at these servers.
pub(crate) fn find_tools<'a>(servers: impl Iterator<Item = &'a str>, limit: usize) -> Tool {
    let mut names: Vec<String> =
        servers.take(MAX_SERVERS + 1).map(|it| format!("`{it}`")).collect();
    if names.len() > MAX_SERVERS {
        names[MAX_SERVERS] = "others".to_owned();
    }
    let servers = match names.is_empty() {
        true => String::new(),
        false => format!(" There are tools of {}.", names.join(", ")),
    };
    let description = format!(
        "Finds tools by what they do and says how to call them with `{CALL_TOOL}`. Look here first: \
         most tools are not listed.{servers} The schema of a tool is sent once in a session; later \
         its `schemaSent` is true, and `again` sends it once more."
    );
    let input = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool should do, in a few words: `read a file`, `commits of a branch`."
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": format!("How many tools at most; {limit} if omitted, and never more.")
            },
            "again": {
                "type": "boolean",
                "description": "Send schemas that were sent before in this session, too."
            }
        },
        "required": ["query"]
    });
    let output = json!({
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "description": "The tools, best first.",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string" },
                        "title": { "type": "string" },
                        "description": { "type": "string" },
                        "inputSchema": { "type": "object" },
                        "outputSchema": { "type": "object" },
                        "schemaSent": { "type": "boolean" }
                    },
                    "required": ["name"]
                }
            }
        },
        "required": ["tools"]
    });
    Tool::new(FIND_TOOLS, input.into())
        .title("Find tools")
        .description(description)
        .output_schema(Json::from(output))
        .annotations(
            ToolAnnotations::new()
                .read_only_hint(true)
                .idempotent_hint(true)
                .open_world_hint(false),
        )
}

/// The definition of the tool that calls the others.
pub(crate) fn call_tool() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": format!("The name of the tool, as `{FIND_TOOLS}` says it.")
            },
            "arguments": {
                "type": "object",
                "description": "Its arguments, as its `inputSchema` says."
            }
        },
        "required": ["name"]
    });
    Tool::new(CALL_TOOL, input.into())
        .title("Call a tool")
        .description(format!("Calls a tool that `{FIND_TOOLS}` has found, and answers as it does."))
}

/// Reads the arguments of [`FIND_TOOLS`]; the error is for the model.
pub(crate) fn read_find(arguments: Option<&Json>, limit: usize) -> Result<Asked, String> {
    #[derive(Deserialize)]
    struct Arguments {
        query: String,
        #[serde(default)]
        limit: Option<f64>,
        #[serde(default)]
        again: Option<bool>,
    }
    let arguments: Arguments = read(FIND_TOOLS, arguments)?;
    // Models also write `5.0` and `-1`.
    let wanted = arguments.limit.map_or(limit, |it| it as usize);
    let limit = wanted.clamp(1, limit.max(1));
    Ok(Asked { query: arguments.query, limit, again: arguments.again.unwrap_or(false) })
}

/// Reads the arguments of [`CALL_TOOL`] as a call. The error is for the model.
pub(crate) fn read_call(arguments: Option<&Json>) -> Result<CallToolParams, String> {
    #[derive(Deserialize)]
    struct Arguments {
        name: String,
        #[serde(default)]
        arguments: Option<Json>,
    }
    let call: Arguments = read(CALL_TOOL, arguments)?;
    if call.name == CALL_TOOL || call.name == FIND_TOOLS {
        return Err(format!("`{}` is called directly; name a tool that was found.", call.name));
    }
    let mut params = CallToolParams::new(call.name);
    params.arguments = call.arguments.filter(|it| !it.is_null());
    if params.arguments.as_ref().is_some_and(|it| !it.is_object()) {
        return Err(format!("`arguments` of `{CALL_TOOL}` must be an object."));
    }
    Ok(params)
}

/// The answer of [`FIND_TOOLS`]: these tools, without schemas that the session has received. Without a session,
/// every schema is sent.
pub(crate) fn found(
    index: &Index,
    hits: &[(f32, Arc<str>)],
    asked: &Asked,
    (seen, session, now): (&mut Seen, Option<&str>, Instant),
) -> CallToolResult {
    #[derive(Serialize)]
    struct Answer<'a> {
        tools: Vec<Found<'a>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Found<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input_schema: Option<&'a Json>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_schema: Option<&'a Json>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        schema_sent: bool,
    }
    let tools = hits.iter().filter_map(|(_, shown)| {
        let tool = index.tool(shown)?.tool()?;
        // A changed definition counts as a new tool.
        let is_sent = match session {
            Some(session) => {
                let digest = sha256(format!("{shown}\n{}", Json::of(&**tool)).as_bytes());
                seen.is_new(session, &digest, now) || asked.again
            }
            None => true,
        };
        Some(Found {
            name: shown,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            input_schema: is_sent.then_some(&tool.input_schema),
            output_schema: tool.output_schema.as_ref().filter(|_| is_sent),
            schema_sent: !is_sent,
        })
    });
    let answer = Answer { tools: tools.collect() };
    if answer.tools.is_empty() {
        let query: String = asked.query.chars().take(200).collect();
        let text = format!("No tool was found for `{query}`; try other words, or fewer.");
        return CallToolResult::text(text).structured_content(Json::of(&answer));
    }
    CallToolResult::structured(Json::of(&answer))
}

fn read<T: serde::de::DeserializeOwned>(tool: &str, arguments: Option<&Json>) -> Result<T, String> {
    let empty = Json::empty_object();
    let arguments = arguments.unwrap_or(&empty);
    // Derived deserializers accept arrays for objects.
    if !arguments.is_object() {
        return Err(format!("The arguments of `{tool}` must be an object."));
    }
    arguments.to().map_err(|error| format!("The arguments of `{tool}` do not fit: {error}."))
}

const MAX_SERVERS: usize = 20;

#[cfg(test)]
mod tests;
