//! A subscription ends with the caller's token, and a call does not.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body::Body;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use trunkline_proto::server::{Config, EnvelopeCache};
use trunkline_proto::{Call, HandlerEvent, Timing};
use trunkline_wire::json::Json;
use trunkline_wire::model::{Implementation, Progress};

use super::*;
use crate::conversation_handle::ConversationHandle;
use crate::handler::{Answer, Handler};
use crate::http::{Endpoint, HttpBody, Settings};
use crate::limits::Limits;

/// Reports progress, then waits for a permit.
struct Waits(Arc<Semaphore>);

impl Handler for Waits {
    fn call(&self, call: Call, handle: &ConversationHandle) -> Answer {
        let (handle, open) = (handle.clone(), Arc::clone(&self.0));
        Answer::later(async move {
            handle.say(call.key, HandlerEvent::Progress(Progress::new(1.0))).await;
            open.acquire().await.expect("nobody closes it").forget();
            Ok(Json::empty_object())
        })
    }
}

struct Fixture {
    endpoint: Arc<Endpoint<Waits>>,
    open: Arc<Semaphore>,
    /// The remaining life of every request's token.
    life: Option<Duration>,
}

impl Fixture {
    fn new(life: Option<Duration>) -> Self {
        let open = Arc::new(Semaphore::new(0));
        let mut core = Config::new(Implementation::new("srv", "1"));
        let tools = core.capabilities.tools.get_or_insert_default();
        tools.list_changed = true;
        let day = Duration::from_secs(24 * 3600);
        core.bounds.call = Timing { idle: day, hard: day };
        let (core, handler) = (Arc::new(core), Arc::new(Waits(Arc::clone(&open))));
        let endpoint = Endpoint::new(core, handler, Settings::new(Limits::default()));
        Self { endpoint, open, life }
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<HttpBody> {
        let mut principal = Principal::new("alice");
        principal.expires = self.life.map(|it| SystemTime::now() + it);
        let mut request = Request::builder().method(method).uri(path).extension(principal);
        let usual = [
            ("host", "localhost"),
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
        ];
        for (name, value) in usual.iter().chain(headers) {
            request = request.header(*name, *value);
        }
        let request = request.body(body.to_owned()).expect("it is well formed");
        self.endpoint.answer(request, &Mutex::<EnvelopeCache>::default()).await
    }

    /// Opens a session and returns its id.
    async fn session(&self) -> String {
        let response = self.ask("POST", "/mcp", &[], &hello("2025-06-18")).await;
        assert_eq!(response.status(), 200);
        response.headers()["mcp-session-id"].to_str().expect("it is text").to_owned()
    }
}

fn hello(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"cli","version":"1"}}}}}}"#
    )
}

async fn piece(response: &mut Response<HttpBody>) -> Option<String> {
    let frame = poll_fn(|cx| Pin::new(response.body_mut()).poll_frame(cx)).await?;
    let data = frame.expect("it cannot fail").into_data().expect("there are no trailers");
    Some(String::from_utf8(data.to_vec()).expect("it is text"))
}

/// Everything until the end of the stream, and how long that took.
async fn rest(response: &mut Response<HttpBody>) -> (String, Duration) {
    let (since, mut all) = (Instant::now(), String::new());
    while let Some(text) = piece(response).await {
        all.push_str(&text);
        assert!(since.elapsed() < 10 * LIFE, "it goes on and on: {all}");
    }
    (all, since.elapsed())
}

