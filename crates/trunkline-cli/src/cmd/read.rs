//! `trunkline read URI -- COMMAND…`

use std::process::ExitCode;

use anyhow::Result;

use super::made;
use crate::output::{Screen, resource};
use crate::target::Target;

/// Reads a resource and prints it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which resource.
    uri: String,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let client = args.target.connect(screen).await?;
    let result = made(&client, "resources/read", client.read_resource(&args.uri)).await?;
    client.close().await;
    if args.target.json {
        screen.json(&result)?;
    } else {
        for contents in &result.contents {
            screen.print(&resource(screen, contents))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
