//! No token reaches a log, whether a request is refused or admitted. In a test binary of its own,
//! because it subscribes to everything that its process logs.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use http::Request;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use trunkline::server::protect::{Gate, Introspection, Jwks, JwtIssuer, Protect};
use trunkline::{Principal, Server, tool};
use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
use trunkline_auth::jose::SigningKey;

/// Records every event, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

/// An authorization server that cannot be reached.
struct Unreachable;

impl Fetch for Unreachable {
    fn fetch(&self, _: Ask) -> Pending<'_, Result<Answer, FetchError>> {
        Box::pin(async { Err(FetchError::Failed("Nobody is there.".to_owned())) })
    }

    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

const URL: &str = "http://localhost/mcp";
const ISSUER: &str = "https://id.example";
const KEY: &str = "robot-key-that-is-marked";

#[tokio::test]
async fn no_token_reaches_a_log_or_an_answer() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let key = SigningKey::generate();
    let keys = Jwks::new([key.public().clone()]);
    let ask = Introspection::new("https://id.example/introspect", "mcp", "secret-that-is-marked");
    let protect = Protect::new(URL)
        .jwt(JwtIssuer::new(ISSUER).jwks(keys))
        .introspection(ask)
        .api_key("robot", KEY, ["mcp"])
        .scopes_required(["mcp"]);
    let gate = Gate::new(protect, Arc::new(Unreachable)).unwrap();
    let whoami = tool("whoami", async |who: Principal| who.subject).scopes(["names"]);
    let server = Server::builder("files", "1").tool(whoami).build();
    let service = server.http().gate(gate).service();

    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let sign = |exp: u64, scope: &str| {
        let claims =
            json!({ "iss": ISSUER, "aud": URL, "sub": "alice", "scope": scope, "exp": exp });
        key.sign(json!({}), &claims)
    };
    let good = sign(now + 600, "mcp names");
    let tokens = [
        (good.clone(), 200),
        (sign(now + 600, "mcp"), 403),
        (sign(now + 600, "other"), 403),
        (sign(now - 600, "mcp names"), 401),
        (format!("{good}x"), 401),
        (KEY.to_owned(), 403),
        ("opaque-and-marked".to_owned(), 503),
        (format!("{good}, Bearer {good}"), 401),
    ];
    let mut said = String::new();
    for (token, status) in &tokens {
        let body = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "whoami",
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": { "name": "log", "version": "1" },
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        });
        for query in ["", "?access_token=in-the-query-and-marked"] {
            let request = Request::post(format!("{URL}{query}"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "whoami")
                .header("authorization", format!("Bearer {token}"))
                .body(body.to_string())
                .unwrap();
            let answer = service.answer(request).await;
            let expected = if query.is_empty() { *status } else { 401 };
            assert_eq!(answer.status(), expected, "{:?}", answer.headers());
            writeln!(said, "{:?}", answer.headers()).unwrap();
            writeln!(said, "{}", whole(answer.into_body()).await).unwrap();
        }
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("a request was not let in"), "it listens: {logged}");
    assert!(logged.contains("a request could not be checked"), "it listens: {logged}");
    assert!(logged.contains("Nobody is there."), "who runs the server is told why: {logged}");
    assert!(!said.contains("Nobody is there."), "and nobody else is: {said}");
    assert!(said.contains("alice"), "somebody was let in: {said}");
    for text in [&logged, &said] {
        for (token, _) in &tokens {
            for part in token.split(['.', ',', ' ']).filter(|it| it.len() > 8) {
                assert!(!text.contains(part), "`{part}` of a token is in {text}");
            }
        }
        assert!(!text.contains("marked"), "a secret is in {text}");
    }
}

/// The whole text of a body.
async fn whole(body: trunkline::server::HttpBody) -> String {
    use http_body::Body;
    let mut body = std::pin::pin!(body);
    let mut text = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.expect("nothing is cut off");
        text.extend_from_slice(frame.data_ref().map(|it| &it[..]).unwrap_or_default());
    }
    String::from_utf8(text).unwrap()
}
