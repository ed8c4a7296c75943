//! `trunkline prompt NAME [key=value…] -- COMMAND…`

use std::process::ExitCode;

use anyhow::Result;
use trunkline::model::Role;

use super::made;
use crate::output::{Screen, Tone, block};
use crate::target::{Target, pair};

/// Gets a prompt and prints its messages.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The prompt's name.
    name: String,
    /// Its arguments.
    #[arg(value_name = "KEY=VALUE", value_parser = pair)]
    pairs: Vec<(String, String)>,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let client = args.target.connect(screen).await?;
    let call = client.get_prompt(&args.name, args.pairs);
    let result = made(&client, "prompts/get", call).await?;
    client.close().await;
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
