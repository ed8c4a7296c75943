use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

fn definition(text: &str) -> String {
    fingerprint(&Json::parse(text).unwrap())
}

#[test]
fn a_definition_is_what_a_model_goes_by() {
    let base = r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1}}"#;
    let same = r#"{ "inputSchema": {"x":1, "type":"object"}, "title": null,
        "description": "d", "name": "a", "_meta": {"k": 1}, "icons": [] }"#;
    assert_eq!(definition(base), definition(same));
    for other in [
        r#"{"name":"b","description":"d","inputSchema":{"type":"object","x":1}}"#,
        r#"{"name":"a","description":"d ","inputSchema":{"type":"object","x":1}}"#,
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":2}}"#,
        r#"{"name":"a","title":"t","description":"d","inputSchema":{"type":"object","x":1}}"#,
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{}}"#,
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}"#,
    ] {
        assert_ne!(definition(base), definition(other), "{other}");
    }
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |it: &str| it.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    text.split_whitespace().filter_map(pair).collect()
}

fn names(held: &[Held]) -> Vec<&str> {
    held.iter().map(|it| it.tool.as_str()).collect()
}

fn sift(pins: &mut Pins, server: &str, tools: &str) -> Vec<Held> {
    let tools = pairs(tools);
    let sifted = pins.sift(server, tools.iter().map(|(a, b)| (a.as_str(), b.as_str())));
    pins.pin(server, &sifted.pinned);
    sifted.held
}

#[test]
fn what_is_seen_first_is_trusted_and_what_changes_is_held() {
    let mut pins = Pins::default();
    assert!(sift(&mut pins, "s", "a=1 b=2").is_empty());
    assert!(sift(&mut pins, "s", "b=2 a=1").is_empty());
    let held = sift(&mut pins, "s", "a=9 b=2");
    assert_eq!(held, [Held { tool: "a".into(), pinned: "1".into(), seen: "9".into() }]);
    assert_eq!(names(&sift(&mut pins, "s", "a=9 b=2")), ["a"], "looking twice approves nothing");
    assert!(sift(&mut pins, "s", "a=1 b=2").is_empty(), "it is back to what it was");
}

#[test]
fn a_new_tool_of_a_known_server_is_pinned() {
    let mut pins = Pins::default();
    sift(&mut pins, "s", "a=1");
    assert!(sift(&mut pins, "s", "a=1 b=2").is_empty());
    assert_eq!(names(&sift(&mut pins, "s", "a=1 b=3")), ["b"]);
}

#[test]
fn a_tool_that_was_away_is_still_pinned() {
    let mut pins = Pins::default();
    sift(&mut pins, "s", "a=1 b=2");
    sift(&mut pins, "s", "b=2");
    assert_eq!(names(&sift(&mut pins, "s", "a=9 b=2")), ["a"]);
}

#[test]
fn servers_have_pins_of_their_own() {
    let mut pins = Pins::default();
    sift(&mut pins, "s", "a=1");
    assert!(sift(&mut pins, "another", "a=2").is_empty());
    assert_eq!(names(&sift(&mut pins, "s", "a=2")), ["a"]);
}

#[test]
fn a_name_with_two_definitions_is_held() {
    let mut pins = Pins::default();
    assert_eq!(names(&sift(&mut pins, "s", "a=1 a=2")), ["a"]);
    assert_eq!(names(&sift(&mut pins, "s", "a=2 a=1")), ["a"]);
    assert!(sift(&mut pins, "s", "a=1 a=1").is_empty());
}

