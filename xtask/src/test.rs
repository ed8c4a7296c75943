//! Every check, in order, each with its headline and its time.

use crate::bench::instructions;
use crate::{
    browser, conformance, docs, follow, fuzz, peers, replicas, run, schemas, supply, tidy, web,
};
use std::time::{Duration, Instant};

/// Runs the checks; the last line counts them.
pub fn run(args: &[String]) -> Result<(), String> {
    let with_peers = match args {
        [] => true,
        [flag] if flag == "--no-peers" => false,
        _ => return Err("`test` takes `--no-peers` or nothing.".to_owned()),
    };
    run::raise_files();
    let mut report = Report { passed: 0, failed: Vec::new(), start: Instant::now() };

    report.step("the programs that the tests start", || {
        run::install_missing("The tests need", run::SERVERS)?;
        run::have(PROGRAMS)
    });
    if with_peers {
        report.step("install what the tests need", peers::install);
    }
    report.step("formatting", || run::run(&mut run::cargo(["fmt", "--all", "--check"])));
    report.step("lints", || {
        let args = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
        run::run(&mut run::cargo(args))
    });
    report.step("tidy", || tidy::run(&[]));
    if with_peers {
        report.step("the console's page", || web::run(&["--check".to_owned()]));
    }
    report.step("what others wrote", || supply::run(&[]));
    report.step("tests, and a few seconds of every fuzz target", tests);
    match schemas::published() {
        Some(folder) => {
            report.step("the published schemas and examples", || schemas::compare(&folder));
        }
        None => println!(
            "\nleft out: the published schemas and examples; `{}` names no folder with them",
            schemas::PUBLISHED
        ),
    }
    report.step("documentation", docs::build);
    report.step("an example on every entry point, mostly visible", docs::examples);
    report.step("build of the binary the peers meet", || run::run(&mut run::build([])));
    report.step("the pages that newcomers read first, followed word by word", || {
        follow::pages(&follow::PAGES, with_peers)
    });
    report.step("several gateways as one", || replicas::run(&[]));
    report.step("what a call takes, in instructions", instructions::check);
    if with_peers {
        report.step("the console, in a real browser", || browser::stories(&[]));
        for (_, what, script) in peers::PEERS {
            report.step(what, || peers::one(script));
        }
        for (what, args) in CONFORMANCE {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            report.step(what, || conformance::run(&args));
        }
    } else {
        println!("\nleft out by `--no-peers`: the npm and PyPI peers, the official suite");
    }
    report.end()
}

/// The step that runs the tests.
pub fn tests() -> Result<(), String> {
    let mut tests = run::cargo(["test", "--workspace", "--no-fail-fast"]);
    run::run(fuzz::shortly(&mut tests))
}

/// What tests start beside our own programs, and the Debian package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("cat", "coreutils"),
    ("git", "git"),
    ("kill", "procps"),
    ("mkfifo", "coreutils"),
    ("openssl", "openssl"),
    ("prlimit", "util-linux"),
    ("sh", "dash"),
    ("taskset", "util-linux"),
];

/// The two halves of the official suite, and one of them through one gateway and through three.
const CONFORMANCE: &[(&str, &[&str])] = &[
    ("the official suite against `conformance-server`", &["server"]),
    ("the official suite against `conformance-client`", &["client", "--strict"]),
    ("the official suite through the gateway to `conformance-server`", &["gateway"]),
    ("the official suite through three gateways as one", &["replicas"]),
];

struct Report {
    passed: usize,
    failed: Vec<String>,
    start: Instant,
}

impl Report {
    fn step(&mut self, name: &str, check: impl FnOnce() -> Result<(), String>) {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = check();
        let time = seconds(start.elapsed());
        match outcome {
            Ok(()) => {
                println!("== ok, {time}");
                self.passed += 1;
            }
            Err(message) => {
                println!("== FAILED, {time}: {message}");
                self.failed.push(name.to_owned());
            }
        }
    }

    fn end(self) -> Result<(), String> {
        println!("\nall steps took {}", seconds(self.start.elapsed()));
        for name in &self.failed {
            println!("failed: {name}");
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() { Ok(()) } else { Err("Not every step passed.".to_owned()) }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
