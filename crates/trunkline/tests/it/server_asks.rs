//! Handlers that ask: one source in every revision that has questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use trunkline::model::{CreateMessageParams, LogLevel, SamplingMessage};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::{AskError, ToolEntry};
use trunkline::{Answer, Args, Change, Context, Form, Limits, Revision, ToolError, tool};
use trunkline_auth::seal::Sealer;

use crate::server::{ERAS, builder, counted, open, soon, text};

const ASKING: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];
const NEWEST: Revision = Revision::V2026_07_28;

#[derive(Form)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Count {
    count: u32,
}

async fn ask_name(cx: &Context, question: impl Into<String>) -> Result<String, ToolError> {
    Ok(cx.ask::<Name>(question).await?.accepted()?.name)
}

#[tokio::test]
async fn an_effect_happens_once_and_nothing_is_said_twice() {
    for revision in ASKING {
        let (effects, pay) = counted(|cx, effects| async move {
            cx.log(LogLevel::Error, "begins").await;
            cx.progress(1.0, 4.0).await;
            let first = cx
                .once("pay", async || Ok::<_, ToolError>(effects.fetch_add(1, SeqCst) + 1))
                .await?;
            let name = ask_name(&cx, format!("Payment {first}: who pays?")).await?;
            cx.progress(2.0, 4.0).await;
            cx.log(LogLevel::Error, "goes on").await;
            let second = cx
                .once("book", async || Ok::<_, ToolError>(effects.fetch_add(1, SeqCst) + 1))
                .await?;
            let friend = ask_name(&cx, "Who else?").await?;
            cx.progress(3.0, 4.0).await;
            Ok::<_, ToolError>(format!("{name} and {friend}: {first}, {second}"))
        });
        let server = builder().tool(tool("pay", pay)).build();
        let mut peer = open(&server, revision).await;
        if peer.is_stateless() {
            peer.meta.insert("io.modelcontextprotocol/logLevel".to_owned(), json!("error"));
        }
        let params = json!({ "name": "pay", "_meta": { "progressToken": 1 } });
        let result = peer.expect("tools/call", params).await;
        assert_eq!(text(&result), "Ada and Ada: 1, 2", "{revision}");
        assert_eq!(effects.load(SeqCst), 2, "each effect once in {revision}");
        assert_eq!(peer.rounds, [["Payment 1: who pays?"], ["Who else?"]]);
        let said: Vec<String> = peer
            .heard
            .iter()
            .filter_map(|it| match it["method"].as_str()? {
                "notifications/progress" => Some(it["params"]["progress"].to_string()),
                "notifications/message" => Some(it["params"]["data"].to_string()),
                _ => None,
            })
            .map(|it| it.trim_end_matches(".0").to_owned())
            .collect();
        assert_eq!(said, ["\"begins\"", "1", "2", "\"goes on\"", "3"], "{revision}");
    }
}

#[tokio::test]
async fn an_effect_that_fails_is_tried_again() {
    let (_, stubborn) = counted(|cx, tries| async move {
        let attempt = async || match tries.fetch_add(1, SeqCst) {
            0 => Err(ToolError::new("Not yet.")),
            _ => Ok("done".to_owned()),
        };
        cx.once("try", attempt).await
    });
    let server = builder().tool(tool("stubborn", stubborn)).build();
    let mut peer = open(&server, NEWEST).await;
    let failed = peer.tool("stubborn", json!({})).await;
    assert_eq!((&failed["isError"], text(&failed)), (&json!(true), "Not yet."));
    assert_eq!(text(&peer.tool("stubborn", json!({})).await), "done");
}

async fn check_paid_once(revision: Revision, pay: ToolEntry, effects: &AtomicU32) {
    let server = builder().tool(pay).build();
    let mut peer = open(&server, revision).await;
    assert_eq!(text(&peer.tool("pay", json!({})).await), "Ada paid 1", "{revision}");
    assert_eq!(effects.load(SeqCst), 1, "{revision}");
}

#[tokio::test]
async fn an_effect_beside_a_question_is_finished_and_not_begun_again() {
    for revision in ASKING {
        let (effects, joined) = counted(|cx, effects| async move {
            let effect = async || {
                let count = effects.fetch_add(1, SeqCst) + 1;
                tokio::task::yield_now().await;
                Ok::<_, ToolError>(count)
            };
            let (paid, name) = tokio::join!(cx.once("pay", effect), ask_name(&cx, "Name?"));
            Ok::<_, ToolError>(format!("{} paid {}", name?, paid?))
        });
        check_paid_once(revision, tool("pay", joined), &effects).await;
    }
}

