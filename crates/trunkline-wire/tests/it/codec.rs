//! How each revision spells the model, as tables.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json as value};
use trunkline_wire::era::stateful::{self, Fit, Unfit, can_ask, fit_output};
use trunkline_wire::json::Json;
use trunkline_wire::model::*;
use trunkline_wire::revision::Revision::{self, *};

use crate::json;

/// Fits one value to all five revisions.
fn check<T: DeserializeOwned + Serialize + Fit>(full: Value, expected: [Value; 5]) {
    for (revision, expected) in Revision::ALL.into_iter().zip(expected) {
        let it: T = Json::of(&full).to().unwrap();
        let written = stateful::encode_params(it, revision.profile()).to_json();
        let written: Value = written.to().unwrap();
        assert_eq!(written, expected, "{revision}");
    }
}

fn parsed(json: &Json) -> Value {
    json.to().unwrap()
}

#[test]
fn implementations() {
    let icons = value!([{ "src": "https://example.org/i.png" }]);
    check::<Implementation>(
        value!({ "name": "n", "version": "1", "title": "T", "description": "d", "websiteUrl": "w", "icons": icons }),
        [
            value!({ "name": "n", "version": "1" }),
            value!({ "name": "n", "version": "1" }),
            value!({ "name": "n", "version": "1", "title": "T" }),
            value!({ "name": "n", "version": "1", "title": "T", "description": "d", "websiteUrl": "w", "icons": icons }),
            value!({ "name": "n", "version": "1", "title": "T", "description": "d", "websiteUrl": "w", "icons": icons }),
        ],
    );
}

#[test]
fn tools() {
    let input = value!({ "type": "object" });
    let output = value!({
        "$schema": "s",
        "type": "array",
        "items": { "$ref": "#/$defs/user" },
        "$defs": {
            "user": {
                "properties": { "$ref": { "const": { "$ref": "#/x" } }, "next": { "anyOf": [{ "$ref": "#" }] } },
            },
        },
    });
    let wrapped = value!({
        "$schema": "s",
        "type": "object",
        "properties": {
            "result": {
                "type": "array",
                "items": { "$ref": "#/properties/result/$defs/user" },
                "$defs": {
                    "user": {
                        "properties": { "$ref": { "const": { "$ref": "#/x" } }, "next": { "anyOf": [{ "$ref": "#/properties/result" }] } },
                    },
                },
            },
        },
        "required": ["result"],
    });
    let icons = value!([{ "src": "i", "theme": "dark", "sizes": ["any"] }]);
    let execution = value!({ "taskSupport": "optional" });
    check::<Tool>(
        value!({ "name": "n", "title": "T", "description": "d", "inputSchema": input, "outputSchema": output, "annotations": { "readOnlyHint": true }, "icons": icons, "execution": execution, "_meta": { "a": 1 } }),
        [
            value!({ "name": "n", "description": "d", "inputSchema": input }),
            value!({ "name": "n", "description": "d", "inputSchema": input, "annotations": { "title": "T", "readOnlyHint": true } }),
            value!({ "name": "n", "title": "T", "description": "d", "inputSchema": input, "outputSchema": wrapped, "annotations": { "readOnlyHint": true }, "_meta": { "a": 1 } }),
            value!({ "name": "n", "title": "T", "description": "d", "inputSchema": input, "outputSchema": wrapped, "annotations": { "readOnlyHint": true }, "icons": icons, "execution": execution, "_meta": { "a": 1 } }),
            value!({ "name": "n", "title": "T", "description": "d", "inputSchema": input, "outputSchema": output, "annotations": { "readOnlyHint": true }, "icons": icons, "_meta": { "a": 1 } }),
        ],
    );
}

#[test]
fn content() {
    let hints = value!({ "audience": ["user"], "priority": 1, "lastModified": "2025-01-01" });
    let old_hints = value!({ "audience": ["user"], "priority": 1 });
    let image = |hints: &Value| value!({ "type": "image", "data": "AA==", "mimeType": "image/png", "annotations": hints });
    let audio = value!({ "type": "audio", "data": "AA==", "mimeType": "audio/wav" });
    let blob = value!({ "type": "resource", "resource": { "uri": "embedded:audio", "mimeType": "audio/wav", "blob": "AA==" } });
    let link = value!({ "type": "resource_link", "uri": "a:1", "name": "one", "annotations": { "lastModified": "2025-01-01" } });
    let link_text = value!({ "type": "text", "text": "one: a:1" });
    let inner = value!({ "type": "resource", "resource": { "uri": "a:1", "text": "t", "_meta": { "b": 1 } } });
    let old_inner = value!({ "type": "resource", "resource": { "uri": "a:1", "text": "t" } });
    let text = value!({ "type": "text", "text": "t", "_meta": { "a": 1 } });
    let old_text = value!({ "type": "text", "text": "t" });
    let newer = value!({ "content": [text, image(&hints), audio, link, inner] });
    check::<CallToolResult>(
        newer.clone(),
        [
            value!({ "content": [old_text, image(&old_hints), blob, link_text, old_inner] }),
            value!({ "content": [old_text, image(&old_hints), audio, link_text, old_inner] }),
            newer.clone(),
            newer.clone(),
            newer,
        ],
    );
}

