//! Tower layers around the requests of a client.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tower::buffer::BufferLayer;
use tower::limit::{ConcurrencyLimitLayer, RateLimitLayer};
use tower::timeout::{TimeoutLayer, error::Elapsed};
use tower::util::MapRequestLayer;
use tower::{Layer, Service, layer::layer_fn, service_fn};
use trunkline::client::{CallError, Client, ClientRequest, Requests, Retry};
use trunkline::model::ToolAnnotations;
use trunkline::testing::{Transport, run};
use trunkline::{Context as Cx, RawJson, Server, tool};

use crate::client_peer::{Diary, ERAS, builder, open};

const TRANSPORTS: [Transport; 3] = [Transport::Memory, Transport::Stdio, Transport::Http];

fn hints(read_only: bool, idempotent: bool) -> ToolAnnotations {
    ToolAnnotations::new().read_only_hint(read_only).idempotent_hint(idempotent)
}

/// A server that counts its calls, and has a tool that never ends.
fn server(runs: &Arc<AtomicU32>) -> Server {
    let count = |text: &'static str| {
        let runs = Arc::clone(runs);
        move || {
            runs.fetch_add(1, SeqCst);
            async move { text }
        }
    };
    Server::builder("layers", "1.0.0")
        .tool(tool("read", count("read")).annotations(hints(true, false)))
        .tool(tool("put", count("put")).annotations(hints(false, true)))
        .tool(tool("post", count("posted")))
        .tool(tool("hang", async |_: Cx| -> String { std::future::pending().await }))
        .build()
}

#[test]
fn a_timeout_gives_the_call_up_on_the_wire() {
    for revision in ERAS {
        for transport in TRANSPORTS {
            let server = || server(&Arc::default());
            run(revision, transport, server, async |peer| {
                let layer = TimeoutLayer::new(Duration::from_millis(50));
                let client = peer.connect(Client::builder("test", "1").layer(layer)).await.unwrap();
                let error = client.call_tool("hang", ()).await.unwrap_err();
                let CallError::Layer(layer) = &error else { panic!("{error}") };
                assert!(layer.downcast_ref::<Elapsed>().is_some(), "{layer}");
                assert!(error.to_string().starts_with("A layer of this client"), "{error}");
                assert_eq!(client.list_tools().await.unwrap().len(), 4);
            });
        }
    }
}

