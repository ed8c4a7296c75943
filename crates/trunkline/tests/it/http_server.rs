//! A server over a real socket: sessions, batches, and the kinds of answers.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline::{Context, Limits, Revision, Server, tool};
use trunkline_testkit::http::{Guest, Line, request};

use crate::http::{House, counting, steps};
use crate::server::{builder, soon};

pub(crate) const NEWEST: Revision = Revision::V2026_07_28;
pub(crate) const LEGACY: [Revision; 3] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
pub(crate) const STREAMABLE: [Revision; 4] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, NEWEST];

pub(crate) async fn hi() -> &'static str {
    "hi"
}

pub(crate) fn small() -> Server {
    builder().tool(tool("hi", hi)).build()
}

#[tokio::test]
async fn every_revision_is_served_at_one_url() {
    let house = House::of(&small()).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.session.is_some(), revision != NEWEST, "{revision}");
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
        let unknown = guest.call("no/such", json!({})).await;
        // To the client of a session 404 would mean that its session is gone.
        let status = if revision == NEWEST { 404 } else { 200 };
        assert_eq!(unknown.head.status, status, "{revision}");
        assert_eq!(unknown.message["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn an_answer_alone_is_json_and_one_with_news_is_a_stream() {
    let chatty = async |cx: Context| {
        steps(&cx, 1, 4).await;
        "done"
    };
    let server = builder().tool(tool("hi", hi)).tool(tool("chatty", chatty)).build();
    for always in [false, true] {
        let http = if always { server.http().always_stream() } else { server.http() };
        let house = House::with(http).await;
        for revision in STREAMABLE {
            let mut guest = Guest::open(house.address, revision).await;
            let plain = guest.call("tools/call", json!({ "name": "hi" })).await;
            assert_eq!(plain.head.is_events(), always, "{revision}");
            assert_eq!(plain.before, Vec::<Value>::new());
            let params = json!({ "name": "chatty", "_meta": { "progressToken": 1 } });
            let chatty = guest.call("tools/call", params).await;
            assert!(chatty.head.is_events(), "{revision}");
            let news = chatty.before.iter().map(|it| it["params"]["progress"].as_f64().unwrap());
            assert_eq!(news.collect::<Vec<_>>(), [1.0, 2.0, 3.0], "{revision}");
            assert_eq!(chatty.head.get("cache-control"), Some("no-cache"));
            assert_eq!(chatty.head.get("x-accel-buffering"), Some("no"));
            // Progress that was not asked for is not sent.
            let silent = guest.call("tools/call", json!({ "name": "chatty" })).await;
            assert_eq!(silent.head.is_events(), always, "{revision}");
            // A refusal has a status, and so is not a stream.
            let refused = guest.call("no/such", json!({})).await;
            assert_eq!(refused.head.is_events(), always && revision != NEWEST, "{revision}");
        }
    }
}

#[tokio::test]
async fn a_session_lives_until_it_is_deleted() {
    let house = House::of(&small()).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let mut other = Guest::open(house.address, revision).await;
        let id = guest.session.clone().unwrap();
        assert!(id.bytes().all(|it| (0x21..0x7f).contains(&it)), "{id}");
        assert_ne!(guest.session, other.session);
        assert_eq!(guest.delete().await.status, 204);
        let call = guest.prepare("tools/call", json!({ "name": "hi" }));
        for _ in 0..2 {
            let (mut line, head) = guest.post(&call).await;
            assert_eq!(head.status, 404, "{revision}");
            assert_eq!(line.json().await["id"], call["id"]);
            assert_eq!(guest.get(None).await.1.status, 404);
            assert_eq!(guest.delete().await.status, 404);
        }
        assert_eq!(other.tool("hi", json!({})).await, "hi");
        // Without an id there is no session, and no other is taken instead.
        let nobody = Guest { session: None, ..other.clone() };
        assert_eq!(nobody.post(&call).await.1.status, 400);
        assert_eq!(nobody.get(None).await.1.status, 400);
        assert_eq!(nobody.delete().await.status, 400);
    }
}

