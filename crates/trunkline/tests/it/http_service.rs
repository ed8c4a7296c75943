//! The same server without our listener: called as a service, mounted into hyper; and with our
//! listener, over HTTP/2.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use bytes::Buf;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;
use trunkline::{Change, Context, Limits, Revision, Server, tool};
use trunkline_testkit::http::Guest;

use crate::http::{House, counting, steps};
use crate::server::{builder, soon};

const NEWEST: Revision = Revision::V2026_07_28;
const STREAMABLE: [Revision; 4] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, NEWEST];

/// What a guest would post.
fn post(guest: &Guest, message: &Value) -> Request<String> {
    let mut request = Request::post(format!("http://{}/mcp", guest.address));
    for (name, value) in guest.headers(message) {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        request = request.header(name, HeaderValue::from_str(&value).unwrap());
    }
    request.body(message.to_string()).unwrap()
}

async fn next<B: Body + Unpin>(body: &mut B) -> Option<Vec<u8>>
where
    B::Error: std::fmt::Debug,
{
    loop {
        let frame = soon(poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))).await?;
        if let Ok(mut data) = frame.unwrap().into_data() {
            return Some(data.copy_to_bytes(data.remaining()).to_vec());
        }
    }
}

pub(crate) async fn whole<B: Body + Unpin>(response: Response<B>) -> (StatusCode, Value)
where
    B::Error: std::fmt::Debug,
{
    let (head, mut body) = response.into_parts();
    let mut text = Vec::new();
    while let Some(piece) = next(&mut body).await {
        text.extend(piece);
    }
    (head.status, serde_json::from_slice(&text).unwrap_or_default())
}

#[tokio::test]
async fn a_service_answers_whoever_calls_it() {
    let (server, runs) = counting(Limits::default());
    let mut service = server.http().service();
    let address: SocketAddr = "127.0.0.1:3000".parse().unwrap();
    for revision in STREAMABLE {
        let mut guest = Guest::new(address, revision);
        if revision != NEWEST {
            let hello = guest.prepare("initialize", guest.hello());
            let response = service.call(post(&guest, &hello)).await.unwrap();
            let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
            guest.session = Some(id);
        }
        let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
        // Any clone knows the session.
        let response = service.clone().call(post(&guest, &asked)).await.unwrap();
        let (status, answer) = whole(response).await;
        assert_eq!(status, StatusCode::OK);
        guest.judge(&answer, &asked);
        assert_eq!(answer["result"]["content"][0]["text"], "3", "{revision}");
        assert_eq!(runs.swap(0, SeqCst), 1);
        let mut elsewhere = post(&guest, &asked);
        *elsewhere.uri_mut() = "http://127.0.0.1:3000/other".parse().unwrap();
        let (status, _) = whole(service.call(elsewhere).await.unwrap()).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let mut stranger = post(&guest, &asked);
        *stranger.uri_mut() = "http://evil.example/mcp".parse().unwrap();
        let (status, _) = whole(service.call(stranger).await.unwrap()).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert_eq!(runs.load(SeqCst), 0);
    }
}

#[tokio::test]
async fn a_router_may_take_the_path_away() {
    // What `nest_service("/mcp", …)` of axum does.
    let (server, runs) = counting(Limits::default());
    let mut service = server.http().service();
    for revision in STREAMABLE {
        let mut guest = Guest::new("127.0.0.1:3000".parse().unwrap(), revision);
        let mut call = async |guest: &Guest, message: &Value| {
            let mut request = post(guest, message);
            *request.uri_mut() = "http://127.0.0.1:3000/".parse().unwrap();
            service.call(request).await.unwrap()
        };
        if revision != NEWEST {
            let hello = guest.prepare("initialize", guest.hello());
            let response = call(&guest, &hello).await;
            let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
            guest.session = Some(id);
        }
        let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
        let (status, answer) = whole(call(&guest, &asked).await).await;
        assert_eq!(status, StatusCode::OK, "{revision}");
        guest.judge(&answer, &asked);
        assert_eq!(runs.swap(0, SeqCst), 1);
    }
    let elsewhere = Request::get("http://127.0.0.1:3000/other").body(String::new()).unwrap();
    let (_, refusal) = whole(service.call(elsewhere).await.unwrap()).await;
    let why = refusal["error"]["message"].as_str().unwrap();
    assert_eq!(why, "There is nothing at this path; MCP is at `/mcp`.");
}

