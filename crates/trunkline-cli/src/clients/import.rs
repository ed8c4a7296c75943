//! Servers that were found, and the catalog → what to add, what exists, what conflicts.

use std::collections::BTreeMap;

use super::catalog::Have;
use super::entry::Entry;
use super::read::{Found, is_ours};
use super::secrets::is_same_but_for_secrets;

/// The decision about a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It is new.
    Add,
    /// It exists already.
    Same(Origin),
    /// Another server has this name, or the existing one could not be parsed.
    Conflict(Origin, Option<Box<Entry>>),
    /// It replaces the existing one.
    Replace(Origin),
    /// It is the gateway itself.
    Ours,
    /// It is not imported.
    Skip(String),
}

/// The origin of an existing server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The catalog.
    Catalog,
    /// A client's file, under this name.
    Client(String),
}

/// How to resolve conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolve {
    /// The new server gets another name.
    Rename,
    /// The new server is left out.
    Skip,
    /// The new server replaces the old one.
    Replace,
}

/// A server that was found, and the decision about it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was found.
    pub(crate) found: Found,
    /// Its name in the catalog.
    pub(crate) name: String,
    /// The decision.
    pub(crate) verdict: Verdict,
}

impl Row {
    /// What is to be written, if anything.
    pub(crate) fn change(&self) -> Option<(String, Entry)> {
        let is_change = matches!(self.verdict, Verdict::Add | Verdict::Replace(_));
        let entry = self.found.entry.as_ref().ok().filter(|_| is_change)?;
        Some((self.name.clone(), entry.clone()))
    }
}

/// Decides about each. Of several with one name the first counts, and the others are compared with
/// it.
pub(crate) fn plan(
    found: Vec<Found>,
    have: &Have,
    listen: &str,
    resolve: Option<Resolve>,
) -> Vec<Row> {
    let mut there: BTreeMap<String, (Origin, Option<Entry>)> = BTreeMap::new();
    for (name, entry) in &have.servers {
        there.insert(name.clone(), (Origin::Catalog, entry.clone()));
    }
    let mut rows = Vec::new();
    for found in found {
        let mut name = fitting(&found.name);
        let verdict = match &found.entry {
            Err(why) => Verdict::Skip(why.clone()),
            Ok(entry) if is_ours(&found.name, entry, listen) => Verdict::Ours,
            Ok(entry) => {
                let verdict = judge(&name, entry, &there);
                match (verdict, resolve) {
                    (Verdict::Conflict(..), Some(Resolve::Rename)) => {
                        name = renamed(&name, &found, entry, &there);
                        judge(&name, entry, &there)
                    }
                    (Verdict::Conflict(origin, _), Some(Resolve::Replace)) => match origin {
                        Origin::Catalog => Verdict::Replace(origin),
                        // Of two new servers the first stays; otherwise the result would be
                        // arbitrary.
                        Origin::Client(it) => {
                            Verdict::Skip(format!("`{name}` of {it} comes before it."))
                        }
                    },
                    (Verdict::Conflict(..), Some(Resolve::Skip)) => {
                        Verdict::Skip("Something else is there by this name.".to_owned())
                    }
                    (verdict, _) => verdict,
                }
            }
        };
        if let (Ok(entry), Verdict::Add | Verdict::Replace(_)) = (&found.entry, &verdict) {
            let origin = Origin::Client(found.client.title().to_owned());
            there.insert(name.clone(), (origin, Some(entry.clone())));
        }
        rows.push(Row { found, name, verdict });
    }
    rows
}

fn judge(name: &str, entry: &Entry, there: &BTreeMap<String, (Origin, Option<Entry>)>) -> Verdict {
    match there.get(name) {
        None => Verdict::Add,
        Some((origin, Some(it))) if it.is_same(entry) => Verdict::Same(origin.clone()),
        // An earlier import with variables for secrets wrote it.
        Some((origin @ Origin::Catalog, Some(it))) if is_same_but_for_secrets(it, entry) => {
            Verdict::Same(origin.clone())
        }
        Some((origin, it)) => Verdict::Conflict(origin.clone(), it.clone().map(Box::new)),
    }
}

