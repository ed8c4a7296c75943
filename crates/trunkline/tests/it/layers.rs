//! tower layers around servers and tools: tower's own, a custom one, and what their errors become.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tower::buffer::BufferLayer;
use tower::limit::{ConcurrencyLimitLayer, RateLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::timeout::TimeoutLayer;
use tower::{BoxError, ServiceBuilder, service_fn};
use trunkline::layer::{Calls, Layer, ServerRequest, ServerResponse, Service};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{
    Args, Client, Context, ErrorObject, Extension, Form, Principal, Revision, Server, ToolError,
    prompt, resource, tool,
};

use crate::client_peer::Diary;
use crate::server::{ERAS, never, open, soon, text};

/// Records every call and its answer.
#[derive(Clone)]
struct Log(&'static str, Diary);

#[derive(Clone)]
struct Logging<S>(S, Log);

impl<S> Layer<S> for Log {
    type Service = Logging<S>;

    fn layer(&self, inner: S) -> Logging<S> {
        Logging(inner, self.clone())
    }
}

impl<S> Service<ServerRequest> for Logging<S>
where
    S: Service<ServerRequest, Response = ServerResponse>,
    S::Future: Send + 'static,
{
    type Response = ServerResponse;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServerResponse, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: ServerRequest) -> Self::Future {
        let Log(name, diary) = self.1.clone();
        diary.note(format!("{name} > {} {}", request.method(), request.name().unwrap_or_default()));
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let what = match (answer.is_question(), answer.is_error()) {
                (true, _) => "question",
                (_, true) => "error",
                _ => "result",
            };
            diary.note(format!("{name} < {what}"));
            Ok(answer)
        })
    }
}

/// Changes each request, or fails instead.
fn before<E: Into<BoxError> + 'static>(
    check: impl Fn(&mut ServerRequest) -> Result<(), E> + Clone + Send + Sync + 'static,
) -> impl Layer<
    Calls,
    Service = impl Service<
        ServerRequest,
        Response = ServerResponse,
        Error = BoxError,
        Future = impl Send + 'static,
    > + Send
              + 'static,
> {
    tower::layer::layer_fn(move |calls: Calls| {
        let check = check.clone();
        service_fn(move |mut request: ServerRequest| {
            let (check, mut calls) = (check.clone(), calls);
            async move {
                check(&mut request).map_err(Into::into)?;
                calls.call(request).await
            }
        })
    })
}

async fn hello() -> String {
    "hello".to_owned()
}

fn server() -> trunkline::server::ServerBuilder {
    Server::builder("layered", "1").tool(tool("hello", hello))
}

#[tokio::test]
async fn layers_see_every_call_from_the_outside_in() {
    for revision in ERAS {
        let diary = Diary::default();
        let log = |name| Log(name, diary.clone());
        let server = server()
            .tool(tool("deep", hello).layer(log("inmost")).layer(log("tool")))
            .prompt(prompt("p", hello))
            .resource(resource("test://r", "r", hello))
            .layer(log("server"))
            .layer(log("outmost"))
            .build();
        let mut peer = open(&server, revision).await;
        peer.expect("tools/list", json!({})).await;
        let seen = |lines: &[&str]| {
            assert_eq!(diary.read(), lines, "{revision}");
            diary.clear();
        };
        seen(&[
            "outmost > tools/list ",
            "server > tools/list ",
            "server < result",
            "outmost < result",
        ]);
        assert_eq!(text(&peer.tool("deep", json!({})).await), "hello");
        seen(&[
            "outmost > tools/call deep",
            "server > tools/call deep",
            "tool > tools/call deep",
            "inmost > tools/call deep",
            "inmost < result",
            "tool < result",
            "server < result",
            "outmost < result",
        ]);
        peer.expect("prompts/get", json!({ "name": "p" })).await;
        peer.expect("resources/read", json!({ "uri": "test://r" })).await;
        peer.call("tools/call", json!({ "name": "none" })).await.unwrap_err();
        assert_eq!(diary.read().iter().filter(|it| it.starts_with("outmost")).count(), 6);
        assert_eq!(diary.read().last().unwrap(), "outmost < error");
    }
}

#[derive(Deserialize, JsonSchema, Form)]
struct Name {
    name: String,
}