#[tokio::test]
async fn a_page_of_another_origin_is_let_in_by_name_and_may_read_the_answer() {
    let (server, runs) = counting(Limits::default());
    let mut service = server.http().service();
    let mut guest = Guest::new("127.0.0.1:3000".parse().unwrap(), NEWEST);
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let origin = HeaderValue::from_static("https://app.example.com");
    let mut request = post(&guest, &asked);
    request.headers_mut().insert("origin", origin.clone());
    let (status, refusal) = whole(service.call(request).await.unwrap()).await;
    assert_eq!((status, runs.load(SeqCst)), (StatusCode::FORBIDDEN, 0));
    let why = refusal["error"]["message"].as_str().unwrap();
    assert!(why.contains(r#"`allow_origin("https://app.example.com")`"#), "{why}");

    let mut service = server.http().allow_origin("https://app.example.com").service();
    let preflight = Request::options("http://127.0.0.1:3000/mcp")
        .header("origin", &origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type, mcp-session-id")
        .body(String::new())
        .unwrap();
    let allowed = service.call(preflight).await.unwrap();
    assert_eq!(allowed.status(), StatusCode::NO_CONTENT);
    assert_eq!(allowed.headers()["access-control-allow-origin"], origin);
    let names = &allowed.headers()["access-control-allow-headers"];
    assert_eq!(names, "content-type, mcp-session-id");
    let mut request = post(&guest, &asked);
    request.headers_mut().insert("origin", origin.clone());
    let answer = service.call(request).await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], origin);
    let exposed = answer.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("Mcp-Session-Id"), "{exposed}");
    assert_eq!(whole(answer).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_service_is_mounted_into_a_server_of_ones_own() {
    let (server, _) = counting(Limits::default());
    let service = server.http().path("/deep/down").service();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service.clone();
            let own = hyper::service::service_fn(move |mut request: Request<_>| {
                let mut service = service.clone();
                // What a router does: it adds its own prefix.
                let path = format!("/deep{}", request.uri().path());
                *request.uri_mut() = path.parse().unwrap();
                service.call(request)
            });
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), own);
            tokio::spawn(served);
        }
    });
    let mut guest = Guest::new(address, NEWEST);
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let text = String::from_utf8(guest.text(&asked)).unwrap().replace("POST /mcp", "POST /down");
    let mut line = trunkline_testkit::http::Line::to(address).await;
    line.send(text).await;
    let head = line.head().await;
    let answer = guest.answer(&asked, &mut line, head).await;
    assert_eq!(answer.message["result"]["content"][0]["text"], "3");
}

