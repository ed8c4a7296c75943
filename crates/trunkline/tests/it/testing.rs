//! The testing kit, tested with itself: one body in every revision and over every transport.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::json;
use trunkline::client::{CallError, ToolCall};
use trunkline::model::{CreateMessageParams, LogLevel, SamplingMessage, TaskSupport};
use trunkline::testing::{Reply, ScriptedModel, Transport, run};
use trunkline::{Client, Context, Era, Form, Principal, Revision, Server, ToolError, tool};

const TRANSPORTS: [Transport; 3] = [Transport::Memory, Transport::Stdio, Transport::Http];
const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(Form)]
struct Sure {
    value: bool,
}

async fn book(cx: Context) -> Result<String, ToolError> {
    cx.progress(1.0, 2.0).await;
    let sure: Sure = cx.ask("Sure?").await?.accepted()?;
    cx.progress(2.0, 2.0).await;
    Ok(if sure.value { "booked" } else { "left" }.to_owned())
}

async fn think(cx: Context) -> Result<String, ToolError> {
    let params = CreateMessageParams::new(vec![SamplingMessage::user("2 + 2?")], 10);
    Ok(cx.sample(params).await?.text())
}

async fn sleep(_cx: Context) -> &'static str {
    tokio::time::sleep(Duration::from_secs(50)).await; // the sleep is the subject
    "slept"
}

async fn chat(cx: Context) -> &'static str {
    cx.log(LogLevel::Info, json!("hello")).await;
    "said"
}

fn server() -> Server {
    Server::builder("kit", "1.0.0")
        .tool(tool("book", book))
        .tool(tool("think", think))
        .tool(tool("sleep", sleep))
        .tool(tool("chat", chat))
        .tool(tool("render", sleep).task(TaskSupport::Required))
        .build()
}

fn text(result: Result<trunkline::model::CallToolResult, CallError>) -> String {
    result.unwrap().content[0].as_text().unwrap().to_owned()
}

/// These revisions over every transport.
fn everywhere<const N: usize>(
    revisions: [Revision; N],
) -> impl Iterator<Item = (Revision, Transport)> {
    revisions.into_iter().flat_map(|revision| TRANSPORTS.map(|transport| (revision, transport)))
}

#[test]
fn a_body_sees_the_same_in_every_revision_over_every_transport() {
    for (revision, transport) in everywhere(Revision::ALL) {
        run(revision, transport, server, async |peer| {
            assert_eq!((peer.revision(), peer.transport()), (revision, transport));
            assert_eq!(Client::revision(&peer), revision);
            let names = peer.list_tools().await.unwrap();
            assert_eq!(names.len(), 5);
        });
    }
}

#[test]
fn questions_are_answered_from_the_script() {
    for (revision, transport) in everywhere(ERAS) {
        run(revision, transport, server, async |peer| {
            peer.answers([true, false]);
            assert_eq!(text(peer.call_tool("book", ()).await), "booked");
            assert_eq!(text(peer.call_tool("book", ()).await), "left");
            let asked = peer.questions();
            assert_eq!(asked.iter().map(|it| it.message()).collect::<Vec<_>>(), ["Sure?"; 2]);
            let steps: Vec<_> = peer.progress().iter().map(|it| it.progress).collect();
            assert_eq!(steps, [1.0, 2.0, 1.0, 2.0], "{revision} {transport}");
            peer.answers([Reply::decline()]);
            assert!(peer.call_tool("book", ()).await.unwrap().is_error());
        });
    }
}

#[test]
fn the_model_says_what_it_was_told_to() {
    for revision in ERAS {
        run(revision, Transport::Memory, server, async |peer| {
            let model = ScriptedModel::new(["Four."]);
            peer.model(model.clone());
            assert_eq!(text(peer.call_tool("think", ()).await), "Four.");
            assert_eq!(model.asked()[0].messages, [SamplingMessage::user("2 + 2?")]);
        });
    }
}

#[test]
fn logs_are_seen() {
    for (revision, transport) in everywhere(ERAS) {
        run(revision, transport, server, async |peer| {
            assert_eq!(text(peer.call_tool("chat", ()).await), "said");
            let logs: Vec<_> = peer.logs().iter().map(|it| it.data.get().to_owned()).collect();
            assert_eq!(logs, ["\"hello\""], "{revision} {transport}");
        });
    }
}

#[test]
fn the_transcript_has_every_message_in_order() {
    for transport in TRANSPORTS {
        for revision in ERAS {
            run(revision, transport, server, async |peer| {
                peer.answers([true]);
                peer.call_tool("book", ()).await.unwrap();
                peer.assert_transcript(match revision.era() {
                    Era::Stateful => {
                        "> tools/call book
                         < notifications/progress
                         < elicitation/create
                         > result
                         < notifications/progress
                         < result"
                    }
                    Era::Stateless => {
                        "> tools/call book
                         < notifications/progress
                         < result input_required
                         > tools/call book
                         < notifications/progress
                         < result"
                    }
                });
                let transcript = peer.transcript().to_string();
                assert!(transcript.contains("\"progressToken\""), "{transcript}");
            });
        }
    }
}

