//! How the client finds the era of a server over HTTP.

use std::sync::Arc;

use trunkline_proto::CallError;
use trunkline_proto::client::OpenError;
use trunkline_transport::Limits;
use trunkline_transport::http::client::Verdicts;
use trunkline_wire::revision::Revision;

use super::script::{Script, Step, accepted, data, end, events, headed, json, status};
use super::*;

#[tokio::test]
async fn the_new_era_is_spoken_with_its_headers() {
    let script = stateless(|seen, _| match seen.what() {
        "tools/list" => json(seen.result(
            r#"{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}],"ttlMs":0,"cacheScope":"public"}"#,
        )),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection =
        open_at(target(&script).header("X-Key", "k"), Limits::default()).await.unwrap();
    assert_eq!(connection.opened().revision, Revision::V2026_07_28);
    call(&connection, "tools/list", "{}").await.unwrap();
    call(&connection, "tools/call", r#"{"name":"t","arguments":{"r":"ü"}}"#).await.unwrap();
    call(&connection, "resources/read", r#"{"uri":"file:///a%20b"}"#).await.unwrap();
    connection.close().await;

    let seen = script.seen();
    assert_eq!(script.kinds(), ["server/discover", "tools/list", "tools/call", "resources/read"]);
    for it in &seen {
        assert_eq!(it.verb, "POST");
        assert_eq!(it.path, "/mcp");
        assert_eq!(it.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(it.header("mcp-method"), Some(it.what()));
        assert_eq!(it.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(it.header("content-type"), Some("application/json"));
        assert_eq!(it.header("x-key"), Some("k"));
        assert_eq!(it.header("accept-encoding"), None);
        assert_eq!(it.header("mcp-session-id"), None);
        let meta = &it.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    }
    assert_eq!(seen[1].header("mcp-name"), None);
    assert_eq!(seen[2].header("mcp-name"), Some("t"));
    assert_eq!(seen[2].header("mcp-param-region"), Some("=?base64?w7w=?="));
    assert_eq!(seen[3].header("mcp-name"), Some("file:///a%20b"));
    assert!(seen.iter().all(|it| it.connection == 0), "one connection serves one after another");
}

/// The answer to the probe, and the client's next step.
#[track_caller]
fn probe(steps: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Probe {
    Probe(Arc::new(steps))
}

type Reaction = dyn Fn(&Seen) -> Vec<Step> + Send + Sync;

struct Probe(Arc<Reaction>);

impl Probe {
    async fn run(self) -> (Result<Connection, OpenError>, Vec<String>) {
        let script = Script::start(move |seen, _| match seen.what() {
            "server/discover" => (self.0)(seen),
            "initialize" => json(seen.result(&initialized("2025-06-18"))),
            "notifications/initialized" => accepted(),
            _ => headed(405, "", ""),
        })
        .await;
        let opened = open(&script).await;
        (opened, script.kinds())
    }

    async fn falls_back(self) {
        let (opened, kinds) = self.run().await;
        assert_eq!(opened.unwrap().opened().revision, Revision::V2025_06_18);
        assert_eq!(kinds[..2], ["server/discover", "initialize"]);
    }

    async fn fails(self) -> OpenError {
        let (opened, kinds) = self.run().await;
        assert!(!kinds.iter().any(|it| it == "initialize"), "{kinds:?}");
        opened.unwrap_err()
    }
}

#[tokio::test]
async fn an_unrecognised_answer_leads_to_initialize() {
    for code in [400, 404, 405, 406, 415, 422] {
        probe(move |_| headed(code, "", "")).falls_back().await;
        probe(move |_| status(code, "text/html", "<h1>No</h1>")).falls_back().await;
    }
    for error in [
        r#"{"code":-32601,"message":"no"}"#,
        r#"{"code":-32000,"message":"Bad Request: Server not initialized"}"#,
        r#"{"code":-32001,"message":"Session not found"}"#,
        r#"{"code":-32602,"message":"no"}"#,
        r#"{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}"#,
        r#"{"code":-32022,"message":"no"}"#,
    ] {
        for code in [200, 400, 404] {
            probe(move |seen| status(code, "application/json", seen.error(error)))
                .falls_back()
                .await;
        }
        let without_id = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
        probe(move |_| status(400, "application/json", &without_id)).falls_back().await;
    }
    probe(|_| status(200, "text/html", "<h1>Hello</h1>")).falls_back().await;
    probe(|_| accepted()).falls_back().await;
}

#[tokio::test]
async fn a_status_that_says_nothing_about_the_era_is_an_error() {
    for code in [401, 403, 429, 500, 502, 503] {
        let why = probe(move |seen| {
            let body = seen.error(r#"{"code":-32601,"message":"no"}"#);
            headed(
                code,
                "www-authenticate: Bearer x=\"y\"\r\ncontent-type: application/json\r\n",
                body,
            )
        });
        let OpenError::Http(error) = why.fails().await else { panic!("{code}") };
        assert_eq!((error.status, &*error.message), (code, "no"));
        assert_eq!(error.challenge.as_deref(), Some("Bearer x=\"y\""));
    }
    let lost = probe(|_| vec![Step::Close]).fails().await;
    assert!(matches!(lost, OpenError::Unreachable(_)), "{lost:?}");
    let nobody = open_at(HttpTarget::new("http://127.0.0.1:1/").verdicts(None), Limits::default());
    let Err(OpenError::Unreachable(why)) = nobody.await else { panic!("nobody is there") };
    assert!(why.contains("127.0.0.1:1"), "{why}");
}

#[tokio::test]
async fn silence_is_an_outage() {
    let script = Script::start(|_, _| vec![Step::Hang]).await;
    let mut config = Config::clone(&config());
    config.bounds.open = Duration::from_millis(200);
    let nobody = Arc::new(Nobody);
    let opened =
        Connection::open_http(Arc::new(config), nobody, target(&script), Limits::default()).await;
    assert_eq!(opened.unwrap_err(), OpenError::TimedOut);
    assert_eq!(script.kinds(), ["server/discover"]);
}

#[tokio::test]
async fn errors_of_the_new_era_keep_us_in_it() {
    for error in [
        r#"{"code":-32020,"message":"header"}"#,
        r#"{"code":-32021,"message":"able","data":{"requiredCapabilities":{}}}"#,
    ] {
        let refused =
            probe(move |seen| status(400, "application/json", seen.error(error))).fails().await;
        assert!(matches!(refused, OpenError::Refused(_)), "{refused:?}");
    }
    let newer = r#"{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}"#;
    let refused =
        probe(move |seen| status(400, "application/json", seen.error(newer))).fails().await;
    assert!(matches!(refused, OpenError::NoCommonRevision { .. }), "{refused:?}");
}

#[tokio::test]
async fn the_same_revision_is_tried_again_once() {
    const NO: &str = r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#;
    let script = Script::start(|seen, n| match n {
        0 => status(400, "application/json", seen.error(NO)),
        _ => json(seen.result(&discovered())),
    })
    .await;
    assert!(open(&script).await.is_ok());
    let ids: Vec<_> = script.seen().iter().map(|it| it.body["id"].clone()).collect();
    assert_eq!(ids, [1, 2]);

    let script = Script::start(|seen, _| status(400, "application/json", seen.error(NO))).await;
    assert!(matches!(open(&script).await.unwrap_err(), OpenError::Refused(_)));
    assert_eq!(script.kinds().len(), 2);
}

/// A server of 2024-11-05: a stream at the URL itself, messages at the endpoint it names. Answers come
/// on the stream.
async fn sse(endpoint: &'static str) -> Script {
    Script::start(move |seen, _| match (&*seen.verb, &*seen.path) {
        ("GET", _) => {
            let mut steps = events(format!("event: endpoint\ndata: {endpoint}\n\n"));
            // The ids are known: the probe had 1.
            let first =
                format!(r#"{{"jsonrpc":"2.0","id":2,"result":{}}}"#, initialized("2024-11-05"));
            steps.push(Step::Wait(Duration::from_millis(50)));
            steps.push(script::chunk(data(first)));
            steps.push(Step::Wait(Duration::from_millis(200)));
            steps.push(script::chunk(data(r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#)));
            steps.push(Step::Wait(Duration::from_millis(200)));
            steps.push(end());
            steps
        }
        ("POST", "/mcp") => headed(405, "", ""),
        _ => accepted(),
    })
    .await
}

#[tokio::test]
async fn http_with_sse_is_the_last_resort() {
    let script = sse("messages?sessionId=7").await;
    let connection =
        open_at(target(&script).header("x-key", "k"), Limits::default()).await.unwrap();
    assert_eq!(connection.opened().revision, Revision::V2024_11_05);
    let tools = call(&connection, "tools/list", "{}").await.unwrap();
    assert_eq!(tools.get(), r#"{"tools":[]}"#);
    let kinds = [
        "server/discover",
        "initialize",
        "GET",
        "initialize",
        "notifications/initialized",
        "tools/list",
    ];
    assert_eq!(script.kinds(), kinds);
    let seen = script.seen();
    assert_eq!(seen[2].header("accept"), Some("text/event-stream"));
    assert!(seen.iter().all(|it| it.header("x-key") == Some("k")));
    assert!(seen[3..].iter().all(|it| it.path == "/messages?sessionId=7"));
    // The session ends with its stream.
    tokio::time::timeout(Duration::from_secs(20), connection.ended()).await.expect("it ends");
    let late = call(&connection, "tools/list", "{}").await;
    assert!(matches!(late, Err(CallError::Unreachable(_))), "{late:?}");
}

#[tokio::test]
async fn an_endpoint_on_another_server_is_refused() {
    let script = sse("http://127.0.0.1:9/steal").await;
    let Err(OpenError::Invalid(why)) = open(&script).await else { panic!("it was opened") };
    assert!(why.contains("127.0.0.1:9"), "{why}");
}

#[tokio::test]
async fn without_any_of_the_three_the_status_of_initialize_counts() {
    let script = Script::start(|_, _| status(404, "text/plain", "nothing here")).await;
    let Err(OpenError::Http(error)) = open(&script).await else { panic!("it was opened") };
    assert_eq!((error.status, &*error.message), (404, "nothing here"));
    assert_eq!(script.kinds(), ["server/discover", "initialize", "GET"]);
}

#[tokio::test]
async fn an_old_server_is_remembered_until_it_is_a_new_one() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let is_new = Arc::new(AtomicBool::new(false));
    let knows = Arc::clone(&is_new);
    let script = Script::start(move |seen, _| match (knows.load(Ordering::SeqCst), seen.what()) {
        (true, "server/discover") => json(seen.result(&discovered())),
        (false, "initialize") => json(seen.result(&initialized("2025-11-25"))),
        (false, "notifications/initialized") => accepted(),
        (true, "initialize") => {
            status(400, "application/json", seen.error(r#"{"code":-32600,"message":"no"}"#))
        }
        _ => headed(405, "", ""),
    })
    .await;
    let verdicts = Verdicts::new();
    let open = |token: &'static str| {
        let target = HttpTarget::new(&script.url).header("authorization", token);
        open_at(target.verdicts(Some(verdicts.clone())), Limits::default())
    };
    let probes = || script.all("server/discover").len();
    open("a").await.unwrap();
    open("a").await.unwrap();
    assert_eq!(probes(), 1, "the second handshake begins with `initialize`");
    open("b").await.unwrap();
    assert_eq!(probes(), 2, "other credentials may see another server");
    is_new.store(true, Ordering::SeqCst);
    assert_eq!(open("a").await.unwrap().opened().revision, Revision::V2026_07_28);
}
