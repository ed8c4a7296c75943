//! The stdio servers → what a call costs here, in a bare loop and in rmcp, and whether the targets are met.

use super::counted::Measurement;
use super::figures::{Ratio, needed};
use super::gateway::cases::{SESSION, STATELESS};
use super::programs::{self, Program, Programs};
use super::{
    Bench, keep_only, load_average, median, number, rounds, thousands, verdict, write_result,
};

/// Runs the benchmark. A missed target is a figure, not an error; a server that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let bench = Bench::build(options)?;
    let mut results = Results::default();
    bench.measure(&mut results);
    match programs::ensure("valgrind") {
        Ok(()) => bench.count_instructions(&mut results),
        Err(sentence) => {
            eprintln!("{sentence}");
            results.no_instructions = Some(sentence);
        }
    }
    let text = bench.table(&results);
    print!("{}", if bench.options.json { bench.json(&results) } else { text.clone() });
    if bench.options.is_whole() && results.failures.is_empty() {
        write_result("stdio.md", &text)?;
    }
    verdict(&results.failures)
}

struct Options {
    rounds: usize,
    quick: bool,
    json: bool,
    /// The one revision that is measured, instead of both.
    revision: Option<String>,
    servers: Vec<&'static Server>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            rounds: 3,
            quick: false,
            json: false,
            revision: None,
            servers: SERVERS.iter().collect(),
        };
        super::options(args, "stdio", USAGE, |word, value| {
            match word {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--revision" => options.revision = Some(value()?.into()),
                "--rounds" => options.rounds = rounds(value()?, USAGE)?,
                "--only" => keep_only(&mut options.servers, |it| it.label, value()?, USAGE)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(options)
    }

    /// Whether everything is measured, for as long as it should be.
    fn is_whole(&self) -> bool {
        !self.quick && self.revision.is_none() && self.servers.len() == SERVERS.len()
    }

    fn cases(&self) -> impl Iterator<Item = &'static Case> {
        let is_meant = |case: &&Case| self.revision.as_deref().is_none_or(|it| it == case.revision);
        CASES.iter().filter(is_meant)
    }

    fn milliseconds(&self) -> usize {
        if self.quick { 300 } else { 1000 }
    }

    fn callgrind_calls(&self) -> usize {
        if self.quick { 500 } else { 2000 }
    }
}

/// A program measured, started with these arguments.
struct Server {
    label: &'static str,
    program: &'static Program,
    args: &'static [&'static str],
}

struct Case {
    name: &'static str,
    revision: &'static str,
    mode: &'static str,
    payload: usize,
}

struct Target {
    case: &'static str,
    figure: Figure,
    factor: f64,
    of: &'static str,
}

/// What two servers are compared by.
#[derive(Clone, Copy, PartialEq)]
enum Figure {
    CallsPerSecond,
    /// The other's CPU of a call, by ours.
    Cpu,
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::CallsPerSecond => "calls a second",
            Self::Cpu => "CPU of a call",
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Sample {
    calls_per_s: f64,
    server_cpu_us: f64,
    /// Only sequential calls have a latency of their own.
    latency_us: Option<(f64, f64)>,
}

#[derive(Default)]
struct Results {
    samples: Vec<(&'static str, &'static str, Sample)>,
    instructions: Vec<(&'static str, &'static str, u64)>,
    no_instructions: Option<String>,
    failures: Vec<String>,
}

impl Results {
    /// The median of each figure over the rounds; `None` when the server failed or was left out.
    fn median(&self, case: &str, label: &str) -> Option<Sample> {
        let all: Vec<Sample> =
            self.samples.iter().filter(|s| s.0 == case && s.1 == label).map(|s| s.2).collect();
        let latency = |pick: fn((f64, f64)) -> f64| {
            median(all.iter().filter_map(|s| s.latency_us.map(pick)).collect())
        };
        Some(Sample {
            calls_per_s: median(all.iter().map(|s| s.calls_per_s).collect())?,
            server_cpu_us: median(all.iter().map(|s| s.server_cpu_us).collect())?,
            latency_us: latency(|l| l.0).zip(latency(|l| l.1)),
        })
    }

    fn ratio(&self, case: &str, figure: Figure, label: &str, to: &str) -> Option<Ratio> {
        let all = |label: &str, pick: fn(&Sample) -> f64| {
            let samples = self.samples.iter().filter(|s| s.0 == case && s.1 == label);
            samples.map(|s| pick(&s.2)).collect()
        };
        match figure {
            Figure::CallsPerSecond => {
                Ratio::of(all(label, |s| s.calls_per_s), all(to, |s| s.calls_per_s))
            }
            Figure::Cpu => Ratio::of(all(to, |s| s.server_cpu_us), all(label, |s| s.server_cpu_us)),
        }
    }

