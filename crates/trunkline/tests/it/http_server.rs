//! A server over a real socket: sessions, streams, and which kind of answer goes out.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{Change, Context, Limits, Revision, Server, ToolError, tool};
use trunkline_testkit::http::{Event, Guest, Line, request};

use crate::http::{House, counting, steps};
use crate::server::{builder, soon};

const NEWEST: Revision = Revision::V2026_07_28;
const LEGACY: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];
const STREAMABLE: [Revision; 4] =
    [Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25, NEWEST];

async fn hi() -> &'static str {
    "hi"
}

fn small() -> Server {
    builder().tool(tool("hi", hi)).build()
}

#[tokio::test]
async fn every_revision_is_served_at_one_url() {
    let house = House::of(&small()).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.session.is_some(), revision != NEWEST, "{revision}");
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
        let unknown = guest.call("no/such", json!({})).await;
        // To a client of a session 404 would say that its session is gone.
        let status = if revision == NEWEST { 404 } else { 200 };
        assert_eq!(unknown.head.status, status, "{revision}");
        assert_eq!(unknown.message["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn an_answer_alone_is_json_and_one_with_news_is_a_stream() {
    let chatty = async |cx: Context| {
        steps(&cx, 1, 4).await;
        "done"
    };
    let server = builder().tool(tool("hi", hi)).tool(tool("chatty", chatty)).build();
    for always in [false, true] {
        let http = if always { server.http().always_stream() } else { server.http() };
        let house = House::with(http).await;
        for revision in STREAMABLE {
            let mut guest = Guest::open(house.address, revision).await;
            let plain = guest.call("tools/call", json!({ "name": "hi" })).await;
            assert_eq!(plain.head.is_events(), always, "{revision}");
            assert_eq!(plain.before, Vec::<Value>::new());
            let params = json!({ "name": "chatty", "_meta": { "progressToken": 1 } });
            let chatty = guest.call("tools/call", params).await;
            assert!(chatty.head.is_events(), "{revision}");
            let news = chatty.before.iter().map(|it| it["params"]["progress"].as_f64().unwrap());
            assert_eq!(news.collect::<Vec<_>>(), [1.0, 2.0, 3.0], "{revision}");
            assert_eq!(chatty.head.get("cache-control"), Some("no-cache"));
            assert_eq!(chatty.head.get("x-accel-buffering"), Some("no"));
            // Unwanted news is none.
            let silent = guest.call("tools/call", json!({ "name": "chatty" })).await;
            assert_eq!(silent.head.is_events(), always, "{revision}");
            // What is refused has a status, and so is no stream.
            let refused = guest.call("no/such", json!({})).await;
            assert_eq!(refused.head.is_events(), always && revision != NEWEST, "{revision}");
        }
    }
}

#[tokio::test]
async fn a_session_lives_until_it_is_deleted() {
    let house = House::of(&small()).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let mut other = Guest::open(house.address, revision).await;
        let id = guest.session.clone().unwrap();
        assert!(id.bytes().all(|it| (0x21..0x7f).contains(&it)), "{id}");
        assert_ne!(guest.session, other.session);
        assert_eq!(guest.delete().await.status, 204);
        let call = guest.prepare("tools/call", json!({ "name": "hi" }));
        for _ in 0..2 {
            let (mut line, head) = guest.post(&call).await;
            assert_eq!(head.status, 404, "{revision}");
            assert_eq!(line.json().await["id"], call["id"]);
            assert_eq!(guest.get(None).await.1.status, 404);
            assert_eq!(guest.delete().await.status, 404);
        }
        assert_eq!(other.tool("hi", json!({})).await, "hi");
        // Without an id there is nothing to look for, and no other session is taken instead.
        let nobody = Guest { session: None, ..other.clone() };
        assert_eq!(nobody.post(&call).await.1.status, 400);
        assert_eq!(nobody.get(None).await.1.status, 400);
        assert_eq!(nobody.delete().await.status, 400);
    }
}