#[tokio::test]
async fn a_call_that_a_layer_gave_up_is_cancelled_on_the_wire() {
    for revision in ERAS {
        let layer = TimeoutLayer::new(Duration::from_millis(30));
        let (client, mut peer) = open(builder().layer(layer), revision).await;
        let serve = async {
            let request = peer.expect("tools/call").await;
            let cancelled = peer.expect("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], request["id"]);
        };
        let (outcome, ()) = tokio::join!(client.call_tool("x", ()).into_future(), serve);
        assert!(matches!(outcome, Err(CallError::Layer(_))), "{revision}");
    }
}

#[tokio::test]
async fn a_limit_lets_so_many_through_at_a_time() {
    for revision in ERAS {
        let (client, mut peer) =
            open(builder().layer(ConcurrencyLimitLayer::new(1)), revision).await;
        let diary = Diary::default();
        let call = async |name: &'static str| {
            client.call_tool(name, ()).await.unwrap();
            diary.note(name);
        };
        let serve = async {
            for _ in 0..2 {
                // The second is not sent before the first is answered.
                let request = peer.expect("tools/call").await;
                diary.note(format!("asked {}", request["params"]["name"]));
                peer.reply(&request, json!({ "content": [] })).await;
            }
        };
        tokio::join!(call("a"), call("b"), serve);
        assert_eq!(diary.read(), ["asked \"a\"", "a", "asked \"b\"", "b"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_spreads_calls_over_time() {
    let (client, mut peer) = {
        let limit = tower::ServiceBuilder::new()
            .layer(BufferLayer::new(8))
            .layer(RateLimitLayer::new(1, Duration::from_secs(10)));
        open(builder().layer(limit), ERAS[0]).await
    };
    let start = tokio::time::Instant::now();
    let serve = async {
        for _ in 0..3 {
            let request = peer.expect("tools/call").await;
            peer.reply(&request, json!({ "content": [] })).await;
        }
    };
    let calls = async {
        for _ in 0..3 {
            client.call_tool("x", ()).await.unwrap();
        }
    };
    tokio::join!(calls, serve);
    assert!(start.elapsed() >= Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_layer_sees_the_request_and_may_add_to_it() {
    for revision in ERAS {
        let diary = Diary::default();
        let seen = diary.clone();
        let layer = MapRequestLayer::new(move |mut request: ClientRequest| {
            seen.note(format!("{} {:?} {}", request.method(), request.tool(), request.params()));
            assert_eq!(request.revision(), revision);
            assert_eq!(request.meta("mine").map(RawJson::get), Some("1"));
            request.set_meta(
                "traceparent",
                json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            );
            request
        });
        let (client, mut peer) = open(builder().layer(layer), revision).await;
        let serve = async {
            let request = peer.expect("tools/call").await;
            let meta = &request["params"]["_meta"];
            assert!(meta["traceparent"].as_str().unwrap().starts_with("00-0af"), "{meta}");
            assert_eq!(meta["mine"], 1);
            peer.reply(&request, json!({ "content": [] })).await;
        };
        let call = client.call_tool("book", json!({ "city": "Oslo" })).meta("mine", json!(1));
        tokio::join!(async { call.await.unwrap() }, serve);
        let expected =
            "tools/call Some(\"book\") {\"name\":\"book\",\"arguments\":{\"city\":\"Oslo\"}}";
        assert_eq!(diary.read(), [expected]);
    }
}

type Kind = fn(String) -> CallError;

/// Loses the answers to the first tool calls, like a bad network.
#[derive(Clone)]
struct Losing {
    inner: Requests,
    times: Arc<AtomicU32>,
    kind: Kind,
}

impl Service<ClientRequest> for Losing {
    type Response = RawJson;
    type Error = CallError;
    type Future = <Requests as Service<ClientRequest>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: ClientRequest) -> Self::Future {
        let left = |times: u32| times.checked_sub(1);
        if request.tool().is_some() && self.times.fetch_update(SeqCst, SeqCst, left).is_ok() {
            return Box::pin(ready(Err((self.kind)("the line went dead.".to_owned()))));
        }
        self.inner.call(request)
    }
}

fn losing(times: u32, kind: Kind) -> impl Layer<Requests, Service = Losing> {
    let times = Arc::new(AtomicU32::new(times));
    layer_fn(move |inner| Losing { inner, times: Arc::clone(&times), kind })
}

#[tokio::test]
async fn only_what_does_no_harm_is_called_again() {
    let cases: [(&str, u32, Kind, bool); 6] = [
        ("read", 2, CallError::Lost, true),
        ("put", 2, CallError::Lost, true),
        ("post", 1, CallError::Lost, false),
        // It never reached the server, so a retry is safe.
        ("post", 2, CallError::Unreachable, true),
        ("read", 3, CallError::Lost, false),
        ("post", 1, |_| CallError::TimedOut, false),
    ];
    for (name, losses, kind, is_repeated) in cases {
        let runs = Arc::default();
        let retry = Retry::new(2).pause(Duration::from_millis(1));
        // The call holds the only permit while the list is fetched for it.
        let client = Client::builder("test", "1")
            .layer(losing(losses, kind))
            .layer(retry)
            .layer(ConcurrencyLimitLayer::new(1))
            .connect_memory(&server(&runs))
            .await
            .unwrap();
        let outcome = client.call_tool(name, ()).await;
        assert_eq!(outcome.is_ok(), is_repeated, "{name} after {losses}: {outcome:?}");
        assert_eq!(runs.load(SeqCst), u32::from(is_repeated), "{name}");
    }
}

#[tokio::test]
async fn a_repetition_that_was_not_made_does_not_undo_what_was_made_before() {
    let times = Arc::new(AtomicU32::new(0));
    let tries = Arc::clone(&times);
    let layer = layer_fn(move |_: Requests| {
        let times = Arc::clone(&times);
        service_fn(move |_: ClientRequest| {
            let why = "cut.".to_owned();
            ready(Err::<RawJson, _>(match times.fetch_add(1, SeqCst) {
                0 => CallError::Lost(why),
                _ => CallError::Unreachable(why),
            }))
        })
    });
    let retry = Retry::new(2).pause(Duration::from_millis(1));
    let (client, _peer) = open(builder().layer(layer).layer(retry), ERAS[1]).await;
    let outcome = client.list_tools().await;
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    assert_eq!(tries.load(SeqCst), 3);
}

#[tokio::test]
async fn a_layer_that_answers_itself_needs_no_server() {
    let heard = Arc::new(Notify::new());
    let tell = Arc::clone(&heard);
    let layer = layer_fn(move |_: Requests| {
        let tell = Arc::clone(&tell);
        service_fn(move |_: ClientRequest| {
            tell.notify_one();
            ready(Ok::<_, CallError>(RawJson::of(&json!({ "tools": [] }))))
        })
    });
    let (client, _peer) = open(builder().layer(layer), ERAS[1]).await;
    assert_eq!(client.list_tools().await.unwrap(), []);
    heard.notified().await;
}
