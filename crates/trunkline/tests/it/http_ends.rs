//! How calls and servers end: by a disconnect, a cancellation, a panic, a shutdown.

use std::future::pending;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use trunkline::{Context, Limits, Revision, Server, tool};
use trunkline_testkit::http::{Guest, Line};

use crate::http::{House, speaking};
use crate::http_server::{LEGACY, NEWEST, STREAMABLE, hi};
use crate::server::{builder, slow, soon};

/// Signals when it is dropped.
struct Bell(mpsc::UnboundedSender<&'static str>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// A server with a tool that sends something if asked to, and then never ends.
pub(crate) fn endless() -> (Server, mpsc::UnboundedReceiver<&'static str>) {
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

async fn endless_house() -> (House, mpsc::UnboundedReceiver<&'static str>) {
    let (server, rung) = endless();
    (House::of(&server).await, rung)
}

/// Calls the tool that never ends, and hears that it runs: what was asked, and the line that waits.
async fn running(
    guest: &mut Guest,
    rung: &mut mpsc::UnboundedReceiver<&'static str>,
) -> (Value, Line) {
    let (asked, line, _) = speaking(guest, "never").await;
    assert_eq!(soon(rung.recv()).await, Some("running"));
    (asked, line)
}

fn cancelling(asked: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": asked["id"] },
    })
}

#[tokio::test]
async fn hanging_up_is_cancelling_in_the_newest_revision() {
    let (house, mut rung) = endless_house().await;
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
    let (house, mut rung) = endless_house().await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let (asked, line) = running(&mut guest, &mut rung).await;
        drop(line);
        // The server has seen the disconnect once it has processed these later requests.
        for _ in 0..20 {
            guest.tool("hi", json!({})).await;
        }
        assert_eq!(rung.try_recv(), Err(mpsc::error::TryRecvError::Empty), "{revision}");
        assert_eq!(guest.post(&cancelling(&asked)).await.1.status, 202);
        assert_eq!(soon(rung.recv()).await, Some("dropped"), "{revision}");
    }
}

#[tokio::test]
async fn the_end_of_a_session_stops_its_work() {
    let (house, mut rung) = endless_house().await;
    for revision in LEGACY {
        let mut guest = Guest::open(house.address, revision).await;
        let (_, mut line) = running(&mut guest, &mut rung).await;
        assert_eq!(guest.delete().await.status, 204);
        assert_eq!(soon(rung.recv()).await, Some("dropped"), "{revision}");
        assert_eq!(line.message().await.map(|it| it.1), None, "{revision}");
    }
}

#[tokio::test]
async fn nobody_cancels_the_call_of_another() {
    let (house, mut rung) = endless_house().await;
    let mut victim = Guest::open(house.address, Revision::V2025_11_25).await;
    let (asked, _line) = running(&mut victim, &mut rung).await;
    let cancel = cancelling(&asked);
    let mut other = Guest::open(house.address, Revision::V2025_11_25).await;
    assert_eq!(other.post(&cancel).await.1.status, 202);
    let newest = Guest::open(house.address, NEWEST).await;
    assert_eq!(newest.post(&cancel).await.1.status, 202);
    other.tool("hi", json!({})).await;
    assert_eq!(rung.try_recv(), Err(mpsc::error::TryRecvError::Empty));
    assert_eq!(victim.post(&cancel).await.1.status, 202);
    assert_eq!(soon(rung.recv()).await, Some("dropped"));
}

#[tokio::test]
async fn work_without_a_session_outlives_its_client_before_the_newest_revision() {
    let (server, mut rung) = endless();
    let house = House::with(server.http().stateless()).await;
    let mut guest = Guest::open(house.address, Revision::V2025_11_25).await;
    drop(running(&mut guest, &mut rung).await);
    for _ in 0..20 {
        guest.tool("hi", json!({})).await;
    }
    assert_eq!(rung.try_recv(), Err(mpsc::error::TryRecvError::Empty));
}

#[tokio::test]
async fn what_is_in_flight_is_answered_before_the_server_ends() {
    let (slow, mut entered, go) = slow();
    let limits = Limits::default().in_flight(200);
    let server = builder().limits(limits).tool(slow).build();
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
    // Endless streams and idle connections end at once.
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
                assert_eq!(answer.message["result"]["isError"], true, "{revision}: {answer:?}");
                assert!(!answer.message.to_string().contains("secret"));
            }
        }
        assert_eq!(guest.tool("hi", json!({})).await, "hi");
    }
}

#[tokio::test]
async fn an_id_in_use_is_anothers_business_in_another_request() {
    // In 2026-07-28 each POST has its own answer, whatever its id.
    let (slow, mut entered, go) = slow();
    let server = builder().tool(slow).build();
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
    // In a session the second is refused, and the first is unaffected.
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
