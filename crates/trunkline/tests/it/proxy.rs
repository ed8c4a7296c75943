//! A remote server as a local one: what it forwards, returns and asks.

use serde_json::{Value, json};
use trunkline::client::ClientBuilder;
use trunkline::model::{CreateMessageParams, SamplingMessage, TaskSupport};
use trunkline::schemars::JsonSchema;
use trunkline::serde::{Deserialize, Serialize};
use trunkline::server::{ServerBuilder, Task, proxy};
use trunkline::{
    Args, Client, Context, ErrorObject, Form, Json, Meta, Revision, Server, ToolError, prompt,
    resource, template, tool,
};
use trunkline_testkit::peer::Peer;

use crate::client_peer::Diary;
use crate::server::{ERAS, never, open, soon, text};

#[derive(Deserialize, JsonSchema, Form)]
struct Who {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Length {
    length: usize,
}

pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("gate", "1").protocol(revision)
}

/// The remote server.
fn remote() -> ServerBuilder {
    let length = async |Args(it): Args<Who>| Json(Length { length: it.name.len() });
    let steps = async |cx: Context| {
        for step in 1..=3 {
            cx.progress(f64::from(step), 3.0).await;
        }
    };
    let trace = async |meta: Meta| meta.get::<String>("traceparent").unwrap_or_default();
    let greet = async |Args(it): Args<Who>| format!("Hello {}", it.name);
    Server::builder("remote", "3")
        .instructions("Be kind.")
        .tool(tool("length", length).about("Counts."))
        .tool(tool("steps", steps))
        .tool(tool("trace", trace))
        .tool(tool("fails", async || -> Result<String, ToolError> {
            Err(ToolError::new("It failed.").with_data(json!({ "why": "because" })))
        }))
        .tool(tool("refuses", async || -> Result<String, ToolError> {
            Err(ToolError::rpc(ErrorObject::new(4050, "Not you.").with_data(json!(1).into())))
        }))
        .prompt(prompt("greet", greet).complete("name", |typed, _| vec![format!("{typed}da")]))
        .resource(resource("far://note", "note", async || "A note.").mime_type("text/plain"))
        .resource(template("far://{name}/hello", "hello", greet))
}

/// A local server in front of a remote one, for every pair of revisions.
async fn each_pair(server: &Server, mut check: impl AsyncFnMut(Peer, String)) {
    for far in Revision::ALL {
        let client = client(far).connect_memory(server).await.unwrap();
        let local =
            Server::builder("local", "1").mount("far", proxy(client).await.unwrap()).build();
        for near in Revision::ALL {
            check(open(&local, near).await, format!("{near} before {far}")).await;
        }
    }
}

#[tokio::test]
async fn everything_is_there_and_comes_back_as_it_is() {
    each_pair(&remote().build(), async |mut peer, which| {
        let list = peer.expect("tools/list", json!({})).await;
        let names: Vec<_> =
            list["tools"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
        let expected = ["far.length", "far.steps", "far.trace", "far.fails", "far.refuses"];
        assert_eq!(names, expected, "{which}");
        assert_eq!(list["tools"][0]["description"], "Counts.");
        assert_eq!(list["tools"][0]["inputSchema"]["required"], json!(["name"]));

        let result = peer.tool("far.length", json!({ "name": "Ada" })).await;
        assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), json!({ "length": 3 }));
        let wrong = peer.call("tools/call", json!({ "name": "far.length" })).await;
        assert!(wrong.is_err() || wrong.unwrap()["isError"] == true, "{which}");
        let failed = peer.expect("tools/call", json!({ "name": "far.fails" })).await;
        assert_eq!((text(&failed), &failed["isError"]), ("It failed.", &json!(true)));
        let error = peer.call("tools/call", json!({ "name": "far.refuses" })).await.unwrap_err();
        assert_eq!(error, json!({ "code": 4050, "message": "Not you.", "data": 1 }));

        let params = json!({ "name": "far.greet", "arguments": { "name": "Ada" } });
        let got = peer.expect("prompts/get", params).await;
        assert_eq!(got["messages"][0]["content"]["text"], "Hello Ada");
        let read = peer.expect("resources/read", json!({ "uri": "far://note" })).await;
        let note = json!({ "uri": "far://note", "text": "A note.", "mimeType": "text/plain" });
        assert_eq!(read["contents"][0], note, "{which}");
        let read = peer.expect("resources/read", json!({ "uri": "far://Ada/hello" })).await;
        assert_eq!(read["contents"][0]["text"], "Hello Ada");
    })
    .await;
}

