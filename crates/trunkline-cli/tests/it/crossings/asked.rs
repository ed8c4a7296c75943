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
