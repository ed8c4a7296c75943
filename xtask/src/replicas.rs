//! The scenes in which several gateways are one: `crates/trunkline-cli/tests/replicas`.

use crate::json::{self, Lenient};
use crate::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the scenes of these names, or all; the last line counts them. `bridge` is the matrix instead.
pub fn run(args: &[String]) -> Result<(), String> {
    match args {
        [name] if name == BRIDGE => bridge(),
        _ => run::run(program(false)?.args(args)),
    }
}

/// All scenes with far larger counts, longer outages and more kills.
pub fn soak() -> Result<(), String> {
    run::run(program(true)?.env("TRUNKLINE_SOAK", "1"))
}

/// The bridge matrix through three gateways: the cells of one.
pub fn bridge() -> Result<(), String> {
    let stage = built()?;
    run::raise_files();
    let mut cargo = run::cargo(["test", "--package", "trunkline-cli", "--test", "it", "--"]);
    run::run(cargo.args(["--nocapture", "bridge::"]).env(STAGE, stage))
}

/// A stage for a catalog of one's own; it says where it is and ends with its standard input.
pub fn stage(catalog: &Path) -> Result<Command, String> {
    let mut stage = program(false)?;
    stage.arg("stage").arg(catalog);
    Ok(stage)
}

/// The same for a server that takes `--replicas`.
pub fn servers(program_of_server: &Path) -> Result<Command, String> {
    let mut stage = program(false)?;
    stage.arg("servers").arg(program_of_server);
    Ok(stage)
}

/// The program with the scenes, built: what [`STAGE`] names for whoever starts a stage without cargo.
///
/// By the build of all tests: one of this program alone has other features, and would compile nearly everything again.
pub fn built() -> Result<PathBuf, String> {
    run::install_missing("Several gateways need", run::SERVERS)?;
    let said = run::read(&mut run::build(["--quiet", "--message-format", "json"]))?;
    said.lines()
        .filter_map(|line| json::parse(line).ok())
        .filter(|it| it["target"]["src_path"].str().ends_with("/tests/replicas/main.rs"))
        .find_map(|it| Some(it["executable"].str()).filter(|it| !it.is_empty()).map(PathBuf::from))
        .ok_or_else(|| {
            "`cargo build` does not say where the program with the scenes is.".to_owned()
        })
}

/// The program with the scenes, which does nothing unless it is told how many gateways to start.
fn program(is_long: bool) -> Result<Command, String> {
    let mut program = if is_long {
        run::install_missing("Several gateways need", run::SERVERS)?;
        let mut cargo = run::cargo(["test", "--release", "--package", "trunkline-cli"]);
        cargo.args(["--test", "replicas", "--"]);
        cargo
    } else {
        let mut program = Command::new(built()?);
        program.current_dir(run::root().join("crates/trunkline-cli"));
        program
    };
    run::raise_files();
    program.env("TRUNKLINE_REPLICAS", "3");
    Ok(program)
}

/// Tells tests and peers to put three gateways where they would start one: by the program that this variable names.
pub const STAGE: &str = "TRUNKLINE_STAGE";
const BRIDGE: &str = "bridge";
