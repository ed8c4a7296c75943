//! Requests with one fault each: every one has its status and code, and none runs.

use std::sync::atomic::Ordering::SeqCst;

use serde_json::Value;
use trunkline::{Limits, Revision};
use trunkline_testkit::http::bad::rows::Twist::{self, *};
use trunkline_testkit::http::bad::rows::{CAPABILITIES, HARMLESS, MODERN};
use trunkline_testkit::http::bad::{Inputs, ask};
use trunkline_testkit::http::{Guest, Line};

use crate::http::House;

#[tokio::test]
async fn what_is_wrong_in_one_way_is_refused_for_it_and_never_executed() {
    let (house, runs) = House::counting(Limits::default()).await;
    let inputs = Inputs::at(house.address).await;
    let wrong = inputs.refused(|| runs.swap(0, SeqCst) > 0).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The session is unaffected.
    let (status, answer, _) = ask(house.address, &inputs.legacy(&[])).await;
    assert_eq!((status, runs.load(SeqCst)), (200, 1), "{answer}");
}

#[tokio::test]
async fn what_is_written_another_way_but_right_is_served() {
    let (house, runs) = House::counting(Limits::default()).await;
    let inputs = Inputs::at(house.address).await;
    let own: &[&[Twist]] = &[
        &[Set("Mcp-Name", "=?base64?c3Vt?=")],
        &[Set("Mcp-Name", "  sum\t")],
        &[Set("MCP-Protocol-Version", " 2026-07-28 ")],
        // This revision ignores sessions.
        &[Add("Mcp-Session-Id", "0")],
        &[Add("Last-Event-ID", "0")],
    ];
    let own_old: &[&[Twist]] = &[
        &[Set("MCP-Protocol-Version", "2025-06-18")],
        &[Drop("MCP-Protocol-Version")],
        &[Set("Mcp-Session-Id", " $SESSION ")],
    ];
    let newest = [HARMLESS, own].concat().into_iter().map(|twists| (inputs.modern(twists), twists));
    let session =
        [HARMLESS, own_old].concat().into_iter().map(|twists| (inputs.legacy(twists), twists));
    for (request, twists) in newest.chain(session) {
        let (status, answer, _) = ask(house.address, &request).await;
        assert_eq!((status, runs.swap(0, SeqCst)), (200, 1), "{twists:?}: {answer}");
        assert_eq!(answer["id"], 1);
    }
}

#[tokio::test]
async fn an_id_that_could_not_be_read_is_left_out() {
    let (house, _) = House::counting(Limits::default()).await;
    let inputs = Inputs::at(house.address).await;
    for (twists, id) in [
        (&[Body("{")][..], None),
        (&[Swap(r#""id":1"#, r#""id":null"#)], None),
        (&[Swap(r#""id":1"#, r#""id":1.5"#)], None),
        (&[Swap(r#""id":1"#, r#""id":1,"id":1"#)], None),
        (&[Body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)], None),
        (&[Drop("Mcp-Method")], Some(1)),
        (&[Drop("Mcp-Name")], Some(1)),
        (&[Drop("MCP-Protocol-Version")], Some(1)),
        (&[Swap(CAPABILITIES, r#""x":1"#)], Some(1)),
        (&[Swap("tools/call", "no/such"), Set("Mcp-Method", "no/such")], Some(1)),
    ] {
        let (_, answer, _) = ask(house.address, &inputs.modern(twists)).await;
        assert_eq!(answer.get("id").and_then(Value::as_i64), id, "{twists:?}: {answer}");
        assert_eq!(answer.get("id").is_some(), id.is_some(), "{twists:?}: {answer}");
    }
}

#[tokio::test]
async fn a_connection_is_never_handed_over_to_another_protocol() {
    let (house, runs) = House::counting(Limits::default()).await;
    for path in ["/mcp", "/sse", "/"] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Accept: text/html\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            house.address
        );
        let (status, _, _) = ask(house.address, request.as_bytes()).await;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn one_request_cannot_hide_in_another() {
    let (house, runs) = House::counting(Limits::default()).await;
    let newest = Guest::new(house.address, Revision::V2026_07_28);
    let message: Value = serde_json::from_str(MODERN).unwrap();
    let hidden = String::from_utf8(newest.text(&message)).unwrap();
    // Two lengths: a parser that believes the other one sees a second request.
    for extra in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let request = format!(
            "POST /nowhere HTTP/1.1\r\nHost: {}\r\n{extra}\r\n0\r\n\r\n{hidden}",
            house.address
        );
        let mut line = Line::to(house.address).await;
        line.send(request).await;
        let head = line.head().await;
        assert!((400..500).contains(&head.status), "{head:?}");
        // Whether the rest is parsed as a request or dropped, it is never part of a body.
        let rest = line.body().await;
        assert!(!String::from_utf8_lossy(&rest).contains("tools/call"));
    }
    runs.store(0, SeqCst);
    let request = format!(
        "POST /nowhere HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nContent-Length: 0\r\n\r\n{hidden}",
        house.address,
        hidden.len()
    );
    let mut line = Line::to(house.address).await;
    line.send(request).await;
    assert_eq!(line.head().await.status, 400);
    line.hung_up().await;
    assert_eq!(runs.load(SeqCst), 0);
}
