//! How do I use the client's model? Plainly, or with tools of mine that it may call.

use std::process::ExitCode;
use trunkline::model::{
    Content, CreateMessageParams, Role, SamplingMessage, Tool, ToolResultContent,
};
use trunkline::serde_json::json;
use trunkline::{Context, RawJson, Server, ToolError, tool};

/// Sums up a text in one sentence.
#[tool]
async fn sum_up(cx: Context, text: String) -> Result<String, ToolError> {
    let question = SamplingMessage::user(format!("In one sentence: {text}"));
    let reply = cx.sample(CreateMessageParams::new(vec![question], 100)).await?;
    Ok(reply.text())
}

/// Answers a question about the weather.
#[tool]
async fn weather(cx: Context, question: String) -> Result<String, ToolError> {
    let place = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tools = vec![Tool::new("temperature", RawJson::of(&place))];
    let mut messages = vec![SamplingMessage::user(question)];
    for _ in 0..4 {
        let params = CreateMessageParams::new(messages.clone(), 500).tools(tools.clone());
        let reply = cx.sample(params).await?;
        let results: Vec<Content> =
            reply.content.as_slice().iter().filter_map(temperature).collect();
        if results.is_empty() {
            return Ok(reply.text());
        }
        messages.push(SamplingMessage::new(Role::Assistant, reply.content));
        messages.push(SamplingMessage::new(Role::User, results));
    }
    Err(ToolError::new("The model looked at the thermometer four times and said nothing."))
}

/// The result of the thermometer tool, for the model.
fn temperature(block: &Content) -> Option<Content> {
    let Content::ToolUse(wish) = block else { return None };
    let degrees = vec![Content::text("-4 degrees")];
    Some(Content::ToolResult(ToolResultContent::new(&*wish.id, degrees)))
}

fn main() -> ExitCode {
    Server::builder("sample", "1.0.0").tool(sum_up).tool(weather).build().run()
}
