//! Tokens that an authorization server is asked about: what is told while it cannot be reached, and
//! how many may wait for it.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;
use tokio::sync::Notify;
use trunkline::server::bind;
use trunkline::server::protect::{Gate, Introspection, Protect};
use trunkline::{Limits, Server, tool};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};

use super::desk::{RESOURCE, now, send};
use super::entrances::entrances;
use crate::server::soon;

/// An authorization server that answers when it is told to.
#[derive(Default)]
struct Slow {
    asked: Notify,
    go: Notify,
}

impl Fetch for Slow {
    fn fetch(&self, _: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        Box::pin(async {
            self.asked.notify_one();
            self.go.notified().await;
            let body = json!({ "active": true, "sub": "alice", "aud": RESOURCE, "exp": 9_000_000_000_u64 });
            Ok(Answer::new(200, body.to_string()))
        })
    }

    fn now(&self) -> SystemTime {
        now()
    }
}

/// One that cannot be reached.
struct Gone;

impl Fetch for Gone {
    fn fetch(&self, _: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        Box::pin(async { Err(FetchError::Failed("Nobody is there.".to_owned())) })
    }

    fn now(&self) -> SystemTime {
        now()
    }
}

async fn serve(fetch: Arc<dyn Fetch>, calls: usize) -> SocketAddr {
    let ask = Introspection::new("https://id.example/introspect", "mcp", "secret");
    let protect = Protect::new(RESOURCE).introspection(ask);
    let mut limits = Limits::default();
    limits.calls = calls;
    let server = Server::builder("files", "1").tool(tool("look", async || "Fine."));
    let server = server.limits(limits).build();
    let listener = bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Gate::new(protect, fetch).unwrap();
    tokio::spawn(server.http().gate(gate).serve(listener, pending()));
    address
}

#[tokio::test]
async fn who_cannot_be_checked_is_not_let_in_and_told_to_come_back() {
    let address = serve(Arc::new(Gone), 100).await;
    for entrance in entrances(address) {
        let opaque = ("Authorization", "Bearer opaque".to_owned());
        let answer = entrance.enter(address, "", &[opaque]).await;
        assert_eq!(answer.verdict(), (503, None), "{}", entrance.name);
        assert_eq!(answer.head.get("retry-after"), Some("30"));
        let message = "The token cannot be checked at the moment; try again later.";
        let error = json!({ "code": -32600, "message": message });
        assert_eq!(answer.body(), json!({ "jsonrpc": "2.0", "error": error }));
    }
}

#[tokio::test]
async fn strangers_with_tokens_to_ask_about_are_bounded() {
    let slow = Arc::new(Slow::default());
    let address = serve(Arc::clone(&slow) as Arc<dyn Fetch>, 1).await;
    let visit = async |token: &str| {
        let headers = [("Authorization".to_owned(), format!("Bearer {token}"))];
        let (mut line, head) = send(address, "DELETE /mcp", &headers, "").await;
        (head.status, head.get("retry-after").map(str::to_owned), line.body().await)
    };
    let first = visit("one");
    let second = async {
        soon(slow.asked.notified()).await;
        let told = visit("two").await;
        slow.go.notify_one();
        told
    };
    let (first, (status, retry, body)) = soon(async { tokio::join!(first, second) }).await;
    assert_eq!((status, retry.as_deref()), (429, Some("1")));
    let message = "Too many calls are open; try later.";
    let error = json!({ "code": -32603, "message": message, "data": { "reason": "overloaded" } });
    let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(told, json!({ "jsonrpc": "2.0", "error": error }));
    assert_eq!(first.0, 400, "it was let in, and names no session");
}