#[tokio::test]
async fn a_session_that_does_nothing_is_gone_after_its_time() {
    let idle = Duration::from_millis(150);
    let limits = Limits::default().session_idle(idle).session_sweep(Duration::from_millis(10));
    let server = builder().limits(limits).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    let started = Instant::now();
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let reading = Guest::open(house.address, Revision::V2025_11_25).await;
    let (mut stream, _) = reading.get(None).await;
    stream.event().await.expect("a stream begins with an id");
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let gone = async {
        // A GET with an id that is none leaves no trace and counts as use only if it finds one.
        loop {
            let (_, head) = Guest { session: guest.session.clone(), ..guest.clone() }
                .get(Some("no-such-id"))
                .await;
            match head.status {
                404 => return,
                status => assert_eq!(status, 200),
            }
        }
    };
    soon(gone).await;
    assert!(started.elapsed() >= idle);
    // Whoever reads is there, however silent.
    assert_eq!(reading.post(&ping).await.1.status, 200);
}

#[tokio::test]
async fn one_session_too_many_is_told_to_try_later() {
    let limits = Limits::default().sessions(3);
    let server = builder().limits(limits).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    let mut guests = Vec::new();
    for revision in LEGACY {
        guests.push(Guest::open(house.address, revision).await);
    }
    let mut late = Guest::new(house.address, Revision::V2025_11_25);
    let hello = late.hello();
    for _ in 0..3 {
        let refused = late.call("initialize", hello.clone()).await;
        assert_eq!(refused.head.status, 503);
        let after: u64 = refused.head.get("retry-after").unwrap().parse().unwrap();
        assert!(after > 0);
        assert_eq!(refused.head.get("mcp-session-id"), None);
    }
    // The old transport draws on the same number.
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "GET /sse", &[("Accept", "text/event-stream")], "")).await;
    assert_eq!(line.head().await.status, 503);
    for guest in &mut guests {
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
    }
    // Those who keep no session are not concerned.
    let mut newest = Guest::open(house.address, NEWEST).await;
    assert_eq!(newest.tool("hi", json!({})).await, "hi");
    assert_eq!(guests[0].delete().await.status, 204);
    late.shake_hands().await;
    assert_eq!(late.tool("hi", json!({})).await, "hi");
}

#[tokio::test]
async fn an_initialize_that_fails_leaves_no_session() {
    let limits = Limits::default().sessions(1);
    let server = builder().limits(limits).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    let mut guest = Guest::new(house.address, Revision::V2025_11_25);
    for _ in 0..3 {
        let failed = guest.call("initialize", json!({ "protocolVersion": 7 })).await;
        assert_eq!(failed.message["error"]["code"], -32602);
        assert_eq!(failed.head.get("mcp-session-id"), None);
    }
    guest.shake_hands().await;
}

#[tokio::test]
async fn the_stream_of_a_session_has_what_is_about_no_request() {
    let server = small();
    let house = House::of(&server).await;
    for revision in LEGACY {
        let guest = Guest::open(house.address, revision).await;
        let (mut line, head) = guest.get(None).await;
        assert!(head.status == 200 && head.is_events());
        if revision == Revision::V2025_11_25 {
            let first = line.event().await.unwrap();
            assert!(first.id.is_some() && first.data.is_empty(), "{first:?}");
        }
        server.changed(Change::Tools).await;
        server.changed(Change::Tools).await;
        for _ in 0..2 {
            let (event, message) = line.message().await.unwrap();
            assert_eq!(message["method"], "notifications/tools/list_changed", "{revision}");
            assert!(event.id.is_some());
            guest.judge(&message, &Value::Null);
        }
        assert_eq!(guest.delete().await.status, 204);
        assert_eq!(line.event().await, None, "its end is the stream's");
    }
}

#[tokio::test]
async fn a_change_that_nobody_heard_is_told_once() {
    let server = small();
    let house = House::of(&server).await;
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    for _ in 0..1000 {
        server.changed(Change::Tools).await;
    }
    let (mut line, _) = guest.get(None).await;
    let (_, message) = line.message().await.unwrap();
    assert_eq!(message["method"], "notifications/tools/list_changed");
    // The next thing is the next thing that happens.
    server.changed(Change::Tools).await;
    let (again, _) = line.message().await.unwrap();
    assert_eq!(guest.delete().await.status, 204);
    assert_eq!(line.message().await.map(|it| it.0), None, "after {again:?}");
}

