//! Raw HTTP/1.1 to the admin API: nothing is done or shown without the token, and what goes out is
//! HTTP with words of ours.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::broadcast;
use trunkline_gateway::admin::{Complaint, Followed, Operate};
use trunkline_gateway::fuzzing::admin;
use trunkline_gateway::policy::pins::Approval;
use trunkline_proto::server::EnvelopeCache;
use trunkline_transport::http::Answers;

use crate::input::Input;
use crate::raw::{exchange, first_status, has};

thread_local! {
    /// How often something was done or shown.
    static DONE: Cell<usize> = const { Cell::new(0) };
}

/// A byte of settings, one for the chunks, then the bytes of a connection.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (settings, seed) = (input.byte(), input.byte());
    let bytes = input.rest();
    let token = (settings & 1 == 0).then_some(TOKEN);
    DONE.set(0);
    let out = exchange(bytes, seed, || {
        let (news, _) = broadcast::channel(4);
        let admin = Arc::new(admin(Arc::new(MadeUp { news }), token));
        move |request: http::Request<hyper::body::Incoming>| {
            let admin = Arc::clone(&admin);
            let request = request.map(Into::into);
            async move { admin.answer(request, &Mutex::<EnvelopeCache>::default()).await }
        }
    });
    let status = first_status(&out);
    assert_ne!(status, Some(500), "{}", out.escape_ascii());
    if token.is_some() && !has(bytes, TOKEN) {
        assert_eq!(DONE.get(), 0, "something was done for nobody: {}", out.escape_ascii());
        let is_health = has(bytes, "healthz") || has(bytes, "readyz");
        assert!(is_health || status != Some(200), "{}", out.escape_ascii());
    }
    // A path may hold anything, and is told back.
    let told = bytes.windows(TOKEN.len()).filter(|it| *it == TOKEN.as_bytes()).count();
    let is_header = told == 1 && has(bytes, &format!("\nauthorization: Bearer {TOKEN}\r"));
    assert!(!is_header || !has(&out, TOKEN), "the token came back");
}

struct MadeUp {
    news: broadcast::Sender<Arc<Value>>,
}

fn done<T>(what: T) -> T {
    DONE.set(DONE.get() + 1);
    what
}

impl Operate for MadeUp {
    type Line = Value;

    fn status(&self) -> Value {
        done(
            json!({ "servers": [{ "name": "time", "instances": [{ "id": 7 }] }, { "name": "git" }] }),
        )
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn metrics(&self) -> String {
        done("trunkline_up 1\n".to_owned())
    }

    fn calls(&self, limit: usize) -> Value {
        done(json!([limit]))
    }

    fn logs(&self, _: Option<&str>) -> Followed<Value> {
        done((vec![Arc::new(json!({"server": "time", "line": "a"}))], self.news.subscribe()))
    }

    fn is_of(line: &Value, server: &str) -> bool {
        line["server"] == server
    }

    async fn reload(&self) -> Result<Value, Value> {
        done(Err(json!({ "faults": [{ "message": "`x` is unknown." }] })))
    }

    fn retry(&self, server: &str) -> Result<Value, Complaint> {
        done(if server == "time" { Ok(json!({})) } else { Err(Complaint::no_server(server)) })
    }

    fn held(&self, server: &str) -> Result<Value, Complaint> {
        self.retry(server)
    }

    async fn approve(&self, server: &str, which: &[Approval]) -> Result<Value, Complaint> {
        assert!(!which.is_empty(), "it is not clear what is approved");
        self.retry(server)
    }

    async fn stop(&self, server: &str) -> Result<Value, Complaint> {
        self.retry(server)
    }
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const WORDS: &[&str] = &[
    "GET /v1/status HTTP/1.1\r\n",
    "GET /v1/servers/time HTTP/1.1\r\n",
    "POST /v1/servers/time/approve HTTP/1.1\r\n",
    "POST /v1/servers/time/stop HTTP/1.1\r\n",
    "POST /v1/reload HTTP/1.1\r\n",
    "GET /v1/logs?follow=1 HTTP/1.1\r\n",
    "GET /v1/calls?limit=5 HTTP/1.1\r\n",
    "GET /metrics HTTP/1.1\r\n",
    "GET /healthz HTTP/1.1\r\n",
    "HEAD ",
    "host: localhost\r\n",
    "host: evil.example\r\n",
    "origin: http://localhost\r\n",
    "authorization: Bearer 0123456789abcdef0123456789abcdef\r\n",
    "authorization: Basic ",
    "content-length: ",
    "transfer-encoding: chunked\r\n",
    "{\"all\":true}",
    "{\"tools\":[\"now\"]}",
    "\r\n\r\n",
    "0\r\n\r\n",
    "?server=time&limit=1",
];
