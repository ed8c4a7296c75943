//! `record`, `diff` and `replay`: the binary between a client and a server, and in the place of each.

mod http;
mod tap;

use std::path::Path;

use serde_json::Value;
use trunkline_testkit::Folder;

use crate::run::{Run, TRUNKLINE, run};

/// A call with two questions at once, one more and progress.
const BOOK: [&str; 9] = [
    "call",
    "book",
    "city=Rome",
    "nights=2",
    "--accept",
    "--answer",
    "name=Ada",
    "--answer",
    "ok=true",
];

/// Runs a verb against the demo, and records it.
fn record(verb: &[&str], file: &Path, options: &[&str]) -> Run {
    let file = file.to_str().unwrap();
    let tap = [&["--", TRUNKLINE, "record", file], options, &["--", TRUNKLINE, "demo"]].concat();
    run(&[verb, &tap].concat())
}

/// Runs a verb against the server of a recording.
fn against(verb: &[&str], file: &Path) -> Run {
    let file = file.to_str().unwrap();
    run(&[verb, &["--", TRUNKLINE, "replay", file, "--as-server"]].concat())
}

/// Says a recording again to a server.
fn replay(file: &Path, options: &[&str], server: &[&str]) -> Run {
    run(&[&["replay", file.to_str().unwrap()], options, &["--"], server].concat())
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|it| serde_json::from_str(it).expect("a line is JSON")).collect()
}

#[test]
fn a_conversation_with_questions_is_played_from_both_ends_in_every_revision() {
    let folder = Folder::new();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        // Before 2025-06-18 there are no forms.
        let verb = match revision {
            "2024-11-05" | "2025-03-26" => {
                vec!["call", "sample", "prompt=x", "--answer", "sample=hi"]
            }
            _ => BOOK.to_vec(),
        };
        let verb = [verb.as_slice(), &["--protocol", revision, "--json"]].concat();
        let file = folder.join(format!("{revision}.jsonl"));
        let recorded = record(&verb, &file, &[]);
        recorded.says(0, &[]);
        let again = replay(&file, &[], &[TRUNKLINE, "demo"]);
        again.says(0, &["No difference in "]);
        let played = against(&verb, &file);
        assert_eq!((played.code, &played.stdout), (0, &recorded.stdout), "{}", played.stderr);
        assert_eq!(played.stderr, recorded.stderr, "{revision}");
        let revisions: Vec<_> = lines(&file)
            .iter()
            .filter_map(|it| it["revision"].as_str().map(str::to_owned))
            .collect();
        assert!(revisions.len() > 3 && revisions.iter().all(|it| it == revision), "{revisions:?}");
    }
}

#[test]
fn a_changed_tool_is_exactly_the_difference() {
    let folder = Folder::new();
    let (before, after) = (folder.join("before.jsonl"), folder.join("after.jsonl"));
    record(&["list", "tools", "--protocol", "2025-11-25"], &before, &[]).says(0, &[]);
    let text = std::fs::read_to_string(&before).unwrap();
    assert_eq!(text.matches("Adds two numbers.").count(), 1);
    std::fs::write(&after, text.replace("Adds two numbers.", "Adds numbers.")).unwrap();

    let server = [TRUNKLINE, "replay", after.to_str().unwrap(), "--as-server"];
    let found = replay(&before, &[], &server);
    let expected = "tool sum\n  /description\n    - \"Adds two numbers.\"\n    + \"Adds numbers.\"\n\
                    1 difference in 3 calls and 16 definitions.\n";
    assert_eq!((found.code, found.stdout.as_str()), (1, expected), "{}", found.stderr);
    let (a, b) = (before.to_str().unwrap(), after.to_str().unwrap());
    assert_eq!(run(&["diff", a, b]).stdout, expected);
    run(&["diff", a, a]).says(0, &["No difference in 3 calls and 16 definitions."]);
    run(&["diff", a, b, "--ignore", "tool sum:/description"]).says(0, &["No difference"]);

    let found = run(&["diff", a, b, "--json"]);
    let value: Value = serde_json::from_str(&found.stdout).unwrap();
    let difference = serde_json::json!({
        "of": "tool sum", "path": "/description", "a": "Adds two numbers.", "b": "Adds numbers.",
    });
    assert_eq!((found.code, &value["equal"]), (1, &Value::Bool(false)));
    assert_eq!(value["differences"], serde_json::json!([difference]));
}

#[test]
fn what_was_never_recorded_is_refused_and_said() {
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    record(&["call", "sum", "a=1", "b=2"], &file, &[]).says(0, &["{\"sum\":3}"]);
    against(&["call", "sum", "a=1", "b=2"], &file).says(0, &["{\"sum\":3}"]);
    let other = against(&["call", "sum", "a=1", "b=3", "--verbose"], &file);
    assert_eq!(other.code, 4);
    let why = "The recording has no `tools/call sum` with these parameters: `/arguments/b` was 2 and is 3.";
    assert!(other.stderr.contains(&format!("replay: {why}")), "{}", other.stderr);
}

#[test]
fn secrets_are_not_written_and_their_masks_still_match() {
    let folder = Folder::new();
    let file = folder.join("a.jsonl");
    let verb = ["call", "echo", "text=the key is hunter2-of-ada"];
    let options = ["--env", "KEY=hunter2-of-ada"];
    record(&verb, &file, &options).says(0, &["the key is hunter2-of-ada"]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("hunter2") && text.contains("the key is ***"), "{text}");
    against(&verb, &file).says(0, &["the key is ***"]);

    let named = folder.join("b.jsonl");
    record(&["call", "echo", "text=anything"], &named, &["--redact", "TEXT"])
        .says(0, &["anything"]);
    let text = std::fs::read_to_string(&named).unwrap();
    assert!(!text.contains("anything"), "{text}");
    let again = replay(&named, &[], &[TRUNKLINE, "demo"]);
    again.says(0, &["No difference"]);
    assert!(again.stderr.contains("hold a masked secret"), "{}", again.stderr);
}

#[test]
fn what_is_no_recording_is_refused_by_its_line() {
    let folder = Folder::new();
    let good = folder.join("good.jsonl");
    record(&["ping", "--protocol", "2025-11-25"], &good, &[]).says(0, &[]);
    let good = good.to_str().unwrap();
    for (text, why) in [
        ("{}\n", "Line 1: This is no line of a recording: it has no version `v`."),
        ("{\"v\":9}\n", "Line 1: Version 9 of the format is newer than this program."),
        ("{\"v\":1}\n", "There is no message in"),
    ] {
        let bad = folder.put("bad.jsonl", text);
        let found = run(&["diff", good, bad.to_str().unwrap()]);
        assert_eq!(found.code, 2);
        assert!(found.stderr.contains(why), "{}", found.stderr);
    }
    let found = run(&["diff", good, good, "--ignore", "result"]);
    assert!(found.code == 2 && found.stderr.contains("is no path"), "{}", found.stderr);
}
