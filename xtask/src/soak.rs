//! The stress tests, with far larger counts.

use crate::{browser, conformance, fuzz, peers, replicas, run, test};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A soak that has a name: `cargo xtask soak NAME`.
struct Soak {
    name: &'static str,
    /// Which test programs `cargo test` builds.
    scope: &'static [&'static str],
    /// Which of their tests run, and how.
    filters: &'static [&'static str],
}

/// One row per soak. Those that measure or that load the machine run one after the other.
const SOAKS: &[Soak] = &[
    Soak {
        name: "gateway",
        scope: GATEWAY,
        filters: &["gateway_leaks::", "gateway_isolation::", "--test-threads", "1"],
    },
    Soak { name: "fairness", scope: GATEWAY, filters: &["crossings::fairness::"] },
    Soak { name: "isolation", scope: GATEWAY, filters: &["crossings::soak::"] },
    Soak { name: "memory", scope: GATEWAY, filters: &["memory::"] },
    Soak {
        name: "simulation",
        scope: &["--package", "trunkline-replicas", "--lib"],
        filters: &["state::simulation::"],
    },
    Soak { name: "once", scope: GATEWAY, filters: &["gateway_once::", "--test-threads", "1"] },
];

/// The soaks that are no test: the console beside many calls, the fuzz targets, ten minutes each, the scenes with several
/// gateways, and all tests over and over.
const CONSOLE: &str = "console";
const FUZZ: &str = "fuzz";
const REPLICAS: &str = "replicas";
const TESTS: &str = "tests";
/// How often all tests run; as often again beside loops that keep two cores busy.
const TIMES: usize = 10;
/// The gateway's integration tests.
const GATEWAY: &[&str] = &["--package", "trunkline-cli", "--test", "it"];

/// Runs the soak of that name, or without one every test whose path has `stress` in it, with `TRUNKLINE_SOAK=1` set;
/// those tests read it for their counts.
pub fn run(args: &[String]) -> Result<(), String> {
    let (scope, names): (&[&str], &[&str]) = match args {
        [name] if name == CONSOLE => return browser::soak(),
        [name] if name == FUZZ => return fuzz::soak(),
        [name] if name == REPLICAS => return several_as_one(),
        [name] if name == TESTS => return over_and_over(),
        [] => (&["--workspace", "--tests"], &["stress"]),
        [name] => match SOAKS.iter().find(|soak| soak.name == name) {
            Some(soak) => (soak.scope, soak.filters),
            None => return Err(unknown()),
        },
        _ => return Err(unknown()),
    };
    run::raise_files();
    let mut cargo = run::cargo(["test", "--release"]);
    cargo.args(scope).args(["--", "--nocapture"]).args(names);
    cargo.env("TRUNKLINE_SOAK", "1").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child =
        cargo.spawn().map_err(|error| format!("`cargo test` did not start: {error}."))?;
    let mut ran = 0;
    let output = child.stdout.take().expect("the output was asked to be piped");
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("Cannot read what `cargo test` says: {error}."))?;
        println!("{line}");
        let count = line.strip_prefix("running ").and_then(|rest| rest.split(' ').next());
        ran += count.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    }
    let status = child.wait().map_err(|error| format!("Cannot wait for `cargo test`: {error}."))?;
    if !status.success() {
        return Err("A stress test failed; see above.".to_owned());
    }
    if ran == 0 {
        return Err("No test has such a path, so nothing was soaked.".to_owned());
    }
    println!("{ran} stress tests passed");
    Ok(())
}

/// The scenes with several gateways, then all that is otherwise shown with one: the bridge, the npm and PyPI clients,
/// the official suite.
fn several_as_one() -> Result<(), String> {
    type Show = (&'static str, fn() -> Result<(), String>);
    let shows: [Show; 4] = [
        ("the scenes", replicas::soak),
        ("the bridge matrix", replicas::bridge),
        ("the npm and PyPI clients", || peers::run(&[peers::REPLICAS.to_owned()])),
        ("the official suite", || conformance::run(&["server-replicas".to_owned()])),
    ];
    let mut failed = Vec::new();
    for (name, show) in shows {
        println!("\n=== {name}, with three as one");
        let since = Instant::now();
        if let Err(why) = show() {
            println!("=== FAILED: {why}");
            failed.push(name);
        }
        println!("=== {} s", since.elapsed().as_secs());
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("Not as with one: {}.", failed.join(", "))) }
}

/// All tests, often: one that fails once in a while has a cause like any other.
fn over_and_over() -> Result<(), String> {
    run::raise_files();
    let mut failed = 0;
    for time in 1..=2 * TIMES {
        let (beside, since) = (if time > TIMES { 2 } else { 0 }, Instant::now());
        let outcome = beside_busy_loops(beside, test::tests);
        let word = if outcome.is_ok() { "passed" } else { "FAILED" };
        let seconds = since.elapsed().as_secs();
        println!("{time} of {}, beside {beside} busy loops: {word}, {seconds} s", 2 * TIMES);
        failed += usize::from(outcome.is_err());
    }
    match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} of {} runs failed; see above.", 2 * TIMES)),
    }
}

fn beside_busy_loops<T>(loops: usize, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

fn unknown() -> String {
    let names = SOAKS.iter().map(|soak| soak.name).chain([CONSOLE, FUZZ, REPLICAS, TESTS]);
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    format!("`soak` takes one of {}, or nothing.", names.join(", "))
}
