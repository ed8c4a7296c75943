//! An open client: its calls and their deadlines, notifications, and the server's requests.

use trunkline_wire::revision::Revision;
use trunkline_wire::revision::Revision::*;

use crate::transcript::client;

fn meta(revision: Revision) -> &'static str {
    if revision == V2026_07_28 { r#","_meta":{$SELF}"# } else { "" }
}

fn token(revision: Revision, token: u32) -> String {
    match revision {
        V2026_07_28 => format!(r#","_meta":{{$SELF,"progressToken":{token}}}"#),
        _ => format!(r#","_meta":{{"progressToken":{token}}}"#),
    }
}

fn call(revision: Revision) -> String {
    format!(
        r#"
        ask 5 tools/call {{"name":"add"}}
        < {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add"{}}}}}
        "#,
        meta(revision)
    )
}

/// Plays the script after a call, in every revision.
#[track_caller]
fn check_call(script: &str) {
    for revision in Revision::ALL {
        client().opened(revision).check(&(call(revision) + script));
    }
}

fn listen(ticket: u32, id: u32) -> String {
    format!(
        r#"
        ask {ticket} subscriptions/listen {{"notifications":{{"toolsListChanged":true}}}}
        < {{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{{$SELF}}}}}}
        "#
    )
}

#[test]
fn a_result_or_an_error_settles_the_call_once() {
    check_call(
        r#"
        > {"jsonrpc":"2.0","id":"2","result":{}}
        > {"jsonrpc":"2.0","id":2,"result":{"content":[],"extra":12345678901234567890}}
        settled 5 {"content":[],"extra":12345678901234567890}
        > {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    );
    check_call(
        r#"
        > {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"There is no tool `add`."}}
        settled 5 error -32602 There is no tool `add`.
        > {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn an_abandoned_call_is_cancelled_and_its_late_answer_ignored() {
    check_call(
        r#"
        drop 5
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"Nobody waits any more."}}
        drop 5
        > {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        wait 700s
        "#,
    );
}

#[test]
fn a_call_without_an_answer_times_out_and_is_cancelled() {
    check_call(
        r#"
        wait 59s
        wait 1s
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"No answer in time."}}
        settled 5 timed out
        > {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_call_may_bring_its_own_deadline() {
    client().opened(V2025_11_25).check(
        r#"
        ask 5 within 3s ping
        < {"jsonrpc":"2.0","id":2,"method":"ping"}
        ask 6 ping
        < {"jsonrpc":"2.0","id":3,"method":"ping"}
        wait 3s
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"No answer in time."}}
        settled 5 timed out
        > {"jsonrpc":"2.0","id":3,"result":{}}
        settled 6 {}
        "#,
    );
}

#[test]
fn progress_is_handed_to_its_call_and_keeps_it_alive_up_to_the_hard_deadline() {
    for revision in Revision::ALL {
        let steps: Vec<String> = (1..=11)
            .map(|step| {
                format!(
                    r#"
                    wait 50s
                    > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":{step}}}}}
                    heard notifications/progress for 5 {{"progressToken":2,"progress":{step}}}
                    "#
                )
            })
            .collect();
        client().opened(revision).check(&format!(
            r#"
            ask 5 loudly tools/call {{"name":"add"}}
            < {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add"{}}}}}
            {}
            wait 49s
            wait 1s
            < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2,"reason":"No answer in time."}}}}
            settled 5 timed out
            > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":12}}}}
            "#,
            token(revision, 2),
            steps.join("\n")
        ));
    }
}

#[test]
fn progress_finds_the_right_one_of_several_calls() {
    for revision in Revision::ALL {
        client().opened(revision).check(&format!(
            r#"
            ask 5 loudly tools/call {{"name":"a"}}
            < {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"a"{}}}}}
            ask 6 loudly tools/call {{"name":"b"}}
            < {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"b"{}}}}}
            ask 7 tools/call {{"name":"c"}}
            < {{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"c"{}}}}}
            > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":3,"progress":1}}}}
            heard notifications/progress for 6 {{"progressToken":3,"progress":1}}
            > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"2","progress":1}}}}
            # The third call did not ask for progress, and nobody has the token 9.
            > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":4,"progress":1}}}}
            > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":9,"progress":1}}}}
            > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{}}}}
            "#,
            token(revision, 2),
            token(revision, 3),
            meta(revision),
        ));
    }
}

#[test]
fn the_meta_of_a_caller_is_kept_beside_the_envelope() {
    client().opened(V2026_07_28).check(
        r#"
        ask 5 loudly tools/call {"name":"add","_meta":{"traceparent":"00-1-2-01","io.modelcontextprotocol/protocolVersion":"1999-01-01"}}
        < {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","_meta":{"traceparent":"00-1-2-01",$SELF,"progressToken":2}}}
        "#,
    );
    client().opened(V2025_06_18).check(
        r#"
        ask 5 loudly tools/call {"name":"add","_meta":{"traceparent":"00-1-2-01"}}
        < {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","_meta":{"traceparent":"00-1-2-01","progressToken":2}}}
        "#,
    );
}

#[test]
fn unsupported_calls_are_not_sent_except_completion_in_the_oldest_revision() {
    for revision in [V2024_11_05, V2025_03_26] {
        let complete =
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#;
        let asked = match revision {
            V2024_11_05 => format!(
                r#"< {{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{complete}}}"#
            ),
            _ => "settled 6 refused -32600 The server does not offer `completion/complete`."
                .to_owned(),
        };
        client().only(revision).with(|it| it.capabilities = Default::default()).check(&format!(
            r#"
            < {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"cli","version":"1"}}}}}}
            > {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"{revision}","capabilities":{{}},"serverInfo":{{"name":"srv","version":"1"}}}}}}
            < {{"jsonrpc":"2.0","method":"notifications/initialized"}}
            opened {revision}
            ask 5 tools/list
            settled 5 refused -32600 The server does not offer `tools/list`.
            ask 6 completion/complete {complete}
            {asked}
            "#
        ));
    }
}