/// A name that is free, or that this server already has.
fn renamed(
    name: &str,
    found: &Found,
    entry: &Entry,
    there: &BTreeMap<String, (Origin, Option<Entry>)>,
) -> String {
    let base = format!("{name}-{}", found.client.name());
    let mut candidates =
        std::iter::once(base.clone()).chain((2..).map(|it| format!("{base}-{it}")));
    let is_free = |it: &String| !matches!(judge(it, entry, there), Verdict::Conflict(..));
    candidates.find(is_free).unwrap_or(base)
}

/// A valid name for the catalog: `[A-Za-z0-9_-]{1,64}`.
fn fitting(name: &str) -> String {
    let fit = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    let name: String = name.chars().map(fit).take(64).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::super::{Client, Place, have, read};
    use super::*;

    fn found(client: Client, text: &str) -> Vec<Found> {
        read(&Place { client, path: "f".into(), project: None }, text).unwrap()
    }

    #[track_caller]
    fn check(resolve: Option<Resolve>, expected: &[&str]) {
        let have = have("mcpServers:\n  time:\n    command: uvx\n    args: [t]\n    env: {A: '1', B: '2'}\n  git: {command: git-mcp}\n").unwrap();
        let mut all = found(
            Client::Cursor,
            r#"{"mcpServers": {
                "time": {"command": "uvx", "args": ["t"], "env": {"B": "2", "A": "1"}},
                "git": {"command": "other"},
                "my files": {"command": "fs"},
                "trunkline": {"command": "/usr/bin/trunkline", "args": ["serve", "--stdio"]},
                "self": {"url": "http://localhost:7373/mcp"},
                "bad": {}}}"#,
        );
        all.extend(found(
            Client::Gemini,
            r#"{"mcpServers": {"my-files": {"command": "fs"}, "git": {"command": "third"}}}"#,
        ));
        all.extend(found(Client::Codex, "[mcp_servers.my-files]\ncommand = 'fs2'\n"));
        let rows = plan(all, &have, "127.0.0.1:7373", resolve);
        let word = |it: &Row| {
            let what = match &it.verdict {
                Verdict::Add => "add".to_owned(),
                Verdict::Same(origin) => format!("same {origin:?}"),
                Verdict::Conflict(origin, _) => format!("conflict {origin:?}"),
                Verdict::Replace(_) => "replace".to_owned(),
                Verdict::Ours => "ours".to_owned(),
                Verdict::Skip(_) => "skip".to_owned(),
            };
            format!("{} {what}", it.name)
        };
        assert_eq!(rows.iter().map(word).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn new_same_and_different_are_told_apart() {
        check(
            None,
            &[
                "bad skip",
                "git conflict Catalog",
                "my-files add",
                "self ours",
                "time same Catalog",
                "trunkline ours",
                "git conflict Catalog",
                "my-files same Client(\"Cursor\")",
                "my-files conflict Client(\"Cursor\")",
            ],
        );
    }

    #[test]
    fn conflicts_end_as_was_said() {
        let word = |how, git: &str, second: &str, codex: &str| {
            let git2 = second.to_owned();
            check(
                Some(how),
                &[
                    "bad skip",
                    git,
                    "my-files add",
                    "self ours",
                    "time same Catalog",
                    "trunkline ours",
                    &git2,
                    "my-files same Client(\"Cursor\")",
                    codex,
                ],
            );
        };
        word(Resolve::Skip, "git skip", "git skip", "my-files skip");
        word(Resolve::Rename, "git-cursor add", "git-gemini add", "my-files-codex add");
        word(Resolve::Replace, "git replace", "git skip", "my-files skip");
    }
}
