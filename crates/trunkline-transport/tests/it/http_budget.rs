//! The budgets for bodies and sessions of all clients together, and of one alone.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;
use trunkline_proto::server::Config;
use trunkline_transport::Limits;
use trunkline_transport::handler::Nobody;
use trunkline_transport::http::{Budgets, Endpoint, Settings, bind, serve};
use trunkline_wire::model::Implementation;

use crate::http_trusting::Trusting;

struct House {
    address: SocketAddr,
    budgets: Budgets,
    _serving: JoinSet<io::Result<()>>,
}

impl House {
    async fn open(limits: Limits) -> Self {
        let budgets = Budgets::new(&limits, true);
        let mut settings = Settings::new(limits.clone());
        settings.budgets = Some(budgets.clone());
        let mut core = Config::new(Implementation::new("travel", "1.0"));
        core.capabilities.resources.get_or_insert_default().subscribe = true;
        let core = Arc::new(core);
        let endpoint = Endpoint::new(core, Arc::new(Nobody), settings);
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(Trusting(endpoint)), limits, pending()));
        Self { address, budgets, _serving: serving }
    }

    /// With room for so many bytes of bodies, and so many of one caller's.
    async fn of_bodies(bytes: usize, share: usize) -> Self {
        Self::open(Limits::default().bodies_bytes(bytes).bodies_share(share)).await
    }

    fn used(&self) -> usize {
        self.budgets.bodies().used()
    }

    /// Waits until this much is held.
    async fn holds(&self, enough: impl Fn(usize) -> bool) {
        let waiting = async {
            while !enough(self.used()) {
                yield_now().await;
            }
        };
        let waited = timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("{} bytes are held", self.used()));
    }

    async fn line(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A line with a body that stalls.
    async fn stalled(&self, name: &str, bytes: usize) -> TcpStream {
        let mut line = self.line().await;
        stall(&mut line, name, bytes).await;
        line
    }
}

fn head(name: &str, length: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-name: {name}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{length}\r\n\r\n"
    )
}

fn length(bytes: usize) -> String {
    format!("content-length: {bytes}")
}

/// Sends a body except for its last byte.
async fn stall(stream: &mut TcpStream, name: &str, bytes: usize) {
    stream.write_all(head(name, &length(bytes)).as_bytes()).await.unwrap();
    // A client that is refused meanwhile must still be able to send.
    timeout(PATIENCE, stream.write_all(&vec![b' '; bytes - 1])).await.unwrap().unwrap();
}

/// The status, the head and the error.
async fn answer(stream: &mut TcpStream) -> (u16, String, Value) {
    let mut text = String::new();
    let mut piece = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            return (status, head.to_ascii_lowercase(), body["error"].clone());
        }
        let n = timeout(PATIENCE, stream.read(&mut piece)).await.expect("an answer").unwrap();
        assert!(n > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..n]).unwrap());
    }
}

fn check(found: &(u16, String, Value), status: u16) {
    let (found, head, error) = found;
    assert_eq!(*found, status, "{head} {error}");
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32603), &json!({"reason": "overloaded"}))
    );
    assert!(head.contains("\r\nretry-after: "), "{head}");
}

#[tokio::test]
async fn bodies_that_stall_take_no_more_than_there_is_for_all() {
    let house = House::of_bodies(16 << 20, 16 << 20).await;
    let mut stalled = Vec::new();
    for at in 1..=20 {
        let mut stream = house.stalled("", 4 << 20).await;
        if at <= 4 {
            house.holds(|it| it >= at * ((4 << 20) - 1)).await;
            stalled.push(stream);
        } else {
            // The announced length does not fit, so nothing of it is kept.
            let refused = answer(&mut stream).await;
            check(&refused, 429);
            assert!(refused.1.contains("\r\nconnection: close"), "{}", refused.1);
        }
        assert!(house.used() <= 16 << 20, "{}", house.used());
    }
    // A body that completes is handled, and makes room for another.
    let mut first = stalled.remove(0);
    first.write_all(b" ").await.unwrap();
    assert_eq!(answer(&mut first).await.0, 400, "a body of blanks is no message");
    house.holds(|it| it <= 12 << 20).await;
    drop(stalled);
    house.holds(|it| it == 0).await;
}

#[tokio::test]
async fn a_body_without_a_length_is_counted_as_it_comes() {
    let house = House::of_bodies(1 << 20, 1 << 20).await;
    let mut stream = house.line().await;
    let request = head("", "transfer-encoding: chunked");
    stream.write_all(request.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..32 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
        assert!(house.used() <= 1 << 20);
    }
    check(&answer(&mut stream).await, 429);
    house.holds(|it| it == 0).await;
}

