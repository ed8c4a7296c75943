//! The chores of this repository: a name on the command line into a run of it.
#![forbid(unsafe_code)]
// Chores talk to the person who started them, and nothing here is a library.
#![allow(clippy::print_stdout, clippy::print_stderr, unreachable_pub)]

mod bench;
mod browser;
mod conformance;
mod cycles;
mod docs;
mod edges;
mod follow;
#[path = "../../crates/trunkline-testkit/src/ports.rs"]
mod free_ports;
mod fuzz;
mod graph;
mod json;
mod layers;
mod mcpv;
mod mutants;
mod peers;
mod replicas;
mod run;
mod sbom;
mod schemas;
mod soak;
mod supply;
mod test;
mod tidy;
mod trace;
mod web;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match chore(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

type Chore = fn(&[String]) -> Result<(), String>;

/// Every chore: its name, how it is called, what it does, the function that does it.
const CHORES: &[(&str, &str, &str, Chore)] = &[
    (
        "test",
        "test [--no-peers]",
        "run every check; `--no-peers` leaves out the npm and PyPI peers and the official suite",
        test::run,
    ),
    ("lints", "lints", "run clippy on everything; a warning is a failure", test::lints),
    ("docs", "docs", "build the documentation; a warning is a failure", docs::run),
    (
        "tidy",
        "tidy",
        "compare the source with the rules of ARCHITECTURE.md and CONTRIBUTING.md",
        tidy::run,
    ),
    (
        "peers",
        "peers [NAME…]",
        "run the npm and PyPI peers alone; a wrong NAME lists them; `--replicas`: through three gateways",
        peers::run,
    ),
    (
        "follow",
        "follow [PAGE…]",
        "do what the pages say that newcomers read first; `--no-peers` as for `test`",
        follow::run,
    ),
    (
        "conformance",
        "conformance [ROLE…]",
        "run the official suite on `server`, `client` or both; `--strict`, `--scenario NAME`",
        conformance::run,
    ),
    (
        "web",
        "web [--check]",
        "take the console's libraries from npm, check its types; `--check` writes nothing",
        web::run,
    ),
    (
        "browser",
        "browser [--pictures]",
        "use the console in Debian's chromium, with real servers and clients",
        browser::run,
    ),
    ("bench", "bench NAME…", "measure; `cargo xtask bench` lists what", bench::run),
    (
        "mutants",
        "mutants [--list]",
        "change the modules that decide who is let in; every change must fail a test",
        mutants::run,
    ),
    (
        "fuzz",
        "fuzz [TARGET…] [--seconds N]",
        "give every reader of strangers' bytes what coverage suggests; 60 s each unless said",
        fuzz::run,
    ),
    (
        "supply",
        "supply",
        "check licences, versions, sources and lock files of what others wrote; asks no database",
        supply::run,
    ),
    ("sbom", "sbom [PATH]", "write what the binary is made of, as CycloneDX", sbom::run),
    (
        "schemas",
        "schemas [FOLDER]",
        "make the facts that messages are judged by from the published JSON Schemas",
        schemas::run,
    ),
    (
        "mcpv",
        "mcpv",
        "show which of the twenty behaviours of a gateway of mcpv's kind hold",
        mcpv::run,
    ),
    (
        "replicas",
        "replicas [SCENE…]",
        "run several gateways as one, behind a balancer, while replicas and their store come and go; `bridge`: the matrix",
        replicas::run,
    ),
    (
        "soak",
        "soak [NAME]",
        "run the stress tests, those of one kind or all tests over and over, with far larger counts",
        soak::run,
    ),
];

fn chore(args: &[String]) -> Result<(), String> {
    let Some((name, rest)) = args.split_first() else {
        list();
        return Ok(());
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        list();
        return Ok(());
    }
    match CHORES.iter().find(|(known, ..)| known == name) {
        Some((_, _, _, run)) => run(rest),
        None => Err(format!("There is no chore `{name}`; `cargo xtask` lists them.")),
    }
}

fn list() {
    println!("usage: cargo xtask CHORE\n");
    for (_, call, what, _) in CHORES {
        println!("  {call:<20} {what}");
    }
}
