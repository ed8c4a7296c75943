use std::os::unix::fs::PermissionsExt;

use trunkline_testkit::Folder;

use super::*;
use crate::policy::pins::{Part, Why};

/// A file in a temporary folder.
struct Place(Folder);

impl Place {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    fn lines(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.file()).unwrap();
        text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }
}

fn entry(tool: &str) -> Entry {
    Entry {
        time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        id: "i1".into(),
        trace: "t1".into(),
        principal: Some("alice".into()),
        client: None,
        server: Some("git".into()),
        method: "tools/call",
        instance: Some(3),
        what: What::Tool(tool).into(),
        arguments: Some("sha256:00".into()),
        decision: Decision::RateLimited,
        outcome: "rate_limited".into(),
        ms: 12,
        replica: None,
    }
}

/// Removes what differs each time.
fn bare(line: &mut serde_json::Value) {
    for name in ["time", "seq", "prev", "hash"] {
        assert!(line.as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
}

/// Whether the chain in the files holds.
fn verified(files: &[PathBuf]) -> Result<chain::Found, chain::Broken> {
    let mut verifier = chain::Verifier::default();
    for file in files {
        verifier.next_file();
        let text = std::fs::read(file).unwrap();
        for line in text.split_inclusive(|it| *it == b'\n') {
            let whole = line.strip_suffix(b"\n");
            verifier.line(whole.unwrap_or(line), whole.is_some())?;
        }
    }
    verifier.finish()
}

fn called(tool: &str) -> Line {
    Line::Call(Box::new(entry(tool)))
}

#[tokio::test]
async fn held_back_and_approved_definitions_are_recorded() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    let held = Held {
        kind: Part::Tool,
        name: "push".into(),
        why: Why::Changed,
        pinned: Some("sha256:1".into()),
        seen: "sha256:2".into(),
        refused: false,
        definition: None,
    };
    audit.note_held("git", &held);
    audit.note_approved("git", &["push".to_owned()]);
    audit.close().await;
    let mut lines = place.lines();
    for line in &mut lines {
        bare(line);
    }
    let expected = [
        serde_json::json!({
            "event": "held_back", "server": "git", "kind": "tool", "name": "push", "why": "changed",
            "pinned": "sha256:1", "seen": "sha256:2",
        }),
        serde_json::json!({ "event": "approved", "server": "git", "tools": ["push"] }),
        serde_json::json!({ "event": "stopped" }),
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
    let mut lines = place.lines();
    assert_eq!(lines[0]["time"], "1970-01-01T00:00:01.500Z");
    bare(&mut lines[0]);
    let expected = serde_json::json!({
        "id": "i1", "traceId": "t1", "principal": "alice", "server": "git", "method": "tools/call",
        "instance": 3, "tool": "push", "arguments": "sha256:00", "decision": "rate_limited",
        "outcome": "rate_limited", "ms": 12,
    });
    assert_eq!(lines[0], expected);
    assert_eq!((&lines[1]["uri"], lines.len()), (&"file:///a".into(), 3));
    let mode = std::fs::metadata(place.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn existing_lines_are_kept() {
    let place = Place::new();
    for tool in ["one", "two"] {
        let audit = Audit::open(place.file()).unwrap();
        audit.note(entry(tool));
        audit.close().await;
    }
    let lines = place.lines();
    let tools: Vec<_> = lines.iter().filter_map(|it| it["tool"].as_str()).collect();
    assert_eq!(tools, ["one", "two"]);
    assert_eq!(verified(&[place.file()]).unwrap().lines, 4, "the chain goes on over a restart");
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
    let text = serde_json::to_string(&Line::Call(Box::new(hostile))).unwrap();
    assert!(text.len() < 9 << 10, "{}", text.len());
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && text.contains("a[2J"));
}

fn book(place: &Place) -> Book {
    Book::open(&place.file(), Arc::default()).unwrap()
}

fn lost(state: &State) -> u64 {
    state.lost.load(Ordering::Relaxed)
}

#[test]
fn a_renamed_or_removed_file_is_reopened_and_the_chain_continues() {
    let place = Place::new();
    let old = place.0.join("audit.jsonl.1");
    let mut writing = book(&place);
    writing.write(&[called("one")]);
    std::fs::rename(place.file(), &old).unwrap();
    writing.write(&[called("two")]);
    assert_eq!(place.lines()[0]["tool"], "two");
    assert_eq!(verified(&[old.clone(), place.file()]).unwrap().lines, 2);
    // Also if no gateway ran at that time.
    drop(writing);
    std::fs::rename(place.file(), place.0.join("audit.jsonl.2")).unwrap();
    book(&place).write(&[called("three")]);
    assert_eq!(place.lines()[0]["tool"], "three");
    let all = [old, place.0.join("audit.jsonl.2"), place.file()];
    assert_eq!(verified(&all).unwrap().lines, 3);
    assert_eq!(verified(&[all[0].clone(), all[2].clone()]).unwrap_err().line, 1, "one is missing");
}

#[test]
fn two_gateways_write_one_chain() {
    let place = Place::new();
    let (mut one, mut other) = (book(&place), book(&place));
    for round in 0..5 {
        one.write(&[called(&format!("one{round}"))]);
        other.write(&[called(&format!("other{round}")), called("more")]);
    }
    assert_eq!(verified(&[place.file()]).unwrap().lines, 15);
}

#[test]
fn a_line_torn_by_a_crash_is_reported() {
    let place = Place::new();
    for cut in [1, 40, 200] {
        book(&place).write(&[called("whole"), called("cut")]);
        let length = std::fs::metadata(place.file()).unwrap().len();
        let file = std::fs::OpenOptions::new().write(true).open(place.file()).unwrap();
        file.set_len(length - cut).unwrap();
        // The head was not written either.
        std::fs::remove_file(head_path(&place.file())).unwrap();
        assert!(verified(&[place.file()]).unwrap().is_cut_off || cut == 1, "{cut}");
        book(&place).write(&[called("next")]);
        let found = verified(&[place.file()]).unwrap();
        assert!(!found.is_cut_off, "{cut}");
    }
    assert_eq!(verified(&[place.file()]).unwrap().recovered, 2, "one had lost only its end");
    let text = std::fs::read_to_string(place.file()).unwrap();
    assert_eq!(text.matches(r#""event":"recovered""#).count(), 2);
}

#[test]
fn every_manipulation_of_the_file_is_detected() {
    let place = Place::new();
    let mut writing = book(&place);
    let lines: Vec<_> = (0..6).map(|it| called(&format!("t{it}"))).collect();
    writing.write(&lines);
    let good = std::fs::read_to_string(place.file()).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let check = |lines: &[&str]| {
        std::fs::write(place.file(), lines.join("\n") + "\n").unwrap();
        verified(&[place.file()])
    };
    assert_eq!(check(&lines).unwrap().lines, 6);
    let flipped = lines[2].replace("t2", "t3");
    assert_eq!(check(&[lines[0], lines[1], &flipped, lines[3]]).unwrap_err().line, 3);
    assert_eq!(check(&[lines[0], lines[2], lines[3]]).unwrap_err().line, 2, "one was removed");
    assert_eq!(check(&[lines[0], lines[2], lines[1]]).unwrap_err().line, 2, "two were swapped");
    let forged = r#"{"time":"2026-01-01T00:00:00Z","tool":"push","decision":"allowed"}"#;
    let mut more = lines.clone();
    more.push(forged);
    assert_eq!(check(&more).unwrap_err().line, 7, "one was added");
    // The gateway continues after it, and does not make it part of the chain.
    writing.write(&[called("after")]);
    assert_eq!(verified(&[place.file()]).unwrap_err().line, 7);
    // Lines removed from the end are noticed as soon as the gateway continues.
    assert!(check(&lines[..4]).is_ok());
    assert_eq!(read_head(&place.file()).unwrap().seq, 7);
    book(&place).write(&[called("after")]);
    assert_eq!(verified(&[place.file()]).unwrap_err().line, 5);
}

#[test]
fn a_file_without_a_chain_continues_with_one() {
    let place = Place::new();
    std::fs::write(place.file(), "{\"tool\":\"old\"}\n{\"tool\":\"older\"}\n").unwrap();
    book(&place).write(&[called("new")]);
    let found = verified(&[place.file()]).unwrap();
    assert_eq!((found.unprotected, found.lines, found.first), (2, 1, 1));
}

#[test]
fn lost_lines_are_counted_and_reported_later() {
    let place = Place::new();
    let state = Arc::<State>::default();
    let mut book = Book::open(&place.file(), Arc::clone(&state)).unwrap();
    std::fs::remove_dir_all(&*place.0).unwrap();
    book.write(&[called("one"), called("two")]);
    book.write(&[called("three")]);
    assert_eq!((lost(&state), state.is_failing()), (3, true));
    std::fs::create_dir_all(&*place.0).unwrap();
    book.write(&[called("four")]);
    book.write(&[called("five")]);
    assert!(!state.is_failing());
    let lines = place.lines();
    assert_eq!(lines[0]["lost"], 3);
    let tools: Vec<_> = lines[1..].iter().map(|it| it["tool"].clone()).collect();
    assert_eq!(tools, ["four", "five"]);
    assert_eq!(verified(&[place.file()]).unwrap().lost, 3);
}

#[test]
fn with_on_failure_refuse_nothing_is_lost() {
    let place = Place::new();
    let state = Arc::new(State { refuses: true, ..State::default() });
    let mut book = Book::open(&place.file(), Arc::clone(&state)).unwrap();
    std::fs::remove_dir_all(&*place.0).unwrap();
    book.write(&[called("one"), called("two")]);
    assert!(book.is_waiting() && state.is_failing());
    std::fs::create_dir_all(&*place.0).unwrap();
    book.write(&[]);
    assert!(!state.is_failing());
    let tools: Vec<_> = place.lines().iter().map(|it| it["tool"].clone()).collect();
    assert_eq!((tools, lost(&state)), (vec!["one".into(), "two".into()], 0));
}

#[tokio::test]
async fn a_full_disk_is_reported_and_calls_are_refused_with_on_failure_refuse() {
    for refuses in [false, true] {
        let plan = AuditPlan { refuses, ..AuditPlan::new("/dev/full") };
        let audit = Audit::with(&plan).unwrap();
        assert!(audit.admit().is_ok(), "nothing is known yet");
        audit.note(entry("one"));
        audit.flush().await;
        assert!(audit.is_failing());
        assert_eq!(audit.lost(), u64::from(!refuses));
        let why = audit.status()["failing"].as_str().unwrap().to_owned();
        assert!(why.contains("space"), "{why}");
        assert_eq!(
            audit.admit().map_err(|it| it.reason.word()).err(),
            refuses.then_some("audit_unavailable")
        );
    }
}

#[tokio::test]
async fn a_full_queue_counts_losses_and_never_blocks() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    let room = QUEUE / called("push").size();
    // On one thread the writer does not run before we await.
    (0..room + 7).for_each(|_| audit.note(entry("push")));
    assert_eq!(audit.lost(), 7);
    audit.flush().await;
    let found = verified(&[place.file()]).unwrap();
    assert_eq!((found.lost, found.lines), (7, room as u64 + 1));
    assert_eq!(audit.state.queued.load(Ordering::Relaxed), 0);
    // With `refuse`, calls are refused before anything is lost.
    let plan = AuditPlan { refuses: true, ..AuditPlan::new(place.0.join("other")) };
    let audit = Audit::with(&plan).unwrap();
    let mut noted = 0;
    while audit.admit().is_ok() {
        audit.note(entry("push"));
        noted += 1;
    }
    assert!(noted > room / 3 && audit.lost() == 0, "{noted}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_at_the_door_is_a_few_lines() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    for _ in 0..10 {
        (0..1_000).for_each(|_| audit.refused(401));
        audit.refused(403);
        audit.refused(404);
        tokio::time::sleep(Duration::from_secs(2)).await; // the clock is moved, nobody waits
    }
    audit.close().await;
    let lines = place.lines();
    let refused: Vec<_> = lines.iter().filter(|it| it["event"] == "refused").collect();
    assert!((2..=8).contains(&refused.len()), "{refused:?}");
    let count = |status: u64| -> u64 {
        let of = refused.iter().filter(|it| it["status"] == status);
        of.filter_map(|it| it["count"].as_u64()).sum()
    };
    assert_eq!((count(401), count(403), count(404)), (10_000, 10, 0));
    assert!(verified(&[place.file()]).is_ok());
}

#[tokio::test]
async fn events_of_the_gateway_are_recorded() {
    let place = Place::new();
    let audit = Audit::open(place.file()).unwrap();
    audit.note_event("started", serde_json::json!({ "version": "1" }));
    audit.note_subscription(true, Some("ann"), "git", "file:///a\u{202e}");
    audit.note_subscription(false, None, "git", "file:///a");
    audit.close().await;
    let lines = place.lines();
    let events: Vec<_> = lines.iter().map(|it| it["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["started", "subscribed", "unsubscribed", "stopped"]);
    assert_eq!((&lines[1]["principal"], &lines[1]["uri"]), (&"ann".into(), &"file:///a".into()));
    let status = audit.status();
    assert_eq!((&status["seq"], &status["hash"]), (&4.into(), &lines[3]["hash"]));
}
