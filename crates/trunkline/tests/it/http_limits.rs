//! The limits of a request over HTTP: sizes, times and counts, each with its status.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline::{Context, Limits, Revision, tool};
use trunkline_testkit::http::{Guest, Line, request};

use crate::http::{House, speaking};
use crate::server::{ERAS, builder, soon};

const NEWEST: Revision = Revision::V2026_07_28;
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n";

/// The head of a request as far as its length.
fn head_of(guest: &Guest, asked: &Value) -> String {
    let headers = guest.headers(asked).into_iter();
    let lines: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{lines}", guest.address)
}

/// A guest, and its next call.
async fn asking(house: &House, revision: Revision) -> (Guest, Value) {
    let mut guest = Guest::open(house.address, revision).await;
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    (guest, asked)
}

#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_refused_unread() {
    let (house, runs) = House::counting(Limits::default().body_bytes(1000)).await;
    for revision in ERAS {
        let (guest, asked) = asking(&house, revision).await;
        for length in ["1001", "4294967297", "9223372036854775807"] {
            let mut line = Line::to(house.address).await;
            line.send(format!("{}Content-Length: {length}\r\n\r\n{{", head_of(&guest, &asked)))
                .await;
            let head = line.head().await;
            assert_eq!((head.status, head.get("connection")), (413, Some("close")), "{length}");
            line.json().await;
            line.hung_up().await;
        }
        // Exactly at the limit.
        let mut padded = asked.clone();
        padded["params"]["arguments"] = json!({ "pad": "" });
        let missing = 1000 - padded.to_string().len();
        padded["params"]["arguments"]["pad"] = json!("x".repeat(missing));
        assert_eq!(padded.to_string().len(), 1000);
        assert_eq!(guest.post(&padded).await.1.status, 200);
        assert_eq!(runs.swap(0, SeqCst), 1);
        padded["params"]["arguments"]["pad"] = json!("x".repeat(missing + 1));
        assert_eq!(guest.post(&padded).await.1.status, 413);
        assert_eq!(runs.load(SeqCst), 0);
    }
}

#[tokio::test]
async fn a_body_that_turns_out_too_long_is_refused_as_it_comes() {
    let (house, runs) = House::counting(Limits::default()).await;
    for revision in ERAS {
        let (mut guest, asked) = asking(&house, revision).await;
        for _ in 0..5 {
            let mut line = Line::to(house.address).await;
            line.send(head_of(&guest, &asked) + CHUNKED).await;
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
            for _ in 0..65 {
                line.send(&chunk).await;
            }
            line.send("0\r\n\r\n").await;
            let head = line.head().await;
            assert_eq!((head.status, head.get("connection")), (413, Some("close")));
        }
        assert_eq!(runs.load(SeqCst), 0);
        assert_eq!(guest.tool("sum", json!({})).await, "3");
        runs.store(0, SeqCst);
    }
}

