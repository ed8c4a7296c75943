//! What operators see of real calls, how they get in, and what they try themselves.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use trunkline::Revision;
use trunkline_testkit::http::{Guest, Head, Line, request};

use crate::gateway_kit::{Caller, Gateway, Place};
use crate::run::TRUNKLINE;

/// A server that repeats everything it knows: its variable, its arguments, and what it was told before.
const PARROT: &str = r#"
import json, os, sys
heard = [os.environ["PARROT_KEY"], sys.argv[1]]
schema = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "parrot", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": schema if name == "tell" else {"type": "object"}} for name in ("tell", "say")]}
        # What nobody sees in a description has it held back.
        result["tools"].append({"name": "hide", "description": "\u200b" + heard[0], "inputSchema": {"type": "object"}})
    elif method == "tools/call":
        heard.extend(str(value) for value in params.get("arguments", {}).values())
        result = {"content": [{"type": "text", "text": " ".join(heard)}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A server over HTTP that repeats the header that it is called with.
const FAR: &str = r#"
import http.server, json
class Far(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(405)
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            return self.answer(202)
        key, method = self.headers["x-far-key"], message["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": key}}
        elif method == "tools/list":
            result = {"tools": [{"name": "say", "description": key, "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": key}]}
        else:
            error = {"code": -32601, "message": "There is no such method."}
            return self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Far)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A server that asks for a sample within a call, and says what it heard.
const ASKER: &str = r#"
import json, sys
call = None
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        say({"id": message["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "asker", "version": "1"}}})
    elif method == "tools/list":
        say({"id": message["id"], "result": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        call = message["id"]
        hello = {"role": "user", "content": {"type": "text", "text": "Hello"}}
        say({"id": "q", "method": "sampling/createMessage", "params": {"messages": [hello], "maxTokens": 9}})
    elif method is None and message.get("id") == "q":
        text = json.dumps(message.get("error", "no error"))
        say({"id": call, "result": {"content": [{"type": "text", "text": text}]}})
    elif "id" in message:
        say({"id": message["id"], "result": {}})
"#;

/// The admin API of a gateway, as its operator reaches it.
pub(crate) struct Operator {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Operator {
    pub(crate) fn of(place: &Place) -> Self {
        let at = place.read("state/admin.place");
        let address = at.strip_prefix("http://").unwrap().parse().unwrap();
        Self { address, token: place.read("state/admin.token") }
    }

    pub(crate) async fn send(&self, line: &str, body: &Value) -> (Line, Head) {
        let headers = [("Authorization", format!("Bearer {}", self.token))];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = Line::to(self.address).await;
        stream.send(request(self.address, line, &headers, &body)).await;
        let head = stream.head().await;
        (stream, head)
    }

    async fn text(&self, path: &str) -> String {
        let (mut stream, head) = self.send(&format!("GET {path}"), &Value::Null).await;
        let text = String::from_utf8(stream.body().await).unwrap();
        assert_eq!(head.status, 200, "{path}: {text}");
        text
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let (mut stream, head) = self.send(&format!("POST {path}"), body).await;
        let told = stream.json().await;
        assert_eq!(head.status, 200, "{path}: {told}");
        told
    }
}

/// A gateway before the demo server, and its operator.
pub(crate) async fn demo(name: &str) -> (Place, Gateway, Operator) {
    let place = Place::new(name);
    place.catalog(&json!({
        "gateway": { "admin": { "listen": ADMIN } },
        "mcpServers": { "demo": { "command": TRUNKLINE, "args": ["demo"] } },
    }));
    let gateway = Gateway::start(&place).await;
    let operator = Operator::of(&place);
    (place, gateway, operator)
}

pub(crate) const ADMIN: &str = "127.0.0.1:0";

#[tokio::test]
async fn no_planted_secret_is_in_the_api_in_exports_or_in_files() {
    let place = Place::new("secrets");
    let script = place.file("parrot.py", PARROT);
    let file = place.file("key.txt", "secret-of-a-file-1\n");
    let traffic = place.file("unused", "").replace("unused", "traffic.jsonl");
    let mut far = tokio::process::Command::new("python3");
    far.arg(place.file("far.py", FAR)).stdout(Stdio::piped()).kill_on_drop(true);
    let mut far = far.spawn().expect("there is python3");
    let mut port = String::new();
    BufReader::new(far.stdout.take().unwrap()).read_line(&mut port).await.unwrap();
    place.catalog(&json!({
        "gateway": {
            "admin": { "listen": ADMIN },
            "auth": { "tokens": [{ "name": "ann", "token": "secret-token-of-ann-2" }] },
            "recording": { "file": traffic, "redact": ["apiKey"] },
        },
        "mcpServers": { "parrot": {
            "command": "python3", "args": [script, format!("${{file:{file}}}")],
            "env": { "PARROT_KEY": "secret-of-the-environment-3" },
        }, "far": {
            "url": format!("http://127.0.0.1:{}/mcp", port.trim()),
            "headers": { "X-Far-Key": "secret-of-a-header-6" },
        }},
    }));
    let gateway = Gateway::start(&place).await;
    let operator = Operator::of(&place);
    let (mut stream, head) = operator.send("GET /v1/traffic/stream", &Value::Null).await;
    assert_eq!(head.status, 200);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut guest = Guest::new(gateway.address, revision);
        let arguments = [
            json!({ "name": "parrot.tell", "arguments": { "pin": "secret-of-a-schema-4" } }),
            json!({ "name": "parrot.say", "arguments": { "apiKey": "secret-of-a-member-5" } }),
            json!({ "name": "parrot.say", "arguments": { "text": "secret-token-of-ann-2" } }),
        ];
        let token = ("Authorization".to_owned(), "Bearer secret-token-of-ann-2".to_owned());
        let mut ask = async |method: &str, params: Value| {
            let message = guest.prepare(method, params);
            let mut headers = guest.headers(&message);
            headers.push(token.clone());
            let mut line = Line::to(gateway.address).await;
            let text = message.to_string();
            line.send(request(gateway.address, "POST /mcp", &headers, &text)).await;
            let head = line.head().await;
            guest.session = guest.session.take().or(head.get("mcp-session-id").map(str::to_owned));
            if head.is_events() { line.message().await.unwrap().1 } else { line.json().await }
        };
        if revision != Revision::V2026_07_28 {
            ask("initialize", Guest::new(gateway.address, revision).hello()).await;
        }
        for params in arguments {
            let said = ask("tools/call", params).await;
            let text = said["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.contains("secret-of-the-environment-3"), "the caller gets all: {said}");
        }
        let said = ask("tools/call", json!({ "name": "far.say", "arguments": {} })).await;
        let text = &said["result"]["content"][0]["text"];
        assert_eq!(text, "secret-of-a-header-6", "the caller gets all: {said}");
        // The name of something that is not there is repeated in the traffic as well.
        ask("resources/read", json!({ "uri": "parrot:secret-of-a-header-6" })).await;
    }
    let list = operator.get("/v1/traffic?server=parrot").await;
    let calls = list["calls"].as_array().unwrap();
    let tools = calls.iter().filter(|it| it["method"] == "tools/call").count();
    // Beside the calls there is what is said to the server otherwise, such as its handshake.
    assert!(tools == 6 && calls.len() > 6, "{list}");
    let mut everything = list.to_string() + &operator.text("/v1/traffic/export").await;
    let all = operator.get("/v1/traffic").await;
    everything += &all.to_string();
    let is_far = |it: &&Value| it["server"] == "far";
    let far = all["calls"].as_array().unwrap().iter().filter(is_far).collect::<Vec<_>>();
    assert!(far.iter().filter(|it| it["method"] == "tools/call").count() == 2, "{all}");
    let reads =
        all["calls"].as_array().unwrap().iter().filter(|it| it["method"] == "resources/read");
    let mut reads: BTreeSet<_> = reads.map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(reads.len(), 2, "{all}");
    // The stream tells of every call to its end.
    while !reads.is_empty() {
        let (_, told) = stream.message().await.unwrap();
        everything += &told.to_string();
        if told["state"] == "done" {
            reads.remove(told["id"].as_str().unwrap_or_default());
        }
    }
    for call in calls.iter().chain(far) {
        let id = call["id"].as_str().unwrap();
        everything += &operator.text(&format!("/v1/calls/{id}")).await;
    }
    let kept = json!({ "name": "one", "filter": { "server": "parrot" } });
    operator.post("/v1/recordings", &kept).await;
    everything += &operator.text("/v1/recordings/one").await;
    let held = operator.text("/v1/approvals").await;
    assert!(held.contains(r#""name":"hide""#) && held.contains("***"), "{held}");
    everything += &held;
    for path in [
        "/v1/status",
        "/v1/servers",
        "/v1/servers/parrot/offers",
        "/v1/servers/far/offers",
        "/v1/servers/parrot/held",
        "/v1/tokens",
        "/v1/logs",
        "/v1/calls",
        "/metrics",
    ] {
        everything += &operator.text(path).await;
    }
    // What an operator tries is repeated to the operator alone, and still without secrets.
    let tried = json!({ "server": "parrot", "method": "tools/call", "params": { "name": "say" } });
    let (mut stream, _) = operator.send("POST /v1/try", &tried).await;
    while let Some((_, said)) = stream.message().await {
        everything += &said.to_string();
    }
    // The gateway writes the file on its own time, and has written it when it has ended.
    let Gateway { mut process, .. } = gateway;
    crate::gateway_kit::signal("TERM", &[process.id().unwrap()]).await;
    process.wait().await.unwrap();
    let written = place.read("traffic.jsonl");
    assert!(written.lines().count() > 20, "{written}");
    everything += &written;
    for secret in ["file-1", "ann-2", "environment-3", "schema-4", "member-5", "header-6"] {
        let planted =
            everything.find(secret).map(|at| &everything[at.saturating_sub(300)..at + 20]);
        assert_eq!(planted, None, "{secret}");
    }
    assert!(everything.contains("*** *** ***"), "something was masked");
}

#[tokio::test]
async fn a_call_of_ones_own_asks_its_operator_in_every_revision() {
    let (_place, _gateway, operator) = demo("try").await;
    for revision in ["2024-11-05", "2025-11-25", "2026-07-28"] {
        let offers = operator.get(&format!("/v1/servers/demo/offers?revision={revision}")).await;
        let tools = offers["tools"].as_array().unwrap();
        assert!(tools.iter().any(|it| it["name"] == "greet"), "{revision}: {offers}");
        assert!(!offers["prompts"].as_array().unwrap().is_empty(), "{revision}: {offers}");
    }
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let body = json!({
            "server": "demo", "revision": revision, "method": "tools/call",
            "params": { "name": "greet", "arguments": {} },
        });
        let (mut stream, head) = operator.send("POST /v1/try", &body).await;
        assert_eq!((head.status, head.is_events()), (200, true));
        let (event, begun) = stream.message().await.unwrap();
        assert_eq!(event.event.as_deref(), Some("begun"));
        let id = begun["try"].as_str().unwrap().to_owned();
        let done = loop {
            let (event, data) = stream.message().await.expect("it ends with `done`");
            match event.event.as_deref() {
                Some("question") => {
                    assert_eq!(data["method"], "elicitation/create", "{data}");
                    let result = json!({ "action": "accept", "content": { "name": "Ada" } });
                    let answer = json!({ "question": data["id"], "result": result });
                    operator.post(&format!("/v1/try/{id}/answer"), &answer).await;
                }
                Some("done") => break data,
                other => panic!("{other:?} {data}"),
            }
        };
        assert_eq!(done["result"]["content"][0]["text"], "Hello, Ada!", "{revision}: {done}");
        let call = operator.get(&format!("/v1/calls/{}", done["call"].as_str().unwrap())).await;
        assert_eq!((&call["name"], &call["revision"]), (&json!("demo.greet"), &json!(revision)));
        assert_eq!((&call["outcome"], &call["questions"]), (&json!("ok"), &json!(1)), "{call}");
        assert_eq!(call["client"]["name"], "trunkline-console");
        assert_eq!(stream.event().await, None, "the stream ends");
    }
}

#[tokio::test]
async fn a_question_is_answered_with_an_error_where_the_revision_has_a_way_to_say_it() {
    let place = Place::new("no");
    let script = place.file("asker.py", ASKER);
    place.catalog(&json!({
        "gateway": { "admin": { "listen": ADMIN } },
        "mcpServers": { "asker": { "command": "python3", "args": [script] } },
    }));
    let _gateway = Gateway::start(&place).await;
    let operator = Operator::of(&place);
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let call = json!({
            "server": "asker", "revision": revision, "method": "tools/call",
            "params": { "name": "ask", "arguments": {} },
        });
        let (mut stream, _) = operator.send("POST /v1/try", &call).await;
        let id = stream.message().await.unwrap().1["try"].as_str().unwrap().to_owned();
        let (event, question) = stream.message().await.unwrap();
        assert_eq!(event.event.as_deref(), Some("question"), "{question}");
        assert_eq!(question["method"], "sampling/createMessage", "{question}");
        let path = format!("/v1/try/{id}/answer");
        let error = json!({ "code": -1, "message": "The user said no." });
        let both = json!({ "question": question["id"], "result": {}, "error": error });
        assert_eq!(operator.send(&format!("POST {path}"), &both).await.1.status, 400);
        operator.post(&path, &json!({ "question": question["id"], "error": error })).await;
        let (event, done) = stream.message().await.unwrap();
        assert_eq!(event.event.as_deref(), Some("done"), "{done}");
        if revision == "2026-07-28" {
            let message = done["error"]["message"].as_str().unwrap();
            let why = "A client of 2026-07-28 cannot answer this question with an error";
            assert!(message.starts_with(why) && message.ends_with("The user said no."), "{done}");
        } else {
            let heard = done["result"]["content"][0]["text"].as_str().unwrap();
            let heard: Value = serde_json::from_str(heard).unwrap();
            assert_eq!(heard, error, "{revision}");
        }
    }
}

#[tokio::test]
async fn offers_say_which_lists_are_missing_and_why() {
    let place = Place::new("offers");
    place.catalog(&json!({
        "gateway": { "admin": { "listen": ADMIN } },
        "mcpServers": {
            "demo": { "command": TRUNKLINE, "args": ["demo"] },
            "broken": { "command": TRUNKLINE, "args": ["no-such-verb"] },
            "parrot": {
                "command": "python3", "args": [place.file("parrot.py", PARROT), ""],
                "env": { "PARROT_KEY": "k" },
            },
        },
    }));
    let _gateway = Gateway::start(&place).await;
    let operator = Operator::of(&place);
    for revision in ["2025-11-25", "2026-07-28"] {
        let offers =
            async |it| operator.get(&format!("/v1/servers/{it}/offers?revision={revision}")).await;
        for server in ["demo", "parrot"] {
            let told = offers(server).await;
            assert!(!told["tools"].as_array().unwrap().is_empty(), "{told}");
            assert_eq!(told.get("errors"), None, "no prompts are no failure: {told}");
        }
        let told = offers("broken").await;
        for (member, key) in [
            ("tools", "tools"),
            ("prompts", "prompts"),
            ("resources", "resources"),
            ("templates", "resourceTemplates"),
        ] {
            assert_eq!(told[member], json!([]), "{told}");
            let why = told["errors"][key].as_str().unwrap_or_default();
            assert!(why.starts_with("It did not start: "), "{key}: {told}");
        }
    }
}

#[tokio::test]
async fn a_kept_recording_is_removed_and_one_too_many_is_refused() {
    let (place, gateway, operator) = demo("kept").await;
    let mut caller = Caller::new(Guest::open(gateway.address, Revision::V2026_07_28).await).await;
    caller.call("demo.sum", json!({ "a": 1, "b": 2 }), json!({})).await.unwrap();
    let keep = |name: &str| json!({ "name": name, "filter": { "server": "demo" } });
    operator.post("/v1/recordings", &keep("one")).await;
    operator.post("/v1/recordings", &keep("two")).await;
    let found = operator.post("/v1/recordings/diff", &json!({ "a": "one", "b": "two" })).await;
    assert_eq!(found["equal"], true, "{found}");
    let remove = async |name: &str| {
        let (mut stream, head) =
            operator.send(&format!("DELETE /v1/recordings/{name}"), &Value::Null).await;
        (head.status, stream.json().await)
    };
    assert_eq!(remove("one").await, (200, json!({ "removed": "one" })));
    assert_eq!(remove("one").await.0, 404);
    let (_, head) = operator.send("GET /v1/recordings/one", &Value::Null).await;
    assert_eq!(head.status, 404);
    // As if a hundred had been kept.
    for number in 1..100 {
        place.file(&format!("state/recordings/r{number}.jsonl"), "");
    }
    let (mut stream, head) = operator.send("POST /v1/recordings", &keep("three")).await;
    let told = stream.json().await;
    assert_eq!(head.status, 507, "{told}");
    assert!(told["error"]["message"].as_str().unwrap().starts_with("There are 100 recordings"));
    let advice = told["error"]["advice"].as_str().unwrap();
    assert!(advice.contains("`DELETE /v1/recordings/ID`"), "{told}");
    remove("r1").await;
    operator.post("/v1/recordings", &keep("three")).await;
}

#[tokio::test]
async fn a_large_call_is_tried_whole() {
    let (_place, _gateway, operator) = demo("large").await;
    let text = "x".repeat(3 << 20);
    let call = json!({
        "server": "demo", "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": text } },
    });
    let (mut stream, head) = operator.send("POST /v1/try", &call).await;
    assert_eq!(head.status, 200);
    while let Some((event, data)) = stream.message().await {
        if event.event.as_deref() == Some("done") {
            let said = data["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(said == text, "{}", &data.to_string()[..200]);
            return;
        }
    }
    panic!("it has an end");
}

#[tokio::test]
async fn a_call_appears_while_it_runs_and_is_followed_to_its_end() {
    let (place, gateway, operator) = demo("traffic").await;
    let (mut stream, head) =
        operator.send("GET /v1/traffic/stream?server=demo", &Value::Null).await;
    assert_eq!((head.status, head.is_events()), (200, true));
    let mut caller = Caller::new(Guest::open(gateway.address, Revision::V2026_07_28).await).await;
    let heard = caller.call("demo.sum", json!({ "a": 1, "b": 2 }), json!({})).await.unwrap();
    assert!(heard.message["result"].is_object(), "{}", heard.message);
    let call = loop {
        let (event, call) = stream.message().await.unwrap();
        assert_eq!(event.event.as_deref(), Some("call"), "{call}");
        if call["state"] == "done" && call["method"] == "tools/call" {
            break call;
        }
    };
    assert_eq!((&call["name"], &call["outcome"]), (&json!("demo.sum"), &json!("ok")), "{call}");
    let told = operator.get(&format!("/v1/calls/{}", call["id"].as_str().unwrap())).await;
    let said: Vec<String> = told["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {}", it["side"].as_str().unwrap(), it["dir"].as_str().unwrap()))
        .collect();
    assert_eq!(said, ["client in", "server out", "server in", "client out"], "{told}");
    let params = &told["messages"][0]["message"]["params"];
    assert_eq!((&params["name"], &params["arguments"]["b"]), (&json!("demo.sum"), &json!(2)));
    assert_eq!(told["messages"][1]["message"]["params"]["name"], "sum");
    assert_eq!(told["messages"][3]["message"]["result"], heard.message["result"]);
    let servers = operator.get("/v1/servers").await;
    assert_eq!(servers["servers"][0]["traffic"]["count"], 1, "{servers}");
    let tokens = operator.get("/v1/tokens").await;
    assert!(tokens["automatic"]["saved"].as_u64().unwrap() > 0, "{tokens}");

    // The export is a recording that the other verbs read.
    let path = place.file("export.jsonl", &operator.text("/v1/traffic/export").await);
    let compared = tokio::process::Command::new(TRUNKLINE).args(["diff", &path, &path]).output();
    let compared = compared.await.unwrap();
    let said = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(compared.status.success() && said.starts_with("No difference in "), "{said}");
}

#[tokio::test]
async fn the_verb_prints_a_link() {
    let place = Place::new("link");
    place.catalog(&json!({ "mcpServers": {} }));
    let _gateway = Gateway::start(&place).await;
    let link = place.run(&["console"]).await;
    let (address, key) =
        link.trim().strip_prefix("http://127.0.0.1:").unwrap().split_once("/#k=").unwrap();
    assert!(address.parse::<u16>().is_ok() && key.len() >= 32, "{link}");
    let address: SocketAddr = format!("127.0.0.1:{address}").parse().unwrap();
    let mut line = Line::to(address).await;
    let body = json!({ "key": key }).to_string();
    let none: [(&str, &str); 0] = [];
    line.send(request(address, "POST /v1/console/enter", &none, &body)).await;
    let head = line.head().await;
    assert_eq!(head.status, 200);
    assert!(head.get("set-cookie").unwrap().contains("HttpOnly"), "{head:?}");
}
