//! `trunkline call TOOL [key=value…] -- COMMAND…`

use std::io::Read;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Map, Value};
use trunkline::client::Client;

use super::{made, talk};
use crate::failure::Failure;
use crate::output::{Screen, Tone, block};
use crate::target::Target;
use crate::{arguments, json};

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
    pub(crate) target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let base = args.args.as_deref().map(read_object).transpose()?.unwrap_or_default();
    let result = talk(&args.target, screen, async |client| {
        let schema = match args.pairs.is_empty() {
            true => Value::Null,
            false => input_schema(client, &args.tool).await?,
        };
        let arguments = arguments::build(base, &args.pairs, &schema)?;
        let watching = screen.clone();
        let call = client
            .call_tool(&args.tool, Value::Object(arguments))
            .on_progress(move |step| watching.progress(&step));
        Ok(made(client, "tools/call", call).await?)
    })
    .await?;

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

/// The schema of a listed tool; an unlisted one may still exist.
async fn input_schema(client: &Client, name: &str) -> Result<Value, Failure> {
    let tools = made(client, "tools/list", client.list_tools()).await?;
    let tool = tools.iter().find(|tool| tool.name == name);
    Ok(tool.and_then(|tool| tool.input_schema.to().ok()).unwrap_or_default())
}

fn read_object(given: &str) -> Result<Map<String, Value>, Failure> {
    let unreadable = |what: &str, error| Failure::usage(format!("{what} cannot be read: {error}."));
    let text = match given.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| unreadable(&format!("`{path}`"), error))?,
        None if given == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| unreadable("stdin", error))?;
            text
        }
        None => given.to_owned(),
    };
    let wanted = "`--args` takes one JSON object";
    match json::parse(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::usage(format!("{wanted}."))),
        Err(error) => Err(Failure::usage(format!("{wanted}: {error}."))),
    }
}
