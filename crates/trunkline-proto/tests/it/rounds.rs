//! The client's half of `input_required`: questions inside a result, and the retry.

use trunkline_wire::revision::Revision::*;

use crate::transcript::{ClientScript, client};

const QUESTION: &str = r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}"#;

fn opened() -> ClientScript {
    client().opened(V2026_07_28)
}

/// Our call `METHOD` as it is first sent.
fn call(method: &str, params: &str) -> String {
    format!(
        r#"
        ask 5 {method} {{{params}}}
        < {{"jsonrpc":"2.0","id":2,"method":"{method}","params":{{{params},"_meta":{{$SELF}}}}}}
        "#
    )
}

fn tool() -> String {
    call("tools/call", r#""name":"add""#)
}

fn retry(id: u32, more: &str) -> String {
    format!(
        r#"< {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add",{more},"_meta":{{$SELF}}}}}}"#
    )
}

fn required(id: u32, more: &str) -> String {
    format!(r#"> {{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required",{more}}}}}"#)
}

fn complete(id: u32) -> String {
    format!(
        r#"
        > {{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[]}}}}
        settled 5 {{"resultType":"complete","content":[]}}
        "#
    )
}

/// Plays the script after our call came back with one question.
#[track_caller]
fn check_asked(script: &str) {
    let asked = required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#);
    opened().check(&format!("{}\n{asked}\n{script}", tool()));
}