#[tokio::test]
async fn a_second_reader_takes_the_place_of_the_first() {
    let server = small();
    let house = House::of(&server).await;
    for revision in LEGACY {
        let guest = Guest::open(house.address, revision).await;
        let (mut first, _) = guest.get(None).await;
        server.changed(Change::Tools).await;
        let (seen, _) = first.message().await.unwrap();
        let (mut second, _) = guest.get(None).await;
        assert_eq!(first.message().await.map(|it| it.0), None, "{revision}");
        server.changed(Change::Tools).await;
        let (event, _) = second.message().await.unwrap();
        assert_ne!(event.id, seen.id, "nothing comes twice");
    }
}

#[tokio::test]
async fn each_message_goes_to_one_stream() {
    let told = async |cx: Context| {
        cx.changed(Change::Tools).await;
        steps(&cx, 1, 3).await;
        "told"
    };
    let server = builder().tool(tool("told", told)).build();
    let house = House::of(&server).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let (mut general, _) = guest.get(None).await;
        let params = json!({ "name": "told", "_meta": { "progressToken": 1 } });
        let answer = guest.call("tools/call", params).await;
        let methods: Vec<_> = answer.before.iter().map(|it| it["method"].clone()).collect();
        assert_eq!(methods, ["notifications/progress"; 2], "{revision}");
        let (_, message) = general.message().await.unwrap();
        assert_eq!(message["method"], "notifications/tools/list_changed");
        guest.delete().await;
        assert_eq!(general.message().await.map(|it| it.1), None);
    }
}

/// Tells when it is dropped.
struct Bell(mpsc::UnboundedSender<&'static str>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// A server with a tool that says something if asked to, and then never ends.
fn endless() -> (Server, mpsc::UnboundedReceiver<&'static str>) {
    let (ring, rung) = mpsc::unbounded_channel();
    let never = move |cx: Context| {
        let ring = ring.clone();
        async move {
            let _bell = Bell(ring.clone());
            cx.progress(1.0, 2.0).await;
            let _ = ring.send("running");
            pending::<()>().await;
        }
    };
    (builder().tool(tool("never", never)).tool(tool("hi", hi)).build(), rung)
}

#[tokio::test]
async fn hanging_up_is_cancelling_in_the_newest_revision() {
    let (server, mut rung) = endless();
    let house = House::of(&server).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    // Before the answer has begun, and in the middle of it.
    for meta in [json!({}), json!({ "progressToken": 1 })] {
        let spoken = meta != json!({});
        let asked = guest.prepare("tools/call", json!({ "name": "never", "_meta": meta }));
        let mut line = Line::to(house.address).await;
        line.send(guest.text(&asked)).await;
        assert_eq!(soon(rung.recv()).await, Some("running"));
        if spoken {
            assert!(line.head().await.is_events());
            line.message().await.unwrap();
        }
        let left = Instant::now();
        drop(line);
        assert_eq!(soon(rung.recv()).await, Some("dropped"));
        assert!(left.elapsed() < Duration::from_millis(100), "{:?}", left.elapsed());
    }
}

#[tokio::test]
async fn hanging_up_is_no_cancelling_before() {
    let (server, mut rung) = endless();
    let house = House::of(&server).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let params = json!({ "name": "never", "_meta": { "progressToken": 1 } });
        let asked = guest.prepare("tools/call", params);
        let (mut line, _) = guest.post(&asked).await;
        line.message().await.unwrap();
        assert_eq!(soon(rung.recv()).await, Some("running"));
        drop(line);
        // The server has seen the hang-up once it has taken in what was sent later.
        for _ in 0..20 {
            guest.tool("hi", json!({})).await;
        }
        assert_eq!(rung.try_recv(), Err(mpsc::error::TryRecvError::Empty), "{revision}");
        let cancel = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": asked["id"] },
        });
        assert_eq!(guest.post(&cancel).await.1.status, 202);
        assert_eq!(soon(rung.recv()).await, Some("dropped"), "{revision}");
    }
}

#[tokio::test]
async fn the_end_of_a_session_stops_its_work() {
    let (server, mut rung) = endless();
    let house = House::of(&server).await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let params = json!({ "name": "never", "_meta": { "progressToken": 1 } });
        let asked = guest.prepare("tools/call", params);
        let (mut line, _) = guest.post(&asked).await;
        line.message().await.unwrap();
        assert_eq!(soon(rung.recv()).await, Some("running"));
        assert_eq!(guest.delete().await.status, 204);
        assert_eq!(soon(rung.recv()).await, Some("dropped"), "{revision}");
        assert_eq!(line.message().await.map(|it| it.1), None, "{revision}");
    }
}

