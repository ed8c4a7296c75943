//! Texts that are no messages, and messages that answer nothing.

use trunkline_wire::revision::Revision;
use trunkline_wire::revision::Revision::*;

use crate::transcript::{client, server};

/// The text, whether its id is readable, and the error.
const TEXTS: &[(&str, &str, i64, &str)] = &[
    ("not json", "", -32700, "This is not JSON."),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, "", -32700, "This is not JSON."),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#, "", -32700, "This is not JSON."),
    ("\"text\"", "", -32600, "This is not a JSON-RPC 2.0 message."),
    ("42", "", -32600, "This is not a JSON-RPC 2.0 message."),
    ("null", "", -32600, "This is not a JSON-RPC 2.0 message."),
    ("{}", "", -32600, "This is not a JSON-RPC 2.0 message."),
    (r#"{"id":1,"method":"ping"}"#, "1", -32600, "This is not a JSON-RPC 2.0 message."),
    (
        r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#,
        "\"a\"",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
        "1",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (r#"{"jsonrpc":"2.0","id":1}"#, "1", -32600, "This is not a JSON-RPC 2.0 message."),
    (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1", -32600, "This is not a JSON-RPC 2.0 message."),
    (
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        "",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        "",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        "",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":1}"#,
        "1",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
        "1",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        "1",
        -32600,
        "This is not a JSON-RPC 2.0 message.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        "",
        -32600,
        "A request id must not be null.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#,
        "1",
        -32600,
        "A member name stands twice in one object.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#,
        "1",
        -32600,
        "A member name stands twice in one object.",
    ),
    (
        r#"{"jsonrpc":"2.0","method":"ping","params":{"\u0061":1,"a":2},"id":"z"}"#,
        "\"z\"",
        -32600,
        "A member name stands twice in one object.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        "1",
        -32602,
        "Parameters must be an object.",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["add",1]}"#,
        "1",
        -32602,
        "Parameters must be an object.",
    ),
];

#[test]
fn every_text_that_is_no_message_is_answered_once() {
    for revision in Revision::ALL {
        for (text, id, code, message) in TEXTS {
            // Up to 2025-06-18 an unreadable id is `null`; later it is absent.
            let id = match (*id, revision) {
                ("", V2024_11_05 | V2025_03_26 | V2025_06_18) => r#","id":null"#.to_owned(),
                ("", _) => String::new(),
                (id, _) => format!(r#","id":{id}"#),
            };
            server().opened(revision).check(&format!(
                r#"
                > {text}
                < {{"jsonrpc":"2.0"{id},"error":{{"code":{code},"message":"{message}"}}}}
                "#
            ));
        }
    }
}

#[test]
fn before_a_session_the_newest_revision_in_question_says_how_an_unreadable_id_is_written() {
    for (revision, id) in [
        (V2024_11_05, r#","id":null"#),
        (V2025_03_26, r#","id":null"#),
        (V2025_06_18, r#","id":null"#),
        (V2025_11_25, ""),
        (V2026_07_28, ""),
    ] {
        server().only(revision).check(&format!(
            r#"
            > not json
            < {{"jsonrpc":"2.0"{id},"error":{{"code":-32700,"message":"This is not JSON."}}}}
            "#
        ));
    }
    server().check(
        r#"
        > not json
        < {"jsonrpc":"2.0","error":{"code":-32700,"message":"This is not JSON."}}
        "#,
    );
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    server().opened(V2025_11_25).check(&format!(
        r#"
        > {deep}
        < {{"jsonrpc":"2.0","error":{{"code":-32700,"message":"This JSON nests more than 128 levels deep."}}}}
        "#
    ));
}

#[test]
fn unexpected_responses_are_dropped_malformed_or_not() {
    server().check_in_all(
        r#"
        > {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":"1","result":{}}
        > {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}
        > {"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}
        > {"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}
        > {"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-1,"message":"no"}}
        > {"id":1,"result":{}}
        > {"jsonrpc":"2.0","result":{}}
        "#,
    );
}

#[test]
fn notifications_are_never_answered_however_broken() {
    server().check_in_all(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":[1]}
        > {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{}}}
        > {"jsonrpc":"2.0","method":"notifications/progress"}
        > {"jsonrpc":"2.0","method":"tools/call","params":{"name":"add"}}
        "#,
    );
}

#[test]
fn a_broken_answer_fails_the_question_it_answers() {
    server().opened(V2025_06_18).check(
        r#"
        ask 4 roots/list
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":1,"result":{},"result":{}}
        settled 4 invalid A member name stands twice in one object.
        "#,
    );
}

#[test]
fn a_client_is_not_shaken_by_garbage() {
    client().check_in_all(
        r#"
        > Listening on port 3000 …
        > {"level":"info","msg":"started"}
        > []
        > 7
        > {"jsonrpc":"2.0","id":99,"result":{}}
        > {"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}
        > {"jsonrpc":"2.0","method":"no/such","params":[1]}
        "#,
    );
}

#[test]
fn a_broken_answer_fails_the_clients_call_but_a_broken_request_does_not() {
    client().opened(V2025_06_18).check(
        r#"
        ask 4 tools/list
        < {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        > {"jsonrpc":"2.0","id":2,"method":"ping","method":"ping"}
        > {"jsonrpc":"2.0","id":2,"result":{},"result":{}}
        settled 4 invalid A member name stands twice in one object.
        "#,
    );
}

#[test]
fn a_response_that_cannot_be_read_is_never_answered() {
    for error in [
        "5",
        "null",
        r#"{"code":"x","message":"m"}"#,
        r#"{"code":1}"#,
        r#"{"code":1.5,"message":"m"}"#,
    ] {
        server()
            .opened(V2025_11_25)
            .check(&format!(r#"> {{"jsonrpc":"2.0","id":1,"error":{error}}}"#));
    }
}

#[test]
fn a_notification_that_cannot_be_read_is_never_answered() {
    server().opened(V2025_11_25).check(
        r#"
        > {"jsonrpc":"2.0","method":"notifications/wat","params":5}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}
        > {"jsonrpc":"2.0","method":"notifications/initialized","method":"notifications/initialized"}
        "#,
    );
}

#[test]
fn a_duplicate_unknown_name_is_refused() {
    server().opened(V2025_11_25).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"A member name stands twice in one object."}}
        > {"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}
        < {"jsonrpc":"2.0","error":{"code":-32600,"message":"A member name stands twice in one object."}}
        "#,
    );
}
