//! Results, tasks and `_meta` as each era spells them.

use serde_json::{Value, json as value};
use trunkline_wire::era::stateful::{
    self, Fit, RequestMeta, ResultBody, encode, write_call_tool_result,
};
use trunkline_wire::era::stateless::{self, Decoded, Envelope, Extras, decode_result};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Object};
use trunkline_wire::model::meta::{self, MetaFault};
use trunkline_wire::model::*;
use trunkline_wire::revision::Revision::{self, *};

use crate::json;

fn parsed(json: &Json) -> Value {
    json.to().unwrap()
}

#[test]
fn results_say_their_type_only_in_the_stateless_era() {
    let info = json(r#"{"name":"s","version":"1"}"#);
    let extras = Extras { cache: Some(CacheHint::public(7)), server_info: Some(&info) };
    let tools = || ListToolsResult::new(vec![]).next_cursor("c");
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let written = parsed(&encode(tools(), revision, &extras));
        assert_eq!(written, value!({ "tools": [], "nextCursor": "c" }), "{revision}");
        assert_eq!(encode(EmptyResult::new(), revision, &extras).get(), "{}");
    }
    let about = value!({ (meta::SERVER_INFO): { "name": "s", "version": "1" } });
    assert_eq!(
        parsed(&encode(tools(), V2026_07_28, &extras)),
        value!({ "resultType": "complete", "ttlMs": 7, "cacheScope": "public", "_meta": about, "tools": [], "nextCursor": "c" })
    );
    assert_eq!(
        parsed(&encode(EmptyResult::new(), V2026_07_28, &extras)),
        value!({ "resultType": "complete", "_meta": about })
    );
    assert_eq!(
        encode(EmptyResult::new(), V2026_07_28, &Extras::default()).get(),
        r#"{"resultType":"complete"}"#
    );
}

#[test]
fn exactly_the_six_cacheable_results_carry_a_hint() {
    fn hint<T: ResultBody>(value: T) -> (Value, Value) {
        let written = parsed(&encode(value, V2026_07_28, &Extras::default()));
        (written["ttlMs"].clone(), written["cacheScope"].clone())
    }
    let none = (value!(0), value!("private"));
    assert_eq!(hint(ListToolsResult::default()), none);
    assert_eq!(hint(ListPromptsResult::default()), none);
    assert_eq!(hint(ListResourcesResult::default()), none);
    assert_eq!(hint(ListResourceTemplatesResult::default()), none);
    assert_eq!(hint(ReadResourceResult::default()), none);
    assert_eq!(hint(DiscoverResult::new(vec![], ServerCapabilities::new())), none);
    let absent = (Value::Null, Value::Null);
    assert_eq!(hint(CallToolResult::default()), absent);
    assert_eq!(hint(GetPromptResult::default()), absent);
    assert_eq!(hint(CompleteResult::default()), absent);
}

