//! The parameters of handlers: in both eras, over pipes and HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use http::Request;
use http_body::Body;
use serde_json::{Value, json};
use tower_service::Service;
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::{FromCall, Input, Rejection, Signature};
use trunkline::{
    Args, Cancelled, Capabilities, ClientInfo, Context, ErrorObject, Extension, Headers, Meta,
    Principal, Revision, Server, State, Uri, prompt, resource, template, tool,
};
use trunkline_testkit::http::Guest;

use crate::faults::{Side, transports_of};
use crate::http_server::NEWEST;
use crate::server::{ERAS, builder, soon, text};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: u32,
    b: u32,
}

/// A custom extractor: the tenant of a request.
struct Tenant(String);

impl FromCall for Tenant {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        let meta = input.context().meta().and_then(|it| it.to::<Value>().ok()).unwrap_or_default();
        match meta["com.example/tenant"].as_str() {
            Some("") => Err(Rejection::arguments("The tenant has no name. Give it one.")),
            Some(name) => Ok(Self(name.to_owned())),
            None => Err(Rejection::call(ErrorObject::invalid_request("There is no tenant."))),
        }
    }
}

#[tokio::test]
async fn a_handler_takes_eight_things_at_once() {
    #[allow(clippy::too_many_arguments)]
    async fn all(
        cx: Context,
        Args(add): Args<Add>,
        State(calls): State<AtomicU32>,
        who: Option<Principal>,
        ClientInfo(client): ClientInfo,
        Capabilities(capabilities): Capabilities,
        meta: Meta,
        cancelled: Cancelled,
    ) -> String {
        let calls = calls.fetch_add(1, SeqCst) + 1;
        let client = client.map(|it| it.name).unwrap_or_default();
        let tenant: Option<String> = meta.get("com.example/tenant");
        format!(
            "{} {calls} {} {client} {} {} {} {}",
            add.a + add.b,
            who.is_none(),
            capabilities.roots.is_some(),
            tenant.unwrap_or_default(),
            cancelled.is(),
            cx.wants_progress(),
        )
    }
    for (transport, revision) in transports_of(&Revision::ALL) {
        let server = builder().state(AtomicU32::new(0)).tool(tool("all", all)).build();
        let mut side = Side::of(&server, transport, revision).await;
        let meta = json!({ "com.example/tenant": "acme", "progressToken": 1 });
        for call in 1..3 {
            let params = json!({ "name": "all", "arguments": { "a": 1, "b": 2 }, "_meta": meta });
            let result = side.call("tools/call", params).await.unwrap();
            let client = if matches!(side, Side::Pipes(_)) { "peer" } else { "guest" };
            let expected = format!("3 {call} true {client} true acme false true");
            assert_eq!(text(&result), expected, "{transport:?} {revision}");
        }
    }
}

#[tokio::test]
async fn prompts_and_resources_take_the_same() {
    #[derive(Deserialize, JsonSchema)]
    struct City {
        city: String,
    }
    async fn greet(Args(it): Args<City>, State(calls): State<AtomicU32>) -> String {
        format!("{} {}", it.city, calls.fetch_add(1, SeqCst))
    }
    async fn rooms(Args(it): Args<City>, Uri(uri): Uri, ClientInfo(client): ClientInfo) -> String {
        format!("{} {uri} {}", it.city, client.is_some())
    }
    let server = builder()
        .state(AtomicU32::new(0))
        .prompt(prompt("greet", greet))
        .resource(resource("hotel://all", "all", async |Uri(uri): Uri| uri))
        .resource(template("hotel://{city}/rooms", "rooms", rooms))
        .build();
    for (transport, revision) in transports_of(&ERAS) {
        let mut side = Side::of(&server, transport, revision).await;
        let params = json!({ "name": "greet", "arguments": { "city": "Oslo" } });
        let greeting = side.call("prompts/get", params).await.unwrap();
        assert!(greeting["messages"][0]["content"]["text"].as_str().unwrap().starts_with("Oslo "));
        for (uri, expected) in [
            ("hotel://all", "hotel://all"),
            ("hotel://S%C3%A3o%20Paulo/rooms", "São Paulo hotel://S%C3%A3o%20Paulo/rooms true"),
        ] {
            let read = side.call("resources/read", json!({ "uri": uri })).await.unwrap();
            assert_eq!(read["contents"][0]["text"], expected, "{transport:?} {revision}");
        }
    }
}