#[tokio::test]
async fn a_layer_sees_each_round_of_a_call_that_asks_once() {
    let ask = async |cx: Context| -> Result<String, ToolError> {
        let one = cx.ask::<Name>("One?").await?.accepted()?.name;
        let two = cx.ask::<Name>("Two?").await?.accepted()?.name;
        Ok(format!("{one} {two}"))
    };
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let diary = Diary::default();
        let layers = ServiceBuilder::new()
            .layer(TimeoutLayer::new(Duration::from_secs(60)))
            .layer(Log("log", diary.clone()))
            .concurrency_limit(1);
        let server = server().tool(tool("ask", ask).layer(layers)).build();
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("ask", json!({})).await), "Ada Ada", "{revision}");
        let answers: Vec<_> = diary.read().into_iter().filter(|it| it.contains('<')).collect();
        match peer.is_stateless() {
            true => assert_eq!(answers, ["log < question", "log < question", "log < result"]),
            false => assert_eq!(answers, ["log < result"]),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_dropped_and_the_model_reads_why() {
    for revision in ERAS {
        let (slow, _, rung) = never("slow");
        let limit = || TimeoutLayer::new(Duration::from_secs(5));
        let slow_prompt = prompt("slow", async || {
            pending::<()>().await;
            String::new()
        });
        let server = server().tool(slow).prompt(slow_prompt).layer(limit()).build();
        let mut peer = open(&server, revision).await;
        let result = peer.expect("tools/call", json!({ "name": "slow" })).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).starts_with("The tool took longer than the server allows."));
        rung.await.unwrap();
        let error = peer.call("prompts/get", json!({ "name": "slow" })).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("timeout")));
        assert_eq!(text(&peer.tool("hello", json!({})).await), "hello");
    }
}

#[tokio::test]
async fn dropping_a_call_drops_its_handler_under_layers() {
    for revision in ERAS {
        let (never, begun, rung) = never("never");
        let layers = ServiceBuilder::new().buffer(4).concurrency_limit(2);
        let server = server().tool(never.layer(layers)).layer(LoadShedLayer::new());
        let server = server.build();
        let mut peer = open(&server, revision).await;
        let id = peer.request("tools/call", json!({ "name": "never" })).await;
        soon(begun.notified()).await;
        peer.cancel(&id).await;
        soon(rung).await.unwrap();
        assert_eq!(text(&peer.tool("hello", json!({})).await), "hello");
    }
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_the_limit_allows() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, highest) = (Arc::clone(&now), Arc::clone(&most));
    let gate = Arc::new(Semaphore::new(0));
    let door = Arc::clone(&gate);
    let work = move || {
        let (running, highest, door) =
            (Arc::clone(&running), Arc::clone(&highest), Arc::clone(&door));
        async move {
            highest.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            door.acquire().await.unwrap().forget();
            running.fetch_sub(1, SeqCst);
        }
    };
    let work = tool("work", work).layer(ConcurrencyLimitLayer::new(2));
    let server = server().tool(work).build();
    let client = Client::in_memory(&server).await.unwrap();
    let calls: Vec<_> =
        (0..6).map(|_| tokio::spawn(client.call_tool("work", ()).into_future())).collect();
    for _ in 0..6 {
        // Waiting calls do not block others.
        client.call_tool("hello", ()).await.unwrap();
        gate.add_permits(1);
    }
    for call in calls {
        assert!(!soon(call).await.unwrap().unwrap().is_error());
    }
    assert_eq!((most.load(SeqCst), now.load(SeqCst)), (2, 0));
}

#[tokio::test]
async fn a_server_that_sheds_load_says_that_it_is_overloaded() {
    let gate = Arc::new(Notify::new());
    let (begun, go) = (Arc::new(Notify::new()), Arc::clone(&gate));
    let begins = Arc::clone(&begun);
    let work = move || {
        let (begins, go) = (Arc::clone(&begins), Arc::clone(&go));
        async move {
            begins.notify_one();
            go.notified().await;
        }
    };
    let layers = ServiceBuilder::new().load_shed().concurrency_limit(1);
    let server = server().tool(tool("work", work).layer(layers)).build();
    let mut first = open(&server, Revision::V2026_07_28).await;
    let mut second = open(&server, Revision::V2025_11_25).await;
    let id = first.request("tools/call", json!({ "name": "work" })).await;
    soon(begun.notified()).await;
    let error = second.call("tools/call", json!({ "name": "work" })).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("overloaded")));
    gate.notify_one();
    first.answer_to(&id).await.unwrap();
    gate.notify_one();
    second.tool("work", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_delays_calls_with_and_without_a_buffer() {
    let rate = || RateLimitLayer::new(2, Duration::from_secs(10));
    let plain = tool("plain", hello).layer(rate());
    let buffered = ServiceBuilder::new().layer(BufferLayer::new(8)).layer(rate());
    let server = server().tool(plain).tool(tool("buffered", hello).layer(buffered)).build();
    for name in ["plain", "buffered"] {
        let mut peer = open(&server, Revision::V2026_07_28).await;
        let begin = tokio::time::Instant::now();
        for _ in 0..5 {
            peer.tool(name, json!({})).await;
        }
        let took = begin.elapsed().as_secs();
        assert!((20..22).contains(&took), "{name} took {took} s");
    }
}

#[tokio::test]
async fn handlers_take_what_layers_add() {
    #[derive(Clone)]
    struct Tenant(&'static str);
    let who = async |Extension(tenant): Extension<Tenant>, caller: Principal| {
        format!("{} of {}", caller.subject, tenant.0)
    };
    let for_admins =
        tool("admin", hello).visible(|it| it.principal().is_some_and(|it| it.may("admin")));
    let let_in = before(|request: &mut ServerRequest| {
        request.insert(Tenant("Acme"));
        request.insert(Principal::new("ada").scope("admin"));
        Ok::<_, Infallible>(())
    });
    let shout = before(|request: &mut ServerRequest| {
        // A value of an outer layer is there.
        assert_eq!(request.extension::<Tenant>().unwrap().0, "Acme");
        assert_eq!(request.principal().unwrap().subject, "ada");
        assert_eq!(request.param("arguments").unwrap().get(), r#"{"name":"ada"}"#);
        request.set_param("arguments", json!({ "name": "ADA" }));
        Ok::<_, Infallible>(())
    });
    let echo = async |Args(it): Args<Name>| it.name;
    let server = server()
        .tool(tool("who", who))
        .tool(for_admins)
        .tool(tool("echo", echo).layer(shout))
        .layer(let_in)
        .build();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("who", json!({})).await), "ada of Acme", "{revision}");
        assert_eq!(text(&peer.tool("admin", json!({})).await), "hello");
        assert_eq!(text(&peer.tool("echo", json!({ "name": "ada" })).await), "ADA");
    }
}

