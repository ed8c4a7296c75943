//! `trunkline schema`

use std::process::ExitCode;

use anyhow::Result;
use trunkline_gateway::catalog::schema;

use crate::output::Screen;

/// Prints the JSON Schema of catalogs, for editors.
#[derive(clap::Args)]
#[command(after_help = "\
To have an editor complete and check a catalog, keep the schema in a file,
`trunkline schema > trunkline.schema.json`, and begin the catalog with:

  # yaml-language-server: $schema=trunkline.schema.json")]
pub(crate) struct Args {}

pub(crate) async fn run(_: Args, screen: &Screen) -> Result<ExitCode> {
    screen.json(&schema())?;
    Ok(ExitCode::SUCCESS)
}
