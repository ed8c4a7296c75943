//! Reading is lenient, writing is exact, and carried JSON stays byte for byte.

use serde::Serialize;
use serde::de::DeserializeOwned;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{Id, Object};
use trunkline_wire::method::Gate;
use trunkline_wire::model::*;

use crate::{json, value};

fn check<T: DeserializeOwned + Serialize>(read: &str, written: &str) {
    let it: T = json(read).to().unwrap_or_else(|err| panic!("{err} in {read}"));
    assert_eq!(value(Json::of(&it).get()), value(written), "{read}");
}

fn refuse<T: DeserializeOwned>(text: &str) {
    assert!(json(text).to::<T>().is_err(), "{text} should not be readable");
}

#[test]
fn unknown_members_are_ignored_and_missing_ones_default() {
    check::<Tool>(
        r#"{"name":"a","inputSchema":{"type":"object"},"icons":null,"novelty":[1,{}]}"#,
        r#"{"name":"a","inputSchema":{"type":"object"}}"#,
    );
    check::<CallToolResult>(
        r#"{"structuredContent":1}"#,
        r#"{"content":[],"structuredContent":1}"#,
    );
    check::<ServerCapabilities>(r#"{"tools":{"x":1},"y":2}"#, r#"{"tools":{}}"#);
    check::<GetPromptParams>(r#"{"name":"p","arguments":null}"#, r#"{"name":"p"}"#);
}

#[test]
fn a_duplicate_member_is_refused() {
    refuse::<Tool>(r#"{"name":"a","name":"b","inputSchema":{}}"#);
    refuse::<Content>(r#"{"type":"text","text":"a","text":"b"}"#);
    refuse::<Content>(r#"{"type":"text","type":"image","text":"b"}"#);
    refuse::<InputRequired>(
        r#"{"inputRequests":{"k":{"method":"roots/list"},"k":{"method":"roots/list"}}}"#,
    );
    refuse::<ProgressParams>(r#"{"progressToken":1,"progressToken":2,"progress":1}"#);
}

#[test]
fn null_is_a_structured_result_and_nothing_is_not() {
    let some: CallToolResult = json(r#"{"content":[],"structuredContent":null}"#).to().unwrap();
    assert_eq!(some.structured_content, Some(Json::null()));
    assert_eq!(Json::of(&some).get(), r#"{"content":[],"structuredContent":null}"#);
    let none: CallToolResult = json(r#"{"content":[]}"#).to().unwrap();
    assert_eq!(none.structured_content, None);
    assert_eq!(Json::of(&none).get(), r#"{"content":[]}"#);
}

#[test]
fn carried_json_keeps_its_spelling() {
    let text = r#"{"name":"t","arguments":{"z":1.50,"a":12345678901234567890123,"m":"\u0041"}}"#;
    let params: CallToolParams = json(text).to().unwrap();
    assert_eq!(Json::of(&params).get(), text);
    let again = CallToolParams::from_object(Object::parse(text).unwrap()).unwrap();
    assert_eq!(again, params);
    assert_eq!(again.into_object().to_json().get(), text);
}

#[test]
fn tool_call_parameters_from_members_are_as_strict_as_from_text() {
    for text in [r#"{"arguments":{}}"#, r#"{"name":1}"#, r#"{"name":"t","task":5}"#] {
        let object = Object::parse(text).unwrap();
        assert!(CallToolParams::from_object(object).is_err(), "{text}");
        refuse::<CallToolParams>(text);
    }
    let object = Object::parse(r#"{"name":"t","arguments":null,"task":{"ttl":5}}"#).unwrap();
    let params = CallToolParams::from_object(object).unwrap();
    assert_eq!(params, CallToolParams::new("t").task(TaskRequest::new().ttl_ms(5_u64)));
}

#[test]
fn content_of_an_unknown_kind_survives() {
    let text = r#"{"type":"hologram","depth":3}"#;
    let block: Content = json(text).to().unwrap();
    assert_eq!(block, Content::Other(json(text)));
    assert_eq!(Json::of(&block).get(), text);
    refuse::<Content>(r#"{"text":"no kind"}"#);
    refuse::<Content>(r#"{"type":"text"}"#);
    refuse::<Content>(r#"["text"]"#);
    refuse::<ResourceContents>(r#"{"uri":"a:b"}"#);
}

#[test]
fn whole_numbers_are_written_without_a_point() {
    check::<Progress>(r#"{"progress":50.0,"total":1e2}"#, r#"{"progress":50,"total":100}"#);
    check::<Progress>(r#"{"progress":0.25}"#, r#"{"progress":0.25}"#);
}

#[test]
fn progress_tokens_keep_their_type() {
    for (text, token) in [("1", Id::Number(1)), (r#""1""#, Id::Text("1".into()))] {
        let text = format!(r#"{{"progressToken":{text},"progress":1}}"#);
        let params: ProgressParams = json(&text).to().unwrap();
        assert_eq!(params.token, token);
        assert_eq!(Json::of(&params).get(), text);
    }
}

#[test]
fn an_empty_elicitation_capability_means_forms() {
    let empty: ClientCapabilities = json(r#"{"elicitation":{}}"#).to().unwrap();
    let elicitation = empty.elicitation.unwrap();
    assert!(elicitation.form && !elicitation.url);
    check::<ClientCapabilities>(r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"url":{}}}"#);
    let ours = ClientCapabilities::new().elicitation(ElicitationCapability::BOTH);
    assert_eq!(Json::of(&ours).get(), r#"{"elicitation":{"form":{},"url":{}}}"#);
}

#[test]
fn task_capabilities_are_nested_on_the_wire() {
    check::<ServerCapabilities>(
        r#"{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
        r#"{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
    );
    let wire = r#"{"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}"#;
    check::<ClientCapabilities>(wire, wire);
    let read: ClientCapabilities = json(wire).to().unwrap();
    assert_eq!(read.tasks, Some(ClientTasks::ALL));
}

#[test]
fn capabilities_open_their_gates() {
    let server: ServerCapabilities = json(
        r#"{"tools":{},"resources":{"subscribe":true},"logging":{},"tasks":{"cancel":{}},
            "extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    )
    .to()
    .unwrap();
    let open = [
        Gate::None,
        Gate::Tools,
        Gate::Resources,
        Gate::Subscribe,
        Gate::Logging,
        Gate::Tasks,
        Gate::TaskCancel,
        Gate::TasksExtension,
    ];
    let shut =
        [Gate::Prompts, Gate::Completions, Gate::TaskList, Gate::Sampling, Gate::Elicitation];
    assert!(open.into_iter().all(|gate| server.supports(gate)));
    assert!(!shut.into_iter().any(|gate| server.supports(gate)));
    let client: ClientCapabilities = json(r#"{"roots":{},"sampling":{}}"#).to().unwrap();
    assert!(client.supports(Gate::Roots) && client.supports(Gate::Sampling));
    assert!(!client.supports(Gate::Elicitation) && !client.supports(Gate::Tools));
}

#[test]
fn log_levels_are_ordered_by_severity() {
    assert!(LogLevel::ALL.is_sorted());
    for level in LogLevel::ALL {
        assert_eq!(level.as_str().parse(), Ok(level));
        assert_eq!(Json::of(&level).get(), format!("\"{level}\""));
    }
    assert!("verbose".parse::<LogLevel>().unwrap_err().contains("choose one of debug"));
}

#[test]
fn elicitation_defaults_to_a_form() {
    let form: ElicitParams =
        json(r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#)
            .to()
            .unwrap();
    assert!(matches!(form, ElicitParams::Form(_)));
    refuse::<ElicitParams>(r#"{"mode":"url","message":"m"}"#);
    refuse::<ElicitParams>(r#"{"mode":"form","message":"m"}"#);
    refuse::<ElicitParams>(r#"{"mode":"smell","message":"m"}"#);
}

#[test]
fn forms_keep_the_order_of_their_fields() {
    let form = FormSchema::new()
        .required("zip", StringSchema::new().min_length(5_u64))
        .optional("age", NumberSchema::new().integer(true).minimum(0.0))
        .optional("colour", EnumSchema::titled([("r", "Red")]).initial(vec!["r".to_owned()]));
    assert_eq!(
        form.to_json().get(),
        concat!(
            r#"{"type":"object","properties":{"zip":{"type":"string","minLength":5},"#,
            r#""age":{"type":"integer","minimum":0},"#,
            r#""colour":{"type":"string","oneOf":[{"const":"r","title":"Red"}],"default":"r"}},"#,
            r#""required":["zip"]}"#
        )
    );
    assert_eq!(form.to_json().to::<FormSchema>().unwrap(), form);
}

#[test]
fn old_enum_names_are_titles() {
    let field: PrimitiveSchema =
        json(r#"{"type":"string","enum":["a","b"],"enumNames":["A","B"]}"#).to().unwrap();
    assert_eq!(field, EnumSchema::titled([("a", "A"), ("b", "B")]).into());
}

#[test]
fn answers_are_distinguished_by_their_members() {
    let answers: InputResponses = json(
        r#"{"inputResponses":{"a":{"action":"decline"},"b":{"roots":[]},
            "c":{"role":"assistant","content":[],"model":"m"}},"requestState":"s"}"#,
    )
    .to()
    .unwrap();
    assert_eq!(
        answers.get("a"),
        Some(&InputResponse::Elicit(ElicitResult::new(ElicitAction::Decline)))
    );
    assert_eq!(answers.get("b"), Some(&InputResponse::Roots(ListRootsResult::default())));
    assert!(matches!(answers.get("c"), Some(InputResponse::Sample(_))));
    assert_eq!(answers.state.as_deref(), Some("s"));
    refuse::<InputResponse>("{}");
}

#[test]
fn tasks_are_read_in_both_spellings() {
    let flat = r#"{"taskId":"t","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttlMs":null,"pollIntervalMs":5}"#;
    let nested = r#"{"task":{"taskId":"t","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttl":null,"pollInterval":5}}"#;
    let task = Task::read(&json(flat)).unwrap();
    assert_eq!(Task::read(&json(nested)).unwrap(), task);
    assert_eq!(Json::of(&task).get(), flat);
    assert!(Task::read(&json("{}")).is_err());
}

#[test]
fn a_detailed_task_is_flat() {
    let text = r#"{"taskId":"t","status":"failed","createdAt":"c","lastUpdatedAt":"l","ttlMs":9,"error":{"code":-32603,"message":"m"}}"#;
    check::<DetailedTask>(text, text);
    let text = r#"{"taskId":"t","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttlMs":9,"inputRequests":{"k":{"method":"roots/list"}}}"#;
    check::<DetailedTask>(text, text);
}

#[test]
fn conversations_with_tools_are_checked() {
    let asks = |ids: &[&str]| {
        let blocks = ids.iter().map(|id| ToolUseContent::new(*id, "t", Json::empty_object()));
        SamplingMessage::new(Role::Assistant, blocks.map(Content::from).collect::<Vec<_>>())
    };
    let answers = |ids: &[&str]| {
        let blocks = ids.iter().map(|id| ToolResultContent::new(*id, vec![]));
        SamplingMessage::new(Role::User, blocks.map(Content::from).collect::<Vec<_>>())
    };
    let mixed = SamplingMessage::new(
        Role::User,
        vec![ToolResultContent::new("a", vec![]).into(), Content::text("and")],
    );
    let unanswered = Err(SamplingFault::Unanswered("b".into()));
    let table = [
        (vec![SamplingMessage::user("hi")], Ok(())),
        (vec![asks(&["a", "b"]), answers(&["b", "a"]), SamplingMessage::assistant("so")], Ok(())),
        (vec![asks(&["a", "b"]), answers(&["a"])], unanswered.clone()),
        (vec![asks(&["b"]), SamplingMessage::user("hm")], unanswered.clone()),
        (vec![asks(&["b"])], unanswered),
        (vec![answers(&["a"])], Err(SamplingFault::Unasked("a".into()))),
        (vec![asks(&["a"]), mixed], Err(SamplingFault::Mixed)),
    ];
    for (messages, outcome) in table {
        assert_eq!(CreateMessageParams::new(messages, 10).check(), outcome);
    }
}

#[test]
fn completions_are_cut_off_after_a_hundred() {
    let many = Completion::new((0..150).map(|it| it.to_string()));
    assert_eq!((many.values.len(), many.total, many.has_more), (100, Some(150), Some(true)));
    let few = Completion::new(["a"]);
    assert_eq!((few.values.len(), few.total, few.has_more), (1, Some(1), Some(false)));
}