#[tokio::test]
async fn nobody_cancels_the_call_of_another() {
    let (server, mut rung) = endless();
    let house = House::of(&server).await;
    let mut victim = Guest::open(house.address, Revision::V2025_11_25).await;
    let params = json!({ "name": "never", "_meta": { "progressToken": 1 } });
    let asked = victim.prepare("tools/call", params);
    let (mut line, _) = victim.post(&asked).await;
    line.message().await.unwrap();
    assert_eq!(soon(rung.recv()).await, Some("running"));
    let cancel = json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": asked["id"] },
    });
    let mut other = Guest::open(house.address, Revision::V2025_11_25).await;
    assert_eq!(other.post(&cancel).await.1.status, 202);
    let newest = Guest::open(house.address, NEWEST).await;
    assert_eq!(newest.post(&cancel).await.1.status, 202);
    other.tool("hi", json!({})).await;
    assert_eq!(rung.try_recv(), Err(mpsc::error::TryRecvError::Empty));
    assert_eq!(victim.post(&cancel).await.1.status, 202);
    assert_eq!(soon(rung.recv()).await, Some("dropped"));
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[tokio::test]
async fn a_question_goes_out_with_the_call_it_is_about() {
    let greet = async |cx: Context| {
        let name = cx.ask::<Name>("Who are you?").await?.accepted()?.name;
        Ok::<_, ToolError>(format!("Hello, {name}"))
    };
    let server = builder().tool(tool("greet", greet)).build();
    let house = House::of(&server).await;
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let mut guest = Guest::open(house.address, revision).await;
        let (mut general, _) = guest.get(None).await;
        let asked = guest.prepare("tools/call", json!({ "name": "greet" }));
        let (mut line, head) = guest.post(&asked).await;
        assert!(head.is_events());
        let (_, question) = line.message().await.unwrap();
        assert_eq!(question["method"], "elicitation/create", "{revision}");
        guest.judge(&question, &Value::Null);
        let reply = json!({
            "jsonrpc": "2.0",
            "id": question["id"],
            "result": { "action": "accept", "content": { "name": "Ada" } },
        });
        // Not from another session, though it knows the id.
        let other = Guest::open(house.address, revision).await;
        let mut foreign = reply.clone();
        foreign["result"]["content"]["name"] = json!("Eve");
        assert_eq!(other.post(&foreign).await.1.status, 202);
        assert_eq!(guest.post(&reply).await.1.status, 202);
        let answer = guest.answer(&asked, &mut line, head).await;
        assert_eq!(answer.message["result"]["content"][0]["text"], "Hello, Ada", "{revision}");
        guest.delete().await;
        assert_eq!(general.message().await.map(|it| it.1), None, "nothing was said there");
    }
}

#[tokio::test]
async fn a_batch_is_answered_at_once_where_there_are_batches() {
    let (server, runs) = counting(Limits::default());
    let house = House::of(&server).await;
    let mut guest = Guest::open(house.address, Revision::V2025_03_26).await;
    let (a, b) = (
        guest.prepare("tools/call", json!({ "name": "sum" })),
        guest.prepare("no/such", json!({})),
    );
    let news = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    let (mut line, head) = guest.post(&json!([a, news, b])).await;
    assert_eq!(head.status, 200);
    let answers = line.json().await;
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
    let of = |id: &Value| answers.as_array().unwrap().iter().find(|it| it["id"] == *id).unwrap();
    assert_eq!(of(&a["id"])["result"]["content"][0]["text"], "3");
    assert_eq!(of(&b["id"])["error"]["code"], -32601);
    assert_eq!(guest.post(&json!([news])).await.1.status, 202);
    assert_eq!(guest.post(&json!([])).await.1.status, 400);
    assert_eq!(runs.swap(0, SeqCst), 1);
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let guest = Guest::open(house.address, revision).await;
        for batch in [json!([a]), json!([])] {
            let (mut line, head) = guest.post(&batch).await;
            assert_eq!(head.status, 400, "{revision}");
            assert_eq!(line.json().await["error"]["code"], -32600);
        }
    }
    assert_eq!(runs.load(SeqCst), 0);
}

