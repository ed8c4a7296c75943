//! The clients and servers of other projects: installed once, then run against our binaries.

mod process;
mod travel;

use crate::{replicas, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Each run of a peer: its name, what it shows, its script and what that is told first.
#[rustfmt::skip]
pub const PEERS: &[(&str, &str, &str)] = &[
    ("ts1", "the npm client @modelcontextprotocol/sdk against `trunkline demo`", "ts1.mjs"),
    ("ts1-http", "the same over HTTP, its streams cut and resumed", "ts1.mjs --http"),
    ("ts1-bridge", "the same over the npm bridge mcp-remote", "ts1.mjs --bridge"),
    ("ts2", "the npm client @modelcontextprotocol/client against `trunkline demo`", "ts2.mjs"),
    ("ts2-http", "the same over HTTP, its streams cut and resumed", "ts2.mjs --http"),
    ("ts2-bridge", "the same over the npm bridge mcp-remote", "ts2.mjs --bridge"),
    ("py", "the PyPI client mcp against `trunkline demo`", "py.py"),
    ("py-http", "the same over HTTP", "py.py --http"),
    ("fast-http", "the PyPI client fastmcp against `trunkline demo` over HTTP", "fast.py"),
    ("cli", "`trunkline` against the everything, filesystem and time servers", "cli.mjs"),
    ("cli-http", "`trunkline` against the everything and FastMCP servers over HTTP", "cli.mjs --http"),
    ("record", "recordings of the everything and time servers and of both npm clients, over stdio and HTTP, played from both ends", "record.mjs"),
    ("seen", "what the gateway records of the npm client and four servers, against taps on both sides of it", "seen.mjs"),
    ("replay", "recordings of the PyPI clients and of `trunkline`, over stdio and HTTP, played from both ends in every revision", "replay.mjs"),
    ("auth-ts1", "the npm client @modelcontextprotocol/sdk logs in", "auth/client.mjs ts1"),
    ("auth-ts2", "the npm client @modelcontextprotocol/client logs in", "auth/client.mjs ts2"),
    ("auth-py", "the PyPI client mcp logs in", "auth/client.py py"),
    ("auth-fast", "the PyPI client fastmcp logs in", "auth/client.py fast"),
    ("auth-mcp-remote", "the npm bridge mcp-remote logs in", "auth/bridge.mjs"),
    ("auth-fastmcp", "`trunkline` logs in to a FastMCP server", "auth/cli.mjs fastmcp"),
    ("auth-oidc", "`trunkline` logs in by the npm oidc-provider", "auth/cli.mjs oidc"),
    ("gateway", "five servers behind `trunkline serve`, used by the npm and PyPI clients", "gateway.mjs"),
    ("table", "servers of four SDKs with and without the gateway, by clients of all revisions", "table/table.mjs"),
    ("restart", "the npm clients go on when a gateway is stopped, reloaded or killed, and starts again", "restart.mjs"),
    ("restart-py", "the PyPI clients do", "restart.py"),
    (travel::NAME, "the travel server with every client, and the travel client with every server", travel::NAME),
];

/// The runs that start a gateway, and can as well have three as one.
const THROUGH_GATEWAYS: &[&str] = &["gateway", "table"];
/// The option that has them.
pub const REPLICAS: &str = "--replicas";

/// The chore: install, build, and run the peers named (all when none is); with `--replicas` those that go through a
/// gateway, through three.
pub fn run(args: &[String]) -> Result<(), String> {
    if let [first, names @ ..] = args
        && first == REPLICAS
    {
        return through_replicas(names);
    }
    for name in args {
        if !PEERS.iter().any(|(known, ..)| known == name) {
            let known: Vec<_> = PEERS.iter().map(|(known, ..)| format!("`{known}`")).collect();
            return Err(format!("There is no peer `{name}`; there are {}.", known.join(", ")));
        }
    }
    install()?;
    run::run(&mut run::build(["--quiet"]))?;
    let wanted =
        PEERS.iter().filter(|(name, ..)| args.is_empty() || args.iter().any(|it| it == name));
    let mut failed = Vec::new();
    for (_, what, script) in wanted {
        println!("{what}");
        let outcome = match *script {
            travel::NAME => travel::run(),
            script => one(script).map(|said| print!("{said}")),
        };
        failed.extend(outcome.err().map(|why| format!("{what}: {why}")));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// How long one script may take.
const LIMIT: Duration = Duration::from_secs(300);

fn through_replicas(names: &[String]) -> Result<(), String> {
    if let Some(name) = names.iter().find(|name| !THROUGH_GATEWAYS.contains(&name.as_str())) {
        let known = THROUGH_GATEWAYS.join("`, `");
        return Err(format!("`{name}` goes through no gateway; `{known}` do."));
    }
    install()?;
    run::run(&mut run::build(["--quiet"]))?;
    let stage = replicas::built()?;
    let is_wanted = |name: &str| match names {
        [] => THROUGH_GATEWAYS.contains(&name),
        _ => names.iter().any(|it| it == name),
    };
    let mut failed = Vec::new();
    for (_, _, script) in PEERS.iter().filter(|(name, ..)| is_wanted(name)) {
        let mut command = command(script);
        command.env(replicas::STAGE, &stage);
        failed.extend(run::run_within(&mut command, Duration::from_secs(600)).err());
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs one script; returns the checks that failed, and the count.
pub fn one(script: &str) -> Result<String, String> {
    if script == travel::NAME {
        return run::read_within(&mut run::chore(&["peers", travel::NAME])?, LIMIT, |_| false);
    }
    run::read_within(&mut command(script), LIMIT, |line| line.starts_with("ok "))
}

fn command(script: &str) -> Command {
    let (script, told) = script.split_once(' ').unwrap_or((script, ""));
    let interpreter =
        if script.ends_with(".py") { venv().join("bin/python") } else { "node".into() };
    let mut command = Command::new(interpreter);
    command.arg(folder().join(script)).args(told.split_whitespace());
    command.arg(run::trunkline()).current_dir(run::root());
    let takes_binary = matches!(
        script,
        "gateway.mjs" | "record.mjs" | "replay.mjs" | "seen.mjs" | "table/table.mjs"
    ) || script.starts_with("restart.");
    if !script.ends_with("cli.mjs") && !takes_binary {
        command.arg("demo");
    }
    command.env("TRUNKLINE_PEERS_VENV", venv()).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Installs the npm and PyPI packages, when they are not there as the lock files say.
pub fn install() -> Result<(), String> {
    npm()?;
    pip()
}

/// Installs the npm packages, when they are not there as the lock file says.
pub fn npm() -> Result<(), String> {
    tools()?;
    let lock = run::file("peers/package-lock.json")?;
    if !is_stamped(&folder().join("node_modules"), &lock) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder());
        run::run(&mut npm)?;
        stamp(&folder().join("node_modules"), &lock)?;
    }
    Ok(())
}

fn pip() -> Result<(), String> {
    // Its programs name the folder that they were installed in: one that was moved is made anew.
    let requirements = format!("{}# {}\n", run::file("peers/requirements.txt")?, venv().display());
    if !is_stamped(&venv(), &requirements) {
        run::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv()))?;
        let mut pip = Command::new(venv().join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        run::run(pip.arg(folder().join("requirements.txt")))?;
        stamp(&venv(), &requirements)?;
    }
    Ok(())
}

/// Node, npm and a Python that can make a venv: from Debian when one is missing.
pub fn tools() -> Result<(), String> {
    let missing: Vec<&str> = [
        ("nodejs", "node", &["--version"][..]),
        ("npm", "npm", &["--version"]),
        ("python3", "python3", &["--version"]),
        ("python3-venv", "python3", &["-c", "import ensurepip, venv"]),
    ]
    .into_iter()
    .filter(|(_, program, args)| !run::works(program, args))
    .map(|(package, ..)| package)
    .collect();
    run::install("The peers need", &missing)?;
    let version = run::read(Command::new("node").arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().unwrap_or_default();
    if major.parse::<u32>().is_ok_and(|major| major >= 20) {
        return Ok(());
    }
    Err(format!("The peers need Node.js 20 or later, but `node` is {}.", version.trim()))
}

/// Whether a folder was installed from this list.
pub fn is_stamped(folder: &Path, text: &str) -> bool {
    std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == text)
}

/// Notes in a folder which list it was installed from.
pub fn stamp(folder: &Path, text: &str) -> Result<(), String> {
    std::fs::write(folder.join(STAMP), text)
        .map_err(|error| format!("Cannot write `{}`: {error}.", folder.join(STAMP).display()))
}

/// Where the npm packages are installed.
pub fn folder() -> PathBuf {
    run::root().join("peers")
}

/// Where the PyPI packages are installed.
pub fn venv() -> PathBuf {
    run::target().join("peers-venv")
}

/// A copy of the list that a folder was installed from.
const STAMP: &str = ".installed-from";
