//! The internal listener, and what replicas hold for each other.

use std::net::SocketAddr;
use std::time::Duration;

use trunkline_testkit::http::{Head, Line, request};
use trunkline_transport::Limits;
use trunkline_transport::http::forward::Forward;
use trunkline_transport::http::replicas::Peer;

use super::fleet::{KEY, Replica, Visitor, fleet, fleet_with_alice, lock};

async fn ask(at: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> (Head, Line) {
    let mut sent = Line::to(at).await;
    sent.send(request(at, line, headers, body)).await;
    (sent.head().await, sent)
}

#[tokio::test]
async fn nothing_of_the_internal_listener_is_for_clients() {
    let (_world, [a], alice) = fleet_with_alice().await;
    let session = [("mcp-session-id", &*alice.session), ("x-name", "alice")];
    for line in ["POST /mcp", "GET /mcp", "DELETE /mcp", "GET /sse", "GET /", "POST /messages"] {
        assert_eq!(ask(a.internal, line, &session, "").await.0.status, 401, "{line}");
    }
    let sealed = [("trunkline-forwarded", "AAAA"), session[0]];
    assert_eq!(ask(a.internal, "DELETE /mcp", &sealed, "").await.0.status, 401);
    assert_eq!(ask(a.internal, "GET /ping", &session, "").await.0.status, 405);
    assert_eq!(ask(a.internal, "POST /ping", &session, "me?").await.0.status, 401);
    assert_eq!(ask(a.public, "POST /ping", &session, "you?").await.0.status, 404);
}

#[tokio::test]
async fn a_forwarded_request_is_accepted_once_and_by_its_replica_only() {
    let (world, [a, b]) = fleet().await;
    // A peer that only records what it is sent.
    let spy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", spy.local_addr().unwrap());
    let alice = Visitor::open(&a, "alice").await;
    lock(&world).set_url("a", &url);
    let recorded = async {
        use tokio::io::AsyncReadExt;
        let (mut stream, _) = spy.accept().await.unwrap();
        let mut text = vec![0; 16 << 10];
        let count = stream.read(&mut text).await.unwrap();
        text.truncate(count);
        String::from_utf8(text).unwrap()
    };
    let (text, sent) = tokio::join!(recorded, alice.call(&b, 1, "echo"));
    assert_eq!(sent.said().await, "outcome_unknown", "it was sent, and nobody answered");
    assert!(text.contains("traceparent: 00-0af7651916cd43dd8448eb211c80319c"), "{text}");
    let send = async |to: &Replica| {
        let mut line = Line::to(to.internal).await;
        line.send(&text).await;
        line.head().await.status
    };
    assert_eq!(send(&b).await, 401, "it is for a");
    assert_eq!(send(&a).await, 200);
    assert_eq!(send(&a).await, 401, "once");
}

#[tokio::test]
async fn a_ping_is_answered_by_whoever_is_told_to() {
    let (_world, [mut a]) = fleet().await;
    let forward = Forward::new(&[KEY], &[], &Limits::default()).unwrap();
    let peer = Peer { id: "a".to_owned(), url: format!("http://{}", a.internal) };
    let soon = Duration::from_secs(5);
    assert_eq!(forward.ping(&peer, b"you?".to_vec(), soon).await, Some(b"here".to_vec()));
    assert_eq!(forward.ping(&peer, b"who?".to_vec(), soon).await, None);
    a.close_listeners().await;
    assert_eq!(forward.ping(&peer, b"you?".to_vec(), soon).await, None);
}

fn held(by: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cli","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","requestState":"{by}","_meta":{meta}}}}}"#
    )
}

#[tokio::test]
async fn a_request_goes_to_the_replica_that_holds_what_it_goes_on_with() {
    let (_world, [a, mut b]) = fleet().await;
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("x-name", "alice"),
    ];
    for (at, by, expected) in
        [(&a, "a", "a for alice"), (&a, "b", "b for alice"), (&b, "a", "a for alice")]
    {
        let sent = at.send("POST /mcp", &headers, &held(by)).await;
        assert_eq!(sent.said().await, expected);
    }
    b.kill();
    let sent = a.send("POST /mcp", &headers, &held("b")).await;
    assert_eq!(sent.said().await, "a for alice", "our handler says what it means");
}