#[tokio::test]
async fn without_sessions_any_request_stands_alone() {
    let (server, runs) = counting(Limits::default());
    let house = House::with(server.http().stateless()).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.session, None);
        assert_eq!(guest.tool("sum", json!({})).await, "3", "{revision}");
        // An id from elsewhere does no harm.
        guest.session = Some("from-another-replica".to_owned());
        assert_eq!(guest.tool("sum", json!({})).await, "3", "{revision}");
        assert_eq!(guest.get(None).await.1.status, 405);
        assert_eq!(guest.delete().await.status, 405);
    }
    assert_eq!(runs.load(SeqCst), 8);
}

#[tokio::test]
async fn work_without_a_session_outlives_its_client_before_the_newest_revision() {
    let (server, mut rung) = endless();
    let house = House::with(server.http().stateless()).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    let params = json!({ "name": "never", "_meta": { "progressToken": 1 } });
    let asked = guest.prepare("tools/call", params);
    let (mut line, _) = guest.post(&asked).await;
    line.message().await.unwrap();
    assert_eq!(soon(rung.recv()).await, Some("running"));
    drop(line);
    for _ in 0..20 {
        guest.tool("hi", json!({})).await;
    }
    assert_eq!(rung.try_recv(), Err(mpsc::error::TryRecvError::Empty));
}

#[tokio::test]
async fn the_dialect_is_served_at_the_same_url() {
    let (server, runs) = counting(Limits::default());
    let house = House::of(&server).await;
    let headers = [("Content-Type", "application/json")];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"mcp/listTools","params":{}}"#;
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "POST /mcp", &headers, body)).await;
    assert_eq!(line.head().await.status, 200);
    let answer = line.json().await;
    assert!(answer["result"].to_string().contains("\"sum\""), "{answer}");
    assert_eq!(runs.load(SeqCst), 0);
}

/// The old stream, and where to post to it.
async fn old(house: &House) -> (Line, String) {
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "GET /sse", &[("Accept", "text/event-stream")], "")).await;
    assert_eq!(line.head().await.status, 200);
    let Event { event, data, .. } = line.event().await.unwrap();
    assert_eq!(event.as_deref(), Some("endpoint"));
    (line, data)
}

async fn post_old(house: &House, to: &str, message: &Value) -> u16 {
    let mut line = Line::to(house.address).await;
    let headers = [("Content-Type", "application/json")];
    line.send(request(house.address, &format!("POST {to}"), &headers, &message.to_string())).await;
    line.head().await.status
}

#[tokio::test]
async fn the_two_paths_of_2024_11_05_are_a_session() {
    let (server, mut rung) = endless();
    let house = House::of(&server).await;
    for revision in [Revision::V2024_11_05, Revision::V2025_06_18] {
        let mut guest = Guest::new(house.address, revision);
        let (mut line, to) = old(&house).await;
        let hello = guest.prepare("initialize", guest.hello());
        assert_eq!(post_old(&house, &to, &hello).await, 202);
        let (event, opened) = line.message().await.unwrap();
        assert_eq!((event.event.as_deref(), event.id), (Some("message"), None));
        assert_eq!(opened["result"]["protocolVersion"], revision.as_str());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(post_old(&house, &to, &initialized).await, 202);
        server.changed(Change::Tools).await;
        let (_, news) = line.message().await.unwrap();
        assert_eq!(news["method"], "notifications/tools/list_changed");
        let params = json!({ "name": "never", "_meta": { "progressToken": 1 } });
        let never = guest.prepare("tools/call", params);
        assert_eq!(post_old(&house, &to, &never).await, 202);
        let (_, progress) = line.message().await.unwrap();
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(soon(rung.recv()).await, Some("running"));
        // A message that is none is refused where it was sent.
        assert_eq!(post_old(&house, &to, &json!("x")).await, 400);
        // The session ends with its stream, and so does its work.
        drop(line);
        assert_eq!(soon(rung.recv()).await, Some("dropped"));
        assert_eq!(post_old(&house, &to, &initialized).await, 404);
    }
    assert_eq!(post_old(&house, "/messages?sessionId=x", &json!({})).await, 404);
}

