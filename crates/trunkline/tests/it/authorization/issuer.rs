//! An issuer of tokens, a gate that accepts them, and clients that present them.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use trunkline::server::bind;
use trunkline::server::protect::{Dpop, Gate, Jwks, JwtIssuer, Protect};
use trunkline::{Era, Revision, Server};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use trunkline_auth::jose::SigningKey;
use trunkline_testkit::http::{Guest, Head, Line, request};

use crate::server::soon;

pub(super) const RESOURCE: &str = "https://mcp.example/mcp";
pub(super) const ISSUER: &str = "https://id.example";
pub(super) const NOW: u64 = 1_800_000_000;

/// Part of every challenge.
pub(super) const METADATA: &str =
    r#"resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp""#;

/// A token issuer.
pub(super) struct Issuer {
    pub(super) key: SigningKey,
}

impl Issuer {
    pub(super) fn new() -> Self {
        Self { key: SigningKey::generate().named("k-1") }
    }

    /// The claims of a valid token for this subject.
    pub(super) fn claims(&self, subject: &str, scope: &str) -> Value {
        json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": subject, "client_id": "host", "scope": scope,
            "iat": NOW, "exp": NOW + 600,
        })
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        self.key.sign(json!({ "typ": "at+jwt", "kid": "k-1" }), claims)
    }

    /// A valid token.
    pub(super) fn token(&self, subject: &str, scope: &str) -> String {
        self.sign(&self.claims(subject, scope))
    }

    /// Accepts the tokens of this issuer that have the scope `mcp`.
    pub(super) fn protect(&self) -> Protect {
        let keys = Jwks::new([self.key.public().clone()]);
        Protect::new(RESOURCE)
            .jwt(JwtIssuer::new(ISSUER).jwks(keys))
            .scopes_required(["mcp"])
            .hierarchy([("files", ["files:read", "files:write"])])
    }

    /// A new one, and where a server that accepts its tokens is.
    pub(super) async fn of(server: &Server) -> (Self, SocketAddr) {
        let issuer = Self::new();
        let address = issuer.serve(server).await;
        (issuer, address)
    }

    /// Alice and bob, each with a valid token.
    pub(super) async fn two(&self, address: SocketAddr, revision: Revision) -> (Person, Person) {
        let alice = Person::open(address, revision, self.token("alice", "mcp")).await;
        (alice, Person::open(address, revision, self.token("bob", "mcp")).await)
    }

    pub(super) async fn serve(&self, server: &Server) -> SocketAddr {
        serve(server, self.protect()).await
    }

    /// The same with DPoP-bound tokens.
    pub(super) async fn serve_dpop(&self, server: &Server, nonces: bool) -> SocketAddr {
        serve(server, self.protect().dpop(Dpop::Accept).dpop_nonces(nonces)).await
    }
}

pub(super) async fn serve(server: &Server, protect: Protect) -> SocketAddr {
    let gate = Gate::new(protect, Arc::new(StoppedClock)).unwrap();
    let listener = bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.http().gate(gate).serve(listener, pending()));
    address
}

/// A network with a stopped clock and nothing to fetch.
pub(super) struct StoppedClock;

impl Fetch for StoppedClock {
    fn fetch(&self, ask: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        panic!("nothing needs to be fetched here: {ask:?}")
    }

    fn now(&self) -> SystemTime {
        now()
    }
}

pub(super) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

/// Sends a request as it stands.
pub(super) async fn send(
    address: SocketAddr,
    line: &str,
    headers: &[(String, String)],
    body: &str,
) -> (Line, Head) {
    let mut connection = Line::to(address).await;
    connection.send(request(address, line, headers, body)).await;
    let head = connection.head().await;
    (connection, head)
}

/// A client with a token.
pub(super) struct Person {
    pub(super) guest: Guest,
    token: String,
}

impl Person {
    /// Opens a session, if the revision has sessions.
    pub(super) async fn open(address: SocketAddr, revision: Revision, token: String) -> Self {
        let mut person = Self { guest: Guest::new(address, revision), token };
        if revision.era() == Era::Stateful {
            let hello = person.guest.prepare("initialize", person.guest.hello());
            let (mut line, head) = person.post(&hello).await;
            assert_eq!(head.status, 200, "{:?}", line.json().await);
            person.guest.session = head.get("mcp-session-id").map(str::to_owned);
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert_eq!(person.post(&ready).await.1.status, 202);
        }
        person
    }

    pub(super) fn signed(&self, mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
        headers.push(("Authorization".to_owned(), format!("Bearer {}", self.token)));
        headers
    }

    pub(super) async fn post(&self, message: &Value) -> (Line, Head) {
        let headers = self.signed(self.guest.headers(message));
        send(self.guest.address, "POST /mcp", &headers, &message.to_string()).await
    }

    /// Status, challenge and answer.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> (Head, Value) {
        let asked = self.guest.prepare(method, params);
        let (mut line, head) = self.post(&asked).await;
        let answer = soon(self.guest.answer(&asked, &mut line, head)).await;
        (answer.head, answer.message)
    }

    pub(super) async fn expect(&mut self, method: &str, params: Value) -> Value {
        let (_, mut answer) = self.ask(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    /// A GET or DELETE of the session.
    pub(super) async fn visit(&self, method: &str, last_event: Option<&str>) -> (Line, Head) {
        let revision = self.guest.revision.as_str().to_owned();
        let mut headers = vec![
            ("Accept".to_owned(), "text/event-stream".to_owned()),
            ("MCP-Protocol-Version".to_owned(), revision),
        ];
        let session = self.guest.session.iter().map(|it| ("Mcp-Session-Id".to_owned(), it.clone()));
        headers.extend(session);
        headers.extend(last_event.map(|it| ("Last-Event-ID".to_owned(), it.to_owned())));
        send(self.guest.address, &format!("{method} /mcp"), &self.signed(headers), "").await
    }
}
