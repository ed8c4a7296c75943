//! A gateway alone, one of several, and a call that another of them forwards → what being one of several costs.

mod report;
mod stage;

use self::stage::Stage;
use super::counted::{Measurement, count};
use super::figures::{Figures, Sample, needed};
use super::programs::{self, Programs};
use super::{load_average, rounds, verdict, write_result};
use crate::free_ports::free_port;
use crate::run;
use std::fmt;

/// Runs the benchmark. A missed target is a figure, not an error; a gateway that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    run::install_missing("Replicas need", run::SERVERS)?;
    let programs = Programs::build([&programs::BARE.stdio, &programs::DRIVER])?;
    let trunkline = programs::trunkline()?;
    let stage = Stage::set(&trunkline, &programs.path(&programs::BARE.stdio))?;
    let mut results = Results::new(&options);
    results.idle = stage.commands_of(|| {
        std::thread::sleep(IDLE);
        Ok(())
    })?;
    for case in &CASES {
        let counted =
            stage.commands_of(|| measure(&programs, &stage, &options, case, &mut results));
        match counted {
            Ok(commands) => results.commands.push((case, commands)),
            Err(sentence) => results.figures.fail(case, "driver", &sentence),
        }
    }
    if !options.is_quick {
        results.instructions = instructions(&programs, &stage, &trunkline.display().to_string());
    }
    drop(stage);
    let text = report::text(&results);
    print!("{text}");
    if !options.is_quick {
        write_result("replicas.md", &text)?;
    }
    verdict(&results.figures.failures)
}

struct Options {
    rounds: usize,
    milliseconds: u32,
    is_quick: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options { rounds: 31, milliseconds: 250, is_quick: false };
        super::options(args, "replicas", USAGE, |word, value| {
            match word {
                "--quick" => (options.rounds, options.is_quick) = (5, true),
                "--rounds" => options.rounds = rounds(value()?, USAGE)?,
                "--milliseconds" => {
                    let number = value()?.parse().ok().filter(|number| *number > 0);
                    options.milliseconds =
                        number.ok_or(format!("`{word}` takes a number above zero.\n\n{USAGE}"))?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(options)
    }
}

/// What is called, and by how many connections.
#[derive(Clone, Copy, PartialEq)]
struct Case {
    revision: &'static str,
    connections: u32,
    labels: &'static [&'static str],
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.revision, self.connections)
    }
}

/// How often a command reached Redis, by its name, and for how many calls.
#[derive(Default)]
struct Commands {
    seconds: f64,
    by_name: Vec<(String, u64)>,
}

impl Commands {
    fn all(&self) -> u64 {
        self.by_name.iter().map(|(_, count)| count).sum()
    }

    /// So many a second.
    fn rate(&self) -> f64 {
        self.all() as f64 / self.seconds.max(0.001)
    }
}

struct Results {
    figures: Figures,
    /// How many calls each case made of those who share a store.
    calls: Vec<(&'static Case, u64)>,
    commands: Vec<(&'static Case, Commands)>,
    idle: Commands,
    /// Of a call alone and as one of several; the sentence says why there are none.
    instructions: Result<[f64; 2], String>,
}

impl Results {
    fn new(options: &Options) -> Results {
        Results {
            figures: Figures::new(options.rounds, load_average()),
            calls: Vec::new(),
            commands: Vec::new(),
            idle: Commands::default(),
            instructions: Err("they were not counted".to_owned()),
        }
    }
}

/// All turns of a case.
fn measure(
    programs: &Programs,
    stage: &Stage,
    options: &Options,
    case: &'static Case,
    results: &mut Results,
) -> Result<(), String> {
    eprintln!("{case}: {}", case.labels.join(", "));
    let [rounds, milliseconds, connections] =
        [options.rounds as u32, options.milliseconds, case.connections].map(|it| it.to_string());
    let mut words = vec!["replicas", "--revision", case.revision, "--tool", "e.echo"];
    words.extend(["--rounds", &rounds, "--milliseconds", &milliseconds]);
    words.extend(["--connections", &connections, "--"]);
    let parties: Vec<[String; 4]> = case.labels.iter().map(|label| stage.party(label)).collect();
    words.extend(parties.iter().flatten().map(String::as_str));
    let said = programs.drive(&words)?;
    let mut calls = 0.0;
    for line in said.lines() {
        let is_it = |label: &&str| line.contains(&format!("\"label\":\"{label}\""));
        let label = case.labels.iter().copied().find(is_it);
        let label = label.ok_or_else(|| format!("the driver speaks of nobody: {line}"))?;
        results.figures.add(case, label, Sample::read(line, "gateway_cpu_us", None)?);
        if label != ALONE {
            calls += needed(line, "calls")?;
        }
    }
    results.calls.push((case, calls as u64));
    Ok(())
}

/// The instructions of a call of a session, alone and as one of several.
fn instructions(programs: &Programs, stage: &Stage, trunkline: &str) -> Result<[f64; 2], String> {
    programs::ensure("valgrind")?;
    let child = programs.path(&programs::BARE.stdio);
    let measurement = |name: &str, config: &str| {
        let load = ["gateway", "--label", name, "--revision", SESSION, "--connections", "1"];
        let how = ["--path", "/mcp", "--tool", "e.echo", "--child", &child, "--config", config];
        let words = "serve --config {config} --listen 127.0.0.1:{port} --state {folder}";
        let command = [trunkline].into_iter().chain(words.split(' ')).map(str::to_owned);
        Measurement::new(
            &format!("replicas {name}"),
            &[&load[..], &how].concat(),
            command.collect(),
        )
    };
    let [alone, shared] = [stage.config(None), stage.config(Some(free_port()))];
    let both = [measurement(ALONE, &alone), measurement(OWNER, &shared)];
    let counted = count(programs, &both.iter().collect::<Vec<_>>());
    let mut each = counted.into_iter().map(|it| it.map(|it| it.instructions));
    let mut next = || each.next().unwrap_or_else(|| Err("nobody counted it.".to_owned()));
    Ok([next()?, next()?])
}

pub const USAGE: &str = "\
cargo xtask bench replicas [OPTIONS]
  --rounds N            turns of each gateway (31), of which the median counts
  --milliseconds N      how long a turn takes (250)
  --quick               five turns; nothing is written";

/// A gateway without a store.
const ALONE: &str = "alone";
/// A gateway that shares a store with another, called where the sessions are.
const OWNER: &str = "owner";
/// The same, called at the other one.
const FORWARDED: &str = "forwarded";

const SESSION: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
const CASES: [Case; 3] = [
    Case { revision: SESSION, connections: 16, labels: &[ALONE, OWNER] },
    Case { revision: STATELESS, connections: 16, labels: &[ALONE, OWNER] },
    Case { revision: SESSION, connections: 1, labels: &[ALONE, OWNER, FORWARDED] },
];
/// How long nobody calls, to see what Redis is told then.
const IDLE: std::time::Duration = std::time::Duration::from_secs(6);

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    #[test]
    fn options_that_measure_nothing_are_refused() {
        for line in ["--rounds 2", "--milliseconds 0", "--only alone"] {
            assert!(Options::parse(&words(line)).is_err(), "{line}");
        }
        assert!(Options::parse(&words("--quick")).is_ok_and(|it| it.is_quick));
    }
}
