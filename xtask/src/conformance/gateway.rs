//! The suite through `trunkline serve` to `conformance-server`: clients of both eras, a server held
//! to either, over stdio and over HTTP, and the same through three gateways as one. What cannot be bridged is listed
//! here with its reason, and nothing else may fail.

use super::checks::Check;
use super::report::Report;
use super::suite::{self, Role, Shown};
use crate::{replicas, run};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What the suite is pointed at.
#[derive(Clone, Copy)]
pub enum Front {
    /// One gateway.
    One,
    /// A balancer before three that share their sessions.
    Three,
}

/// Every client era × every server era × both ways.
pub fn run(front: Front, report: &mut Report) -> Result<(), String> {
    let mut gateway = Gateway::start(front)?;
    for client in [OLD, NEW] {
        let wanted = suite::required(Role::Server, client)?;
        for server in [OLD, NEW] {
            for over in ["stdio", "http"] {
                let name = format!("{} {client} to {server} over {over}", front.word());
                let url = format!("{}/mcp/server/{over}-{server}", gateway.url);
                let args = ["--url", &url, "--requirements", client];
                let ran = suite::run(Role::Server, &name.replace(' ', "-"), &args, LIMIT)?;
                let excluded: Vec<_> =
                    EXCLUDED.iter().filter(|it| it.between == (client, server)).collect();
                let reason = |scenario: &str, check: &Check| {
                    let found = excluded.iter().find(|it| it.is(scenario, check));
                    found.map(|it| it.reason)
                };
                report.add_except(&name, &wanted, &ran, Some(&reason));
                for it in excluded {
                    let checks = ran.scenarios.iter().filter(|found| found.name == it.scenario);
                    let mut checks = checks.flat_map(|found| &found.checks);
                    if !checks.any(|check| check.is_bad() && it.is(it.scenario, check)) {
                        let (scenario, check) = (it.scenario, it.check);
                        report.complain(format!(
                            "{name}: {scenario}, {check} is excluded, but does not fail"
                        ));
                    }
                }
                gateway.still_runs()?;
            }
        }
    }
    Ok(())
}

impl Front {
    fn word(self) -> &'static str {
        match self {
            Front::One => "gateway",
            Front::Three => "replicas",
        }
    }
}

/// A check that cannot succeed between two revisions.
struct Excluded {
    /// Client, server.
    between: (&'static str, &'static str),
    scenario: &'static str,
    /// The id of the check.
    check: &'static str,
    reason: &'static str,
}

impl Excluded {
    fn is(&self, scenario: &str, check: &Check) -> bool {
        self.scenario == scenario && self.check == check.id
    }
}

/// The gateway and the server behind it while they run; dropped, they are stopped.
pub struct Gateway {
    url: String,
    children: Vec<(&'static str, Child)>,
}

impl Gateway {
    fn start(front: Front) -> Result<Self, String> {
        let wrong = |error| format!("Cannot start the gateway: {error}.");
        let folder = suite::results().join(front.word());
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(wrong)?;
        let fixtures = run::trunkline().with_file_name("conformance-server");
        let mut gateway = Self { url: String::new(), children: Vec::new() };
        let mut command = Command::new(&fixtures);
        command.args(["--port", "0"]).stdout(Stdio::piped());
        command.stderr(File::create(folder.join("server.log")).map_err(wrong)?);
        let server =
            gateway.spawn("conformance-server", command, "http://", |it| it.stdout.take())?;
        let config = folder.join("catalog.json");
        std::fs::write(&config, catalog(&fixtures, server.trim())).map_err(wrong)?;
        let said = match front {
            Front::One => {
                let mut command = Command::new(run::trunkline());
                command.arg("serve").arg("--config").arg(&config);
                command.args(["--listen", "127.0.0.1:0"]).arg("--state").arg(folder.join("state"));
                command.stdout(Stdio::null()).stderr(Stdio::piped());
                gateway.spawn("trunkline serve", command, "/mcp", |it| it.stderr.take())?
            }
            Front::Three => {
                let mut command = replicas::stage(&config)?;
                command.stdout(Stdio::piped());
                gateway.spawn(STAGE, command, "http://", |it| it.stdout.take())?
            }
        };
        gateway.url = address(&said)?;
        Ok(gateway)
    }

    /// Three of a server as one instead, and no gateway.
    pub fn of_servers(program: &Path) -> Result<Self, String> {
        let mut servers = Self { url: String::new(), children: Vec::new() };
        let mut command = replicas::servers(program)?;
        command.stdout(Stdio::piped());
        let said = servers.spawn(STAGE, command, "http://", |it| it.stdout.take())?;
        servers.url = address(&said)?;
        Ok(servers)
    }

    /// Starts a program and waits for a line of its that holds something.
    fn spawn<R: std::io::Read + Send + 'static>(
        &mut self,
        name: &'static str,
        mut command: Command,
        holds: &str,
        output: impl FnOnce(&mut Child) -> Option<R>,
    ) -> Result<String, String> {
        let wrong = |error| format!("`{name}` did not start: {error}.");
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(wrong)?;
        let output = output(&mut child).expect("it is piped");
        self.children.push((name, child));
        let mut lines = BufReader::new(output).lines();
        for line in lines.by_ref() {
            let line = line.map_err(wrong)?;
            if line.contains(holds) {
                // Whoever does not read what it says later would block it.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(line);
            }
        }
        Err(format!("`{name}` ended before it said where it is."))
    }
}