#[tokio::test]
async fn a_question_waits_for_an_effect_that_the_handler_spawned() {
    for revision in ASKING {
        let (effects, spawning) = counted(|cx, effects| {
            let (begun, asked) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            async move {
                let paying = {
                    let (cx, begun, asked) = (cx.clone(), Arc::clone(&begun), Arc::clone(&asked));
                    tokio::spawn(async move {
                        let effect = async || {
                            begun.notify_one();
                            asked.notified().await;
                            Ok::<_, ToolError>(effects.fetch_add(1, SeqCst) + 1)
                        };
                        let paid = cx.once("pay", effect).await;
                        begun.notify_one();
                        paid.map_err(|it| it.to_string())
                    })
                };
                begun.notified().await;
                // The effect ends only after the question was asked, and in another task.
                let (name, ()) = tokio::join!(ask_name(&cx, "Name?"), async { asked.notify_one() });
                let paid = paying.await?.map_err(ToolError::new)?;
                Ok::<_, ToolError>(format!("{} paid {paid}", name?))
            }
        });
        check_paid_once(revision, tool("pay", spawning), &effects).await;
    }
}

#[tokio::test]
async fn a_run_that_only_checks_has_no_effect_and_tells_nobody() {
    let (tries, telling) = counted(|cx, tries| async move {
        cx.changed(Change::Tools).await;
        let attempt = async || {
            tries.fetch_add(1, SeqCst);
            Err::<(), _>(ToolError::new("Not today."))
        };
        let paid = cx.once("pay", attempt).await.is_ok();
        ask_name(&cx, format!("Paid: {paid}. Name?")).await
    });
    let server = builder().tool(tool("telling", telling)).build();
    let mut peer = open(&server, NEWEST).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    peer.request("subscriptions/listen", filter).await;
    peer.next().await;
    assert_eq!(text(&peer.tool("telling", json!({})).await), "Ada");
    assert_eq!(peer.rounds, [["Paid: false. Name?"]]);
    // Twice: before the question and after it.
    assert_eq!(tries.load(SeqCst), 2);
    let told = peer.heard.iter().filter(|it| it["method"] == "notifications/tools/list_changed");
    assert_eq!(told.count(), 1, "once, though the handler ran twice, and once more to be checked");
}

#[tokio::test]
async fn a_question_inside_an_effect_is_wrong_in_every_revision() {
    async fn inside(cx: Context) -> Result<String, ToolError> {
        cx.once("x", async || ask_name(&cx, "Inside?").await).await
    }
    let server = builder().tool(tool("inside", inside)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        let result = peer.tool("inside", json!({})).await;
        assert_eq!(result["isError"], true, "{revision}: {result}");
        assert!(text(&result).contains("inside `Context::once`"), "{revision}: {result}");
        assert!(peer.rounds.is_empty());
    }
}

#[tokio::test]
async fn two_questions_with_one_key_are_a_mistake_in_every_revision() {
    async fn twins(cx: Context) -> Result<String, ToolError> {
        let (first, second) = tokio::join!(
            cx.ask::<Name>("Name?").key("twin").into_future(),
            cx.ask::<Count>("How many?").key("twin").into_future(),
        );
        let why = second.err().map(|it| it.to_string()).unwrap_or_default();
        Ok(format!("{}: {why}", first?.accepted()?.name))
    }
    let server = builder().tool(tool("twins", twins)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        assert_eq!(
            text(&peer.tool("twins", json!({})).await),
            "Ada: The question is wrong: two questions have the key `twin`.",
            "{revision}"
        );
        assert_eq!(peer.rounds, [["Name?"]], "{revision}");
    }
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn a_handler_whose_questions_vary_is_caught() {
    let runs = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&runs);
    let fickle = move |cx: Context| {
        let run = counter.fetch_add(1, SeqCst);
        async move { ask_name(&cx, format!("Question {run}?")).await }
    };
    let server = builder().tool(tool("fickle", fickle)).build();
    let mut peer = open(&server, NEWEST).await;
    let error = peer.call("tools/call", json!({ "name": "fickle" })).await.unwrap_err();
    assert_eq!(error["code"], -32603);
    assert_eq!(error["data"]["reason"], "not_deterministic");
    let why = error["message"].as_str().unwrap();
    let said = "`fickle` asked `Question 0?`, and `Question 1?` when it ran again.";
    assert!(why.starts_with(said), "{why}");
    assert!(peer.rounds.is_empty(), "the client is not bothered with it");
    // Where each question is a request, there is nothing to compare.
    let mut peer = open(&server, Revision::V2025_11_25).await;
    assert_eq!(text(&peer.tool("fickle", json!({})).await), "Ada");
}

