use std::os::unix::fs::PermissionsExt;

use super::*;

/// A file in a folder that goes with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trunkline-audit-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.file()).unwrap();
        text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn entry(tool: &str) -> Entry {
    Entry {
        time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        trace: "t1".into(),
        principal: Some("alice".into()),
        client: None,
        server: Some("git".into()),
        instance: Some(3),
        what: What::Tool(tool).into(),
        arguments: Some("sha256:00".into()),
        decision: Decision::RateLimited,
        outcome: "rate_limited".into(),
        ms: 12,
    }
}

fn called(tool: &str) -> Line {
    Line::Call(Box::new(entry(tool)))
}

#[tokio::test]
async fn what_is_held_back_and_approved_is_noted() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    let held = Held { tool: "push".into(), pinned: "sha256:1".into(), seen: "sha256:2".into() };
    audit.note_held("git", &held);
    audit.note_approved("git", &["push".to_owned()]);
    audit.close().await;
    let mut lines = place.lines();
    for line in &mut lines {
        assert!(line.as_object_mut().unwrap().remove("time").is_some());
    }
    let expected = [
        serde_json::json!({
            "event": "held_back", "server": "git", "tool": "push",
            "pinned": "sha256:1", "seen": "sha256:2",
        }),
        serde_json::json!({ "event": "approved", "server": "git", "tools": ["push"] }),
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_call_is_a_line() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    audit.note(entry("push"));
    audit.note(Entry { what: What::Resource("file:///a").into(), ..entry("") });
    assert_eq!((audit.lost(), audit.path()), (0, &*place.file()));
    audit.close().await;
    let lines = place.lines();
    let expected = serde_json::json!({
        "time": "1970-01-01T00:00:01.500Z", "traceId": "t1", "principal": "alice", "server": "git",
        "instance": 3, "tool": "push", "arguments": "sha256:00", "decision": "rate_limited",
        "outcome": "rate_limited", "ms": 12,
    });
    assert_eq!(lines[0], expected);
    assert_eq!((&lines[1]["uri"], lines.len()), (&"file:///a".into(), 2));
    let mode = std::fs::metadata(place.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn what_is_there_is_kept() {
    let place = Place::new();
    for tool in ["one", "two"] {
        let audit = Audit::open(place.file()).unwrap();
        audit.note(entry(tool));
        audit.close().await;
    }
    let tools: Vec<_> = place.lines().iter().map(|it| it["tool"].clone()).collect();
    assert_eq!(tools, ["one", "two"]);
}

#[test]
fn names_cannot_break_lines_or_make_them_endless() {
    let hostile = format!("a\n\r\u{1b}[2J\u{202e}{}", "\"".repeat(1 << 20));
    let hostile = Entry {
        principal: Some(hostile.clone()),
        client: Some(hostile.clone()),
        server: Some(hostile.clone()),
        ..entry(&hostile)
    };
    let mut text = Vec::new();
    line(&hostile, &mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(text.len() < 9 << 10, "{}", text.len());
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("a[2J"));
}

fn book(place: &Place) -> Book {
    Book::open(&place.file(), Arc::default()).unwrap()
}

#[test]
fn a_renamed_or_removed_file_is_begun_anew() {
    let place = Place::new();
    let mut book = book(&place);
    book.write(&[called("one")]);
    std::fs::rename(place.file(), place.0.join("audit.jsonl.1")).unwrap();
    book.write(&[called("two")]);
    assert_eq!(place.lines()[0]["tool"], "two");
    std::fs::remove_file(place.file()).unwrap();
    book.write(&[called("three")]);
    assert_eq!(place.lines()[0]["tool"], "three");
    let old = std::fs::read_to_string(place.0.join("audit.jsonl.1")).unwrap();
    assert!(old.contains("one") && !old.contains("two"));
}

#[test]
fn what_cannot_be_written_is_counted_and_told_later() {
    let place = Place::new();
    let mut book = book(&place);
    std::fs::remove_dir_all(&place.0).unwrap();
    book.write(&[called("one"), called("two")]);
    book.write(&[called("three")]);
    assert_eq!(book.lost.load(Ordering::Relaxed), 3);
    std::fs::create_dir_all(&place.0).unwrap();
    book.write(&[called("four")]);
    book.write(&[called("five")]);
    let text = std::fs::read_to_string(place.file()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.trim_start().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines[0]["lost"], 3);
    let tools: Vec<_> = lines[1..].iter().map(|it| it["tool"].clone()).collect();
    assert_eq!(tools, ["four", "five"]);
}

#[test]
fn a_full_disk_is_a_loss_and_not_an_error() {
    let mut book = Book::open(Path::new("/dev/full"), Arc::default()).unwrap();
    book.write(&[called("one")]);
    assert_eq!(book.lost.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_full_queue_is_counted_and_nobody_waits() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    // On one thread the writer does not come round to it before we wait.
    (0..QUEUE + 7).for_each(|_| audit.note(entry("push")));
    assert_eq!(audit.lost(), 7);
    audit.close().await;
    let lines = place.lines();
    let lost: u64 = lines.iter().filter_map(|it| it["lost"].as_u64()).sum();
    assert_eq!((lost, lines.len()), (7, QUEUE + 1));
}
