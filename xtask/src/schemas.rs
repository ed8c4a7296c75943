//! The published JSON Schemas into the facts that the oracle judges by: names, types, required
//! members and values, without a sentence of prose.

use crate::json::{self, Json, Lenient};
use crate::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes the facts of every revision; the folder is the argument, or the variable names it.
pub fn run(args: &[String]) -> Result<(), String> {
    let folder = match args {
        [] => published().ok_or_else(|| {
            format!("`schemas` needs the folder that holds `protocol/schema`: as FOLDER, or in `{PUBLISHED}`.")
        })?,
        [folder] => PathBuf::from(folder),
        _ => return Err("`schemas` takes one FOLDER or nothing.".to_owned()),
    };
    for revision in REVISIONS {
        let (path, facts) = (kept(revision), facts(&folder, revision)?);
        std::fs::write(run::root().join(&path), facts)
            .map_err(|error| format!("Cannot write `{path}`: {error}."))?;
        println!("wrote {path}");
    }
    Ok(())
}

/// The folder of published files that this machine has, if it has one.
pub fn published() -> Option<PathBuf> {
    std::env::var_os(PUBLISHED).map(PathBuf::from)
}

/// Compares the facts in the repository with the published schemas, and our codec with the
/// published examples.
pub fn compare(folder: &Path) -> Result<(), String> {
    for revision in REVISIONS {
        let path = kept(revision);
        if facts(folder, revision)? != run::file(&path)? {
            return Err(format!(
                "`{path}` is not what the published schema says; `cargo xtask schemas` makes it anew."
            ));
        }
    }
    println!("the facts of {} revisions are those of the published schemas", REVISIONS.len());
    run::run(&mut run::build(["--quiet"]))?;
    let mut examples = Command::new(run::trunkline().with_file_name("published-examples"));
    run::run(examples.arg(folder.join("protocol/examples")))
}

/// Where a revision's facts are kept in the repository.
fn kept(revision: &str) -> String {
    format!("crates/trunkline-testkit/schema/{revision}.json")
}

fn facts(folder: &Path, revision: &str) -> Result<String, String> {
    let path = folder.join(format!("protocol/schema/{revision}.json"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("Cannot read the schema `{}`: {error}.", path.display()))?;
    let wrong = |why| format!("`{}` cannot be made facts: {why}", path.display());
    let Json::Object(members) = strip(&json::parse(&text).map_err(wrong)?).map_err(wrong)? else {
        return Err(wrong("It is no object.".to_owned()));
    };
    Ok(lines(&members))
}

/// What a schema says to a validator. A keyword that is neither a fact nor known prose is an error,
/// so that nothing is lost and nothing slips in.
fn strip(schema: &Json) -> Result<Json, String> {
    let Json::Object(members) = schema else { return Ok(schema.clone()) };
    let mut facts = serde_json::Map::new();
    for (keyword, value) in members {
        let value = match keyword.as_str() {
            prose if PROSE.contains(&prose) => continue,
            "properties" | "definitions" | "$defs" => match value {
                Json::Object(named) => {
                    let named = named.iter().map(|(name, it)| Ok((name.clone(), strip(it)?)));
                    Json::Object(named.collect::<Result<_, String>>()?)
                }
                _ => return Err(format!("`{keyword}` is no object.")),
            },
            "items" | "additionalProperties" => strip(value)?,
            "anyOf" | "allOf" => {
                let all = value.items().iter().map(strip);
                Json::Array(all.collect::<Result<_, _>>()?)
            }
            fact if FACTS.contains(&fact) => value.clone(),
            other => return Err(format!("Nothing is known about the keyword `{other}`.")),
        };
        facts.insert(keyword.clone(), value);
    }
    Ok(Json::Object(facts))
}

/// A file with a definition on each line.
fn lines(members: &serde_json::Map<String, Json>) -> String {
    let members = sorted(members).into_iter().map(|(name, value)| match value {
        Json::Object(named) => {
            let named = sorted(named).into_iter();
            let named = named.map(|(name, it)| format!("{}:{}", Json::from(name), text(it)));
            format!("{}:{{\n{}\n}}", Json::from(name), named.collect::<Vec<_>>().join(",\n"))
        }
        other => format!("{}:{}", Json::from(name), text(other)),
    });
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(",\n"))
}

/// One line, its members in the order of their names whatever features serde_json was built with.
fn text(value: &Json) -> String {
    match value {
        Json::Object(members) => {
            let members = sorted(members).into_iter();
            let members = members.map(|(name, it)| format!("{}:{}", Json::from(name), text(it)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Json::Array(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn sorted(members: &serde_json::Map<String, Json>) -> Vec<(&str, &Json)> {
    let mut members: Vec<_> = members.iter().map(|(name, it)| (name.as_str(), it)).collect();
    members.sort_by_key(|(name, _)| *name);
    members
}

/// Names the folder with what was published: `protocol/schema` and `protocol/examples`.
pub const PUBLISHED: &str = "TRUNKLINE_SHARED";
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const PROSE: &[&str] = &["description", "title", "$comment", "examples", "default", "deprecated"];
const FACTS: &[&str] = &[
    "$schema",
    "$ref",
    "type",
    "required",
    "const",
    "enum",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, expected: Result<&str, &str>) {
        let stripped = strip(&json::parse(schema).unwrap()).map(|it| text(&it));
        assert_eq!(stripped.as_deref().map_err(String::as_str), expected, "{schema}");
    }

    #[test]
    fn prose_goes_and_facts_stay() {
        check(
            r#"{"description":"Says.","type":"object","required":["a"],"properties":{"a":{"title":"A","const":"x"}}}"#,
            Ok(r#"{"properties":{"a":{"const":"x"}},"required":["a"],"type":"object"}"#),
        );
        check(
            r#"{"anyOf":[{"$ref":"x/y","$comment":"?"},{"items":{"description":"d","minimum":-1.5}}]}"#,
            Ok(r#"{"anyOf":[{"$ref":"x/y"},{"items":{"minimum":-1.5}}]}"#),
        );
    }

    #[test]
    fn a_member_that_is_called_like_prose_is_a_fact() {
        check(
            r#"{"properties":{"description":{"description":"d","type":"string"},"title":{}}}"#,
            Ok(r#"{"properties":{"description":{"type":"string"},"title":{}}}"#),
        );
    }

    #[test]
    fn a_keyword_that_nobody_knows_is_an_error() {
        check(r#"{"anyOf":[{"if":{}}]}"#, Err("Nothing is known about the keyword `if`."));
    }

    #[test]
    fn the_facts_in_the_repository_hold_no_prose() {
        for revision in REVISIONS {
            let text = run::file(&kept(revision)).unwrap();
            let kept = json::parse(&text).unwrap();
            assert_eq!(strip(&kept), Ok(kept), "{revision}");
        }
    }
}
