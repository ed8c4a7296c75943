//! Gateways → what a call through each costs, beside a bare one, and whether the targets are met.

pub mod cases;
mod peers;
mod report;

use self::cases::{CASES, Case, GATEWAYS, Gateway, Upstream};
use super::counted::Measurement;
use super::counts::{self, Counts};
use super::figures::{Figures, Sample};
use super::programs::{self, Programs};
use super::{Bench, keep_only, load_average, verdict, write_result};
use crate::run;

/// Runs the benchmark. A missed target is a figure, not an error; a gateway that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let bench = Bench::prepare(options)?;
    let mut results = Figures::new(bench.options.rounds, load_average());
    bench.measure(&mut results);
    let counts = if bench.options.quick { Vec::new() } else { bench.count(&mut results) };
    let text = report::text(&results, &bench.options.gateways, &counts);
    print!("{text}");
    if !bench.options.quick && bench.options.gateways.len() == GATEWAYS.len() {
        write_result("gateway.md", &text)?;
        write_result("gateway.json", &report::json(&results))?;
    }
    verdict(&results.failures)
}

struct Options {
    rounds: usize,
    milliseconds: u32,
    quick: bool,
    gateways: Vec<&'static Gateway>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let gateways = GATEWAYS.iter().collect();
        let mut options = Options { rounds: 5, milliseconds: 3000, quick: false, gateways };
        super::options(args, "gateway", USAGE, |word, value| {
            let number = |value: &str| {
                let number = value.parse().ok().filter(|number| *number > 0);
                number.ok_or_else(|| format!("`{word}` takes a number above zero.\n\n{USAGE}"))
            };
            match word {
                "--quick" => {
                    (options.rounds, options.milliseconds, options.quick) = (1, 600, true);
                }
                "--rounds" => options.rounds = number(value()?)? as usize,
                "--milliseconds" => options.milliseconds = number(value()?)?,
                "--only" => keep_only(&mut options.gateways, |it| it.label, value()?, USAGE)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(options)
    }
}

impl Bench<Options> {
    /// Builds what is ours and installs what is not.
    fn prepare(options: Options) -> Result<Bench<Options>, String> {
        let ours = [&programs::BARE_GATEWAY, &programs::BARE.stdio, &programs::BARE.http];
        let programs = Programs::build(ours.into_iter().chain([&programs::DRIVER]))?;
        for gateway in &options.gateways {
            match gateway.label {
                cases::BARE => {}
                cases::OURS => drop(programs::trunkline()?),
                label => peers::install(label)?,
            }
        }
        Ok(Bench { options, programs })
    }

    /// Every gateway once per case and round, in turn, so that a slow minute of the machine hits them all.
    fn measure(&self, results: &mut Figures) {
        for round in 0..self.options.rounds {
            eprintln!("round {} of {}", round + 1, self.options.rounds);
            for case in &CASES {
                for turn in 0..self.options.gateways.len() {
                    let turn = (turn + round) % self.options.gateways.len();
                    let gateway = self.options.gateways[turn];
                    if !gateway.takes(case) || results.has_failed(case, gateway.label) {
                        continue;
                    }
                    eprintln!("  {case}, {}", gateway.label);
                    let report = self.drive(case, gateway);
                    let keys = ("gateway_cpu_us", Some("upstream_cpu_us"));
                    match report.and_then(|report| Sample::read(&report, keys.0, keys.1)) {
                        Ok(sample) => results.add(case, gateway.label, sample),
                        Err(sentence) => results.fail(case, gateway.label, &sentence),
                    }
                }
            }
        }
    }

    /// Instructions and system calls of the gateways that are worth counting.
    fn count(&self, results: &mut Figures) -> Vec<(String, &'static str, Counts)> {
        if let Err(sentence) = counts::prepare() {
            results.failures.push(sentence);
            return Vec::new();
        }
        let mut counted = Vec::new();
        for case in CASES.iter().filter(|case| case.connections > 1) {
            let gateways = self.options.gateways.iter().filter(|it| it.is_counted(case));
            for gateway in gateways {
                if results.has_failed(case, gateway.label) {
                    continue;
                }
                eprintln!("counting: {case}, {}", gateway.label);
                match Counts::of(&self.programs, &measurement(&self.programs, case, gateway)) {
                    Ok(counts) => counted.push((case.to_string(), gateway.label, counts)),
                    Err(sentence) => results.fail(case, gateway.label, &sentence),
                }
            }
        }
        counted
    }

    /// One run of the driver; its JSON.
    fn drive(&self, case: &Case, gateway: &Gateway) -> Result<String, String> {
        let milliseconds = self.options.milliseconds.to_string();
        let words = measurement(&self.programs, case, gateway);
        let words = words.words(&["--milliseconds", &milliseconds], &[]);
        self.programs.drive(&words)
    }
}

/// A call through a gateway, as the driver makes it.
pub fn measurement(programs: &Programs, case: &Case, gateway: &Gateway) -> Measurement {
    let connections = case.connections.to_string();
    let (child, upstream) =
        (programs.path(&programs::BARE.stdio), programs.path(&programs::BARE.http));
    let mut load = vec!["gateway", "--label", gateway.label, "--revision", case.revision];
    load.extend(["--connections", &connections, "--path", gateway.path, "--tool", gateway.tool]);
    let config = match case.upstream {
        Upstream::Stdio => {
            load.extend(["--child", &child]);
            gateway.stdio_config
        }
        Upstream::Http => {
            load.extend(["--upstream", &upstream]);
            gateway.http_config
        }
    };
    if !config.is_empty() {
        load.extend(["--config", config]);
    }
    let name = format!("{case}, {}", gateway.label);
    Measurement::new(&name, &load, command(programs, case, gateway))
}

fn command(programs: &Programs, case: &Case, gateway: &Gateway) -> Vec<String> {
    let (program, words) = match (gateway.label, case.upstream) {
        (cases::BARE, Upstream::Stdio) => (programs.path(&programs::BARE_GATEWAY), "stdio {child}"),
        (cases::BARE, Upstream::Http) => {
            (programs.path(&programs::BARE_GATEWAY), "http {upstream}")
        }
        (cases::EMBEDDED, _) => (programs.path(&programs::EMBEDDED_GATEWAY), "{config} {folder}"),
        (cases::OURS, _) => (
            run::target().join("release").join("trunkline").display().to_string(),
            "serve --config {config} --listen 127.0.0.1:{port} --state {folder}",
        ),
        (label, _) => return peers::command(label),
    };
    [program].into_iter().chain(words.split(' ').map(str::to_owned)).collect()
}

pub const USAGE: &str = "\
cargo xtask bench gateway [OPTIONS]
  --rounds N            interleaved rounds (5)
  --milliseconds N      how long each measurement takes (3000), after a warm-up of a third of it
  --quick               one short round; nothing is written
  --only LABEL,…        of `bare`, `trunkline`, `mcp-proxy`, `supergateway` and `mcp-proxy-py`; nothing is written";

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    #[test]
    fn options_that_measure_nothing_are_refused() {
        let parse = |line| Options::parse(&words(line));
        assert!(parse("--rounds 0").is_err());
        assert!(parse("--only bare,nobody").is_err());
        let labels = |options: Options| options.gateways.iter().map(|it| it.label).collect();
        let two: Result<Vec<&str>, String> = parse("--only trunkline,bare").map(labels);
        assert_eq!(two, Ok(vec!["bare", "trunkline"]));
    }
}