#[derive(Debug)]
struct Secret;

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the password is 1234")
    }
}

impl std::error::Error for Secret {}

/// The answers to a tool call and to a prompt, under a layer that fails with this error.
async fn failing(error: fn() -> BoxError, is_buffered: bool) -> [Result<Value, Value>; 2] {
    let fails = before(move |request: &mut ServerRequest| match request.method() {
        "tools/call" | "prompts/get" => Err(error()),
        _ => Ok(()),
    });
    let server = server().prompt(prompt("p", hello)).layer(fails);
    let server = match is_buffered {
        true => server.layer(BufferLayer::new(4)).build(),
        false => server.build(),
    };
    let mut peer = open(&server, Revision::V2026_07_28).await;
    [
        peer.call("tools/call", json!({ "name": "hello" })).await,
        peer.call("prompts/get", json!({ "name": "p" })).await,
    ]
}

#[tokio::test]
async fn errors_of_layers_tell_what_they_should_and_no_more() {
    for is_buffered in [false, true] {
        let [tool, prompt] = failing(|| Secret.into(), is_buffered).await;
        let tool = tool.unwrap();
        assert_eq!(tool["isError"], true);
        assert!(text(&tool).contains("has been logged") && !tool.to_string().contains("1234"));
        let prompt = prompt.unwrap_err();
        assert_eq!(prompt["code"], -32603);
        assert!(!prompt.to_string().contains("1234"), "{prompt}");

        let closed =
            || ToolError::new("We are closed.").with_data(json!({ "until": 9 })).into_error();
        let [tool, prompt] = failing(closed, is_buffered).await;
        let tool = tool.unwrap();
        assert_eq!((text(&tool), &tool["isError"]), ("We are closed.", &json!(true)));
        assert_eq!(tool["structuredContent"]["until"], 9);
        assert_eq!(prompt.unwrap_err()["message"], "We are closed.");

        let refused = || ErrorObject::new(4099, "Not today.").into();
        for answer in failing(refused, is_buffered).await {
            let error = answer.unwrap_err();
            assert_eq!((&error["code"], &error["message"]), (&json!(4099), &json!("Not today.")));
        }
    }
}

#[tokio::test]
async fn a_panic_in_a_layer_is_an_answer_and_the_next_call_goes_through() {
    let panics = before(|request: &mut ServerRequest| -> Result<(), Infallible> {
        assert!(request.name().as_deref() != Some("hello"), "a layer panics");
        Ok(())
    });
    let server = server().tool(tool("fine", hello)).layer(panics).build();
    let mut peer = open(&server, Revision::V2026_07_28).await;
    let error = peer.call("tools/call", json!({ "name": "hello" })).await.unwrap_err();
    assert_eq!(error["data"]["reason"], "panic");
    assert_eq!(text(&peer.tool("fine", json!({})).await), "hello");
}

#[tokio::test]
async fn the_layers_of_a_mounted_server_are_around_its_own_things_only() {
    let diary = Diary::default();
    let log = |name| Log(name, diary.clone());
    let inner = Server::builder("inner", "1")
        .tool(tool("deep", hello).layer(log("tool")))
        .prompt(prompt("p", hello))
        .resource(resource("test://r", "r", hello))
        .layer(log("inner"))
        .build();
    let outer = server().mount("in", inner).layer(log("outer")).build();
    let mut peer = open(&outer, Revision::V2026_07_28).await;
    peer.tool("hello", json!({})).await;
    assert_eq!(diary.read(), ["outer > tools/call hello", "outer < result"]);
    diary.clear();
    peer.tool("in.deep", json!({})).await;
    let begins: Vec<_> = diary.read().into_iter().filter(|it| it.contains('>')).collect();
    let expected =
        ["outer > tools/call in.deep", "inner > tools/call in.deep", "tool > tools/call in.deep"];
    assert_eq!(begins, expected);
    diary.clear();
    peer.expect("prompts/get", json!({ "name": "in.p" })).await;
    peer.expect("resources/read", json!({ "uri": "test://r" })).await;
    assert_eq!(diary.read().iter().filter(|it| it.starts_with("inner >")).count(), 2);
}
