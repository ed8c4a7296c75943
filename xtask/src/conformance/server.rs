//! `conformance-server` started, shown to the suite, and stopped.

use super::gateway::Gateway;
use super::report::Report;
use super::suite::{self, Required, Role, Shown};
use crate::free_ports::free_port;
use crate::run;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Every run of the suite; again what counts, with answers as they are unless a handler speaks
/// first: in JSON; and again with a server that lets nobody in without a token.
pub fn run(report: &mut Report) -> Result<(), String> {
    let mut server = Server::start(&[])?;
    all(&mut server, RUNS, "", report)?;
    let mut server = Server::start(&["--json"])?;
    all(&mut server, IN_JSON, ", in JSON", report)?;
    let mut server = Server::start(&["--protected"])?;
    server.is_closed()?;
    server.hand_token()?;
    all(&mut server, RUNS, ", with tokens", report)
}

/// What counts, with three servers that share their sessions, behind a balancer.
pub fn of_three(report: &mut Report) -> Result<(), String> {
    let mut servers = Gateway::of_servers(&suite::binaries().join("conformance-server"))?;
    all(&mut servers, REQUIRED, ", three as one", report)
}

fn all(
    server: &mut impl Shown,
    runs: &[Run],
    how: &str,
    report: &mut Report,
) -> Result<(), String> {
    for (name, args, count, checks) in runs {
        let wanted = wanted(args)?;
        let listed = (wanted.scored.len(), wanted.unscored.len());
        if listed != *count {
            report.complain(format!("{name}: the suite lists {listed:?} scenarios, not {count:?}"));
        }
        let url = server.url();
        let args = [&["--url", &url], *args].concat();
        let folder = format!("server {name}{how}").replace([' ', ','], "-");
        let ran = suite::run(Role::Server, &folder, &args, LIMIT)?;
        let ok = report.add(&format!("server {name}{how}"), &wanted, &ran);
        if ok < *checks {
            report.complain(format!("server {name}{how}: {ok} checks succeeded, not {checks}"));
        }
        server.still_runs()?;
    }
    Ok(())
}

/// One scenario at every revision it is meant for; whether there is one of that name.
pub fn one(scenario: &str, report: &mut Report) -> Result<bool, String> {
    let Some(offer) = suite::offers(Role::Server)?.into_iter().find(|o| o.name == scenario) else {
        return Ok(false);
    };
    let mut server = Server::start(&[])?;
    let revisions =
        if offer.revisions.is_empty() { vec![NEWEST.to_owned()] } else { offer.revisions };
    for revision in revisions {
        let url = server.url();
        let args = ["--url", &url, "--scenario", scenario, "--spec-version", &revision, "--force"];
        let folder = format!("server-{scenario}-{revision}");
        let ran = suite::run(Role::Server, &folder, &args, LIMIT)?;
        let wanted = Required { scored: vec![scenario.to_owned()], unscored: Vec::new() };
        report.add(&format!("server {scenario} {revision}"), &wanted, &ran);
        server.still_runs()?;
    }
    Ok(true)
}

/// The scenarios a run should hold.
fn wanted(args: &[&str]) -> Result<Required, String> {
    match args {
        ["--requirements", revision] => suite::required(Role::Server, revision),
        [.., "--spec-version", revision] => {
            let offers = suite::offers(Role::Server)?.into_iter();
            let names = offers.filter(|offer| offer.revisions.iter().any(|r| r == revision));
            Ok(Required { scored: names.map(|offer| offer.name).collect(), unscored: Vec::new() })
        }
        _ => {
            let names = suite::offers(Role::Server)?.into_iter().map(|offer| offer.name);
            Ok(Required { scored: names.collect(), unscored: Vec::new() })
        }
    }
}

/// The server while it runs; dropped, it is stopped.
struct Server {
    child: Child,
    port: u16,
    log: PathBuf,
    /// What hands every request a token, and where.
    proxy: Option<(Child, u16)>,
}

