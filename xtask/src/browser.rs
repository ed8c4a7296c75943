//! The console in a real browser: `peers/console`, driven by Debian's chromium.

use crate::{peers, run};
use std::process::Command;
use std::time::Duration;

/// Installs what is missing, builds, and runs the stories; with `--pictures` it takes the pictures of the docs instead.
pub fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg != PICTURES) {
        return Err(format!("`browser` takes `{PICTURES}` or nothing."));
    }
    peers::npm()?;
    run::run(&mut run::build(["--quiet"]))?;
    stories(args)
}

/// Runs the stories with the binary as it is; the last line counts them.
pub fn stories(args: &[String]) -> Result<(), String> {
    run::install_missing("The console's tests need", BROWSER)?;
    let mut node = Command::new("node");
    node.arg(peers::folder().join("console/browser.mjs")).arg(run::trunkline()).args(args);
    run::run_within(node.current_dir(run::root()), Duration::from_secs(300))
}

/// The console beside 5,000 calls a second for a minute: memory and frames, with the binary that users have.
pub fn soak() -> Result<(), String> {
    peers::npm()?;
    run::install_missing("The console's tests need", BROWSER)?;
    run::run(&mut run::cargo(["build", "--release", "--package", "trunkline-cli"]))?;
    let mut node = Command::new("node");
    node.arg(peers::folder().join("console/soak.mjs")).arg(run::target().join("release/trunkline"));
    run::run_within(node.current_dir(run::root()), Duration::from_secs(300))
}

const PICTURES: &str = "--pictures";
const BROWSER: &[(&str, &str)] = &[("chromium", "chromium")];
