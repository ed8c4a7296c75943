//! Sessions and their streams belong to the principal that opened them. For others, however valid
//! their token, they do not exist.

use std::net::SocketAddr;

use serde_json::{Value, json};
use trunkline::{Context, Server, tool};
use trunkline_testkit::http::{Head, Line};

use super::issuer::{Issuer, Person, send};
use crate::http_server::LEGACY;
use crate::server::soon;

/// A client of the two paths of 2024-11-05.
pub(super) struct OldLine {
    address: SocketAddr,
    events: Line,
    pub(super) to: String,
    bearer: String,
    last_id: i64,
}

impl OldLine {
    pub(super) async fn open(address: SocketAddr, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        let headers = [("Accept", "text/event-stream"), ("Authorization", &bearer)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (mut events, head) = send(address, "GET /sse", &headers, "").await;
        assert_eq!(head.status, 200);
        let first = events.event().await.unwrap();
        assert_eq!(first.event.as_deref(), Some("endpoint"));
        let mut old = Self { address, events, to: first.data, bearer, last_id: 0 };
        let hello = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": {},
            "clientInfo": { "name": "old", "version": "1" },
        });
        assert_eq!(old.post("initialize", hello).await.0.status, 202);
        assert_eq!(old.next().await["result"]["protocolVersion"], "2024-11-05");
        old
    }

    /// Posts a request to the messages path.
    pub(super) async fn post(&mut self, method: &str, params: Value) -> (Head, Option<Value>) {
        self.last_id += 1;
        let id = self.last_id;
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let to = self.to.clone();
        self.post_to(&to, &asked).await
    }

    async fn post_to(&self, to: &str, asked: &Value) -> (Head, Option<Value>) {
        let headers = [("Content-Type", "application/json"), ("Authorization", &self.bearer)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (mut line, head) =
            send(self.address, &format!("POST {to}"), &headers, &asked.to_string()).await;
        let body = line.body().await;
        (head, serde_json::from_slice(&body).ok())
    }

    /// The next event of the stream.
    pub(super) async fn next(&mut self) -> Value {
        soon(self.events.message()).await.unwrap().1
    }
}

fn server() -> Server {
    let steps = async |cx: Context| {
        for step in 1..=3 {
            cx.progress(f64::from(step), 3.0).await;
        }
        "Done."
    };
    Server::builder("files", "1")
        .tool(tool("look", async || "Fine."))
        .tool(tool("steps", steps))
        .tool(tool("write", async || "Done.").scopes(["files:write"]))
        .build()
}

const NO_SESSION: &str = "There is no such session; open one with `initialize`.";

#[tokio::test]
async fn a_stolen_session_is_not_there_for_another_good_token() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in LEGACY {
        let (mut alice, mut bob) = issuer.two(address, revision).await;
        let own = bob.guest.session.take();
        // The same as for a session that never existed.
        for session in [alice.guest.session.clone(), Some("never-was".to_owned())] {
            bob.guest.session = session;
            let (head, answer) = bob.ask("tools/call", json!({ "name": "look" })).await;
            let error = json!({ "code": -32600, "message": NO_SESSION });
            let id = bob.guest.last_id;
            let expected = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            assert_eq!((head.status, &answer), (404, &expected), "{revision}");
            assert_eq!(head.get("www-authenticate"), None);
            for method in ["GET", "DELETE"] {
                let (mut line, head) = bob.visit(method, None).await;
                assert_eq!(head.status, 404, "{method} in {revision}");
                let expected = json!({ "jsonrpc": "2.0", "error": error });
                assert_eq!(line.json().await, expected, "{method} in {revision}");
            }
        }
        alice.expect("tools/call", json!({ "name": "look" })).await;
        bob.guest.session = own;
        bob.expect("tools/call", json!({ "name": "look" })).await;
    }
}

#[tokio::test]
async fn a_new_token_of_the_same_person_goes_on_with_the_session_and_its_own_scopes() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in LEGACY {
        let mut before = Person::open(address, revision, issuer.token("alice", "mcp")).await;
        let more = issuer.token("alice", "mcp files:write");
        let mut after = Person::open(address, revision, more).await;
        after.guest.session = before.guest.session.clone();
        let write = json!({ "name": "write" });
        assert_eq!(before.ask("tools/call", write.clone()).await.0.status, 403, "{revision}");
        after.guest.last_id = 10;
        after.expect("tools/call", write.clone()).await;
        assert_eq!(before.ask("tools/call", write).await.0.status, 403, "{revision}");
        before.expect("tools/call", json!({ "name": "look" })).await;
    }
}

#[tokio::test]
async fn a_stolen_event_id_brings_nothing_back() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in LEGACY {
        let (mut alice, mut bob) = issuer.two(address, revision).await;
        let params = json!({ "name": "steps", "_meta": { "progressToken": "p" } });
        let asked = alice.guest.prepare("tools/call", params);
        let (mut line, head) = alice.post(&asked).await;
        assert!(head.is_events(), "{revision}");
        let mut ids = Vec::new();
        while let Some(event) = soon(line.event()).await {
            ids.extend(event.id);
        }
        let first = ids.first().expect("events have ids").clone();

        // Neither session contains anything of the other.
        let own = bob.guest.session.clone();
        assert_eq!(bob.visit("GET", Some(&first)).await.1.status, 204, "{revision}");
        bob.guest.session = alice.guest.session.clone();
        let (mut line, head) = bob.visit("GET", Some(&first)).await;
        assert_eq!(head.status, 404, "{revision}");
        assert_eq!(line.json().await["error"]["message"], NO_SESSION);
        bob.guest.session = own;

        let (mut line, head) = alice.visit("GET", Some(&first)).await;
        assert_eq!(head.status, 200, "{revision}");
        assert!(soon(line.message()).await.is_some(), "they are hers");
    }
}

#[tokio::test]
async fn the_session_of_2024_11_05_is_not_there_for_another_good_token() {
    let (issuer, address) = Issuer::of(&server()).await;
    let mut alice = OldLine::open(address, &issuer.token("alice", "mcp")).await;
    let bob = OldLine::open(address, &issuer.token("bob", "mcp")).await;
    let call = json!({
        "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "look" },
    });
    let error = json!({ "code": -32600, "message": NO_SESSION });
    for to in [&*alice.to, "/messages?sessionId=never-was"] {
        let (head, answer) = bob.post_to(to, &call).await;
        assert_eq!(head.status, 404, "{to}");
        assert_eq!(answer, Some(json!({ "jsonrpc": "2.0", "error": error })), "{to}");
    }
    assert_eq!(alice.post("tools/call", json!({ "name": "look" })).await.0.status, 202);
    assert_eq!(alice.next().await["id"], 2, "nothing of bob's came before");
}
