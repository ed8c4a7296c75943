//! The server half of the SDK, in process: pages, deadlines, cancellation, listeners.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use trunkline::client::Framing;
use trunkline::server::{ServerBuilder, TaskBounds, ToolEntry};
use trunkline::transport::memory;
use trunkline::{Change, Context, Limits, Revision, Server, prompt, resource, template, tool};
use trunkline_testkit::peer::{PATIENCE, Peer};

pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A server under construction.
pub(crate) fn builder() -> ServerBuilder {
    Server::builder("test", "1")
}

/// Bounds under which every call that may be a task is one, however quick it is.
pub(crate) fn at_once() -> TaskBounds {
    TaskBounds { inline: Duration::ZERO, ..TaskBounds::default() }
}

/// A peer of `server` that has sent nothing yet.
pub(crate) fn meet(server: &Server, revision: Revision) -> Peer {
    let ((reader, writer), (far_reader, far_writer)) = memory::pair();
    let server = server.clone();
    tokio::spawn(async move { server.serve(far_reader, far_writer).await });
    Peer::new(reader, writer, Framing::Newline, revision)
}

/// A peer of `server` past the handshake.
pub(crate) async fn open(server: &Server, revision: Revision) -> Peer {
    let mut peer = meet(server, revision);
    peer.open().await;
    peer
}

/// A peer that does not read, with more notifications pending than its buffers hold.
pub(crate) async fn deafen(server: &Server, revision: Revision) -> Peer {
    let peer = open(server, revision).await;
    let flood = async {
        for _ in 0..4000 {
            server.changed(Change::Tools).await;
            tokio::task::yield_now().await;
        }
    };
    soon(flood).await;
    peer
}

/// The first text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("there is no text in {result}"))
}

/// Bounds a wait.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it is over in time")
}

/// Lets others work until it is so.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    soon(async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A handler that is given a counter, and the counter.
pub(crate) fn counted<F>(
    handler: impl Fn(Context, Arc<AtomicU32>) -> F,
) -> (Arc<AtomicU32>, impl Fn(Context) -> F) {
    let counter = Arc::new(AtomicU32::new(0));
    let own = Arc::clone(&counter);
    (counter, move |cx| handler(cx, Arc::clone(&own)))
}

/// A tool `slow` that tells when it begins, and is done when it is let.
pub(crate) fn slow() -> (ToolEntry, mpsc::UnboundedReceiver<()>, watch::Sender<bool>) {
    let (enter, entered) = mpsc::unbounded_channel();
    let (go, gate) = watch::channel(false);
    let slow = move |cx: Context| {
        let (enter, mut gate) = (enter.clone(), gate.clone());
        async move {
            cx.progress(1.0, 2.0).await;
            enter.send(()).unwrap();
            gate.wait_for(|open| *open).await.unwrap();
            "done"
        }
    };
    (tool("slow", slow), entered, go)
}

/// Signals when it is dropped.
struct Bell(Option<oneshot::Sender<()>>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.take().map(|bell| bell.send(()));
    }
}

/// A tool that never ends, with signals for its start and its drop.
pub(crate) fn never(name: &str) -> (ToolEntry, Arc<Notify>, oneshot::Receiver<()>) {
    let (ring, rung) = oneshot::channel();
    let bell = std::sync::Mutex::new(Some(Bell(Some(ring))));
    let begun = Arc::new(Notify::new());
    let begins = Arc::clone(&begun);
    let never = move || {
        let (bell, begins) = (bell.lock().unwrap().take(), Arc::clone(&begins));
        async move {
            let _bell = bell;
            begins.notify_one();
            pending::<()>().await;
        }
    };
    (tool(name, never), begun, rung)
}

/// A server with one tool that never ends, and a signal for its drop.
fn endless(limits: Limits) -> (Server, oneshot::Receiver<()>) {
    let (never, _, rung) = never("never");
    let server = builder().limits(limits).tool(never).tool(tool("now", now)).build();
    (server, rung)
}

async fn now() -> &'static str {
    "now"
}