#[cfg(debug_assertions)]
#[test]
fn the_kit_warns_of_what_is_waited_for_outside_once() {
    use trunkline::testing::{Transport, run};

    async fn waits(cx: Context) -> Result<String, ToolError> {
        tokio::task::yield_now().await;
        ask_name(&cx, "Name?").await
    }
    async fn keeps(cx: Context) -> Result<String, ToolError> {
        cx.progress(1.0, 2.0).await;
        let wait = async || {
            tokio::task::yield_now().await;
            Ok::<_, ToolError>(())
        };
        cx.once("wait", wait).await?;
        ask_name(&cx, "Name?").await
    }
    async fn asks_nothing() -> &'static str {
        tokio::task::yield_now().await;
        "done"
    }
    let server = || {
        let builder = builder().tool(tool("waits", waits)).tool(tool("keeps", keeps));
        builder.tool(tool("asks_nothing", asks_nothing)).build()
    };
    run(NEWEST, Transport::Memory, server, async |peer| {
        let name = || trunkline::testing::Reply::accept(json!({ "name": "Ada" }));
        peer.answers([name(), name(), name()]);
        for quiet in ["keeps", "asks_nothing"] {
            peer.call_tool(quiet, ()).await.unwrap();
            assert_eq!(peer.warnings(), [""; 0], "{quiet}");
        }
        for _ in 0..2 {
            peer.call_tool("waits", ()).await.unwrap();
        }
        let warnings = peer.warnings();
        assert_eq!(warnings.len(), 1, "each is told once: {warnings:?}");
        assert!(warnings[0].starts_with("`waits` waits for something before it asks"));
    });
}

#[tokio::test]
async fn an_answer_belongs_to_the_question_it_was_given_to() {
    // The second question quotes the first answer; a client that changes that answer is asked
    // again.
    async fn chain(cx: Context) -> Result<String, ToolError> {
        let name = ask_name(&cx, "Name?").await?;
        let count = cx.ask::<Count>(format!("How many for {name}?")).await?.accepted()?.count;
        Ok(format!("{count} for {name}"))
    }
    let server = builder().tool(tool("chain", chain)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("chain", json!({})).await), "1 for Ada", "{revision}");
        assert_eq!(peer.rounds, [["Name?"], ["How many for Ada?"]]);
    }
}

#[tokio::test]
async fn questions_of_every_kind_go_out_in_one_round() {
    async fn all(cx: Context) -> Result<String, ToolError> {
        let prompt = CreateMessageParams::new(vec![SamplingMessage::user("Hm?")], 10);
        let (name, sampled, roots, page) = tokio::join!(
            cx.ask::<Name>("Name?").into_future(),
            cx.sample(prompt),
            cx.roots(),
            cx.ask_url("Please look.", "https://example.com/").into_future(),
        );
        let (name, page) = (name?.accepted()?.name, page?);
        assert_eq!(page, Answer::Accept(()));
        Ok(format!("{name}, {}, {}", sampled?.text(), roots?.len()))
    }
    let server = builder().tool(tool("all", all)).build();
    for revision in ERAS {
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("all", json!({})).await), "Ada, forty-two, 2");
        assert_eq!(peer.rounds.concat().len(), 4);
        assert_eq!(peer.rounds.len(), if peer.is_stateless() { 1 } else { 4 });
    }
}

