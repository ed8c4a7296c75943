//! Calls that are recorded, and what operators get of them.

use serde_json::{Value, json};
use trunkline_proto::{Attached, CallKey, Cause, Peer, RequestStream};
use trunkline_recording::recording::Recording as ReadRecording;
use trunkline_testkit::Folder;
use trunkline_transport::witness::{SentMessage, Witness};
use trunkline_wire::jsonrpc::Id;
use trunkline_wire::method::{self, Sender};
use trunkline_wire::revision::Revision;

use super::*;
use crate::fixture::plan;
use crate::merge::{Item, Target};
use crate::outcome;
use crate::outcome::Outcome::{Asked, Ok as Fine, ToolError};

fn whose(attached: &Attached) -> Whose {
    Whose::from(attached.get::<Recording>().map(|it| it.number))
}

/// A recorder, and what it is told.
struct Scene {
    recorder: Arc<Recorder>,
    /// The conversation with a server.
    server: Arc<Link>,
    count: u64,
}

impl Scene {
    fn of(catalog: &str) -> Self {
        let recorder = Recorder::open(&Traffic::new(), &plan(catalog), None).unwrap().unwrap();
        recorder.traffic.uses(Some(&recorder));
        let server = Link::of_server(&recorder.traffic, &Arc::from("a"), 1, whose);
        Self { recorder, server, count: 0 }
    }

    /// A call reaches the server, as the request of this id.
    fn send(&self, recording: &Recording, id: i64, params: &Object) {
        let (method, params) = (Method::ToolsCall.into(), Params::Object(params.clone()));
        let message = Message::Request { id: Id::Number(id), method, params };
        let attached = Attached::new(recording.clone());
        sent(&self.server, &message, Some(Cause::Attached(&attached)));
    }

    /// The server answers that.
    fn answer(&self, recording: &Recording, id: i64, result: &Json) {
        let message = Message::result(Id::Number(id), result.clone());
        self.server.received(&message, RequestStream::default(), Instant::now());
        recording.answered(Some(result));
    }

    fn begin(&mut self, method: &str, params: Value) -> Recording {
        self.count += 1;
        let call = Call {
            key: CallKey(self.count),
            id: Id::Number(self.count as i64),
            method: method::find(method, Sender::Client, Revision::LATEST).unwrap(),
            params: Object::parse(&params.to_string()).unwrap(),
            meta: None,
            revision: Revision::LATEST,
            peer: Arc::new(Peer::default()),
            via: RequestStream::default(),
            is_unseen: false,
            wants_progress: false,
            log_level: None,
            attached: Attached::default(),
        };
        let caller = Arc::new(Caller::named("ann"));
        let handle = ConversationHandle::unheard();
        self.recorder.begin(&call, &caller, &handle, Trace::new(7, self.count), Instant::now())
    }

    /// A call of a tool at a server, with its answer.
    fn call(&mut self, tool: &Arc<Tool>, arguments: Value, result: Value) {
        let name = format!("a.{}", tool.name);
        let recording =
            self.begin("tools/call", json!({ "name": name, "arguments": arguments.clone() }));
        let params = json!({ "name": tool.name, "arguments": arguments });
        let params = Object::parse(&params.to_string()).unwrap();
        let now = Instant::now();
        recording.sends(
            target(tool),
            (Some(now), now),
            (1, Revision::V2025_11_25),
            false,
            Method::ToolsCall,
            &params,
        );
        let (id, result) = (1000 + self.count as i64, Json::of(&result));
        self.send(&recording, id, &params);
        self.answer(&recording, id, &result);
        end(&recording, Fine, Some(result));
    }

    fn list(&self, query: &[(&str, &str)]) -> Value {
        let mut filter = TrafficFilter::default();
        for (name, value) in query {
            assert_eq!(filter.set(name, value), Ok(true));
        }
        self.recorder.traffic.list(&filter, None)
    }

