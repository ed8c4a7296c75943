//! Refusals that leave the body unread: the client can read every one, however long the body is.

use std::sync::atomic::Ordering::SeqCst;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline::Limits;
use trunkline::server::protect::Protect;

use crate::http::{House, counting};
use crate::server::soon;

/// A POST to `target` whose body is longer than the limit.
fn post(target: &str, host: &str, headers: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {LONG}\r\n\r\n")
}

/// Sends it all, then reads to the end: neither may fail.
async fn insist(house: &House, request: &str) -> String {
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    for at in 0..LONG / PIECE {
        let sent = soon(stream.write_all(&[b' '; PIECE])).await;
        sent.unwrap_or_else(|error| panic!("{error} after {at} pieces of {request}"));
    }
    let mut answer = String::new();
    let read = soon(stream.read_to_string(&mut answer)).await;
    read.unwrap_or_else(|error| panic!("{error} instead of the answer to {request}"));
    answer
}

#[tokio::test]
async fn a_refusal_is_read_however_long_the_body_is() {
    let (house, runs) = House::counting(Limits::default().body_bytes(1000)).await;
    let here = house.address.to_string();
    let json = "Content-Type: application/json\r\n";
    let both = "Accept: application/json, text/event-stream\r\n";
    for _ in 0..10 {
        for (request, status) in [
            (post("/mcp", "evil.example", json), 403),
            (post("/nowhere", &here, json), 404),
            (post("/sse", &here, json), 405),
            (post("/mcp", &here, "Accept: text/html\r\n"), 406),
            (post("/mcp", &here, &format!("{json}{both}")), 413),
            (post("/mcp", &here, &format!("Content-Type: text/plain\r\n{both}")), 415),
            (post("/messages?sessionId=none", &here, json), 404),
        ] {
            let answer = insist(&house, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}\n{answer}");
            assert!(answer.to_lowercase().contains("connection: close"), "{request}\n{answer}");
        }
    }
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn whoever_has_no_token_reads_that_one_is_needed() {
    let (server, runs) = counting(Limits::default());
    let protect = Protect::new("http://localhost/mcp").api_key("a", "pQ7-lVhCgW2kXr9bTz4n", ["b"]);
    let house = House::with(server.http().protect(protect).unwrap()).await;
    let request = post("/mcp", &house.address.to_string(), "Content-Type: application/json\r\n");
    for _ in 0..20 {
        let answer = insist(&house, &request).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
    }
    assert_eq!(runs.load(SeqCst), 0);
}

const LONG: usize = 3 << 20;
const PIECE: usize = 64 << 10;
