//! A gateway between a caller, an HTTP server and a collector, all in this process.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use http_body::Body;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use trunkline_proto::server::Server;
use trunkline_transport::drive::Driver;
use trunkline_transport::http::{Answers, Envelopes, HttpBody, RequestBody, bind, serve};
use trunkline_transport::limits::Limits;
use trunkline_wire::revision::{Revision, Revisions};

use super::GOOD;
use crate::catalog::plan::{Plan, ServerPlan};
use crate::{Gateway, OtelSettings, Selector, Settings};

/// A server and a collector, with what both received.
struct Peers {
    revision: Revision,
    /// The statuses that the collector answers with first.
    refusals: Mutex<Vec<u16>>,
    heard: Mutex<Vec<(String, Json)>>,
}

impl Peers {
    fn sent(&self, path: &str) -> Vec<Json> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|it| it.0 == path).map(|it| it.1.clone()).collect()
    }

    /// The received spans, the caller's side first.
    fn spans(&self) -> Vec<Json> {
        let batches = self.sent("/v1/traces").into_iter();
        let mut spans: Vec<Json> = batches
            .flat_map(|it| {
                let spans = &it["resourceSpans"][0]["scopeSpans"][0]["spans"];
                spans.as_array().cloned().unwrap_or_default()
            })
            .collect();
        spans.sort_by_key(|it| it["kind"].as_u64());
        spans
    }

    /// The `_meta` of the call that the server received.
    fn meta(&self) -> Json {
        let mut calls = self.sent("/mcp").into_iter();
        calls.rfind(|it| it["method"] == "tools/call").unwrap()["params"]["_meta"].clone()
    }

    fn result(&self, method: &str, params: &Json) -> Json {
        let name = self.revision.as_str();
        let mut result = match method {
            "initialize" => json!({
                "protocolVersion": name,
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "up", "version": "1" },
            }),
            "server/discover" => json!({
                "supportedVersions": [name], "capabilities": { "tools": {} },
                "ttlMs": 60_000, "cacheScope": "public",
            }),
            "tools/list" => json!({
                "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }],
                "ttlMs": 60_000, "cacheScope": "public",
            }),
            _ => json!({
                "content": [{ "type": "text", "text": "hello" }],
                "isError": params["arguments"]["fails"] == true,
            }),
        };
        if self.revision == Revision::V2026_07_28 {
            result["resultType"] = json!("complete");
        }
        result
    }
}

impl Answers for Peers {
    async fn answer(&self, request: Request<RequestBody>, _: &Envelopes) -> Response<HttpBody> {
        let respond = |status, body: Json| {
            let mut response = Response::new(HttpBody::from(body.to_string().into_bytes()));
            *response.status_mut() = status;
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert("content-type", json);
            response
        };
        if request.method() != "POST" {
            return respond(StatusCode::METHOD_NOT_ALLOWED, json!({}));
        }
        let path = request.uri().path().to_owned();
        let token = request.headers().get("x-token").map(|it| it.to_str().unwrap().to_owned());
        let (mut text, mut body) = (Vec::new(), pin!(request.into_body()));
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            text.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
        }
        let said: Json = serde_json::from_slice(&text).unwrap();
        if path != "/mcp" {
            assert_eq!(token.as_deref(), Some("s3cret"), "{path}");
            if let Some(status) = self.refusals.lock().unwrap().pop() {
                return respond(StatusCode::from_u16(status).unwrap(), json!({}));
            }
        }
        self.heard.lock().unwrap().push((path.clone(), said.clone()));
        match (&*path, &said["id"]) {
            ("/mcp", Json::Null) => respond(StatusCode::ACCEPTED, json!({})),
            ("/mcp", id) => {
                let result = self.result(said["method"].as_str().unwrap(), &said["params"]);
                respond(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            }
            _ => respond(StatusCode::OK, json!({})),
        }
    }

    fn hang_up(&self) {}

    fn end(&self) {}
}

/// Calls a tool once and closes the gateway. Returns the caller's answer, and what the others received.
async fn call(
    revision: Revision,
    refusals: &[u16],
    settings: impl FnOnce(OtelSettings) -> Option<OtelSettings>,
    tool: &str,
    arguments: Json,
    trace: Json,
) -> (Json, Arc<Peers>, Gateway) {
    let peers = Arc::new(Peers {
        revision,
        refusals: Mutex::new(refusals.to_vec()),
        heard: Mutex::default(),
    });
    let listener = bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let served = serve(listener, Arc::clone(&peers), Limits::default(), std::future::pending());
    tokio::spawn(served);
    let mut server = ServerPlan::http("up", format!("{at}/mcp"));
    server.revisions = Revisions::only(revision);
    let plan = Plan { servers: [("up".to_owned(), Arc::new(server))].into(), ..Plan::default() };
    let mut otel = OtelSettings::new(&at);
    otel.headers.push(("X-Token".to_owned(), "s3cret".to_owned()));
    let settings = Settings { otel: settings(otel), ..crate::fixture::settings() };
    let gateway = Gateway::open(plan, settings).await.unwrap();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let core = Server::new(Arc::clone(&gateway.0.core));
    let handler = gateway.handler(Selector::All);
    let driver = Driver::new(core, handler, (read, write), None, Limits::default());
    let driving = tokio::spawn(driver.run());
    let (read, mut write) = tokio::io::split(near);
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "caller", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, value) in trace.as_object().unwrap() {
        meta[name] = value.clone();
    }
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    let told = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
    drop(write);
    gateway.close().await;
    driving.abort();
    (serde_json::from_str(&told).unwrap(), peers, gateway)
}

