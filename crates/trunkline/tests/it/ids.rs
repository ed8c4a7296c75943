//! Ids of every type: a valid one is echoed as it was written, an invalid one runs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use trunkline::{Args, Limits, Revision, tool};
use trunkline_testkit::http::{Guest, Line, request};

use crate::http::{House, counting};
use crate::http_server::STREAMABLE;
use crate::server::{builder, open};

/// An id, and its echo. JSON-RPC allows numbers of any size, and so must an implementation that
/// echoes them: no digit may be lost in a machine type.
const IDS: &[(&str, &str)] = &[
    (r#""a""#, r#""a""#),
    (r#""""#, r#""""#),
    (r#"" ""#, r#"" ""#),
    (r#""1""#, r#""1""#),
    (r#""null""#, r#""null""#),
    (r#""é✓😀""#, r#""é✓😀""#),
    (r#""\"\\\n\u0001""#, r#""\"\\\n\u0001""#),
    // The same string in its shortest spelling.
    (r#""\u0061\/\ud83d\ude00""#, r#""a/😀""#),
    ("0", "0"),
    ("-0", "-0"),
    ("-1", "-1"),
    // The first integer that a double cannot represent, and the limits of the machine's integers.
    ("9007199254740993", "9007199254740993"),
    ("9223372036854775807", "9223372036854775807"),
    ("-9223372036854775808", "-9223372036854775808"),
    ("9223372036854775808", "9223372036854775808"),
    ("18446744073709551615", "18446744073709551615"),
    ("18446744073709551616", "18446744073709551616"),
    ("12345678901234567890", "12345678901234567890"),
    ("99999999999999999999", "99999999999999999999"),
    ("-12345678901234567890", "-12345678901234567890"),
    (
        "123456789012345678901234567890123456789012345678901234567890",
        "123456789012345678901234567890123456789012345678901234567890",
    ),
];

/// Invalid ids. MCP has strings and integers; JSON-RPC §4 advises against fractions, and peers that
/// parse `1.0` as 1 would not recognize the answer.
const NO_IDS: &[&str] = &[
    "1.0",
    "1.5",
    "-0.0",
    "1e2",
    "1E2",
    "1e0",
    "1e-1",
    "1e999",
    "null",
    "true",
    "false",
    "[]",
    "[1]",
    "{}",
    r#"{"id":1}"#,
    r#""\ud800""#,
    r#""\udc00\ud800""#,
];

/// The text of a request with another id.
fn with_id(mut message: Value, id: &str) -> String {
    message["id"] = json!("the id");
    message.to_string().replace(r#""the id""#, id)
}

#[tokio::test]
async fn an_id_comes_back_over_stdio_as_it_was_written() {
    let (server, runs) = counting(Limits::default());
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        for (id, echo) in IDS {
            let call = peer.prepare("tools/call", json!({ "name": "sum" }));
            peer.send_text(&with_id(call, id)).await;
            let answer = peer.next_text().await;
            assert!(answer.starts_with(&result(echo)), "{id} in {revision}: {answer}");
            assert_eq!(runs.swap(0, SeqCst), 1, "{id} in {revision}");
        }
    }
}

#[tokio::test]
async fn what_is_no_id_runs_nothing_over_stdio() {
    let (server, runs) = counting(Limits::default());
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        for id in NO_IDS.iter().copied().chain([&*long()]) {
            let call = peer.prepare("tools/call", json!({ "name": "sum" }));
            peer.send_text(&with_id(call, id)).await;
            let answer = peer.next_text().await;
            assert!(is_refused(&answer), "{id} in {revision}: {answer}");
        }
        // The connection stays usable.
        peer.expect("tools/list", json!({})).await;
        assert_eq!(runs.load(SeqCst), 0, "{revision}");
    }
}

#[tokio::test]
async fn an_id_comes_back_over_http_as_it_was_written() {
    let (server, runs) = counting(Limits::default());
    for always in [false, true] {
        let http = if always { server.http().always_stream() } else { server.http() };
        let house = House::with(http).await;
        for revision in STREAMABLE {
            let mut guest = Guest::open(house.address, revision).await;
            for (id, echo) in IDS {
                let (status, answer) = post(&mut guest, id).await;
                assert_eq!(status, 200, "{id} in {revision}: {answer}");
                assert!(answer.starts_with(&result(echo)), "{id} in {revision}: {answer}");
                assert_eq!(runs.swap(0, SeqCst), 1, "{id} in {revision}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_no_id_runs_nothing_over_http() {
    let (house, runs) = House::counting(Limits::default()).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        for id in NO_IDS.iter().copied().chain([&*long()]) {
            let (status, answer) = post(&mut guest, id).await;
            assert_eq!(status, 400, "{id} in {revision}: {answer}");
            assert!(is_refused(&answer), "{id} in {revision}: {answer}");
        }
        guest.expect("tools/list", json!({})).await;
        assert_eq!(runs.load(SeqCst), 0, "{revision}");
    }
}

#[tokio::test]
async fn ids_are_the_same_over_the_two_paths_of_2024_11_05() {
    let (house, runs) = House::counting(Limits::default()).await;
    let mut guest = Guest::new(house.address, Revision::V2024_11_05);
    let mut events = Line::to(house.address).await;
    events.send(request(house.address, "GET /sse", &[("Accept", "text/event-stream")], "")).await;
    assert_eq!(events.head().await.status, 200);
    let to = format!("POST {}", events.event().await.unwrap().data);
    let post = async |text: &str| {
        let mut line = Line::to(house.address).await;
        line.send(request(house.address, &to, &[("Content-Type", "application/json")], text)).await;
        let status = line.head().await.status;
        (status, String::from_utf8(line.body().await).unwrap())
    };
    let hello = guest.prepare("initialize", guest.hello());
    assert_eq!(post(&hello.to_string()).await.0, 202);
    events.message().await.unwrap();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(post(&initialized.to_string()).await.0, 202);
    for (id, echo) in IDS {
        let call = guest.prepare("tools/call", json!({ "name": "sum" }));
        assert_eq!(post(&with_id(call, id)).await.0, 202, "{id}");
        let answer = events.event().await.unwrap().data;
        assert!(answer.starts_with(&result(echo)), "{id}: {answer}");
        assert_eq!(runs.swap(0, SeqCst), 1, "{id}");
    }
    for id in NO_IDS.iter().copied().chain([&*long()]) {
        let call = guest.prepare("tools/call", json!({ "name": "sum" }));
        // Only `null` is passed on, to the code that knows whether the session allows it; its
        // answer is an ordinary one.
        let answer = match post(&with_id(call, id)).await {
            (202, _) if id == "null" => events.event().await.unwrap().data,
            (status, answer) => {
                assert_eq!(status, 400, "{id}: {answer}");
                answer
            }
        };
        assert!(is_refused(&answer), "{id}: {answer}");
    }
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn half_a_surrogate_pair_is_refused_where_somebody_reads_it() {
    #[derive(Deserialize, JsonSchema)]
    struct Guests {
        who: String,
    }
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let greet = move |Args(guests): Args<Guests>| {
        counted.fetch_add(1, SeqCst);
        async move { guests.who }
    };
    let server = builder().tool(tool("greet", greet)).build();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        // It is valid JSON by its grammar (RFC 8259 §8.2), so the id is known and the error is not
        // a parse error. As a name it is unknown, and as an argument it is not a text.
        for (from, to, code) in [
            (r#""method":"tools/call""#, r#""method":"tools/call\ud800""#, -32600),
            (r#""name":"greet""#, r#""name":"\ud800""#, -32602),
            (r#""name":"greet""#, r#""name":"greet\udc00""#, -32602),
            (r#""who":"you""#, r#""who":"\ud800""#, -32602),
            (r#""who":"you""#, r#""who":"you","\ud800":1"#, -32602),
        ] {
            let params = json!({ "name": "greet", "arguments": { "who": "you" } });
            let call = peer.prepare("tools/call", params);
            let text = call.to_string();
            assert!(text.contains(from), "{text}");
            peer.send_text(&text.replace(from, to)).await;
            let answer: Value = serde_json::from_str(&peer.next_text().await).unwrap();
            // From 2025-11-25 on the model reads about its arguments.
            let is_told = answer["result"]["isError"] == true && to.contains("who");
            let is_error = answer["error"]["code"] == code;
            let expects_telling = to.contains("who") && revision >= Revision::V2025_11_25;
            assert_eq!((is_told, is_error), (expects_telling, !expects_telling), "{to}: {answer}");
            assert_eq!(answer["id"], call["id"], "{to} in {revision}");
        }
        // An unnameable member makes the message unreadable.
        let call = peer.prepare("tools/call", json!({ "name": "greet" }));
        peer.send_text(&call.to_string().replace("jsonrpc", r#"\ud800":1,"jsonrpc"#)).await;
        let answer = peer.next_text().await;
        assert!(is_refused(&answer), "{revision}: {answer}");
        assert_eq!(runs.load(SeqCst), 0, "{revision}");
    }
}

/// Posts a call with this id, and returns the status and the text of the answer.
async fn post(guest: &mut Guest, id: &str) -> (u16, String) {
    let call = guest.prepare("tools/call", json!({ "name": "sum" }));
    let headers = guest.headers(&call);
    let mut line = Line::to(guest.address).await;
    line.send(request(guest.address, "POST /mcp", &headers, &with_id(call, id))).await;
    let head = line.head().await;
    if !head.is_events() {
        return (head.status, String::from_utf8(line.body().await).unwrap());
    }
    loop {
        let event = line.event().await.expect("the answer comes");
        if !event.data.is_empty() {
            return (head.status, event.data);
        }
    }
}

/// The beginning of a result, byte for byte.
fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"#)
}

/// An id that is longer than the limit.
fn long() -> String {
    "1".repeat(2000)
}

/// Whether a request without a readable id was refused: the id is `null` in JSON-RPC, and left out
/// where the schema has no `null`.
fn is_refused(answer: &str) -> bool {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["error"]["code"] == -32600 && answer["id"].is_null() && answer.get("result").is_none()
}
