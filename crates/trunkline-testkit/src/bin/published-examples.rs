//! A folder of published example messages into a complaint about each that our codec changes.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use trunkline_testkit::rewrite::rewrite;
use trunkline_wire::era::stateless::decode_cache;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::model::CacheHint;
use trunkline_wire::revision::Revision;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: published-examples FOLDER");
        return ExitCode::FAILURE;
    };
    let mut wrong = 0;
    let mut checked = 0;
    for revision in inside(&folder) {
        let Some(named) = Revision::parse(name(&revision)) else { continue };
        for definition in inside(&revision) {
            for file in inside(&definition) {
                checked += 1;
                if let Err(why) = check(named, name(&definition), &file) {
                    eprintln!("{}: {why}", file.display());
                    wrong += 1;
                }
            }
        }
    }
    println!("{checked} published examples, {wrong} of them come out otherwise than they went in");
    if wrong == 0 && checked >= FEWEST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(revision: Revision, definition: &str, file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let json = Json::parse(text.trim()).map_err(|error| error.to_string())?;
    let written = rewrite(revision, definition, &json);
    let written = written.ok_or_else(|| format!("nothing reads `{definition}`"))?;
    let mut expected: Value = json.to().map_err(|error| error.to_string())?;
    let mut written: Value = written.to().map_err(|error| error.to_string())?;
    // An embedded request has no id, and we keep none; one published example has it.
    if definition == "ListRootsRequest" {
        expected.as_object_mut().map(|it| it.remove("id"));
    }
    unhint(&expected, &mut written);
    if written == expected {
        return Ok(());
    }
    Err(format!("it comes out as {written}"))
}

/// One example of `resources/read` lacks the cache hint that its schema requires and we always
/// send; there we must have said that nothing is to be kept.
fn unhint(expected: &Value, written: &mut Value) {
    let Some(result) = written.get_mut("result") else { return };
    if result.get("contents").is_none() || expected["result"].get("ttlMs").is_some() {
        return;
    }
    if decode_cache(&Object::of(&result).to_json()) == CacheHint::NONE {
        result.as_object_mut().map(|it| (it.remove("ttlMs"), it.remove("cacheScope")));
    }
}

/// What lies in a folder, in order.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// So many were published; fewer mean the wrong folder.
const FEWEST: usize = 129;
