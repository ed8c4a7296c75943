//! Names of fuzz targets → runs of them under libFuzzer, with coverage as the guide.
//!
//! Why libFuzzer: it is the one engine that is guided by coverage and compares, needs no nightly
//! compiler (`sancov-module` is a pass of LLVM that stable rustc can be told to run) and is installed
//! from crates.io alone. It takes a C++ compiler, so it stays out of the default build; plain
//! `cargo test` mutates the same seeds without a guide.

use crate::run;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Runs the named targets, or all, one after the other; the error names those that failed.
pub fn run(args: &[String]) -> Result<(), String> {
    let (names, seconds) = options(args)?;
    let known = targets()?;
    if let Some(wrong) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("There is no target `{wrong}`; there are {}.", known.join(", ")));
    }
    let names = if names.is_empty() { known } else { names };
    let program = build()?;
    let mut failed = Vec::new();
    for name in &names {
        println!("\n== {name}, {seconds} s");
        if let Err(message) = one(&program, name, seconds) {
            println!("{message}");
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() {
        println!("\n{} targets, {seconds} s each: nothing found", names.len());
        return Ok(());
    }
    Err(format!("Something was found by {}; see above.", failed.join(", ")))
}

/// Ten minutes of every target.
pub fn soak() -> Result<(), String> {
    run(&["--seconds".to_owned(), "600".to_owned()])
}

/// Has a run of the tests fuzz every target for a few seconds without a guide, with other inputs each time.
/// A run of those alone would build nearly everything once more.
pub fn shortly(tests: &mut Command) -> &mut Command {
    tests.env("TRUNKLINE_FUZZ_SECONDS", SHORT)
}

fn options(args: &[String]) -> Result<(Vec<String>, u64), String> {
    let (mut names, mut seconds) = (Vec::new(), 60);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let number = args.next().and_then(|it| it.parse().ok()).filter(|it| *it > 0);
            seconds = number.ok_or("`--seconds` takes a number above 0.")?;
        } else if arg.starts_with('-') {
            return Err(format!("`fuzz` knows no `{arg}`; it takes names and `--seconds N`."));
        } else {
            names.push(arg.clone());
        }
    }
    Ok((names, seconds))
}

/// Every target has a folder of seeds; a test says so.
fn targets() -> Result<Vec<String>, String> {
    let seeds = run::root().join("fuzz/seeds");
    let folders = std::fs::read_dir(&seeds)
        .map_err(|error| format!("Cannot list `fuzz/seeds`: {error}."))?
        .filter_map(|it| it.ok().filter(|it| it.path().is_dir())?.file_name().into_string().ok());
    let mut names: Vec<String> = folders.collect();
    names.sort();
    Ok(names)
}

fn build() -> Result<PathBuf, String> {
    let version = run::read(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` does not say what it builds for.")?;
    let folder = run::target().join("fuzz");
    let mut cargo = run::cargo(["build", "--profile", "fuzz", "--package", "trunkline-fuzz"]);
    cargo.args(["--features", "guided", "--bin", "guided"]);
    // With a target, build scripts and macros are built without instruments.
    cargo.args(["--target", host]).arg("--target-dir").arg(&folder);
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", INSTRUMENTS.join(" "));
    run::run(&mut cargo)?;
    Ok(folder.join(host).join("fuzz").join("guided"))
}

fn one(program: &PathBuf, name: &str, seconds: u64) -> Result<(), String> {
    let work = run::target().join("fuzz-runs").join(name);
    let (corpus, artifacts) = (work.join("corpus"), work.join("artifacts"));
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("Cannot make `{}`: {error}.", folder.display()))?;
    }
    let dictionary = work.join("dictionary");
    let mut fuzz = Command::new(program);
    fuzz.current_dir(run::root()).env("FUZZ_TARGET", name).env("FUZZ_DICTIONARY", &dictionary);
    fuzz.arg(format!("-max_total_time={seconds}"))
        .arg(format!("-dict={}", dictionary.display()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(LIMITS)
        .arg(&corpus);
    // The first folder is written to, the others are read.
    for kind in ["seeds", "found"] {
        let folder = run::root().join("fuzz").join(kind).join(name);
        if folder.is_dir() {
            fuzz.arg(folder);
        }
    }
    run::run_within(&mut fuzz, Duration::from_secs(seconds + 120)).map_err(|why| {
        format!("{why} The input is in `{}`; keep it in `fuzz/found/{name}`.", artifacts.display())
    })
}

/// Bytes of an input, seconds that one may take, MiB that may be in use.
const LIMITS: [&str; 4] =
    ["-max_len=8192", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"];
/// Counters on every edge and arguments of compares, as libFuzzer reads them.
const INSTRUMENTS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Seconds for each target in `cargo xtask test`.
const SHORT: &str = "2";
