//! Whom messages belong to.

use serde_json::{Value, json};
use trunkline_proto::{Call, CallKey, server};
use trunkline_testkit::Folder;
use trunkline_transport::drive::Driver;
use trunkline_transport::handler::Nobody;
use trunkline_transport::{Limits, memory};
use trunkline_wire::code;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Incoming;
use trunkline_wire::method::{self, Sender};
use trunkline_wire::model::Implementation;

use super::*;
use crate::fixture::plan;
use crate::trace::Trace;
use crate::traffic::TrafficFilter;

/// A client and a server, with the gateway between them.
struct Scene {
    recorder: Arc<Recorder>,
    handle: ConversationHandle,
    client: Arc<Link>,
    server: Arc<Link>,
    /// Keeps the conversation with the client open.
    driver: Box<dyn std::any::Any>,
}

impl Scene {
    fn new() -> Self {
        Self::of("mcpServers: {}")
    }

    fn of(catalog: &str) -> Self {
        let plan = plan(catalog);
        let recorder = Recorder::open(&Traffic::new(), &plan, None).unwrap().unwrap();
        let traffic = &recorder.traffic;
        traffic.uses(Some(&recorder));
        let config = Arc::new(server::Config::new(Implementation::new("gateway", "1")));
        let (near, far) = memory::pair();
        let core = server::Server::new(config);
        let driver = Driver::new(core, Arc::new(Nobody), far, None, Limits::default());
        let handle = driver.handle();
        let client = Link::of_client(traffic, Some(&handle), &Attached::default());
        handle.set_witness(Arc::clone(&client) as Arc<dyn Witness>);
        let server = Link::of_server(traffic, &Arc::from("a"), 3, whose);
        Self { recorder, handle, client, server, driver: Box::new((driver, near)) }
    }

    fn begin(&self, id: i64, meta: Option<Value>) -> Recording {
        self.begun(&self.call(id, meta))
    }

    fn call(&self, id: i64, meta: Option<Value>) -> Call {
        Call {
            key: CallKey(id as u64),
            id: Id::Number(id),
            method: method::find("tools/call", Sender::Client, Revision::LATEST).unwrap(),
            params: Object::default(),
            via: GENERAL,
            is_unseen: false,
            wants_progress: meta.is_some(),
            meta: meta.map(|it| Json::of(&it)),
            revision: Revision::LATEST,
            peer: Arc::default(),
            log_level: None,
            attached: Attached::default(),
        }
    }

    fn begun(&self, call: &Call) -> Recording {
        let caller = Arc::new(Caller::named("ann"));
        let trace = Trace::new(7, call.key.0);
        self.recorder.begin(call, &caller, &self.handle, trace, Instant::now())
    }

    /// A request comes with which a call begins.
    fn calls(&self, id: i64, meta: &str, via: RequestStream) -> (Recording, String) {
        let text = format!(
            r#"{{"jsonrpc":"2.0", "id":{id}, "method":"tools/call", "params":{{"name":"a"{meta}}}}}"#
        );
        let Incoming::One(message) = Incoming::parse(text.as_bytes()) else { panic!("{text}") };
        assert_eq!(message.text_read().map(|it| &**it), Some(&*text));
        let Message::Request { params: Params::Object(mut params), .. } = message else {
            panic!("{text}")
        };
        let meta = params.take("_meta");
        let call = Call { params, via, is_unseen: true, ..self.call(id, None) };
        let call = Call { wants_progress: meta.is_some(), meta, ..call };
        (self.begun(&call), text)
    }

    /// The entries, oldest first: the method, and the ids or methods of what was said.
    fn told(&self) -> Vec<String> {
        let list = self.recorder.traffic.list(&TrafficFilter::default(), None);
        let mut all: Vec<_> = list["calls"].as_array().unwrap().clone();
        all.reverse();
        let entry = |call: &Value| {
            let detail = self.recorder.traffic.detail(call["id"].as_str().unwrap(), None).unwrap();
            let detail: Value = serde_json::from_str(&detail).unwrap();
            let said = detail["messages"].as_array().unwrap().iter().map(|it| {
                let place = format!(
                    "{}{}",
                    &it["side"].as_str().unwrap()[..1],
                    if it["dir"] == "in" { "<" } else { ">" }
                );
                let message = &it["message"];
                match message["method"].as_str().filter(|_| message["id"].is_null()) {
                    Some(method) => format!("{place}{method}"),
                    None => format!("{place}{}", message["id"]),
                }
            });
            let said = said.collect::<Vec<_>>().join(" ");
            let outcome = call["outcome"].as_str().unwrap_or("running");
            format!("{} {outcome}: {said}", call["method"].as_str().unwrap())
        };
        all.iter().map(entry).collect()
    }
}