#[tokio::test]
async fn streams_of_a_service_end_when_it_hangs_up() {
    let server = builder().tool(tool("hi", async || "hi")).build();
    let mut service = server.http().service();
    let mut guest = Guest::new("127.0.0.1:3000".parse().unwrap(), NEWEST);
    let asked = guest
        .prepare("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let response = service.call(post(&guest, &asked)).await.unwrap();
    let mut body = response.into_body();
    let first = String::from_utf8(next(&mut body).await.unwrap()).unwrap();
    assert!(first.contains("notifications/subscriptions/acknowledged"), "{first}");
    server.changed(Change::Tools).await;
    let news = String::from_utf8(next(&mut body).await.unwrap()).unwrap();
    assert!(news.contains("notifications/tools/list_changed"), "{news}");
    service.hang_up();
    let mut rest = String::new();
    while let Some(piece) = next(&mut body).await {
        rest.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(rest.contains(r#""result""#), "{rest}");
}

/// A connection that speaks HTTP/2 from the first byte.
async fn second(address: SocketAddr) -> http2::SendRequest<String> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn http_2_is_served_on_the_same_port() {
    let (house, runs) = House::counting(Limits::default()).await;
    let mut sender = second(house.address).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        let mut answers = Vec::new();
        for _ in 0..20 {
            let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
            answers.push((asked.clone(), sender.send_request(post(&guest, &asked))));
        }
        for (asked, answer) in answers {
            let response = soon(answer).await.unwrap();
            assert_eq!(response.version(), Version::HTTP_2);
            let (status, answer) = whole(response).await;
            assert_eq!((status, &answer["id"]), (StatusCode::OK, &asked["id"]), "{answer}");
        }
        assert_eq!(runs.swap(0, SeqCst), 20);
        // The name is in `:authority`, and is checked there.
        let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
        for (twist, expected) in [
            ("http://evil.example/mcp", StatusCode::FORBIDDEN),
            ("http://LOCALHOST:1/mcp", StatusCode::OK),
        ] {
            let mut request = post(&guest, &asked);
            *request.uri_mut() = twist.parse().unwrap();
            let response = soon(sender.send_request(request)).await.unwrap();
            assert_eq!(response.status(), expected, "{twist}");
        }
        let mut request = post(&guest, &asked);
        request.headers_mut().insert("host", HeaderValue::from_static("evil.example"));
        let response = soon(sender.send_request(request)).await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "a second name that is not ours");
        assert_eq!(runs.swap(0, SeqCst), 1);
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_is_a_call_that_is_cancelled() {
    let (ring, mut rung) = tokio::sync::mpsc::unbounded_channel();
    struct Bell(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for Bell {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let never = move |cx: Context| {
        let bell = Bell(ring.clone());
        async move {
            let _bell = bell;
            steps(&cx, 1, 2).await;
            std::future::pending::<()>().await;
        }
    };
    let server: Server =
        builder().tool(tool("never", never)).tool(tool("hi", async || "hi")).build();
    let house = House::of(&server).await;
    let mut sender = second(house.address).await;
    let mut guest = Guest::new(house.address, NEWEST);
    let params = json!({ "name": "never", "_meta": { "progressToken": 1 } });
    let asked = guest.prepare("tools/call", params);
    let response = soon(sender.send_request(post(&guest, &asked))).await.unwrap();
    let mut body = response.into_body();
    next(&mut body).await.unwrap();
    let left = Instant::now();
    drop(body);
    soon(rung.recv()).await.unwrap();
    assert!(left.elapsed() < Duration::from_millis(100), "{:?}", left.elapsed());
    // The connection goes on.
    let asked = guest.prepare("tools/call", json!({ "name": "hi" }));
    let response = soon(sender.send_request(post(&guest, &asked))).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn http_2_is_within_its_limits() {
    let (house, runs) = House::counting(Limits::default().body_bytes(1000)).await;
    let mut sender = second(house.address).await;
    let mut guest = Guest::new(house.address, NEWEST);
    let asked = guest.prepare("tools/call", json!({ "name": "sum" }));
    let (head, _) = post(&guest, &asked).into_parts();
    let long = Request::from_parts(head.clone(), " ".repeat(1001));
    let response = soon(sender.send_request(long)).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let mut wide = Request::from_parts(head, asked.to_string());
    wide.headers_mut().insert("x-wide", HeaderValue::from_str(&"x".repeat(70_000)).unwrap());
    let answer = soon(sender.send_request(wide)).await;
    assert!(!answer.is_ok_and(|it| it.status().is_success()));
    assert_eq!(runs.load(SeqCst), 0);
    // Another connection is unaffected.
    let mut sender = second(house.address).await;
    let response = soon(sender.send_request(post(&guest, &asked))).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}
