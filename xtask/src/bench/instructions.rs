//! Every way a call goes → the instructions and allocations it takes, here and in a bare program: figures that a busy
//! machine does not move.

mod check;
mod paths;
mod report;
mod stages;

use std::process::Command;

use self::paths::{Kind, PATHS, Path, RECORDINGS, Recording, Side};
use super::callgrind::PerCall;
use super::counted::count;
use super::programs::{self, Program, Programs};
use super::{thousands, verdict, write_result};
use crate::{json, run};

/// Runs the benchmark. A missed target is a figure, not an error; a program that fails is one, and with `--check` a path
/// that takes more than the table says.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    programs::ensure("valgrind")?;
    let rustc = rustc()?;
    // A table that is missing is written anew, and nothing agrees with it.
    let table = run::file(TABLE).unwrap_or_else(|_| "{}".to_owned());
    if options.is_quick {
        let checked = measure(&build_quickly(&options.paths)?, &options.paths)?;
        // What is promised is promised of a release.
        let text = report::paths(&checked, false) + &report::recording(&checked);
        print!("{text}{}", most_costly(&checked, options.functions));
        if options.renews {
            let table = report::json(&json::parse(&table)?, &[], &checked, &rustc);
            write_result("instructions.json", &table)?;
        }
        return if options.is_check { check::compare(&checked, &table, &rustc) } else { Ok(()) };
    }
    let released = measure(&build(&options.paths)?, &options.paths)?;
    let text = report::text(&released, &rustc);
    print!("{text}{}", most_costly(&released, options.functions));
    if !options.is_all {
        return Ok(());
    }
    let checked: Vec<&Path> = PATHS.iter().filter(|path| path.is_checked).collect();
    let checked = measure(&build_quickly(&checked)?, &checked)?;
    write_result("instructions.md", &text)?;
    let table = report::json(&json::parse(&table)?, &released, &checked, &rustc);
    write_result("instructions.json", &table)
}

struct Options {
    paths: Vec<&'static Path>,
    /// Whether no path was named.
    is_all: bool,
    is_quick: bool,
    is_check: bool,
    /// Whether what the tests compare with is written.
    renews: bool,
    /// How many functions are listed of each path.
    functions: usize,
}

impl Options {
    fn parse(args: &[String]) -> Result<Options, String> {
        let (mut paths, mut functions) = (Vec::new(), 0);
        let (mut is_quick, mut is_check, mut renews) = (false, false, false);
        let mut words = args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match word {
                "--check" => (is_quick, is_check) = (true, true),
                "--quick" => is_quick = true,
                "--renew" => (is_quick, renews) = (true, true),
                "--functions" => {
                    let count = words.next().and_then(|count| count.parse().ok());
                    functions = count.ok_or(format!("`--functions` takes a number.\n\n{USAGE}"))?;
                }
                name => match PATHS.iter().find(|path| path.name == name) {
                    Some(path) => paths.push(path),
                    None => return Err(format!("`{name}` is not counted here.\n\n{USAGE}")),
                },
            }
        }
        let is_counted = |path: &&Path| match is_quick {
            true if is_check => path.is_checked,
            true => path.is_quick(),
            false => path.is_released(),
        };
        if let Some(other) = paths.iter().find(|path| !is_counted(path)) {
            return Err(format!(
                "`{}` is counted {} `--quick`.\n\n{USAGE}",
                other.name,
                if is_quick { "without" } else { "with" }
            ));
        }
        let is_all = paths.is_empty();
        if renews && !is_all {
            return Err(format!("`--renew` takes no path: the table has all of them.\n\n{USAGE}"));
        }
        if is_all {
            let is_meant =
                |path: &&Path| if is_quick { path.is_checked } else { path.is_released() };
            paths = PATHS.iter().filter(is_meant).collect();
        }
        Ok(Options { paths, is_all, is_quick, is_check, renews, functions })
    }
}

/// A path and what a call takes there.
struct Counted {
    path: &'static Path,
    bare: PerCall,
    ours: PerCall,
}

impl Counted {
    fn ratio(&self) -> f64 {
        self.ours.instructions / self.bare.instructions
    }
}

/// What recording a call costs.
struct Recorded {
    pair: &'static Recording,
    /// Instructions a call, outside of the allocator.
    recorded: f64,
    unrecorded: f64,
}

