//! Whom the questions of a remote server reach, and how long anybody is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};
use tower::util::MapRequestLayer;
use trunkline::layer::ServerRequest;
use trunkline::server::relay;
use trunkline::transport::memory;
use trunkline::{Context, Form, Principal, Revision, Server, ToolError, tool};
use trunkline_testkit::peer::Peer;

use crate::proxy::{Bell, client};
use crate::server::{open, soon, text};

const OLD: Revision = Revision::V2025_11_25;
const NEW: Revision = Revision::V2026_07_28;

#[derive(Form)]
struct Who {
    name: String,
}

async fn who(cx: Context) -> Result<String, ToolError> {
    Ok(cx.ask::<Who>("Who?").await?.accepted()?.name)
}

/// A server that asks when it is told to, with what tells that it was called and what tells it to.
fn waiting() -> (Server, Arc<Notify>, Arc<Notify>) {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes) = (Arc::clone(&begun), Arc::clone(&go));
    let ask = move |cx: Context| {
        let (begins, goes) = (Arc::clone(&begins), Arc::clone(&goes));
        async move {
            cx.once("wait", async || {
                begins.notify_one();
                goes.notified().await;
                Ok::<_, ToolError>(())
            })
            .await?;
            who(cx).await
        }
    };
    let server = Server::builder("remote", "1").tool(tool("ask", ask)).tool(tool("who", who));
    (server.build(), begun, go)
}

#[tokio::test]
async fn an_old_server_asks_nobody_once_it_has_several_callers() {
    let (server, begun, go) = waiting();
    let local = relay(client(OLD), |it| it.connect_memory(&server)).await.unwrap();
    let (mut one, mut other) = (open(&local, OLD).await, open(&local, OLD).await);
    assert_eq!(text(&one.tool("who", json!({})).await), "Ada");
    let id = one.request("tools/call", json!({ "name": "ask" })).await;
    soon(begun.notified()).await;
    let refused = soon(other.expect("tools/call", json!({ "name": "who" }))).await;
    assert!(text(&refused).contains("Several callers"), "{refused}");
    go.notify_one();
    let refused = soon(one.answer_to(&id)).await.unwrap();
    assert!(text(&refused).contains("Several callers"), "{refused}");
    // That one of them is gone does not say that their work is.
    other.hang_up().await;
    let refused = soon(one.expect("tools/call", json!({ "name": "who" }))).await;
    assert!(text(&refused).contains("Several callers"), "{refused}");
    assert_eq!((one.rounds.len(), other.rounds.len()), (1, 0));
}

#[tokio::test]
async fn a_new_server_asks_each_of_several_callers_what_is_theirs() {
    for near in [OLD, NEW] {
        let (server, begun, go) = waiting();
        let local = relay(client(NEW), |it| it.connect_memory(&server)).await.unwrap();
        let (mut one, mut other) = (open(&local, near).await, open(&local, near).await);
        let id = one.request("tools/call", json!({ "name": "ask" })).await;
        soon(begun.notified()).await;
        assert_eq!(text(&soon(other.tool("who", json!({}))).await), "Ada", "{near}");
        assert_eq!((one.rounds.len(), other.rounds.len()), (0, 1), "{near}");
        go.notify_one();
        let answer = soon(one.answer_to(&id)).await.unwrap();
        match near == NEW {
            true => assert_eq!(answer["resultType"], "input_required"),
            false => assert_eq!(text(&answer), "Ada"),
        }
        assert_eq!(other.rounds.len(), 1, "{near}");
    }
}

#[tokio::test]
async fn one_person_in_two_conversations_is_one_caller() {
    let (server, ..) = waiting();
    let local = relay(client(OLD), |it| it.connect_memory(&server)).await.unwrap();
    let admit = MapRequestLayer::new(|mut request: ServerRequest| {
        request.insert(Principal::new("ann"));
        request
    });
    let local = Server::builder("local", "1").merge(local).layer(admit).build();
    for revision in [OLD, NEW, OLD] {
        let mut peer = open(&local, revision).await;
        assert_eq!(text(&soon(peer.tool("who", json!({}))).await), "Ada");
    }
}