#[tokio::test]
async fn a_body_in_pieces_is_one_body() {
    let (house, runs) = House::counting(Limits::default()).await;
    for revision in ERAS {
        let (guest, asked) = asking(&house, revision).await;
        let mut line = Line::to(house.address).await;
        for byte in (head_of(&guest, &asked) + CHUNKED).bytes() {
            line.send([byte]).await;
        }
        for byte in asked.to_string().bytes() {
            line.send([b"1\r\n", &[byte][..], b"\r\n"].concat()).await;
        }
        line.send("0\r\n\r\n").await;
        let head = line.head().await;
        let answer = guest.answer(&asked, &mut line, head).await;
        assert_eq!(answer.message["result"]["content"][0]["text"], "3");
        assert_eq!(runs.swap(0, SeqCst), 1);
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let (house, runs) = House::counting(Limits::default()).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let plain = guest.headers(&asked);
    let with = |more: Vec<(String, String)>| {
        let headers: Vec<_> = plain.iter().cloned().chain(more).collect();
        request(house.address, "POST /mcp", &headers, &asked.to_string())
    };
    let field = |at: usize| (format!("X-{at}"), "x".to_owned());
    let long = |length: usize| vec![("X-Long".to_owned(), "x".repeat(length))];
    for (more, status) in [
        (long(60_000), 200),
        (long(66_000), 431),
        (long(1_000_000), 431),
        ((0..90).map(field).collect(), 200),
        ((0..101).map(field).collect(), 431),
        ((0..5000).map(field).collect(), 431),
    ] {
        let count = more.len();
        let mut line = Line::to(house.address).await;
        line.send(with(more)).await;
        assert_eq!(line.head().await.status, status, "{count} fields");
        assert_eq!(runs.swap(0, SeqCst), u32::from(status == 200));
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let limits = Limits::default().header_read(Duration::from_millis(100));
    let (house, _) = House::counting(limits).await;
    for half in ["P", "POST /mcp HTTP/1.1\r\n", "POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: "] {
        let started = Instant::now();
        let mut line = Line::to(house.address).await;
        line.send(half).await;
        let head = line.head().await;
        assert_eq!((head.status, head.get("connection")), (408, Some("close")), "{half}");
        line.hung_up().await;
        assert!(started.elapsed() >= Duration::from_millis(100));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
    // A byte now and then is not progress.
    let mut line = Line::to(house.address).await;
    let dripping = async {
        line.send("GET /mcp HTTP/1.1\r\nX: ").await;
        let mut dripped = 0;
        loop {
            tokio::select! {
                head = line.try_head() => return (head.map(|it| it.status), dripped),
                // the sleep is the subject
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
            line.send("x").await;
            dripped += 1;
        }
    };
    let (status, dripped) = soon(dripping).await;
    assert!(matches!(status, Some(408) | None), "{status:?}");
    assert!(dripped < 100, "{dripped}");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let limits = Limits::default().body_read(Duration::from_millis(100));
    let (house, runs) = House::counting(limits).await;
    for revision in ERAS {
        let (guest, asked) = asking(&house, revision).await;
        let text = guest.text(&asked);
        let head = text.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        for cut in [head, head + 1, text.len() - 1] {
            let started = Instant::now();
            let mut line = Line::to(house.address).await;
            line.send(&text[..cut]).await;
            let head = line.head().await;
            assert_eq!((head.status, head.get("connection")), (408, Some("close")), "{cut}");
            line.body().await;
            line.hung_up().await;
            assert!(started.elapsed() >= Duration::from_millis(100));
            assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        }
    }
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn a_connection_that_does_nothing_is_closed() {
    let limits = Limits::default().keep_alive(Duration::from_millis(150));
    let (house, _) = House::counting(limits).await;
    // One connection that never sent anything, and one that got an answer.
    let started = Instant::now();
    let mut line = Line::to(house.address).await;
    assert_eq!(line.hung_up().await, b"");
    assert!(started.elapsed() >= Duration::from_millis(150));
    let mut guest = Guest::open(house.address, NEWEST).await;
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let (mut line, _) = guest.post(&asked).await;
    line.json().await;
    assert_eq!(line.hung_up().await, b"");
    // An open stream is not idle, even if it is silent.
    let (house, gate) = gated(Limits::default().keep_alive(Duration::from_millis(50))).await;
    for revision in ERAS {
        let mut guest = Guest::open(house.address, revision).await;
        let (asked, mut line, head) = speaking(&mut guest, "gated").await;
        let mut idle = Line::to(house.address).await;
        idle.hung_up().await;
        let mut idle = Line::to(house.address).await;
        idle.hung_up().await;
        gate.notify_one();
        let answer = guest.answer(&asked, &mut line, head).await;
        assert_eq!(answer.message["result"]["content"][0]["text"], "open", "{revision}");
    }
}

/// A server whose tool reports progress and then waits.
async fn gated(limits: Limits) -> (House, Arc<tokio::sync::Notify>) {
    let gate = Arc::new(tokio::sync::Notify::new());
    let own = Arc::clone(&gate);
    let gated = move |cx: Context| {
        let gate = Arc::clone(&own);
        async move {
            cx.progress(1.0, 2.0).await;
            gate.notified().await;
            "open"
        }
    };
    let server = builder().limits(limits).tool(tool("gated", gated)).build();
    (House::of(&server).await, gate)
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_alive() {
    let limits = Limits::default().stream_keep_alive(Duration::from_millis(20));
    let (house, gate) = gated(limits).await;
    for revision in ERAS {
        let mut guest = Guest::open(house.address, revision).await;
        let (asked, mut line, _) = speaking(&mut guest, "gated").await;
        // Comments are lines that begin with a colon, which `message` skips.
        let alive = async {
            tokio::select! {
                message = line.message() => panic!("{message:?} came too early"),
                // the sleep is the subject: nothing is sent for this long
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
        };
        alive.await;
        gate.notify_one();
        let (_, answer) = line.message().await.unwrap();
        assert_eq!(answer["id"], asked["id"], "{revision}");
        assert!(line.comments >= 2, "{} comments in {revision}", line.comments);
    }
}

#[tokio::test]
async fn one_call_too_many_is_told_to_try_later() {
    let (house, gate) = gated(Limits::default().calls(2)).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    let open = [speaking(&mut guest, "gated").await.1, speaking(&mut guest, "gated").await.1];
    let started = Instant::now();
    let refused = guest.call("tools/list", json!({})).await;
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(refused.head.status, 429);
    assert_eq!(refused.message["error"]["data"]["reason"], "overloaded", "{refused:?}");
    assert!(refused.head.get("retry-after").is_some());
    for mut line in open {
        gate.notify_one();
        line.message().await.unwrap();
        assert_eq!(line.message().await.map(|it| it.1), None);
    }
    guest.expect("tools/list", json!({})).await;
}

#[tokio::test]
async fn a_session_has_only_so_many_calls_open() {
    let (house, gate) = gated(Limits::default().in_flight(2)).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let open = [speaking(&mut guest, "gated").await.1, speaking(&mut guest, "gated").await.1];
    let refused = guest.call("tools/call", json!({ "name": "gated" })).await;
    assert_eq!(refused.head.status, 429);
    assert_eq!(refused.message["error"]["data"]["reason"], "overloaded", "{refused:?}");
    // Another session is unaffected.
    let mut other = Guest::open(house.address, Revision::V2025_11_25).await;
    other.expect("tools/list", json!({})).await;
    for mut line in open {
        gate.notify_one();
        line.message().await.unwrap();
    }
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_their_turn() {
    let (house, _) = House::counting(Limits::default().connections(2)).await;
    let first = Line::to(house.address).await;
    let second = Line::to(house.address).await;
    let mut guest = Guest::new(house.address, NEWEST);
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let mut third = Line::to(house.address).await;
    third.send(guest.text(&asked)).await;
    drop(first);
    assert_eq!(third.head().await.status, 200);
    drop(second);
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_not_waited_for() {
    let big = tool("big", async || "x".repeat(32 << 20)).about("Says much.");
    let limits = Limits::default().connections(1).keep_alive(Duration::from_millis(150));
    let server = builder().limits(limits).tool(big).build();
    let house = House::of(&server).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    let asked = guest.prepare("tools/call", json!({ "name": "big" }));
    // It has the head of the answer and reads no further. There is room for one connection, so the
    // next is served when this one is closed.
    let (_unread, head) = guest.post(&asked).await;
    assert_eq!(head.status, 200);
    let mut other = Guest::open(house.address, NEWEST).await;
    let asked = other.prepare("tools/list", json!({}));
    let (mut line, head) = other.post(&asked).await;
    assert_eq!(head.status, 200);
    line.json().await;
}