/// The message of a run that must fail.
fn failure(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it passed");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a sentence")).to_owned(),
    }
}

#[test]
fn what_goes_against_the_script_fails_with_a_sentence() {
    let over = Transport::Memory;
    for revision in ERAS {
        let why = failure(|| {
            run(revision, over, server, async |peer| {
                // The consequence is not reported.
                text(peer.call_tool("book", ()).await);
            });
        });
        assert!(why.starts_with("The server asked `Sure?`, to which there is no answer"), "{why}");
        assert!(why.ends_with(&format!("This was {revision} over memory.")), "{why}");

        let why = failure(|| {
            run(revision, over, server, async |peer| {
                let _ = peer.call_tool("think", ()).await;
            });
        });
        assert!(why.starts_with("The server asked the model `2 + 2?`"), "{why}");

        let why = failure(|| run(revision, over, server, async |peer| peer.answers([true])));
        assert!(why.starts_with("1 of the answers"), "{why}");

        let why = failure(|| run(revision, over, server, async |_| Err::<(), _>("no")));
        assert!(why.starts_with("The test failed: \"no\""), "{why}");
    }
    let own = failure(|| run(ERAS[0], over, server, async |_| assert_eq!(1, 2, "own words")));
    assert!(own.contains("own words"), "{own}");
}

#[test]
fn a_clock_moves_the_deadlines_of_both_sides() {
    for (revision, transport) in everywhere(ERAS) {
        run(revision, transport, server, async |peer| {
            let clock = peer.clock();
            let call = peer.call_tool("sleep", ()).timeout(Duration::from_secs(100));
            assert_eq!(text(clock.until(call.into_future()).await), "slept");
            assert!(clock.elapsed() >= Duration::from_secs(50), "{:?}", clock.elapsed());

            let call = peer.call_tool("sleep", ()).timeout(Duration::from_secs(20));
            let outcome = clock.until(call.into_future()).await;
            assert_eq!(outcome, Err(CallError::TimedOut), "{revision} {transport}");

            let before = clock.elapsed();
            clock.advance(Duration::from_secs(3600)).await;
            assert_eq!(clock.elapsed() - before, Duration::from_secs(3600));
        });
    }
}

#[test]
fn a_clock_moves_the_lifetimes_of_tasks() {
    for (revision, transport) in everywhere(ERAS) {
        run(revision, transport, server, async |peer| {
            let clock = peer.clock();
            let starting = peer.call_tool_task("render", ());
            let started = clock.until(starting.into_future()).await.unwrap();
            let ToolCall::Task(task) = started else { panic!("{started:?}") };
            let lives = Duration::from_millis(task.ttl_ms.unwrap());
            assert!(lives > Duration::from_secs(60), "{lives:?}");
            clock.advance(lives - Duration::from_secs(1)).await;
            peer.get_task(&task.task_id).await.unwrap();
            // It is kept for this long after its end.
            clock.advance(lives + Duration::from_secs(1)).await;
            let gone = peer.get_task(&task.task_id).await.unwrap_err();
            assert!(matches!(gone, CallError::Peer(_)), "{revision} {transport}: {gone}");
        });
    }
}

#[test]
fn a_test_says_who_calls() {
    let server = || {
        let read = tool("read", async |who: Principal| who.subject).scopes(["read"]);
        let mine = tool("mine", async || "mine").visible(|it| it.principal().is_some());
        Server::builder("kit", "1.0.0").tool(read).tool(mine).build()
    };
    for (revision, transport) in everywhere(ERAS) {
        run(revision, transport, server, async |peer| {
            assert!(peer.call_tool("read", ()).await.is_err(), "{revision} {transport}");
            assert_eq!(peer.list_tools().await.unwrap().len(), 1);
            peer.principal(Principal::new("ada").scope("read"));
            assert_eq!(text(peer.call_tool("read", ()).await), "ada");
            assert_eq!(peer.list_tools().await.unwrap().len(), 2);
            peer.principal(Principal::new("bob"));
            assert!(peer.call_tool("read", ()).await.is_err(), "{revision} {transport}");
            peer.principal(None);
            assert_eq!(peer.list_tools().await.unwrap().len(), 1);
        });
    }
}

#[test]
fn a_test_may_connect_other_clients_in_the_same_way() {
    for (revision, transport) in everywhere(ERAS) {
        run(revision, transport, server, async |peer| {
            let bare = peer.connect(Client::builder("bare", "1")).await.unwrap();
            assert_eq!(bare.revision(), revision);
            // It cannot be asked, so it gets an error.
            let outcome = bare.call_tool("book", ()).await;
            assert!(outcome.is_err() || outcome.unwrap().is_error(), "{revision} {transport}");
            assert_eq!(peer.transcript().lines(), []);
        });
    }
}