fn elicit() -> String {
    format!(r#"{{"method":"elicitation/create","params":{QUESTION}}}"#)
}

#[test]
fn several_questions_are_answered_in_any_order_and_sent_back_together() {
    let questions = format!(
        r#""inputRequests":{{"b":{},"a":{{"method":"roots/list"}},"c":{{"method":"sampling/createMessage","params":{{"messages":[],"maxTokens":5}}}}}},"requestState":"s1""#,
        elicit()
    );
    opened().check(&format!(
        r#"
        {}
        {}
        call 1 elicitation/create {QUESTION}
        call 2 roots/list {{}}
        call 3 sampling/createMessage {{"messages":[],"maxTokens":5}}
        done 2 {{"roots":[{{"uri":"file:///r"}}]}}
        done 3 {{"role":"assistant","content":{{"type":"text","text":"a"}},"model":"m"}}
        done 1 {{"action":"decline"}}
        {}
        {}
        "#,
        tool(),
        required(2, &questions),
        retry(3, r#""inputResponses":{"a":{"roots":[{"uri":"file:///r"}]},"b":{"action":"decline"},"c":{"role":"assistant","content":{"type":"text","text":"a"},"model":"m"}},"requestState":"s1""#),
        complete(3),
    ));
}

#[test]
fn each_of_the_three_methods_may_ask() {
    let kept = r#","ttlMs":0,"cacheScope":"private""#;
    // The result depends on the answers, so it is not cacheable, whatever the server says.
    let never = r#","cacheScope":"private""#;
    for (method, params, result, kept, never) in [
        ("tools/call", r#""name":"add""#, r#""content":[]"#, "", ""),
        ("prompts/get", r#""name":"p""#, r#""messages":[]"#, "", ""),
        ("resources/read", r#""uri":"file:///a""#, r#""contents":[]"#, kept, never),
    ] {
        opened().check(&format!(
            r#"
            {}
            {}
            call 1 roots/list
            done 1 {{"roots":[]}}
            < {{"jsonrpc":"2.0","id":3,"method":"{method}","params":{{{params},"_meta":{{$SELF}},"inputResponses":{{"q":{{"roots":[]}}}}}}}}
            > {{"jsonrpc":"2.0","id":3,"result":{{"resultType":"complete",{result}{kept}}}}}
            settled 5 {{"resultType":"complete",{result}{never}}}
            "#,
            call(method, params),
            required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
        ));
    }
}

#[test]
fn no_other_method_may_ask() {
    let complete = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#;
    for (method, params) in [("tools/list", r#""cursor":"c""#), ("completion/complete", complete)] {
        opened().check(&format!(
            r#"
            {}
            {}
            settled 5 invalid `{method}` cannot be answered with this `resultType`.
            "#,
            call(method, params),
            required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
        ));
    }
}

#[test]
fn state_alone_is_sent_back_after_a_pause_that_grows() {
    opened().check(&format!(
        r#"
        {}
        {}
        wait 99ms
        wait 1ms
        {}
        {}
        wait 199ms
        wait 1ms
        {}
        {}
        "#,
        tool(),
        required(2, r#""requestState":"one""#),
        retry(3, r#""requestState":"one""#),
        required(3, r#""requestState":"two""#),
        retry(4, r#""requestState":"two""#),
        complete(4),
    ));
}

#[test]
fn the_state_goes_back_as_it_came_and_is_left_out_where_none_was_given() {
    let state = r#""\u0000 é\"\\/ AQ==""#;
    opened().check(&format!(
        r#"
        {}
        {}
        call 1 roots/list
        done 1 {{"roots":[]}}
        {}
        # The next round brings no state, so the old one is forgotten, and so are the old answers.
        {}
        call 2 elicitation/create
        done 2 {{"action":"cancel"}}
        {}
        {}
        "#,
        tool(),
        required(
            2,
            &format!(r#""inputRequests":{{"q":{{"method":"roots/list"}}}},"requestState":{state}"#)
        ),
        retry(3, &format!(r#""inputResponses":{{"q":{{"roots":[]}}}},"requestState":{state}"#)),
        required(3, &format!(r#""inputRequests":{{"p":{}}}"#, elicit())),
        retry(4, r#""inputResponses":{"p":{"action":"cancel"}}"#),
        complete(4),
    ));
}

#[test]
fn a_kind_of_question_that_was_not_offered_ends_the_call() {
    let all = [
        ("elicitation/create", elicit()),
        (
            "sampling/createMessage",
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5}}"#
                .to_owned(),
        ),
        ("roots/list", r#"{"method":"roots/list"}"#.to_owned()),
    ];
    for (method, question) in all {
        let nothing = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
        let sent = tool().replace("$SELF", &format!(r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"cli","version":"1"}},{nothing}"#));
        client().with(|it| it.capabilities = Default::default()).opened(V2026_07_28).check(
            &format!(
                r#"
            {sent}
            {}
            settled 5 invalid it asks for `{method}`, which we did not offer.
            "#,
                required(2, &format!(r#""inputRequests":{{"q":{question}}}"#)),
            ),
        );
    }
}

#[test]
fn a_mode_that_was_not_offered_ends_the_call() {
    let tools = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":5,"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}"#;
    opened().check(&format!(
        r#"
        {}
        {}
        settled 5 invalid it asks for `sampling/createMessage`, which we did not offer.
        "#,
        tool(),
        required(2, &format!(r#""inputRequests":{{"q":{tools}}}"#)),
    ));
}

#[test]
fn a_call_does_not_ask_for_ever() {
    let round = |id: u32| {
        format!(
            "{}\ncall {} roots/list\ndone {} {{\"roots\":[]}}\n{}",
            required(id, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
            id - 1,
            id - 1,
            retry(id + 1, r#""inputResponses":{"q":{"roots":[]}}"#),
        )
    };
    client().with(|it| it.bounds.rounds = 2).opened(V2026_07_28).check(&format!(
        "{}\n{}\n{}\n{}\nsettled 5 invalid the call came back with questions 2 times.",
        tool(),
        round(2),
        round(3),
        required(4, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
    ));
}

#[test]
fn an_answer_that_fails_ends_the_call_and_the_other_questions() {
    opened().check(&format!(
        r#"
        {}
        {}
        call 1 elicitation/create
        call 2 roots/list
        fail 1 -1 The user said no.
        abandon 2
        settled 5 refused -1 The user said no.
        done 2 {{"roots":[]}}
        wait 700s
        "#,
        tool(),
        required(
            2,
            &format!(r#""inputRequests":{{"a":{},"b":{{"method":"roots/list"}}}}"#, elicit())
        ),
    ));
}

#[test]
fn a_call_that_is_dropped_in_a_round_has_nothing_on_the_wire_to_cancel() {
    check_asked(
        r#"
        call 1 roots/list
        drop 5
        abandon 1
        done 1 {"roots":[]}
        "#,
    );
    // A round of state alone is no different.
    opened().check(&format!(
        "{}\n{}\ndrop 5\nwait 1s",
        tool(),
        required(2, r#""requestState":"s""#)
    ));
}

#[test]
fn people_may_think_until_the_hard_deadline_and_no_longer() {
    check_asked(
        r#"
        call 1 roots/list
        wait 599s
        wait 1s
        abandon 1
        settled 5 timed out
        "#,
    );
}

#[test]
fn a_retry_is_given_its_own_time_within_the_hard_deadline() {
    opened().check(&format!(
        r#"
        {}
        {}
        call 1 roots/list
        wait 300s
        done 1 {{"roots":[]}}
        {}
        wait 59s
        wait 1s
        < {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":3,"reason":"No answer in time."}}}}
        settled 5 timed out
        "#,
        tool(),
        required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
        retry(3, r#""inputResponses":{"q":{"roots":[]}}"#),
    ));
}

#[test]
fn answers_to_an_id_that_a_retry_replaced_are_ignored() {
    let late = r#"> {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}"#;
    opened().check(&format!(
        r#"
        {}
        {}
        call 1 roots/list
        {late}
        done 1 {{"roots":[]}}
        {}
        {late}
        {}
        "#,
        tool(),
        required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
        retry(3, r#""inputResponses":{"q":{"roots":[]}}"#),
        complete(3),
    ));
}

#[test]
fn progress_follows_the_call_through_its_rounds() {
    opened().check(&format!(
        r#"
        ask 5 loudly tools/call {{"name":"add"}}
        < {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add","_meta":{{$SELF,"progressToken":2}}}}}}
        > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":1}}}}
        heard notifications/progress for 5 {{"progressToken":2,"progress":1}}
        {}
        call 1 roots/list
        done 1 {{"roots":[]}}
        < {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"add","_meta":{{$SELF,"progressToken":3}},"inputResponses":{{"q":{{"roots":[]}}}}}}}}
        > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":2}}}}
        > {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":3,"progress":2}}}}
        heard notifications/progress for 5 {{"progressToken":3,"progress":2}}
        "#,
        required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
    ));
}

#[test]
fn the_result_type_decides() {
    let settled = |result: &str| {
        format!(
            "{}\n> {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{result}}}\nsettled 5 {result}",
            tool()
        )
    };
    // Without `resultType` the result is complete.
    opened().check(&settled(r#"{"content":[]}"#));
    opened().check(&settled(r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null}"#));
    opened().check(&format!(
        "{}\n> {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"resultType\":\"surprise\"}}}}\nsettled 5 invalid `tools/call` cannot be answered with this `resultType`.",
        tool()
    ));
    opened().check(&format!(
        "{}\n{}\nsettled 5 invalid neither `inputRequests` nor `requestState` is there",
        tool(),
        required(2, r#""inputRequests":{}"#),
    ));
}

#[test]
fn the_end_of_the_connection_ends_the_round() {
    opened().check(&format!(
        "{}\n{}\ncall 1 roots/list\nclose\nsettled 5 closed\nabandon 1\ndone 1 {{\"roots\":[]}}",
        tool(),
        required(2, r#""inputRequests":{"q":{"method":"roots/list"}}"#),
    ));
}

#[test]
fn a_round_of_too_many_questions_is_refused() {
    let many: Vec<_> = (0..65).map(|at| format!(r#""q{at}":{{"method":"roots/list"}}"#)).collect();
    let questions = format!(r#""inputRequests":{{{}}}"#, many.join(","));
    opened().check(&format!(
        "{}\n{}\nsettled 5 invalid it asks 65 questions at once.",
        tool(),
        required(2, &questions)
    ));
}

#[test]
fn a_broken_answer_does_not_end_a_call_whose_questions_are_open() {
    let questions = r#""inputRequests":{"a":{"method":"roots/list"}}"#;
    opened().check(&format!(
        r#"
        {}
        {}
        call 1 roots/list {{}}
        > {{"jsonrpc":"2.0","id":2,"result":{{}},"result":{{}}}}
        done 1 {{"roots":[]}}
        {}
        {}
        "#,
        tool(),
        required(2, questions),
        retry(3, r#""inputResponses":{"a":{"roots":[]}}"#),
        complete(3)
    ));
}