#[tokio::test]
async fn a_session_is_reached_by_its_own_transport_alone() {
    let house = House::of(&small()).await;
    let (_line, to) = old(&house).await;
    let id = to.split_once("sessionId=").unwrap().1.to_owned();
    let guest = Guest { session: Some(id), ..Guest::new(house.address, Revision::V2025_06_18) };
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    assert_eq!(guest.post(&ping).await.1.status, 404);
    assert_eq!(guest.get(None).await.1.status, 404);
    assert_eq!(guest.delete().await.status, 404);
    let streamable = Guest::open(house.address, Revision::V2025_06_18).await;
    let to = format!("/messages?sessionId={}", streamable.session.unwrap());
    assert_eq!(post_old(&house, &to, &ping).await, 404);
    let house = House::with(small().http().without_sse()).await;
    assert_eq!(post_old(&house, &to, &ping).await, 404);
}

#[tokio::test]
async fn a_subscription_is_a_stream_with_an_acknowledgement() {
    let server = small();
    let mut house = House::of(&server).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let asked = guest.prepare("subscriptions/listen", filter);
    let (mut line, head) = guest.post(&asked).await;
    assert!(head.is_events());
    let (event, first) = line.message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!((event.id, event.retry), (None, None), "this revision has no coming back");
    // One that hears nothing, and one that has left.
    let deaf = guest.prepare("subscriptions/listen", json!({ "notifications": {} }));
    let (mut deaf_line, _) = guest.post(&deaf).await;
    deaf_line.message().await.unwrap();
    let (mut left, _) = guest.post(&asked).await;
    left.message().await.unwrap();
    drop(left);
    server.changed(Change::Tools).await;
    server.changed(Change::Prompts).await;
    let (_, news) = line.message().await.unwrap();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    let tag = &news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*tag, asked["id"], "{news}");
    house.close();
    for (line, asked) in [(&mut line, &asked), (&mut deaf_line, &deaf)] {
        let (_, last) = line.message().await.unwrap();
        guest.judge(&last, asked);
        assert_eq!((&last["id"], last.get("result").is_some()), (&asked["id"], true), "{last}");
        assert_eq!(line.message().await.map(|it| it.1), None);
    }
    house.ended().await;
}

#[tokio::test]
async fn what_is_in_flight_is_answered_before_the_server_ends() {
    let (enter, mut entered) = mpsc::unbounded_channel();
    let (go, gate) = tokio::sync::watch::channel(false);
    let slow = move |cx: Context| {
        let (enter, mut gate) = (enter.clone(), gate.clone());
        async move {
            cx.progress(1.0, 2.0).await;
            enter.send(()).unwrap();
            gate.wait_for(|open| *open).await.unwrap();
            "done"
        }
    };
    let limits = Limits::default().in_flight(200);
    let server = builder().limits(limits).tool(tool("slow", slow)).build();
    let mut house = House::of(&server).await;
    let mut waiting = Vec::new();
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        for at in 0..100 {
            let meta = if at % 2 == 0 { json!({}) } else { json!({ "progressToken": at }) };
            let asked = guest.prepare("tools/call", json!({ "name": "slow", "_meta": meta }));
            let mut line = Line::to(house.address).await;
            line.send(guest.text(&asked)).await;
            soon(entered.recv()).await.unwrap();
            waiting.push((guest.clone(), asked, line));
        }
    }
    let idle = Guest::open(house.address, Revision::V2025_11_25).await;
    let (mut stream, _) = idle.get(None).await;
    let mut keeping = Line::to(house.address).await;
    house.close();
    // What would never end does, at once: streams and connections that have nothing to do.
    while stream.event().await.is_some() {}
    assert_eq!(keeping.hung_up().await, b"");
    go.send(true).unwrap();
    for (guest, asked, mut line) in waiting {
        let head = line.head().await;
        let answer = guest.answer(&asked, &mut line, head).await;
        assert_eq!(answer.message["result"]["content"][0]["text"], "done", "{}", guest.revision);
        assert_eq!(answer.message["id"], asked["id"]);
        assert_eq!(line.hung_up().await, b"", "nothing more is taken over this connection");
    }
    house.ended().await;
}

