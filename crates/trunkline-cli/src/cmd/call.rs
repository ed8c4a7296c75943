//! `trunkline call TOOL [key=value…] -- COMMAND…`

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use trunkline::client::Client;

use super::made;
use crate::arguments;
use crate::failure::Failure;
use crate::output::{Screen, Tone, block};
use crate::target::Target;

/// Calls a tool and prints what it says.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The tool's name.
    tool: String,
    /// Its arguments: `key=value`, typed by the tool's schema, or `key:=json`.
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Its arguments as one JSON object: the text itself, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let base = args.args.as_deref().map(read_object).transpose()?.unwrap_or_default();
    let client = args.target.connect(screen).await?;
    let schema = match args.pairs.is_empty() {
        true => Value::Null,
        false => input_schema(&client, &args.tool).await?,
    };
    let arguments = arguments::build(base, &args.pairs, &schema)?;
    let watching = screen.clone();
    let call = client
        .call_tool(&args.tool, Value::Object(arguments))
        .on_progress(move |step| watching.progress(&step));
    let result = made(&client, "tools/call", call).await?;
    client.close().await;

    if args.target.json {
        screen.json(&result)?;
    } else if result.content.is_empty() {
        match &result.structured_content {
            Some(value) => screen.json(value)?,
            None => screen.aside("result", "The tool says nothing."),
        }
    } else {
        for it in &result.content {
            screen.print(&block(screen, it))?;
        }
    }
    if result.is_error() {
        let failed = screen.err_tone(Tone::Bad, "failed:");
        screen.say(&format!("{failed} `{}` reported an error.\n", args.tool));
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// The schema of a tool that is listed; one that is not may exist all the same.
async fn input_schema(client: &Client, name: &str) -> Result<Value, Failure> {
    let tools = made(client, "tools/list", client.list_tools()).await?;
    let tool = tools.iter().find(|tool| tool.name == name);
    Ok(tool.and_then(|tool| tool.input_schema.to().ok()).unwrap_or_default())
}

fn read_object(given: &str) -> Result<Map<String, Value>> {
    let text = match given.strip_prefix('@') {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("`{path}` cannot be read"))?
        }
        None if given == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("stdin cannot be read")?;
            text
        }
        None => given.to_owned(),
    };
    serde_json::from_str(&text).context("`--args` takes one JSON object")
}