    fn target(&self, target: &Target) -> Option<Ratio> {
        self.ratio(target.case, target.figure, OURS, target.of)
    }

    fn has_failed(&self, server: &Server) -> bool {
        self.failures.iter().any(|sentence| sentence.starts_with(&format!("`{}`", server.label)))
    }
}

impl Bench<Options> {
    fn build(options: Options) -> Result<Bench<Options>, String> {
        let servers = options.servers.iter().map(|server| server.program);
        let programs = Programs::build(servers.chain([&programs::DRIVER]))?;
        Ok(Bench { options, programs })
    }

    /// Every server once per case and round, in turn, so that a slow minute of the machine hits them all.
    fn measure(&self, results: &mut Results) {
        let milliseconds = self.options.milliseconds().to_string();
        for round in 0..self.options.rounds {
            for case in self.options.cases() {
                let servers = self.options.servers.len();
                for turn in 0..servers * case.turns() {
                    let server = self.options.servers[(turn + round) % servers];
                    if results.has_failed(server) {
                        continue;
                    }
                    eprintln!(
                        "round {} of {}: {}, {}",
                        round + 1,
                        self.options.rounds,
                        case.name,
                        server.label
                    );
                    let amount = ["--milliseconds", &milliseconds];
                    let words = self.measurement(server, case).words(&amount, &[]);
                    match self.programs.drive(&words).and_then(|report| sample(&report)) {
                        Ok(sample) => results.samples.push((case.name, server.label, sample)),
                        Err(sentence) => {
                            results.failures.push(format!("`{}` failed: {sentence}", server.label))
                        }
                    }
                }
            }
        }
    }

    /// Instructions of 2 N calls less those of N: start and end cancel out.
    fn count_instructions(&self, results: &mut Results) {
        let calls = self.options.callgrind_calls();
        for case in self.options.cases().filter(|case| case.is_counted()) {
            for server in &self.options.servers {
                if results.has_failed(server) {
                    continue;
                }
                eprintln!("counting instructions: {}, {}", case.name, server.label);
                let counted = self
                    .instructions(server, case, calls)
                    .and_then(|once| Ok((once, self.instructions(server, case, 2 * calls)?)))
                    .map(|(once, twice)| twice.saturating_sub(once) / calls as u64);
                match counted {
                    Ok(count) => results.instructions.push((case.name, server.label, count)),
                    Err(sentence) => results
                        .failures
                        .push(format!("`{}` failed under callgrind: {sentence}", server.label)),
                }
            }
        }
    }

    fn instructions(&self, server: &Server, case: &Case, calls: usize) -> Result<u64, String> {
        let amount = ["--deadline", "300", "--calls", &calls.to_string()];
        let callgrind = self.programs.callgrind(server.label);
        let words = self.measurement(server, case).words(&amount, &callgrind.command);
        self.programs.drive(&words)?;
        Ok(callgrind.profile()?.instructions)
    }

    /// One case of one server, as the driver is told it.
    fn measurement(&self, server: &Server, case: &Case) -> Measurement {
        let payload = case.payload.to_string();
        let mut load = vec!["stdio", "--label", server.label];
        load.extend(["--revision", case.revision, "--mode", case.mode]);
        load.extend(["--payload", &payload]);
        let program = self.programs.path(server.program);
        let arguments = server.args.iter().map(|word| (*word).to_owned());
        Measurement::new(server.label, &load, [program].into_iter().chain(arguments).collect())
    }

    fn table(&self, results: &Results) -> String {
        let mut out = format!(
            "{HEAD}Medians of {} interleaved rounds, three times as many of short texts in flight, and behind a ratio the least\nand the most of the rounds' own",
            self.options.rounds
        );
        out += &format!(", load average {} when they ended.\n\n", load_average());
        out += "## Targets\n\n| | | target | measured | |\n|---|---|---|---|---|\n";
        for target in &TARGETS {
            let Target { case, figure, factor, of } = target;
            let ratio = results.target(target);
            let is_met = ratio.is_some_and(|it| it.of_medians >= *factor);
            let mark = if is_met { '✓' } else { '✗' };
            let measured = ratio.map_or("not measured".into(), |it| it.to_string());
            let figure = figure.name();
            out += &format!(
                "| {case} | {figure}, to `{of}` | ≥ {factor:.2} | {measured} | {mark} |\n"
            );
        }
        out += "\n## Figures\n\n| case | | calls/s | ÷ bare | CPU | bare ÷ it | p50 | p99 | instructions |\n";
        out += "|---|---|---|---|---|---|---|---|---|\n";
        for case in self.options.cases() {
            for server in &self.options.servers {
                out += &row(results, case, server.label);
            }
        }
        if let Some(sentence) = &results.no_instructions {
            out += &format!("\n{sentence}\n");
        }
        out
    }

