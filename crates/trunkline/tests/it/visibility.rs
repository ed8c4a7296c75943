//! What a caller may not see does not exist for it: in lists, calls, reads, completions,
//! notifications and caches, over HTTP in both eras. A layer in front of the server sets the
//! principal.

use std::net::SocketAddr;

use http::Request;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower_service::Service;
use trunkline::model::CacheHint;
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::server::ServerBuilder;
use trunkline::{
    Answer, Args, Caller, Change, Context, Principal, Revision, Server, ToolError, Uri, prompt,
    resource, template, tool,
};
use trunkline_testkit::http::{Guest, Line};

use crate::http_server::{NEWEST, STREAMABLE};
use crate::server::{ERAS, builder, soon};

/// Serves behind a layer that admits every caller under the name in `X-User`.
async fn serve(server: &Server) -> SocketAddr {
    let service = server.http().service();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service.clone();
            let named = hyper::service::service_fn(move |mut request: Request<_>| {
                if let Some(user) = request.headers().get("x-user") {
                    let user = user.to_str().unwrap().to_owned();
                    let scope = if user == "root" { "admin" } else { "guest" };
                    request.extensions_mut().insert(Principal::new(user).scope(scope));
                }
                service.clone().call(request)
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), named));
        }
    });
    address
}

/// A named or anonymous client.
struct Visitor {
    guest: Guest,
    user: Option<&'static str>,
}

impl Visitor {
    async fn open(address: SocketAddr, revision: Revision, user: Option<&'static str>) -> Self {
        let mut visitor = Self { guest: Guest::new(address, revision), user };
        if revision != NEWEST {
            let hello = visitor.guest.prepare("initialize", visitor.guest.hello());
            let (_, head) = visitor.post(&hello).await;
            visitor.guest.session = head.get("mcp-session-id").map(str::to_owned);
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert_eq!(visitor.post(&ready).await.1.status, 202);
        }
        visitor
    }

    /// Adds the name to a request.
    fn sign(&self, text: Vec<u8>) -> Vec<u8> {
        let text = String::from_utf8(text).unwrap();
        let named = self.user.map(|it| format!("X-User: {it}\r\n")).unwrap_or_default();
        text.replacen("\r\n", &format!("\r\n{named}"), 1).into_bytes()
    }

    async fn post(&self, message: &Value) -> (Line, trunkline_testkit::http::Head) {
        let mut line = Line::to(self.guest.address).await;
        line.send(self.sign(self.guest.text(message))).await;
        let head = line.head().await;
        (line, head)
    }

    /// A status and an answer.
    async fn ask(&mut self, method: &str, params: Value) -> (u16, Value) {
        let asked = self.guest.prepare(method, params);
        let (mut line, head) = self.post(&asked).await;
        let answer = soon(self.guest.answer(&asked, &mut line, head)).await;
        (answer.head.status, answer.message)
    }

