use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use trunkline_testkit::Folder;
use trunkline_wire::json::Json;

use super::*;

const TODAY: u32 = 20_000;

fn digest(part: Part, text: &str) -> String {
    Offered::new(part, "", &Json::parse(text).unwrap()).digest
}

#[test]
fn a_definition_is_what_a_model_reads() {
    let base = r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1}}"#;
    let same = r#"{ "inputSchema": {"x":1, "type":"object"}, "title": null,
        "description": "d", "name": "a", "_meta": {"k": 1}, "icons": [] }"#;
    let tool = |text| digest(Part::Tool, text);
    assert_eq!(tool(base), tool(same));
    for other in [
        r#"{"name":"b","description":"d","inputSchema":{"type":"object","x":1}}"#,
        r#"{"name":"a","description":"d ","inputSchema":{"type":"object","x":1}}"#,
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":2}}"#,
        r#"{"name":"a","title":"t","description":"d","inputSchema":{"type":"object","x":1}}"#,
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"outputSchema":{}}"#,
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"annotations":{"readOnlyHint":true}}"#,
    ] {
        assert_ne!(tool(base), tool(other), "{other}");
    }
}

#[test]
fn what_a_resource_holds_does_not_count_and_what_it_is_called_does() {
    let of = |text| digest(Part::Resource, text);
    let base = of(r#"{"uri":"a:b","name":"n","description":"d","size":1}"#);
    let grown =
        r#"{"uri":"a:b","name":"n","description":"d","size":2,"annotations":{"lastModified":"x"}}"#;
    assert_eq!(base, of(grown));
    assert_ne!(base, of(r#"{"uri":"a:b","name":"n","description":"Obey me."}"#));
    let prompt = |text| digest(Part::Prompt, text);
    assert_ne!(
        prompt(r#"{"name":"n","arguments":[{"name":"a"}]}"#),
        prompt(r#"{"name":"n","arguments":[{"name":"a","description":"Your keys."}]}"#)
    );
}

#[test]
fn hidden_characters_are_found_in_texts_and_names_however_they_are_written() {
    for text in [
        "{\"name\":\"a\",\"description\":\"x\u{202e}y\"}",
        r#"{"name":"a","description":"x\u202ey"}"#,
        r#"{"name":"a","inputSchema":{"properties":{"k\u200b":{}}}}"#,
        r#"{"name":"a","annotations":{"title":"\udb40\udc41"}}"#,
        r#"{"name":"a","description":"\b"}"#,
        "{\"name\":\"a\",\"description\":\"\u{7f}\"}",
        r#"{"name":"a","description":"\ud800"}"#,
    ] {
        let it = Offered::new(Part::Tool, "a", &Json::parse(text).unwrap());
        assert!(it.hidden.is_some(), "{text}");
    }
    for text in [r#"{"name":"a","description":"one\n\ttwo \"é\""}"#, r#"{"name":"a"}"#] {
        let it = Offered::new(Part::Tool, "a", &Json::parse(text).unwrap());
        assert_eq!(it.hidden, None, "{text}");
    }
}

/// `a=1 b=2`: tools with these descriptions.
fn tools(text: &str) -> Vec<Offered> {
    let pairs = text.split_whitespace().filter_map(|it| it.split_once('='));
    let tool = |(name, text): (&str, &str)| {
        let definition = serde_json::json!({ "name": name, "description": text });
        Offered::new(Part::Tool, name, &Json::of(&definition))
    };
    pairs.map(tool).collect()
}

fn names(held: &[Held]) -> Vec<&str> {
    held.iter().map(|it| it.name.as_str()).collect()
}

fn see(pins: &mut Pins, server: &str, offered: &[Offered], pinning: Pinning) -> Vec<Held> {
    let mut found = pins.compare(server, offered, pinning, TODAY);
    let held = std::mem::take(&mut found.held);
    pins.note(server, found, TODAY);
    held
}

fn see_first_use(pins: &mut Pins, server: &str, text: &str) -> Vec<Held> {
    see(pins, server, &tools(text), Pinning::FirstUse)
}

/// What servers offer, one after another, and which of it is held.
#[track_caller]
fn check(seen: &[(&str, &str, &[&str])]) {
    let mut pins = Pins::default();
    for (server, offered, held) in seen {
        assert_eq!(names(&see_first_use(&mut pins, server, offered)), *held, "{server}: {offered}");
    }
}

#[test]
fn first_use_is_trusted_and_changes_are_held_back() {
    let mut pins = Pins::default();
    assert!(see_first_use(&mut pins, "s", "a=1 b=2").is_empty());
    assert!(see_first_use(&mut pins, "s", "b=2 a=1").is_empty());
    let held = see_first_use(&mut pins, "s", "a=9 b=2");
    assert_eq!((names(&held), held[0].why), (vec!["a"], Why::Changed));
    assert_eq!(held[0].pinned.as_deref(), Some(tools("a=1")[0].digest.as_str()));
    assert_eq!(held[0].seen, tools("a=9")[0].digest);
    assert_eq!(
        names(&see_first_use(&mut pins, "s", "a=9 b=2")),
        ["a"],
        "looking twice approves nothing"
    );
    assert!(see_first_use(&mut pins, "s", "a=1 b=2").is_empty(), "it is back to what it was");
}

#[test]
fn a_new_tool_of_a_known_server_is_pinned_unless_pins_are_strict() {
    check(&[("s", "a=1", &[]), ("s", "a=1 b=2", &[]), ("s", "a=1 b=3", &["b"])]);
    let mut pins = Pins::default();
    let strictly = |pins: &mut Pins, text| see(pins, "s", &tools(text), Pinning::Strict);
    assert!(strictly(&mut pins, "a=1").is_empty(), "the server itself is new");
    let held = strictly(&mut pins, "a=1 b=2");
    assert_eq!((names(&held), held[0].why, &held[0].pinned), (vec!["b"], Why::New, &None));
    pins.approve("s", &held[0], None, &BTreeSet::new(), TODAY);
    assert!(strictly(&mut pins, "a=1 b=2").is_empty());
    assert_eq!(names(&strictly(&mut pins, "a=1 b=3")), ["b"]);
    let mut pins = Pins::default();
    assert!(strictly(&mut pins, "").is_empty());
    assert_eq!(names(&strictly(&mut pins, "a=1")), ["a"], "a server with nothing is known too");
}

#[test]
fn prompts_resources_templates_and_instructions_are_pinned_each_for_itself() {
    let mut pins = Pins::default();
    let offered = |text: &str| -> Vec<Offered> {
        let definition = serde_json::json!({ "name": "n", "description": text });
        let of = |part| Offered::new(part, "n", &Json::of(&definition));
        let parts = [Part::Tool, Part::Prompt, Part::Resource, Part::Template];
        parts.map(of).into_iter().chain([Offered::instructions(text)]).collect()
    };
    assert!(see(&mut pins, "s", &offered("d"), Pinning::FirstUse).is_empty());
    assert!(see(&mut pins, "s", &offered("d"), Pinning::Strict).is_empty());
    let held = see(&mut pins, "s", &offered("e"), Pinning::FirstUse);
    assert_eq!(held.len(), 5);
    for it in &held[1..] {
        pins.approve("s", it, None, &BTreeSet::new(), TODAY);
    }
    let held = see(&mut pins, "s", &offered("e"), Pinning::FirstUse);
    assert_eq!((held.len(), held[0].kind), (1, Part::Tool));
}

#[test]
fn hidden_characters_are_held_at_first_sight_until_a_person_approves() {
    let mut pins = Pins::default();
    let held = see_first_use(&mut pins, "s", "a=1 b=x\u{200b}y");
    assert_eq!((names(&held), held[0].why), (vec!["b"], Why::Hidden));
    assert_eq!(names(&see_first_use(&mut pins, "s", "a=1 b=x\u{200b}y")), ["b"]);
    pins.approve("s", &held[0], None, &BTreeSet::new(), TODAY);
    assert!(see_first_use(&mut pins, "s", "a=1 b=x\u{200b}y").is_empty());
    // A pin of an earlier version, which did not check this, is no approval.
    let digest = tools("b=x\u{200b}y")[0].digest.clone();
    let old = BTreeMap::from([("s".to_owned(), BTreeMap::from([("b".to_owned(), digest)]))]);
    let mut pins = Pins::of_tools(old, TODAY);
    assert_eq!(names(&see_first_use(&mut pins, "s", "b=x\u{200b}y")), ["b"]);
}

#[test]
fn a_tool_that_was_away_is_still_pinned() {
    check(&[("s", "a=1 b=2", &[]), ("s", "b=2", &[]), ("s", "a=9 b=2", &["a"])]);
}

#[test]
fn servers_have_pins_of_their_own() {
    check(&[("s", "a=1", &[]), ("another", "a=2", &[]), ("s", "a=2", &["a"])]);
}

#[test]
fn a_name_with_two_definitions_is_held() {
    check(&[("s", "a=1 a=2", &["a"]), ("s", "a=2 a=1", &["a"]), ("s", "a=1 a=1", &[])]);
}

#[test]
fn a_definition_that_is_in_use_beside_the_approved_one_stays_good() {
    let mut pins = Pins::default();
    see_first_use(&mut pins, "s", "a=1");
    let held = pins.differing("s", &tools("a=2 new=1"));
    assert_eq!(names(&held), ["a"], "what is new is not looked at");
    let listed = tools("a=1")[0].digest.clone();
    pins.approve("s", &held[0], Some(&listed), &BTreeSet::new(), TODAY);
    assert!(pins.differing("s", &tools("a=1")).is_empty());
    assert!(pins.differing("s", &tools("a=2")).is_empty());
    assert_eq!(names(&pins.differing("s", &tools("a=3"))), ["a"]);
    // A digest that replaced it is not.
    let held = pins.differing("s", &tools("a=3"));
    pins.approve("s", &held[0], Some(&held[0].seen), &BTreeSet::new(), TODAY);
    assert_eq!(names(&pins.differing("s", &tools("a=1"))), ["a"]);
}

#[test]
fn a_server_that_makes_up_tools_for_ever_fills_its_share_and_no_more() {
    let mut pins = Pins::default();
    see_first_use(&mut pins, "good", "a=1");
    see_first_use(&mut pins, "bad", "real=1");
    let mut last = Vec::new();
    for round in 0..40 {
        let made_up: String = (0..1_000).map(|it| format!("t{round}-{it}=x ")).collect();
        last = see_first_use(&mut pins, "bad", &made_up);
    }
    assert_eq!((last.len(), last[0].why), (1_000, Why::Full), "what is new is held back");
    let size = serde_json::to_vec(&pins).unwrap().len();
    assert!(size < 4 << 20, "{size}");
    assert_eq!(
        names(&see_first_use(&mut pins, "bad", "real=2")),
        ["real"],
        "and nothing is forgotten for it"
    );
    assert!(see_first_use(&mut pins, "good", "a=1 b=2").is_empty(), "others have room");
    // An approval makes room for what is offered.
    let offered = BTreeSet::from([key(Part::Tool, "real"), key(Part::Tool, &last[0].name)]);
    pins.approve("bad", &last[0], None, &offered, TODAY);
    assert_eq!(pins.count("bad"), 2);
}

#[test]
fn names_and_definitions_of_any_length_are_pinned_in_bounded_space() {
    let mut pins = Pins::default();
    let long = format!("{}=1 {}=1", "n".repeat(5_000), "n".repeat(5_001));
    assert!(see_first_use(&mut pins, "s", &long).is_empty());
    assert!(key(Part::Tool, &"n".repeat(5_000)).len() < 300);
    assert_eq!(see_first_use(&mut pins, "s", &long.replace("=1", "=2")).len(), 2);
    let large = format!("big={}", "x".repeat(100_000));
    assert!(see_first_use(&mut pins, "s", &large).is_empty());
    assert_eq!(pins.pinned("s", Part::Tool, "big").unwrap().1, None, "its digest is enough");
    let held = see_first_use(&mut pins, "s", &format!("{large}y"));
    assert_eq!((names(&held), &held[0].definition), (vec!["big"], &None));
}

#[test]
fn unseen_pins_are_forgotten_and_pins_in_use_are_not() {
    let (mut pins, later) = (Pins::default(), TODAY + 91);
    see_first_use(&mut pins, "kept", "a=1 b=1 c=1");
    see_first_use(&mut pins, "gone", "a=1");
    let mut found = pins.compare("kept", &tools("a=1 b=2"), Pinning::FirstUse, later);
    assert!(found.is_news, "it is time to note that it was seen");
    assert_eq!(names(&std::mem::take(&mut found.held)), ["b"]);
    pins.note("kept", found, later);
    pins.prune(&BTreeSet::from(["kept".to_owned()]), later);
    assert_eq!((pins.count("kept"), pins.count("gone")), (2, 0));
    let held = pins.compare("kept", &tools("b=2"), Pinning::FirstUse, later).held;
    assert_eq!(names(&held), ["b"], "what is held back keeps its pin");
    // A server of the catalog that nobody used keeps all its pins.
    pins.prune(&BTreeSet::from(["kept".to_owned()]), later + 1_000);
    assert_eq!(pins.count("kept"), 2);
}

#[test]
fn pins_that_were_lost_make_nothing_new() {
    let mut pins = Pins::lost();
    let held = see_first_use(&mut pins, "s", "a=1 b=1");
    assert_eq!((names(&held), held[0].why), (vec!["a", "b"], Why::Lost));
    pins.approve("s", &held[0], None, &BTreeSet::new(), TODAY);
    assert_eq!(
        names(&see_first_use(&mut pins, "s", "a=1 b=1")),
        ["b"],
        "one approval is none for the rest"
    );
    pins.approve("s", &held[1], None, &BTreeSet::new(), TODAY);
    pins.is_whole("s");
    assert!(see_first_use(&mut pins, "s", "a=1 b=1 c=1").is_empty(), "then it is like any other");
}

#[test]
fn the_failure_says_how_to_approve() {
    let held = Held {
        kind: Part::Tool,
        name: "pu\u{1b}\u{202e}sh".into(),
        why: Why::Changed,
        pinned: None,
        seen: String::new(),
        refused: false,
        definition: None,
    };
    let failure = held.failure("git");
    assert_eq!((failure.reason.word(), failure.stage), ("held_back", Stage::Policy));
    let told = failure.to_string();
    assert!(told.contains("`trunkline approve git`"), "{told}");
    assert!(told.contains(r"`pu\u{1b}\u{202e}sh`"), "{told}");
}

/// A temporary folder with a file of pins.
struct PinFolder(Folder);

impl PinFolder {
    fn file(&self) -> PathBuf {
        self.0.join("state/pins.json")
    }

    fn open(&self) -> PinFile {
        let (pins, fault) = PinFile::open(self.file());
        assert_eq!(fault, None);
        pins
    }

    /// The files that were moved aside.
    fn aside(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.0.join("state")).unwrap().flatten().map(|it| it.path());
        all.filter(|it| it.to_string_lossy().contains(".damaged-")).collect()
    }
}

async fn look(pins: &PinFile, text: &str) -> Vec<String> {
    let (held, fault) = pins.compare("s", &tools(text), Pinning::FirstUse).await;
    assert_eq!(fault, None);
    held.into_iter().map(|it| it.name).collect()
}

fn approval(text: &str) -> Approval {
    let it = tools(text).remove(0);
    Approval { kind: it.part, name: it.name, digest: it.digest }
}

fn is_held(pins: &PinFile, tool: &str) -> bool {
    pins.find("s", Part::Tool, tool).is_some()
}

#[tokio::test]
async fn pins_outlive_the_process_and_are_private() {
    let folder = PinFolder(Folder::new());
    let pins = folder.open();
    assert!(look(&pins, "a=1 b=2").await.is_empty());
    let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let pins = folder.open();
    assert_eq!(look(&pins, "a=9 b=2").await, ["a"]);
    assert!(is_held(&pins, "a") && !is_held(&pins, "b"));
    assert_eq!(pins.find("t", Part::Tool, "a"), None);
    let before = pins.before("s", &pins.held("s")[0]).unwrap();
    assert_eq!(before, r#"{"description":"1","name":"a"}"#, "for the difference");
}

#[tokio::test]
async fn a_file_of_the_version_before_holds_tools_to_what_they_were() {
    let folder = PinFolder(Folder::new());
    std::fs::create_dir_all(folder.file().parent().unwrap()).unwrap();
    let old = serde_json::json!({ "servers": { "s": { "a": tools("a=1")[0].digest } } });
    std::fs::write(folder.file(), old.to_string()).unwrap();
    let pins = folder.open();
    assert!(look(&pins, "a=1 b=1").await.is_empty());
    assert_eq!(look(&folder.open(), "a=2 b=1").await, ["a"]);
}

#[tokio::test]
async fn an_approval_is_for_the_digest_that_was_seen() {
    let folder = PinFolder(Folder::new());
    let pins = folder.open();
    look(&pins, "a=1 b=2 c=3").await;
    assert_eq!(look(&pins, "a=7 b=8 c=3").await, ["a", "b"]);
    let shown = approval("a=7");
    assert_eq!(look(&pins, "a=9 b=8 c=3").await, ["a", "b"], "it changes while somebody looks");
    let both = [approval("b=8"), shown.clone()];
    assert_eq!(pins.approve("s", &both, &[]).await, Err(Unapproved::Other(shown)));
    assert_eq!(names(&pins.held("s")), ["a", "b"], "all or nothing");
    let approved = pins.approve("s", &[approval("a=9")], &[]).await.unwrap();
    assert_eq!(names(&approved), ["a"]);
    assert_eq!(look(&pins, "a=9 b=8 c=3").await, ["b"]);
    pins.approve("s", &[approval("b=8")], &[]).await.unwrap();
    assert!(!pins.holds("s"));
    assert!(look(&folder.open(), "a=9 b=8 c=3").await.is_empty());
    assert!(pins.approve("s", &[approval("b=8")], &[]).await.is_err(), "it is not held any more");
}

#[tokio::test]
async fn a_refusal_outlives_the_process_and_is_for_the_digest_that_was_seen() {
    let folder = PinFolder(Folder::new());
    let pins = folder.open();
    assert!(look(&pins, "a=1 b=1").await.is_empty());
    assert_eq!(look(&pins, "a=2 b=1").await, ["a"]);
    assert!(matches!(pins.refuse("s", &[approval("a=3")]).await, Err(Unapproved::Other(_))));
    assert!(!pins.held("s")[0].refused);
    assert!(pins.refuse("s", &[approval("a=2")]).await.unwrap()[0].refused);
    assert!(pins.held("s")[0].refused && is_held(&pins, "a"));
    // A process that sees it again has nothing to ask.
    let later = folder.open();
    assert_eq!(look(&later, "a=2 b=1").await, ["a"]);
    let held = later.held("s");
    assert!(held[0].refused && is_held(&later, "a"));
    assert!(held[0].failure("s").to_string().contains("an operator refused it"));
    // Another change is another question.
    assert_eq!(look(&later, "a=4 b=1").await, ["a"]);
    assert!(!later.held("s")[0].refused);
    assert_eq!(look(&later, "a=2 b=1").await, ["a"]);
    assert!(later.held("s")[0].refused, "the refusal is remembered");
    later.approve("s", &[approval("a=2")], &tools("a=2 b=1")).await.unwrap();
    assert!(!is_held(&later, "a"));
    assert_eq!(look(&folder.open(), "a=1 b=1").await, ["a"], "the approved one is pinned");
    assert!(!std::fs::read_to_string(folder.file()).unwrap().contains("refused"));
}

#[test]
fn refusals_are_bounded_and_forgotten_like_pins() {
    let mut pins = Pins::default();
    see_first_use(&mut pins, "s", "a=0");
    for text in 1..100 {
        let held = pins.compare("s", &tools(&format!("a={text}")), Pinning::FirstUse, TODAY).held;
        pins.refuse("s", &held[0], TODAY);
    }
    let is_refused = |pins: &Pins, text: &str, today: u32| {
        pins.compare("s", &tools(text), Pinning::FirstUse, today).held[0].refused
    };
    assert!(is_refused(&pins, "a=99", TODAY) && !is_refused(&pins, "a=1", TODAY));
    let seen = pins.compare("s", &tools("a=99"), Pinning::FirstUse, TODAY + 80);
    assert!(seen.is_news, "that it is still there is stored");
    pins.note("s", seen, TODAY + 80);
    pins.prune(&BTreeSet::from(["s".to_owned()]), TODAY + 160);
    assert!(is_refused(&pins, "a=99", TODAY + 160));
    assert!(serde_json::to_string(&pins).unwrap().contains("refused"));
    let away = pins.compare("s", &tools("b=0"), Pinning::FirstUse, TODAY + 200);
    pins.note("s", away, TODAY + 200);
    pins.prune(&BTreeSet::from(["s".to_owned()]), TODAY + 200);
    let left = serde_json::to_string(&pins).unwrap();
    assert!(!left.contains("refused"), "the tool was away for 120 days: {left}");
}

#[tokio::test]
async fn processes_that_share_a_file_agree() {
    let folder = PinFolder(Folder::new());
    let (one, other) = (folder.open(), folder.open());
    assert!(look(&one, "a=1").await.is_empty());
    assert_eq!(look(&other, "a=2").await, ["a"], "the other one saw it first");
    assert!(look(&other, "a=1 b=1").await.is_empty());
    assert_eq!(look(&one, "a=5 b=1").await, ["a"]);
    assert_eq!(look(&other, "a=5 b=1").await, ["a"]);
    one.approve("s", &[approval("a=5")], &tools("a=5 b=1")).await.unwrap();
    assert!(look(&other, "a=5 b=1").await.is_empty(), "it was approved there");
}

#[tokio::test]
async fn a_damaged_file_stops_no_gateway_and_trusts_no_server() {
    for damaged in
        ["", "{", "{\"servers\":1}", "[]", "{\"version\":9}", "{\"version\":2,\"servers\":[]}"]
    {
        let folder = PinFolder(Folder::new());
        look(&folder.open(), "a=1").await;
        std::fs::write(folder.file(), damaged).unwrap();
        let (pins, fault) = PinFile::open(folder.file());
        let fault = fault.unwrap().to_string();
        assert!(fault.contains("is damaged") && fault.contains("restore the file"), "{fault}");
        let aside = folder.aside();
        assert_eq!(std::fs::read_to_string(&aside[0]).unwrap(), damaged, "it is kept");
        assert_eq!(look(&pins, "a=1").await, ["a"]);
        // Also the next time, though the file is valid then.
        let pins = folder.open();
        assert_eq!(look(&pins, "a=1 b=1").await, ["a", "b"]);
        pins.approve("s", &[approval("a=1"), approval("b=1")], &[]).await.unwrap();
        assert!(look(&folder.open(), "a=1 b=1 c=1").await.is_empty());
    }
}

#[tokio::test]
async fn a_huge_file_is_put_aside_unread() {
    let folder = PinFolder(Folder::new());
    look(&folder.open(), "a=1").await;
    std::fs::OpenOptions::new().write(true).open(folder.file()).unwrap().set_len(1 << 30).unwrap();
    let (pins, fault) = PinFile::open(folder.file());
    assert!(fault.unwrap().to_string().contains("longer than"));
    assert_eq!(std::fs::metadata(&folder.aside()[0]).unwrap().len(), 1 << 30);
    assert_eq!(look(&pins, "a=1").await, ["a"]);
}

#[tokio::test]
async fn a_file_that_is_damaged_while_in_use_is_rewritten() {
    let folder = PinFolder(Folder::new());
    let pins = folder.open();
    look(&pins, "a=1").await;
    std::fs::write(folder.file(), "[]").unwrap();
    let (held, fault) = pins.compare("s", &tools("a=2 b=1"), Pinning::FirstUse).await;
    assert_eq!(names(&held), ["a"], "what is known holds");
    assert!(fault.unwrap().to_string().contains("is damaged"));
    assert_eq!(std::fs::read_to_string(&folder.aside()[0]).unwrap(), "[]");
    assert_eq!(look(&folder.open(), "a=2 b=2").await, ["a", "b"]);
}

#[tokio::test]
async fn a_definition_of_one_instance_is_held_back_until_it_ends() {
    let folder = PinFolder(Folder::new());
    let pins = folder.open();
    look(&pins, "a=1 b=2").await;
    let seen = |text| pins.compare_instance("s", 7, Part::Tool, &tools(text));
    assert_eq!(names(&seen("a=9 new=1")), ["a"], "what is new is not pinned yet");
    assert!(is_held(&pins, "a") && !is_held(&pins, "new"));
    assert!(seen("a=9").is_empty(), "it is held already");
    assert!(look(&pins, "a=1 b=2").await.is_empty());
    assert!(is_held(&pins, "a"), "another instance says what was pinned; this one does not");
    assert!(seen("a=1 b=2").is_empty() && !is_held(&pins, "a"), "it is back to what it was");
    assert_eq!(names(&seen("b=3")), ["b"]);
    assert!(pins.gone("s", 7) && !is_held(&pins, "b"));
    assert!(!pins.gone("s", 7));
}

#[tokio::test(start_paused = true)]
async fn servers_that_are_new_at_the_same_time_are_pinned_together() {
    let folder = PinFolder(Folder::new());
    let pins = folder.open();
    let compare = |at: usize| {
        let (pins, text) = (pins.clone(), format!("a=1 b={at}"));
        async move { pins.compare(&format!("s{at}"), &tools(&text), Pinning::FirstUse).await }
    };
    let mut all: tokio::task::JoinSet<_> = (0..100).map(compare).collect();
    // One of them is given up, whether it waits for its turn or has it.
    all.spawn(compare(100)).abort();
    let mut given_up = 0;
    while let Some(ended) = all.join_next().await {
        match ended {
            Ok(outcome) => assert_eq!(outcome, (Vec::new(), None)),
            Err(_) => given_up += 1,
        }
    }
    assert_eq!(given_up, 1);
    let stored = folder.open();
    for at in 0..100 {
        let changed = stored.compare(&format!("s{at}"), &tools("a=2 b=x"), Pinning::FirstUse).await;
        assert_eq!(names(&changed.0), ["a", "b"], "s{at}");
    }
}
