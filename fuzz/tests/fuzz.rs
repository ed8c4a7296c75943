//! Every target with its seeds, with what was found before, and with blind mutations of both.
//!
//! `TRUNKLINE_FUZZ_SECONDS` says for how long each target is fuzzed, with other inputs each time;
//! without it there are a few hundred, the same each time.
#![cfg(feature = "servers")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trunkline_fuzz::{Mutator, TARGETS, Target, target};

macro_rules! targets {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        mod holds {
            $(#[test]
            fn $name() {
                super::fuzz(stringify!($name));
            })*
        }
    };
}

targets! {
    codec jsonrpc sse conversation classify http request response template uri catalog jose challenge seal admin
}

#[test]
fn every_target_has_a_test_and_a_seed() {
    let names: Vec<_> = TARGETS.iter().map(|it| it.name).collect();
    assert_eq!(names, TESTED);
    for name in names {
        assert!(!inputs(&folder("seeds", name)).is_empty(), "`fuzz/seeds/{name}` is empty");
    }
}

#[test]
fn every_folder_of_inputs_belongs_to_a_target() {
    for kind in ["seeds", "found"] {
        let folders = std::fs::read_dir(folder(kind, "")).expect("the folder is there");
        for folder in folders.map(|it| it.expect("it can be read").file_name()) {
            let name = folder.to_string_lossy();
            assert!(name == "README.md" || target(&name).is_some(), "`fuzz/{kind}/{name}`");
        }
    }
}

#[allow(clippy::print_stdout)] // The figure is what a timed run is read for.
fn fuzz(name: &str) {
    let target = target(name).expect("it has a row");
    let mut seeds = inputs(&folder("seeds", name));
    seeds.extend(inputs(&folder("found", name)));
    seeds.push(Vec::new());
    seeds.iter().for_each(|it| check(target, it));

    let seconds = std::env::var("TRUNKLINE_FUZZ_SECONDS").ok();
    let seconds = seconds.map(|it| it.parse().expect("`TRUNKLINE_FUZZ_SECONDS` is a number"));
    match seconds.map(Duration::from_secs) {
        None => {
            let mut mutator = Mutator::new(1);
            (0..FEW).for_each(|_| check(target, &mutator.next(&seeds, target.words)));
        }
        Some(time) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
            let number = now.as_nanos() as u64;
            // Shown with a failure: the same number makes the same inputs.
            println!("{name}: begins at {number}");
            let mut mutator = Mutator::new(number);
            let (start, mut count) = (Instant::now(), 0);
            while start.elapsed() < time {
                check(target, &mutator.next(&seeds, target.words));
                count += 1;
            }
            println!("{name}: {count} inputs in {} s", time.as_secs());
        }
    }
}

/// Runs one input; whoever reads the failure can save it under `fuzz/found`.
fn check(target: &Target, data: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.check)(data))).is_err() {
        let name = target.name;
        panic!(
            "`{name}` does not hold for b\"{}\"; save it in `fuzz/found/{name}`",
            data.escape_ascii()
        );
    }
}

fn folder(kind: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(name)
}

fn inputs(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = files.map(|it| it.expect("it can be read").path()).collect();
    paths.sort();
    paths.iter().map(|it| std::fs::read(it).expect("it can be read")).collect()
}

/// Inputs of each target in plain `cargo test`.
const FEW: usize = 300;