#[test]
fn the_failure_says_how_to_approve() {
    let failure = held_back("git", "pu\u{1b}sh");
    assert_eq!((failure.reason, failure.stage), ("held_back", Stage::Policy));
    assert!(failure.to_string().contains("`trunkline approve git push`"), "{failure}");
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-pins-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn file(&self) -> PathBuf {
        self.0.join("state/pins.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn look(pins: &PinFile, tools: &str) -> Vec<String> {
    let (held, fault) = pins.sift("s", pairs(tools)).await;
    assert_eq!(fault, None);
    held.into_iter().map(|it| it.tool).collect()
}

#[tokio::test]
async fn pins_outlive_the_process_and_nobody_else_reads_them() {
    let folder = Folder::new();
    let pins = PinFile::open(folder.file()).unwrap();
    assert!(look(&pins, "a=1 b=2").await.is_empty());
    let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let pins = PinFile::open(folder.file()).unwrap();
    assert_eq!(look(&pins, "a=9 b=2").await, ["a"]);
    assert!(pins.is_held("s", "a") && !pins.is_held("s", "b") && !pins.is_held("t", "a"));
}

#[tokio::test]
async fn an_approval_pins_what_is_held_now() {
    let folder = Folder::new();
    let pins = PinFile::open(folder.file()).unwrap();
    look(&pins, "a=1 b=2 c=3").await;
    assert_eq!(look(&pins, "a=7 b=8 c=3").await, ["a", "b"]);
    let one = Which::Tools(vec!["a".into(), "c".into(), "no such".into()]);
    assert_eq!(pins.approve("s", &one).await.unwrap(), ["a"]);
    assert_eq!(names(&pins.held("s")), ["b"]);
    assert_eq!(look(&pins, "a=7 b=8 c=3").await, ["b"]);
    assert_eq!(pins.approve("s", &Which::All).await.unwrap(), ["b"]);
    assert!(look(&PinFile::open(folder.file()).unwrap(), "a=7 b=8 c=3").await.is_empty());
    assert!(pins.approve("s", &Which::All).await.unwrap().is_empty(), "nothing is held any more");
}

#[tokio::test]
async fn processes_that_share_a_file_agree() {
    let folder = Folder::new();
    let (one, other) =
        (PinFile::open(folder.file()).unwrap(), PinFile::open(folder.file()).unwrap());
    assert!(look(&one, "a=1").await.is_empty());
    assert_eq!(look(&other, "a=2").await, ["a"], "the other one saw it first");
    assert!(look(&other, "a=1 b=1").await.is_empty());
    assert_eq!(look(&one, "a=5 b=1").await, ["a"]);
    assert_eq!(look(&other, "a=5 b=1").await, ["a"]);
    assert_eq!(one.approve("s", &Which::All).await.unwrap(), ["a"]);
    assert!(look(&other, "a=5 b=1").await.is_empty(), "it was approved there");
}

#[tokio::test]
async fn a_damaged_file_is_not_taken_for_an_empty_one() {
    let folder = Folder::new();
    let pins = PinFile::open(folder.file()).unwrap();
    look(&pins, "a=1").await;
    for damaged in ["", "{", "{\"servers\":1}", "[]"] {
        std::fs::write(folder.file(), damaged).unwrap();
        let fault = PinFile::open(folder.file()).unwrap_err().to_string();
        assert!(fault.contains("is damaged") && fault.contains("Restore it"), "{fault}");
    }
    // While it runs: what is known holds, nothing is written over, and somebody is told.
    let (held, fault) = pins.sift("s", pairs("a=2 b=1")).await;
    assert_eq!(names(&held), ["a"]);
    assert!(fault.unwrap().to_string().contains("is damaged"));
    assert_eq!(std::fs::read_to_string(folder.file()).unwrap(), "[]");
    assert!(pins.approve("s", &Which::All).await.unwrap_err().to_string().contains("is damaged"));
    assert!(pins.is_held("s", "a"));
}

#[tokio::test]
async fn what_a_new_instance_says_differently_is_held_back_until_the_whole_list_is_seen() {
    let folder = Folder::new();
    let pins = PinFile::open(folder.file()).unwrap();
    look(&pins, "a=1 b=2").await;
    assert_eq!(names(&pins.hold("s", &pairs("a=9 new=1"))), ["a"], "what is new is not pinned yet");
    assert!(pins.is_held("s", "a") && !pins.is_held("s", "new"));
    assert!(pins.hold("s", &pairs("a=9")).is_empty(), "it is held already");
    assert!(pins.hold("s", &pairs("b=2")).is_empty());
    assert!(look(&pins, "a=1 b=2").await.is_empty());
    assert!(!pins.is_held("s", "a"));
}
