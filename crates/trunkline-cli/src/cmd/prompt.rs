//! `trunkline prompt NAME [key=value…] -- COMMAND…`

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use trunkline::model::Role;

use super::{made, talk};
use crate::failure::Failure;
use crate::output::{Screen, Tone, block};
use crate::target::Target;
use crate::words::pair;

/// Gets a prompt and prints its messages.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The prompt's name.
    name: String,
    /// Its arguments.
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pairs: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let mut seen = BTreeSet::new();
    if let Some((key, _)) = args.pairs.iter().find(|(key, _)| !seen.insert(key)) {
        return Err(Failure::given_twice(key).into());
    }
    let result = talk(&args.target, screen, async |client| {
        Ok(made(client, "prompts/get", client.get_prompt(&args.name, args.pairs)).await?)
    })
    .await?;
    if args.target.json {
        screen.json(&result)?;
    } else {
        for message in &result.messages {
            let role = match message.role {
                Role::User => "user:",
                Role::Assistant => "assistant:",
            };
            let role = screen.tone(Tone::Name, role);
            screen.print(&format!("{role} {}", block(screen, &message.content)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
