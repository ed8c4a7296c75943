//! `conformance-client` shown to the suite: in its sets, and every scenario alone.

use super::checks::{Check, Scenario, Status};
use super::report::Report;
use super::suite::{self, Offer, Ran, Required, Role};
use std::process::ExitStatus;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Both requirement sets and the run of all.
pub fn run(report: &mut Report) -> Result<(), String> {
    for (name, args, count) in RUNS {
        let wanted = match args {
            ["--requirements", revision] => suite::required(Role::Client, revision)?,
            _ => {
                let names = suite::offers(Role::Client)?.into_iter().map(|offer| offer.name);
                Required { scored: names.collect(), unscored: Vec::new() }
            }
        };
        let listed = (wanted.scored.len(), wanted.unscored.len());
        if listed != *count {
            report.complain(format!("{name}: the suite lists {listed:?} scenarios, not {count:?}"));
        }
        let args = [COMMAND, *args].concat();
        let folder = format!("client {name}").replace(' ', "-");
        let ran = suite::run(Role::Client, &folder, &args, LIMIT)?;
        report.add(&format!("client {name}"), &wanted, &ran);
    }
    Ok(())
}

/// Every scenario by itself at every revision it is meant for, so that the client's exit code,
/// warnings and timeouts count. With a name, that one; whether there was any.
pub fn alone(report: &mut Report, only: Option<&str>) -> Result<bool, String> {
    let offers = suite::offers(Role::Client)?;
    let is_it = |offer: &Offer| only.is_none_or(|name| offer.name == name);
    let kept: Vec<Offer> = offers.into_iter().filter(is_it).collect();
    if kept.is_empty() {
        return Ok(false);
    }
    for revision in REVISIONS {
        let names: Vec<&str> =
            kept.iter().filter(|o| o.is_for(revision)).map(|o| o.name.as_str()).collect();
        if !names.is_empty() {
            at(report, revision, &names)?;
        }
    }
    Ok(true)
}

/// These scenarios at one revision, each a run of its own, a few at once.
fn at(report: &mut Report, revision: &str, names: &[&str]) -> Result<(), String> {
    let start = Instant::now();
    let waiting = Mutex::new(names.iter());
    let ended = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    // Taken in a statement of its own, or the lock would be held during the run.
                    let next = waiting.lock().expect("no run panics").next();
                    let Some(name) = next else { break };
                    let ran = by_itself(name, revision);
                    ended.lock().expect("no run panics").push((*name, ran));
                }
            });
        }
    });
    let mut ended = ended.into_inner().expect("no run panics");
    ended.sort_by_key(|(name, _)| *name);

    let mut scenarios = Vec::new();
    for (name, ran) in ended {
        let mut ran = ran?;
        let ended_badly = process(&ran);
        if ran.scenarios.is_empty() {
            ran.scenarios.push(Scenario { name: name.to_owned(), checks: Vec::new() });
        }
        ran.scenarios[0].checks.extend(ended_badly);
        scenarios.append(&mut ran.scenarios);
    }
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let wanted = Required { scored: names, unscored: Vec::new() };
    let log = suite::results().join("alone").join(revision);
    let status = Some(ExitStatus::default());
    let ran = Ran { scenarios, status, time: start.elapsed(), log };
    report.add(&format!("client alone at {revision}"), &wanted, &ran);
    Ok(())
}

fn by_itself(name: &str, revision: &str) -> Result<Ran, String> {
    let args = [COMMAND, &["--scenario", name, "--spec-version", revision, "--force"]].concat();
    let folder = format!("alone/{revision}/{}", name.replace('/', "-"));
    suite::run(Role::Client, &folder, &args, LIMIT)
}

/// One more check: that the client ended well and in time, which the suite minds in such a run.
fn process(ran: &Ran) -> Option<Check> {
    let log = std::fs::read_to_string(&ran.log).unwrap_or_default();
    let said = log.lines().find_map(|line| line.find("CLIENT ").map(|at| &line[at..]));
    let found =
        ran.scenarios.iter().any(|scenario| !scenario.judge(&|_, _| None).against.is_empty());
    let message = match (ran.status, said) {
        (None, _) => "the suite did not end in time".to_owned(),
        (Some(status), _) if status.success() => return None,
        (Some(_), Some(said)) => said.to_owned(),
        // The checks say already why it is not content.
        (Some(_), None) if found => return None,
        (Some(status), None) => format!("the suite ended with {status}"),
    };
    let (id, name) = ("process".to_owned(), "Process".to_owned());
    Some(Check { id, name, status: Status::Failure, message })
}

impl Offer {
    /// An extension belongs to no revision; its scenarios must hold in both eras.
    fn is_for(&self, revision: &str) -> bool {
        match self.revisions.as_slice() {
            [] => ERAS.contains(&revision),
            revisions => revisions.iter().any(|own| own == revision),
        }
    }
}

/// Each run: its name, what the suite is told, and how many scenarios are scored and not scored.
const RUNS: &[(&str, &[&str], (usize, usize))] = &[
    ("requirements 2025-11-25", &["--requirements", "2025-11-25"], (18, 7)),
    ("requirements 2026-07-28", &["--requirements", "2026-07-28"], (32, 7)),
    ("all", &["--suite", "all"], (48, 0)),
];
const COMMAND: &[&str] = &["--command", "./conformance-client"];
const REVISIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const ERAS: &[&str] = &["2025-11-25", "2026-07-28"];
const AT_ONCE: usize = 2;
const LIMIT: Duration = Duration::from_secs(120);
