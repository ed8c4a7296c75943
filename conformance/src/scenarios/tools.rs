//! Scenarios about tools: listed, called, asked back, described.

use serde::Serialize;
use serde_json::json;
use trunkline::RawJson;
use trunkline::client::Client;

use super::Failure;

/// Lists the tools. Some of the suite's servers do not say that they have any; those are asked
/// whether they are there.
pub(super) async fn list(client: &Client) -> Result<(), Failure> {
    match client.server_capabilities().tools {
        Some(_) => drop(client.list_tools().await?),
        None => client.ping().await?,
    }
    Ok(())
}

pub(super) async fn add_numbers(client: &Client) -> Result<(), Failure> {
    client.list_tools().await?;
    let result = client.call_tool("add_numbers", json!({ "a": 5, "b": 3 })).await?;
    match result.content.first().and_then(|it| it.as_text()) {
        Some(text) if text.contains('8') => Ok(()),
        other => Err(Failure::new(format!("5 and 3 were added to {other:?}."))),
    }
}

/// Calls a tool that takes nothing and must succeed.
pub(super) async fn call(client: &Client, name: &str) -> Result<(), Failure> {
    client.list_tools().await?;
    succeed(client, name).await
}

/// The tools of the scenario about `input_required`.
pub(super) async fn rounds(client: &Client) -> Result<(), Failure> {
    client.list_tools().await?;
    for name in [
        "test_mrtr_echo_state",
        "test_mrtr_unrelated",
        "test_mrtr_no_state",
        "test_mrtr_no_result_type",
    ] {
        succeed(client, name).await?;
    }
    Ok(())
}

async fn succeed(client: &Client, name: &str) -> Result<(), Failure> {
    let result = client.call_tool(name, json!({})).await?;
    match result.is_error() || result.content.is_empty() {
        true => Err(Failure::new(format!("`{name}` did not succeed: {:?}.", result.content))),
        false => Ok(()),
    }
}

/// Hands a schema back as it came.
pub(super) async fn echo_schema(client: &Client) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Echo {
        schema: RawJson,
    }
    let tools = client.list_tools().await?;
    let tool = tools.into_iter().find(|it| it.name == "json_schema_2020_12_tool");
    let tool = tool.ok_or_else(|| Failure::new("There is no `json_schema_2020_12_tool`."))?;
    client.call_tool("json_schema_echo", Echo { schema: tool.input_schema }).await?;
    Ok(())
}
