//! What a server of the stateful era asks its client during a call.

use std::time::Duration;

use trunkline_proto::Timing;
use trunkline_wire::revision::Revision::{self, *};

use crate::transcript::server;

const CALL: &str = r#"
    > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"add"}}
    call 1 tools/call
    "#;
const QUESTION: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}"#;

/// Plays the script while a call is open.
#[track_caller]
fn check_during_call(script: &str) {
    server().opened(V2025_06_18).check(&[CALL, script].concat());
}

fn asked(ticket: u32, id: u32) -> String {
    format!(
        r#"
        ask {ticket} during 1 elicitation/create {QUESTION}
        < {{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{QUESTION}}}
        "#
    )
}

/// A call whose handler asks one question, and what then happens.
#[track_caller]
fn asking(revision: Revision, script: &str) {
    server().opened(revision).check(&format!("{CALL}{}{script}", asked(7, 1)));
}

/// The same, and then the call is answered.
#[track_caller]
fn asking_to_the_end(revision: Revision, script: &str) {
    let end = r#"
        done 1 {"content":[]}
        < {"jsonrpc":"2.0","id":"c","result":{"content":[]}}
        "#;
    asking(revision, &[script, end].concat());
}

#[test]
fn a_question_is_answered_while_the_call_runs() {
    asking_to_the_end(
        V2025_06_18,
        r#"
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":"me"}}}
        settled 7 {"action":"accept","content":{"n":"me"}}
        "#,
    );
}

#[test]
fn a_question_may_be_answered_with_an_error() {
    asking(
        V2025_11_25,
        r#"
        > {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"User rejected"}}
        settled 7 error -1 User rejected
        # A second answer is nobody's.
        > {"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}
        "#,
    );
}

#[test]
fn undeclared_questions_are_not_sent() {
    for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
        server().opened_by(V2025_11_25, "{}").check(&format!(
            r#"{CALL}
            ask 7 during 1 {method} {{}}
            settled 7 refused -32601 This client cannot answer `{method}`.
            "#
        ));
    }
}

#[test]
fn the_mode_the_client_did_not_declare_is_not_asked() {
    let url = r#"{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"e"}"#;
    let tools =
        r#"{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    server().opened_by(V2025_11_25, r#"{"elicitation":{"form":{}},"sampling":{}}"#).check(
        &format!(
            r#"{CALL}
        ask 7 during 1 elicitation/create {url}
        settled 7 refused -32601 This client cannot answer `elicitation/create`.
        ask 8 during 1 sampling/createMessage {tools}
        settled 8 refused -32601 This client cannot answer `sampling/createMessage`.
        "#
        ),
    );
    server().opened_by(V2025_11_25, r#"{"elicitation":{"url":{}},"sampling":{"tools":{}}}"#).check(
        &format!(
            r#"{CALL}
        ask 7 during 1 elicitation/create {url}
        < {{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{url}}}
        ask 8 during 1 sampling/createMessage {tools}
        < {{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{tools}}}
        ask 9 during 1 elicitation/create {QUESTION}
        settled 9 refused -32601 This client cannot answer `elicitation/create`.
        "#
        ),
    );
}

#[test]
fn a_cancelled_call_withdraws_its_questions() {
    asking(
        V2025_06_18,
        r#"
        ask 8 ping
        < {"jsonrpc":"2.0","id":2,"method":"ping"}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"The call that asked is over."}}
        settled 7 cancelled
        abandon 1
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        # What was not asked during that call goes on.
        > {"jsonrpc":"2.0","id":2,"result":{}}
        settled 8 {}
        "#,
    );
}

#[test]
fn a_finished_call_withdraws_its_questions() {
    asking(
        V2025_06_18,
        r#"
        done 1 {"content":[]}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"The call that asked is over."}}
        settled 7 cancelled
        < {"jsonrpc":"2.0","id":"c","result":{"content":[]}}
        "#,
    );
}

#[test]
fn no_question_can_be_asked_during_a_call_that_is_over() {
    check_during_call(
        r#"
        done 1 {"content":[]}
        < {"jsonrpc":"2.0","id":"c","result":{"content":[]}}
        ask 7 during 1 roots/list
        settled 7 cancelled
        "#,
    );
}

