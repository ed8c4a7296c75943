//! The `mcp/…` dialect: the MCP calls behind its five methods, and the answers.

use trunkline_wire::dialect::{
    Exchange, MAX_PAGES, METHODS, Request, Step, TOOL_FAILED, describe, is_dialect, read_resources,
    read_tools,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Incoming, Message, Outcome, Params};
use trunkline_wire::model::{Implementation, ServerCapabilities};
use trunkline_wire::revision::Revision;

use crate::{json, value};

/// A transcript: the dialect's request, then calls and their outcomes, then the reply. `>` is the
/// dialect, `call` an MCP call, `done`/`fail` its outcome.
fn check(script: &str) {
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let request = lines.next().unwrap().strip_prefix("> ").unwrap();
    let (method, params) = read(request);
    let mut step = match Request::read(&method, params) {
        Ok(request) => {
            let (exchange, step) = Exchange::begin(request, || json(r#"{"name":"demo"}"#));
            (Some(exchange), step)
        }
        Err(error) => (None, Step::Reply(Err(error))),
    };
    for line in lines {
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "call" => {
                let Step::Call { method, params } = &step.1 else { panic!("{line}: {step:?}") };
                let (name, expected) = rest.split_once(' ').unwrap();
                assert_eq!(*method, name);
                assert_eq!(value(params.to_json().get()), value(expected), "{line}");
            }
            "done" => step.1 = step.0.as_mut().unwrap().answered(Ok(json(rest))),
            "fail" => {
                let error: ErrorObject = json(rest).to().unwrap();
                step.1 = step.0.as_mut().unwrap().answered(Err(error));
            }
            "reply" => assert_eq!(value(reply(&step.1).unwrap().get()), value(rest), "{line}"),
            "error" => {
                let error = reply(&step.1).unwrap_err();
                let expected = value(rest);
                assert_eq!(error.code, expected["code"], "{error}");
                let data = error.data.map(|data| value(data.get()));
                if let Some(expected) = expected.get("data") {
                    assert_eq!(data.as_ref(), Some(expected), "{line}");
                }
                if let Some(expected) = expected.get("message") {
                    assert_eq!(error.message, *expected, "{line}");
                }
            }
            other => panic!("`{other}` is not a word of these scripts"),
        }
    }
}

fn read(request: &str) -> (String, Params) {
    let (method, params) = request.split_once(' ').unwrap_or((request, ""));
    let params = if params.is_empty() { String::new() } else { format!(r#","params":{params}"#) };
    let text = format!(r#"{{"jsonrpc":"2.0","id":null,"method":"{method}"{params}}}"#);
    match Incoming::parse(text.as_bytes()) {
        Incoming::One(Message::Request { method, params, .. }) => (method.to_string(), params),
        other => panic!("{other:?}"),
    }
}

fn reply(step: &Step) -> Outcome {
    match step {
        Step::Reply(outcome) => outcome.clone(),
        Step::Call { .. } => panic!("{step:?} is no reply"),
    }
}

#[test]
fn initialize_describes_the_server_whatever_is_said() {
    check(
        r#"> mcp/initialize
             reply {"name":"demo"}"#,
    );
    check(
        r#"> mcp/initialize {"transports":["stdio"],"auth":null}
             reply {"name":"demo"}"#,
    );
    check(
        r#"> mcp/initialize [{"anything":1}]
             reply {"name":"demo"}"#,
    );
    let capabilities: ServerCapabilities = json(r#"{"tools":{}}"#).to().unwrap();
    let server = Implementation::new("demo", "1.0");
    let reply = describe(&server, &capabilities, Some(Revision::V2025_06_18));
    assert_eq!(
        value(reply.get()),
        serde_json::json!({
            "name": "demo",
            "version": "1.0",
            "methods": METHODS,
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "demo", "version": "1.0" },
        })
    );
}

#[test]
fn all_pages_of_tools_become_one_bare_array() {
    check(
        r#"> mcp/listTools null
        call tools/list {}
        done {"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"a","description":"A","inputSchema":{"type":"object"},"_meta":{"x":1}}],"nextCursor":""}
        call tools/list {"cursor":""}
        done {"tools":[{"name":"b","title":"B","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}]}
        reply [{"toolId":"a","description":"A","inputSchema":{"type":"object"}},{"toolId":"b","description":"","inputSchema":{"type":"object"},"title":"B","outputSchema":{"type":"array"}}]"#,
    );
}

#[test]
fn lists_are_empty_where_the_server_has_none() {
    check(
        r#"> mcp/listTools {}
        call tools/list {}
        fail {"code":-32601,"message":"no tools"}
        reply []"#,
    );
    check(
        r#"> mcp/listResources []
        call resources/list {}
        fail {"code":-32601,"message":"no resources"}
        call resources/templates/list {}
        fail {"code":-32601,"message":"no resources"}
        reply []"#,
    );
    check(
        r#"> mcp/listTools
        call tools/list {}
        fail {"code":-32603,"message":"broken"}
        error {"code":-32603}"#,
    );
}

#[test]
fn resources_and_templates_are_one_list() {
    check(
        r#"> mcp/listResources
        call resources/list {}
        done {"resources":[{"uri":"a:1","name":"one","description":"d","mimeType":"text/plain"}]}
        call resources/templates/list {}
        done {"resourceTemplates":[{"uriTemplate":"file:///{dir}/{name}{?rev}","name":"files"}]}
        reply [{"resourceId":"a:1","description":"d","querySchema":{"type":"object","properties":{},"additionalProperties":false},"name":"one","mimeType":"text/plain"},{"resourceId":"file:///{dir}/{name}{?rev}","description":"","querySchema":{"type":"object","properties":{"dir":{"type":"string"},"name":{"type":"string"},"rev":{"type":"string"}},"required":["dir","name"],"additionalProperties":false},"name":"files"}]"#,
    );
}

#[test]
fn a_list_that_never_ends_is_given_up() {
    let (mut exchange, mut step) = Exchange::begin(Request::ListTools, Json::null);
    let mut calls = 0;
    while matches!(step, Step::Call { .. }) {
        calls += 1;
        step = exchange.answered(Ok(json(r#"{"tools":[],"nextCursor":"again"}"#)));
    }
    assert_eq!(calls, MAX_PAGES);
    assert_eq!(reply(&step).unwrap_err().code, -32603);
}

#[test]
fn tools_are_executed_by_name_or_by_position() {
    for params in [
        r#"{"toolId":"t","inputs":{"a":1.0}}"#,
        r#"["t",{"a":1.0}]"#,
        r#"{"name":"t","arguments":{"a":1.0}}"#,
    ] {
        check(&format!(
            r#"> mcp/tool/execute {params}
            call tools/call {{"name":"t","arguments":{{"a":1.0}}}}
            done {{"resultType":"complete","content":[{{"type":"text","text":"hi"}}],"_meta":{{"s":1}}}}
            reply {{"content":[{{"type":"text","text":"hi"}}]}}"#
        ));
    }
    check(
        r#"> mcp/tool/execute ["t"]
        call tools/call {"name":"t","arguments":{}}
        done {"content":[],"structuredContent":[1,null]}
        reply [1,null]"#,
    );
    check(
        r#"> mcp/tool/execute {"toolId":"t","inputs":null}
        call tools/call {"name":"t","arguments":{}}
        done {"content":[],"structuredContent":null}
        reply null"#,
    );
}

#[test]
fn a_failed_tool_is_an_error_with_its_result() {
    check(
        r#"> mcp/tool/execute {"toolId":"t","inputs":{}}
        call tools/call {"name":"t","arguments":{}}
        done {"resultType":"complete","content":[{"type":"text","text":"no disk"}],"isError":true}
        error {"code":-31001,"message":"no disk","data":{"content":[{"type":"text","text":"no disk"}],"isError":true}}"#,
    );
    assert!(!(-32768..=-32000).contains(&TOOL_FAILED));
}

#[test]
fn questions_and_tasks_cannot_be_passed_on() {
    for result in [
        r#"{"resultType":"input_required","requestState":"s"}"#,
        r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":null}"#,
        r#"{"resultType":"novel"}"#,
        r#"{"content":5}"#,
    ] {
        check(&format!(
            r#"> mcp/tool/execute {{"toolId":"t"}}
            call tools/call {{"name":"t","arguments":{{}}}}
            done {result}
            error {{"code":-32603,"data":{{"reason":"unusable_answer"}}}}"#
        ));
    }
}

#[test]
fn resources_are_read_with_their_query_filled_in() {
    check(
        r#"> mcp/resource/read {"resourceId":"file:///{dir}/{name}{?rev}","query":{"dir":"a b","name":"ü","rev":3}}
        call resources/read {"uri":"file:///a%20b/%C3%BC?rev=3"}
        done {"resultType":"complete","contents":[{"uri":"u","text":"t","x":1.0}],"ttlMs":0,"cacheScope":"private"}
        reply {"contents":[{"uri":"u","text":"t","x":1.0}]}"#,
    );
    check(
        r#"> mcp/resource/read ["a:1"]
        call resources/read {"uri":"a:1"}
        fail {"code":-32602,"message":"none","data":{"uri":"a:1"}}
        error {"code":-32602,"data":{"uri":"a:1"}}"#,
    );
    check(
        r#"> mcp/resource/read ["search:{?tags*}",{"tags":["x","y"]}]
        call resources/read {"uri":"search:?tags=x&tags=y"}
        done {"contents":[]}
        reply {"contents":[]}"#,
    );
}

#[test]
fn wrong_parameters_are_refused() {
    for request in [
        r#"mcp/listTools [1]"#,
        r#"mcp/tool/execute"#,
        r#"mcp/tool/execute {"toolId":5}"#,
        r#"mcp/tool/execute {"toolId":"t","inputs":[]}"#,
        r#"mcp/tool/execute {"toolId":"t","inputs":{"a":1,"a":2}}"#,
        r#"mcp/tool/execute ["t",{},1]"#,
        r#"mcp/resource/read {"query":{}}"#,
        r#"mcp/resource/read {"resourceId":"a:1","query":{"x":1}}"#,
        r#"mcp/resource/read {"resourceId":"a:{x}","query":{}}"#,
        r#"mcp/resource/read {"resourceId":"a:{x}","query":{"x":null}}"#,
        r#"mcp/resource/read {"resourceId":"a:{x}","query":{"x":"1","y":"2"}}"#,
        r#"mcp/resource/read {"resourceId":"a:{x}","query":{"x":[[]]}}"#,
    ] {
        check(&format!("> {request}\nerror {{\"code\":-32602}}"));
    }
    check("> mcp/unheard {}\nerror {\"code\":-32601}");
}

#[test]
fn a_client_reads_what_such_servers_list() {
    let tools = read_tools(&json(
        r#"[{"toolId":"a","description":"A","parameters":{"type":"object","required":[]}},{"name":"b"}]"#,
    ))
    .unwrap();
    assert_eq!(tools[0].input_schema.get(), r#"{"type":"object","required":[]}"#);
    assert_eq!((&*tools[1].name, tools[1].input_schema.get()), ("b", r#"{"type":"object"}"#));
    let (resources, templates) =
        read_resources(&json(r#"[{"resourceId":"a:1"},{"resourceId":"b:{x}","name":"bs"}]"#))
            .unwrap();
    assert_eq!((&*resources[0].uri, &*resources[0].name), ("a:1", "a:1"));
    assert_eq!((&*templates[0].uri_template, &*templates[0].name), ("b:{x}", "bs"));
}

#[test]
fn the_dialect_is_known_by_its_prefix() {
    assert!(METHODS.into_iter().all(is_dialect));
    assert!(!is_dialect("tools/list") && !is_dialect("notifications/mcp/x"));
}
