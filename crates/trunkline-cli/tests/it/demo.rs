//! Every verb against the built-in server.

use serde_json::Value;

use crate::run::{against_demo, run};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Runs a verb in every revision and compares what it prints.
#[track_caller]
fn check(args: &[&str], expected: &str) {
    check_in(&REVISIONS, args, 0, expected);
}

#[track_caller]
fn check_in(revisions: &[&str], args: &[&str], code: i32, expected: &str) {
    for revision in revisions {
        let found = against_demo(&[args, &["--protocol", revision]].concat());
        assert_eq!(found.stdout, expected, "{revision}: {}", found.stderr);
        assert_eq!(found.code, code, "{revision}: {}", found.stderr);
    }
}

#[test]
fn tools_are_called_with_typed_arguments() {
    check(&["call", "echo", "text=42"], "42\n");
    check(&["call", "sum", "a=2", "b=3"], "{\"sum\":5}\n");
    check(&["call", "sum", "--args", r#"{"a":2,"b":2}"#, "b:=0.5"], "{\"sum\":2.5}\n");
    check(&["call", "progress", "steps=3"], "done\n");
    check(&["call", "work", "steps=2"], "worked 2 steps\n");
}

#[test]
fn resources_prompts_and_completions_are_read() {
    check(&["read", "demo://greeting/Ada"], "Hello, Ada!\n");
    check(
        &["prompt", "review", "code=x", "language=rust"],
        "user: Please review this code:\n```rust\nx\n```\n",
    );
    check(&["complete", "prompt:review", "language", "ru"], "ruby\nrust\n");
    check(&["complete", "demo://greeting/{name}", "name", "a"], "Ada\nAlan\n");
}

#[test]
fn questions_are_answered_from_the_command_line() {
    let asking = &REVISIONS[2..];
    check_in(asking, &["call", "greet", "--answer", "name=Ada"], 0, "Hello, Ada!\n");
    let formal = ["call", "greet", "--answer", "name=Ada", "--answer", "formal=yes"];
    check_in(asking, &formal, 0, "Good day, Ada.\n");
    check_in(asking, &["call", "greet", "--decline"], 1, "The user declined.\n");
    let url = &REVISIONS[3..];
    check_in(url, &["call", "open_page", "--accept"], 0, "accepted\n");
    check_in(url, &["call", "open_page"], 0, "declined\n");
    let said = "the person at the keyboard said: yes\n";
    check(&["call", "sample", "prompt=Well?", "--answer", "sample=yes"], said);
    let here = std::env::current_dir().unwrap();
    check(&["call", "roots", "--root", "."], &format!("file://{}\n", here.display()));
}

#[test]
fn a_question_nobody_can_answer_is_declined_and_says_how_to() {
    let found = against_demo(&["call", "greet"]);
    assert_eq!((found.code, found.stdout.as_str()), (1, "The user declined.\n"));
    assert!(found.stderr.contains("What is your name?"), "{}", found.stderr);
    assert!(found.stderr.contains("--answer NAME=VALUE"), "{}", found.stderr);
}

#[test]
fn one_call_may_ask_several_times() {
    let asked = [
        "call",
        "book",
        "city=Oslo",
        "nights=2",
        "--answer",
        "ok=yes",
        "--answer",
        "name=Bo",
        "--json",
    ];
    for revision in &REVISIONS[2..] {
        let found = against_demo(&[&asked[..], &["--protocol", revision]].concat());
        let result: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(result["structuredContent"]["total"], 198, "{revision}: {}", found.stderr);
    }
}

#[test]
fn a_tool_that_fails_exits_with_one() {
    check_in(&REVISIONS, &["call", "fail", "message=Oh no."], 1, "Oh no.\n");
}

#[test]
fn lists_are_readable_by_people_and_by_programs() {
    let found = against_demo(&["list"]);
    assert!(
        found.stdout.starts_with("The trunkline demo 0.1.0 speaks 2026-07-28\n"),
        "{}",
        found.stdout
    );
    found.says(
        0,
        &[
            "\nTools\n",
            "sum(a: number, b: number)",
            "\nResources\n",
            "demo://readme",
            "\nTemplates\n",
            "demo://greeting/{name}",
            "\nPrompts\n",
            "review(code, language?)",
        ],
    );
    assert!(!found.stdout.contains('\x1b'), "colours are for terminals");

    let found = against_demo(&["list", "tools", "--json"]);
    let list: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(list["tools"][0]["name"], "echo");
    assert_eq!(list.get("prompts"), None);
}

#[test]
fn colours_can_be_asked_for() {
    let found = against_demo(&["list", "tools", "--color", "always"]);
    assert!(found.stdout.contains("\x1b[36mecho(text: string)\x1b[0m"), "{}", found.stdout);
}

#[test]
fn logs_are_shown_when_asked_for() {
    for revision in REVISIONS {
        let log = [
            "call",
            "log",
            "level=error",
            "message=boo",
            "--log",
            "warning",
            "--protocol",
            revision,
        ];
        let found = against_demo(&log);
        assert!(found.stderr.contains("error demo: boo"), "{revision}: {}", found.stderr);
        let quiet = [
            "call",
            "log",
            "level=info",
            "message=boo",
            "--log",
            "warning",
            "--protocol",
            revision,
        ];
        assert!(!against_demo(&quiet).stderr.contains("boo"), "{revision}");
    }
}

#[test]
fn both_framings_and_ping_work() {
    for framing in ["newline", "content-length"] {
        let found = against_demo(&["ping", "--framing", framing]);
        assert_eq!(found.code, 0, "{}", found.stderr);
        assert!(found.stdout.starts_with("pong from trunkline-demo"), "{}", found.stdout);
    }
    let found = against_demo(&["ping", "--json", "--protocol", "2025-03-26"]);
    let pong: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(pong["protocolVersion"], "2025-03-26");
    assert_eq!(pong["server"]["name"], "trunkline-demo");
}

#[test]
fn pictures_are_described_and_given_whole_as_json() {
    let found = against_demo(&["call", "kinds"]);
    assert!(found.stdout.contains("[image, image/png, "), "{}", found.stdout);
    assert!(found.stdout.contains("[link] demo://readme"), "{}", found.stdout);
    let found = against_demo(&["call", "kinds", "--json"]);
    let result: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(result["content"].as_array().unwrap().len(), 5);
}

#[test]
fn a_tour_shows_what_it_can_do() {
    let found = run(&["tour"]);
    found.says(
        0,
        &[
            "2025-11-25",
            "2026-07-28",
            "step 1 of 3, step 2 of 3, step 3 of 3, done",
            "Hello, Ada!",
            "Try next:",
        ],
    );
}
