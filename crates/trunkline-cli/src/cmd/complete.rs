//! `trunkline complete prompt:NAME|URI_TEMPLATE ARGUMENT PREFIX -- COMMAND…`

use std::process::ExitCode;

use anyhow::Result;
use trunkline::model::{CompleteParams, CompleteResult, Reference};

use super::{made, talk};
use crate::output::{Screen, one_line};
use crate::target::Target;

/// Completes an argument and prints the suggestions, one a line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose argument: `prompt:NAME` or a resource template.
    #[arg(value_name = "prompt:NAME|URI_TEMPLATE")]
    reference: String,
    /// Which argument.
    argument: String,
    /// What has been typed so far.
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    pub(crate) target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let reference = match args.reference.strip_prefix("prompt:") {
        Some(name) => Reference::prompt(name),
        None => Reference::resource(&args.reference),
    };
    let params = CompleteParams::new(reference, args.argument, args.prefix);
    let completion = talk(&args.target, screen, async |client| {
        Ok(made(client, "completion/complete", client.complete(params)).await?)
    })
    .await?;
    if args.target.json {
        screen.json(&CompleteResult::new(completion))?;
    } else {
        for value in &completion.values {
            screen.print(&one_line(value))?;
        }
        if completion.has_more == Some(true) {
            screen.aside("more", "There are more suggestions than these.");
        }
    }
    Ok(ExitCode::SUCCESS)
}
