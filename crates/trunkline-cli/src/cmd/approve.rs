//! `trunkline approve SERVER [TOOL…|--all]`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::admin::Gateway;
use crate::cmd::retry::server_name;
use crate::output::{Screen, one_line};

/// Lets tools through whose definitions have changed. Without a tool, shows which are held back.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Of which server.
    #[arg(value_parser = server_name)]
    server: String,
    /// Which tools, by the server's own names.
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,
    /// All that are held back.
    #[arg(long, conflicts_with = "tools")]
    all: bool,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let (server, gateway) = (&args.server, &args.gateway);
    if !args.all && args.tools.is_empty() {
        let found = gateway.get(&format!("/v1/servers/{server}")).await?;
        match gateway.json {
            true => screen.json(&found["heldBack"])?,
            false => screen.print(&held_back(server, &found["heldBack"]))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let body = if args.all { json!({ "all": true }) } else { json!({ "tools": args.tools }) };
    let done = gateway.post(&format!("/v1/servers/{server}/approve"), &body).await?;
    if gateway.json {
        screen.json(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = names(&done["approved"]);
    screen.print(&match names.is_empty() {
        true => format!("Nothing of `{server}` was held back."),
        false => {
            format!("Clients see {} of `{server}` as the server has it now.", names.join(", "))
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn held_back(server: &str, tools: &Value) -> String {
    let names = names(tools);
    match names.is_empty() {
        true => format!("Nothing of `{server}` is held back."),
        false => format!(
            "Held back, because they have changed: {}.\n\
             Let them through with `trunkline approve {server} TOOL`, or `--all`.",
            names.join(", ")
        ),
    }
}

/// The names of tools in a list, of words or of objects that say more.
fn names(list: &Value) -> Vec<String> {
    let name =
        |it: &Value| it.as_str().or(it["tool"].as_str()).map(|it| format!("`{}`", one_line(it)));
    list.as_array().into_iter().flatten().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_named_and_can_be_let_through() {
        let found = held_back("git", &json!(["push", { "tool": "pull" }]));
        assert!(found.starts_with("Held back, because they have changed: `push`, `pull`."));
        assert!(found.contains("`trunkline approve git TOOL`"));
        assert_eq!(held_back("git", &json!([])), "Nothing of `git` is held back.");
    }
}
