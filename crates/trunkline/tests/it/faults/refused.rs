//! Invalid calls: bad arguments, unknown names, clients that cannot be asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use serde_json::{Value, json};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::QuestionKind;
use trunkline::{Args, Context, Revision, Server, ToolError, prompt, resource, template, tool};

use super::{Side, Transport, transports_of};
use crate::server::{ERAS, builder, text};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    #[schemars(range(min = 1, max = 30))]
    nights: u32,
    #[serde(default)]
    rooms: Vec<Room>,
}

#[derive(Deserialize, JsonSchema)]
struct Room {
    beds: u8,
}

async fn book(Args(it): Args<Trip>) -> String {
    let beds: u32 = it.rooms.iter().map(|it| u32::from(it.beds)).sum();
    format!("{} {} {beds}", it.city, it.nights)
}

fn hotel() -> Server {
    let secret = tool("boot", async || "no").visible(|_| false);
    builder()
        .tool(tool("book", book))
        .tool(tool("list-rooms", async || "none"))
        .tool(secret)
        .prompt(prompt("welcome", async || "Welcome".to_owned()))
        .prompt(prompt("whisper", async || "…".to_owned()).visible(|_| false))
        .build()
}

/// The complaint about wrong arguments, wherever the revision puts it.
fn complaint(outcome: &Result<Value, Value>, revision: Revision) -> &str {
    match outcome {
        Ok(result) if revision >= Revision::V2025_11_25 => {
            assert_eq!(result["isError"], true, "{result}");
            text(result)
        }
        Err(error) if revision < Revision::V2025_11_25 => {
            assert_eq!(error["code"], -32602);
            error["message"].as_str().unwrap()
        }
        other => panic!("{revision}: {other:?}"),
    }
}

#[tokio::test]
async fn everything_that_is_wrong_with_arguments_is_told_at_once() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let mut side = Side::of(&hotel(), transport, revision).await;
        for (arguments, needles) in [
            (json!({}), &["`/city` is missing", "`/nights` is missing"][..]),
            (json!({ "nights": "two" }), &["`/city` is missing", "`/nights`"]),
            (json!({ "city": 7, "nights": 99 }), &["/city", "/nights", "30"]),
            (json!({ "city": "Oslo", "nights": 2.5 }), &["/nights"]),
            (
                json!({ "city": null, "nights": 1, "rooms": [{ "beds": 2 }, { "beds": -1 }, {}] }),
                &["`/city`", "`/rooms/1/beds`", "`/rooms/2/beds` is missing"],
            ),
        ] {
            let params = json!({ "name": "book", "arguments": arguments });
            let outcome = side.call("tools/call", params).await;
            let text = complaint(&outcome, revision);
            for needle in needles {
                assert!(text.contains(needle), "{needle} is not in: {text} ({revision})");
            }
        }
        let missing = side.call("tools/call", json!({ "name": "book" })).await;
        assert!(complaint(&missing, revision).contains("`/city`"), "{missing:?}");
        let right = json!({ "city": "Oslo", "nights": 2, "rooms": [{ "beds": 2 }] });
        assert_eq!(text(&side.tool("book", right).await), "Oslo 2 2", "{transport:?} {revision}");
        side.assert_no_answer_came_twice();
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_the_callers_fault() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let mut side = Side::of(&hotel(), transport, revision).await;
        for arguments in [json!([1]), json!("x"), json!(true), json!(7)] {
            let params = json!({ "name": "book", "arguments": arguments });
            let error = side.call("tools/call", params).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{arguments} in {revision}");
            assert_eq!(error["message"], "`arguments` must be an object.", "{transport:?}");
        }
        for params in [json!({}), json!({ "name": 7 }), json!({ "name": null })] {
            let error = side.call("tools/call", params).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{transport:?} {revision}");
            assert_eq!(error["message"], "`name` must be a string.");
        }
    }
}

