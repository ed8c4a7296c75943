//! The official suite as a program: installed as the lock file says, listed, run into a folder.

use super::checks::{self, Scenario};
use crate::{peers, run};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Which of our two binaries is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `conformance-server`
    Server,
    /// `conformance-client`
    Client,
}

impl Role {
    /// As the suite's command line says it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Client => "client",
        }
    }
}

/// What the suite can be pointed at.
pub trait Shown {
    /// Where it takes requests.
    fn url(&self) -> String;
    /// Fails if it has ended.
    fn still_runs(&mut self) -> Result<(), String>;
}

/// A scenario the suite offers, and where it applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Such as `tools-list` or `auth/dpop`.
    pub name: String,
    /// The revisions it is meant for; none if it belongs to an extension.
    pub revisions: Vec<String>,
}

/// What a revision requires of one role.
#[derive(Debug, Default, PartialEq)]
pub struct Required {
    /// What its score is made of.
    pub scored: Vec<String>,
    /// What runs beside it.
    pub unscored: Vec<String>,
}

/// One run of the suite that has ended.
pub struct Ran {
    /// What it left behind.
    pub scenarios: Vec<Scenario>,
    /// How it ended; none when it was stopped because it took too long.
    pub status: Option<ExitStatus>,
    /// How long it took.
    pub time: Duration,
    /// What it printed.
    pub log: PathBuf,
}

/// Installs the suite and its Node.js, when they are not there as the lock file says.
pub fn install() -> Result<(), String> {
    peers::tools()?;
    let lock = run::file("conformance/suite/package-lock.json")?;
    let modules = folder().join("node_modules");
    if peers::is_stamped(&modules, &lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder());
    run::run(&mut npm)?;
    let version = run::read(suite().arg("--version"))?;
    if version.trim() != VERSION {
        return Err(format!("The suite is {}, but {VERSION} is what we pin.", version.trim()));
    }
    peers::stamp(&modules, &lock)
}

/// Builds our two binaries, with everything else that the tests have built already.
pub fn build() -> Result<(), String> {
    run::run(&mut run::build(["--quiet"]))
}

/// Where our two binaries are.
pub fn binaries() -> PathBuf {
    run::target().join("debug")
}

/// Where the runs leave their results.
pub fn results() -> PathBuf {
    run::target().join("conformance")
}

/// Every scenario for a role.
pub fn offers(role: Role) -> Result<Vec<Offer>, String> {
    let text = run::read(suite().args(["list", &format!("--{}", role.word())]))?;
    Ok(offers_in(&text))
}

/// What a revision requires of a role.
pub fn required(role: Role, revision: &str) -> Result<Required, String> {
    let text = run::read(suite().args(["list", "--requirements", revision]))?;
    Ok(required_in(&text, role))
}

/// Runs the suite; its results go to the folder `name` below `results`.
pub fn run(role: Role, name: &str, args: &[&str], limit: Duration) -> Result<Ran, String> {
    let folder = results().join(name);
    let wrong = |error| format!("Cannot make `{}`: {error}.", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(wrong)?;
    }
    std::fs::create_dir_all(&folder).map_err(wrong)?;
    let log = folder.join("log.txt");
    let out = File::create(&log).map_err(wrong)?;

    let mut command = suite();
    command.arg(role.word()).args(args).arg("-o").arg(&folder);
    // The suite cuts the client's command at every space, so that command must not hold a path.
    if role == Role::Client {
        command.current_dir(binaries());
    }
    command.stderr(out.try_clone().map_err(wrong)?).stdout(out);
    let start = Instant::now();
    let status = run::status_within(&mut command, limit)?;
    let time = start.elapsed();
    let prefix = if role == Role::Server { "server-" } else { "" };
    Ok(Ran { scenarios: checks::read(&folder, prefix)?, status, time, log })
}

fn suite() -> Command {
    let modules = folder().join("node_modules");
    let own = modules.join(".bin/node");
    // There is no packaged Node.js for every platform; one that is new enough will do.
    let mut command = Command::new(if own.exists() { own } else { "node".into() });
    command.arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"));
    command.current_dir(run::root());
    command
}

fn folder() -> PathBuf {
    run::root().join("conformance/suite")
}

/// Lines such as `  - tools-list [2025-06-18,2025-11-25]` or `  - tasks-lifecycle [extension]`.
fn offers_in(text: &str) -> Vec<Offer> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let offers = lines.map(|line| {
        let (name, rest) = line.split_once(" [").unwrap_or((line, ""));
        let revisions = rest.trim_end_matches(']').split(',').filter(|word| word.starts_with("20"));
        Offer { name: name.to_owned(), revisions: revisions.map(str::to_owned).collect() }
    });
    offers.collect()
}

/// Two headings with names below, then a third whose names say the role in brackets.
fn required_in(text: &str, role: Role) -> Required {
    let heading = format!("{} scenarios", role.word());
    let bracket = format!(" [{}]", role.word());
    let mut required = Required::default();
    let (mut ours, mut unscored) = (false, false);
    for line in text.lines() {
        match line.trim().strip_prefix("- ") {
            None if !line.starts_with(' ') && !line.is_empty() => {
                ours = line.to_lowercase().starts_with(&heading);
                unscored |= line.contains("never scored");
            }
            Some(name) if unscored => {
                required.unscored.extend(name.strip_suffix(&bracket).map(str::to_owned));
            }
            Some(name) if ours => required.scored.push(name.to_owned()),
            _ => {}
        }
    }
    required
}

const VERSION: &str = "0.2.0-alpha.12";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_revisions_a_scenario_is_for() {
        let text = "Client scenarios (test against a client):\n  - tools_call [2025-06-18,2026-07-28]\n  - auth/dpop [extension]\n";
        let want = [
            Offer {
                name: "tools_call".into(),
                revisions: vec!["2025-06-18".into(), "2026-07-28".into()],
            },
            Offer { name: "auth/dpop".into(), revisions: Vec::new() },
        ];
        assert_eq!(offers_in(text), want);
    }

    #[test]
    fn a_requirement_set_is_cut_by_role_and_score() {
        let text = "Required for 2026-07-28 (3 scenarios, frozen):\n\nServer scenarios (test against a server):\n  - ping\n  - tools-list\n\nClient scenarios (test against a client):\n  - tools_call\n\nRun and reported, but never scored:\n  extension (2):\n    - auth/dpop [client]\n    - tasks-lifecycle [server]\n";
        let server = required_in(text, Role::Server);
        assert_eq!(server.scored, ["ping", "tools-list"]);
        assert_eq!(server.unscored, ["tasks-lifecycle"]);
        let client = required_in(text, Role::Client);
        assert_eq!(client.scored, ["tools_call"]);
        assert_eq!(client.unscored, ["auth/dpop"]);
    }
}
