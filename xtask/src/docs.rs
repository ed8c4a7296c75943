//! The documentation: no warning, and an example on everything public.

use crate::run;
use std::process::Command;

/// What users read, and the features they read it with.
const CRATES: &[(&str, &str)] = &[
    ("trunkline", "auth,tls,testing"),
    ("trunkline-macros", ""),
    ("trunkline-store", "suite"),
    ("trunkline-wire", ""),
    ("trunkline-auth", "oauth"),
    ("trunkline-proto", "http"),
    ("trunkline-transport", "auth,tls"),
    ("trunkline-authority", "serve"),
];

/// Builds the documentation; a warning is a failure.
pub fn build() -> Result<(), String> {
    run::run(document().env("RUSTDOCFLAGS", "-D warnings"))
}

/// Counts what has no example.
pub fn examples() -> Result<(), String> {
    // The count is a part of rustdoc that is not stable yet; it reads, and writes nothing.
    let flags = "-Z unstable-options --show-coverage --output-format json";
    let mut command = document();
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTDOCFLAGS", flags).env("CARGO_TERM_QUIET", "true");
    let output = command.output().map_err(|error| format!("rustdoc does not start: {error}."))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lacking = 0;
    for (krate, _) in CRATES {
        let folder = format!("\"crates/{krate}/src/");
        let Some(line) = text.lines().find(|it| it.starts_with('{') && it.contains(&folder)) else {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("rustdoc did not count the examples of `{krate}`: {why}"));
        };
        let (items, with) = count(line);
        println!("{krate}: {with} of {items} items have an example");
        lacking += items - with;
        for file in line.split(&folder).skip(1).filter(|it| count(it).0 > count(it).1) {
            let file = file.split('"').next().unwrap_or_default();
            println!("  lacking in `crates/{krate}/src/{file}`");
        }
    }
    match lacking {
        0 => Ok(()),
        _ => Err(format!("{lacking} public items have no example.")),
    }
}

/// All of them at once, so that what they build on is built once.
fn document() -> Command {
    let mut command = run::cargo(["doc", "--quiet", "--no-deps"]);
    for (krate, features) in CRATES {
        command.args(["-p", krate]);
        for feature in features.split(',').filter(|it| !it.is_empty()) {
            command.arg("--features").arg(format!("{krate}/{feature}"));
        }
    }
    // A target of its own: other flags would have everything built anew.
    command.env("CARGO_TARGET_DIR", run::root().join("target/docs"));
    command
}

/// How many items want an example, and how many have one.
fn count(json: &str) -> (usize, usize) {
    let sum = |member: &str| {
        let parts = json.split(member).skip(1);
        let numbers = parts.filter_map(|it| {
            let digits: String = it.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().ok()
        });
        numbers.sum()
    };
    (sum("\"total_examples\":"), sum("\"with_examples\":"))
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn examples_are_counted_over_all_files() {
        let json = r#"{"a.rs":{"total":3,"with_docs":3,"total_examples":2,"with_examples":1},
            "b.rs":{"total":10,"with_docs":10,"total_examples":10,"with_examples":10}}"#;
        assert_eq!(count(json), (12, 11));
    }
}