#[tokio::test]
async fn one_argument_given_twice_is_refused() {
    for revision in Revision::ALL {
        let mut side = Side::of(&hotel(), Transport::Pipes, revision).await;
        let Side::Pipes(peer) = &mut side else { unreachable!() };
        let arguments = json!({ "city": "Oslo", "nights": 1 });
        let asked = peer.prepare("tools/call", json!({ "name": "book", "arguments": arguments }));
        let twice = asked.to_string().replace(r#""nights":1"#, r#""nights":1,"nights":2"#);
        assert!(twice.contains(r#""nights":2"#));
        peer.send_text(&twice).await;
        let outcome = peer.answer_to(&asked["id"]).await;
        assert!(complaint(&outcome, revision).contains("nights"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_there_is_named_and_the_one_that_was_meant_too() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let mut side = Side::of(&hotel(), transport, revision).await;
        for (method, name, expected) in [
            ("tools/call", "bok", "There is no tool `bok`. Did you mean `book`?"),
            (
                "tools/call",
                "list_rooms",
                "There is no tool `list_rooms`. Did you mean `list-rooms`?",
            ),
            ("tools/call", "fly", "There is no tool `fly`."),
            // Suggestions do not reveal hidden tools.
            ("tools/call", "boots", "There is no tool `boots`."),
            ("prompts/get", "Welcome", "There is no prompt `Welcome`. Did you mean `welcome`?"),
            ("prompts/get", "whispr", "There is no prompt `whispr`."),
        ] {
            let error = side.call(method, json!({ "name": name })).await.unwrap_err();
            let found = (&error["code"], error["message"].as_str().unwrap());
            assert_eq!(found, (&json!(-32602), expected), "{transport:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_long_name_is_not_sent_back_whole() {
    for revision in ERAS {
        let mut side = Side::of(&hotel(), Transport::Pipes, revision).await;
        let params = json!({ "name": "é".repeat(100_000) });
        let error = side.call("tools/call", params).await.unwrap_err();
        let message = error["message"].as_str().unwrap();
        assert!(message.len() < 400 && message.contains('…'), "{} bytes", message.len());
    }
}

/// A server that asks four kinds of questions, and counts how often it was started.
fn asking(runs: &Arc<AtomicU32>) -> Server {
    let started = |cx: Context, runs: Arc<AtomicU32>| async move {
        runs.fetch_add(1, SeqCst);
        let _ = cx.roots().await;
        "done".to_owned()
    };
    let own = || {
        let runs = Arc::clone(runs);
        move |cx: Context| started(cx, Arc::clone(&runs))
    };
    builder()
        .tool(tool("form", own()).asks(QuestionKind::Form))
        .tool(tool("url", own()).asks(QuestionKind::Url))
        .tool(tool("sample", own()).asks(QuestionKind::Sampling))
        .tool(tool("both", own()).asks(QuestionKind::Form).asks(QuestionKind::Roots))
        .tool(tool("tools", own()).asks(QuestionKind::SamplingWithTools))
        .prompt(prompt("form", own()).asks(QuestionKind::Form))
        .resource(resource("test://form", "form", own()).asks(QuestionKind::Form))
        .resource(template("test://form/{n}", "form", own()).asks(QuestionKind::Form))
        .build()
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_before_anything_happens() {
    for (transport, revision) in transports_of(&ERAS) {
        let runs = Arc::new(AtomicU32::new(0));
        let server = asking(&runs);
        let mut side = Side::with(&server, transport, revision, |it| *it = json!({})).await;
        for (name, lacks, required) in [
            ("form", "form elicitation", json!({ "elicitation": { "form": {} } })),
            ("url", "URL elicitation", json!({ "elicitation": { "url": {} } })),
            ("sample", "sampling", json!({ "sampling": {} })),
            ("tools", "sampling with tools", json!({ "sampling": { "tools": {} } })),
            (
                "both",
                "form elicitation and roots",
                json!({ "elicitation": { "form": {} }, "roots": {} }),
            ),
        ] {
            let outcome = side.call("tools/call", json!({ "name": name })).await;
            if revision == Revision::V2026_07_28 {
                let error = outcome.unwrap_err();
                assert_eq!(error["code"], -32021, "{error}");
                assert_eq!(error["data"]["requiredCapabilities"], required);
            } else {
                let result = outcome.unwrap();
                assert_eq!(result["isError"], true, "{result}");
                let expected = format!(
                    "This client cannot be asked: it lacks {lacks}. `{name}` was not started."
                );
                assert_eq!(text(&result), expected);
            }
        }
        for (method, params) in [
            ("prompts/get", json!({ "name": "form" })),
            ("resources/read", json!({ "uri": "test://form" })),
            ("resources/read", json!({ "uri": "test://form/1" })),
        ] {
            let error = side.call(method, params).await.unwrap_err();
            let code = if revision == Revision::V2026_07_28 { -32021 } else { -32602 };
            assert_eq!(error["code"], code, "{method} {transport:?} {revision}");
            assert!(error["data"]["requiredCapabilities"]["elicitation"].is_object(), "{error}");
        }
        assert_eq!(runs.load(SeqCst), 0, "nothing was started");
    }
}

#[tokio::test]
async fn a_question_that_the_revision_lacks_is_refused_whatever_the_client_says() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let runs = Arc::new(AtomicU32::new(0));
        let mut side = Side::of(&asking(&runs), Transport::Pipes, revision).await;
        for name in ["form", "url", "tools", "both"] {
            let result = side.tool(name, json!({})).await;
            assert_eq!(result["isError"], true, "{name} {revision}: {result}");
        }
        assert_eq!(runs.load(SeqCst), 0);
        assert_eq!(text(&side.tool("sample", json!({})).await), "done");
    }
}

#[tokio::test]
async fn what_was_not_announced_is_refused_when_it_is_asked() {
    async fn ask(cx: Context) -> Result<String, ToolError> {
        Ok(format!("{} folders", cx.roots().await?.len()))
    }
    let server = builder()
        .tool(tool("ask", ask))
        .prompt(prompt("ask", ask))
        .resource(resource("test://ask", "ask", ask))
        .build();
    for (transport, revision) in transports_of(&ERAS) {
        let mut side = Side::with(&server, transport, revision, |it| *it = json!({})).await;
        let outcome = side.call("tools/call", json!({ "name": "ask" })).await;
        match revision {
            Revision::V2026_07_28 => assert_eq!(outcome.unwrap_err()["code"], -32021),
            _ => {
                let result = outcome.unwrap();
                assert_eq!(text(&result), "This client cannot be asked: it lacks roots.");
            }
        }
        for (method, params) in [
            ("prompts/get", json!({ "name": "ask" })),
            ("resources/read", json!({ "uri": "test://ask" })),
        ] {
            let error = side.call(method, params).await.unwrap_err();
            let is_new = revision == Revision::V2026_07_28;
            assert_eq!(
                error["code"],
                if is_new { -32021 } else { -32603 },
                "{method} {transport:?}"
            );
        }
    }
}