    fn detail(&self, call: &Value) -> Value {
        let id = call["id"].as_str().unwrap();
        let text = self.recorder.traffic.detail(id, Some("r1")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Everything that leaves: lists, details, exports.
    fn everything(&self) -> String {
        let list = self.list(&[]);
        let mut all = list.to_string();
        for call in list["calls"].as_array().unwrap() {
            all.push_str(&self.detail(call).to_string());
        }
        let exported = self.recorder.traffic.export(&TrafficFilter::default());
        all + &String::from_utf8(exported).unwrap()
    }
}

fn tool(name: &str, schema: Value) -> Arc<Tool> {
    let tool = json!({ "name": name, "inputSchema": schema });
    Arc::new(serde_json::from_value(tool).unwrap())
}

fn sent(link: &Link, message: &Message, cause: Option<Cause<'_>>) {
    link.sent(&SentMessage { message, text: None, via: None, cause, at: Instant::now() });
}

fn target(tool: &Arc<Tool>) -> CallTarget {
    let (server, name) = (Arc::from("a"), Arc::from(tool.name.as_str()));
    CallTarget::Known(Arc::new(Target { server, name, item: Item::Tool(Arc::clone(tool)) }))
}

fn end(recording: &Recording, outcome: outcome::Outcome, told: Option<Json>) {
    let told = told.map(Ok);
    recording.end(
        (outcome, None, Trace::new(7, 1)),
        told.as_ref(),
        Instant::now(),
        CallTarget::default,
    );
}

const PLAIN: &str = "mcpServers: {}";

#[test]
fn a_call_is_there_from_its_beginning_and_newest_first() {
    let mut scene = Scene::of(PLAIN);
    let say = tool("say", json!({}));
    scene.call(&say, json!({ "text": "hi" }), json!({ "content": [] }));
    let running = scene.begin("resources/read", json!({ "uri": "file:///x" }));
    let list = scene.list(&[]);
    let calls = list["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &list["dropped"]), (2, &json!(0)));
    assert_eq!((&calls[0]["state"], &calls[0]["outcome"]), (&json!("running"), &Value::Null));
    assert_eq!(list["oldest"], calls[1]["id"]);
    let mut told = calls[1].clone();
    for (name, value) in told.as_object_mut().unwrap() {
        if matches!(name.as_str(), "at" | "ms" | "stages" | "bytesIn" | "bytesOut") {
            assert!(!value.is_null(), "{name}");
            *value = json!("…");
        }
    }
    assert_eq!(
        told,
        json!({
            "id": Trace::new(7, 1).to_string(), "at": "…", "method": "tools/call", "name": "a.say",
            "server": "a", "instance": "1", "principal": "ann", "client": null,
            "revision": "2026-07-28", "serverRevision": "2025-11-25", "state": "done",
            "outcome": "ok", "reason": null, "ms": "…", "stages": "…", "bytesIn": "…",
            "bytesOut": "…", "rounds": 1, "questions": 0, "replica": null,
        })
    );
    end(&running, ToolError, None);
    assert_eq!(scene.list(&[])["calls"][0]["outcome"], "tool_error");
    for (query, count) in [
        (&[("outcome", "*error")][..], 1),
        (&[("server", "a"), ("principal", "an*")], 1),
        (&[("method", "tools/*,resources/*")], 2),
        (&[("text", "SAY")], 1),
        (&[("principal", "bob")], 0),
        (&[("limit", "1")], 1),
        (&[("since", "1h")], 2),
        (&[("before", calls[0]["id"].as_str().unwrap())], 1),
        (&[("before", calls[1]["id"].as_str().unwrap())], 0),
    ] {
        let found = scene.list(query)["calls"].as_array().unwrap().len();
        assert_eq!(found, count, "{query:?}");
    }
}

#[test]
fn rounds_and_tasks_of_a_call_are_one_call() {
    let mut scene = Scene::of(PLAIN);
    let first = scene.begin("tools/call", json!({ "name": "a.push" }));
    first.parks(1, Some("state-1"));
    end(&first, Asked, Some(Json::of(&json!({ "resultType": "input_required" }))));
    assert_eq!(scene.list(&[])["calls"][0]["outcome"], "asked");
    let again = json!({ "name": "a.push", "requestState": "state-1", "inputResponses": {} });
    let second = scene.begin("tools/call", again);
    assert_eq!(scene.list(&[])["calls"][0]["state"], "running");
    second.is_called("task-1");
    end(&second, Fine, Some(Json::empty_object()));
    let third = scene.begin("tasks/get", json!({ "taskId": "task-1" }));
    end(&third, Fine, Some(Json::empty_object()));
    let list = scene.list(&[]);
    assert_eq!(list["calls"].as_array().unwrap().len(), 1, "{list}");
    let call = &list["calls"][0];
    assert_eq!((&call["rounds"], &call["questions"]), (&json!(3), &json!(1)));
    assert_eq!(scene.detail(call)["messages"].as_array().unwrap().len(), 6);
    // A state that nobody knows begins a call of its own.
    scene.begin("tools/call", json!({ "name": "a.push", "requestState": "state-2" }));
    assert_eq!(scene.list(&[])["calls"].as_array().unwrap().len(), 2);
}

#[test]
fn messages_are_shown_as_they_were_said_on_both_sides() {
    let mut scene = Scene::of(PLAIN);
    let recording = scene.begin("tools/call", json!({ "name": "a.say" }));
    let (to, now) = (target(&tool("say", json!({}))), Instant::now());
    let params = Object::parse(r#"{"name":"say","arguments":{"n":1.50}}"#).unwrap();
    recording.sends(
        to,
        (Some(now), now + Duration::from_millis(1)),
        (4, Revision::V2025_11_25),
        true,
        Method::ToolsCall,
        &params,
    );
    scene.send(&recording, 7, &params);
    let (id, method) = (Id::Text("q".into()), Method::RootsList.into());
    let question = Message::Request { id: id.clone(), method, params: Params::Absent };
    scene.server.received(&question, RequestStream::default(), Instant::now());
    scene.server.claim_question(&id, &recording);
    recording.asks(FROM_SERVER, &Json::empty_object());
    let roots = Json::parse(r#"{"roots":[]}"#).unwrap();
    recording.replies(TO_SERVER, Some(&roots));
    sent(&scene.server, &Message::result(id, roots), None);
    let result = Json::parse(r#"{"b":1.50,"a":10000000000000000000000}"#).unwrap();
    scene.answer(&recording, 7, &result);
    end(&recording, Fine, Some(result));
    let call = scene.list(&[])["calls"][0].clone();
    let text = scene.recorder.traffic.detail(call["id"].as_str().unwrap(), None).unwrap();
    let spelled = r#""result":{"b":1.50,"a":10000000000000000000000}"#;
    assert_eq!(text.matches(spelled).count(), 2, "{text}");
    let detail: Value = serde_json::from_str(&text).unwrap();
    let said: Vec<_> = detail["messages"].as_array().unwrap().iter().collect();
    let places: Vec<_> = said
        .iter()
        .map(|it| format!("{} {}", it["side"].as_str().unwrap(), it["dir"].as_str().unwrap()))
        .collect();
    let expected =
        ["client in", "server out", "server in", "server out", "server in", "client out"];
    assert_eq!(places, expected);
    assert!(said.iter().all(|it| it["message"]["jsonrpc"] == "2.0"), "{text}");
    let ids: Vec<_> = said.iter().map(|it| &it["message"]["id"]).collect();
    assert_eq!(json!(ids), json!([1, 7, "q", "q", 7, 1]));
    let stages: Vec<_> =
        detail["stages"].as_array().unwrap().iter().map(|it| &it["stage"]).collect();
    assert!(stages.contains(&&json!("start")) && stages.contains(&&json!("upstream")), "{detail}");
    assert_eq!(detail["note"], Value::Null);
}

#[test]
fn an_export_is_a_recording_that_can_be_read() {
    let mut scene = Scene::of(PLAIN);
    for n in 0..3 {
        scene.call(&tool("say", json!({})), json!({ "n": n }), json!({ "content": [] }));
    }
    let text = scene.recorder.traffic.export(&TrafficFilter::default());
    let text = String::from_utf8(text).unwrap();
    let read = ReadRecording::read(&text).unwrap();
    assert_eq!((read.runs.len(), read.conversations.len()), (1, 1), "{text}");
    assert_eq!(read.conversations[0].said.len(), 6, "the client's side: {text}");
    assert_eq!(text.matches(r#""side":"server""#).count(), 6);
    let line: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    for (name, value) in [("principal", json!("ann")), ("server", json!("a")), ("v", json!(1))] {
        assert_eq!(line[name], value, "{line}");
    }
}

#[test]
fn no_secret_leaves_wherever_it_was_said() {
    let folder = Folder::new();
    let file = folder.put("key", "from-a-file-1\n");
    let catalog = format!(
        "
gateway:
  auth: {{ tokens: [{{ name: ann, token: bearer-of-ann-0123456789 }}] }}
  recording: {{ redact: [apiKey] }}
mcpServers:
  a: {{ command: a, env: {{ KEY: env-value-77 }}, args: ['--x', '${{file:{}}}'] }}
  b: {{ url: 'https://b.example/mcp', headers: {{ x-key: header-value-88 }} }}
",
        file.display()
    );
    let mut scene = Scene::of(&catalog);
    let schema = json!({ "properties": { "pin": { "writeOnly": true } } });
    let marked = tool("pay", schema);
    let plain = tool("say", json!({}));
    let secrets = [
        "bearer-of-ann-0123456789",
        "env-value-77",
        "header-value-88",
        "from-a-file-1",
        "marked-pin-99",
        "member-value-11",
        "form-value-22",
        "late-value-33",
    ];
    scene.call(&marked, json!({ "pin": "marked-pin-99" }), json!({ "content": [] }));
    scene.call(
        &plain,
        json!({ "apiKey": "member-value-11" }),
        json!({ "apiKey": "late-value-33" }),
    );
    let asked = scene.begin("tools/call", json!({ "name": "a.say" }));
    let form = json!({ "requestedSchema": { "properties": { "p": { "format": "password" } } } });
    asked.asks(FROM_SERVER, &Json::of(&form));
    let answer = json!({ "action": "accept", "content": { "p": "form-value-22" } });
    asked.replies(TO_SERVER, Some(&Json::of(&answer)));
    end(&asked, Fine, None);
    // A server repeats all it has heard, also as the name of something.
    let echo = secrets.join(" ");
    scene.call(&plain, json!({ "text": echo }), json!({ "content": [{ "text": echo }] }));
    let named = scene.begin("resources/read", json!({ "uri": echo }));
    let about = || CallTarget::Named(Arc::from(echo.as_str()));
    named.end((Fine, None, Trace::new(7, 1)), None, Instant::now(), about);
    let everything = scene.everything();
    for secret in secrets {
        assert!(!everything.contains(secret), "{secret} in {everything}");
    }
    assert!(everything.contains("*** *** *** ***"), "{everything}");
}

#[test]
fn payloads_are_kept_where_only_this_machine_calls_or_the_catalog_says_so() {
    let open = "listen: '0.0.0.0:1', plaintext: true, auth: { tokens: [{ name: a, token: 0123456789abcdef0123456789abcdef }] }";
    for (settings, keeps) in [
        ("{}".to_owned(), true),
        ("{ recording: { payloads: never } }".to_owned(), false),
        (format!("{{ {open} }}"), false),
        (format!("{{ {open}, recording: {{ payloads: always }} }}"), true),
        ("{ recording: { sample: 0 } }".to_owned(), false),
    ] {
        let mut scene = Scene::of(&format!("gateway: {settings}\nmcpServers: {{}}"));
        scene.call(&tool("say", json!({})), json!({ "n": "the-argument" }), json!({}));
        let everything = scene.everything();
        assert_eq!(everything.contains("the-argument"), keeps, "{settings}");
        let detail = scene.detail(&scene.list(&[])["calls"][0]);
        assert_eq!(detail["note"].is_null(), keeps, "{detail}");
        assert_eq!(detail["messages"].as_array().unwrap().len(), 4);
    }
    let off = plan("gateway: { recording: off }\nmcpServers: {}");
    assert!(Recorder::open(&Traffic::new(), &off, None).unwrap().is_none());
}

#[test]
fn of_a_sample_so_many_are_kept() {
    let mut scene = Scene::of("gateway: { recording: { sample: 0.1 } }\nmcpServers: {}");
    let say = tool("say", json!({}));
    (0..1000).for_each(|_| scene.call(&say, json!({}), json!({})));
    let all = scene.recorder.traffic.kept();
    let keeps = |it: &u64| all.journal.entry(*it, None).is_some_and(|it| it.log.keeps);
    let kept = all.journal.numbers().filter(keeps).count();
    assert!((80..=120).contains(&kept), "{kept}");
}

#[test]
fn the_journal_is_bounded_and_says_what_it_dropped() {
    let mut scene = Scene::of("gateway: { recording: { keep: 1MiB } }\nmcpServers: {}");
    let (say, text) = (tool("say", json!({})), "x".repeat(100_000));
    (0..20).for_each(|_| scene.call(&say, json!({}), json!({ "text": text })));
    let (calls, bytes) = scene.recorder.traffic.kept().journal.size();
    assert!(bytes <= 1 << 20 && (3..8).contains(&calls), "{calls} {bytes}");
    assert_eq!(scene.list(&[])["dropped"], json!(20 - calls));
}

#[tokio::test]
async fn followers_hear_of_calls_that_fit_and_of_what_they_missed() {
    let mut scene = Scene::of(PLAIN);
    let mut filter = TrafficFilter::default();
    filter.set("server", "a").unwrap();
    let mut updates = TrafficUpdates::new(&scene.recorder.traffic, filter, None);
    let say = tool("say", json!({}));
    scene.call(&say, json!({}), json!({}));
    let other = scene.begin("tools/list", json!({}));
    end(&other, Fine, None);
    let text = String::from_utf8(updates.next().await.unwrap()).unwrap();
    assert_eq!(text.matches("event: call\ndata: {").count(), 1, "{text}");
    assert!(text.contains(r#""outcome":"ok""#) && text.ends_with("\n\n"), "{text}");
    (0..2 * UPDATES).for_each(|_| scene.call(&say, json!({}), json!({})));
    let text = String::from_utf8(updates.next().await.unwrap()).unwrap();
    assert!(text.starts_with("event: dropped\ndata: {\"count\":"), "{text}");
}

#[tokio::test]
async fn the_end_of_a_call_that_was_told_is_told_even_if_it_no_longer_fits() {
    let mut scene = Scene::of(PLAIN);
    let follow = |scene: &Scene, name: &str, value: &str| {
        let mut filter = TrafficFilter::default();
        filter.set(name, value).unwrap();
        TrafficUpdates::new(&scene.recorder.traffic, filter, None)
    };
    async fn told(updates: &mut TrafficUpdates) -> Vec<Value> {
        let text = String::from_utf8(updates.next().await.unwrap()).unwrap();
        let calls = text.lines().filter_map(|it| it.strip_prefix("data: "));
        calls.map(|it| serde_json::from_str(it).unwrap()).collect()
    }
    let listed = scene.begin("tools/list", json!({}));
    let mut running = follow(&scene, "outcome", "running");
    let mut ended = follow(&scene, "outcome", "ok");
    let begun = scene.begin("tools/call", json!({ "name": "a.say" }));
    let first = told(&mut running).await;
    assert_eq!((first.len(), &first[0]["state"]), (1, &json!("running")), "{first:?}");
    end(&begun, Fine, None);
    end(&listed, Fine, None);
    for (updates, count) in [(&mut running, 2), (&mut ended, 2)] {
        let calls = told(updates).await;
        let outcomes: Vec<_> = calls.iter().map(|it| &it["outcome"]).collect();
        assert_eq!(outcomes, vec!["ok"; count], "{calls:?}");
    }
    // A call that it was never told of is none of its business.
    let mut failed = follow(&scene, "outcome", "error");
    for outcome in [Fine, outcome::Outcome::Error] {
        let other = scene.begin("tools/list", json!({}));
        end(&other, outcome, None);
    }
    let calls = told(&mut failed).await;
    assert_eq!((calls.len(), &calls[0]["outcome"]), (1, &json!("error")), "{calls:?}");
}

#[tokio::test]
async fn calls_go_to_a_file_without_secrets_and_each_message_once() {
    let folder = Folder::new();
    let path = folder.join("traffic.jsonl");
    let catalog = format!(
        "gateway: {{ recording: {{ file: {} }} }}\nmcpServers: {{ a: {{ command: a, env: {{ K: env-value-77 }} }} }}",
        path.display()
    );
    let mut scene = Scene::of(&catalog);
    let first = scene.begin("tools/call", json!({ "name": "a.push", "text": "env-value-77" }));
    first.parks(1, Some("s"));
    end(&first, Asked, Some(Json::empty_object()));
    let second = scene.begin("tools/call", json!({ "name": "a.push", "requestState": "s" }));
    end(&second, Fine, Some(Json::empty_object()));
    scene.recorder.settled().await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 5, "a beginning and four messages: {text}");
    assert!(text.contains("***") && !text.contains("env-value-77"), "{text}");
    assert_eq!(ReadRecording::read(&text).unwrap().conversations[0].said.len(), 4);
}