fn whose(attached: &Attached) -> Whose {
    match attached.get::<Option<Recording>>() {
        Some(None) => Whose::Nobody,
        _ => Whose::from(attached.get::<Recording>().map(|it| it.number)),
    }
}

fn message(value: Value) -> Message {
    match Incoming::parse(value.to_string().as_bytes()) {
        Incoming::One(message) => message,
        other => panic!("{other:?}"),
    }
}

fn request(id: impl Into<Value>, method: &str) -> Message {
    message(json!({ "jsonrpc": "2.0", "id": id.into(), "method": method }))
}

fn result(id: impl Into<Value>) -> Message {
    message(json!({ "jsonrpc": "2.0", "id": id.into(), "result": {} }))
}

fn error(id: i64, code: i64) -> Message {
    let error = json!({ "code": code, "message": "No." });
    message(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn cancelled(id: i64) -> Message {
    tells("notifications/cancelled", json!({ "requestId": id }))
}

fn tells(method: &str, params: Value) -> Message {
    message(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

impl Link {
    /// A message that is no call, or of whose call nothing is known yet.
    fn hears(&self, message: &Message, via: RequestStream) {
        self.received(message, via, Instant::now());
    }

    fn sends(&self, message: &Message, via: Option<RequestStream>, cause: Option<Cause<'_>>) {
        self.sent(&SentMessage { message, text: None, via, cause, at: Instant::now() });
    }

    /// Refuses a message that has the id of an open call.
    fn refuses(&self, message: &Message) {
        let (text, at) = (message.to_text(), Instant::now());
        let text = Some(text.as_bytes());
        let cause = Some(Cause::Beside);
        self.sent(&SentMessage { message, text, via: None, cause, at });
    }
}

const GENERAL: RequestStream = RequestStream(0);

fn end(recording: &Recording) {
    let told: Outcome = Ok(Json::empty_object());
    let ended = (outcome::Outcome::Ok, None, Trace::new(7, 1));
    recording.end(ended, Some(&told), Instant::now(), CallTarget::default);
}

/// A call ends for which nobody gets an answer any more.
fn give_up(recording: &Recording) {
    let over = (outcome::Outcome::Cancelled, None, Trace::new(7, 1));
    recording.end(over, None, Instant::now(), CallTarget::default);
}

#[test]
fn a_call_has_its_messages_on_both_sides_and_the_rest_is_the_conversations() {
    let scene = Scene::new();
    let Scene { client, server, .. } = &scene;
    client.hears(&request(0, "initialize"), RequestStream(1));
    client.sends(&result(0), Some(RequestStream(1)), None);
    client.hears(&tells("notifications/initialized", json!({})), RequestStream(2));
    server.sends(&request(1, "server/discover"), None, None);
    server.hears(&result(1), GENERAL);
    // Two calls at once, one of which wants progress and is asked.
    client.hears(&request(5, "tools/call"), RequestStream(3));
    let first = scene.begin(5, Some(json!({ "progressToken": "p" })));
    client.hears(&request(6, "tools/call"), RequestStream(4));
    let second = scene.begin(6, None);
    for (id, recording) in [(2, &first), (3, &second)] {
        let attached = Attached::new(recording.clone());
        server.sends(&request(id, "tools/call"), None, Some(Cause::Attached(&attached)));
    }
    server.hears(&tells("notifications/progress", json!({ "progressToken": 2 })), GENERAL);
    let progress = tells("notifications/progress", json!({ "progressToken": "p" }));
    client.sends(&progress, Some(RequestStream(3)), None);
    server.hears(&tells("notifications/message", json!({})), RequestStream(3));
    client.sends(&tells("notifications/message", json!({})), Some(RequestStream(4)), None);
    server.hears(&tells("notifications/message", json!({})), GENERAL);
    server.hears(&request("q", "roots/list"), GENERAL);
    server.claim_question(&Id::Text("q".into()), &first);
    let theirs = Id::Number(5);
    client.sends(&request(1, "roots/list"), None, Some(Cause::During(&theirs)));
    client.hears(&result(1), RequestStream(5));
    server.sends(&result("q"), None, None);
    server.hears(&result(3), RequestStream(3));
    client.hears(&request(7, "ping"), RequestStream(6));
    client.sends(&result(7), Some(RequestStream(6)), None);
    end(&second);
    client.sends(&result(6), Some(RequestStream(4)), None);
    client.hears(&cancelled(5), RequestStream(7));
    give_up(&first);
    server.sends(&cancelled(2), None, None);
    client.sends(&tells("notifications/tools/list_changed", json!({})), None, None);
    assert_eq!(
        scene.told(),
        [
            "initialize ok: c<0 c>0 c<notifications/initialized c<7 c>7 c>notifications/tools/list_changed",
            "server/discover ok: s>1 s<1 s<notifications/message",
            "tools/call cancelled: c<5 s>2 s<notifications/progress c>notifications/progress s<\"q\" c>1 c<1 \
             s>\"q\" c<notifications/cancelled s>notifications/cancelled",
            "tools/call ok: c<6 s>3 s<notifications/message c>notifications/message s<3 c>6",
        ]
    );
}

#[test]
fn a_call_begins_with_the_text_of_its_request_and_finds_its_answer_and_its_log() {
    let scene = Scene::new();
    let (plain, text) = scene.calls(1, "", RequestStream(1));
    let (other, _) = scene.calls(2, "", RequestStream(2));
    let (reports, with_token) =
        scene.calls(3, r#","_meta":{"progressToken":"p"}"#, RequestStream(3));
    let tells_to = |via, what: Value| {
        let message = match what.get("progressToken") {
            Some(_) => tells("notifications/progress", what),
            None => tells("notifications/message", what),
        };
        scene.client.sends(&message, Some(RequestStream(via)), None);
    };
    tells_to(2, json!({}));
    tells_to(1, json!({}));
    tells_to(3, json!({ "progressToken": "p" }));
    for (id, recording) in [(2, &other), (1, &plain), (3, &reports)] {
        end(recording);
        scene.client.sends(&result(id), Some(RequestStream(id as u64)), None);
    }
    let said = [
        "tools/call ok: c<1 c>notifications/message c>1",
        "tools/call ok: c<2 c>notifications/message c>2",
        "tools/call ok: c<3 c>notifications/progress c>3",
    ];
    assert_eq!(scene.told(), said);
    assert_eq!(scene.client.open(&mut scene.recorder.traffic.kept().open).len(), 0);
    let exported = String::from_utf8(scene.recorder.traffic.export(&TrafficFilter::default()));
    let exported = exported.unwrap();
    for text in [text, with_token] {
        let text = text.replace(", \"", ",\"");
        assert!(exported.contains(&text), "{text}\n{exported}");
    }
}

#[test]
fn a_call_that_is_cancelled_when_its_answer_is_about_to_leave_has_ended() {
    let scene = Scene::new();
    let (_succeeded, _) = scene.calls(1, "", GENERAL);
    let (at_work, _) = scene.calls(2, "", GENERAL);
    let (failed, _) = scene.calls(3, "", GENERAL);
    let over = (outcome::Outcome::ToolError, None, Trace::new(7, 1));
    failed.end(over, Some(&Ok(Json::empty_object())), Instant::now(), CallTarget::default);
    for id in [1, 2, 3, 4] {
        scene.client.hears(&cancelled(id), GENERAL);
    }
    give_up(&at_work);
    let said = |id: i64, outcome| format!("tools/call {outcome}: c<{id} c<notifications/cancelled");
    let told = scene.told();
    assert_eq!(told[..3], [said(1, "cancelled"), said(2, "cancelled"), said(3, "tool_error")]);
    assert_eq!(told[3..], ["notifications/cancelled ok: c<notifications/cancelled"]);
}

#[tokio::test]
async fn calls_whose_answers_do_not_leave_are_in_the_file() {
    let folder = Folder::new();
    let path = folder.join("traffic.jsonl");
    let catalog =
        format!("gateway: {{ recording: {{ file: {} }} }}\nmcpServers: {{}}", path.display());
    let scene = Scene::of(&catalog);
    let (recorder, _) = (Arc::clone(&scene.recorder), scene.calls(1, "", GENERAL));
    scene.client.hears(&cancelled(1), GENERAL);
    scene.calls(2, "", GENERAL);
    let Scene { handle, client, driver, .. } = scene;
    drop((handle, client, driver));
    recorder.settled().await;
    let text = std::fs::read_to_string(&path).unwrap();
    let said = text.matches("\"method\":\"tools/call\"").count();
    assert_eq!((said, text.lines().count()), (2, 4), "a beginning, and a cancellation: {text}");
}

#[test]
fn a_request_with_the_id_of_an_open_call_is_the_conversations_and_so_is_its_refusal() {
    for meta in ["", r#","_meta":{"progressToken":"p"}"#] {
        let scene = Scene::new();
        let (call, _) = scene.calls(5, meta, GENERAL);
        scene.client.hears(&request(5, "tools/call"), GENERAL);
        scene.client.refuses(&error(5, code::INVALID_REQUEST));
        if !call.is_plain {
            end(&call);
        }
        scene.client.sends(&result(5), None, None);
        assert_eq!(scene.told(), ["tools/call ok: c<5 c>5", "tools/call error: c<5 c>5"]);
        // From now on the id is free.
        scene.client.hears(&request(5, "ping"), GENERAL);
        scene.client.sends(&result(5), None, None);
        assert_eq!(scene.told()[1], "tools/call error: c<5 c>5 c<5 c>5");
    }
}

#[test]
fn an_error_for_another_message_is_no_answer_to_the_call_of_its_id() {
    let scene = Scene::new();
    let (_call, _) = scene.calls(5, "", GENERAL);
    scene.client.refuses(&error(5, code::INVALID_REQUEST));
    assert_eq!(scene.told(), ["tools/call running: c<5", "response ok: c>5"]);
    scene.client.sends(&result(5), None, None);
    // An error of the call itself is told to it before.
    let (failed, _) = scene.calls(6, "", GENERAL);
    let over = (outcome::Outcome::Refused, None, Trace::new(7, 1));
    failed.end(over, Some(&Ok(Json::empty_object())), Instant::now(), CallTarget::default);
    scene.client.sends(&error(6, code::INVALID_PARAMS), None, None);
    let told = ["tools/call ok: c<5 c>5", "response ok: c>5", "tools/call refused: c<6 c>6"];
    assert_eq!(scene.told(), told);
}

#[test]
fn a_call_that_is_answered_at_its_deadline_has_not_succeeded() {
    let scene = Scene::new();
    let (succeeded, _) = scene.calls(5, "", GENERAL);
    scene.client.sends(&error(5, code::INTERNAL_ERROR), None, None);
    assert_eq!(scene.told(), ["tools/call error: c<5 c>5"]);
    // Its handler may be stopped only after that.
    give_up(&succeeded);
    assert_eq!(scene.told(), ["tools/call cancelled: c<5 c>5"]);
    assert_eq!(scene.client.open(&mut scene.recorder.traffic.kept().open).len(), 0);
}

#[test]
fn a_call_that_is_recorded_elsewhere_and_the_polls_of_tasks_are_nobodys() {
    let scene = Scene::new();
    let (elsewhere, nothing) = (Attached::new(None::<Recording>), Attached::default());
    for (id, method, attached) in [(1, "tools/call", elsewhere), (2, "tasks/get", nothing)] {
        scene.server.sends(&request(id, method), None, Some(Cause::Attached(&attached)));
        let progress = tells("notifications/progress", json!({ "progressToken": id }));
        scene.server.hears(&progress, GENERAL);
        scene.server.hears(&result(id), GENERAL);
    }
    assert_eq!(scene.told(), Vec::<String>::new());
}

#[test]
fn the_arguments_of_a_call_that_nobody_looked_at_are_masked() {
    let scene = Scene::new();
    let params = json!({ "name": "a.pay", "arguments": { "pin": "zzzz" } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    scene.client.hears(&message(call), GENERAL);
    scene.client.sends(&result(1), Some(GENERAL), None);
    let exported = scene.recorder.traffic.export(&TrafficFilter::default());
    let exported = String::from_utf8(exported).unwrap();
    assert!(exported.contains(r#""arguments":"***""#) && !exported.contains("zzzz"), "{exported}");
}

#[test]
fn what_belongs_to_a_subscription_is_one_entry_that_ends_with_it() {
    let scene = Scene::new();
    scene.client.hears(&request(1, "subscriptions/listen"), GENERAL);
    let acknowledged = tells("notifications/subscriptions/acknowledged", json!({}));
    scene.client.sends(&acknowledged, Some(GENERAL), None);
    let told = "subscriptions/listen running: c<1 c>notifications/subscriptions/acknowledged";
    assert_eq!(scene.told(), [told]);
    let Scene { handle, client, driver, recorder, .. } = scene;
    drop((handle, client, driver));
    let list = recorder.traffic.list(&TrafficFilter::default(), None);
    assert_eq!(list["calls"][0]["outcome"], "cancelled");
}

#[test]
fn requests_that_are_never_answered_are_forgotten() {
    let scene = Scene::new();
    let recording = scene.begin(1, None);
    end(&recording);
    let attached = Attached::new(recording);
    for id in 0..10_000 {
        scene.server.sends(&request(id, "tools/call"), None, Some(Cause::Attached(&attached)));
        scene.client.hears(&request(id, "tools/call"), GENERAL);
    }
    let sizes = [&scene.server, &scene.client].map(|it| it.open(&mut it.traffic.kept().open).len());
    assert!(sizes.iter().all(|it| *it < 1_000), "{sizes:?}");
}

#[test]
fn a_conversation_goes_on_in_another_entry_when_its_own_is_full() {
    let scene = Scene::new();
    for id in 0..600 {
        scene.client.hears(&request(id, "ping"), GENERAL);
        scene.client.sends(&result(id), Some(GENERAL), None);
    }
    let list = scene.recorder.traffic.list(&TrafficFilter::default(), None);
    assert_eq!(list["calls"].as_array().unwrap().len(), 3, "1200 messages, 512 in each");
    let counts: usize = scene.told().iter().map(|it| it.split(' ').count() - 2).sum();
    assert_eq!(counts, 1_200);
}

#[test]
fn a_link_of_one_request_is_used_again_without_what_was_open() {
    let scene = Scene::new();
    let (traffic, ring) = (&scene.recorder.traffic, Arc::new(OneRequestLinks::default()));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "n": 1 } });
    let mut seen = Vec::new();
    for _ in 0..1_000 {
        let link = ring.link(traffic, &Attached::default());
        let open = |link: &Link| link.open(&mut traffic.kept().open).len();
        assert_eq!(open(&link), 0);
        link.hears(&message(call.clone()), GENERAL);
        assert_eq!(open(&link), 1, "nobody answers it");
        seen.push(Arc::as_ptr(&link));
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() <= 64, "{}", seen.len());
    // Those that are in use are not used twice.
    let held: Vec<_> = (0..200).map(|_| ring.link(traffic, &Attached::default())).collect();
    let mut held: Vec<_> = held.iter().map(Arc::as_ptr).collect();
    held.sort_unstable();
    held.dedup();
    assert_eq!(held.len(), 200);
}

#[test]
fn an_entry_of_a_conversation_of_one_request_ends_with_it() {
    let scene = Scene::new();
    let ring = Arc::new(OneRequestLinks::default());
    let link = ring.link(&scene.recorder.traffic, &Attached::default());
    link.hears(&request(1, "subscriptions/listen"), GENERAL);
    let acknowledged = tells("notifications/subscriptions/acknowledged", json!({}));
    link.sends(&acknowledged, Some(GENERAL), None);
    let told = "c<1 c>notifications/subscriptions/acknowledged";
    assert_eq!(scene.told(), [format!("subscriptions/listen running: {told}")]);
    drop(link);
    assert_eq!(scene.told(), [format!("subscriptions/listen cancelled: {told}")]);
}
