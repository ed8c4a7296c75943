//! A client that goes away cancels its call: the handler is dropped, its spawned tasks are
//! notified, and nothing more is sent.

use std::sync::Arc;

use serde_json::json;
use trunkline::client::Client;
use trunkline::{Cancelled, Context, Limits, Revision, Server, State, tool};

use super::{Gate, Side, Transport, pipes, transports_of, wait};
use crate::http::House;
use crate::server::{ERAS, builder, soon, text};

/// Waits, and spawns a task that waits for the cancellation.
async fn watched(cx: Context, cancelled: Cancelled, gate: State<Gate>) -> &'static str {
    let State(watch) = gate.clone();
    assert!(!cancelled.is() && !cx.is_cancelled());
    tokio::spawn(async move {
        cancelled.wait().await;
        assert!(cancelled.is() && cx.is_cancelled());
        watch.told.add_permits(1);
    });
    wait(gate).await
}

fn server(gate: &Arc<Gate>) -> Server {
    let limits = Limits::default().drain(std::time::Duration::from_millis(50));
    builder()
        .limits(limits)
        .shared_state(Arc::clone(gate))
        .tool(tool("watched", watched))
        .tool(tool("hi", async || "hi"))
        .build()
}

async fn client(
    server: &Server,
    transport: Transport,
    revision: Revision,
) -> (Client, Option<House>) {
    let builder = Client::builder("test", "1").protocol(revision);
    match transport {
        Transport::Pipes => {
            let ((far_reader, far_writer), (reader, writer)) = pipes();
            let server = server.clone();
            tokio::spawn(async move { server.serve(far_reader, far_writer).await });
            (builder.connect_io(reader, writer).await.unwrap(), None)
        }
        Transport::Http => {
            let house = House::of(server).await;
            let url = format!("http://{}/mcp", house.address);
            (builder.connect_http(url).await.unwrap(), Some(house))
        }
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_all_the_way() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let gate = Gate::new();
        let (client, _house) = client(&server(&gate), transport, revision).await;
        for _ in 0..3 {
            {
                let call = client.call_tool("watched", json!({}));
                tokio::select! {
                    answer = call => panic!("nobody opened the gate: {answer:?}"),
                    () = gate.pass(&gate.entered) => {}
                }
            }
            gate.pass(&gate.dropped).await;
            gate.pass(&gate.told).await;
            let answer = soon(client.call_tool("hi", json!({})).into_future()).await.unwrap();
            assert_eq!(answer.content[0].as_text(), Some("hi"), "{transport:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_takes_its_calls_along() {
    for (transport, revision) in transports_of(&Revision::ALL) {
        let gate = Gate::new();
        let (client, house) = client(&server(&gate), transport, revision).await;
        {
            let call = client.call_tool("watched", json!({}));
            tokio::select! {
                answer = call => panic!("nobody opened the gate: {answer:?}"),
                () = gate.pass(&gate.entered) => drop(client),
            }
        }
        gate.pass(&gate.dropped).await;
        gate.pass(&gate.told).await;
        drop(house);
    }
}

#[tokio::test]
async fn a_cancelled_call_is_silent() {
    for revision in Revision::ALL {
        let gate = Gate::new();
        let mut side = Side::of(&server(&gate), Transport::Pipes, revision).await;
        let Side::Pipes(peer) = &mut side else { unreachable!() };
        let id = peer.request("tools/call", json!({ "name": "watched" })).await;
        gate.pass(&gate.entered).await;
        peer.cancel(&id).await;
        gate.pass(&gate.dropped).await;
        // A cancellation that is repeated, late, or for an unknown id has no effect.
        peer.cancel(&id).await;
        peer.cancel(&json!(4711)).await;
        let before = peer.heard.len();
        assert_eq!(text(&peer.tool("hi", json!({})).await), "hi");
        assert_eq!(peer.heard.len(), before + 1, "{revision}: nothing but the answer came");
    }
}

#[tokio::test]
async fn a_question_of_a_cancelled_call_is_withdrawn() {
    async fn ask(cx: Context, State(gate): State<Gate>) -> &'static str {
        let _bell = super::Bell(gate);
        let _ = cx.roots().await;
        "asked"
    }
    for revision in ERAS {
        let gate = Gate::new();
        let server = super::with_hi(&gate, tool("ask", ask));
        let mut side = Side::of(&server, Transport::Pipes, revision).await;
        let Side::Pipes(peer) = &mut side else { unreachable!() };
        let id = peer.request("tools/call", json!({ "name": "ask" })).await;
        let question = peer.next().await;
        gate_or_question(revision, &gate, &question).await;
        peer.cancel(&id).await;
        if revision != Revision::V2026_07_28 {
            let withdrawn = peer.next().await;
            assert_eq!(withdrawn["method"], "notifications/cancelled");
            assert_eq!(withdrawn["params"]["requestId"], question["id"]);
            gate.pass(&gate.dropped).await;
        }
        assert_eq!(text(&peer.tool("hi", json!({})).await), "hi");
    }
}

/// In 2026-07-28 the question is the answer, and the handler ends with it.
async fn gate_or_question(revision: Revision, gate: &Gate, question: &serde_json::Value) {
    if revision == Revision::V2026_07_28 {
        assert_eq!(question["result"]["resultType"], "input_required");
        gate.pass(&gate.dropped).await;
    } else {
        assert_eq!(question["method"], "roots/list");
    }
}
