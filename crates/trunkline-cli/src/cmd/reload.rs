//! `trunkline reload`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::admin::Gateway;
use crate::output::{Screen, one_line};

/// Has a gateway read its catalog anew.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let done = args.gateway.post("/v1/reload", &Value::Null).await?;
    if args.gateway.json {
        screen.json(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = "The catalog was read anew.".to_owned();
    for (name, what) in [("added", "added"), ("removed", "removed"), ("changed", "changed")] {
        let names = done[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<_> = names.map(|it| format!("`{}`", one_line(it))).collect();
        if !names.is_empty() {
            text.push_str(&format!(" {what}: {}.", names.join(", ")));
        }
    }
    screen.print(&text)?;
    Ok(ExitCode::SUCCESS)
}
