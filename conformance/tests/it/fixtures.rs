//! Every fixture, in both eras: by a client of the same SDK that answers whatever it is asked.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline::client::{CallError, Client, Hooks, ToolCall};
use trunkline::model::{
    CallToolResult, CompleteParams, LogLevel, Reference, ResourceData, SubscriptionFilter,
    TaskStatus,
};
use trunkline::{Change, Revision};
use trunkline_conformance::fixtures;
use trunkline_conformance::scenarios::answers;

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

async fn meet(revision: Revision, host: Hooks) -> Client {
    let builder = Client::builder("test", "1").protocol(revision).responder(host);
    builder.connect_memory(&fixtures::server()).await.expect("the server is there")
}

fn text(result: &CallToolResult) -> String {
    let texts: Vec<_> = result.content.iter().filter_map(|it| it.as_text()).collect();
    texts.join("\n")
}

/// A tool that is called without arguments, and a part of its answer.
const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "This is a simple text response for testing."),
    ("test_multiple_content_types", "Multiple content types test:"),
    ("test_tool_with_logging", "logged"),
    ("test_tool_with_progress", "progress"),
    ("test_reconnection", "come back"),
    ("test_elicitation_sep1034_defaults", r#""name":"John Doe""#),
    ("test_elicitation_sep1034_defaults", r#""age":30,"#),
    ("test_elicitation_sep1034_defaults", r#""score":95.5"#),
    ("test_elicitation_sep1330_enums", r#""legacyEnum":"opt1""#),
    ("test_missing_capability", "As you wish."),
    ("test_streaming_elicitation", "action=accept"),
    ("test_logging_tool", "logged"),
    ("test_trigger_tool_change", "told"),
    ("test_trigger_prompt_change", "told"),
    ("test_input_required_result_elicitation", "Hello, text!"),
    ("test_input_required_result_sampling", "As you wish."),
    ("test_input_required_result_list_roots", "file:///conformance"),
    ("test_input_required_result_request_state", "state-ok"),
    ("test_input_required_result_multiple_inputs", "As you wish. text has 1 roots."),
    ("test_input_required_result_multi_round", "text likes text."),
    ("test_input_required_result_tampered_state", "state-ok"),
    ("test_input_required_result_capabilities", "Asked the user: true"),
    ("multi_input", "Answered with"),
    ("test_tool_with_task", "The work for text is done."),
];

/// A tool, its arguments, and a part of its answer.
const WITH_ARGUMENTS: &[(&str, &str, &str)] = &[
    ("test_simple_text", "null", "This is a simple text response for testing."),
    ("test_sampling", r#"{"prompt":"Hi"}"#, "LLM response: As you wish."),
    ("test_elicitation", r#"{"message":"Who?"}"#, "User response: action=accept"),
    ("test_custom_header", r#"{"value":"Hello"}"#, "Hello"),
    ("greet", r#"{"name":"Ada"}"#, "Hello, Ada!"),
    ("slow_compute", r#"{"seconds":0.01,"label":"x"}"#, "Computed x"),
    ("confirm_delete", r#"{"filename":"a.txt"}"#, "Deleted a.txt."),
    ("sum", r#"{"a":1,"b":2.5}"#, "3.5"),
    ("sleep", r#"{"ms":1}"#, "Slept 1 ms."),
];

fn calls() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let plain = PLAIN.iter().map(|(name, expected)| (*name, "{}", *expected));
    plain.chain(WITH_ARGUMENTS.iter().copied())
}

#[tokio::test]
async fn every_tool_does_what_the_suite_expects() {
    for revision in ERAS {
        let client = meet(revision, answers()).await;
        for (name, arguments, expected) in calls() {
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            let result = client.call_tool(name, arguments).await;
            let result = result.unwrap_or_else(|why| panic!("{name} in {revision}: {why}"));
            assert!(!result.is_error(), "{name} in {revision}: {:?}", result.content);
            assert!(text(&result).contains(expected), "{name} in {revision}: {}", text(&result));
        }
    }
}

#[tokio::test]
async fn tools_are_listed_whole_and_the_first_takes_nothing() {
    for revision in ERAS {
        let client = meet(revision, answers()).await;
        let page = client.list_tools_page(None).await.expect("tools");
        assert_eq!(page.next_cursor, None, "the suite looks at one page");
        assert!(
            page.tools.iter().all(|it| it.description.as_ref().is_some_and(|it| !it.is_empty()))
        );
        let named = |name: &str| page.tools.iter().find(|it| it.name == name).expect("a tool");
        for (name, ..) in calls() {
            named(name);
        }
        let first = client.call_tool(&*page.tools[0].name, json!({})).await.expect("an answer");
        assert!(!first.is_error());
        let schema = named("json_schema_2020_12_tool").input_schema.get();
        assert!(
            schema.starts_with(r#"{"$schema":"#) && schema.contains(r#""$anchor":"addressDef""#)
        );
        let schema: Value = named("test_custom_header").input_schema.to().expect("a schema");
        assert_eq!(schema["properties"]["value"]["x-mcp-header"], "Value");
    }
}

#[tokio::test]
async fn contents_are_of_every_kind_and_failures_are_results() {
    for revision in ERAS {
        let client = meet(revision, answers()).await;
        for (name, kinds) in [
            ("test_image_content", vec!["image"]),
            ("test_audio_content", vec!["audio"]),
            ("test_embedded_resource", vec!["resource"]),
            ("test_multiple_content_types", vec!["text", "image", "resource"]),
        ] {
            let result = client.call_tool(name, ()).await.expect("an answer");
            let content = serde_json::to_value(&result.content).expect("JSON");
            let found: Vec<_> =
                content.as_array().expect("a list").iter().map(|it| &it["type"]).collect();
            assert_eq!(found, kinds, "{name}");
        }
        let failed = client.call_tool("test_error_handling", ()).await.expect("a result");
        assert!(failed.is_error());
        assert_eq!(text(&failed), "This tool intentionally returns an error for testing");
    }
}

#[tokio::test]
async fn progress_and_logs_are_heard_and_changes_are_told() {
    for revision in ERAS {
        let logs = Arc::new(Mutex::new(0));
        let heard = Arc::clone(&logs);
        let host = answers().on_log(move |_| *heard.lock().unwrap() += 1);
        let client = meet(revision, host).await;
        client.set_log_level(LogLevel::Debug).await.expect("a level");
        let steps = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&steps);
        let call = client.call_tool("test_tool_with_progress", ());
        call.on_progress(move |it| seen.lock().unwrap().push(it.progress))
            .await
            .expect("an answer");
        assert_eq!(*steps.lock().unwrap(), [0.0, 50.0, 100.0]);
        client.call_tool("test_tool_with_logging", ()).await.expect("an answer");
        assert_eq!(*logs.lock().unwrap(), 3, "{revision}");
        let filter = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
        let mut changes = client.listen(filter).await.expect("a subscription");
        for (tool, change) in [
            ("test_trigger_tool_change", Change::Tools),
            ("test_trigger_prompt_change", Change::Prompts),
        ] {
            client.call_tool(tool, ()).await.expect("an answer");
            assert_eq!(changes.next().await, Some(change));
        }
    }
}

#[tokio::test]
async fn what_a_client_cannot_be_asked_is_not_asked() {
    let client = meet(Revision::V2026_07_28, Hooks::new()).await;
    let Err(CallError::Peer(error)) = client.call_tool("test_missing_capability", ()).await else {
        panic!("a client without sampling got an answer");
    };
    let data: Value = error.data.expect("data").to().expect("JSON");
    assert_eq!((error.code, data), (-32021, json!({ "requiredCapabilities": { "sampling": {} } })));
    let sampling = answers_with_the_model_alone();
    let client = meet(Revision::V2026_07_28, sampling).await;
    let result = client.call_tool("test_input_required_result_capabilities", ()).await;
    assert!(text(&result.expect("an answer")).contains("Asked the user: false"));
}

fn answers_with_the_model_alone() -> Hooks {
    use trunkline::model::{Content, CreateMessageResult};
    Hooks::new().sample(|_| async { Ok(CreateMessageResult::new(Content::text("Yes."), "model")) })
}

#[tokio::test]
async fn tasks_end_as_the_suite_expects() {
    let client = meet(Revision::V2026_07_28, answers()).await;
    for (name, status) in [
        ("slow_compute", TaskStatus::Completed),
        ("failing_job", TaskStatus::Completed),
        ("protocol_error_job", TaskStatus::Failed),
    ] {
        let started = client.call_tool_task(name, json!({})).await.expect("an answer");
        let ToolCall::Task(task) = started else { panic!("`{name}` did not become a task") };
        // Whatever it comes to: how it stands afterwards is what counts.
        let _ = client.task_result(&*task.task_id).await;
        let ended = client.get_task(&*task.task_id).await.expect("the task");
        assert_eq!(ended.task.status, status, "{name}");
        assert_eq!(ended.error.is_some(), status == TaskStatus::Failed, "{name}");
    }
    let asks_first = client.call_tool_task("test_tool_with_task", json!({})).await;
    let Ok(ToolCall::Task(task)) = asks_first else { panic!("{asks_first:?} is no task") };
    let result = client.task_result(task.task_id).await.expect("a result");
    assert_eq!(text(&result), "The work for text is done.");
}

#[tokio::test]
async fn resources_prompts_and_completions_are_there() {
    for revision in ERAS {
        let client = meet(revision, answers()).await;
        let listed = client.list_resources().await.expect("resources");
        let listed: Vec<_> = listed.iter().map(|it| it.uri.as_str()).collect();
        assert!(listed.contains(&"test://static-text") && listed.contains(&"test://static-binary"));
        for (uri, mime_type, expected) in [
            (
                "test://static-text",
                "text/plain",
                "This is the content of the static text resource.",
            ),
            ("test://static-binary", "image/png", "iVBORw0KGgo"),
            (
                "test://template/123/data",
                "application/json",
                r#"{"data":"Data for ID: 123","id":"123","templateTest":true}"#,
            ),
        ] {
            let read = client.read_resource(uri).await.expect(uri);
            let [part] = &read.contents[..] else { panic!("{uri}: {:?}", read.contents) };
            assert_eq!((part.uri.as_str(), part.mime_type.as_deref()), (uri, Some(mime_type)));
            let (ResourceData::Text(data) | ResourceData::Blob(data)) = &part.data;
            assert!(data.starts_with(expected), "{uri}: {data}");
        }
        client.subscribe("test://watched-resource").await.expect("a subscription");
        client.unsubscribe("test://watched-resource").await;

        let two = [("arg1", "testValue1"), ("arg2", "testValue2")];
        for (name, arguments, expected) in [
            ("test_simple_prompt", &[][..], "This is a simple prompt for testing."),
            ("test_prompt_with_arguments", &two, "arg1='testValue1', arg2='testValue2'"),
            ("test_prompt_with_embedded_resource", &[("resourceUri", "test://x")], "test://x"),
            ("test_prompt_with_image", &[], "Please analyze the image above."),
            ("test_input_required_result_prompt", &[], "Use this context: text"),
        ] {
            let prompt = client.get_prompt(name, arguments.iter().copied()).await.expect(name);
            let messages = serde_json::to_string(&prompt.messages).expect("JSON");
            assert!(messages.contains(expected), "{name}: {messages}");
        }
        let prompt = Reference::prompt("test_prompt_with_arguments");
        let params = CompleteParams::new(prompt, "arg1", "test");
        assert_eq!(client.complete(params).await.expect("a completion").values.len(), 3);
    }
}

#[tokio::test]
async fn the_skill_is_listed_read_and_verified() {
    for revision in Revision::ALL {
        let client = meet(revision, answers()).await;
        let skills = client.list_skills().await.expect("skills");
        let [skill] = &skills[..] else { panic!("{skills:?}") };
        assert_eq!(skill.uri, "skill://pdf-processing/SKILL.md");
        assert_eq!(skill.name().as_deref(), Some("pdf-processing"));
        assert_eq!(client.get_skill(&*skill.uri).await.expect("the skill"), *skill);
        assert!(client.load_skill(skill).await.expect("the file").starts_with("---\nname: pdf"));
        let forms = "skill://pdf-processing/references/FORMS.md";
        let forms = client.read_skill_file(skill, forms).await.expect("the other file");
        assert!(forms.starts_with(b"# Forms"));
        let children = client.read_directory("skill://pdf-processing").await.expect("a directory");
        let children: Vec<_> =
            children.iter().map(|it| (&*it.name, it.mime_type.as_deref())).collect();
        assert_eq!(
            children,
            [("pdf-processing", Some("text/markdown")), ("references", Some("inode/directory"))]
        );
    }
}