#[test]
fn subscriptions_have_no_deadline_and_hear_what_is_tagged_for_them() {
    let tagged = |id: &str| {
        format!(
            r#"> {{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
    };
    client().opened(V2026_07_28).check(&format!(
        r#"
        {}
        > {{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{{"io.modelcontextprotocol/subscriptionId":2}}}}}}
        heard notifications/subscriptions/acknowledged for 5
        {}
        wait 100000s
        {}
        heard notifications/tools/list_changed for 6
        {}
        heard notifications/tools/list_changed for 5
        # Ids are compared with their type.
        {}
        heard notifications/tools/list_changed
        "#,
        listen(5, 2),
        listen(6, 3),
        tagged("3"),
        tagged("2"),
        tagged("\"2\""),
    ));
}

#[test]
fn a_subscription_ends_with_a_result_a_cancellation_or_both() {
    let result =
        r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":2}}"#;
    client().opened(V2026_07_28).check(&format!(
        "{}\n> {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{result}}}\nsettled 5 {result}",
        listen(5, 2)
    ));
    client().opened(V2026_07_28).check(&format!(
        r#"
        {}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2}}}}
        settled 5 cancelled
        > {{"jsonrpc":"2.0","id":2,"result":{result}}}
        "#,
        listen(5, 2)
    ));
    client().opened(V2026_07_28).check(&format!(
        r#"
        {}
        drop 5
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2,"reason":"Nobody waits any more."}}}}
        "#,
        listen(5, 2)
    ));
}

#[test]
fn a_server_of_the_new_era_cannot_cancel_any_other_call() {
    client().opened(V2026_07_28).check(&format!(
        r#"
        {}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2}}}}
        > {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete","content":[]}}}}
        settled 5 {{"resultType":"complete","content":[]}}
        "#,
        call(V2026_07_28)
    ));
}

#[test]
fn a_call_is_not_late_while_the_server_asks_its_user() {
    client().opened(V2025_06_18).check(&format!(
        r#"
        {}
        > {{"jsonrpc":"2.0","id":7,"method":"roots/list"}}
        call 1 roots/list {{}}
        > {{"jsonrpc":"2.0","id":8,"method":"roots/list"}}
        call 2 roots/list {{}}
        wait 300s
        done 1 {{"roots":[]}}
        < {{"jsonrpc":"2.0","id":7,"result":{{"roots":[]}}}}
        wait 200s
        done 2 {{"roots":[]}}
        < {{"jsonrpc":"2.0","id":8,"result":{{"roots":[]}}}}
        # From here on the server is on its own.
        wait 59s
        wait 1s
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2,"reason":"No answer in time."}}}}
        settled 5 timed out
        "#,
        call(V2025_06_18)
    ));
}

#[test]
fn a_server_may_withdraw_its_question() {
    client().opened(V2025_06_18).check(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"roots/list"}
        call 1 roots/list {}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        abandon 1
        done 1 {"roots":[]}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        "#,
    );
}

#[test]
fn questions_have_a_bound_an_id_of_their_own_and_a_deadline() {
    client().with(|it| it.bounds.in_flight = 1).opened(V2025_06_18).check(
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"roots/list"}
        call 1 roots/list
        > {"jsonrpc":"2.0","id":7,"method":"roots/list"}
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"This id belongs to a request that is still open."}}
        > {"jsonrpc":"2.0","id":8,"method":"roots/list"}
        < {"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"Too many questions are open.","data":{"reason":"overloaded"}}}
        > {"jsonrpc":"2.0","id":9,"method":"roots/list","params":[]}
        < {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Parameters must be an object."}}
        wait 599s
        wait 1s
        abandon 1
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Nobody answered the question in time.","data":{"reason":"timeout"}}}
        "#,
    );
}

#[test]
fn a_mode_that_was_not_declared_is_refused() {
    let url = r#"{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"e"}"#;
    let tools =
        r#"{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    client()
        .with(|it| it.capabilities.elicitation = Some(trunkline_wire::model::ElicitationCapability::FORM))
        .opened(V2025_11_25)
        .check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{url}}}
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32602,"message":"Client does not support URL-mode elicitation requests"}}}}
            > {{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{tools}}}
            < {{"jsonrpc":"2.0","id":2,"error":{{"code":-32602,"message":"This client did not declare that it can be asked this way."}}}}
            # A question without a mode is a form.
            > {{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{{"message":"Who?","requestedSchema":{{"type":"object","properties":{{}}}}}}}}
            call 1 elicitation/create
            "#
        ));
}

#[test]
fn an_array_from_the_server_is_taken_apart() {
    client().opened(V2025_03_26).check(&format!(
        r#"
        {}
        > [{{"jsonrpc":"2.0","id":2,"result":{{"content":[]}}}},{{"jsonrpc":"2.0","id":1,"method":"ping"}},{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}},7]
        settled 5 {{"content":[]}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        heard notifications/tools/list_changed {{}}
        "#,
        call(V2025_03_26)
    ));
}

#[test]
fn the_end_of_the_connection_ends_everything() {
    client().opened(V2025_11_25).check(&format!(
        r#"
        {}
        ask 6 ping
        < {{"jsonrpc":"2.0","id":3,"method":"ping"}}
        > {{"jsonrpc":"2.0","id":7,"method":"roots/list"}}
        call 1 roots/list
        close
        settled 5 closed
        settled 6 closed
        abandon 1
        done 1 {{"roots":[]}}
        close
        wait 1000s
        "#,
        call(V2025_11_25)
    ));
}
