//! Batches: 2025-03-26 must accept them, 2024-11-05 may, later revisions refuse them.

use trunkline_wire::revision::Revision;
use trunkline_wire::revision::Revision::*;

use crate::transcript::server;

/// Plays the script in the revision that must accept batches.
#[track_caller]
fn check(script: &str) {
    server().opened(V2025_03_26).check(script);
}

#[test]
fn requests_are_answered_together_once_the_last_is_done() {
    for revision in [V2024_11_05, V2025_03_26] {
        server().opened(revision).check(
            r#"
            > [{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"no/such"}]
            call 1 tools/list
            done 1 {"tools":[]}
            < [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"There is no method `no/such` here."}},{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]
            "#,
        );
    }
}

#[test]
fn other_requests_are_answered_while_a_batch_is_open() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/list"}]
        call 1 tools/list
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        > [{"jsonrpc":"2.0","id":3,"method":"tools/list"},{"jsonrpc":"2.0","id":4,"method":"tools/list"}]
        call 2 tools/list
        call 3 tools/list
        done 3 {"tools":[]}
        done 1 {"tools":[]}
        < [{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]
        done 2 {"tools":[]}
        < [{"jsonrpc":"2.0","id":4,"result":{"tools":[]}},{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}]
        "#,
    );
}

#[test]
fn notifications_alone_get_no_answer() {
    check(
        r#"
        > [{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","method":"no/such"}]
        heard notifications/roots/list_changed {}
        "#,
    );
}

#[test]
fn notifications_speak_for_themselves_inside_a_batch() {
    check(
        r#"
        > [{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},{"jsonrpc":"2.0","id":1,"method":"ping"}]
        heard notifications/roots/list_changed {}
        < [{"jsonrpc":"2.0","id":1,"result":{}}]
        "#,
    );
}

#[test]
fn progress_of_a_batched_call_does_not_wait_for_the_batch() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{"progressToken":1}}}]
        call 1 tools/call
        say 1 progress {"progress":1}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        done 1 {"content":[]}
        < [{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]
        "#,
    );
}

#[test]
fn a_bad_element_is_refused_for_itself() {
    check(
        r#"
        > [1,{"jsonrpc":"2.0","id":1,"method":"ping"},[],{"jsonrpc":"1.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"id":3,"method":"ping"}]
        < [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This is not a JSON-RPC 2.0 message."}},{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This is not a JSON-RPC 2.0 message."}},{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"This is not a JSON-RPC 2.0 message."}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A member name stands twice in one object."}}]
        "#,
    );
}

#[test]
fn an_array_of_responses_settles_what_they_answer() {
    check(
        r#"
        ask 1 roots/list
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        ask 2 ping
        < {"jsonrpc":"2.0","id":2,"method":"ping"}
        > [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}]
        settled 2 {}
        settled 1 {"roots":[]}
        "#,
    );
}

#[test]
fn an_empty_array_is_refused_once() {
    check(
        r#"
        > []
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This array of messages cannot be taken; send them singly."}}
        > [ ]
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"This array of messages cannot be taken; send them singly."}}
        "#,
    );
}

#[test]
fn an_array_longer_than_the_bound_is_refused_whole() {
    let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let pings = |count: usize| (0..count).map(ping).collect::<Vec<_>>().join(",");
    let pongs: Vec<_> =
        (0..3).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).collect();
    server().with(|config| config.bounds.batch = 3).opened(V2025_03_26).check(&format!(
        r#"
        > [{}]
        < [{}]
        > [{}]
        < {{"jsonrpc":"2.0","id":null,"error":{{"code":-32600,"message":"This array of messages cannot be taken; send them singly."}}}}
        "#,
        pings(3),
        pongs.join(","),
        pings(4),
    ));
}

#[test]
fn a_cancelled_element_is_left_out_of_the_answer() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]
        call 1 tools/list
        call 2 tools/list
        done 1 {"tools":[]}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        < [{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]
        abandon 2
        # When all are cancelled there is nothing to answer.
        > [{"jsonrpc":"2.0","id":3,"method":"tools/list"}]
        call 3 tools/list
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        abandon 3
        done 3 {"tools":[]}
        "#,
    );
}

#[test]
fn an_element_that_takes_too_long_is_answered_in_its_place() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"}]
        call 1 tools/list
        wait 60s
        abandon 1
        < [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The handler took too long.","data":{"reason":"timeout"}}}]
        "#,
    );
}

#[test]
fn the_same_id_twice_in_one_array_is_refused_the_second_time() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":1,"method":"tools/list"}]
        call 1 tools/list
        done 1 {"tools":[]}
        < [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The id 1 belongs to a request that is still open."}},{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]
        "#,
    );
}

#[test]
fn initialize_must_not_come_in_an_array() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}}"#;
    // Before a session no revision allows a batch.
    server().only(V2025_03_26).check(&format!(
        r#"
        > [{initialize}]
        < {{"jsonrpc":"2.0","id":null,"error":{{"code":-32600,"message":"This array of messages cannot be taken; send them singly."}}}}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32600,"message":"Send `initialize` first."}}}}
        "#
    ));
    check(&format!(
        r#"
        > [{initialize}]
        < [{{"jsonrpc":"2.0","id":1,"error":{{"code":-32600,"message":"This session is already open."}}}}]
        "#
    ));
}

#[test]
fn a_stateless_request_must_not_come_in_an_array() {
    check(
        r#"
        > [{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$META}},{"jsonrpc":"2.0","id":2,"method":"ping"}]
        < [{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"This revision has no batches."}},{"jsonrpc":"2.0","id":2,"result":{}}]
        "#,
    );
}

#[test]
fn later_revisions_and_an_unopened_server_refuse_arrays() {
    let script = |id: &str| {
        format!(
            r#"
            > [{{"jsonrpc":"2.0","id":1,"method":"ping"}}]
            < {{"jsonrpc":"2.0"{id},"error":{{"code":-32600,"message":"This array of messages cannot be taken; send them singly."}}}}
            "#
        )
    };
    server().opened(V2025_06_18).check(&script(r#","id":null"#));
    server().opened(V2025_11_25).check(&script(""));
    server().check(&script(""));
    server().only(Revision::LATEST).check(&script(""));
}