/// The life of the token, give or take the time the test took.
fn is_the_life(took: Duration) -> bool {
    let end = LIFE + LEEWAY;
    took <= end && took > end - Duration::from_secs(30)
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_session_ends_with_the_token_and_the_session_does_not() {
    let fixture = Fixture::new(Some(LIFE));
    let session = fixture.session().await;
    let of_it = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-06-18")];
    for _ in 0..2 {
        let mut stream = fixture.ask("GET", "/mcp", &of_it, "").await;
        assert_eq!(stream.status(), 200);
        let (_, took) = rest(&mut stream).await;
        assert!(is_the_life(took), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_outlives_its_token_even_when_resumed() {
    let fixture = Fixture::new(Some(LIFE));
    let session = fixture.session().await;
    let of_it = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-06-18")];
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}"#;
    let mut stream = fixture.ask("POST", "/mcp", &of_it, call).await;
    let first = piece(&mut stream).await.expect("it reports progress");
    let id = first.lines().find_map(|it| it.strip_prefix("id: ")).expect("events have ids");
    drop(stream);
    let resumed = [of_it[0], of_it[1], ("last-event-id", id)];
    let mut stream = fixture.ask("GET", "/mcp", &resumed, "").await;
    let letting = tokio::spawn({
        let open = Arc::clone(&fixture.open);
        async move {
            sleep(LIFE + 2 * LEEWAY).await;
            open.add_permits(1);
        }
    });
    let (text, took) = rest(&mut stream).await;
    assert!(text.contains(r#""id":1,"result":"#), "{text}");
    assert!(took >= LIFE + 2 * LEEWAY, "{took:?}");
    letting.await.expect("it did");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_breaks_off_with_the_token_as_one_that_is_to_be_asked_for_again() {
    let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cli","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let newest = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];
    let fixture = Fixture::new(Some(LIFE));
    let mut stream = fixture.ask("POST", "/mcp", &newest, listen).await;
    let (text, took) = rest(&mut stream).await;
    assert!(is_the_life(took), "{took:?}: {text}");
    assert!(text.contains("notifications/subscriptions/acknowledged"), "{text}");
    assert!(!text.contains("result"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_2024_11_05_ends_once_what_is_in_flight_is_answered() {
    let fixture = Fixture::new(Some(LIFE));
    let mut stream = fixture.ask("GET", "/sse", &[], "").await;
    let first = piece(&mut stream).await.expect("it says where to post");
    let to = first.lines().find_map(|it| it.strip_prefix("data: ")).expect("it names a place");
    assert_eq!(fixture.ask("POST", to, &[], &hello("2024-11-05")).await.status(), 202);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
    assert_eq!(fixture.ask("POST", to, &[], call).await.status(), 202);

    let since = Instant::now();
    let reading = tokio::spawn(async move { rest(&mut stream).await });
    sleep(LIFE + 2 * LEEWAY).await;
    assert!(!reading.is_finished(), "the answer is still to come");
    let late = fixture.ask("POST", to, &[], call).await;
    assert_eq!(late.status(), 404, "nothing new is begun on it");
    fixture.open.add_permits(1);
    let (text, _) = reading.await.expect("it was read");
    assert!(text.contains(r#""id":1,"result":"#), "{text}");
    assert!(since.elapsed() < LIFE + 3 * LEEWAY, "{:?}", since.elapsed());
    assert_eq!(
        fixture.ask("POST", to, &[], call).await.status(),
        404,
        "the stream was the session"
    );

    let mut idle = fixture.ask("GET", "/sse", &[], "").await;
    let (_, took) = rest(&mut idle).await;
    assert!(is_the_life(took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_credential_without_expiry_may_listen_for_days() {
    let fixture = Fixture::new(None);
    let session = fixture.session().await;
    let of_it = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-06-18")];
    let mut stream = fixture.ask("GET", "/mcp", &of_it, "").await;
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(3 * 24 * 3600) {
        assert!(piece(&mut stream).await.is_some(), "it ended after {:?}", since.elapsed());
    }
}

#[test]
fn nothing_is_left_of_a_time_that_is_over_and_not_less() {
    let now = SystemTime::now();
    assert_eq!(remaining(now + LIFE, now), LIFE);
    assert_eq!(remaining(now - LIFE, now), Duration::ZERO);
}

const LIFE: Duration = Duration::from_secs(600);
