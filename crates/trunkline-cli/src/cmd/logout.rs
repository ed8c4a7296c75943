//! `trunkline logout URL` and `trunkline logout --all`

use std::process::ExitCode;

use anyhow::Result;
use clap::ArgGroup;
use serde_json::json;
use trunkline_auth::url::shown;

use crate::failure::Failure;
use crate::logins::{Damaged, Logins, Profile};
use crate::output::{Screen, one_line};
use crate::words::url;

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
    let mut failed = None;
    let mut profiles = Vec::new();
    let registered = logins.registrations().await?;
    match &args.url {
        Some(url) => match logins.find(url).await {
            Ok(Some(found)) => profiles.push(found),
            // There may be leftovers of a login that can no longer be found.
            Ok(None) => failed = logins.leave(&Profile::new(url)).await.err(),
            // An unreadable login is deleted too.
            Err(failure) => {
                screen.aside("logout", &failure.cause);
                profiles.push(Profile::new(url));
            }
        },
        None => {
            let (found, damaged) = logins.all().await?;
            profiles = found;
            for it in damaged {
                screen.aside("logout", &it.to_string());
                match it {
                    Damaged::Login(url) => profiles.push(Profile::new(&url)),
                    Damaged::File(file) => logins.discard(&file)?,
                }
            }
        }
    }
    let mut left = Vec::new();
    for profile in &profiles {
        match logins.leave(profile).await {
            Ok(()) => left.push(shown(profile.server())),
            Err(failure) => failed = Some(failure),
        }
    }
    if args.all && failed.is_none() {
        logins.forget_rest().await?;
    }
    let still = logins.registrations().await?;
    let registered: Vec<String> =
        registered.iter().filter(|it| !still.contains(it)).map(|it| shown(it)).collect();
    if args.json {
        screen.json(&json!({ "forgotten": left, "registrations": registered }))?;
    } else {
        for server in &left {
            screen.print(&format!("Logged out of {}.", one_line(server)))?;
        }
        for issuer in registered.iter().filter(|_| args.all) {
            let issuer = one_line(issuer);
            screen.print(&format!("Forgot the registration of this client at {issuer}."))?;
        }
        if profiles.is_empty() && (registered.is_empty() || !args.all) {
            screen.print(&match &args.url {
                Some(url) => format!("Nobody was logged in to {}.", one_line(&shown(url))),
                None => "Nobody was logged in anywhere.".to_owned(),
            })?;
        }
    }
    failed.map_or(Ok(ExitCode::SUCCESS), |failure: Failure| Err(failure.into()))
}
