//! Token introspection: what callers are told while the authorization server cannot be reached, and
//! how many may wait for it.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use trunkline::server::bind;
use trunkline::server::protect::{Gate, Introspection, Protect};
use trunkline::{Limits, Revision, Server, tool};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};

use super::entrances::entrances;
use super::issuer::{Person, RESOURCE, now, send};
use crate::server::soon;

/// An authorization server that answers when the test lets it.
struct Slow {
    asked: Semaphore,
    go: Notify,
}

impl Fetch for Slow {
    fn fetch(&self, _: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        Box::pin(async {
            let go = self.go.notified();
            self.asked.add_permits(1);
            go.await;
            let body = json!({ "active": true, "sub": "alice", "aud": RESOURCE, "exp": 9_000_000_000_u64 });
            Ok(Answer::new(200, body.to_string()))
        })
    }

    fn now(&self) -> SystemTime {
        now()
    }
}

/// An authorization server that cannot be reached.
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
    let protect = Protect::new(RESOURCE).introspection(ask).api_key("robot", KEY, ["mcp"]);
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
async fn strangers_with_tokens_to_ask_about_are_bounded_and_take_no_place_of_a_call() {
    let slow = Arc::new(Slow { asked: Semaphore::new(0), go: Notify::new() });
    let address = serve(Arc::clone(&slow) as Arc<dyn Fetch>, 1).await;
    let visit = move |token: String| async move {
        let headers = [("Authorization".to_owned(), format!("Bearer {token}"))];
        let (mut line, head) = send(address, "DELETE /mcp", &headers, "").await;
        (head.status, head.get("retry-after").map(str::to_owned), line.body().await)
    };
    let mut strangers = JoinSet::new();
    for token in 0..64 {
        // Each token twice, which is introspected once.
        strangers.spawn(visit(token.to_string()));
        strangers.spawn(visit(token.to_string()));
    }
    drop(soon(slow.asked.acquire_many(64)).await.unwrap());
    let (status, retry, body) = soon(visit("one-more".to_owned())).await;
    assert_eq!((status, retry.as_deref()), (503, Some("30")));
    let message = "The token cannot be checked at the moment; try again later.";
    let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let error = json!({ "code": -32600, "message": message });
    assert_eq!(told, json!({ "jsonrpc": "2.0", "error": error }));

    // The only slot for a call is free.
    for revision in Revision::ALL {
        let mut robot = soon(Person::open(address, revision, KEY.to_owned())).await;
        let answer = soon(robot.expect("tools/call", json!({ "name": "look" }))).await;
        assert_eq!(answer["content"][0]["text"], "Fine.", "{revision}");
    }
    assert_eq!(slow.asked.available_permits(), 64, "nobody else was asked about");
    slow.go.notify_waiters();
    while let Some(told) = soon(strangers.join_next()).await {
        assert_eq!(told.unwrap().0, 400, "it was let in, and names no session");
    }
    assert_eq!(slow.asked.available_permits(), 64);
}

const KEY: &str = "pQ7-lVhCgW2kXr9bTz4n";

type Polled = Poll<Option<Result<Frame<Bytes>, Infallible>>>;

/// A body that records whether it was read to its end.
struct Watched {
    left: usize,
    is_read: Arc<AtomicBool>,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled {
        match self.left {
            0 => {
                self.is_read.store(true, Ordering::SeqCst);
                Poll::Ready(None)
            }
            left => {
                let piece = left.min(1024);
                self.left -= piece;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; piece])))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

/// Closing a connection while a body is in flight may reset it and lose the answer: so the server
/// reads a short body first, and does not wait for a long one.
#[tokio::test]
async fn a_refusal_waits_for_a_short_body() {
    let protect = Protect::new("http://localhost/mcp").api_key("a", "pQ7-lVhCgW2kXr9bTz4n", ["b"]);
    let http = Server::builder("empty", "1.0.0").build().http().protect(protect).unwrap();
    let service = http.service();
    for (length, expected) in [(0, true), (64 << 10, true), ((64 << 10) + 1, false)] {
        let is_read = Arc::new(AtomicBool::new(false));
        let body = Watched { left: length, is_read: Arc::clone(&is_read) };
        let request = http::Request::post("http://localhost/mcp").body(body).unwrap();
        assert_eq!(service.answer(request).await.status(), 401);
        assert_eq!(is_read.load(Ordering::SeqCst), expected, "{length}");
    }
}
