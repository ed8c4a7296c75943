//! `trunkline ping -- COMMAND…`

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::{made, talk};
use crate::output::{Screen, Tone, one_line};
use crate::target::Target;

/// Asks whether a server is there, and how long it takes to say so.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) target: Target,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let started = Instant::now();
    let (connected, answered, info, revision) = talk(&args.target, screen, async |client| {
        let connected = started.elapsed();
        let sent = Instant::now();
        made(client, "ping", client.ping()).await?;
        Ok((connected, sent.elapsed(), client.server_info().cloned(), client.revision()))
    })
    .await?;
    let ms = |it: std::time::Duration| (it.as_secs_f64() * 1e5).round() / 100.0;
    if args.target.json {
        screen.json(&json!({
            "server": info.as_ref().map(|it| json!({ "name": it.name, "version": it.version })),
            "protocolVersion": revision.as_str(),
            "connectMs": ms(connected),
            "pingMs": ms(answered),
        }))?;
    } else {
        let name =
            info.map_or("a nameless server".to_owned(), |it| format!("{} {}", it.name, it.version));
        let pong = screen.tone(Tone::Good, "pong");
        let (name, answered, connected) = (one_line(&name), ms(answered), ms(connected));
        screen.print(&format!(
            "{pong} from {name} in {answered} ms, connected in {connected} ms, speaking {revision}"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