#[tokio::test]
async fn a_variable_of_a_template_is_what_the_parameter_is_or_is_refused() {
    #[derive(Deserialize, JsonSchema)]
    struct Book {
        id: u32,
    }
    let book = async |Args(it): Args<Book>| format!("number {}", it.id);
    let server = builder().resource(template("book://{id}", "book", book)).build();
    for (transport, revision) in transports_of(&ERAS) {
        let mut side = Side::of(&server, transport, revision).await;
        let read = side.call("resources/read", json!({ "uri": "book://7" })).await.unwrap();
        assert_eq!(read["contents"][0]["text"], "number 7", "{transport:?} {revision}");
        let refused = side.call("resources/read", json!({ "uri": "book://seven" })).await;
        assert!(refused.is_err(), "{transport:?} {revision}: {refused:?}");
    }
}

#[tokio::test]
async fn an_own_extractor_refuses_in_either_way() {
    let server = builder()
        .tool(tool("tenant", async |Tenant(name): Tenant| name))
        .prompt(prompt("tenant", async |Tenant(name): Tenant| name))
        .build();
    for (transport, revision) in transports_of(&Revision::ALL) {
        let mut side = Side::of(&server, transport, revision).await;
        let params =
            |tenant: &str| json!({ "name": "tenant", "_meta": { "com.example/tenant": tenant } });
        let result = side.call("tools/call", params("acme")).await.unwrap();
        assert_eq!(text(&result), "acme", "{transport:?} {revision}");
        let wrong = side.call("tools/call", params("")).await;
        let expected = "The tenant has no name. Give it one.";
        match revision >= Revision::V2025_11_25 {
            true => assert_eq!(text(&wrong.unwrap()), expected),
            false => assert_eq!(wrong.unwrap_err()["message"], expected),
        }
        let error = side.call("prompts/get", params("")).await.unwrap_err();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(expected)));
        for method in ["tools/call", "prompts/get"] {
            let error = side.call(method, json!({ "name": "tenant" })).await.unwrap_err();
            assert_eq!(
                (&error["code"], &error["message"]),
                (&json!(-32600), &json!("There is no tenant."))
            );
        }
    }
}

/// Calls a tool of a server behind a layer that sets the principal.
async fn call_as(
    server: &Server,
    revision: Revision,
    name: &str,
    extend: impl Fn(&mut http::Extensions),
) -> Value {
    call_with(server, revision, name, &[], extend).await
}

/// The same with headers of the request.
async fn call_with(
    server: &Server,
    revision: Revision,
    name: &str,
    headers: &[(&str, &str)],
    extend: impl Fn(&mut http::Extensions),
) -> Value {
    let mut service = server.http().service();
    let mut guest = Guest::new("127.0.0.1:3000".parse().unwrap(), revision);
    let mut post = async |guest: &Guest, message: &Value| {
        let mut request = Request::post("http://127.0.0.1:3000/mcp");
        for (name, value) in guest.headers(message) {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(message.to_string()).unwrap();
        extend(request.extensions_mut());
        service.call(request).await.unwrap()
    };
    if revision != NEWEST {
        let hello = guest.prepare("initialize", guest.hello());
        let response = post(&guest, &hello).await;
        guest.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
    }
    let asked = guest.prepare("tools/call", json!({ "name": name }));
    let mut body = post(&guest, &asked).await.into_body();
    let mut text = Vec::new();
    while let Some(frame) =
        soon(std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx))).await
    {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
    }
    let answer = serde_json::from_slice(&text).unwrap();
    guest.judge(&answer, &asked);
    answer
}

