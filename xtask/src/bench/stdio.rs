//! The stdio servers → what a call costs here, in a bare loop and in rmcp, and whether the targets are met.

use super::counted::Measurement;
use super::figures::needed;
use super::programs::{self, Program, Programs};
use super::{Bench, keep_only, load_average, median, number, rounds, thousands, verdict};

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
    print!("{}", if bench.options.json { bench.json(&results) } else { bench.table(&results) });
    verdict(&results.failures)
}

struct Options {
    rounds: usize,
    quick: bool,
    json: bool,
    revision: String,
    servers: Vec<&'static Server>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options {
            rounds: 3,
            quick: false,
            json: false,
            revision: "2025-11-25".into(),
            servers: SERVERS.iter().collect(),
        };
        super::options(args, "stdio", USAGE, |word, value| {
            match word {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--revision" => options.revision = value()?.into(),
                "--rounds" => options.rounds = rounds(value()?, USAGE)?,
                "--only" => keep_only(&mut options.servers, |it| it.label, value()?, USAGE)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(options)
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
    mode: &'static str,
    payload: usize,
}

struct Target {
    case: &'static str,
    factor: f64,
    of: &'static str,
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
    instructions: Vec<(&'static str, u64)>,
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

    fn ratio(&self, case: &str, label: &str, to: &str) -> Option<f64> {
        Some(self.median(case, label)?.calls_per_s / self.median(case, to)?.calls_per_s)
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
            for case in &CASES {
                for turn in 0..self.options.servers.len() {
                    let server = self.options.servers[(turn + round) % self.options.servers.len()];
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
        for server in &self.options.servers {
            if results.has_failed(server) {
                continue;
            }
            eprintln!("counting instructions: {}", server.label);
            let counted = self
                .instructions(server, calls)
                .and_then(|once| Ok((once, self.instructions(server, 2 * calls)?)))
                .map(|(once, twice)| twice.saturating_sub(once) / calls as u64);
            match counted {
                Ok(count) => results.instructions.push((server.label, count)),
                Err(sentence) => results
                    .failures
                    .push(format!("`{}` failed under callgrind: {sentence}", server.label)),
            }
        }
    }

    fn instructions(&self, server: &Server, calls: usize) -> Result<u64, String> {
        let amount = ["--deadline", "300", "--calls", &calls.to_string()];
        let callgrind = self.programs.callgrind(server.label);
        let words = self.measurement(server, &CASES[1]).words(&amount, &callgrind.command);
        self.programs.drive(&words)?;
        Ok(callgrind.profile()?.instructions)
    }

    /// One case of one server, as the driver is told it.
    fn measurement(&self, server: &Server, case: &Case) -> Measurement {
        let payload = case.payload.to_string();
        let mut load = vec!["stdio", "--label", server.label];
        load.extend(["--revision", &self.options.revision, "--mode", case.mode]);
        load.extend(["--payload", &payload]);
        let program = self.programs.path(server.program);
        let arguments = server.args.iter().map(|word| (*word).to_owned());
        Measurement::new(server.label, &load, [program].into_iter().chain(arguments).collect())
    }

    fn table(&self, results: &Results) -> String {
        let mut out = format!(
            "`tools/call` of `echo` over stdio in {}, medians of {} interleaved rounds, load average {}\n",
            self.options.revision,
            self.options.rounds,
            load_average()
        );
        for case in &CASES {
            out += &format!(
                "\n{:<26}{:>10}{:>9}{:>14}{:>14}{:>13}{:>10}{:>10}\n",
                case.name,
                "calls/s",
                "÷ bare",
                "÷ rmcp stdio",
                "÷ rmcp pipes",
                "server CPU",
                "p50",
                "p99"
            );
            for server in &self.options.servers {
                let Some(median) = results.median(case.name, server.label) else {
                    out += &format!("  {:<24}{:>10}\n", server.label, "failed");
                    continue;
                };
                let ratio = |to| {
                    results
                        .ratio(case.name, server.label, to)
                        .map_or("–".into(), |r| format!("{r:.2}"))
                };
                let latency = |l: Option<f64>| l.map_or("–".into(), |us| format!("{us:.0} µs"));
                out += &format!(
                    "  {:<24}{:>10}{:>9}{:>14}{:>14}{:>13}{:>10}{:>10}\n",
                    server.label,
                    thousands(median.calls_per_s as u64),
                    ratio("bare"),
                    ratio("rmcp-stdio"),
                    ratio("rmcp-pipes"),
                    format!("{:.2} µs", median.server_cpu_us),
                    latency(median.latency_us.map(|l| l.0)),
                    latency(median.latency_us.map(|l| l.1)),
                );
            }
        }
        out += &format!("\ninstructions per call, {} (callgrind)\n", CASES[1].name);
        if let Some(sentence) = &results.no_instructions {
            out += &format!("  {sentence}\n");
        }
        for (label, count) in &results.instructions {
            out += &format!("  {label:<24}{:>10}\n", thousands(*count));
        }
        out += "\ntargets for trunkline\n";
        for target in &TARGETS {
            let (mark, measured) = match results.ratio(target.case, OURS, target.of) {
                Some(ratio) => {
                    (if ratio >= target.factor { '✓' } else { '✗' }, format!("{ratio:.2}"))
                }
                None => ('✗', "not measured".into()),
            };
            out += &format!(
                "  {mark} {:<26}≥ {:>5.2} × {:<12}{measured:>8}\n",
                target.case, target.factor, target.of
            );
        }
        out
    }

    fn json(&self, results: &Results) -> String {
        let mut measurements = Vec::new();
        for case in &CASES {
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
            .map(|(label, count)| format!(r#""{label}":{count}"#))
            .collect();
        let targets: Vec<String> = TARGETS
            .iter()
            .map(|target| {
                let ratio = results.ratio(target.case, OURS, target.of);
                format!(
                    r#"{{"case":"{}","of":"{}","at_least":{},"ratio":{},"met":{}}}"#,
                    target.case,
                    target.of,
                    target.factor,
                    ratio.map_or("null".into(), |r| format!("{r:.4}")),
                    ratio.is_some_and(|r| r >= target.factor)
                )
            })
            .collect();
        format!(
            "{{\"revision\":\"{}\",\"rounds\":{},\"load_average\":{},\"measurements\":[{}],\"instructions_per_call\":{{{}}},\"targets\":[{}]}}\n",
            self.options.revision,
            self.options.rounds,
            load_average(),
            measurements.join(","),
            instructions.join(","),
            targets.join(",")
        )
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
  --revision REVISION   2025-11-25 (default) or 2026-07-28
  --only LABEL,…        of `bare`, `trunkline`, `rmcp-stdio` and `rmcp-pipes`";

const OURS: &str = "trunkline";

static SERVERS: [Server; 4] = [
    Server { label: "bare", program: &programs::BARE.stdio, args: &[] },
    Server { label: OURS, program: &programs::TRUNKLINE.stdio, args: &[] },
    Server { label: "rmcp-stdio", program: &programs::RMCP.stdio, args: &[] },
    Server { label: "rmcp-pipes", program: &programs::RMCP.stdio, args: &["pipes"] },
];

static CASES: [Case; 4] = [
    Case { name: "sequential, 100 B", mode: "sequential", payload: 100 },
    Case { name: "pipelined 64 deep, 100 B", mode: "pipelined", payload: 100 },
    Case { name: "sequential, 64 KB", mode: "sequential", payload: 64 * 1024 },
    Case { name: "pipelined 64 deep, 64 KB", mode: "pipelined", payload: 64 * 1024 },
];

const TARGETS: [Target; 8] = [
    Target { case: "sequential, 100 B", factor: 0.80, of: "bare" },
    Target { case: "pipelined 64 deep, 100 B", factor: 0.35, of: "bare" },
    Target { case: "pipelined 64 deep, 100 B", factor: 15.0, of: "rmcp-stdio" },
    Target { case: "pipelined 64 deep, 100 B", factor: 2.0, of: "rmcp-pipes" },
    Target { case: "sequential, 64 KB", factor: 0.70, of: "bare" },
    Target { case: "sequential, 64 KB", factor: 2.0, of: "rmcp-stdio" },
    Target { case: "pipelined 64 deep, 64 KB", factor: 0.70, of: "bare" },
    Target { case: "pipelined 64 deep, 64 KB", factor: 2.0, of: "rmcp-stdio" },
];

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
        assert_eq!(results.ratio("case", OURS, "bare"), Some(0.5));
        assert_eq!(results.ratio("case", OURS, "rmcp-stdio"), None);
    }

    #[test]
    fn fewer_than_three_rounds_are_refused() {
        let parse = |line| Options::parse(&words(line));
        assert!(parse("--rounds 2").is_err());
        assert_eq!(parse("--rounds 5").map(|o| o.rounds), Ok(5));
        assert!(parse("--only bare,nobody").is_err());
    }
}
