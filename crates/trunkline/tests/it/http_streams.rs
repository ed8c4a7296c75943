//! Streams over a real socket: what is sent where, and how each begins and ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use trunkline::{Change, Context, Form, Revision, ToolError, tool};
use trunkline_testkit::http::{Event, Guest, Line, request};

use crate::http::{House, steps};
use crate::http_ends::endless;
use crate::http_server::{LEGACY, NEWEST, STREAMABLE, small};
use crate::server::{builder, slow, soon};

/// A guest that reads the stream of its session.
async fn reading(house: &House, revision: Revision) -> (Guest, Line) {
    let guest = Guest::open(house.address, revision).await;
    let (line, _) = guest.get(None).await;
    (guest, line)
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
    // The next event is the next change.
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
        let (guest, mut first) = reading(&house, revision).await;
        server.changed(Change::Tools).await;
        let (seen, _) = first.message().await.unwrap();
        let (mut second, _) = guest.get(None).await;
        let replaced = Instant::now();
        assert_eq!(first.message().await.map(|it| it.0), None, "{revision}");
        assert!(
            replaced.elapsed() < Duration::from_secs(5),
            "at once, not at the next sign of life"
        );
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
        let (mut guest, mut general) = reading(&house, revision).await;
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

#[derive(Form)]
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
        let (mut guest, mut general) = reading(&house, revision).await;
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
        // Not from another session, even if it knows the id.
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

/// The old stream, and the URL to post to.
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
        // An invalid message is refused in the response to its POST.
        assert_eq!(post_old(&house, &to, &json!("x")).await, 400);
        // The session ends with its stream, and so do its calls.
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
    // One that asks for nothing, and one that has disconnected.
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
async fn small_events_are_not_held_back() {
    // Without TCP_NODELAY each of these would wait for the client's delayed acknowledgement of the
    // one before, which takes 40 ms.
    const EVENTS: u32 = 100;
    let (go, gate) = mpsc::unbounded_channel();
    let gate = Arc::new(tokio::sync::Mutex::new(gate));
    let chatty = move |cx: Context| {
        let gate = Arc::clone(&gate);
        async move {
            let mut gate = gate.lock().await;
            for step in 1..=EVENTS {
                gate.recv().await;
                cx.progress(step, EVENTS).await;
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
async fn a_new_reader_of_a_session_can_come_back_too() {
    // 2025-11-25: every stream begins with an id, the second one too.
    let house = House::of(&small()).await;
    let guest = Guest::open(house.address, Revision::V2025_11_25).await;
    for _ in 0..3 {
        let (mut line, _) = guest.get(None).await;
        let first = tokio::time::timeout(Duration::from_secs(2), line.event()).await;
        let first = first.expect("it comes at once").unwrap();
        assert!(first.id.is_some() && first.data.is_empty(), "{first:?}");
    }
}

#[tokio::test]
async fn the_old_pair_answers_what_is_in_flight_before_the_server_ends() {
    let (slow, mut entered, go) = slow();
    let server = builder().tool(slow).build();
    let mut house = House::of(&server).await;
    let mut guest = Guest::new(house.address, Revision::V2024_11_05);
    let (mut line, to) = old(&house).await;
    let hello = guest.prepare("initialize", guest.hello());
    assert_eq!(post_old(&house, &to, &hello).await, 202);
    line.message().await.unwrap();
    let asked = guest.prepare("tools/call", json!({ "name": "slow" }));
    assert_eq!(post_old(&house, &to, &asked).await, 202);
    soon(entered.recv()).await.unwrap();
    house.close();
    go.send(true).unwrap();
    let (_, answer) = line.message().await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    assert!(line.event().await.is_none(), "then the stream ends, and with it the session");
    house.ended().await;
}
