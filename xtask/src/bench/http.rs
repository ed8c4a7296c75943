//! The HTTP servers and clients → what a call costs here, on bare hyper and in rmcp, and whether the targets are met.

mod cases;
mod report;
mod results;
mod targets;

use self::cases::{Case, LABELS};
use self::results::Results;
use super::counted::Measurement;
use super::counts::{self, Counts};
use super::programs::{self, Programs};
use super::{Bench, keep_only, load_average, rounds, verdict, write_result};

/// Runs the benchmark. A missed target is a figure, not an error; a program that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let labels = options.labels.clone();
    let used = labels.iter().flat_map(|label| cases::programs(label));
    // The clients call the bare server.
    let programs = Programs::build(used.chain([&programs::BARE.http, &programs::DRIVER]))?;
    let bench = Bench { options, programs };
    let mut results = Results::new(labels, bench.options.rounds, load_average());
    bench.measure(&mut results);
    if !bench.options.quick {
        bench.count(&mut results);
    }
    let text = report::text(&results);
    print!("{text}");
    if !bench.options.quick && bench.options.labels.len() == LABELS.len() {
        write_result("http.md", &text)?;
        for (name, svg) in report::charts(&results) {
            write_result(name, &svg)?;
        }
    }
    verdict(&results.figures.failures)
}

struct Options {
    rounds: usize,
    quick: bool,
    labels: Vec<&'static str>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options { rounds: 3, quick: false, labels: LABELS.to_vec() };
        super::options(args, "http", USAGE, |word, value| {
            match word {
                "--quick" => options.quick = true,
                "--rounds" => options.rounds = rounds(value()?, USAGE)?,
                "--only" => keep_only(&mut options.labels, |label| label, value()?, USAGE)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(options)
    }
}

impl Bench<Options> {
    /// Every program once per case and round, in turn, so that a slow minute of the machine hits them all.
    fn measure(&self, results: &mut Results) {
        let cases = if self.options.quick { cases::quick() } else { cases::all() };
        let milliseconds = if self.options.quick { "200" } else { "800" };
        for round in 0..self.options.rounds {
            eprintln!("round {} of {}", round + 1, self.options.rounds);
            for case in &cases {
                for turn in 0..self.options.labels.len() {
                    let label = self.options.labels[(turn + round) % self.options.labels.len()];
                    if !case.is_for(label) || results.figures.has_failed(case, label) {
                        continue;
                    }
                    eprintln!("  {}, {label}", case.name);
                    let amount = ["--milliseconds", milliseconds];
                    let words = self.measurement(case, label).words(&amount, &[]);
                    let report = self.programs.drive(&words);
                    match report.and_then(|report| results::sample(case, &report)) {
                        Ok(sample) => results.figures.add(case, label, sample),
                        Err(sentence) => results.figures.fail(case, label, &sentence),
                    }
                }
            }
        }
    }

    fn count(&self, results: &mut Results) {
        if let Err(sentence) = counts::prepare() {
            results.figures.failures.push(sentence);
            return;
        }
        for case in cases::counted() {
            for label in self.options.labels.clone() {
                if results.figures.has_failed(&case, label) {
                    continue;
                }
                eprintln!("counting: {}, {label}", case.name);
                match Counts::of(&self.programs, &self.measurement(&case, label)) {
                    Ok(counts) => results.counts.push((case.name.clone(), label, counts)),
                    Err(sentence) => results.figures.fail(&case, label, &sentence),
                }
            }
        }
    }

    /// One case of one program, as the driver is told it.
    fn measurement(&self, case: &Case, label: &str) -> Measurement {
        let mut measurement =
            Measurement::new(label, &[], vec![self.programs.path(case.program(label))]);
        measurement.load = case.words(&self.programs.path(&programs::BARE.http));
        measurement.command.extend(case.arguments());
        measurement
    }
}

pub const USAGE: &str = "\
cargo xtask bench http [OPTIONS]
  --rounds N            interleaved rounds, 3 or more (3)
  --quick               a minute instead of ten: fewer cases, shorter, nothing counted, nothing written
  --only LABEL,…        of `bare`, `trunkline` and `rmcp`; nothing is written";

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    #[test]
    fn options_that_measure_nothing_are_refused() {
        for line in ["--rounds 2", "--only bare,nobody"] {
            assert!(Options::parse(&words(line)).is_err(), "{line}");
        }
        let two = Options::parse(&words("--only rmcp,bare")).map(|options| options.labels);
        assert_eq!(two, Ok(vec!["bare", "rmcp"]));
    }
}
