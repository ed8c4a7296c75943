//! What belongs to one caller never reaches another, whatever a server says and whenever it says it.

mod asked;
mod fairness;
mod person;
mod remote;
mod soak;

use serde_json::{Value, json};
use trunkline::Revision;

use crate::gateway_kit::{Gateway, Place};
use person::{Person, token};

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;

/// A gateway with one server that talks about its callers, for people with tokens.
async fn gateway(place: &Place, people: &[&str], options: &[&str], more: Value) -> Gateway {
    let options: Vec<_> = ["--gossip"].iter().chain(options).copied().collect();
    let words = place.fake("talk", &options);
    let mut server = json!({ "command": words[0], "args": words[1..] });
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let tokens: Vec<_> =
        people.iter().map(|it| json!({ "name": it, "token": token(it) })).collect();
    place.catalog(&json!({
        "mcpServers": { "talk": server },
        "gateway": { "auth": { "tokens": tokens } },
    }));
    Gateway::start(place).await
}

/// What came of what was said after its call was answered: by what, the answer.
fn haunted(place: &Place) -> Vec<(String, String)> {
    let all = place.log().of("haunted").into_iter();
    all.map(|it| (it["what"].to_string(), it["answer"].to_string())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_and_a_log_of_one_caller_never_reach_another() {
    for (first, second) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        let place = Place::new("crossings");
        let gateway = gateway(&place, &["alice", "bob"], &[], json!({})).await;
        let mut alice = Person::open(gateway.address, first, "alice").await;
        let mut bob = Person::open(gateway.address, second, "bob").await;
        let after = json!(["log", "progress", "ask", "roots"]);
        alice.call("talk.gossip", json!({ "text": "of alice", "after": after })).await;
        let said = bob.call("talk.echo", json!({ "text": "of bob" })).await;
        assert_eq!(said["result"]["content"][0]["text"], "of bob", "{said}");
        assert_eq!(bob.received_of(["alice"]), [""; 0], "{first} {second}");
        assert_eq!(haunted(&place), [], "bob called a process of his own");
        // It is hers, and she is asked.
        alice.call("talk.echo", json!({ "text": "of alice" })).await;
        let answered = haunted(&place);
        assert_eq!(answered.len(), 4, "{answered:?}");
        assert!(answered[2].1.contains("the answer of alice"), "{answered:?}");
        assert!(answered[3].1.contains("file:///alice"), "{answered:?}");
        assert!(alice.received().iter().any(|it| it.contains("notifications/message")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_process_that_all_share_nothing_is_guessed_once_a_second_caller_came() {
    for revision in [OLD, NEW] {
        let place = Place::new("crossings");
        let more = json!({ "sharing": "shared" });
        let gateway = gateway(&place, &["alice", "bob"], &[], more).await;
        // All can be asked the same, so that one process serves both.
        let mut alice = Person::open(gateway.address, revision, "alice").await;
        let mut bob = Person::open(gateway.address, revision, "bob").await;
        // As long as she is the only one, it is clear who is meant.
        let during = json!(["log", "ask"]);
        let said = alice.call("talk.gossip", json!({ "text": "of alice", "during": during })).await;
        assert!(said.to_string().contains("the answer of alice"), "{said}");
        let after = json!(["log", "progress", "ask", "sample", "roots", "stderr", "complete"]);
        alice.call("talk.gossip", json!({ "text": "of alice", "after": after })).await;
        let said = bob.call("talk.echo", json!({ "text": "of bob" })).await;
        assert_eq!(said["result"]["content"][0]["text"], "of bob", "{said}");
        assert_eq!(bob.received_of(["alice"]), [""; 0]);
        let answered = haunted(&place);
        assert_eq!(answered.len(), 7, "{answered:?}");
        assert!(answered[2].1.contains("sharing: isolated"), "{answered:?}");
        assert!(answered[4].1.contains(r#"\"roots\":[]"#), "{answered:?}");
        // Nobody is guessed any more, though only one call is open.
        let said = alice.call("talk.gossip", json!({ "text": "of alice", "during": during })).await;
        assert!(said.to_string().contains("sharing: isolated"), "{said}");
        let mut pids: Vec<_> = place.log().of("call").iter().map(|it| it["pid"].clone()).collect();
        pids.dedup();
        assert_eq!(pids.len(), 1, "one process for all");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_on_the_stream_of_a_session_at_a_url_is_nobodys_once_a_second_caller_came() {
    let place = Place::new("crossings");
    let address = remote::serve(place.fake("talk", &["--gossip"])).await;
    let tokens = ["alice", "bob"].map(|it| json!({ "name": it, "token": token(it) }));
    place.catalog(&json!({
        "mcpServers": { "talk": {
            "url": format!("http://{address}/mcp"), "protocolVersion": "2025-11-25",
        }},
        "gateway": { "auth": { "tokens": tokens } },
    }));
    let gateway = Gateway::start(&place).await;
    let mut alice = Person::open(gateway.address, OLD, "alice").await;
    let mut bob = Person::open(gateway.address, OLD, "bob").await;
    let during = json!(["log", "ask", "progress"]);
    let said = alice.call("talk.gossip", json!({ "text": "of alice", "during": during })).await;
    assert!(said.to_string().contains("the answer of alice"), "{said}");
    let after = json!(["log", "ask"]);
    alice.call("talk.gossip", json!({ "text": "of alice", "after": after })).await;
    bob.call("talk.echo", json!({ "text": "of bob" })).await;
    assert_eq!(bob.received_of(["alice"]), [""; 0]);
    assert!(haunted(&place)[1].1.contains("nobody_to_ask"), "{:?}", haunted(&place));
    // It was seen to ask that way: from now on each has a session of their own, and can be asked.
    for person in [&mut alice, &mut bob] {
        let text = format!("of {}", person.name);
        let said = person.call("talk.gossip", json!({ "text": text, "during": during })).await;
        assert!(said.to_string().contains(&format!("the answer {text}")), "{said}");
    }
    assert_eq!(bob.received_of(["alice"]), [""; 0]);
    assert_eq!(alice.received_of(["bob"]), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_wrote_to_stderr_reaches_no_caller() {
    let place = Place::new("crossings");
    let more = json!({ "sharing": "shared" });
    let gateway = gateway(&place, &["alice", "bob"], &[], more).await;
    let mut alice = Person::open(gateway.address, OLD, "alice").await;
    let mut bob = Person::open(gateway.address, OLD, "bob").await;
    alice.call("talk.gossip", json!({ "text": "of alice", "during": ["stderr"] })).await;
    let said = bob.call("talk.crash", json!({})).await;
    let data = &said["error"]["data"];
    assert_eq!(
        (&data["reason"], &data["exit"]),
        (&json!("outcome_unknown"), &json!("exited with code 1"))
    );
    assert!(said["error"]["message"].as_str().unwrap().contains("`trunkline logs talk`"), "{said}");
    assert_eq!(bob.received_of(["alice"]), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_does_not_read_is_not_kept_in_memory() {
    let place = Place::new("crossings");
    let more = json!({ "timeouts": { "callSeconds": 30 } });
    let gateway = gateway(&place, &["alice", "bob"], &[], more).await;
    let mut bob = Person::open(gateway.address, OLD, "bob").await;
    bob.call("talk.echo", json!({ "text": "of bob" })).await;
    let before = resident(gateway.pid());
    let mut alice = Person::open(gateway.address, NEW, "alice").await;
    let flood = json!({ "text": "of alice", "during": vec!["flood"; 150] });
    let _unread = alice.begin("talk.gossip", flood).await;
    let is_over = |log: &[Value]| log.iter().any(|it| it["event"] == "flooded");
    let log = place.log();
    let patience = std::time::Duration::from_secs(60);
    assert!(tokio::task::spawn_blocking(move || log.wait(patience, is_over)).await.unwrap());
    // Whoever reads is served meanwhile.
    let said = bob.call("talk.echo", json!({ "text": "of bob" })).await;
    assert_eq!(said["result"]["content"][0]["text"], "of bob", "{said}");
    let grown = resident(gateway.pid()).saturating_sub(before);
    assert!(grown < 64 << 10, "150 MiB were said, and {grown} KiB are kept");
}

/// What a process has in memory, in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