#[test]
fn an_abandoned_question_is_cancelled() {
    asking(
        V2025_06_18,
        r#"
        drop 7
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"Nobody waits any more."}}
        drop 7
        # The handler works again, so its clock runs again.
        wait 59s
        wait 1s
        abandon 1
        < {"jsonrpc":"2.0","id":"c","error":{"code":-32603,"message":"The handler took too long.","data":{"reason":"timeout"}}}
        "#,
    );
}

#[test]
fn a_question_without_an_answer_times_out_and_is_withdrawn() {
    let asked = |ticket, id| asked(ticket, id).replace("during 1", "during 1 within 60s");
    server().opened(V2025_06_18).check(&format!(
        r#"{CALL}{}
        wait 60s
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"No answer in time."}}}}
        settled 7 timed out
        > {{"jsonrpc":"2.0","id":1,"result":{{"action":"accept"}}}}
        # The handler has its own sixty seconds to make something of that.
        wait 59s
        done 1 {{"content":[]}}
        < {{"jsonrpc":"2.0","id":"c","result":{{"content":[]}}}}
        "#,
        asked(7, 1)
    ));
}

#[test]
fn people_have_until_the_hard_deadline_to_answer() {
    asking_to_the_end(
        V2025_06_18,
        r#"
        wait 599s
        > {"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}
        settled 7 {"action":"decline"}
        "#,
    );
}

#[test]
fn progress_of_the_client_keeps_a_question_open() {
    check_during_call(
        r#"
        ask 7 during 1 loudly sampling/createMessage {"messages":[],"maxTokens":1}
        < {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"_meta":{"progressToken":1}}}
        wait 59s
        > {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        wait 59s
        > {"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"a"},"model":"m"}}
        settled 7 {"role":"assistant","content":{"type":"text","text":"a"},"model":"m"}
        "#,
    );
}

#[test]
fn a_handler_is_not_late_while_people_think() {
    let timing = Timing { idle: Duration::from_secs(10), hard: Duration::from_secs(100) };
    server().with(|config| config.bounds.call = timing).opened(V2025_06_18).check(&format!(
        r#"{CALL}{}{}
        wait 30s
        > {{"jsonrpc":"2.0","id":1,"result":{{"action":"decline"}}}}
        settled 7 {{"action":"decline"}}
        # One answer is there, the other question is still open.
        wait 20s
        > {{"jsonrpc":"2.0","id":2,"result":{{"action":"decline"}}}}
        settled 8 {{"action":"decline"}}
        # From here on the handler works alone.
        wait 9s
        wait 1s
        abandon 1
        < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32603,"message":"The handler took too long.","data":{{"reason":"timeout"}}}}}}
        "#,
        asked(7, 1),
        asked(8, 2),
    ));
}

#[test]
fn the_hard_deadline_of_a_call_ends_its_questions_too() {
    server()
        .with(|config| config.bounds.call = Timing { idle: Duration::from_secs(40), hard: Duration::from_secs(30) })
        .opened(V2025_06_18)
        .check(&format!(
            r#"{CALL}
            wait 10s
            {}
            wait 20s
            abandon 1
            < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"The call that asked is over."}}}}
            settled 7 cancelled
            < {{"jsonrpc":"2.0","id":"c","error":{{"code":-32603,"message":"The handler took too long.","data":{{"reason":"timeout"}}}}}}
            "#,
            asked(7, 1)
        ));
}

#[test]
fn progress_while_people_think_does_not_start_the_clock_again() {
    let asked = asked(7, 1);
    let timing = Timing { idle: Duration::from_secs(10), hard: Duration::from_secs(100) };
    server().with(|config| config.bounds.call = timing).opened(V2025_06_18).check(&format!(
        r#"{CALL}{asked}
        say 1 progress {{"progress":1}}
        wait 80s
        > {{"jsonrpc":"2.0","id":1,"result":{{"action":"decline"}}}}
        settled 7 {{"action":"decline"}}
        done 1 {{"content":[]}}
        < {{"jsonrpc":"2.0","id":"c","result":{{"content":[]}}}}
        "#
    ));
}
