//! `trunkline logout URL` and `trunkline logout --all`

use std::process::ExitCode;

use anyhow::Result;
use clap::ArgGroup;
use serde_json::json;

use crate::failure::Failure;
use crate::logins::{Logins, Profile};
use crate::output::{Screen, one_line};
use crate::target::url;

/// Gives a login back and forgets it.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("which").required(true).args(["url", "all"]))]
pub(crate) struct Args {
    /// The server.
    #[arg(value_name = "URL", value_parser = url)]
    url: Option<String>,
    /// Every server.
    #[arg(long)]
    all: bool,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let logins = Logins::open()?;
    let profiles = match &args.url {
        // Also what cannot be understood any more is forgotten.
        Some(url) => match logins.find(url).await {
            Ok(found) => found.into_iter().collect(),
            Err(_) => vec![Profile::new(url)],
        },
        None => logins.all().await?,
    };
    let mut left = Vec::new();
    let mut failed = None;
    for profile in &profiles {
        match logins.leave(profile).await {
            Ok(()) => left.push(profile.server()),
            Err(failure) => failed = Some(failure),
        }
    }
    if args.json {
        screen.json(&json!({ "forgotten": left }))?;
    } else {
        for server in &left {
            screen.print(&format!("Logged out of {}.", one_line(server)))?;
        }
        if profiles.is_empty() {
            screen.print(&match &args.url {
                Some(url) => format!("Nobody was logged in to {}.", one_line(url)),
                None => "Nobody was logged in anywhere.".to_owned(),
            })?;
        }
    }
    failed.map_or(Ok(ExitCode::SUCCESS), |failure: Failure| Err(failure.into()))
}