#[tokio::test]
async fn a_session_that_does_nothing_is_gone_after_its_time() {
    let idle = Duration::from_millis(150);
    let limits = Limits::default().session_idle(idle).session_sweep(Duration::from_millis(10));
    let server = builder().limits(limits).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    let started = Instant::now();
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let reading = Guest::open(house.address, Revision::V2025_11_25).await;
    let (mut stream, _) = reading.get(None).await;
    stream.event().await.expect("a stream begins with an id");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let gone = async {
        // A GET with an unknown id leaves no trace and does not count as use.
        loop {
            let (_, head) = Guest { session: guest.session.clone(), ..guest.clone() }
                .get(Some("no-such-id"))
                .await;
            match head.status {
                404 => return,
                status => assert_eq!(status, 204),
            }
        }
    };
    soon(gone).await;
    assert!(started.elapsed() >= idle);
    // A client that reads a stream is alive, however silent.
    assert_eq!(reading.post(&ping).await.1.status, 200);
}

#[tokio::test]
async fn one_session_too_many_is_told_to_try_later() {
    let limits = Limits::default().sessions(3);
    let server = builder().limits(limits).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    let mut guests = Vec::new();
    for revision in LEGACY {
        guests.push(Guest::open(house.address, revision).await);
    }
    let mut late = Guest::new(house.address, Revision::V2025_11_25);
    let hello = late.hello();
    for _ in 0..3 {
        let refused = late.call("initialize", hello.clone()).await;
        assert_eq!(refused.head.status, 503);
        let after: u64 = refused.head.get("retry-after").unwrap().parse().unwrap();
        assert!(after > 0);
        assert_eq!(refused.head.get("mcp-session-id"), None);
    }
    // The old transport shares the same limit.
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "GET /sse", &[("Accept", "text/event-stream")], "")).await;
    assert_eq!(line.head().await.status, 503);
    for guest in &mut guests {
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
    }
    // Clients without a session are unaffected.
    let mut newest = Guest::open(house.address, NEWEST).await;
    assert_eq!(newest.tool("hi", json!({})).await, "hi");
    assert_eq!(guests[0].delete().await.status, 204);
    late.shake_hands().await;
    assert_eq!(late.tool("hi", json!({})).await, "hi");
}

#[tokio::test]
async fn an_initialize_that_fails_leaves_no_session() {
    let limits = Limits::default().sessions(1);
    let server = builder().limits(limits).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    let mut guest = Guest::new(house.address, Revision::V2025_11_25);
    for _ in 0..3 {
        let failed = guest.call("initialize", json!({ "protocolVersion": 7 })).await;
        assert_eq!(failed.message["error"]["code"], -32602);
        assert_eq!(failed.head.get("mcp-session-id"), None);
    }
    guest.shake_hands().await;
}

#[tokio::test]
async fn a_batch_is_answered_at_once_where_there_are_batches() {
    let (house, runs) = House::counting(Limits::default()).await;
    let mut guest = Guest::open(house.address, Revision::V2025_03_26).await;
    let (a, b) = (
        guest.prepare("tools/call", json!({ "name": "sum" })),
        guest.prepare("no/such", json!({})),
    );
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    let (mut line, head) = guest.post(&json!([a, news, b])).await;
    assert_eq!(head.status, 200);
    let answers = line.json().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    let of = |id: &Value| answers.as_array().unwrap().iter().find(|it| it["id"] == *id).unwrap();
    assert_eq!(of(&a["id"])["result"]["content"][0]["text"], "3");
    assert_eq!(of(&b["id"])["error"]["code"], -32601);
    assert_eq!(guest.post(&json!([news])).await.1.status, 202);
    assert_eq!(guest.post(&json!([])).await.1.status, 400);
    assert_eq!(runs.swap(0, SeqCst), 1);
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let guest = Guest::open(house.address, revision).await;
        for batch in [json!([a]), json!([])] {
            let (mut line, head) = guest.post(&batch).await;
            assert_eq!(head.status, 400, "{revision}");
            assert_eq!(line.json().await["error"]["code"], -32600);
        }
    }
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn without_sessions_any_request_stands_alone() {
    let (server, runs) = counting(Limits::default());
    let house = House::with(server.http().stateless()).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.session, None);
        assert_eq!(guest.tool("sum", json!({})).await, "3", "{revision}");
        // An id of another server does no harm.
        guest.session = Some("from-another-replica".to_owned());
        assert_eq!(guest.tool("sum", json!({})).await, "3", "{revision}");
        assert_eq!(guest.get(None).await.1.status, 405);
        assert_eq!(guest.delete().await.status, 405);
    }
    assert_eq!(runs.load(SeqCst), 8);
}

