//! The scenes in which several gateways are one: `crates/trunkline-cli/tests/replicas`.

use crate::run;
use std::path::Path;
use std::process::Command;

/// Runs the scenes of these names, or all; the last line counts them.
pub fn run(args: &[String]) -> Result<(), String> {
    run::run(program(false)?.args(args))
}

/// All scenes with far larger counts, longer outages and more kills.
pub fn soak() -> Result<(), String> {
    run::run(program(true)?.env("TRUNKLINE_SOAK", "1"))
}

/// A stage for a catalog of one's own; it says where it is and ends with its standard input.
pub fn stage(catalog: &Path) -> Result<Command, String> {
    let mut stage = program(false)?;
    stage.arg("stage").arg(catalog);
    Ok(stage)
}

/// The program with the scenes, which does nothing unless it is told how many gateways to start.
fn program(is_long: bool) -> Result<Command, String> {
    run::install_missing("Several gateways need", run::SERVERS)?;
    run::raise_files();
    // Of the whole workspace, so that its features are those of the tests' build and nothing is compiled twice.
    let mut cargo = run::cargo(["test", "--workspace", "--test", "replicas"]);
    if is_long {
        cargo.arg("--release");
    }
    cargo.arg("--").env("TRUNKLINE_REPLICAS", "3");
    Ok(cargo)
}