#[tokio::test]
async fn a_call_that_does_not_end_holds_the_server_up_no_longer_than_its_limit() {
    let (ring, mut rung) = mpsc::unbounded_channel();
    let never = move || {
        let ring = ring.clone();
        async move {
            ring.send(()).unwrap();
            pending::<()>().await;
        }
    };
    let limits = Limits::default().shutdown(Duration::from_millis(50));
    let server = builder().limits(limits).tool(tool("never", never)).build();
    let mut house = House::of(&server).await;
    let mut lines = Vec::new();
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        let asked = guest.prepare("tools/call", json!({ "name": "never" }));
        let mut line = Line::to(house.address).await;
        line.send(guest.text(&asked)).await;
        soon(rung.recv()).await.unwrap();
        lines.push(line);
    }
    house.close();
    house.ended().await;
    for mut line in lines {
        line.hung_up().await;
    }
}

#[tokio::test]
async fn a_handler_that_panics_is_an_error_and_nothing_else() {
    async fn boom() -> &'static str {
        panic!("a secret")
    }
    let late = async |cx: Context| {
        cx.progress(1.0, 2.0).await;
        tokio::task::yield_now().await;
        if cx.wants_progress() {
            panic!("a secret");
        }
        "no"
    };
    let server =
        builder().tool(tool("boom", boom)).tool(tool("late", late)).tool(tool("hi", hi)).build();
    let house = House::of(&server).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        for _ in 0..25 {
            for name in ["boom", "late"] {
                let params = json!({ "name": name, "_meta": { "progressToken": 1 } });
                let started = Instant::now();
                let answer = guest.call("tools/call", params).await;
                assert!(started.elapsed() < Duration::from_secs(2));
                assert_eq!(answer.message["error"]["code"], -32603, "{revision}: {answer:?}");
                assert!(!answer.message.to_string().contains("secret"));
            }
        }
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
    }
}