#[tokio::test]
async fn structured_results_and_their_schemas_are_kept() {
    let server = remote().build();
    let client = client(Revision::V2026_07_28).connect_memory(&server).await.unwrap();
    let local = proxy(client).await.unwrap();
    let mut peer = open(&local, Revision::V2026_07_28).await;
    let list = peer.expect("tools/list", json!({})).await;
    assert_eq!(list["tools"][0]["outputSchema"]["required"], json!(["length"]));
    let result = peer.tool("length", json!({ "name": "Ada" })).await;
    assert_eq!(result["structuredContent"], json!({ "length": 3 }));
    let argument = json!({ "name": "name", "value": "A" });
    let reference = json!({ "type": "ref/prompt", "name": "greet" });
    let params = json!({ "ref": reference, "argument": argument });
    let completed = peer.expect("completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!(["Ada"]));
    let client = Client::in_memory(&local).await.unwrap();
    assert_eq!(client.instructions(), Some("Be kind."));
    assert_eq!(client.server_info().unwrap().name, "remote");
}

#[tokio::test]
async fn progress_and_trace_context_are_passed_on() {
    each_pair(&remote().build(), async |mut peer, which| {
        let before = peer.heard.len();
        let params = json!({ "name": "far.steps", "_meta": { "progressToken": 7 } });
        peer.expect("tools/call", params).await;
        let steps: Vec<_> = peer.heard[before..]
            .iter()
            .filter(|it| it["method"] == "notifications/progress")
            .map(|it| it["params"]["progress"].as_f64().unwrap())
            .collect();
        assert_eq!(steps, [1.0, 2.0, 3.0], "{which}");
        let params = json!({ "name": "far.trace", "_meta": { "traceparent": "00-a-b-01" } });
        assert_eq!(text(&peer.expect("tools/call", params).await), "00-a-b-01", "{which}");
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_given_up_here_is_given_up_there() {
    for far in ERAS {
        let (tool, begun, rung) = never("never");
        let server = Server::builder("remote", "1").tool(tool).build();
        let local = proxy(client(far).connect_memory(&server).await.unwrap()).await.unwrap();
        let mut peer = open(&local, far).await;
        let id = peer.request("tools/call", json!({ "name": "never" })).await;
        soon(begun.notified()).await;
        peer.cancel(&id).await;
        soon(rung).await.unwrap();
    }
}

#[tokio::test]
async fn a_remote_server_that_is_gone_is_told_as_such() {
    for revision in ERAS {
        let ((reader, writer), (far_reader, far_writer)) = trunkline::transport::memory::pair();
        let server = remote().build();
        let serving = tokio::spawn(async move { server.serve(far_reader, far_writer).await });
        let client = client(revision).connect_io(reader, writer).await.unwrap();
        let local = proxy(client).await.unwrap();
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
        let mut peer = open(&local, revision).await;
        let result = soon(peer.expect("tools/call", json!({ "name": "trace" }))).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains("cannot be reached"), "{result}");
        let params = json!({ "uri": "far://note" });
        let error = peer.call("resources/read", params).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("cannot be reached"), "{error}");
        peer.expect("tools/list", json!({})).await;
    }
}

#[tokio::test]
async fn a_remote_server_that_dies_in_the_middle_of_a_call_may_have_done_it() {
    let ((reader, writer), (far_reader, far_writer)) = trunkline::transport::memory::pair();
    let (tool, begun, _rung) = never("never");
    let server = Server::builder("remote", "1").tool(tool).build();
    let serving = tokio::spawn(async move { server.serve(far_reader, far_writer).await });
    let remote = client(Revision::V2025_11_25).connect_io(reader, writer).await.unwrap();
    let local = proxy(remote).await.unwrap();
    let mut peer = open(&local, Revision::V2025_11_25).await;
    let id = peer.request("tools/call", json!({ "name": "never" })).await;
    soon(begun.notified()).await;
    serving.abort();
    let answer = soon(peer.answer_to(&id)).await.unwrap();
    assert_eq!(answer["isError"], true);
    assert!(text(&answer).contains("may have been done"), "{answer}");
}

#[tokio::test]
async fn lists_follow_those_of_the_remote_server() {
    for revision in ERAS {
        let server = remote().build();
        let client = client(revision).connect_memory(&server).await.unwrap();
        let local =
            Server::builder("local", "1").mount("far", proxy(client).await.unwrap()).build();
        let mut peer = open(&local, Revision::V2025_11_25).await;
        peer.expect("tools/list", json!({})).await;
        server.put_tool(tool("new", async || "new")).unwrap();
        assert_eq!(peer.next().await["method"], "notifications/tools/list_changed");
        assert_eq!(text(&peer.tool("far.new", json!({})).await), "new");
        server.remove_tool("new");
        assert_eq!(peer.next().await["method"], "notifications/tools/list_changed");
        assert_eq!(peer.refused("tools/call", json!({ "name": "far.new" })).await, -32602);
        server.put_resource(resource("far://b", "b", async || "b")).unwrap();
        assert_eq!(peer.next().await["method"], "notifications/resources/list_changed");
        let read = peer.expect("resources/read", json!({ "uri": "far://b" })).await;
        assert_eq!(read["contents"][0]["text"], "b");
    }
}

#[tokio::test]
async fn a_tool_that_becomes_a_task_there_is_waited_for_here() {
    let work = async || Ok::<_, ToolError>(Task::new(async |_| Ok("worked".to_owned())));
    let only = tool("only", async || "as a task").task(TaskSupport::Required);
    let server = Server::builder("remote", "1").tool(tool("work", work)).tool(only).build();
    for far in ERAS {
        let client = client(far).connect_memory(&server).await.unwrap();
        let local = proxy(client).await.unwrap();
        let mut peer = open(&local, Revision::V2025_06_18).await;
        assert_eq!(text(&peer.tool("work", json!({})).await), "worked", "{far}");
        assert_eq!(text(&peer.tool("only", json!({})).await), "as a task", "{far}");
    }
}

/// Asks twice, with an effect in between.
fn asking(effects: &Diary) -> Server {
    let effects = effects.clone();
    let ask = move |cx: Context| {
        let effects = effects.clone();
        async move {
            cx.progress(1.0, 3.0).await;
            let one = cx.ask::<Who>("One?").await?.accepted()?.name;
            cx.once("effect", async || {
                effects.note("effect");
                Ok::<_, ToolError>(())
            })
            .await?;
            cx.progress(2.0, 3.0).await;
            let two = cx.ask::<Who>("Two?").await?.accepted()?.name;
            Ok::<_, ToolError>(format!("{one} {two}"))
        }
    };
    let sample = async |cx: Context| -> Result<String, ToolError> {
        let params = CreateMessageParams::new(vec![SamplingMessage::user("Hm?")], 10);
        let said = cx.sample(params).await?;
        let roots = cx.roots().await?;
        Ok(format!("{} says so in {} folders", said.model, roots.len()))
    };
    Server::builder("remote", "1").tool(tool("ask", ask)).tool(tool("sample", sample)).build()
}

#[tokio::test]
async fn what_the_remote_server_asks_the_responder_of_the_client_answers() {
    for far in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = asking(&Diary::default());
        let answers = client(far)
            .on_ask(|question| async move { question.accept(json!({ "name": "the gate" })) });
        let local = proxy(answers.connect_memory(&server).await.unwrap()).await.unwrap();
        let mut peer = open(&local, Revision::V2026_07_28).await;
        assert_eq!(text(&peer.tool("ask", json!({})).await), "the gate the gate");
        assert!(peer.rounds.is_empty(), "nobody here was asked");

        let local = proxy(client(far).connect_memory(&server).await.unwrap()).await.unwrap();
        let mut peer = open(&local, Revision::V2026_07_28).await;
        let answer = soon(peer.call("tools/call", json!({ "name": "ask" }))).await;
        assert!(answer.is_err() || answer.unwrap()["isError"] == true, "nobody can be asked");
    }
}
