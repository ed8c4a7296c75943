//! Requests that are wrong in one way each: every one has its status and code, and none is executed.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;

use serde_json::Value;
use trunkline::{Limits, Revision};
use trunkline_testkit::http::{Guest, Line};

use crate::http::{House, counting};

mod rows;

use rows::Twist::{self, *};
use rows::{CAPABILITIES, HARMLESS, LEGACY, MODERN, STATEFUL, STATELESS};

/// The bytes of a request.
fn twisted(
    house: SocketAddr,
    session: &str,
    headers: &[(String, String)],
    body: &str,
    twists: &[Twist],
) -> Vec<u8> {
    let mut line = "POST /mcp".to_owned();
    let mut headers = headers.to_vec();
    headers.insert(0, ("Host".to_owned(), house.to_string()));
    let mut body = body.as_bytes().to_vec();
    for twist in twists {
        match *twist {
            Asks(it) => line = it.to_owned(),
            Set(name, value) => {
                let at =
                    headers.iter().position(|it| it.0 == name).expect("there is such a header");
                headers[at].1 = value.to_owned();
            }
            Add(name, value) => headers.push((name.to_owned(), value.to_owned())),
            Drop(name) => headers.retain(|it| it.0 != name),
            Body(text) => body = text.as_bytes().to_vec(),
            Bytes(bytes) => body = bytes.to_vec(),
            Swap(from, to) => {
                let text = String::from_utf8(body).unwrap();
                assert!(text.contains(from), "{from} is not in {text}");
                body = text.replacen(from, to, 1).into_bytes();
            }
            Tail(text) => body.extend(text.as_bytes()),
        }
    }
    let mut head = format!("{line} HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !line.starts_with("GET") && !line.starts_with("DELETE") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    } else {
        body.clear();
    }
    head.push_str("Connection: close\r\n\r\n");
    let head = head.replace("$HOST", &house.to_string()).replace("$SESSION", session);
    let mut text = head.into_bytes();
    text.extend(body);
    text
}

/// The status, what the body says, and the headers.
async fn ask(house: SocketAddr, request: &[u8]) -> (u16, Value, Vec<(String, String)>) {
    let mut line = Line::to(house).await;
    line.send(request).await;
    let head = line.head().await;
    let body = if head.is_events() {
        line.message().await.map(|it| it.1).unwrap_or_default()
    } else {
        serde_json::from_slice(&line.body().await).unwrap_or_default()
    };
    (head.status, body, head.headers)
}

#[tokio::test]
async fn what_is_wrong_in_one_way_is_refused_for_it_and_never_executed() {
    let (server, runs) = counting(Limits::default());
    let house = House::of(&server).await;
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let newest = Guest::new(house.address, Revision::V2026_07_28);
    let session = guest.session.clone().unwrap();
    let message: Value = serde_json::from_str(MODERN).unwrap();
    let mut wrong = Vec::new();
    for (headers, body, rows) in
        [(newest.headers(&message), MODERN, STATELESS), (guest.headers(&message), LEGACY, STATEFUL)]
    {
        for (status, code, twists) in rows {
            let request = twisted(house.address, &session, &headers, body, twists);
            let (got, answer, headers) = ask(house.address, &request).await;
            let error = answer["error"]["code"].as_i64();
            let cors = headers.iter().any(|(name, _)| name.starts_with("access-control-"));
            let named = headers.iter().any(|(name, _)| name == "mcp-session-id");
            if got != *status
                || (code.is_some() && error != *code)
                || answer.get("result").is_some()
                || (cors || named)
                || runs.swap(0, SeqCst) > 0
            {
                wrong.push(format!("{twists:?} of {body:.40}: {got}, not {status}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The session has not suffered.
    let (status, answer, _) = ask(
        house.address,
        &twisted(house.address, &session, &guest.headers(&message), LEGACY, &[]),
    )
    .await;
    assert_eq!((status, runs.load(SeqCst)), (200, 1), "{answer}");
}

#[tokio::test]
async fn what_is_written_another_way_but_right_is_served() {
    let (server, runs) = counting(Limits::default());
    let house = House::of(&server).await;
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let newest = Guest::new(house.address, Revision::V2026_07_28);
    let session = guest.session.clone().unwrap();
    let message: Value = serde_json::from_str(MODERN).unwrap();
    let own: &[&[Twist]] = &[
        &[Set("Mcp-Name", "=?base64?c3Vt?=")],
        &[Set("Mcp-Name", "  sum\t")],
        &[Set("MCP-Protocol-Version", " 2026-07-28 ")],
        // A session is nothing to this revision.
        &[Add("Mcp-Session-Id", "0")],
        &[Add("Last-Event-ID", "0")],
    ];
    let own_old: &[&[Twist]] = &[
        &[Set("MCP-Protocol-Version", "2025-06-18")],
        &[Drop("MCP-Protocol-Version")],
        &[Set("Mcp-Session-Id", " $SESSION ")],
    ];
    for (headers, body, rows) in [
        (newest.headers(&message), MODERN, [HARMLESS, own].concat()),
        (guest.headers(&message), LEGACY, [HARMLESS, own_old].concat()),
    ] {
        for twists in rows {
            let request = twisted(house.address, &session, &headers, body, twists);
            let (status, answer, _) = ask(house.address, &request).await;
            assert_eq!((status, runs.swap(0, SeqCst)), (200, 1), "{twists:?}: {answer}");
            assert_eq!(answer["id"], 1);
        }
    }
}

#[tokio::test]
async fn an_id_that_could_not_be_read_is_left_out() {
    let (server, _) = counting(Limits::default());
    let house = House::of(&server).await;
    let newest = Guest::new(house.address, Revision::V2026_07_28);
    let message: Value = serde_json::from_str(MODERN).unwrap();
    let headers = newest.headers(&message);
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
        let request = twisted(house.address, "", &headers, MODERN, twists);
        let (_, answer, _) = ask(house.address, &request).await;
        assert_eq!(answer.get("id").and_then(Value::as_i64), id, "{twists:?}: {answer}");
        assert_eq!(answer.get("id").is_some(), id.is_some(), "{twists:?}: {answer}");
    }
}

#[tokio::test]
async fn a_connection_is_never_handed_over_to_another_protocol() {
    let (server, runs) = counting(Limits::default());
    let house = House::of(&server).await;
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
    let (server, runs) = counting(Limits::default());
    let house = House::of(&server).await;
    let newest = Guest::new(house.address, Revision::V2026_07_28);
    let message: Value = serde_json::from_str(MODERN).unwrap();
    let hidden = String::from_utf8(newest.text(&message)).unwrap();
    // Two lengths: to whoever believes the other one, the rest is a request.
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
        // Whether the rest is taken for what it is or not at all, it is never part of a body.
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
