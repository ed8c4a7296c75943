//! `trunkline retry SERVER`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::admin::Gateway;
use crate::output::Screen;

/// Has a gateway start a server again that it gave up on.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which one.
    #[arg(value_parser = server_name)]
    server: String,
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let path = format!("/v1/servers/{}/retry", args.server);
    for gateway in args.gateway.with(&args.server).await? {
        let done = gateway.post(&path, &Value::Null).await?;
        if gateway.json {
            screen.json(&done)?;
        }
    }
    if !args.gateway.json {
        screen.print(&format!("`{}` is tried again with the next call.", args.server))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of a server, as catalogs have it.
pub(crate) fn server_name(text: &str) -> Result<String, String> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    match (1..=64).contains(&text.len()) && text.chars().all(is_good) {
        true => Ok(text.to_owned()),
        false => Err("a server's name has up to 64 letters, digits, `_` and `-`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_into_paths_as_they_are() {
        assert!(server_name("git-2_x").is_ok());
        for name in ["", "a/b", "a b", "é", "a?b", &"x".repeat(65)] {
            assert!(server_name(name).is_err(), "{name}");
        }
    }
}
