//! Every check, in order, each with its headline and its time.

use crate::{
    browser, conformance, docs, follow, fuzz, peers, replicas, run, schemas, supply, tidy,
};
use std::sync::{Mutex, PoisonError, mpsc};
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
    report.step("formatting", || run::run(&mut run::cargo(["fmt", "--all", "--check"])));
    report.step("tidy", || tidy::run(&[]));
    report.step("what others wrote", || supply::run(&[]));
    // It waits for the network while the compiler computes.
    let installs = with_peers.then(|| std::thread::spawn(install));
    report.step("build of what the tests start", || run::run(&mut run::build([])));
    if let Some(installs) = installs {
        report.step("install what the tests need", || {
            installs.join().unwrap_or_else(|_| Err("The installation panicked.".to_owned()))
        });
    }
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
    report.step("an example on every entry point, mostly visible", docs::examples);
    report.step("the pages that newcomers read first, followed word by word", || {
        follow::pages(&follow::PAGES, with_peers)
    });
    report.step("several gateways as one", || replicas::run(&[]));
    if with_peers {
        report.step("the console, in a real browser", || browser::stories(&[]));
    }
    let mut rest = vec![
        chore("lints", &["lints"]),
        chore("what a call takes, in instructions", &["bench", "instructions", "--check"]),
        chore("documentation", &["docs"]),
    ];
    if with_peers {
        rest.push(chore("the console's page", &["web", "--check"]));
        rest.extend(
            peers::PEERS
                .iter()
                .map(|(_, what, script)| -> Check { (what, Box::new(|| peers::one(script))) }),
        );
        rest.extend(CONFORMANCE.iter().map(|(what, args)| chore(what, args)));
    } else {
        println!("\nleft out by `--no-peers`: the npm and PyPI peers, the official suite");
    }
    report.together(rest);
    report.end()
}

/// The step that runs the tests.
pub fn tests() -> Result<(), String> {
    let mut tests = run::cargo(["test", "--workspace", "--no-fail-fast"]);
    // Most wait for other processes, so more of them than there are cores keep the cores busy.
    tests.env("RUST_TEST_THREADS", "4");
    let mut failed = Vec::new();
    let outcome = run::run_seen(fuzz::shortly(&mut tests), |line| {
        let is_test = line.starts_with("test ");
        if is_test && line.ends_with(" FAILED") {
            failed.push(line.to_owned());
        }
        if !is_test || !line.ends_with(" ... ok") {
            println!("{line}");
        }
    });
    outcome.map_err(|error| format!("{error}\n{}", failed.join("\n")))
}

/// A check that prints nothing itself: its headline, and what it has to say in the end.
type Check = (&'static str, Box<dyn FnOnce() -> Result<String, String> + Send>);

/// A chore of ours in a process of its own.
fn chore(what: &'static str, args: &'static [&str]) -> Check {
    let run = || run::read_within(&mut run::chore(args)?, LONGEST_CHORE, |_| false);
    (what, Box::new(run))
}

/// How long a chore may take, its build included.
const LONGEST_CHORE: Duration = Duration::from_secs(1200);

/// The chore `lints`.
pub fn lints(_: &[String]) -> Result<(), String> {
    let args = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    run::run(&mut run::cargo(args))
}

/// The npm and PyPI packages of the peers and of the official suite.
fn install() -> Result<(), String> {
    peers::install()?;
    conformance::install()
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

/// The two halves of the official suite, one of them also with three servers as one, and through one gateway and three.
const CONFORMANCE: &[(&str, &[&str])] = &[
    ("the official suite against `conformance-server`", &["conformance", "server"]),
    ("the official suite against `conformance-client`", &["conformance", "client", "--strict"]),
    (
        "the official suite against three `conformance-server`s as one",
        &["conformance", "server-replicas"],
    ),
    ("the official suite through the gateway to `conformance-server`", &["conformance", "gateway"]),
    ("the official suite through three gateways as one", &["conformance", "replicas"]),
];

/// How many steps run at once.
const AT_ONCE: usize = 3;

struct Report {
    passed: usize,
    /// The names of steps and what went wrong.
    failed: Vec<(String, String)>,
    start: Instant,
}

impl Report {
    fn step(&mut self, name: &str, check: impl FnOnce() -> Result<(), String>) {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = check();
        self.note(name, start.elapsed(), outcome);
    }

    /// Takes steps several at a time: most wait for other processes while some compute. Each is printed when it ends.
    fn together(&mut self, checks: Vec<Check>) {
        let waiting = Mutex::new(checks.into_iter());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let (ended, outcomes) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                let ended = ended.clone();
                scope.spawn(move || {
                    while let Some((name, check)) = next() {
                        let start = Instant::now();
                        let outcome = check();
                        let _ = ended.send((name, start.elapsed(), outcome));
                    }
                });
            }
            drop(ended);
            for (name, time, outcome) in outcomes {
                println!("\n== {name}");
                let outcome = match outcome {
                    Ok(said) => {
                        print!("{said}");
                        Ok(())
                    }
                    Err(why) => Err(why),
                };
                self.note(name, time, outcome);
            }
        });
    }

    fn note(&mut self, name: &str, time: Duration, outcome: Result<(), String>) {
        let time = seconds(time);
        match outcome {
            Ok(()) => {
                println!("== ok, {time}");
                self.passed += 1;
            }
            Err(message) => {
                println!("== FAILED, {time}: {message}");
                self.failed.push((name.to_owned(), message));
            }
        }
    }

    fn end(self) -> Result<(), String> {
        println!("\nall steps took {}", seconds(self.start.elapsed()));
        for (name, message) in &self.failed {
            println!("failed: {name}: {message}");
        }
        println!("{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() { Ok(()) } else { Err("Not every step passed.".to_owned()) }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
