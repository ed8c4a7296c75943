//! The modules that decide who is let in, with one change at a time: a change that no test notices
//! is a hole in the tests.

use crate::run;
use std::path::PathBuf;

/// Changes each module in every way that `cargo mutants` knows, and fails if a test suite does not
/// notice one. Takes the better part of an hour, so it stands outside `cargo xtask test`.
pub fn run(args: &[String]) -> Result<(), String> {
    let list = match args {
        [] => false,
        [only] if only == "--list" => true,
        [other, ..] => {
            return Err(format!("`mutants` takes `--list` or nothing, but was given `{other}`."));
        }
    };
    let tool = install()?;
    for (package, features, files) in MODULES {
        let mut mutants = run::cargo(["mutants"]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(tool.join("bin")).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(paths)
            .map_err(|error| format!("The search path cannot be extended: {error}."))?;
        mutants.env("PATH", path);
        mutants.args(["--package", package, "--features", features, "--no-times"]);
        mutants.arg("--output").arg(run::root().join("target/mutants").join(package));
        for file in *files {
            let file = format!("crates/{package}/src/{file}");
            if !run::root().join(&file).is_file() {
                return Err(format!("`{file}` is on the list of `mutants`, but is not there."));
            }
            mutants.args(["--file", &file]);
        }
        match list {
            true => mutants.arg("--list"),
            // Unit tests alone: what a module decides, the tests beside it must pin.
            false => mutants.args(["--jobs", "2", "--timeout", "60", "--", "--lib"]),
        };
        run::run(&mut mutants)?;
    }
    Ok(())
}

fn install() -> Result<PathBuf, String> {
    let root = run::root().join("target/tools");
    if !root.join("bin/cargo-mutants").is_file() {
        let mut cargo = run::cargo(["install", "--locked", "cargo-mutants", "--version", VERSION]);
        run::run(cargo.arg("--root").arg(&root))?;
    }
    Ok(root)
}

const VERSION: &str = "27.1.0";

/// Package, features, and the modules in it that decide.
const MODULES: &[(&str, &str, &[&str])] = &[
    (
        "trunkline-auth",
        "oauth",
        &[
            "address.rs",
            "address/class.rs",
            "challenge.rs",
            "dpop.rs",
            "dpop/htu.rs",
            "dpop/seen.rs",
            "issuer.rs",
            "jose.rs",
            "jose/algorithm.rs",
            "jose/jwk.rs",
            "jose/sign.rs",
            "resource/jwt.rs",
            "scope.rs",
        ],
    ),
    ("trunkline-proto", "http", &["http/door.rs"]),
];