#[tokio::test]
async fn an_id_in_use_is_anothers_business_in_another_request() {
    // In 2026-07-28 each POST has an answer of its own, whatever its id.
    let (go, gate) = tokio::sync::watch::channel(false);
    let (enter, mut entered) = mpsc::unbounded_channel();
    let slow = move || {
        let (enter, mut gate) = (enter.clone(), gate.clone());
        async move {
            enter.send(()).unwrap();
            gate.wait_for(|open| *open).await.unwrap();
            "done"
        }
    };
    let server = builder().tool(tool("slow", slow)).build();
    let house = House::of(&server).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    let asked = guest.prepare("tools/call", json!({ "name": "slow" }));
    let mut lines = Vec::new();
    for _ in 0..3 {
        let mut line = Line::to(house.address).await;
        line.send(guest.text(&asked)).await;
        soon(entered.recv()).await.unwrap();
        lines.push(line);
    }
    // In a session it is a mistake of the second, and no harm to the first.
    let mut old = Guest::open(house.address, Revision::V2025_11_25).await;
    let asked_old = old.prepare("tools/call", json!({ "name": "slow" }));
    let mut first = Line::to(house.address).await;
    first.send(old.text(&asked_old)).await;
    soon(entered.recv()).await.unwrap();
    let (mut second, head) = old.post(&asked_old).await;
    assert_eq!(second.json().await["error"]["code"], -32600, "{head:?}");
    go.send(true).unwrap();
    for (guest, asked, mut line) in
        lines.into_iter().map(|it| (&guest, &asked, it)).chain([(&old, &asked_old, first)])
    {
        let head = line.head().await;
        let answer = guest.answer(asked, &mut line, head).await;
        assert_eq!(answer.message["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test]
async fn small_events_are_not_held_back() {
    // Without TCP_NODELAY each of these would wait for the client's kernel to acknowledge the one
    // before, which takes it 40 ms.
    const EVENTS: u32 = 100;
    let (go, gate) = mpsc::unbounded_channel();
    let gate = Arc::new(tokio::sync::Mutex::new(gate));
    let chatty = move |cx: Context| {
        let gate = Arc::clone(&gate);
        async move {
            let mut gate = gate.lock().await;
            for step in 1..=EVENTS {
                gate.recv().await;
                cx.progress(step.into(), EVENTS.into()).await;
            }
            "done"
        }
    };
    let server = builder().tool(tool("chatty", chatty)).build();
    let house = House::of(&server).await;
    for revision in STREAMABLE {
        let mut guest = Guest::open(house.address, revision).await;
        let params = json!({ "name": "chatty", "_meta": { "progressToken": 1 } });
        let asked = guest.prepare("tools/call", params);
        let mut line = Line::to(house.address).await;
        line.send(guest.text(&asked)).await;
        go.send(()).unwrap();
        assert!(line.head().await.is_events());
        let started = Instant::now();
        for _ in 1..EVENTS {
            line.message().await.unwrap();
            go.send(()).unwrap();
        }
        line.message().await.unwrap();
        let (_, answer) = line.message().await.unwrap();
        assert_eq!(answer["id"], asked["id"]);
        assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_server_of_one_era_sends_the_other_away() {
    let speaking = |revisions: &[Revision]| {
        let mut builder = builder().tool(tool("hi", hi));
        builder = builder.protocols(revisions.iter().copied().collect());
        builder.build()
    };
    let house = House::of(&speaking(&[NEWEST])).await;
    let mut guest = Guest::open(house.address, NEWEST).await;
    assert_eq!(guest.tool("hi", json!({})).await, "hi");
    for revision in LEGACY {
        let mut old = Guest::new(house.address, revision);
        let hello = old.hello();
        let refused = old.call("initialize", hello).await;
        assert_eq!(refused.head.status, 400, "{revision}");
        let error = &refused.message["error"];
        assert_eq!(
            (&error["code"], &error["data"]["supported"]),
            (&json!(-32022), &json!([NEWEST.as_str()]))
        );
        assert_eq!(old.get(None).await.1.status, 405);
        assert_eq!(old.delete().await.status, 405);
    }
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "GET /sse", &[("Accept", "text/event-stream")], "")).await;
    assert_eq!(line.head().await.status, 404);
    let house = House::of(&speaking(&LEGACY)).await;
    let mut newest = Guest::new(house.address, NEWEST);
    assert_eq!(newest.call("server/discover", json!({})).await.head.status, 400);
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
    }
}

#[tokio::test]
async fn a_page_that_was_let_in_may_ask_and_read() {
    let http = small().http().allow_origin("https://app.example.com");
    let house = House::with(http).await;
    let from = |origin: &str, line: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("Origin", origin)];
        headers.extend(more);
        request(house.address, line, &headers, "")
    };
    let preflight = [
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "mcp-method"),
    ];
    let mut line = Line::to(house.address).await;
    line.send(from("https://app.example.com", "OPTIONS /mcp", &preflight)).await;
    let head = line.head().await;
    assert_eq!(head.status, 204);
    assert_eq!(head.get("access-control-allow-origin"), Some("https://app.example.com"));
    assert_eq!(head.get("access-control-allow-headers"), Some("mcp-method"));
    assert!(head.get("access-control-allow-credentials").is_none());
    for origin in ["https://evil.example", "null", "https://app.example.com.evil.example"] {
        let mut line = Line::to(house.address).await;
        line.send(from(origin, "OPTIONS /mcp", &preflight)).await;
        let head = line.head().await;
        assert_eq!(head.status, 403, "{origin}");
        assert!(!head.headers.iter().any(|(name, _)| name.starts_with("access-control-")));
    }
    let mut guest = Guest::new(house.address, NEWEST);
    let asked = guest.prepare("tools/call", json!({ "name": "hi" }));
    let mut headers = guest.headers(&asked);
    headers.push(("Origin".to_owned(), "https://app.example.com".to_owned()));
    let mut line = Line::to(house.address).await;
    line.send(request(house.address, "POST /mcp", &headers, &asked.to_string())).await;
    let head = line.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.get("access-control-allow-origin"), Some("https://app.example.com"));
    assert!(
        head.get("access-control-expose-headers").is_some_and(|it| it.contains("Mcp-Session-Id"))
    );
}

#[tokio::test]
async fn a_new_reader_of_a_session_can_come_back_too() {
    // 2025-11-25: every stream begins with an id, also the second one.
    let house = House::of(&small()).await;
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    for _ in 0..3 {
        let (mut line, _) = guest.get(None).await;
        let first = tokio::time::timeout(Duration::from_secs(2), line.event()).await;
        let first = first.expect("it comes at once").unwrap();
        assert!(first.id.is_some() && first.data.is_empty(), "{first:?}");
    }
}