#[tokio::test]
async fn a_handler_may_stop_waiting_for_an_answer() {
    async fn impatient(cx: Context) -> Result<String, ToolError> {
        let asking = cx.ask::<Name>("Quick, your name?").into_future();
        Ok(match tokio::time::timeout(Duration::from_millis(100), asking).await {
            Ok(answer) => answer?.accepted()?.name,
            Err(_) => "nobody".to_owned(),
        })
    }
    let server = builder().tool(tool("impatient", impatient)).build();

    // The question is cancelled on the wire, and a late answer changes nothing.
    let mut peer = open(&server, Revision::V2025_11_25).await;
    let id = peer.request("tools/call", json!({ "name": "impatient" })).await;
    let question = peer.next().await;
    assert_eq!(question["method"], "elicitation/create");
    let withdrawn = peer.next().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let late = json!({ "action": "accept", "content": { "name": "Late" } });
    let late = json!({ "jsonrpc": "2.0", "id": question["id"], "result": late });
    peer.send(&late, Some("elicitation/create")).await;
    assert_eq!(text(&peer.answer_to(&id).await.unwrap()), "nobody");

    // Between rounds no handler waits, so a slow user does no harm.
    let mut peer = open(&server, NEWEST).await;
    let params = json!({ "name": "impatient" });
    let id = peer.request("tools/call", params.clone()).await;
    let required = peer.answer_to(&id).await.unwrap();
    // the sleep is the subject
    tokio::time::sleep(Duration::from_millis(150)).await;
    let mut retry = params;
    for (name, value) in peer.answer_round(&required) {
        retry[name] = value;
    }
    assert_eq!(text(&peer.expect("tools/call", retry).await), "Ada");
}

#[tokio::test]
async fn a_cancelled_call_withdraws_its_questions() {
    async fn patient(cx: Context) -> Result<String, ToolError> {
        ask_name(&cx, "Name?").await
    }
    let server = builder().tool(tool("patient", patient)).build();
    let mut peer = open(&server, Revision::V2025_11_25).await;
    let id = peer.request("tools/call", json!({ "name": "patient" })).await;
    let question = peer.next().await;
    peer.cancel(&id).await;
    let withdrawn = peer.next().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    peer.expect("ping", json!({})).await;
}

#[tokio::test]
async fn what_a_handler_spawned_may_ask_and_does_not_outlive_the_round() {
    for revision in ERAS {
        let (ended, mut ends) = mpsc::unbounded_channel();
        let spawning = move |cx: Context| {
            let ended = ended.clone();
            async move {
                let asking = tokio::spawn(async move {
                    let answer = cx.ask::<Name>("Name?").await;
                    let _ = ended.send(answer.is_ok());
                    answer
                });
                Ok::<_, ToolError>(asking.await??.accepted()?.name)
            }
        };
        let server = builder().tool(tool("spawning", spawning)).build();
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("spawning", json!({})).await), "Ada", "{revision}");
        drop((peer, server));
        let mut outcomes = Vec::new();
        while let Some(outcome) = soon(ends.recv()).await {
            outcomes.push(outcome);
        }
        assert_eq!(outcomes.iter().filter(|it| **it).count(), 1, "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_causes_no_effect() {
    let (effects, careful) = counted(|cx, effects| async move {
        let name = ask_name(&cx, "Really?").await?;
        effects.fetch_add(1, SeqCst);
        Ok::<_, ToolError>(name)
    });
    let server = builder().tool(tool("careful", careful)).build();
    for revision in Revision::ALL {
        let mut peer = crate::server::meet(&server, revision);
        peer.capabilities = json!({});
        peer.open().await;
        match peer.call("tools/call", json!({ "name": "careful" })).await {
            Err(error) => assert_eq!((revision, &error["code"]), (NEWEST, &json!(-32021))),
            Ok(result) => {
                assert_eq!(result["isError"], true);
                assert_ne!(revision, NEWEST);
            }
        }
    }
    assert_eq!(effects.load(SeqCst), 0);
}

#[tokio::test]
async fn a_handler_can_do_without_an_answer() {
    async fn modest(cx: Context) -> Result<String, ToolError> {
        match cx.ask::<Name>("Name?").await {
            Ok(answer) => Ok(answer.accepted()?.name),
            Err(AskError::Unsupported { what, .. }) => Ok(format!("anonymous, for want of {what}")),
            Err(other) => Err(other.into()),
        }
    }
    let server = builder().tool(tool("modest", modest)).build();
    for revision in Revision::ALL {
        let mut peer = crate::server::meet(&server, revision);
        peer.capabilities = json!({});
        peer.open().await;
        let result = peer.tool("modest", json!({})).await;
        assert_eq!(text(&result), "anonymous, for want of form elicitation", "{revision}");
    }
}

async fn nosy(cx: Context, Args(it): Args<Count>) -> Result<String, ToolError> {
    for at in 0..it.count {
        ask_name(&cx, format!("Question {at}?")).await?;
    }
    Ok("enough".to_owned())
}