fn attribute<'a>(span: &'a Json, key: &str) -> &'a Json {
    let all = span["attributes"].as_array().unwrap();
    all.iter().find(|it| it["key"] == key).map_or(&Json::Null, |it| &it["value"]["stringValue"])
}

async fn pair_of(revision: Revision) {
    let trace = json!({ "traceparent": GOOD, "tracestate": "rojo=1", "baggage": "a=1" });
    let (told, peers, gateway) =
        call(revision, &[], Some, "up.echo", json!({}), trace.clone()).await;
    assert_eq!(told["result"]["content"][0]["text"], "hello", "{told}");
    let spans = peers.spans();
    let [ours, theirs] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((&ours["kind"], &theirs["kind"]), (&json!(2), &json!(3)));
    for span in [ours, theirs] {
        assert_eq!(span["traceId"], GOOD[3..35]);
        assert_eq!(span["name"], "tools/call echo");
        assert_eq!(span["traceState"], "rojo=1");
        assert_eq!(attribute(span, "gen_ai.tool.name"), "echo");
        assert_eq!(attribute(span, "trunkline.server"), "up");
        assert_eq!(span["status"], Json::Null);
    }
    assert_eq!(ours["parentSpanId"], GOOD[36..52]);
    assert_eq!(theirs["parentSpanId"], ours["spanId"]);
    assert_ne!(theirs["spanId"], ours["spanId"]);
    assert_eq!(attribute(ours, "mcp.protocol.version"), "2026-07-28");
    assert_eq!(attribute(theirs, "mcp.protocol.version"), revision.as_str());
    let meta = peers.meta();
    let expected = format!("00-{}-{}-01", &GOOD[3..35], theirs["spanId"].as_str().unwrap());
    assert_eq!(meta["traceparent"], expected);
    assert_eq!((&meta["tracestate"], &meta["baggage"]), (&trace["tracestate"], &trace["baggage"]));
    assert_eq!(peers.sent("/v1/metrics").len(), 1, "they are sent at the end, too");
    let recent = serde_json::to_value(gateway.0.recent_calls(1)).unwrap();
    assert_eq!(recent[0]["traceId"], GOOD[3..35]);
    assert!(gateway.0.metrics.render().contains("otel_spans_total{result=\"sent\"} 2\n"));
}

#[tokio::test]
async fn a_call_leaves_two_spans_and_a_stateful_server_gets_the_context() {
    pair_of(Revision::V2025_11_25).await;
}

#[tokio::test]
async fn a_call_leaves_two_spans_and_a_stateless_server_gets_the_context() {
    pair_of(Revision::V2026_07_28).await;
}

#[tokio::test]
async fn a_trace_that_is_not_sampled_is_handed_on_and_not_sent() {
    let trace = json!({ "traceparent": GOOD.replace("-01", "-00") });
    let (told, peers, _) =
        call(Revision::V2025_11_25, &[], Some, "up.echo", json!({}), trace).await;
    assert_eq!(told["result"]["content"][0]["text"], "hello", "{told}");
    assert_eq!(peers.spans(), Vec::<Json>::new());
    let handed = peers.meta()["traceparent"].as_str().unwrap().to_owned();
    assert!(handed.starts_with(&GOOD[..36]) && handed.ends_with("-00"), "{handed}");
    assert_ne!(handed[36..52], GOOD[36..52]);
}

#[tokio::test]
async fn a_trace_begins_with_us_and_what_fails_says_so() {
    let arguments = json!({ "fails": true });
    let (_, peers, _) =
        call(Revision::V2026_07_28, &[503], Some, "up.echo", arguments, json!({})).await;
    let spans = peers.spans();
    let [ours, theirs] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((&ours["parentSpanId"], &theirs["parentSpanId"]), (&Json::Null, &ours["spanId"]));
    assert_eq!(ours["traceId"], theirs["traceId"]);
    for span in [ours, theirs] {
        assert_eq!(span["status"], json!({ "code": 2 }));
        assert_eq!(attribute(span, "error.type"), "tool_error");
    }
    assert_eq!(attribute(ours, "trunkline.outcome"), "tool_error");
}

#[tokio::test]
async fn a_name_that_a_caller_made_up_is_not_recorded() {
    let (told, peers, _) =
        call(Revision::V2026_07_28, &[], Some, "made.up", json!({}), json!({})).await;
    let spans = peers.spans();
    assert_eq!(spans.len(), 1, "nobody was called");
    assert_eq!(spans[0]["name"], "tools/call _other");
    assert_eq!(attribute(&spans[0], "error.type"), "unknown_tool");
    let code = told["error"]["code"].to_string();
    assert_eq!(attribute(&spans[0], "rpc.response.status_code"), &json!(code));
    assert!(!spans[0].to_string().contains("made.up"));
}

#[tokio::test]
async fn without_a_collector_what_the_caller_sent_is_passed_on() {
    let trace = json!({ "traceparent": GOOD });
    let (told, peers, _) =
        call(Revision::V2025_11_25, &[], |_| None, "up.echo", json!({}), trace).await;
    assert_eq!(told["result"]["content"][0]["text"], "hello", "{told}");
    assert_eq!(peers.meta()["traceparent"], GOOD);
    assert_eq!(peers.sent("/v1/traces"), Vec::<Json>::new());
}
