//! Who asks, who may, and what plugins see of it.

use serde_json::{Value, json};

use super::person::{Person, token};
use super::{NEW, OLD, gateway, soak};
use crate::gateway_kit::{Gateway, Place};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_says_which_server_asks() {
    for (caller, server) in [(OLD, OLD), (NEW, OLD), (OLD, NEW), (NEW, NEW)] {
        let place = Place::new("asks");
        let options = ["--revision", server.as_str()];
        let gateway = gateway(&place, &["alice"], &options, json!({})).await;
        let mut alice = Person::open(gateway.address, caller, "alice").await;
        let said = alice.call("talk.gossip", json!({ "text": "Who?", "during": ["ask"] })).await;
        assert!(said["result"].is_object(), "{caller} {server}: {said}");
        let asked = alice.received().into_iter().find(|it| it.contains("elicitation/create"));
        let asked = asked.unwrap_or_else(|| panic!("{caller} {server}: {:?}", alice.received()));
        assert!(asked.contains(r#""message":"[talk] Who?""#), "{caller} {server}: {asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_asks_what_the_catalog_lets_it_ask() {
    for (caller, server) in [(OLD, OLD), (NEW, OLD), (OLD, NEW), (NEW, NEW)] {
        let place = Place::new("asks");
        let options = ["--revision", server.as_str()];
        let more = json!({ "questions": ["roots"] });
        let gateway = gateway(&place, &["alice"], &options, more).await;
        let mut alice = Person::open(gateway.address, caller, "alice").await;
        // It is not told that it could.
        let said = alice.call("talk.ask", json!({})).await.to_string();
        let told = ["has no elicitation", "Missing required client capability", "requires"];
        assert!(told.iter().any(|it| said.contains(it)), "{caller} {server}: {said}");
        // And is refused if it tries.
        if server == OLD {
            let arguments = json!({ "text": "Who?", "during": ["ask", "sample", "roots"] });
            let said = alice.call("talk.gossip", arguments).await.to_string();
            assert!(said.contains("file:///alice"), "{said}");
        }
        for method in ["elicitation/create", "sampling/createMessage"] {
            let asked = format!(r#""method":"{method}""#);
            assert!(!alice.received().iter().any(|it| it.contains(&asked)), "{caller} {server}");
        }
    }
}

/// What was asked of somebody.
fn questions(person: &Person) -> usize {
    let all = person.received().into_iter();
    all.filter(|it| it.contains(r#""method":"elicitation/create""#)).count()
}

/// The server refuses a call of somebody who cannot be asked; if it insists, the gateway does.
async fn check_mute(person: &mut Person, which: &str) {
    let said = person.call("talk.ask", json!({})).await;
    assert!(said.to_string().contains("Missing required client capability"), "{which}: {said}");
    let said = person.call("talk.gossip", json!({ "text": "Who?", "during": ["insist"] })).await;
    let told = said["error"]["message"].as_str().unwrap_or_default();
    let refusals = [
        "it asks for `elicitation/create`, which we did not offer.",
        "This call needs to ask `elicitation/create`, which the request does not offer.",
    ];
    assert!(refusals.iter().any(|it| told.contains(it)), "{which}: {said}");
    assert_eq!(questions(person), 0, "{which}: {:?}", person.received());
}

/// Somebody who can be asked is, and the answer is theirs.
async fn check_able(person: &mut Person, which: &str) {
    let before = questions(person);
    for (tool, arguments) in
        [("talk.ask", json!({})), ("talk.gossip", json!({ "text": "Who?", "during": ["insist"] }))]
    {
        let said = person.call(tool, arguments).await;
        assert!(said["result"].is_object(), "{which} {tool}: {said}");
        let own = format!("the answer of {}", person.name);
        assert!(tool == "talk.gossip" || said.to_string().contains(&own), "{which}: {said}");
    }
    assert_eq!(questions(person), before + 2, "{which}: {:?}", person.received());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_can_be_asked_does_not_depend_on_who_called_first() {
    for (able, mute) in [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)] {
        for is_mute_first in [true, false] {
            let which = format!("{able} can, {mute} cannot, and is first: {is_mute_first}");
            let place = Place::new("asks");
            let options = ["--revision", NEW.as_str()];
            let more = json!({ "maxInstances": 1 });
            let gateway = gateway(&place, &["alice", "bob"], &options, more).await;
            let mut alice = Person::open(gateway.address, able, "alice").await;
            let mut bob = Person::open_mute(gateway.address, mute, "bob").await;
            if is_mute_first {
                check_mute(&mut bob, &which).await;
            }
            check_able(&mut alice, &which).await;
            check_mute(&mut bob, &which).await;
            // A caller of the other era may have had another process started: it was worth a try.
            let known = if able == mute { 0 } else { place.log().of("call").len() };
            check_able(&mut alice, &which).await;
            check_mute(&mut bob, &which).await;
            assert_eq!(bob.received_of(["alice"]), [""; 0], "{which}");
            let calls = place.log().of("call");
            let mut pids: Vec<_> = calls[known..].iter().map(|it| it["pid"].clone()).collect();
            pids.dedup();
            assert_eq!(pids.len(), 1, "{which}: all are served by one process");
        }
    }
}

/// A plugin that hides a word wherever it comes by.
const HIDE: &str = r#"
say(type="hello", name="hide", category="content", flows=["response", "answer"])
for line in reader:
    message = json.loads(line)
    if message["type"] in ("configure", "shutdown"):
        continue
    name = "result" if message["type"] == "response" else "arguments"
    value = message["result"] if name == "result" else message["call"]["arguments"]
    changed = json.loads(json.dumps(value).replace("swordfish", "(hidden)"))
    say(id=message["id"], decision="continue", **{name: changed})
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_see_whatever_comes_of_a_call() {
    for (caller, server) in [(OLD, OLD), (NEW, OLD), (OLD, NEW), (NEW, NEW)] {
        let place = Place::new("plugged");
        let options = ["--gossip", "--revision", server.as_str()];
        let words = place.fake("talk", &options);
        let plugin = place.file("hide.py", &[trunkline_testkit::PLUGIN, HIDE].concat());
        place.catalog(&json!({
            "mcpServers": { "talk": { "command": words[0], "args": words[1..] } },
            "gateway": {
                "auth": { "tokens": [{ "name": "swordfish-eater", "token": token("swordfish-eater") }] },
                "plugins": [{ "name": "hide", "category": "content", "command": ["python3", plugin] }],
            },
        }));
        let gateway = Gateway::start(&place).await;
        // What she answers has the word in it too: her name.
        let mut alice = Person::open(gateway.address, caller, "swordfish-eater").await;
        let during = json!(["log", "progress", "ask"]);
        let text = "a swordfish";
        let said = alice.call("talk.gossip", json!({ "text": text, "during": during })).await;
        assert!(said.to_string().contains("(hidden)"), "{caller} {server}: {said}");
        let error = alice.call("talk.gossip", json!({ "text": text, "during": ["fail"] })).await;
        assert!(error["error"].is_object(), "{error}");
        let leaks: Vec<Value> = alice
            .received()
            .iter()
            .map(|it| serde_json::from_str::<Value>(it).unwrap())
            .map(|mut it| {
                // The token is the caller's own, and comes back as it was.
                it["params"]["progressToken"] = Value::Null;
                it
            })
            .filter(|it| it.to_string().contains("swordfish"))
            .collect();
        assert_eq!(leaks, [Value::Null; 0], "{caller} {server}");
        let kinds = ["notifications/message", "notifications/progress", "elicitation/create"];
        for kind in kinds {
            let came = alice.received().into_iter().any(|it| it.contains(kind));
            assert!(came, "{caller} {server}: no {kind}");
        }
        if server == OLD {
            let answered = place.log().of("answered");
            assert!(!answered.is_empty(), "{caller} {server}: it was asked");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_see_what_is_answered_to_a_question_of_a_task() {
    for (caller, server) in [(OLD, OLD), (NEW, OLD), (OLD, NEW), (NEW, NEW)] {
        let place = Place::new("plugged");
        let (house, heard) = soak::listening().await;
        let plugin = place.file("hide.py", &[trunkline_testkit::PLUGIN, HIDE].concat());
        let name = "swordfish-eater";
        place.catalog(&json!({
            "mcpServers": { "house": {
                "url": format!("http://{house}/mcp"), "protocolVersion": server.as_str(),
            }},
            "gateway": {
                "auth": { "tokens": [{ "name": name, "token": token(name) }] },
                "plugins": [{ "name": "hide", "category": "content", "command": ["python3", plugin] }],
            },
        }));
        let gateway = Gateway::start(&place).await;
        let mut alice = Person::open(gateway.address, caller, name).await;
        let said = alice.task("house.chat", json!({ "text": "hello" })).await;
        assert!(said["result"].is_object(), "{caller} {server}: {said}");
        let heard = heard.lock().unwrap().clone();
        assert!(!heard.is_empty(), "{caller} {server}: it was answered");
        assert!(heard.iter().all(|it| it.contains("(hidden)")), "{caller} {server}: {heard:?}");
    }
}
