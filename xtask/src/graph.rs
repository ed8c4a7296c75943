//! Cargo's metadata and the lock file → the crates that are there, and who needs whom.

use crate::run;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Every crate that a build on some platform could use.
pub struct Graph {
    /// In the order of cargo.
    pub packages: Vec<Package>,
}

/// One crate in one version.
#[derive(Clone, Debug)]
pub struct Package {
    /// What cargo calls it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// An SPDX expression, or nothing.
    pub licence: String,
    /// None for our own.
    pub source: Option<Source>,
    /// Whether it has a build script or is a macro.
    pub runs_at_build: bool,
    /// The ids of those it links.
    pub needs: Vec<String>,
}

/// Where a crate comes from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The registry.
    pub registry: String,
    /// SHA-256 of its archive, in hex.
    pub checksum: Option<String>,
}

impl Package {
    /// Name and version.
    pub fn shown(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The checksum of its archive, if it comes with one.
    pub fn checksum(&self) -> Option<&str> {
        self.source.as_ref()?.checksum.as_deref()
    }
}

impl Graph {
    /// Asks cargo.
    pub fn read() -> Result<Self, String> {
        let args = ["metadata", "--format-version", "1", "--locked", "--all-features"];
        let text = run::read(&mut run::cargo(args))?;
        let metadata: Value = serde_json::from_str(&text)
            .map_err(|error| format!("`cargo metadata` wrote no JSON: {error}."))?;
        Ok(Self::of(&metadata, &checksums(&run::file("Cargo.lock")?)))
    }

    fn of(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Self {
        let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
        let needs: BTreeMap<&str, Vec<String>> = nodes
            .map(|node| {
                let normal = |dep: &&Value| {
                    let kinds = dep["dep_kinds"].as_array().into_iter().flatten();
                    kinds.into_iter().any(|kind| kind["kind"].is_null())
                };
                let deps = node["deps"].as_array().into_iter().flatten().filter(normal);
                (text(&node["id"]), deps.map(|dep| text(&dep["pkg"]).to_owned()).collect())
            })
            .collect();
        let package = |package: &Value| {
            let (id, name) = (text(&package["id"]), text(&package["name"]).to_owned());
            let version = text(&package["version"]).to_owned();
            let targets = package["targets"].as_array().into_iter().flatten();
            let mut kinds = targets.flat_map(|it| it["kind"].as_array().into_iter().flatten());
            Package {
                id: id.to_owned(),
                licence: text(&package["license"]).to_owned(),
                source: package["source"].as_str().map(|registry| Source {
                    registry: registry.to_owned(),
                    checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
                }),
                runs_at_build: kinds.any(|it| *it == "custom-build" || *it == "proc-macro"),
                needs: needs.get(id).cloned().unwrap_or_default(),
                name,
                version,
            }
        };
        let packages = metadata["packages"].as_array().into_iter().flatten().map(package);
        Self { packages: packages.collect() }
    }

    /// Those that are not ours.
    pub fn foreign(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|it| it.source.is_some())
    }
}

/// Name and version → checksum, as a lock file has them.
pub fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for block in lock.split("[[package]]") {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            line.map(|it| it.trim_end_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

/// What cargo would link, as `name vVERSION`, without the crate itself.
pub fn tree(selection: &[&str]) -> Result<BTreeSet<String>, String> {
    let mut tree = run::cargo(["tree", "--edges", "normal", "--prefix", "none", "--locked"]);
    let text = run::read(tree.args(selection))?;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    Ok(text.lines().skip(1).filter_map(line).collect())
}

/// The crates of this repository that others can depend on.
pub fn published() -> Result<Vec<String>, String> {
    let args = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
    let text = run::read(&mut run::cargo(args))?;
    let metadata: Value = serde_json::from_str(&text)
        .map_err(|error| format!("`cargo metadata` wrote no JSON: {error}."))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let open = packages.filter(|it| it["publish"].is_null());
    Ok(open.map(|it| text_of(&it["name"])).collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn text_of(value: &Value) -> String {
    text(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_reads_as_the_graph_it_says() {
        let metadata = json!({
            "packages": [
                { "id": "p1", "name": "a", "version": "1.0.0", "license": "MIT", "source": null,
                  "targets": [{ "kind": ["lib"] }] },
                { "id": "p2", "name": "b", "version": "2.0.0", "license": null, "source": "registry",
                  "targets": [{ "kind": ["lib"] }, { "kind": ["custom-build"] }] },
            ],
            "resolve": { "nodes": [{ "id": "p1", "deps": [
                { "pkg": "p2", "dep_kinds": [{ "kind": null }] },
                { "pkg": "p1", "dep_kinds": [{ "kind": "dev" }] },
            ]}]},
        });
        let lock = "[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"abc\"\n";
        let graph = Graph::of(&metadata, &checksums(lock));
        assert_eq!(graph.packages[0].needs, ["p2"]);
        assert_eq!(graph.packages[0].checksum(), None);
        assert!(graph.packages[1].runs_at_build && !graph.packages[0].runs_at_build);
        assert_eq!(graph.packages[1].checksum(), Some("abc"));
        assert_eq!(graph.foreign().count(), 1);
    }
}
