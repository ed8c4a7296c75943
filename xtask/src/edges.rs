//! Cargo's metadata and the table of ARCHITECTURE.md into the crate edges that the table does not allow.

use crate::json::{self, Lenient};
use crate::run;

/// One crate of the workspace, as cargo sees it.
pub struct Crate {
    /// Its name.
    pub name: String,
    /// The root files of its library and binaries, relative to the repository.
    pub roots: Vec<String>,
    /// What it depends on.
    pub edges: Vec<Edge>,
}

/// One line of a `[dependencies]` table.
pub struct Edge {
    /// The crate depended on.
    pub to: String,
    /// Whether only tests use it.
    pub dev: bool,
}

/// Reads the crates of the workspace from cargo.
pub fn crates() -> Result<Vec<Crate>, String> {
    let text = run::read(&mut run::cargo([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]))?;
    let metadata = json::parse(&text)?;
    let root = format!("{}/", run::root().display());
    let crates = metadata["packages"].items().iter().map(|package| Crate {
        name: package["name"].str().to_owned(),
        roots: package["targets"]
            .items()
            .iter()
            .filter(|target| {
                let kinds = target["kind"].items();
                kinds.iter().any(|kind| matches!(kind.str(), "lib" | "bin" | "proc-macro"))
            })
            .map(|target| target["src_path"].str().trim_start_matches(&root).to_owned())
            .collect(),
        edges: package["dependencies"]
            .items()
            .iter()
            .map(|edge| Edge {
                to: edge["name"].str().to_owned(),
                dev: edge["kind"].str() == "dev",
            })
            .collect(),
    });
    Ok(crates.collect())
}

/// Compares the crates with the table under `## Crate edges` and returns one sentence per difference.
///
/// The table's columns are the crate, what it may use of ours and what it may use of others. A name followed by
/// `(dev)` is allowed in tests alone. Tests may use any crate of others, and `trunkline-testkit`.
pub fn compare(crates: &[Crate], architecture: &str) -> Vec<String> {
    let rows = table(architecture);
    if rows.is_empty() {
        return vec!["ARCHITECTURE.md has no table under `## Crate edges`; write one.".to_owned()];
    }
    let ours = |name: &str| crates.iter().any(|krate| krate.name == name);
    let mut wrong = Vec::new();
    for krate in crates {
        let Some(row) = rows.iter().find(|row| row.name == krate.name) else {
            wrong.push(format!("`{}` has no row in ARCHITECTURE.md's table of edges.", krate.name));
            continue;
        };
        for edge in &krate.edges {
            let allowed = if ours(&edge.to) {
                row.ours.iter().any(|may| may.name == edge.to && (edge.dev || !may.dev))
                    || (edge.dev && edge.to == "trunkline-testkit")
                    // Its own tests may switch on its features.
                    || (edge.dev && edge.to == krate.name)
            } else {
                edge.dev || row.others.iter().any(|may| may.name == edge.to && !may.dev)
            };
            if !allowed {
                wrong.push(format!(
                    "`{}` depends on `{}`, which ARCHITECTURE.md's table does not allow.",
                    krate.name, edge.to
                ));
            }
        }
    }
    for row in rows.iter().filter(|row| !ours(&row.name)) {
        wrong.push(format!(
            "ARCHITECTURE.md's table of edges has a row for `{}`, which is no crate.",
            row.name
        ));
    }
    wrong
}

struct Row {
    name: String,
    ours: Vec<May>,
    others: Vec<May>,
}

/// A name in a cell.
pub struct May {
    /// The name.
    pub name: String,
    dev: bool,
}

fn table(text: &str) -> Vec<Row> {
    let rows = rows(text, "## Crate edges");
    rows.map(|[name, ours, others]| Row {
        name: name.replace('`', ""),
        ours: names(ours),
        others: names(others),
    })
    .collect()
}

/// The rows of the table under a heading, each as its first three cells.
pub fn rows<'a>(text: &'a str, heading: &str) -> impl Iterator<Item = [&'a str; 3]> {
    let section = text.lines().skip_while(move |line| line.trim() != heading).skip(1);
    section
        .take_while(|line| !line.starts_with('#'))
        .filter(|line| line.trim_start().starts_with('|'))
        // The names of the columns and the line under them.
        .skip(2)
        .map(|line| {
            let mut cells = line.trim().trim_matches('|').split('|');
            [(); 3].map(|()| cells.next().unwrap_or_default().trim())
        })
}

/// The names in a cell, which commas part.
pub fn names(cell: &str) -> Vec<May> {
    let entries = cell.split(',').map(|entry| entry.replace('`', ""));
    entries
        .filter_map(|entry| {
            let name = entry.split_whitespace().next()?.to_owned();
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
                && name != "-";
            is_name.then(|| May { name, dev: entry.contains("(dev)") })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
## Crate edges

| crate | may depend on (ours) | may use (others) |
|---|---|---|
| `wire` | — | `serde`, serde_json |
| `proto` | `wire`, `net` (dev) | |

## Next
| not | this | one |
";

    fn check(name: &str, to: &str, dev: bool) -> Vec<String> {
        let krate = |name: &str, edges| Crate { name: name.into(), roots: vec![], edges };
        let mut crates = vec![krate("wire", vec![]), krate("proto", vec![])];
        crates.push(krate("net", vec![]));
        let from = crates.iter_mut().find(|krate| krate.name == name).expect("a crate above");
        from.edges.push(Edge { to: to.into(), dev });
        let mut wrong = compare(&crates, TABLE);
        wrong.retain(|sentence| !sentence.contains("`net` has no row"));
        wrong
    }

    #[test]
    fn an_edge_in_the_table_is_allowed() {
        assert_eq!(check("proto", "wire", false), Vec::<String>::new());
        assert_eq!(check("wire", "serde", false), Vec::<String>::new());
        assert_eq!(check("wire", "proptest", true), Vec::<String>::new());
        assert_eq!(check("proto", "net", true), Vec::<String>::new());
    }

    #[test]
    fn an_edge_outside_the_table_is_named() {
        for (name, to) in [("wire", "proto"), ("wire", "tokio"), ("proto", "net")] {
            let wrong = check(name, to, false);
            assert_eq!(wrong.len(), 1, "{name} → {to}: {wrong:?}");
            assert!(wrong[0].starts_with(&format!("`{name}` depends on `{to}`")), "{wrong:?}");
        }
    }

    #[test]
    fn a_missing_table_or_row_is_named() {
        assert_eq!(compare(&[], "# Architecture").len(), 1);
        let extra = compare(&[], TABLE);
        assert!(extra.iter().any(|sentence| sentence.contains("`wire`, which is no crate")));
    }
}