#[test]
fn structured_results() {
    let said = value!([{ "type": "text", "text": "said" }]);
    let object = value!({ "content": said, "structuredContent": { "a": 1 } });
    let without = value!({ "content": said });
    check::<CallToolResult>(
        object.clone(),
        [without.clone(), without.clone(), object.clone(), object.clone(), object],
    );
    let as_text = value!({ "content": [{ "type": "text", "text": "[1,2]" }] });
    let wrapped = value!({ "content": [], "structuredContent": { "result": [1, 2] } });
    let array = value!({ "content": [], "structuredContent": [1, 2] });
    check::<CallToolResult>(
        array.clone(),
        [as_text.clone(), as_text, wrapped.clone(), wrapped, array],
    );
    let as_text = value!({ "content": [{ "type": "text", "text": "null" }] });
    let wrapped = value!({ "content": [], "structuredContent": { "result": null } });
    let null = value!({ "content": [], "structuredContent": null });
    check::<CallToolResult>(
        null.clone(),
        [as_text.clone(), as_text, wrapped.clone(), wrapped, null],
    );
}

#[test]
fn a_structured_result_is_wrapped_exactly_if_its_schema_is() {
    let either = json(r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#);
    let object = json(r#"{"type":"object"}"#);
    let table = [
        (V2025_06_18, Some(&either), r#"{"result":{"a":1}}"#),
        (V2025_11_25, Some(&either), r#"{"result":{"a":1}}"#),
        (V2025_11_25, Some(&object), r#"{"a":1}"#),
        (V2025_11_25, None, r#"{"a":1}"#),
        (V2026_07_28, Some(&either), r#"{"a":1}"#),
    ];
    for (revision, schema, expected) in table {
        let mut result = CallToolResult::structured(json(r#"{"a":1}"#));
        fit_output(&mut result, schema, revision.profile());
        result.fit(revision.profile());
        assert_eq!(result.structured_content, Some(json(expected)), "{revision}");
    }
}

#[test]
fn resources_templates_prompts_and_roots() {
    let full = value!({ "uri": "a:1", "name": "n", "title": "T", "size": 3, "icons": [{ "src": "i" }], "annotations": { "priority": 0.5, "lastModified": "m" }, "_meta": {} });
    let old = value!({ "uri": "a:1", "name": "n", "size": 3, "annotations": { "priority": 0.5 } });
    let r3 = value!({ "uri": "a:1", "name": "n", "title": "T", "size": 3, "annotations": { "priority": 0.5, "lastModified": "m" }, "_meta": {} });
    check::<Resource>(full.clone(), [old.clone(), old, r3, full.clone(), full]);

    let full = value!({ "uriTemplate": "a:{x}", "name": "n", "title": "T", "icons": [{ "src": "i" }], "_meta": {} });
    let old = value!({ "uriTemplate": "a:{x}", "name": "n" });
    let r3 = value!({ "uriTemplate": "a:{x}", "name": "n", "title": "T", "_meta": {} });
    check::<ResourceTemplate>(full.clone(), [old.clone(), old, r3, full.clone(), full]);

    let full = value!({ "name": "n", "title": "T", "arguments": [{ "name": "a", "title": "A", "required": true }], "icons": [{ "src": "i" }], "_meta": {} });
    let old = value!({ "name": "n", "arguments": [{ "name": "a", "required": true }] });
    let r3 = value!({ "name": "n", "title": "T", "arguments": [{ "name": "a", "title": "A", "required": true }], "_meta": {} });
    check::<Prompt>(full.clone(), [old.clone(), old, r3, full.clone(), full]);

    let full = value!({ "roots": [{ "uri": "file:///a", "_meta": { "a": 1 } }] });
    let old = value!({ "roots": [{ "uri": "file:///a" }] });
    check::<ListRootsResult>(full.clone(), [old.clone(), old, full.clone(), full.clone(), full]);
}

#[test]
fn completion_context_and_progress_messages() {
    let full = value!({ "ref": { "type": "ref/prompt", "name": "p", "title": "P" }, "argument": { "name": "a", "value": "v" }, "context": { "arguments": { "b": "c" } } });
    let old = value!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } });
    check::<CompleteParams>(full.clone(), [old.clone(), old, full.clone(), full.clone(), full]);

    let full = value!({ "progressToken": "t", "progress": 1, "total": 2.5, "message": "m" });
    let same = || full.clone();
    check::<ProgressParams>(full.clone(), [same(), same(), same(), same(), same()]);
}

#[test]
fn client_capabilities() {
    let tasks = value!({ "list": {}, "requests": { "sampling": { "createMessage": {} } } });
    let ui = value!({ "example.org/ui": { "a": 1 } });
    let all = value!({ "example.org/ui": { "a": 1 }, "io.modelcontextprotocol/tasks": {} });
    let old = value!({ "roots": { "listChanged": true }, "sampling": {}, "extensions": ui, "experimental": { "x": {} } });
    check::<ClientCapabilities>(
        value!({ "roots": { "listChanged": true }, "sampling": { "tools": {}, "context": {} }, "elicitation": { "form": {}, "url": {} }, "tasks": tasks, "extensions": all, "experimental": { "x": {} } }),
        [
            old.clone(),
            old,
            value!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {}, "extensions": ui, "experimental": { "x": {} } }),
            value!({ "roots": { "listChanged": true }, "sampling": { "tools": {}, "context": {} }, "elicitation": { "form": {}, "url": {} }, "tasks": tasks, "extensions": ui, "experimental": { "x": {} } }),
            value!({ "roots": {}, "sampling": { "tools": {}, "context": {} }, "elicitation": { "form": {}, "url": {} }, "extensions": all, "experimental": { "x": {} } }),
        ],
    );
    let url = value!({ "elicitation": { "url": {} } });
    check::<ClientCapabilities>(
        url.clone(),
        [value!({}), value!({}), value!({}), url.clone(), url],
    );
    let form = value!({ "elicitation": { "form": {} } });
    check::<ClientCapabilities>(
        form.clone(),
        [value!({}), value!({}), value!({ "elicitation": {} }), form.clone(), form],
    );
}

#[test]
fn server_capabilities() {
    let tasks = value!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    let extensions = value!({ "io.modelcontextprotocol/tasks": {} });
    let r2 = value!({ "tools": { "listChanged": true }, "logging": {}, "completions": {} });
    check::<ServerCapabilities>(
        value!({ "tools": { "listChanged": true }, "logging": {}, "completions": {}, "tasks": tasks, "extensions": extensions }),
        [
            value!({ "tools": { "listChanged": true }, "logging": {} }),
            r2.clone(),
            r2,
            value!({ "tools": { "listChanged": true }, "logging": {}, "completions": {}, "tasks": tasks }),
            value!({ "tools": { "listChanged": true }, "logging": {}, "completions": {}, "extensions": extensions }),
        ],
    );
}

#[test]
fn sampling() {
    let text = |text: &str| value!({ "type": "text", "text": text });
    let message = |role: &str, content: Value| value!({ "role": role, "content": content });
    let audio = value!({ "type": "audio", "data": "AA==", "mimeType": "audio/wav" });
    let tool_use = value!({ "type": "tool_use", "id": "i", "name": "t", "input": { "a": 1 } });
    let tool_result = |structured: Value| value!({ "type": "tool_result", "toolUseId": "i", "content": [text("18")], "structuredContent": structured });
    let tool = value!({ "name": "t", "inputSchema": { "type": "object" } });
    let newer = |structured: Value, task: bool| {
        let mut it = value!({
            "maxTokens": 5,
            "messages": [
                message("user", value!([text("a"), audio])),
                message("assistant", value!([tool_use])),
                message("user", value!([tool_result(structured)])),
            ],
            "tools": [tool],
            "toolChoice": { "mode": "required" },
        });
        if task {
            it["task"] = value!({ "ttl": 9 });
        }
        it
    };
    let older = |audio: Value| {
        value!({
            "maxTokens": 5,
            "messages": [
                message("user", text("a")),
                message("user", audio),
                message("assistant", text(r#"t({"a":1})"#)),
                message("user", text("18")),
            ],
        })
    };
    check::<CreateMessageParams>(
        newer(value!(18), true),
        [
            older(text("(audio/wav that cannot be passed on)")),
            older(audio.clone()),
            older(audio.clone()),
            newer(value!({ "result": 18 }), true),
            newer(value!(18), false),
        ],
    );
    let result = |content: Value| value!({ "role": "assistant", "content": content, "model": "m", "stopReason": "endTurn" });
    let many = result(value!([text("a"), text("b")]));
    let one = result(text("a\nb"));
    check::<CreateMessageResult>(many.clone(), [one.clone(), one.clone(), one, many.clone(), many]);
}

#[test]
fn elicitation() {
    let form = |properties: Value| value!({ "type": "object", "properties": properties, "required": ["c"] });
    let newer = form(value!({
        "c": { "type": "string", "title": "C", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }], "default": "r" },
        "p": { "type": "string", "enum": ["x"] },
        "s": { "type": "string", "format": "email", "default": "a@b" },
        "n": { "type": "integer", "minimum": 1, "default": 2 },
        "b": { "type": "boolean", "default": true },
    }));
    let older = form(value!({
        "c": { "type": "string", "title": "C", "enum": ["r", "g"], "enumNames": ["Red", "Green"], "default": "r" },
        "p": { "type": "string", "enum": ["x"] },
        "s": { "type": "string", "format": "email", "default": "a@b" },
        "n": { "type": "integer", "minimum": 1, "default": 2 },
        "b": { "type": "boolean", "default": true },
    }));
    let older = value!({ "message": "m", "requestedSchema": older });
    check::<ElicitParams>(
        value!({ "mode": "form", "message": "m", "requestedSchema": newer, "task": {} }),
        [
            older.clone(),
            older.clone(),
            older,
            value!({ "mode": "form", "message": "m", "requestedSchema": newer, "task": {} }),
            value!({ "mode": "form", "message": "m", "requestedSchema": newer }),
        ],
    );
    let url = ElicitParams::Url(ElicitUrl::new("m", "https://example.org").elicitation_id("e"));
    let written = |revision: Revision| {
        parsed(&stateful::encode_params(url.clone(), revision.profile()).to_json())
    };
    let without = value!({ "mode": "url", "message": "m", "url": "https://example.org" });
    assert_eq!(written(V2025_11_25)["elicitationId"], "e");
    assert_eq!(written(V2026_07_28), without);
}

#[test]
fn forms_keep_their_order_when_they_are_simplified() {
    let schema = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string","enum":["x"]},"m":{"type":"number","default":1}}}"#;
    let mut params = ElicitParams::form("m", json(schema));
    params.fit(V2025_06_18.profile());
    let ElicitParams::Form(form) = params else { panic!("it was a form") };
    assert_eq!(form.requested_schema.get(), schema);
}

#[test]
fn questions_that_a_revision_cannot_ask() {
    let many = r#"{"type":"object","properties":{"c":{"type":"array","items":{"type":"string","enum":["x"]}}}}"#;
    let form = InputRequest::Elicit(ElicitParams::form("m", json(r#"{"properties":{}}"#)));
    let many = InputRequest::Elicit(ElicitParams::form("m", json(many)));
    let url = InputRequest::Elicit(ElicitParams::url("m", "https://example.org"));
    let plain = CreateMessageParams::new(vec![SamplingMessage::user("a")], 5);
    let tool = Tool::new("t", json(r#"{"type":"object"}"#));
    let tools = InputRequest::Sample(Box::new(plain.clone().tools(vec![tool])));
    let plain = InputRequest::Sample(Box::new(plain));
    let no = |unfit: Unfit| Err(unfit);
    let none = || no(Unfit::Elicitation);
    let table = [
        (&form, [none(), none(), Ok(()), Ok(()), Ok(())]),
        (&many, [none(), none(), no(Unfit::Many("c".into())), Ok(()), Ok(())]),
        (&url, [none(), none(), no(Unfit::Url), Ok(()), Ok(())]),
        (&tools, [no(Unfit::Tools), no(Unfit::Tools), no(Unfit::Tools), Ok(()), Ok(())]),
        (&plain, [Ok(()), Ok(()), Ok(()), Ok(()), Ok(())]),
        (&InputRequest::Roots, [Ok(()), Ok(()), Ok(()), Ok(()), Ok(())]),
    ];
    for (request, expected) in table {
        for (revision, expected) in Revision::ALL.into_iter().zip(expected) {
            assert_eq!(can_ask(request, revision.profile()), expected, "{request:?} {revision}");
        }
    }
}
