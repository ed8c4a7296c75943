//! `trunkline disconnect SERVER`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::admin::Gateway;
use crate::cmd::retry::server_name;
use crate::output::{Screen, one_line};

/// Gives the logins of a gateway's principals back and forgets them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server that they are logged in to.
    #[arg(value_parser = server_name)]
    server: String,
    /// The principal, by the name that the audit has.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    principal: Option<String>,
    /// All principals.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let path = format!("/v1/servers/{}/logout", args.server);
    let whom = match &args.principal {
        Some(principal) => json!({ "principal": principal }),
        None => json!({ "all": true }),
    };
    for gateway in args.gateway.with(&args.server).await? {
        let done = gateway.post(&path, &whom).await?;
        if gateway.json {
            screen.json(&done)?;
            continue;
        }
        let names = done["loggedOut"].as_array().into_iter().flatten().filter_map(|it| it.as_str());
        let names: Vec<_> = names.map(|it| format!("`{it}`")).collect();
        let told = match names.is_empty() {
            true => format!("Nobody of that name was logged in to `{}`.", args.server),
            false => format!("Logged out of `{}`: {}.", args.server, names.join(", ")),
        };
        screen.print(&one_line(&told))?;
    }
    Ok(ExitCode::SUCCESS)
}
