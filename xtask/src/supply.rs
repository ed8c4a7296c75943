//! What the dependencies are: lock files and cargo's metadata → one sentence per rule they break.
//!
//! Nothing here asks a database on the network, so it says nothing about advisories; it says that
//! nobody can slip in a licence, a source, a second version or a program that runs while building
//! without a line below changing.

mod licence;
mod locks;
mod rules;

use crate::graph::{self, Graph};
use crate::{run, sbom};
use rules::{AT_BUILD, DUPLICATES, LICENCES, WEIGHTS};
use std::collections::{BTreeMap, BTreeSet};

/// Checks every rule; the error counts the breaches, which are listed.
pub fn run(args: &[String]) -> Result<(), String> {
    if let Some(extra) = args.first() {
        return Err(format!("`supply` takes no arguments, but was given `{extra}`."));
    }
    let graph = Graph::read()?;
    let mut wrong = licences(&graph);
    wrong.extend(sources(&graph));
    wrong.extend(duplicates(&graph));
    wrong.extend(at_build(&graph));
    wrong.extend(weights()?);
    wrong.extend(locks::check()?);
    wrong.extend(sbom::faults(&sbom::document(
        &graph,
        &sbom::shipped(&graph)?,
        &run::file(sbom::PAGE_LOCK)?,
    )));
    if wrong.is_empty() {
        println!("{} crates of others are in order", graph.foreign().count());
        return Ok(());
    }
    for sentence in &wrong {
        println!("{sentence}");
    }
    Err(format!("`supply` found {} breaches, listed above.", wrong.len()))
}

fn licences(graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for package in graph.foreign() {
        match licence::allowed(&package.licence, LICENCES, &mut used) {
            Ok(true) => {}
            Ok(false) => wrong.push(format!(
                "`{}` is under `{}`, which `LICENCES` in xtask/src/supply/rules.rs does not allow.",
                package.shown(),
                package.licence
            )),
            Err(why) => wrong.push(format!("`{}`: {why}", package.shown())),
        }
    }
    let unused = LICENCES.iter().filter(|it| !used.contains(**it));
    wrong.extend(
        unused.map(|it| format!("No crate needs the licence `{it}`; take it off the list.")),
    );
    wrong
}

fn sources(graph: &Graph) -> Vec<String> {
    let strange = |it: &graph::Package| {
        let registry = &it.source.as_ref()?.registry;
        let told =
            format!("`{}` comes from `{registry}`; crates come from crates.io alone.", it.shown());
        (registry != CRATES_IO).then_some(told)
    };
    graph.packages.iter().filter_map(strange).collect()
}

/// Two versions of a crate are two crates to trust, to build and to patch.
fn duplicates(graph: &Graph) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in graph.foreign() {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    versions.retain(|_, all| all.len() > 1);
    let excused = |name: &str| DUPLICATES.iter().any(|(it, _)| *it == name);
    let mut wrong: Vec<String> = versions
        .iter()
        .filter(|(name, _)| !excused(name))
        .map(|(name, all)| {
            let all: Vec<_> = all.iter().copied().collect();
            format!(
                "`{name}` is there as {}; see `cargo tree -d`, or give a reason in `DUPLICATES` of \
                 xtask/src/supply/rules.rs.",
                all.join(" and ")
            )
        })
        .collect();
    let stale = DUPLICATES.iter().filter(|(name, _)| !versions.contains_key(name));
    wrong.extend(stale.map(|(name, _)| {
        format!("`{name}` is there in one version only; take it off `DUPLICATES`.")
    }));
    wrong
}

/// Build scripts and macros run on the machine of every user who builds.
fn at_build(graph: &Graph) -> Vec<String> {
    let running: BTreeSet<&str> =
        graph.foreign().filter(|it| it.runs_at_build).map(|it| it.name.as_str()).collect();
    let listed: BTreeSet<&str> = AT_BUILD.iter().copied().collect();
    let new = running.difference(&listed).map(|name| {
        format!(
            "`{name}` runs a program while it is built; read it, then add it to `AT_BUILD` of \
             xtask/src/supply/rules.rs."
        )
    });
    let gone = listed
        .difference(&running)
        .map(|name| format!("`{name}` runs nothing while it is built; take it off `AT_BUILD`."));
    new.chain(gone).collect()
}

/// How many crates a dependent of one of ours gets.
fn weights() -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for (name, most) in WEIGHTS {
        let crates = graph::tree(&["--package", name])?.len();
        println!("`{name}` pulls in {crates} crates (at most {most})");
        if crates > *most {
            wrong.push(format!("`{name}` pulls in {crates} crates; at most {most} are allowed."));
        }
    }
    let published = graph::published()?;
    let missing = published.iter().filter(|name| !WEIGHTS.iter().any(|(it, _)| it == name));
    wrong
        .extend(missing.map(|name| format!("`{name}` is published, but has no row in `WEIGHTS`.")));
    Ok(wrong)
}

/// Where crates come from, as lock files and metadata spell it.
pub const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Package, Source};

    fn source(registry: &str) -> Option<Source> {
        Some(Source { registry: registry.to_owned(), checksum: Some("0".repeat(64)) })
    }

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package {
            id: format!("{name}@{version}"),
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.to_owned(),
            source: source(CRATES_IO),
            runs_at_build: false,
            needs: Vec::new(),
        }
    }

    #[test]
    fn a_licence_that_is_not_listed_is_named() {
        let graph = Graph { packages: vec![package("a", "1.0.0", "GPL-3.0-only")] };
        assert!(licences(&graph)[0].starts_with("`a 1.0.0` is under `GPL-3.0-only`"));
        let graph = Graph { packages: vec![package("a", "1.0.0", "")] };
        assert!(licences(&graph)[0].contains("no licence"));
    }

    #[test]
    fn a_second_version_needs_a_reason() {
        let graph =
            Graph { packages: vec![package("a", "1.0.0", "MIT"), package("a", "2.0.0", "MIT")] };
        assert!(duplicates(&graph)[0].starts_with("`a` is there as 1.0.0 and 2.0.0"));
    }

    #[test]
    fn a_source_beside_the_registry_is_named() {
        let git = source("git+https://example.com/a");
        let graph =
            Graph { packages: vec![Package { source: git, ..package("a", "1.0.0", "MIT") }] };
        assert!(sources(&graph)[0].contains("`git+https://example.com/a`"));
    }

    #[test]
    fn a_program_that_runs_while_building_is_named() {
        let graph = Graph {
            packages: vec![Package { runs_at_build: true, ..package("a", "1.0.0", "MIT") }],
        };
        assert!(at_build(&graph)[0].starts_with("`a` runs a program"));
    }
}