#[tokio::test]
async fn the_dialect_is_served_at_the_same_url() {
    let (house, runs) = House::counting(Limits::default()).await;
    let headers = [("Content-Type", "application/json")];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"mcp/listTools","params":{}}"#;
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "POST /mcp", &headers, body)).await;
    assert_eq!(line.head().await.status, 200);
    let answer = line.json().await;
    assert!(answer["result"].to_string().contains("\"sum\""), "{answer}");
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn a_server_of_one_era_sends_the_other_away() {
    let speaking = |revisions: &[Revision]| {
        let mut builder = builder().tool(tool("hi", hi));
        builder = builder.protocols(revisions.iter().copied().collect());
        builder.build()
    };
    let house = House::of(&speaking(&[NEWEST])).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    assert_eq!(guest.tool("hi", json!({})).await, "hi");
    for revision in LEGACY {
        let mut old = Guest::new(house.address, revision);
        let hello = old.prepare("initialize", old.hello());
        // Not validated by the schema: a code that the client's revision does not know fits best.
        let (mut line, head) = old.post(&hello).await;
        assert_eq!(head.status, 400, "{revision}");
        let error = &line.json().await["error"];
        assert_eq!(
            (&error["code"], &error["data"]["supported"]),
            (&json!(-32022), &json!([NEWEST.as_str()]))
        );
        assert_eq!(old.get(None).await.1.status, 405);
        assert_eq!(old.delete().await.status, 405);
    }
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "GET /sse", &[("Accept", "text/event-stream")], "")).await;
    assert_eq!(line.head().await.status, 404);
    let house = House::of(&speaking(&LEGACY)).await;
    let mut newest = Guest::new(house.address, NEWEST);
    assert_eq!(newest.call("server/discover", json!({})).await.head.status, 400);
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
    }
}

#[tokio::test]
async fn a_page_that_was_let_in_may_ask_and_read() {
    let http = small().http().allow_origin("https://app.example.com");
    let house = House::with(http).await;
    let from = |origin: &str, line: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("Origin", origin)];
        headers.extend(more);
        request(house.address, line, &headers, "")
    };
    let preflight = [
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "mcp-method"),
    ];
    let mut line = Line::to(house.address).await;
    line.send(from("https://app.example.com", "OPTIONS /mcp", &preflight)).await;
    let head = line.head().await;
    assert_eq!(head.status, 204);
    assert_eq!(head.get("access-control-allow-origin"), Some("https://app.example.com"));
    assert_eq!(head.get("access-control-allow-headers"), Some("mcp-method"));
    assert!(head.get("access-control-allow-credentials").is_none());
    for origin in ["https://evil.example", "null", "https://app.example.com.evil.example"] {
        let mut line = Line::to(house.address).await;
        line.send(from(origin, "OPTIONS /mcp", &preflight)).await;
        let head = line.head().await;
        assert_eq!(head.status, 403, "{origin}");
        assert!(!head.headers.iter().any(|(name, _)| name.starts_with("access-control-")));
    }
    let mut guest = Guest::new(house.address, NEWEST);
    let asked = guest.prepare("tools/call", json!({ "name": "hi" }));
    let mut headers = guest.headers(&asked);
    headers.push(("Origin".to_owned(), "https://app.example.com".to_owned()));
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "POST /mcp", &headers, &asked.to_string())).await;
    let head = line.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.get("access-control-allow-origin"), Some("https://app.example.com"));
    assert!(
        head.get("access-control-expose-headers").is_some_and(|it| it.contains("Mcp-Session-Id"))
    );
}

#[tokio::test]
async fn an_array_in_which_nobody_asks_is_taken_where_there_are_arrays() {
    let (house, _) = House::counting(Limits::default()).await;
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let broken = json!({ "jsonrpc": "1.0", "method": "x" });
    for (revision, status) in [(Revision::V2025_03_26, 202), (Revision::V2025_06_18, 400)] {
        let guest = Guest::open(house.address, revision).await;
        for items in [json!([news]), json!([broken]), json!([news, broken])] {
            let (_, head) = guest.post(&items).await;
            assert_eq!(head.status, status, "{revision}: {items}");
        }
    }
}

#[tokio::test]
async fn without_sessions_there_is_no_old_pair_either() {
    let (server, _) = counting(Limits::default());
    let house = House::with(server.http().stateless()).await;
    let mut line = Line::to(house.address).await;
    line.send(format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", house.address)).await;
    assert_eq!(line.head().await.status, 404);
}
