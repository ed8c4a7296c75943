//! The twenty behaviours of a gateway of mcpv's kind into a table: which of them hold here.

use crate::run;
use std::collections::BTreeMap;
use std::process::Stdio;

/// Runs the tests of the behaviours and prints which hold, beside those that mcpv has.
pub fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("`mcpv` takes no arguments, but was given `{extra}`."));
    }
    let mut cargo = run::cargo([
        "test",
        "--package",
        "trunkline-cli",
        "--test",
        "it",
        "--no-fail-fast",
        "--",
        "mcpv::",
    ]);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`cargo test` did not start: {error}."))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let results = results(&said);
    if !output.status.success() {
        println!("{said}");
    }
    print!("{}", table(&results));
    let held = (1..).zip(BEHAVIOURS).filter(|(number, _)| holds(&results, *number)).count();
    println!(
        "\n{held} of {} hold here; {} do in mcpv, by reading its code.",
        BEHAVIOURS.len(),
        mcpv()
    );
    let is_whole = held == BEHAVIOURS.len() && output.status.success();
    if is_whole {
        Ok(())
    } else {
        Err("A test of these failed or is missing; see above.".to_owned())
    }
}

/// How each test ended, by its name without its path.
fn results(said: &str) -> BTreeMap<&str, bool> {
    let found = said.lines().filter_map(|line| {
        let (path, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
        Some((path.rsplit("::").next()?, end == "ok"))
    });
    found.collect()
}

/// Whether a behaviour has tests and all of them passed.
fn holds(results: &BTreeMap<&str, bool>, number: usize) -> bool {
    let prefix = format!("b{number:02}_");
    let mut tests = results.iter().filter(|(name, _)| name.starts_with(&prefix)).peekable();
    tests.peek().is_some() && tests.all(|(_, ok)| *ok)
}

fn table(results: &BTreeMap<&str, bool>) -> String {
    let mark = |holds: bool| if holds { "✓" } else { "✗" };
    let mut text = format!("\n{:>2}  {:<26} {:<9}  mcpv\n", "", "behaviour", "trunkline");
    for (number, (what, in_mcpv)) in (1..).zip(BEHAVIOURS) {
        let here = mark(holds(results, number));
        text.push_str(&format!("{number:>2}  {what:<26} {here:<9}  {}\n", mark(*in_mcpv)));
    }
    for (name, ok) in results.iter().filter(|(name, _)| name.starts_with("show")) {
        text.push_str(&format!("    {} {}\n", mark(*ok), name.replace('_', " ")));
    }
    text
}

fn mcpv() -> usize {
    BEHAVIOURS.iter().filter(|(_, holds)| *holds).count()
}

/// What a gateway of this kind does, and whether mcpv does.
const BEHAVIOURS: &[(&str, bool)] = &[
    ("configuration checked", true),
    ("start on demand", false),
    ("idle stop, scale to zero", false),
    ("activation modes", true),
    ("limits and scale-out", true),
    ("starts coalesced", true),
    ("stateful stickiness", false),
    ("bindings expire", true),
    ("persistent, singleton", true),
    ("warm pool maintained", false),
    ("drain, then stop in order", false),
    ("health", false),
    ("back-off, suspend, retry", true),
    ("lists from the cache", false),
    ("naming", true),
    ("selectors", true),
    ("the gateway's edge", true),
    ("governance by plugins", false),
    ("transactional reload", false),
    ("operating it", true),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_behaviour_holds_when_all_its_tests_passed() {
        let said = "running 3 tests\ntest mcpv::a::b02_one ... ok\ntest mcpv::a::b03_x ... ok\n\
                    test mcpv::b::b03_y ... FAILED\ntest mcpv::shows::show5_no_process ... ok\n";
        let results = results(said);
        assert_eq!([1, 2, 3].map(|number| holds(&results, number)), [false, true, false]);
        let table = table(&results);
        assert!(table.contains(" 2  start on demand            ✓          ✗\n"), "{table}");
        assert!(table.contains("    ✓ show5 no process\n"), "{table}");
        assert_eq!((BEHAVIOURS.len(), mcpv()), (20, 11));
    }
}