#[tokio::test]
async fn who_calls_is_what_a_layer_says() {
    #[derive(Clone)]
    struct Plan(&'static str);
    let server = builder()
        .tool(tool("who", async |who: Principal| who.subject))
        .tool(tool("maybe", async |who: Option<Principal>| format!("{}", who.is_some())))
        .tool(tool("plan", async |Extension(plan): Extension<Plan>| plan.0))
        .build();
    for revision in ERAS {
        let named = |it: &mut http::Extensions| {
            it.insert(Principal::new("ada"));
            it.insert(Plan("gold"));
        };
        for (tool, expected) in [("who", "ada"), ("maybe", "true"), ("plan", "gold")] {
            let answer = call_as(&server, revision, tool, named).await;
            assert_eq!(text(&answer["result"]), expected, "{revision}");
        }
        let answer = call_as(&server, revision, "maybe", |_| {}).await;
        assert_eq!(text(&answer["result"]), "false", "{revision}");
        let answer = call_as(&server, revision, "who", |_| {}).await;
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("let in by name"));
        let answer = call_as(&server, revision, "plan", |_| {}).await;
        let error = &answer["error"];
        assert_eq!(
            (&error["code"], &error["data"]["reason"]),
            (&json!(-32603), &json!("extension"))
        );
        let why = error["message"].as_str().unwrap();
        assert!(why.starts_with("`plan` takes an `Extension<") && why.contains("Plan>`"), "{why}");
    }
}

#[tokio::test]
async fn headers_are_there_over_http_and_what_lets_somebody_in_only_by_name() {
    async fn said(headers: Headers) -> String {
        let all: Vec<_> = headers.iter().map(|(name, _)| name).collect();
        let token = headers.get("Authorization").unwrap_or("none");
        let is_listed =
            all.contains(&"authorization") || format!("{headers:?}").contains("hunter2");
        format!(
            "{} {token} {is_listed} {}",
            headers.get("x-tenant").unwrap_or("none"),
            all.len() > 1
        )
    }
    let server = builder().tool(tool("said", said)).build();
    for revision in ERAS {
        let headers = [("x-tenant", "blue"), ("authorization", "Bearer hunter2")];
        let answer = call_with(&server, revision, "said", &headers, |_| {}).await;
        assert_eq!(text(&answer["result"]), "blue Bearer hunter2 false true", "{revision}");
        let mut peer = crate::server::open(&server, revision).await;
        assert_eq!(text(&peer.tool("said", json!({})).await), "none none false false");
    }
}

#[test]
fn a_state_that_is_missing_is_found_when_the_server_is_built() {
    struct Hotel;
    async fn count(_: State<Hotel>) -> String {
        String::new()
    }
    let all = || {
        Server::builder("test", "1")
            .tool(tool("t", count))
            .prompt(prompt("p", count))
            .resource(resource("test://r", "r", count))
            .resource(template("test://{t}", "t", count))
    };
    let error = all().try_build().unwrap_err();
    assert_eq!(error.faults().len(), 4, "{error}");
    for (fault, name) in error.faults().iter().zip(["t", "p", "test://r", "test://{t}"]) {
        let expected = format!("`{name}` takes a `State<");
        assert!(fault.starts_with(&expected) && fault.contains("Hotel>`"), "{fault}");
        assert!(fault.ends_with("but the server has none; add `.state(..)` with one."), "{fault}");
    }
    assert!(all().state(Hotel).try_build().is_ok());
    assert!(all().shared_state(Arc::new(Hotel)).try_build().is_ok());
    let built = std::panic::catch_unwind(|| all().build());
    let said = *built.unwrap_err().downcast::<String>().unwrap();
    assert!(said.starts_with("The server cannot be built, for 4 reasons:\n- `t` takes"), "{said}");
}

#[test]
fn arguments_are_read_once() {
    async fn twice(_: Args<Add>, _: Args<Add>) -> String {
        String::new()
    }
    let error = Server::builder("test", "1").tool(tool("twice", twice)).try_build().unwrap_err();
    assert_eq!(error.faults(), ["The tool `twice` reads its arguments twice; keep one `Args`."]);
}

#[test]
fn an_extractor_describes_what_it_wants() {
    struct Own;
    impl FromCall for Own {
        fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
            input.read::<Add>().map(|_| Self)
        }

        fn describe(signature: &mut Signature) {
            signature.arguments::<Add>();
            signature.state::<u8>();
        }
    }
    let error = Server::builder("test", "1")
        .tool(tool("own", async |_: Own, _: Args<Add>| "no"))
        .try_build()
        .unwrap_err();
    assert_eq!(error.faults().len(), 2, "{error}");
    assert!(error.to_string().contains("reads its arguments twice"), "{error}");
    assert!(error.to_string().contains("State<u8>"), "{error}");
}