    fn json(&self, results: &Results) -> String {
        let mut measurements = Vec::new();
        for case in self.options.cases() {
            for server in &self.options.servers {
                let Some(median) = results.median(case.name, server.label) else { continue };
                let latency = median.latency_us.map_or(String::new(), |(p50, p99)| {
                    format!(r#","p50_us":{p50},"p99_us":{p99}"#)
                });
                measurements.push(format!(
                    r#"{{"case":"{}","server":"{}","calls_per_s":{},"server_cpu_us":{}{latency}}}"#,
                    case.name, server.label, median.calls_per_s, median.server_cpu_us
                ));
            }
        }
        let instructions: Vec<String> = results
            .instructions
            .iter()
            .map(|(case, label, count)| {
                format!(r#"{{"case":"{case}","server":"{label}","count":{count}}}"#)
            })
            .collect();
        let targets: Vec<String> = TARGETS
            .iter()
            .map(|target| {
                let ratio = results.target(target);
                format!(
                    r#"{{"case":"{}","figure":"{}","of":"{}","at_least":{},"ratio":{},"met":{}}}"#,
                    target.case,
                    target.figure.name(),
                    target.of,
                    target.factor,
                    ratio.map_or("null".into(), |r| format!("{:.4}", r.of_medians)),
                    ratio.is_some_and(|r| r.of_medians >= target.factor)
                )
            })
            .collect();
        format!(
            "{{\"rounds\":{},\"load_average\":{},\"measurements\":[{}],\"instructions_per_call\":[{}],\"targets\":[{}]}}\n",
            self.options.rounds,
            load_average(),
            measurements.join(","),
            instructions.join(","),
            targets.join(",")
        )
    }
}

/// What was measured of a server in a case.
fn row(results: &Results, case: &Case, label: &str) -> String {
    let Some(median) = results.median(case.name, label) else {
        return format!("| {} | {label} | failed | | | | | | |\n", case.name);
    };
    let ratio = |figure| {
        results
            .ratio(case.name, figure, label, "bare")
            .map_or("–".into(), |it| format!("{:.2}", it.of_medians))
    };
    let latency = |it: Option<f64>| it.map_or("–".into(), |us| format!("{us:.0} µs"));
    let counted = results.instructions.iter().find(|it| (it.0, it.1) == (case.name, label));
    format!(
        "| {} | {label} | {} | {} | {:.2} µs | {} | {} | {} | {} |\n",
        case.name,
        thousands(median.calls_per_s as u64),
        ratio(Figure::CallsPerSecond),
        median.server_cpu_us,
        ratio(Figure::Cpu),
        latency(median.latency_us.map(|it| it.0)),
        latency(median.latency_us.map(|it| it.1)),
        counted.map_or("–".into(), |it| thousands(it.2)),
    )
}

impl Case {
    /// How often it is measured in a round: where a call takes a microsecond, what else the machine does moves a figure most.
    fn turns(&self) -> usize {
        if self.is_counted() { 3 } else { 1 }
    }

    /// Whether its instructions are counted: short texts, without waiting.
    fn is_counted(&self) -> bool {
        self.mode == PIPELINED && self.payload == SHORT
    }
}

fn sample(report: &str) -> Result<Sample, String> {
    Ok(Sample {
        calls_per_s: needed(report, "calls_per_s")?,
        server_cpu_us: needed(report, "server_cpu_us")?,
        latency_us: number(report, "p50_us").zip(number(report, "p99_us")),
    })
}

pub const USAGE: &str = "\
cargo xtask bench stdio [OPTIONS]
  --rounds N            interleaved rounds, 3 or more (3)
  --quick               shorter measurements
  --json                one JSON object instead of the table
  --revision REVISION   2025-11-25 or 2026-07-28 alone
  --only LABEL,…        of `bare`, `trunkline`, `rmcp-stdio` and `rmcp-pipes`";

const OURS: &str = "trunkline";

static SERVERS: [Server; 4] = [
    Server { label: "bare", program: &programs::BARE.stdio, args: &[] },
    Server { label: OURS, program: &programs::TRUNKLINE.stdio, args: &[] },
    Server { label: "rmcp-stdio", program: &programs::RMCP.stdio, args: &[] },
    Server { label: "rmcp-pipes", program: &programs::RMCP.stdio, args: &["pipes"] },
];

const fn case(
    name: &'static str,
    revision: &'static str,
    mode: &'static str,
    payload: usize,
) -> Case {
    Case { name, revision, mode, payload }
}

static CASES: [Case; 8] = [
    case("2025-11-25, one at a time, 100 B", SESSION, ONE, SHORT),
    case("2025-11-25, 64 in flight, 100 B", SESSION, PIPELINED, SHORT),
    case("2025-11-25, one at a time, 64 KB", SESSION, ONE, LONG),
    case("2025-11-25, 64 in flight, 64 KB", SESSION, PIPELINED, LONG),
    case("2026-07-28, one at a time, 100 B", STATELESS, ONE, SHORT),
    case("2026-07-28, 64 in flight, 100 B", STATELESS, PIPELINED, SHORT),
    case("2026-07-28, one at a time, 64 KB", STATELESS, ONE, LONG),
    case("2026-07-28, 64 in flight, 64 KB", STATELESS, PIPELINED, LONG),
];

const fn target(case: usize, figure: Figure, factor: f64, of: &'static str) -> Target {
    Target { case: CASES[case].name, figure, factor, of }
}

static TARGETS: [Target; 10] = [
    target(0, Figure::Cpu, 0.90, "bare"),
    target(1, Figure::Cpu, 0.60, "bare"),
    target(4, Figure::Cpu, 0.90, "bare"),
    target(5, Figure::Cpu, 0.60, "bare"),
    target(1, Figure::CallsPerSecond, 15.0, "rmcp-stdio"),
    target(1, Figure::CallsPerSecond, 2.0, "rmcp-pipes"),
    target(2, Figure::CallsPerSecond, 0.70, "bare"),
    target(2, Figure::CallsPerSecond, 2.0, "rmcp-stdio"),
    target(3, Figure::CallsPerSecond, 0.70, "bare"),
    target(3, Figure::CallsPerSecond, 2.0, "rmcp-stdio"),
];

const ONE: &str = "sequential";
const PIPELINED: &str = "pipelined";
const SHORT: usize = 100;
const LONG: usize = 64 * 1024;

const HEAD: &str = "# `tools/call` over stdio\n\n\
    Written by `cargo xtask bench stdio`: the driver has one core and the server the other, and every answer was checked.\n\
    `bare` is serde_json with nothing around it: it reads a line, parses it and writes the answer. `rmcp-stdio` and\n\
    `rmcp-pipes` are rmcp 3.8 over `stdio()` and `stdio_pipes()`, with a runtime of one thread as the others have; the former\n\
    reads and writes on further threads, which tokio starts for that. All are built with one profile. CPU is the server's for one call; instructions are counted by callgrind.\n";

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    #[test]
    fn the_drivers_report_becomes_a_sample() {
        let report = r#"{"calls":9,"calls_per_s":1234.5,"label":"bare","p50_us":43.1,"p99_us":66.0,"server_cpu_us":14.9}"#;
        let sample = sample(report).expect("all keys are there");
        assert_eq!(
            (sample.calls_per_s, sample.server_cpu_us, sample.latency_us),
            (1234.5, 14.9, Some((43.1, 66.0)))
        );
        assert!(super::sample(r#"{"calls":9}"#).is_err());
    }

    #[test]
    fn one_slow_round_does_not_move_the_ratio() {
        let mut results = Results::default();
        for calls_per_s in [100.0, 90.0, 3.0] {
            results.samples.push(("case", "bare", Sample { calls_per_s, ..Sample::default() }));
            results.samples.push((
                "case",
                OURS,
                Sample { calls_per_s: calls_per_s / 2.0, ..Sample::default() },
            ));
        }
        let ratio = |to| Some(results.ratio("case", Figure::CallsPerSecond, OURS, to)?.of_medians);
        assert_eq!(ratio("bare"), Some(0.5));
        assert_eq!(ratio("rmcp-stdio"), None);
    }

    #[test]
    fn fewer_than_three_rounds_are_refused() {
        let parse = |line| Options::parse(&words(line));
        assert!(parse("--rounds 2").is_err());
        assert_eq!(parse("--rounds 5").map(|o| o.rounds), Ok(5));
        assert!(parse("--only bare,nobody").is_err());
    }
}
