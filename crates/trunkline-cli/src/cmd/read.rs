//! `trunkline read URI -- COMMAND…`

use std::process::ExitCode;

use anyhow::Result;

use super::{made, talk};
use crate::output::{Screen, resource};
use crate::target::Target;

/// Reads a resource and prints it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which resource.
    uri: String,
    #[command(flatten)]
    pub(crate) target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let result = talk(&args.target, screen, async |client| {
        Ok(made(client, "resources/read", client.read_resource(&args.uri)).await?)
    })
    .await?;
    if args.target.json {
        screen.json(&result)?;
    } else {
        for contents in &result.contents {
            screen.print(&resource(screen, contents))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