    async fn expect(&mut self, method: &str, params: Value) -> Value {
        let (_, mut answer) = self.ask(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    async fn names(&mut self, method: &str) -> Vec<String> {
        let result = self.expect(method, json!({})).await;
        let items = ["tools", "prompts", "resources", "resourceTemplates"];
        let items = items.iter().find_map(|it| result[*it].as_array()).unwrap();
        items.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The session's stream, or another that it may ask for.
    async fn get(&self, method: &str) -> (Line, u16) {
        let mut headers = vec![
            ("Accept".to_owned(), "text/event-stream".to_owned()),
            ("MCP-Protocol-Version".to_owned(), self.guest.revision.as_str().to_owned()),
        ];
        headers
            .extend(self.guest.session.iter().map(|it| ("Mcp-Session-Id".to_owned(), it.clone())));
        let text = trunkline_testkit::http::request(
            self.guest.address,
            &format!("{method} /mcp"),
            &headers,
            "",
        );
        let mut line = Line::to(self.guest.address).await;
        line.send(self.sign(text)).await;
        let head = line.head().await;
        (line, head.status)
    }

    /// Listens for some resources and for all lists.
    async fn listen(&mut self, uris: &[&str]) -> Line {
        if self.guest.revision != NEWEST {
            for uri in uris {
                self.expect("resources/subscribe", json!({ "uri": uri })).await;
            }
            let (line, status) = self.get("GET").await;
            assert_eq!(status, 200);
            return line;
        }
        let wanted = json!({ "resourceSubscriptions": uris, "resourcesListChanged": true });
        let asked =
            self.guest.prepare("subscriptions/listen", json!({ "notifications": wanted.clone() }));
        let (mut line, head) = self.post(&asked).await;
        assert_eq!(head.status, 200);
        let (_, first) = line.message().await.unwrap();
        // A hidden resource is acknowledged like one that does not exist yet.
        assert_eq!(first["params"]["notifications"], wanted);
        line
    }
}

fn admin(caller: &Caller<'_>) -> bool {
    caller.principal().is_some_and(|it| it.may("admin"))
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Region {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Name {
    name: String,
}

async fn text() -> String {
    "text".to_owned()
}

/// Everything twice: for all callers, and for some.
fn offers() -> ServerBuilder {
    let named = |name: &str| {
        prompt(name, async |Args(_): Args<Name>| text().await)
            .complete("name", |_, _| vec!["Ada".to_owned()])
    };
    builder()
        .tool(tool("open_tool", text))
        .tool(tool("zz_hidden", text).visible(admin))
        .tool(tool("zz_hidden_region", async |Args(_): Args<Region>| text().await).visible(admin))
        .prompt(named("open_prompt"))
        .prompt(named("zz_hidden_prompt").visible(admin))
        .resource(resource("open://r", "open_resource", text))
        .resource(resource("hidden://r", "hidden_resource", text).visible(admin))
        .resource(template("open://t/{n}", "open_template", text).complete("n", |_, _| Vec::new()))
        .resource(
            template("hidden://t/{n}", "hidden_template", text)
                .complete("n", |_, _| vec!["1".to_owned()])
                .visible(admin),
        )
}

const LISTS: [(&str, &str, usize); 4] = [
    ("tools/list", "open_tool", 3),
    ("prompts/list", "open_prompt", 2),
    ("resources/list", "open_resource", 2),
    ("resources/templates/list", "open_template", 2),
];

#[tokio::test]
async fn lists_show_what_their_reader_may_see() {
    let address = serve(&offers().page_size(1).build()).await;
    for revision in STREAMABLE {
        for user in [None, Some("eve")] {
            let mut visitor = Visitor::open(address, revision, user).await;
            for (method, open, _) in LISTS {
                assert_eq!(visitor.names(method).await, [open], "{method} in {revision}");
                let page = visitor.expect(method, json!({})).await;
                assert_eq!(page.get("nextCursor"), None, "nothing hints at more: {page}");
            }
        }
    }
    let address = serve(&offers().build()).await;
    for revision in STREAMABLE {
        let mut root = Visitor::open(address, revision, Some("root")).await;
        for (method, _, all) in LISTS {
            assert_eq!(root.names(method).await.len(), all, "{method} in {revision}");
        }
    }
}

#[tokio::test]
async fn what_is_hidden_is_answered_like_what_is_not_there() {
    let address = serve(&offers().build()).await;
    let complete =
        |reference: Value| json!({ "ref": reference, "argument": { "name": "n", "value": "" } });
    let of_prompt = |name: &str| complete(json!({ "type": "ref/prompt", "name": name }));
    let of_template = |uri: &str| complete(json!({ "type": "ref/resource", "uri": uri }));
    let cases = [
        ("tools/call", json!({ "name": "zz_hidden" }), json!({ "name": "qq_absent" })),
        (
            "tools/call",
            json!({ "name": "zz_hidden_region" }),
            json!({ "name": "qq_absent_region" }),
        ),
        (
            "tools/call",
            json!({ "name": "zz_hidden_region", "arguments": { "region": "eu" } }),
            json!({ "name": "qq_absent_region", "arguments": { "region": "eu" } }),
        ),
        ("tools/call", json!({ "name": "zz_hidde" }), json!({ "name": "qq_absen" })),
        (
            "prompts/get",
            json!({ "name": "zz_hidden_prompt" }),
            json!({ "name": "qq_absent_prompt" }),
        ),
        ("resources/read", json!({ "uri": "hidden://r" }), json!({ "uri": "absent://r" })),
        ("resources/read", json!({ "uri": "hidden://t/1" }), json!({ "uri": "absent://t/1" })),
        ("completion/complete", of_prompt("zz_hidden_prompt"), of_prompt("qq_absent_prompt")),
        ("completion/complete", of_template("hidden://t/{n}"), of_template("absent://t/{n}")),
    ];
    for revision in STREAMABLE {
        for user in [None, Some("eve")] {
            let mut visitor = Visitor::open(address, revision, user).await;
            for (method, hidden, absent) in &cases {
                let (status, found) = visitor.ask(method, hidden.clone()).await;
                let (other_status, other) = visitor.ask(method, absent.clone()).await;
                let renamed = other["error"]
                    .to_string()
                    .replace("absent", "hidden")
                    .replace("absen", "hidde");
                let found = found["error"].to_string();
                let found = (status, found.replace("zz_", "qq_"));
                assert_eq!(found, (other_status, renamed), "{method} {hidden} in {revision}");
            }
        }
        let mut root = Visitor::open(address, revision, Some("root")).await;
        for (method, hidden, _) in &cases {
            let is_about_headers = hidden.get("arguments").is_some() && revision == NEWEST;
            let is_a_slip = hidden["name"] == "zz_hidde";
            let lacks_arguments =
                *method == "prompts/get" || *hidden == json!({ "name": "zz_hidden_region" });
            let (_, answer) = root.ask(method, hidden.clone()).await;
            if is_about_headers {
                assert_eq!(answer["error"]["code"], -32020, "it is there, and wants its header");
            } else if is_a_slip {
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains("Did you mean `zz_hidden`?"), "{message}");
            } else if lacks_arguments {
                assert!(answer.to_string().contains("do not fit"), "{answer}");
            } else {
                assert!(answer.get("result").is_some(), "{method} {hidden}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_is_told_of_what_is_hidden_from_them() {
    for revision in ERAS {
        let server = offers().build();
        let address = serve(&server).await;
        let uris = ["hidden://r", "hidden://t/1", "open://r", "open://t/1"];
        let mut eve = Visitor::open(address, revision, Some("eve")).await;
        let mut root = Visitor::open(address, revision, Some("root")).await;
        let (mut of_eve, mut of_root) = (eve.listen(&uris).await, root.listen(&uris).await);
        for uri in uris {
            server.changed(Change::Resource(uri.to_owned())).await;
        }
        for (line, expected) in [(&mut of_eve, &uris[2..]), (&mut of_root, &uris[..])] {
            for uri in expected {
                let (_, message) = soon(line.message()).await.unwrap();
                assert_eq!(message["method"], "notifications/resources/updated");
                assert_eq!(message["params"]["uri"], *uri, "{revision}");
            }
        }
    }
}

#[tokio::test]
async fn what_depends_on_the_caller_is_not_kept_for_others() {
    let hint = CacheHint::public(60_000);
    let everybody = builder()
        .cache(hint)
        .tool(tool("t", text))
        .prompt(prompt("p", text))
        .resource(resource("x://plain", "plain", text))
        .resource(resource("x://uri", "uri", async |Uri(uri): Uri| uri))
        .resource(resource("x://personal", "personal", async |who: Option<Principal>| {
            format!("{who:?}")
        }))
        .resource(resource("x://context", "context", async |cx: Context| {
            format!("{:?}", cx.principal())
        }))
        .resource(resource("x://some", "some", text).visible(admin))
        .resource(template("y://{n}", "template", text))
        .build();
    let some = offers().cache(hint).build();
    let (everybody, some) = (serve(&everybody).await, serve(&some).await);
    let read = |uri: &str| ("resources/read", json!({ "uri": uri }));
    let list = |method: &'static str| (method, json!({}));
    for (address, (method, params), scope) in [
        (everybody, list("tools/list"), "public"),
        (everybody, list("prompts/list"), "public"),
        (everybody, list("resources/templates/list"), "public"),
        (everybody, list("resources/list"), "private"),
        (some, list("tools/list"), "private"),
        (some, list("prompts/list"), "private"),
        (some, list("resources/list"), "private"),
        (some, list("resources/templates/list"), "private"),
        (everybody, read("x://plain"), "public"),
        (everybody, read("x://uri"), "public"),
        (everybody, read("y://1"), "public"),
        (everybody, read("x://personal"), "private"),
        (everybody, read("x://context"), "private"),
        (everybody, read("x://some"), "private"),
        (some, list("server/discover"), "public"),
    ] {
        let mut root = Visitor::open(address, NEWEST, Some("root")).await;
        let result = root.expect(method, params.clone()).await;
        assert_eq!(result["cacheScope"], scope, "{method} {params}");
        assert_eq!(result["ttlMs"], 60_000, "{method} {params}");
    }
}

#[tokio::test]
async fn the_state_of_a_call_is_its_callers_alone() {
    async fn pay(cx: Context) -> Result<String, ToolError> {
        match cx.roots().await {
            Ok(roots) => Ok(format!("{} folders", roots.len())),
            Err(error) => Err(error.into()),
        }
    }
    let address = serve(&builder().tool(tool("pay", pay)).build()).await;
    let mut alice = Visitor::open(address, NEWEST, Some("alice")).await;
    let asked = alice.expect("tools/call", json!({ "name": "pay" })).await;
    assert_eq!(asked["resultType"], "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let again = json!({
        "name": "pay",
        "requestState": asked["requestState"],
        "inputResponses": { key: { "roots": [] } },
    });
    let mut forged = again.clone();
    forged["requestState"] = json!("A".repeat(asked["requestState"].as_str().unwrap().len()));
    for user in [Some("bob"), Some("root"), None] {
        let mut other = Visitor::open(address, NEWEST, user).await;
        let (status, stolen) = other.ask("tools/call", again.clone()).await;
        let (other_status, forged) = other.ask("tools/call", forged.clone()).await;
        assert_eq!(stolen["error"]["code"], -32602, "{user:?}");
        assert_eq!((status, &stolen["error"]), (other_status, &forged["error"]));
    }
    let done = alice.expect("tools/call", again).await;
    assert_eq!(done["content"][0]["text"], "0 folders");
}

#[tokio::test]
async fn a_session_is_its_owners_alone() {
    let server = offers().build();
    let address = serve(&server).await;
    for revision in &STREAMABLE[..3] {
        let mut root = Visitor::open(address, *revision, Some("root")).await;
        for user in [None, Some("eve")] {
            let mut thief = Visitor { guest: root.guest.clone(), user };
            let mut lost = Visitor { guest: root.guest.clone(), user };
            lost.guest.session = Some("0".repeat(32));
            let (status, stolen) = thief.ask("tools/list", json!({})).await;
            let (other_status, unknown) = lost.ask("tools/list", json!({})).await;
            assert_eq!((status, stolen), (other_status, unknown), "{revision}");
            assert_eq!(status, 404);
            for method in ["GET", "DELETE"] {
                assert_eq!(thief.get(method).await.1, 404, "{method} in {revision}");
            }
        }
        assert_eq!(root.names("tools/list").await.len(), 3, "it is still there");
        assert_eq!(root.get("DELETE").await.1, 204);
    }
}

#[tokio::test]
async fn a_right_that_is_lost_between_two_rounds_is_lost() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    async fn ask(cx: Context) -> Result<String, ToolError> {
        match cx.ask::<bool>("Sure?").await? {
            Answer::Accept(true) => Ok("done".to_owned()),
            _ => Ok("not done".to_owned()),
        }
    }
    let open = Arc::new(AtomicBool::new(true));
    let is_open = Arc::clone(&open);
    let server = builder().tool(tool("ask", ask).visible(move |_| is_open.load(SeqCst))).build();
    let address = serve(&server).await;
    let mut alice = Visitor::open(address, NEWEST, Some("alice")).await;
    let asked = alice.expect("tools/call", json!({ "name": "ask" })).await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    open.store(false, SeqCst);
    let again = json!({
        "name": "ask",
        "requestState": asked["requestState"],
        "inputResponses": { key: { "action": "accept", "content": { "value": true } } },
    });
    let (_, answer) = alice.ask("tools/call", again).await;
    assert_eq!(answer["error"]["message"], "There is no tool `ask`.");
}
