//! `trunkline console`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::admin::Gateway;
use crate::failure::Failure;
use crate::output::Screen;

/// Prints a link to the console of a gateway. It lets one browser in, within five minutes.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let (mut links, mut refused) = (Vec::new(), None);
    for gateway in args.gateway.all().await? {
        match gateway.post("/v1/console/link", &Value::Null).await {
            Ok(link) => links.push(link),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    if links.is_empty() {
        let none = || Failure::usage("There is no gateway whose console can be opened.");
        return Err(refused.unwrap_or_else(none).into());
    }
    for link in links {
        match (args.gateway.json, link["url"].as_str()) {
            (false, Some(url)) => screen.print(url)?,
            _ => screen.json(&link)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