#[test]
fn a_server_does_not_overwrite_who_answered() {
    let ours = json(r#"{"name":"gateway","version":"1"}"#);
    let extras = Extras { cache: None, server_info: Some(&ours) };
    let theirs =
        json(&format!(r#"{{"x":1,"{}":{{"name":"up","version":"2"}}}}"#, meta::SERVER_INFO));
    let written = encode(CallToolResult::text("t").meta(theirs), V2026_07_28, &extras);
    assert_eq!(stateless::decode_server_info(&written).unwrap().name, "up");
    let written = encode(CallToolResult::text("t").meta(json(r#"{"x":1}"#)), V2026_07_28, &extras);
    assert_eq!(stateless::decode_server_info(&written).unwrap().name, "gateway");
    assert_eq!(parsed(&written)["_meta"]["x"], 1);
}

#[test]
fn tool_results_are_written_by_hand_as_serde_would() {
    let info = json(r#"{"name":"s","version":"1"}"#);
    let extras = Extras { cache: None, server_info: Some(&info) };
    let every: String = (0..0x80_u8).map(char::from).collect();
    let results = [
        CallToolResult::default(),
        CallToolResult::text("plain"),
        CallToolResult::text(format!("{every} ü ✓ 🦀").repeat(50)),
        CallToolResult::error("no"),
        CallToolResult::structured(json(r#"{"a":1.50}"#)),
        CallToolResult::structured(json("[1]")).meta(json(r#"{"m":1}"#)),
        CallToolResult::new(vec![
            Content::text("a"),
            Content::audio("AA==", "audio/wav"),
            TextContent::new("b").meta(json(r#"{"m":1}"#)).into(),
            ResourceLink::new("a:1", "one").into(),
        ]),
    ];
    for result in results {
        for revision in Revision::ALL {
            let mut out = String::new();
            write_call_tool_result(&result, revision.profile(), &extras, &mut out);
            let by_hand: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(by_hand, parsed(&encode(result.clone(), revision, &extras)), "{revision}");
            let mut fitted = result.clone();
            fitted.fit(revision.profile());
            let mut by_serde = serde_json::from_str::<Value>(Json::of(&fitted).get()).unwrap();
            if revision == V2026_07_28 {
                by_serde["resultType"] = value!("complete");
                by_serde["_meta"][meta::SERVER_INFO] = parsed(&info);
            }
            assert_eq!(by_hand, by_serde, "{revision}");
        }
    }
}

#[test]
fn raw_results_are_stamped_once() {
    let extras = Extras { cache: Some(CacheHint::private(5)), server_info: None };
    let body = Object::parse(r#"{"tools":[],"resultType":"x","ttlMs":1,"_meta":{"a":1}}"#).unwrap();
    assert_eq!(
        stateless::add_envelope(body, true, &extras).get(),
        r#"{"resultType":"complete","ttlMs":5,"cacheScope":"private","_meta":{"a":1},"tools":[]}"#
    );
    let empty = stateless::add_envelope(Object::default(), false, &extras);
    assert_eq!(empty.get(), r#"{"resultType":"complete"}"#);
}

#[test]
fn result_types_are_distinguished() {
    let decode = |text: &str| decode_result(json(text));
    for text in [r#"{"content":[]}"#, r#"{"resultType":"complete","content":[]}"#] {
        assert_eq!(decode(text).unwrap(), Decoded::Complete(json(text)));
    }
    assert_eq!(decode(r#"{"resultType":"new"}"#).unwrap(), Decoded::Unknown("new".into()));
    let Decoded::InputRequired(input) = decode(
        r#"{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"},"a":{"method":"roots/list"}},"requestState":"s"}"#,
    )
    .unwrap() else {
        panic!("it asks something")
    };
    let keys: Vec<_> = input.requests.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!((keys, input.state.as_deref()), (vec!["b", "a"], Some("s")));
    for text in [
        r#"{"resultType":5}"#,
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"task"}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call"}}}"#,
        r#"{"resultType":"complete","resultType":"complete"}"#,
        "[]",
    ] {
        assert!(decode(text).is_err(), "{text}");
    }
}

#[test]
fn cache_hints_are_read_carefully() {
    let table = [
        (r#"{"ttlMs":5,"cacheScope":"public"}"#, CacheHint::public(5)),
        (r#"{"ttlMs":5,"cacheScope":"novel"}"#, CacheHint::private(5)),
        (r#"{"ttlMs":-5,"cacheScope":"private"}"#, CacheHint::NONE),
        (r#"{"ttlMs":"5"}"#, CacheHint::NONE),
        ("{}", CacheHint::NONE),
    ];
    for (text, expected) in table {
        assert_eq!(stateless::decode_cache(&json(text)), expected, "{text}");
    }
}

#[test]
fn questions_lose_what_only_older_revisions_have() {
    let url = ElicitUrl::new("m", "https://example.org").elicitation_id("e");
    let requests = vec![("k".to_owned(), InputRequest::Elicit(ElicitParams::Url(url)))];
    let input = InputRequired::new(requests).state("s");
    assert_eq!(
        parsed(&stateless::encode_input_required(&input, &Extras::default())),
        value!({
            "resultType": "input_required",
            "inputRequests": { "k": { "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": "https://example.org" } } },
            "requestState": "s",
        })
    );
}

#[test]
fn tasks_in_both_generations() {
    let task = Task::new("t", "2026-01-01T00:00:00Z").poll_interval_ms(5_u64);
    let old = value!({ "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": null, "pollInterval": 5 });
    assert_eq!(parsed(&stateful::encode_task(&task)), old);
    let created = stateful::encode_task_created(&task);
    assert_eq!(parsed(&created), value!({ "task": old }));
    assert_eq!(Task::read(&created).unwrap(), task);
    let list = ListTasksResult::new(vec![task.clone()]).next_cursor("c");
    let written = stateful::encode_task_list(&list);
    assert_eq!(parsed(&written), value!({ "tasks": [old], "nextCursor": "c" }));
    assert_eq!(written.to::<ListTasksResult>().unwrap(), list);

    let created = stateless::encode_task_created(&task, &Extras::default());
    let new = value!({ "resultType": "task", "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null, "pollIntervalMs": 5 });
    assert_eq!(parsed(&created), new);
    assert_eq!(decode_result(created).unwrap(), Decoded::Task(task.clone()));

    let task = task.status(TaskStatus::Completed).ttl_ms(60_u64);
    let detail = DetailedTask::new(task).result(json(r#"{"content":[],"isError":true}"#));
    let written = stateless::encode_task_detail(&detail, &Extras::default());
    assert_eq!(parsed(&written)["resultType"], "complete");
    assert_eq!(parsed(&written)["result"], value!({ "content": [], "isError": true }));
    assert_eq!(written.to::<DetailedTask>().unwrap(), detail);
    assert_eq!(parsed(&stateless::encode_task_params(&detail)).get("resultType"), None);
}

#[test]
fn subscriptions_are_tagged_with_the_exact_id() {
    for id in [Id::Number(1), Id::Text("1".into())] {
        let mut params = Object::parse(r#"{"uri":"a:1","_meta":{"x":1}}"#).unwrap();
        stateless::tag_subscription(&mut params, &id);
        let meta = params.get("_meta").unwrap();
        assert_eq!(stateless::subscription_id(meta), Some(id.clone()));
        assert_eq!(parsed(meta)["x"], 1);
        let result = stateless::encode_listen_result(&id, &Extras::default());
        let meta = Object::parse(result.get()).unwrap().take("_meta").unwrap();
        assert_eq!(stateless::subscription_id(&meta), Some(id));
    }
}

#[test]
fn the_envelope_is_read_and_written() {
    let text = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/logLevel":"notice","progressToken":"1","traceparent":"00-a","x":{"n":1.50}}"#;
    let envelope = Envelope::read(Some(&json(text))).unwrap();
    assert_eq!(envelope.revision(), Some(V2026_07_28));
    assert_eq!(envelope.progress_token, Some(Id::Text("1".into())));
    assert_eq!(envelope.log_level, Some(LogLevel::Notice));
    assert_eq!(envelope.client_info.as_ref().unwrap().name, "c");
    assert!(envelope.capabilities.sampling.is_some());
    assert_eq!(envelope.rest.get("traceparent").unwrap().get(), r#""00-a""#);
    assert_eq!(envelope.to_json().get(), text);

    let ours =
        Envelope::new(V2026_07_28, ClientCapabilities::new().roots(RootsCapability::new(true)));
    let written = ours.to_json();
    assert!(!written.get().contains("listChanged"), "2026-07-28 has no `roots.listChanged`");
}

#[test]
fn an_envelope_with_faults_names_them() {
    const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let read =
        |members: &[&str]| Envelope::read(Some(&json(&format!("{{{}}}", members.join(",")))));
    assert_eq!(Envelope::read(None), Err(MetaFault::Missing(meta::PROTOCOL_VERSION)));
    assert_eq!(Envelope::read(Some(&json("[]"))), Err(MetaFault::NotAnObject));
    assert_eq!(read(&[CAPABILITIES]), Err(MetaFault::Missing(meta::PROTOCOL_VERSION)));
    assert_eq!(read(&[VERSION]), Err(MetaFault::Missing(meta::CLIENT_CAPABILITIES)));
    assert_eq!(read(&[VERSION, VERSION, CAPABILITIES]), Err(MetaFault::Repeated));
    assert!(read(&[VERSION, CAPABILITIES]).is_ok(), "the client need not say who it is");
    let table = [
        (r#""io.modelcontextprotocol/clientInfo":"me""#, meta::CLIENT_INFO),
        (r#""io.modelcontextprotocol/clientInfo":["me","1"]"#, meta::CLIENT_INFO),
        (r#""io.modelcontextprotocol/logLevel":"loud""#, meta::LOG_LEVEL),
        (r#""progressToken":1.5"#, meta::PROGRESS_TOKEN),
        (r#""progressToken":{}"#, meta::PROGRESS_TOKEN),
    ];
    for (member, name) in table {
        assert_eq!(read(&[VERSION, CAPABILITIES, member]), Err(MetaFault::Wrong(name)));
    }
    let number = r#""io.modelcontextprotocol/protocolVersion":20260728"#;
    assert_eq!(read(&[number, CAPABILITIES]), Err(MetaFault::Wrong(meta::PROTOCOL_VERSION)));
    let list = r#""io.modelcontextprotocol/clientCapabilities":[]"#;
    assert_eq!(read(&[VERSION, list]), Err(MetaFault::Wrong(meta::CLIENT_CAPABILITIES)));
    let error = ErrorObject::from(MetaFault::Missing(meta::CLIENT_CAPABILITIES));
    assert_eq!(error.code, -32602);
    assert!(error.message.contains(meta::CLIENT_CAPABILITIES));
    let other = Envelope::read(Some(&json(
        r#"{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}"#,
    )));
    assert_eq!(other.unwrap().revision(), None);
}

#[test]
fn request_meta_of_the_stateful_era() {
    let text = r#"{"x":1,"progressToken":7,"io.modelcontextprotocol/related-task":{"taskId":"t"}}"#;
    let read = RequestMeta::read(Some(&json(text))).unwrap();
    assert_eq!(read.progress_token, Some(Id::Number(7)));
    assert_eq!(read.related_task.as_deref(), Some("t"));
    assert_eq!(read.to_json().unwrap().get(), text);
    assert_eq!(RequestMeta::read(None), Ok(RequestMeta::default()));
    assert_eq!(RequestMeta::default().to_json(), None);
    let wrong = RequestMeta::read(Some(&json(r#"{"progressToken":true}"#)));
    assert_eq!(wrong, Err(MetaFault::Wrong(meta::PROGRESS_TOKEN)));
    assert_eq!(RequestMeta::read(Some(&json("1"))), Err(MetaFault::NotAnObject));
}