#[tokio::test]
async fn an_array_is_no_object_wherever_one_is_wanted() {
    let server = builder().tool(tool("now", now)).build();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        for arguments in [json!(["x"]), json!("x"), json!(1)] {
            let params = json!({ "name": "now", "arguments": arguments });
            let code = peer.call_unchecked("tools/call", params).await.unwrap_err()["code"].clone();
            assert_eq!(code, -32602, "{arguments} in {revision}");
        }
    }
}

#[tokio::test]
async fn pages_cover_a_list_once_and_in_order() {
    let mut server = builder().page_size(3);
    for at in 0..8 {
        server = server
            .tool(tool(format!("tool-{at}"), now))
            .prompt(prompt(format!("prompt-{at}"), async || "hello".to_owned()))
            .resource(resource(format!("test://{at}"), format!("resource-{at}"), now))
            .template(template(format!("test://{at}/{{name}}"), format!("template-{at}"), now));
    }
    let server = server.build();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        for (method, list, prefix) in [
            ("tools/list", "tools", "tool"),
            ("prompts/list", "prompts", "prompt"),
            ("resources/list", "resources", "resource"),
            ("resources/templates/list", "resourceTemplates", "template"),
        ] {
            let (mut found, mut params, mut sizes) = (Vec::new(), json!({}), Vec::new());
            loop {
                let page = peer.expect(method, params).await;
                let items = page[list].as_array().unwrap();
                sizes.push(items.len());
                found.extend(items.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
                match page.get("nextCursor") {
                    Some(cursor) => params = json!({ "cursor": cursor }),
                    None => break,
                }
            }
            let expected: Vec<_> = (0..8).map(|at| format!("{prefix}-{at}")).collect();
            assert_eq!((found, sizes), (expected, vec![3, 3, 2]), "{method} in {revision}");
        }
    }
}

#[tokio::test]
async fn a_handler_that_never_ends_is_given_up_at_its_deadline() {
    for revision in ERAS {
        let limit = Duration::from_millis(200);
        let (server, dropped) = endless(Limits::default().call_deadline(limit));
        let mut peer = open(&server, revision).await;
        let started = Instant::now();
        let error = peer.call("tools/call", json!({ "name": "never" })).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("timeout")));
        assert!(started.elapsed() >= limit);
        soon(dropped).await.expect("its handler is dropped");
        assert_eq!(text(&peer.tool("now", json!({})).await), "now");
    }
}

#[tokio::test]
async fn progress_keeps_a_call_alive_but_not_for_ever() {
    async fn busy(cx: Context) {
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        let mut step = 0.0;
        loop {
            pace.tick().await;
            step += 1.0;
            cx.progress(step, 1e9).await;
        }
    }
    for revision in ERAS {
        let (idle, hard) = (Duration::from_millis(300), Duration::from_millis(900));
        let limits = Limits::default().call_deadline(idle).hard_deadline(hard);
        let server = builder().limits(limits).tool(tool("busy", busy)).build();
        let mut peer = open(&server, revision).await;
        let started = Instant::now();
        let params = json!({ "name": "busy", "_meta": { "progressToken": 1 } });
        let error = peer.call("tools/call", params).await.unwrap_err();
        assert_eq!(error["data"]["reason"], "timeout");
        assert!(started.elapsed() >= hard, "{:?}", started.elapsed());
        let steps = peer.heard.iter().filter(|it| it["method"] == "notifications/progress");
        let steps: Vec<_> = steps.map(|it| it["params"]["progress"].as_f64().unwrap()).collect();
        assert!(steps.len() > 1 && steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    }
}

#[tokio::test]
async fn a_cancelled_handler_is_dropped_and_so_told_is_what_it_spawned() {
    for revision in ERAS {
        let (tell, told) = oneshot::channel();
        let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
        let spawning = move |cx: Context| {
            let tell = tell.lock().unwrap().take();
            async move {
                tokio::spawn(async move {
                    cx.cancelled().await;
                    let was_told = tell.map(|it| it.send(cx.is_cancelled()));
                    assert_eq!(was_told, Some(Ok(())));
                });
                pending::<()>().await;
            }
        };
        let server = builder().tool(tool("spawning", spawning)).tool(tool("now", now)).build();
        let mut peer = open(&server, revision).await;
        let id = peer.request("tools/call", json!({ "name": "spawning" })).await;
        peer.cancel(&id).await;
        assert_eq!(soon(told).await, Ok(true));
        let before = peer.heard.len();
        peer.tool("now", json!({})).await;
        assert_eq!(peer.heard.len(), before + 1, "the cancelled call is silent");
    }
}

#[tokio::test]
async fn a_peer_that_hangs_up_stops_what_never_ends() {
    for revision in ERAS {
        let (server, dropped) = endless(Limits::default().drain(Duration::from_millis(50)));
        let mut peer = open(&server, revision).await;
        peer.request("tools/call", json!({ "name": "never" })).await;
        peer.hang_up().await;
        assert_eq!(peer.try_next().await, None);
        soon(dropped).await.expect("its handler is dropped");
    }
}

#[tokio::test]
async fn a_panic_on_any_path_is_one_answer() {
    fn at_once() -> std::future::Ready<&'static str> {
        panic!("before there is a future")
    }
    async fn later() -> &'static str {
        tokio::task::yield_now().await;
        panic!("after having been put aside")
    }
    let server = builder()
        .tool(tool("at_once", at_once))
        .tool(tool("later", later))
        .prompt(prompt("later", async || -> String { later().await.to_owned() }))
        .resource(resource("test://later", "later", later))
        .build();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        for name in ["at_once", "later"] {
            assert_eq!(peer.tool(name, json!({})).await["isError"], true, "{name} in {revision}");
        }
        for (method, params) in [
            ("prompts/get", json!({ "name": "later" })),
            ("resources/read", json!({ "uri": "test://later" })),
        ] {
            let error = peer.call(method, params).await.unwrap_err();
            assert_eq!(
                (&error["code"], &error["data"]["reason"]),
                (&json!(-32603), &json!("panic"))
            );
        }
        peer.expect("tools/list", json!({})).await;
    }
}

