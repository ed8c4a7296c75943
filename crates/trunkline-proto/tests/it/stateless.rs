//! 2026-07-28 at a server: what the envelope must contain, and both eras on one connection.

use trunkline_wire::revision::Revision::*;

use crate::transcript::server;

const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{}"#;

fn list(id: u32, meta: &str) -> String {
    format!(
        r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#
    )
}

fn invalid(id: u32, message: &str) -> String {
    format!(r#"< {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"{message}"}}}}"#)
}

#[test]
fn the_least_envelope_is_enough() {
    server().check(&format!(
        "{}\ncall 1 tools/list {{}}",
        list(1, &format!("{VERSION},{CAPABILITIES}"))
    ));
    server().only(V2026_07_28).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$META,"cursor":"x"}}
        call 1 tools/list {"cursor":"x"}
        done 1 {"resultType":"complete","ttlMs":5,"cacheScope":"public","tools":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":5,"cacheScope":"public","tools":[]}}
        "#,
    );
}

#[test]
fn each_fault_of_an_envelope_is_named() {
    let wrong = |name: &str| {
        format!("The value of `io.modelcontextprotocol/{name}` in `_meta` is not valid.")
    };
    let faults = [
        (
            VERSION.to_owned(),
            "`_meta` must hold `io.modelcontextprotocol/clientCapabilities`.".to_owned(),
        ),
        (
            format!(r#"{VERSION},"io.modelcontextprotocol/clientCapabilities":[]"#),
            wrong("clientCapabilities"),
        ),
        (
            format!(r#"{VERSION},"io.modelcontextprotocol/clientCapabilities":null"#),
            wrong("clientCapabilities"),
        ),
        (
            format!(r#""io.modelcontextprotocol/protocolVersion":20260728,{CAPABILITIES}"#),
            wrong("protocolVersion"),
        ),
        (
            format!(r#"{VERSION},{CAPABILITIES},"io.modelcontextprotocol/clientInfo":"cli""#),
            wrong("clientInfo"),
        ),
        (
            format!(r#"{VERSION},{CAPABILITIES},"io.modelcontextprotocol/logLevel":3"#),
            wrong("logLevel"),
        ),
        (
            format!(r#"{VERSION},{CAPABILITIES},"progressToken":{{}}"#),
            "The value of `progressToken` in `_meta` is not valid.".to_owned(),
        ),
    ];
    for (meta, message) in faults {
        let script = format!("{}\n{}", list(1, &meta), invalid(1, &message));
        server().check(&script);
        server().only(V2026_07_28).check(&script);
        server().opened(V2025_06_18).check(&script);
    }
    let twice = list(1, &format!("{VERSION},{VERSION},{CAPABILITIES}"));
    server().check(&format!(
        r#"
        {twice}
        < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32600,"message":"A member name stands twice in `_meta`."}}}}
        "#
    ));
}

#[test]
fn an_envelope_without_a_revision_gets_an_error_that_says_so() {
    let unnamed = list(1, CAPABILITIES);
    let missing = invalid(1, "`_meta` must hold `io.modelcontextprotocol/protocolVersion`.");
    server().only(V2026_07_28).check(&format!("{unnamed}\n{missing}"));
    server().only(V2026_07_28).check(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{}}}}
        {missing}
        "#
    ));
    server().check(&format!("{unnamed}\n{missing}"));
    server().check(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"server/discover"}}
        {missing}
        "#
    ));
    server().opened(V2025_11_25).check(&format!("{unnamed}\n{missing}"));
}

#[test]
fn a_revision_that_is_not_spoken_this_way_is_refused_with_those_that_are() {
    for asked in ["2099-01-01", "2025-11-25", "2024-11-05", ""] {
        let script = format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{asked}",{CAPABILITIES}}}}}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"This server does not speak that revision.","data":{{"supported":["2026-07-28"],"requested":"{asked}"}}}}}}
            > {{"jsonrpc":"2.0","id":2,"method":"no/such","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{asked}",{CAPABILITIES}}}}}}}
            < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32022,"message":"This server does not speak that revision.","data":{{"supported":["2026-07-28"],"requested":"{asked}"}}}}}}
            "#
        );
        server().check(&script);
        server().only(V2026_07_28).check(&script);
    }
}