impl Recorded {
    /// Of every pair that was counted.
    fn all(counted: &[Counted]) -> Vec<Recorded> {
        let cost = |name| {
            let it = counted.iter().find(|it| it.path.name == name)?;
            Some(stages::outside_allocator(&it.ours))
        };
        let recorded = |pair: &'static Recording| {
            let (recorded, unrecorded) = cost(pair.on).zip(cost(pair.off))?;
            Some(Recorded { pair, recorded, unrecorded })
        };
        RECORDINGS.iter().filter_map(recorded).collect()
    }

    fn ratio(&self) -> f64 {
        self.recorded / self.unrecorded
    }

    fn is_met(&self) -> bool {
        self.ratio() <= self.pair.most
    }
}

/// Builds what the paths need, and the binary only if one of them does.
fn build(paths: &[&'static Path]) -> Result<Programs, String> {
    let programs = Programs::build(needed(paths))?;
    let is_binary = |it: Kind| matches!(it, Kind::Gateway(_) | Kind::UnrecordedGateway(_));
    if paths.iter().any(|path| is_binary(path.kind)) {
        programs::trunkline()?;
    }
    Ok(programs)
}

/// The same for paths that do without the binary, with little optimization.
fn build_quickly(paths: &[&'static Path]) -> Result<Programs, String> {
    Programs::build_quickly(needed(paths))
}

fn needed(paths: &[&'static Path]) -> impl Iterator<Item = &'static Program> {
    let sides = [Side::Bare, Side::Ours];
    let measured = paths.iter().flat_map(move |path| sides.map(|side| path.program(side)));
    // What gateways and clients call.
    measured.flatten().chain([&programs::DRIVER, &programs::BARE.stdio, &programs::BARE.http])
}

/// Counts every path; what could not be counted is said in sentences.
fn measure(programs: &Programs, paths: &[&'static Path]) -> Result<Vec<Counted>, String> {
    let sides = [Side::Bare, Side::Ours];
    let all = paths.iter().flat_map(|path| sides.map(|side| path.measurement(programs, side)));
    let all: Vec<_> = all.collect();
    let mut outcomes = all.iter().zip(count(programs, &all.iter().collect::<Vec<_>>())).map(
        |(measurement, outcome)| {
            outcome.map_err(|sentence| format!("`{}`: {sentence}", measurement.name))
        },
    );
    let (mut counted, mut failures) = (Vec::new(), Vec::new());
    for path in paths {
        match (outcomes.next(), outcomes.next()) {
            (Some(Ok(bare)), Some(Ok(ours))) => counted.push(Counted { path, bare, ours }),
            (bare, ours) => {
                failures.extend([bare, ours].into_iter().flatten().filter_map(Result::err))
            }
        }
    }
    verdict(&failures)?;
    Ok(counted)
}

/// The functions that cost most themselves, for whoever looks for what to make faster.
fn most_costly(counted: &[Counted], count: usize) -> String {
    let mut out = String::new();
    for Counted { path, ours, .. } in counted.iter().filter(|_| count > 0) {
        out += &format!("{}\n", path.name);
        let mut functions: Vec<_> = ours.functions.iter().collect();
        functions.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (name, cost) in functions.into_iter().take(count) {
            let stage = stages::of(name);
            out += &format!("  {:>8}  {stage:<12}{name}\n", thousands(cost.max(0.0) as u64));
        }
    }
    out
}

fn rustc() -> Result<String, String> {
    Ok(run::read(Command::new("rustc").arg("--version"))?.trim().to_owned())
}

pub const USAGE: &str = "\
cargo xtask bench instructions [PATH…] [OPTIONS]
  PATH                  of those in `bench/results/instructions.md`; all, and the table is written, if none is named
  --quick               the paths that `cargo xtask test` checks, built as it builds them; nothing is written. Others
                        that need no release of the binary are counted when they are named
  --check               the same, and an error if one takes 3 % more than `bench/results/instructions.json` says
  --renew               the same, and the table's part that is checked is written
  --functions N         also the N functions of each path that cost most themselves";

const TABLE: &str = "bench/results/instructions.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_there_is_refused() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            Options::parse(&words).map(|options| options.paths.len())
        };
        assert!(parse(&["http", "nowhere"]).is_err());
        assert!(parse(&["--functions"]).is_err() && parse(&["http", "--renew"]).is_err());
        assert_eq!(parse(&["http", "sse-26"]), Ok(2));
        assert!(parse(&["embedded"]).is_err() && parse(&["embedded", "--quick"]).is_ok());
        assert!(parse(&["client", "--quick"]).is_ok() && parse(&["client", "--check"]).is_err());
        assert!(parse(&["gateway", "--quick"]).is_err());
        assert_eq!(parse(&[]), Ok(PATHS.iter().filter(|path| path.is_released()).count()));
        assert_eq!(parse(&["--check"]), parse(&["--quick"]));
    }
}