#[tokio::test]
async fn every_listener_hears_of_a_change_in_its_own_way() {
    let server = builder().tool(tool("now", now)).build();
    let mut old = open(&server, Revision::V2024_11_05).await;
    let mut new = open(&server, Revision::V2026_07_28).await;
    let mut deaf = open(&server, Revision::V2026_07_28).await;
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let id = new.request("subscriptions/listen", filter).await;
    new.next().await;
    server.changed(Change::Tools).await;
    assert_eq!(old.next().await["method"], "notifications/tools/list_changed");
    let heard = new.next().await;
    assert_eq!(heard["method"], "notifications/tools/list_changed");
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    let before = deaf.heard.len();
    deaf.tool("now", json!({})).await;
    assert_eq!(deaf.heard.len(), before + 1, "who did not subscribe hears nothing");
}

#[tokio::test]
async fn a_peer_that_does_not_read_holds_up_nobody_and_misses_no_list() {
    let limits = Limits::default().queue(1).unsent_bytes(1);
    let hello = async || "hello".to_owned();
    let server =
        builder().limits(limits).tool(tool("now", now)).prompt(prompt("hello", hello)).build();
    let mut deaf = deafen(&server, Revision::V2025_11_25).await;
    let mut lively = open(&server, Revision::V2025_11_25).await;
    assert_eq!(text(&lively.tool("now", json!({})).await), "now");
    soon(server.changed(Change::Prompts)).await;
    assert_eq!(lively.next().await["method"], "notifications/prompts/list_changed");
    let mut told = 0;
    while deaf.next().await["method"] != "notifications/prompts/list_changed" {
        told += 1;
    }
    assert!((1..4000).contains(&told), "what waits is merged: {told}");
    soon(server.changed(Change::Tools)).await;
    assert_eq!(deaf.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn many_peers_of_many_revisions_share_one_server() {
    let count = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&count);
    let count_up = move || {
        let count = counter.fetch_add(1, SeqCst) + 1;
        async move { count.to_string() }
    };
    let server = builder().tool(tool("count", count_up)).build();
    let mut peers = Vec::new();
    for at in 0..20 {
        peers.push(open(&server, Revision::ALL[at % 5]).await);
    }
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        for peer in &mut peers {
            seen.insert(text(&peer.tool("count", json!({})).await).parse::<u32>().unwrap());
        }
    }
    assert_eq!(seen, (1..=100).collect());
    assert_eq!(count.load(SeqCst), 100);
}
