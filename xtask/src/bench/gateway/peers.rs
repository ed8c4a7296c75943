//! The gateways of others → installed once in a folder beside what cargo builds, and how each is started.

use std::path::PathBuf;
use std::process::Command;

use super::cases::{NPM, PYPI, RUST_PROXY};
use crate::peers::{is_stamped, stamp, tools};
use crate::run;

/// Installs a gateway of this version, when it is not there.
pub fn install(label: &str) -> Result<(), String> {
    let (folder, version) = (folder(label), version(label));
    if is_stamped(&folder, version) {
        return Ok(());
    }
    eprintln!("installing {label} {version}");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("Cannot make `{}`: {error}.", folder.display()))?;
    match label {
        RUST_PROXY => {
            let mut cargo = run::cargo(["install", "--quiet", "--locked", "mcp-proxy"]);
            cargo.args(["--version", version, "--root"]).arg(&folder);
            // What it is made of is not needed afterwards, and the features of ours are not its own.
            cargo.arg("--target-dir").arg(folder.join("build")).current_dir(&folder);
            run::run(&mut cargo)?;
            let _ = std::fs::remove_dir_all(folder.join("build"));
        }
        NPM => {
            tools()?;
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
            run::run(npm.arg(&folder).arg(format!("supergateway@{version}")))?;
        }
        _ => {
            tools()?;
            run::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
            let mut pip = Command::new(folder.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            run::run(pip.arg(format!("mcp-proxy=={version}")))?;
        }
    }
    stamp(&folder, version)
}

/// How it is started, in the driver's words.
pub fn command(label: &str) -> Vec<String> {
    let within = |path: &str| folder(label).join(path).display().to_string();
    let (program, words) = match label {
        RUST_PROXY => (vec![within("bin/mcp-proxy")], "--config {config}"),
        NPM => (
            vec!["node".into(), within("node_modules/supergateway/dist/index.js")],
            "--stdio {child} --outputTransport streamableHttp --stateful --port {port} --logLevel none",
        ),
        _ => (vec![within("bin/mcp-proxy")], "--port {port} --log-level ERROR -- {child}"),
    };
    program.into_iter().chain(words.split(' ').map(str::to_owned)).collect()
}

fn version(label: &str) -> &'static str {
    match label {
        RUST_PROXY => "0.6.0",
        NPM => "4.0.0",
        PYPI => "0.13.0",
        _ => unreachable!("only the gateways of others are installed"),
    }
}

fn folder(label: &str) -> PathBuf {
    run::target().join("bench-gateways").join(label)
}
