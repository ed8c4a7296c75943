//! Scenarios about headers: calls of every kind, so that the suite sees what comes with them.

use serde::Deserialize;
use serde_json::{Value, json};
use trunkline::client::Client;

use super::Failure;
use super::connect::filled_in;

/// Lists and uses everything there is.
pub(super) async fn standard(client: &Client) -> Result<(), Failure> {
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, json!({})).await?;
    }
    for resource in client.list_resources().await? {
        client.read_resource(resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(prompt.name, [("", ""); 0]).await?;
    }
    Ok(())
}

/// Makes the calls that the suite has prepared.
pub(super) async fn custom(client: &Client, context: &Value) -> Result<(), Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Prepared {
        tool_calls: Vec<Prescribed>,
    }
    #[derive(Deserialize)]
    struct Prescribed {
        name: String,
        arguments: Value,
    }
    let prepared: Prepared = serde_json::from_value(context.clone()).map_err(|error| {
        Failure::new(format!("`MCP_CONFORMANCE_CONTEXT` has no `toolCalls`: {error}."))
    })?;
    client.list_tools().await?;
    for call in prepared.tool_calls {
        client.call_tool(call.name, call.arguments).await?;
    }
    Ok(())
}

/// Calls every tool that the SDK lets through, and makes sure that some are held back.
pub(super) async fn every_tool(client: &Client) -> Result<(), Failure> {
    for tool in client.list_tools().await? {
        client.call_tool(tool.name, filled_in(&tool.input_schema)).await?;
    }
    match client.rejected_tools().is_empty() {
        true => Err(Failure::new("No tool was held back, but some have headers that are wrong.")),
        false => Ok(()),
    }
}
