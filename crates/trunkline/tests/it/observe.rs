//! Observed calls: spans, traces and metrics, on both sides, in both eras, over memory and HTTP.

mod recorder;

use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use trunkline::client::{CallError, Client, ClientBuilder, ToolCall};
use trunkline::observe::{ErrorType, Meter, Metrics, Operation, Role, Transport};
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::{ServerBuilder, Task};
use trunkline::{
    Args, Context, Revision, Secret, Server, State, ToolError, TraceContext, Uri, prompt, resource,
    template, tool,
};

use crate::http::House;
use crate::server::{ERAS, builder, soon};
use recorder::Recorder;

const SENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TestTransport {
    Memory,
    Http,
}

const TRANSPORTS: [TestTransport; 2] = [TestTransport::Memory, TestTransport::Http];

fn everywhere() -> impl Iterator<Item = (Revision, TestTransport)> {
    ERAS.into_iter().flat_map(|revision| TRANSPORTS.map(|transport| (revision, transport)))
}

fn client() -> ClientBuilder {
    Client::builder("test", "1")
}

async fn join(
    server: &Server,
    client: ClientBuilder,
    revision: Revision,
    transport: TestTransport,
) -> (Client, Option<House>) {
    let client = client.protocol(revision);
    match transport {
        TestTransport::Memory => (client.connect_memory(server).await.unwrap(), None),
        TestTransport::Http => {
            let house = House::of(server).await;
            let url = format!("http://{}/mcp", house.address);
            (client.connect_http(url).await.unwrap(), Some(house))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "trunkline::serde")]
#[schemars(crate = "trunkline::schemars")]
struct Login {
    password: String,
    key: Option<Secret<String>>,
}

fn greeter() -> ServerBuilder {
    builder()
        .tool(tool("greet", async || {
            tracing::info!(step = 1, "greeting");
            tokio::task::yield_now().await;
            tracing::info!(step = 2, "greeted");
            "the result"
        }))
        .tool(tool("login", async |Args(it): Args<Login>| {
            tracing::info!(key = ?it.key, "logging in");
            let key = it.key.map(|it| it.expose().to_owned());
            format!("{}{}", it.password, key.unwrap_or_default())
        }))
        .tool(tool("fail", async || Err::<(), _>(ToolError::new("It is raining."))))
        .tool(tool("burst", async |_: Context| {
            tokio::task::yield_now().await;
            if true {
                panic!("as it should")
            }
        }))
        .prompt(prompt("hello", async || "Hello".to_owned()))
        .resource(resource("test://fixed", "fixed", async || "fixed"))
        .template(template("test://{user}/key", "key", async |Uri(uri): Uri| uri))
}

/// A client of the greeter, before which nothing is recorded.
async fn greeted(
    recorder: &Recorder,
    revision: Revision,
    transport: TestTransport,
) -> (Client, Option<House>) {
    recorder.forget();
    join(&greeter().build(), client(), revision, transport).await
}

#[tokio::test]
async fn a_call_is_a_span_on_both_sides() {
    let (recorder, _guard) = Recorder::listen();
    for (revision, transport) in everywhere() {
        let (client, _house) = greeted(&recorder, revision, transport).await;
        client.call_tool("greet", ()).await.unwrap();
        for (name, kind) in [("mcp.server", "server"), ("mcp.client", "client")] {
            let (_, span) = recorder.last(name, "tools/call");
            assert_eq!(span.target, format!("trunkline::{kind}"));
            let network = (transport == TestTransport::Http).then_some("tcp");
            for (field, expected) in [
                ("otel.name", Some("tools/call greet")),
                ("otel.kind", Some(kind)),
                ("otel.status_code", None),
                ("mcp.protocol.version", Some(revision.as_str())),
                ("gen_ai.operation.name", Some("execute_tool")),
                ("gen_ai.tool.name", Some("greet")),
                ("gen_ai.prompt.name", None),
                ("network.transport", network),
                ("network.protocol.name", network.map(|_| "http")),
                ("rpc.response.status_code", None),
                ("error.type", None),
            ] {
                assert_eq!(
                    span.get(field),
                    expected,
                    "{field} of {name} in {revision}, {transport:?}"
                );
            }
        }
        let (_, span) = recorder.last("mcp.server", "tools/call");
        assert_eq!(span.events.len(), 2, "{:?} in {revision}, {transport:?}", span.events);
    }
}

#[tokio::test]
async fn what_goes_wrong_is_an_error_of_a_kind() {
    let (recorder, _guard) = Recorder::listen();
    for (revision, transport) in everywhere() {
        let (client, _house) = greeted(&recorder, revision, transport).await;
        for (name, called, at_server, at_client, code) in [
            ("fail", "tools/call fail", "tool_error", "tool_error", None),
            ("burst", "tools/call burst", "tool_error", "tool_error", None),
            ("nothing", "tools/call", "-32602", "-32602", Some("-32602")),
        ] {
            let _ = client.call_tool(name, ()).await;
            let (_, server) = recorder.last("mcp.server", "tools/call");
            let about = format!("{name} in {revision}, {transport:?}");
            assert_eq!(server.get("otel.name"), Some(called), "{about}");
            assert_eq!(server.get("error.type"), Some(at_server), "{about}");
            assert_eq!(server.get("rpc.response.status_code"), code, "{about}");
            assert_eq!(server.get("otel.status_code"), Some("ERROR"), "{about}");
            let (_, client) = recorder.last("mcp.client", "tools/call");
            assert_eq!(client.get("error.type"), Some(at_client), "{about}");
            assert_eq!(client.get("rpc.response.status_code"), code, "{about}");
        }
        let (_, unknown) = recorder.last("mcp.server", "tools/call");
        assert_eq!(unknown.get("gen_ai.tool.name"), Some("_other"));
    }
}

/// Signals when it is dropped.
struct Bell(Option<oneshot::Sender<()>>);

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = self.0.take().map(|it| it.send(()));
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_on_both_sides() {
    let (recorder, _guard) = Recorder::listen();
    for (revision, transport) in everywhere() {
        recorder.forget();
        let begun = Arc::new(Notify::new());
        let (ring, rung) = oneshot::channel();
        let bell = Arc::new(Mutex::new(Some(Bell(Some(ring)))));
        let never = {
            let begun = Arc::clone(&begun);
            move || {
                let bell = bell.lock().unwrap().take();
                let begun = Arc::clone(&begun);
                async move {
                    let _bell = bell;
                    begun.notify_one();
                    pending::<()>().await;
                }
            }
        };
        let metrics = Metrics::new();
        let server = builder().meter(metrics.clone()).tool(tool("never", never)).build();
        let (client, _house) = join(&server, client(), revision, transport).await;
        let call = client.call_tool("never", ()).into_future();
        tokio::select! {
            _ = call => panic!("it never ends"),
            () = soon(begun.notified()) => {}
        }
        soon(rung).await.unwrap();
        for name in ["mcp.server", "mcp.client"] {
            let (_, span) = recorder.last(name, "tools/call");
            assert_eq!(
                span.get("error.type"),
                Some("cancelled"),
                "{name} in {revision}, {transport:?}"
            );
            assert_eq!(span.get("rpc.response.status_code"), None);
        }
        assert!(metrics.render().contains(r#"error_type="cancelled""#), "{}", metrics.render());
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_a_timeout_of_the_client() {
    let (recorder, _guard) = Recorder::listen();
    for revision in ERAS {
        recorder.forget();
        let server = builder().tool(tool("never", async || pending::<()>().await)).build();
        let (client, _house) = join(&server, client(), revision, TestTransport::Memory).await;
        let call = client.call_tool("never", ()).timeout(Duration::from_millis(20));
        assert_eq!(call.await, Err(CallError::TimedOut));
        let (_, span) = recorder.last("mcp.client", "tools/call");
        assert_eq!(span.get("error.type"), Some("timeout"), "{revision}");
    }
}

#[tokio::test]
async fn no_argument_and_no_result_is_in_a_span() {
    let (recorder, _guard) = Recorder::listen();
    for (revision, transport) in everywhere() {
        let (client, _house) = join(&greeter().build(), client(), revision, transport).await;
        let trace = SENT.parse::<TraceContext>().unwrap().with_baggage("user=alice");
        let login = json!({ "password": "hunter2", "key": "k-hunter2" });
        client.call_tool("login", &login).trace(&trace).await.unwrap();
        client.call_tool("login", json!({ "password": { "hunter2": true } })).await.ok();
        client.read_resource("test://hunter2/key").await.unwrap();
        client.read_resource("test://hunter2/unknown").await.unwrap_err();
        client.get_prompt("hunter2", [("hunter2", "hunter2")]).await.unwrap_err();
        client.call_tool("fail", ()).await.unwrap();
    }
    let server = recorder.spans("mcp.server");
    assert!(server.len() >= 20, "{}", server.len());
    // A client knows no registered names, so it shows the called name.
    let client = recorder.spans("mcp.client").into_iter();
    let client = client.filter(|(_, it)| it.get("mcp.method.name") != Some("prompts/get"));
    for (_, span) in server.into_iter().chain(client) {
        let fields = format!("{:?}", span.fields);
        assert!(!fields.contains("raining") && !fields.contains("the result"), "{fields}");
        let span = format!("{span:?}");
        assert!(!span.contains("hunter2") && !span.contains("alice"), "{span}");
    }
}

#[tokio::test]
async fn resources_and_prompts_are_named_as_they_are_registered() {
    let (recorder, _guard) = Recorder::listen();
    let server = greeter().build();
    for revision in ERAS {
        let (client, _house) = join(&server, client(), revision, TestTransport::Memory).await;
        for (uri, expected) in
            [("test://fixed", "test://fixed"), ("test://me/key", "test://{user}/key")]
        {
            client.read_resource(uri).await.unwrap();
            let (_, span) = recorder.last("mcp.server", "resources/read");
            assert_eq!(span.get("otel.name"), Some("resources/read"));
            assert_eq!(span.get("mcp.resource.uri"), Some(expected));
        }
        client.get_prompt("hello", [("", ""); 0]).await.unwrap();
        let (_, span) = recorder.last("mcp.server", "prompts/get");
        assert_eq!(span.get("otel.name"), Some("prompts/get hello"));
        assert_eq!(span.get("gen_ai.prompt.name"), Some("hello"));
        assert_eq!(span.get("gen_ai.operation.name"), None);
        client.list_tools().await.unwrap();
        let (_, span) = recorder.last("mcp.server", "tools/list");
        assert_eq!(span.get("otel.name"), Some("tools/list"));
    }
}

#[tokio::test]
async fn without_a_listener_there_are_no_spans() {
    let recorder = Recorder::default();
    recorder.0.lock().unwrap().is_deaf = true;
    let _guard = recorder.hear();
    for (revision, transport) in everywhere() {
        let (client, _house) = join(&greeter().build(), client(), revision, transport).await;
        client.call_tool("greet", ()).await.unwrap();
    }
    assert_eq!(recorder.everything(), "[]");
}

#[tokio::test]
async fn the_work_of_a_task_is_a_span_that_knows_its_call() {
    async fn render() -> Result<Task<&'static str>, ToolError> {
        Ok(Task::new(async |_| {
            tracing::info!("at work");
            Err(ToolError::new("No film."))
        }))
    }
    let (recorder, _guard) = Recorder::listen();
    let server = builder().tool(tool("render", render)).build();
    for (revision, transport) in everywhere() {
        recorder.forget();
        let (client, _house) = join(&server, client(), revision, transport).await;
        let ToolCall::Task(task) = client.call_tool_task("render", ()).await.unwrap() else {
            panic!("it is a task in {revision}")
        };
        let result = soon(client.task_result(task.task_id).into_future()).await.unwrap();
        assert!(result.is_error());
        let [(_, span)] = &recorder.spans("mcp.task")[..] else {
            panic!("one task in {revision}, {transport:?}: {:#?}", recorder.spans("mcp.task"))
        };
        let (call, _) = recorder.last("mcp.server", "tools/call");
        assert_eq!(
            (span.parent, &span.follows[..]),
            (None, &[call][..]),
            "{revision}, {transport:?}"
        );
        assert_eq!(span.get("otel.name"), Some("task render"));
        assert_eq!(span.get("error.type"), Some("tool_error"));
        assert!(span.events.iter().any(|it| it.contains("at work")), "{:?}", span.events);
    }
}

/// Answers with the trace context that it got.
async fn echo_trace(trace: TraceContext, cx: Context) -> String {
    assert_eq!(trace, cx.trace());
    let shown = trace.members().map(|(name, value)| format!("{name}={value}"));
    shown.collect::<Vec<_>>().join(" ")
}

fn text(result: &trunkline::model::CallToolResult) -> &str {
    result.content.first().and_then(|it| it.as_text()).unwrap_or_default()
}

#[tokio::test]
async fn a_trace_arrives_where_the_handler_is() {
    let server = builder().tool(tool("trace", echo_trace)).build();
    let own: TraceContext = SENT.parse().unwrap();
    let own = own.with_tracestate("rojo=1").with_baggage("tenant=blue");
    let expected = format!("traceparent={SENT} tracestate=rojo=1 baggage=tenant=blue");
    for (revision, transport) in everywhere() {
        let (client, _house) = join(&server, client(), revision, transport).await;
        let result = client.call_tool("trace", ()).await.unwrap();
        assert_eq!(text(&result), "", "{revision}, {transport:?}");
        let result = client.call_tool("trace", ()).trace(&own).await.unwrap();
        assert_eq!(text(&result), expected, "{revision}, {transport:?}");
        // An invalid trace context counts as none.
        let call = client.call_tool("trace", ()).meta("traceparent", json!("00-1-2-3"));
        assert_eq!(text(&call.await.unwrap()), "", "{revision}, {transport:?}");
    }
}

#[tokio::test]
async fn the_trace_of_the_surroundings_is_sent_from_inside_the_span() {
    let (recorder, _guard) = Recorder::listen();
    let server = builder().tool(tool("trace", echo_trace)).build();
    for (revision, transport) in everywhere() {
        let begun: TraceContext = SENT.parse().unwrap();
        let inside = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&inside);
        let client = client().trace_with(move || {
            noted.lock().unwrap().push(tracing::Span::current().id().map(|it| it.into_u64()));
            Some(begun.clone())
        });
        let (client, _house) = join(&server, client, revision, transport).await;
        let result = client.call_tool("trace", ()).await.unwrap();
        assert_eq!(text(&result), format!("traceparent={SENT}"));
        let (span, _) = recorder.last("mcp.client", "tools/call");
        assert_eq!(inside.lock().unwrap().last(), Some(&Some(span)), "{revision}, {transport:?}");
        // A call's own trace takes precedence.
        let own = TraceContext::begin(false);
        let result = client.call_tool("trace", ()).trace(&own).await.unwrap();
        assert_eq!(text(&result), format!("traceparent={}", own.traceparent().unwrap()));
    }
}

#[tokio::test]
async fn a_handler_hands_its_trace_on() {
    async fn outer(cx: Context, inner: State<Client>) -> Result<String, ToolError> {
        let result = inner.call_tool("trace", ()).trace(&cx.trace().child()).await?;
        Ok(text(&result).to_owned())
    }
    let inner = builder().tool(tool("trace", echo_trace)).build();
    for (revision, transport) in everywhere() {
        let (inside, _inner_house) = join(&inner, client(), revision, transport).await;
        let server = builder().state(inside).tool(tool("outer", outer)).build();
        let (client, _house) = join(&server, client(), revision, transport).await;
        let own: TraceContext = SENT.parse().unwrap();
        let result = client.call_tool("outer", ()).trace(&own).await.unwrap();
        let arrived: TraceContext =
            text(&result).strip_prefix("traceparent=").unwrap().parse().unwrap();
        assert_eq!(arrived.trace_id(), own.trace_id(), "{revision}, {transport:?}");
        assert_ne!(arrived.span_id(), own.span_id());
        assert!(arrived.is_sampled());
    }
}

#[tokio::test]
async fn a_span_joins_its_trace_before_anything_happens_in_it() {
    let (recorder, _guard) = Recorder::listen();
    for (revision, transport) in everywhere() {
        recorder.forget();
        let joined = Arc::new(Mutex::new(Vec::new()));
        let (noted, seen) = (Arc::clone(&joined), recorder.clone());
        let server = greeter()
            .trace_with(move |span, trace| {
                let id = span.id().unwrap().into_u64();
                let is_new = !seen.0.lock().unwrap().spans[id as usize - 1].entered;
                noted.lock().unwrap().push((id, is_new, trace.traceparent()));
            })
            .build();
        let (client, _house) = join(&server, client(), revision, transport).await;
        client.call_tool("greet", ()).await.unwrap();
        assert_eq!(joined.lock().unwrap().len(), 0, "nobody sent a trace");
        client.call_tool("greet", ()).trace(&SENT.parse().unwrap()).await.unwrap();
        let (span, _) = recorder.last("mcp.server", "tools/call");
        let expected = vec![(span, true, Some(SENT.to_owned()))];
        assert_eq!(*joined.lock().unwrap(), expected, "{revision}, {transport:?}");
    }
}

/// Records what it is told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Over>>>);

type Over = (Role, &'static str, Option<String>, Option<ErrorType>, Duration);

impl Meter for Told {
    fn operation(&self, it: &Operation<'_>) {
        let target = it.target.map(str::to_owned);
        self.0.lock().unwrap().push((it.role, it.method, target, it.error, it.duration));
    }
}

#[tokio::test(start_paused = true)]
async fn a_meter_is_told_of_each_operation_once() {
    // the sleep is the subject
    let slow = tool("slow", async || tokio::time::sleep(Duration::from_secs(3)).await);
    let told = Told::default();
    let server = greeter().tool(slow).meter(told.clone()).build();
    for revision in ERAS {
        let client = client().meter(Arc::new(told.clone()));
        let (client, _house) = join(&server, client, revision, TestTransport::Memory).await;
        told.0.lock().unwrap().clear();
        client.call_tool("slow", ()).await.unwrap();
        client.call_tool("fail", ()).await.unwrap();
        client.call_tool("burst", ()).await.unwrap();
        client.call_tool("unknown", ()).await.unwrap_err();
        client.list_prompts().await.unwrap();
        let told = std::mem::take(&mut *told.0.lock().unwrap());
        assert_eq!(told.len(), 10, "{told:?}");
        let seconds = |at: usize| told[at].4.as_secs();
        assert_eq!((seconds(0), seconds(1), seconds(2)), (3, 3, 0), "{told:?}");
        let told: Vec<_> = told.iter().map(|it| (it.0, it.1, it.2.as_deref(), it.3)).collect();
        let call = "tools/call";
        let invalid = ErrorType::Code(-32602);
        let expected = [
            (Role::Server, call, Some("slow"), None),
            (Role::Client, call, Some("slow"), None),
            (Role::Server, call, Some("fail"), Some(ErrorType::Tool)),
            (Role::Client, call, Some("fail"), Some(ErrorType::Tool)),
            (Role::Server, call, Some("burst"), Some(ErrorType::Tool)),
            (Role::Client, call, Some("burst"), Some(ErrorType::Tool)),
            (Role::Server, call, Some("_other"), Some(invalid)),
            (Role::Client, call, Some("unknown"), Some(invalid)),
            (Role::Server, "prompts/list", None, None),
            (Role::Client, "prompts/list", None, None),
        ];
        assert_eq!(told, expected, "{revision}");
    }
}

async fn fetch(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    soon(stream.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    text
}

#[tokio::test]
async fn metrics_can_be_read_at_a_page_of_the_server() {
    let metrics = Metrics::new();
    let server = greeter().meter(metrics.clone()).build();
    let page = metrics.clone();
    let house = House::with(server.http().page("/metrics", move || page.render())).await;
    for revision in ERAS {
        let client = client().protocol(revision);
        let client = client.connect_http(format!("http://{}/mcp", house.address)).await.unwrap();
        client.call_tool("greet", ()).await.unwrap();
        client.call_tool("invented", ()).await.unwrap_err();
    }
    let text = fetch(house.address, "/metrics").await;
    for revision in ERAS {
        for (tool, failed) in
            [("greet", ""), ("_other", r#",error_type="-32602",rpc_response_status_code="-32602""#)]
        {
            let line = format!(
                r#"mcp_server_operation_duration_seconds_count{{mcp_method_name="tools/call",mcp_protocol_version="{revision}",gen_ai_operation_name="execute_tool",gen_ai_tool_name="{tool}",network_transport="{}",network_protocol_name="http"{failed}}} 1"#,
                Transport::Http.network(),
            );
            assert!(text.lines().any(|it| it == line), "{line}\nis not in\n{text}");
        }
    }
    assert!(!text.contains("invented"));
}