/// A server of another make, which answers `start` and asks, without any reason, when `never` is
/// called; and which passes on what it is answered.
async fn foreign(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    heard: mpsc::UnboundedSender<Value>,
) {
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let result = match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("initialize"), _) => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "foreign", "version": "1" },
            }),
            (Some("tools/list"), _) => json!({ "tools": [
                { "name": "start", "inputSchema": { "type": "object" } },
                { "name": "never", "inputSchema": { "type": "object" } },
            ] }),
            (_, Some("start")) => json!({ "content": [{ "type": "text", "text": "Started." }] }),
            (_, Some("never")) => {
                let schema = json!({ "type": "object", "properties": {} });
                let params = json!({ "message": "Sure, Ann?", "requestedSchema": schema });
                let method = "elicitation/create";
                let ask = json!({ "jsonrpc": "2.0", "id": 99, "method": method, "params": params });
                writer.write_all(format!("{ask}\n").as_bytes()).await.unwrap();
                continue;
            }
            (None, _) => {
                heard.send(message).unwrap();
                continue;
            }
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_question_that_comes_after_its_call_does_not_reach_somebody_else() {
    let ((reader, writer), (far_reader, far_writer)) = memory::pair();
    let (hear, mut heard) = mpsc::unbounded_channel();
    tokio::spawn(foreign(far_reader, far_writer, hear));
    let local = relay(client(OLD), |it| it.connect_io(reader, writer)).await.unwrap();
    let (mut ann, mut bob) = (open(&local, OLD).await, open(&local, OLD).await);
    assert_eq!(text(&ann.tool("start", json!({})).await), "Started.");
    // Ann's work asks now, and Bob's call is the only one that is open.
    bob.request("tools/call", json!({ "name": "never" })).await;
    let answer = soon(heard.recv()).await.unwrap();
    assert_eq!(answer["error"]["data"]["reason"], "several_callers", "{answer}");
    bob.expect("tools/list", json!({})).await;
    assert!(bob.rounds.is_empty() && ann.rounds.is_empty());
}

/// Calls `name`, and leaves the question that it comes to.
async fn leave(peer: &mut Peer, name: &str) {
    let id = peer.request("tools/call", json!({ "name": name })).await;
    let asked = soon(peer.answer_to(&id)).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
}

/// A server whose only tool asks, and what tells that it was given up.
fn asking() -> (Server, oneshot::Receiver<()>) {
    let (ring, rung) = oneshot::channel();
    let bell = std::sync::Mutex::new(Some(Bell(Some(ring))));
    let ask = move |cx: Context| {
        let bell = bell.lock().unwrap().take();
        async move {
            let _bell = bell;
            who(cx).await
        }
    };
    (Server::builder("remote", "1").tool(tool("ask", ask)).build(), rung)
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_does_not_come_back_is_not_waited_for_forever() {
    for hangs_up in [false, true] {
        let (server, rung) = asking();
        let local = relay(client(OLD), |it| it.connect_memory(&server)).await.unwrap();
        let mut peer = open(&local, NEW).await;
        leave(&mut peer, "ask").await;
        let left = tokio::time::Instant::now();
        if hangs_up {
            peer.hang_up().await;
        }
        rung.await.unwrap();
        assert_eq!(left.elapsed() < Duration::from_secs(10), hangs_up);
    }
}

#[tokio::test]
async fn of_many_questions_that_are_left_open_the_oldest_is_given_up() {
    let (server, mut rung) = asking();
    let local = relay(client(OLD), |it| it.connect_memory(&server)).await.unwrap();
    let mut peer = open(&local, NEW).await;
    for _ in 0..16 {
        leave(&mut peer, "ask").await;
    }
    assert!(rung.try_recv().is_err(), "so many may wait");
    leave(&mut peer, "ask").await;
    soon(rung).await.unwrap();
    assert_eq!(text(&soon(peer.tool("ask", json!({}))).await), "Ada");
}

#[tokio::test]
async fn nobody_is_asked_without_end() {
    let asked = Arc::new(AtomicU32::new(0));
    let asks = Arc::clone(&asked);
    let ask = move |cx: Context| {
        let asks = Arc::clone(&asks);
        async move {
            for _ in 0..1000 {
                cx.ask::<Who>("Who?").await?.accepted()?;
                asks.fetch_add(1, SeqCst);
            }
            Ok::<_, ToolError>("Enough.")
        }
    };
    let server = Server::builder("remote", "1").tool(tool("ask", ask)).build();
    let local = relay(client(OLD), |it| it.connect_memory(&server)).await.unwrap();
    let mut peer = open(&local, OLD).await;
    let refused = soon(peer.expect("tools/call", json!({ "name": "ask" }))).await;
    assert!(text(&refused).contains("at most 256 questions"), "{refused}");
    assert_eq!(asked.load(SeqCst), 256);
}