#[tokio::test]
async fn no_caller_exceeds_its_share_and_the_others_are_let_in() {
    let house = House::of_bodies(1 << 20, 600 << 10).await;
    let (mut alice, mut again, mut bob, mut carol) =
        (house.line().await, house.line().await, house.line().await, house.line().await);
    stall(&mut alice, "alice", 500 << 10).await;
    house.holds(|it| it >= (500 << 10) - 1).await;
    stall(&mut again, "alice", 200 << 10).await;
    check(&answer(&mut again).await, 429);
    stall(&mut bob, "bob", 400 << 10).await;
    house.holds(|it| it >= (900 << 10) - 2).await;
    // Within its share, but the total is used up.
    stall(&mut carol, "carol", 300 << 10).await;
    check(&answer(&mut carol).await, 503);
    for stream in [&mut alice, &mut bob] {
        stream.write_all(b" ").await.unwrap();
        assert_eq!(answer(stream).await.0, 400);
    }
    house.holds(|it| it == 0).await;
}

#[tokio::test]
async fn short_bodies_are_counted_only_while_incomplete() {
    let house = House::of_bodies(64 << 10, 64 << 10).await;
    let mut stalled = Vec::new();
    for at in 1..=16 {
        let stream = house.stalled("", 2).await;
        house.holds(|it| it >= at * (4 << 10)).await;
        stalled.push(stream);
    }
    let mut late = house.stalled("", 2).await;
    check(&answer(&mut late).await, 429);
    // A message that arrives at once delays nobody.
    let mut quick = house.line().await;
    let request = format!("{}{{}}", head("", &length(2)));
    for _ in 0..3 {
        quick.write_all(request.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut quick).await.0, 400, "it is no message");
    }
    drop(stalled);
    house.holds(|it| it == 0).await;
}

#[tokio::test]
async fn no_caller_takes_the_sessions_of_the_others() {
    let house = House::open(Limits::default().sessions(5).sessions_share(3)).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
    }})
    .to_string();
    let open = async |name: &str| {
        let mut stream = house.line().await;
        let request = format!("{}{hello}", head(name, &length(hello.len())));
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(&mut stream).await
    };
    for (name, status) in [
        ("alice", 200),
        ("alice", 200),
        ("alice", 200),
        ("alice", 429),
        ("bob", 200),
        ("bob", 200),
        ("carol", 503),
        ("alice", 429),
    ] {
        let found = open(name).await;
        match status {
            200 => assert_eq!(found.0, 200, "{name}"),
            status => check(&found, status),
        }
    }
    assert_eq!(house.budgets.sessions().used(), 5);
}

/// Posts a message as a principal; returns the status, the head and the error.
async fn post(house: &House, name: &str, more: &str, message: &Value) -> (u16, String, Value) {
    let (mut stream, body) = (house.line().await, message.to_string());
    let request = format!("{}{body}", head(name, &format!("{}{more}", length(body.len()))));
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(&mut stream).await
}

#[tokio::test]
async fn no_caller_subscribes_to_more_bytes_than_a_share() {
    let limits = Limits::default().subscribed_bytes(5000).subscribed_share(3000);
    let house = House::open(limits).await;
    let open = async |name: &str| {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
        }});
        let (status, head, _) = post(&house, name, "", &hello).await;
        assert_eq!(status, 200, "{head}");
        let session = head.lines().find_map(|it| it.strip_prefix("mcp-session-id: "));
        format!(
            "\r\nmcp-session-id: {}\r\nmcp-protocol-version: 2025-11-25",
            session.unwrap().trim()
        )
    };
    let subscribe = async |name: &str, session: &str, uri: &str| {
        let uri = format!("x://{uri}/{}", "a".repeat(1002));
        let params = json!({ "uri": uri });
        let message =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": params });
        post(&house, name, session, &message).await
    };
    let (one, other) = (open("alice").await, open("alice").await);
    for (session, uri) in [(&one, "1"), (&other, "2")] {
        assert_ne!(subscribe("alice", session, uri).await.0, 429);
    }
    let held = house.budgets.subscribed().used();
    assert!((2000..2100).contains(&held), "{held}");
    check(&subscribe("alice", &one, "3").await, 429);
    let bobs = open("bob").await;
    assert_ne!(subscribe("bob", &bobs, "4").await.0, 429);
    assert!(house.budgets.subscribed().used() > held);
    // Streams of the stateless era use the same budget.
    let listen = |bytes: usize| {
        let uri = format!("x://a/{}", "b".repeat(bytes));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "a", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "notifications": { "resourceSubscriptions": [uri] }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": params })
    };
    let new = "\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen";
    check(&post(&house, "alice", new, &listen(2000)).await, 429);
    check(&post(&house, "carol", new, &listen(2500)).await, 503);
    // A session that has ended no longer counts.
    let mut stream = house.line().await;
    let end = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nx-name: alice{one}\r\n\r\n");
    stream.write_all(end.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    let given_back = async {
        while house.budgets.subscribed().used() >= 2100 {
            yield_now().await;
        }
    };
    timeout(PATIENCE, given_back).await.expect("what the session had is given back");
}

const PATIENCE: Duration = Duration::from_secs(30);
