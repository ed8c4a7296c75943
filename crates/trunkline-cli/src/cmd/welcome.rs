//! `trunkline` alone: what it can do, shown on its own demo server in both eras.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::json;
use trunkline::client::{Client, Command, Hooks};
use trunkline::model::ElicitResult;
use trunkline::{RawJson, Revision};

use super::made;
use crate::failure::Failure;
use crate::output::{Screen, Tone, block};

pub(crate) async fn run(screen: &Screen) -> Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    screen.print(&format!(
        "{} {version}: one binary for MCP.\n\n{CAN}\nA demonstration: `trunkline demo` is the server, in both eras of the protocol.",
        screen.tone(Tone::Bold, "trunkline"),
    ))?;
    for revision in [Revision::LATEST_STATEFUL, Revision::LATEST] {
        show(revision, screen).await?;
    }
    screen.print(NEXT)?;
    Ok(ExitCode::SUCCESS)
}

async fn show(revision: Revision, screen: &Screen) -> Result<()> {
    let program = std::env::current_exe().context("This program's own file cannot be found")?;
    let host = Hooks::new().elicit(|question| async move {
        let answer =
            if question.message().contains("name") { json!({ "name": "Ada" }) } else { json!({}) };
        Ok(ElicitResult::accept(RawJson::of(&answer)))
    });
    let builder =
        Client::builder("trunkline", env!("CARGO_PKG_VERSION")).protocol(revision).responder(host);
    let client = builder.connect(Command::new(program).arg("demo")).await.map_err(Failure::from)?;
    screen.print(&format!("\n{}", screen.tone(Tone::Bold, revision.as_str())))?;

    let tools = made(&client, "tools/list", client.list_tools()).await?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    line(screen, "list tools", &names.join(" "))?;

    let call = client.call_tool("sum", json!({ "a": 2, "b": 3 }));
    let sum = made(&client, "tools/call", call).await?;
    line(screen, "call sum a=2 b=3", &block(screen, &sum.content[0]))?;

    let steps = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&steps);
    let call = client.call_tool("progress", json!({ "steps": 3 })).on_progress(move |step| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(step.message.unwrap_or_default());
    });
    let done = made(&client, "tools/call", call).await?;
    let steps = steps.lock().unwrap_or_else(PoisonError::into_inner).join(", ");
    line(
        screen,
        "call progress steps=3",
        &format!("{steps}, {}", block(screen, &done.content[0])),
    )?;

    let greeting = made(&client, "tools/call", client.call_tool("greet", json!({}))).await?;
    let answered = format!("asks for a name, hears `Ada`: {}", block(screen, &greeting.content[0]));
    line(screen, "call greet", &answered)?;
    client.close().await;
    Ok(())
}

fn line(screen: &Screen, command: &str, outcome: &str) -> Result<()> {
    screen.print(&format!("  {} {outcome}", screen.tone(Tone::Name, &format!("{command:<22}"))))
}

const CAN: &str =
    "  demo                                   serves a server that shows every feature
  list | call | read | prompt            uses any server over stdio: trunkline list -- COMMAND…
  complete | ping                        or over HTTP: trunkline list URL
  login | logout | whoami                for servers at a URL that want to know who calls
";

const NEXT: &str = "
Try next:
  trunkline list -- trunkline demo
  trunkline call greet --answer name=Ada -- trunkline demo
  trunkline call --json kinds -- trunkline demo
  trunkline --help";
