//! `trunkline reload`

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::admin::Gateway;
use crate::output::{Screen, one_line};

/// Reloads the catalog of a gateway.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) gateway: Gateway,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    for gateway in args.gateway.all().await? {
        let done = gateway.post("/v1/reload", &Value::Null).await?;
        match gateway.json {
            true => screen.json(&done)?,
            false => screen.print(&told(&done))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The changes, one line per server.
fn told(done: &Value) -> String {
    if let Some(why) = done["why"].as_str() {
        return one_line(why);
    }
    if done["changed"] == false {
        return "The catalog was reloaded; nothing has changed.".to_owned();
    }
    let mut text = "The catalog was reloaded.".to_owned();
    for (name, change) in done["changes"]["servers"].as_object().into_iter().flatten() {
        let what = match change.as_str().unwrap_or_default() {
            "added" => "is new",
            "removed" => "is gone, once its calls are done",
            "tools" => "shows other tools",
            "behaviour" => "runs by other rules; what runs goes on",
            "replaced" => "is another now; its calls finish with the one before",
            other => other,
        };
        text.push_str(&format!("\n  {}", one_line(&format!("`{name}` {what}."))));
    }
    let keys = done["changes"]["restart"].as_array().into_iter().flatten();
    let keys: Vec<_> = keys.filter_map(Value::as_str).map(one_line).collect();
    if !keys.is_empty() {
        text.push_str(&format!(
            "\nWhat has changed in `gateway` takes a restart: `{}`.",
            keys.join("`, `")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changed_is_told() {
        let changes = json!({
            "servers": { "git": "replaced", "time": "added" },
            "gateway": ["listen"],
            "restart": ["listen"],
        });
        assert_eq!(
            told(&json!({ "changed": true, "changes": changes })),
            "The catalog was reloaded.\n  \
             `git` is another now; its calls finish with the one before.\n  \
             `time` is new.\n\
             What has changed in `gateway` takes a restart: `listen`."
        );
        assert!(told(&json!({ "changed": false })).ends_with("nothing has changed."));
        assert_eq!(told(&json!({ "changed": false, "why": "It is built in." })), "It is built in.");
    }
}