#[tokio::test]
async fn rounds_and_the_state_between_them_are_bounded() {
    let server =
        builder().limits(Limits::default().input_rounds(3)).tool(tool("nosy", nosy)).build();
    let mut peer = open(&server, NEWEST).await;
    let ask = |count: u32| json!({ "name": "nosy", "arguments": { "count": count } });
    assert_eq!(text(&peer.expect("tools/call", ask(3)).await), "enough");
    let error = peer.call("tools/call", ask(4)).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("rounds")));

    let server =
        builder().limits(Limits::default().state_bytes(400)).tool(tool("nosy", nosy)).build();
    let mut peer = open(&server, NEWEST).await;
    let error = peer.call("tools/call", ask(5)).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("state")));
}

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    nights: u32,
}

#[tokio::test]
async fn a_retry_may_spell_its_arguments_anew() {
    let book = async |cx: Context, Args(it): Args<Trip>| {
        let name = ask_name(&cx, "Who?").await?;
        Ok::<_, ToolError>(format!("{name}, {} × {}", it.city, it.nights))
    };
    let server = builder().tool(tool("book", book)).build();
    let mut peer = open(&server, NEWEST).await;
    let call = json!({ "name": "book", "arguments": { "city": "Oslo", "nights": 2 } });
    let id = peer.request("tools/call", call).await;
    let required = peer.answer_to(&id).await.unwrap();
    let round: serde_json::Map<_, _> = peer.answer_round(&required).into_iter().collect();
    for (arguments, fits) in [
        (r#"{ "nights": 2, "city": "\u004fslo" }"#, true),
        (r#"{"nights":3,"city":"Oslo"}"#, false),
    ] {
        let mut params = json!({ "name": "book", "arguments": "ARGUMENTS" });
        params.as_object_mut().unwrap().extend(round.clone());
        let request = peer.prepare("tools/call", params);
        let text_of = request.to_string().replace(r#""ARGUMENTS""#, arguments);
        peer.send_bytes(format!("{text_of}\n").as_bytes()).await;
        match peer.answer_to(&request["id"]).await {
            Ok(result) => assert_eq!((text(&result), fits), ("Ada, Oslo × 2", true)),
            Err(error) => assert_eq!((&error["code"], fits), (&json!(-32602), false)),
        }
    }
}

#[tokio::test]
async fn replicas_with_the_same_keys_finish_each_others_calls() {
    let (old, new) = ([1; 32], [2; 32]);
    let replica = |keys: &[[u8; 32]]| builder().state_keys(keys).tool(tool("nosy", nosy)).build();
    let params = json!({ "name": "nosy", "arguments": { "count": 1 } });
    for (first, second, fits) in
        [(&[old][..], &[old][..], true), (&[old], &[new, old], true), (&[new, old], &[old], false)]
    {
        let mut peer = open(&replica(first), NEWEST).await;
        let id = peer.request("tools/call", params.clone()).await;
        let required = peer.answer_to(&id).await.unwrap();
        let mut retry = params.clone();
        for (name, value) in peer.answer_round(&required) {
            retry[name] = value;
        }
        let mut peer = open(&replica(second), NEWEST).await;
        match peer.call("tools/call", retry).await {
            Ok(result) => assert_eq!((text(&result), fits), ("enough", true)),
            Err(error) => assert_eq!((&error["code"], fits), (&json!(-32602), false)),
        }
    }
}

#[tokio::test]
async fn a_state_that_has_expired_is_refused() {
    let key = [7; 32];
    let server = builder().state_keys(&[key]).tool(tool("nosy", nosy)).build();
    let mut peer = open(&server, NEWEST).await;
    // A journal made by the server itself, sealed for this call.
    let journal =
        json!({ "asked": {}, "answers": {}, "once": {}, "progress": null, "logs": 0, "rounds": 1 });
    let bound = b"tools/call\0nosy\0{\"count\":1}\0";
    let mut call = async |expires: SystemTime| {
        let state = Sealer::new(&[key]).seal(journal.to_string().as_bytes(), bound, expires);
        let arguments = json!({ "count": 1 });
        let params = json!({ "name": "nosy", "arguments": arguments, "requestState": state });
        peer.call("tools/call", params).await
    };
    let hour = Duration::from_secs(3600);
    let result: Result<Value, Value> = call(SystemTime::now() + hour).await;
    assert_eq!(text(&result.unwrap()), "enough", "the forgery is good but for its age");
    let error = call(SystemTime::now() - hour).await.unwrap_err();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32602), &json!("`requestState` is not valid here."))
    );
}