impl Server {
    fn start(told: &[&str]) -> Result<Server, String> {
        let wrong = |error| format!("Cannot start `conformance-server`: {error}.");
        std::fs::create_dir_all(suite::results()).map_err(wrong)?;
        let log = suite::results().join("server.log");
        let out = File::create(&log).map_err(wrong)?;
        let port = free_port();
        let mut command = Command::new(suite::binaries().join("conformance-server"));
        command.args(["--port", &port.to_string()]).args(told).stdin(Stdio::null());
        command.stderr(out.try_clone().map_err(wrong)?).stdout(out);
        let mut server = Server { child: command.spawn().map_err(wrong)?, port, log, proxy: None };
        server.listens(port)?;
        Ok(server)
    }

    /// Waits until a server listens on `port`.
    fn listens(&mut self, port: u16) -> Result<(), String> {
        let end = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            self.still_runs()?;
            if Instant::now() > end {
                let seconds = START.as_secs();
                return Err(format!(
                    "Nobody listened on port {port} within {seconds} s; see `{}`.",
                    self.log.display()
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Fails if the server answers a request that has no token with anything but 401.
    fn is_closed(&self) -> Result<(), String> {
        let wrong = |error| format!("`conformance-server` cannot be asked: {error}.");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(wrong)?;
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(head.as_bytes()).map_err(wrong)?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).map_err(wrong)?;
        match &answer {
            b"HTTP/1.1 401" => Ok(()),
            other => Err(format!(
                "`conformance-server --protected` lets a request in without a token: `{}`.",
                String::from_utf8_lossy(other)
            )),
        }
    }

    /// Puts the one in front that gives every request the server's token.
    fn hand_token(&mut self) -> Result<(), String> {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let token = said.lines().find_map(|line| line.strip_prefix("token "));
        let token = token.ok_or("`conformance-server --protected` printed no token.")?;
        let wrong = |error| format!("`with-token.mjs` did not start: {error}.");
        let port = free_port();
        let mut node = Command::new("node");
        node.arg(run::root().join("conformance/suite/with-token.mjs"));
        node.args([&port.to_string(), &self.port.to_string(), token]);
        let child = node.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(wrong)?;
        self.proxy = Some((child, port));
        self.listens(port)
    }
}

impl Shown for Server {
    fn url(&self) -> String {
        let port = self.proxy.as_ref().map_or(self.port, |(_, port)| *port);
        format!("http://127.0.0.1:{port}/mcp")
    }

    fn still_runs(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!(
                "`conformance-server` ended with {status}; see `{}`.",
                self.log.display()
            )),
            Err(error) => Err(format!("Cannot wait for `conformance-server`: {error}.")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let proxy = self.proxy.as_mut().map(|(child, _)| child);
        for child in std::iter::once(&mut self.child).chain(proxy) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A run: its name, what the suite is told, how many scenarios are scored and not scored, and how
/// many checks can succeed. The last keeps an excuse from being used where there is none.
type Run = (&'static str, &'static [&'static str], (usize, usize), usize);

const OLD: Run = ("requirements 2025-11-25", &["--requirements", "2025-11-25"], (30, 3), 84);
const NEW: Run = ("requirements 2026-07-28", &["--requirements", "2026-07-28"], (37, 13), 197);
const REQUIRED: &[Run] = &[OLD, NEW];
const RUNS: &[Run] = &[
    OLD,
    NEW,
    ("all", &["--suite", "all"], (65, 0), 276),
    ("all at 2025-06-18", &["--suite", "all", "--spec-version", "2025-06-18"], (27, 0), 56),
    ("all at 2025-03-26", &["--suite", "all", "--spec-version", "2025-03-26"], (1, 0), 3),
];
/// One check of each set asks for streams.
const IN_JSON: &[Run] = &[
    ("requirements 2025-11-25", &["--requirements", "2025-11-25"], (30, 3), 83),
    ("requirements 2026-07-28", &["--requirements", "2026-07-28"], (37, 13), 196),
];
const NEWEST: &str = "2026-07-28";
const LIMIT: Duration = Duration::from_secs(180);
const START: Duration = Duration::from_secs(20);
