//! `trunkline check [FILE]`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use trunkline_gateway::catalog::{Fault, Faults, load_file};

use crate::catalog::{NAME, meant};
use crate::failure::{Failure, USAGE};
use crate::output::{Screen, Tone, harmless, one_line};

/// Checks a catalog of servers. Nothing is started.
#[derive(clap::Args)]
#[command(after_help = "\
The exit code is 0 if the catalog is good, and 2 if anything is wrong with it.

Catalogs are YAML or JSON; those of Claude, Cursor, VS Code and others are good as they are.
`trunkline schema` prints what can be in one.")]
pub(crate) struct Args {
    /// The catalog. The default is what `TRUNKLINE_CONFIG` names, else `trunkline.yaml`, else your own in
    /// `~/.config/trunkline`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn run(args: Args, screen: &Screen) -> Result<ExitCode> {
    let named = args.file.or_else(|| Some(std::env::var_os("TRUNKLINE_CONFIG")?.into()));
    let file = match meant(named.as_deref()) {
        Some(file) => file,
        None => {
            let failure = Failure::usage(format!("There is no `{NAME}` here."));
            return Err(failure.advice("trunkline check FILE").into());
        }
    };
    let (names, faults, warnings) = match load_file(&file) {
        Ok(loaded) => (loaded.plan.servers.into_keys().collect(), Vec::new(), loaded.warnings),
        Err(Faults { faults, warnings, .. }) => (Vec::new(), faults, warnings),
    };
    let is_good = faults.is_empty();
    if args.json {
        screen.json(&json!({
            "file": file,
            "ok": is_good,
            "servers": names,
            "faults": faults,
            "warnings": warnings,
        }))?;
    } else {
        for it in &warnings {
            tell(screen, Tone::Bold, "warning", &file, it);
        }
        for it in &faults {
            tell(screen, Tone::Bad, "error", &file, it);
        }
        if is_good {
            screen.print(&good(&file, &names))?;
        }
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(USAGE) })
}

fn tell(screen: &Screen, tone: Tone, label: &str, file: &Path, fault: &Fault) {
    let label = screen.err_tone(tone, &format!("{label}:"));
    screen.say(&format!("{label} {}\n", harmless(&fault.render(file))));
}

fn good(file: &Path, names: &[String]) -> String {
    let file = one_line(&file.display().to_string());
    match names {
        [] => format!("`{file}` is good. It has no servers."),
        [one] => format!("`{file}` is good. It has one server: {one}."),
        all => format!("`{file}` is good. It has {} servers: {}.", all.len(), all.join(", ")),
    }
}