impl Shown for Gateway {
    fn url(&self) -> String {
        format!("{}/mcp", self.url)
    }

    fn still_runs(&mut self) -> Result<(), String> {
        for (name, child) in &mut self.children {
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Err(format!("`{name}` ended with {status}.")),
                Err(error) => return Err(format!("Cannot wait for `{name}`: {error}.")),
            }
        }
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The gateway first: its children end with it. A stage ends with its input, and stops what it started.
        for (name, child) in self.children.iter_mut().rev() {
            drop(child.stdin.take());
            if *name != STAGE {
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}

/// The address in a line, without a path.
fn address(said: &str) -> Result<String, String> {
    let url = said.split(' ').find(|it| it.starts_with("http://"));
    let url = url.ok_or(format!("There is no address in `{said}`."))?;
    Ok(url.strip_suffix("/mcp").unwrap_or(url).to_owned())
}

/// The server four times. On a pipe of the old era nobody could tell which of several calls a
/// question belongs to, so there an instance has one call at a time.
fn catalog(fixtures: &Path, url: &str) -> String {
    let fixtures = fixtures.display();
    let entry = |revision: &str| {
        format!(
            r#""stdio-{revision}": {{ "command": "{fixtures}", "args": ["--stdio"],
                "protocolVersion": "{revision}", "maxConcurrent": 1, "maxInstances": 64 }},
            "http-{revision}": {{ "url": "{url}", "protocolVersion": "{revision}",
                "maxInstances": 64 }}"#
        )
    };
    format!(r#"{{ "mcpServers": {{ {}, {} }} }}"#, entry(OLD), entry(NEW))
}

const STAGE: &str = "the stage";
const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";
const LIMIT: Duration = Duration::from_secs(180);

const NO_KEYS: &str = "2.3: a legacy server asks with requests, which have no names; the gateway \
    names them, so the keys are not those that the scenario answers";
const NO_HEADERS: &str = "2.3: `x-mcp-header` is taken off the tools of a server that could not check \
    the header, and the scenario finds no tool with it";
const NO_REFUSAL: &str = "a server of 2025-11-25 has no -32021; it says in a result that it \
    cannot ask";
const SAME_LIST: &str = "a choice of ours: the gateway looks at a list that is said to have changed and tells of \
    changes; the fixture's list stays the same";
const DRIVEN: &str = "2.3: for a client without the extension the gateway follows the task itself \
    and answers with its result";

const IN_JSON: Excluded = Excluded {
    between: (OLD, OLD),
    scenario: "server-sse-polling",
    check: "server-sse-content-type",
    reason: "the gateway answers in JSON unless something is said first; the suite looks at streams \
             of `conformance-server` itself",
};

const fn old(scenario: &'static str, check: &'static str, reason: &'static str) -> Excluded {
    Excluded { between: (NEW, OLD), scenario, check, reason }
}

const fn new(scenario: &'static str, check: &'static str, reason: &'static str) -> Excluded {
    Excluded { between: (NEW, NEW), scenario, check, reason }
}

/// What does not succeed, and why: a section of the protocol map, or a choice of the gateway.
#[rustfmt::skip]
const EXCLUDED: &[Excluded] = &[
    Excluded { between: (OLD, OLD), ..IN_JSON },
    Excluded { between: (OLD, NEW), ..IN_JSON },
    old("http-custom-header-server-validation", "sep-2243-server-no-xmcp-tool", NO_HEADERS),
    old("http-custom-header-server-validation", "sep-2243-server-decode-base64", NO_HEADERS),
    old("http-custom-header-server-validation", "sep-2243-server-validate-param-match", NO_HEADERS),
    old("http-custom-header-server-validation", "sep-2243-server-reject-invalid-param-chars", NO_HEADERS),
    old("http-custom-header-server-validation", "sep-2243-server-reject-param-mismatch", NO_HEADERS),
    old("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete", NO_KEYS),
    old("input-required-result-ignore-extra-params", "sep-2322-ignore-unexpected-params", NO_KEYS),
    old("server-stateless", "sep-2575-server-rejects-undeclared-capability", NO_REFUSAL),
    old("server-stateless", "sep-2575-missing-capability-http-400", NO_REFUSAL),
    old("server-stateless", "sep-2575-server-sends-prompts-list-changed-on-subscription", SAME_LIST),
    old("server-stateless", "sep-2575-server-sends-tools-list-changed-on-subscription", SAME_LIST),
    old("tasks-mrtr-composition", "sep-2663-mrtr-synchronous-before-task-creation", NO_KEYS),
    old("tasks-required-task-error", "sep-2663-server-returns-missing-capability-when-required", DRIVEN),
    new("server-stateless", "sep-2575-server-sends-prompts-list-changed-on-subscription", SAME_LIST),
    new("server-stateless", "sep-2575-server-sends-tools-list-changed-on-subscription", SAME_LIST),
    new("tasks-required-task-error", "sep-2663-server-returns-missing-capability-when-required", DRIVEN),
];
