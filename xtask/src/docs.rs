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
    for (krate, features) in CRATES {
        run::run(document(krate, features).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// Counts what has no example.
pub fn examples() -> Result<(), String> {
    let mut lacking = 0;
    for (krate, features) in CRATES {
        // The count is a part of rustdoc that is not stable yet; it reads, and writes nothing.
        let flags = "-Z unstable-options --show-coverage --output-format json";
        let mut command = document(krate, features);
        command
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTDOCFLAGS", flags)
            .env("CARGO_TERM_QUIET", "true");
        let output =
            command.output().map_err(|error| format!("rustdoc does not start: {error}."))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.starts_with('{'));
        let Some(line) = line else {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("rustdoc did not count the examples of `{krate}`: {why}"));
        };
        let (items, with) = count(line);
        println!("{krate}: {with} of {items} items have an example");
        lacking += items - with;
    }
    match lacking {
        0 => Ok(()),
        _ => Err(format!("{lacking} public items have no example.")),
    }
}

fn document(krate: &str, features: &str) -> Command {
    let args = ["doc", "--quiet", "--no-deps", "-p", krate, "--features", features];
    let mut command = run::cargo(args);
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