#[test]
fn discover_lists_the_revisions_that_requests_may_name() {
    for script in [server(), server().only(V2026_07_28)] {
        script.with(|config| config.instructions = Some("Add.".to_owned())).check(
            r#"
            > {"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":$META}}
            < {"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"instructions":"Add.","capabilities":{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"srv","version":"1"}}}}
            "#,
        );
    }
}

#[test]
fn an_extension_must_be_declared_on_the_very_request_that_uses_it() {
    let declared = r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    server().check(&format!(
        r#"
        > {{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{{"taskId":"t","_meta":{{{VERSION},{declared}}}}}}}
        call 1 tasks/get {{"taskId":"t"}}
        > {{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{{"taskId":"t","_meta":$META}}}}
        < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32021,"message":"This request must declare the extension `io.modelcontextprotocol/tasks`.","data":{{"requiredCapabilities":{{"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}}}}}}}
        > {{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{{"taskId":"t","_meta":{{{VERSION},{declared}}}}}}}
        < {{"jsonrpc":"2.0","id":3,"error":{{"code":-32601,"message":"There is no method `tasks/result` here."}}}}
        > {{"jsonrpc":"2.0","id":4,"method":"tasks/list","params":{{"_meta":{{{VERSION},{declared}}}}}}}
        < {{"jsonrpc":"2.0","id":4,"error":{{"code":-32601,"message":"There is no method `tasks/list` here."}}}}
        "#
    ));
}

#[test]
fn a_missing_capability_that_the_handler_finds_is_passed_on() {
    server().check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":$META}}
        call 1 tools/call
        done 1 {"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"roots/list"}}}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"roots/list"}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","requestState":"s","inputResponses":{"q":{"roots":[]}},"_meta":$META}}
        call 2 tools/call {"name":"ask","requestState":"s","inputResponses":{"q":{"roots":[]}}}
        "#,
    );
}

#[test]
fn repeated_envelopes_are_read_as_if_each_were_the_first() {
    server().check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{$ENV,"progressToken":"x"}}}
        call 1 tools/call
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{$ENV,"progressToken":"y"}}}
        call 2 tools/call
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","_meta":$META}}
        call 3 tools/call
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","_meta":{$ENV,"progressToken":"x"}}}
        call 4 tools/call
        say 1 progress {"progress":1}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}
        say 2 progress {"progress":1}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"y","progress":1}}
        say 3 progress {"progress":1}
        say 4 progress {"progress":1}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}
        "#,
    );
}

#[test]
fn both_eras_take_turns_on_one_connection() {
    server().check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"new","_meta":{$ENV,"io.modelcontextprotocol/logLevel":"debug"}}}
        call 1 tools/call {"name":"new"}
        > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}
        < {"jsonrpc":"2.0","id":2,"result":"*"}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"old"}}
        call 2 tools/call {"name":"old"}
        > {"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"error"}}
        < {"jsonrpc":"2.0","id":4,"result":{}}
        # The session's level is not the request's.
        say 1 log {"level":"debug","data":"new"}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"new"}}
        say 2 log {"level":"debug","data":"old"}
        # What one era has the other may lack.
        > {"jsonrpc":"2.0","id":5,"method":"ping"}
        < {"jsonrpc":"2.0","id":5,"result":{}}
        > {"jsonrpc":"2.0","id":6,"method":"ping","params":{"_meta":$META}}
        < {"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"There is no method `ping` here."}}
        > {"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"old","version":"1"},"_meta":$META}}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"There is no method `initialize` here."}}
        # Ids are one space, since the connection is one.
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The id 1 belongs to a request that is still open."}}
        # A question needs a session and a call of that era.
        ask 1 during 1 ping
        settled 1 refused -32601 This client cannot answer `ping`.
        done 2 {"content":[]}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        done 1 {"resultType":"complete","content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
        "#,
    );
}
