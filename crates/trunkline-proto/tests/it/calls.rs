//! Calls in flight at a server: cancellation, progress, deadlines, and how many there may be.

use std::time::Duration;

use trunkline_proto::Timing;
use trunkline_wire::revision::Revision;
use trunkline_wire::revision::Revision::*;

use crate::transcript::server;

/// The `params` of a call in either era.
fn meta(revision: Revision, more: &str) -> String {
    match revision {
        V2026_07_28 if more.is_empty() => r#""_meta":$META"#.to_owned(),
        V2026_07_28 => format!(r#""_meta":{{$ENV,{more}}}"#),
        _ => format!(r#""_meta":{{{more}}}"#),
    }
}

fn done(revision: Revision) -> &'static str {
    if revision == V2026_07_28 {
        r#"{"resultType":"complete","content":[]}"#
    } else {
        r#"{"content":[]}"#
    }
}

/// Plays the script in every revision. `$CALL_META` is the `_meta` of a call, `$DONE` its result.
#[track_caller]
fn check(script: &str) {
    check_with("", script);
}

/// The same, with more in that `_meta`.
#[track_caller]
fn check_with(more: &str, script: &str) {
    for revision in Revision::ALL {
        let script = script.replace("$CALL_META", &meta(revision, more));
        server().opened(revision).check(&script.replace("$DONE", done(revision)));
    }
}

#[test]
fn a_cancelled_call_is_abandoned_and_its_late_answer_dropped() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call {"name":"add"}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"enough"}}
        abandon 1
        done 1 $DONE
        # Nothing is left that could be cancelled, answered or late.
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
        say 1 log {"level":"error","data":"late"}
        wait 700s
        "#,
    );
}

#[test]
fn the_id_of_a_cancelled_or_answered_call_is_free_again() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        abandon 1
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 2 tools/call
        done 1 $DONE
        done 2 $DONE
        < {"jsonrpc":"2.0","id":1,"result":$DONE}
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 3 tools/call
        "#,
    );
}

#[test]
fn a_cancellation_that_names_nothing_open_is_ignored() {
    server().opened(V2025_06_18).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}
        call 1 tools/call
        # Ids are compared with their type.
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}
        > {"jsonrpc":"2.0","method":"notifications/cancelled"}
        done 1 {"content":[]}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_cancellation_that_crosses_the_answer_changes_nothing() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        done 1 $DONE
        < {"jsonrpc":"2.0","id":1,"result":$DONE}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        # A handler that answers twice is heard once.
        done 1 $DONE
        fail 1 -32603 Too late.
        "#,
    );
}

#[test]
fn initialize_cannot_be_cancelled() {
    server().check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cli","version":"1"}}}
        < {"jsonrpc":"2.0","id":1,"result":"*"}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        call 1 tools/list
        "#,
    );
}

#[test]
fn progress_goes_out_strictly_increasing_until_the_answer() {
    check_with(
        r#""progressToken":"t""#,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        say 1 progress {"progress":0,"total":2}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0,"total":2}}
        say 1 progress {"progress":0,"total":2}
        say 1 progress {"progress":0.5}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}
        say 1 progress {"progress":0.25}
        say 1 progress {"progress":2,"total":2}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":2,"total":2}}
        done 1 $DONE
        < {"jsonrpc":"2.0","id":1,"result":$DONE}
        say 1 progress {"progress":3,"total":3}
        "#,
    );
}

/// Plays the script in every revision with progress of call `n` under the token `n`, on a stream that all messages share.
#[track_caller]
fn check_on_one_stream(script: &str) {
    for revision in Revision::ALL {
        let mut script = script.replace("$DONE", done(revision));
        for id in 1..=2 {
            let params = format!(
                r#"{{"name":"add",{}}}"#,
                meta(revision, &format!(r#""progressToken":{id}"#))
            );
            let call = format!(
                r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
            );
            let told = format!(
                r#"< {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#
            );
            let report = format!("say {id} progress {{\"progress\":1}}\n{told}");
            script =
                script.replace(&format!("CALL {id}"), &format!("{call}\ncall {id} tools/call"));
            script = script.replace(&format!("REPORT {id}"), &report);
        }
        server().on_one_stream().opened(revision).check(&script);
    }
}

#[test]
fn on_one_stream_an_answer_waits_until_its_progress_has_arrived() {
    check_on_one_stream(
        r#"
        CALL 1
        REPORT 1
        wait 3ms
        done 1 $DONE
        # Nobody else waits, and its id is not free yet.
        CALL 2
        done 2 $DONE
        < {"jsonrpc":"2.0","id":2,"result":$DONE}
        wait 1ms
        # A handler that answers twice is heard once.
        fail 1 -32603 Too late.
        wait 1ms
        < {"jsonrpc":"2.0","id":1,"result":$DONE}
        wait 700s
        "#,
    );
}

#[test]
fn on_one_stream_progress_of_long_ago_delays_no_answer() {
    check_on_one_stream(
        r#"
        CALL 1
        REPORT 1
        wait 5ms
        done 1 $DONE
        < {"jsonrpc":"2.0","id":1,"result":$DONE}
        "#,
    );
}

#[test]
fn on_one_stream_a_call_can_be_cancelled_while_its_answer_waits() {
    check_on_one_stream(
        r#"
        CALL 1
        REPORT 1
        done 1 $DONE
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        abandon 1
        wait 700s
        "#,
    );
}

#[test]
fn on_one_stream_a_call_that_is_done_in_time_does_not_become_late() {
    let late = Timing { idle: Duration::from_secs(60), hard: Duration::from_millis(8) };
    server().with(|it| it.bounds.call = late).on_one_stream().opened(V2025_06_18).check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","_meta":{"progressToken":1}}}
        call 1 tools/call
        wait 6ms
        say 1 progress {"progress":1}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        done 1 {"content":[]}
        wait 1ms
        wait 1ms
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_progress_token_is_echoed_with_its_type() {
    for token in ["0", "-7", "\"7\"", "7", "12345678901234567890"] {
        server().opened(V2025_06_18).check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","_meta":{{"progressToken":{token}}}}}}}
            call 1 tools/call {{"name":"add"}}
            say 1 progress {{"progress":1}}
            < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}
            "#
        ));
    }
}

#[test]
fn without_a_token_progress_stays_here() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        say 1 progress {"progress":1}
        "#,
    );
}

#[test]
fn every_revision_hears_the_message_of_progress() {
    check_with(
        r#""progressToken":1"#,
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        say 1 progress {"progress":1,"message":"half"}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"half"}}
        "#,
    );
}

#[test]
fn a_handler_that_says_nothing_for_too_long_is_stopped_and_its_call_answered() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        wait 59s
        wait 1s
        abandon 1
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The handler took too long.","data":{"reason":"timeout"}}}
        done 1 $DONE
        "#,
    );
}

#[test]
fn progress_keeps_a_call_alive_but_not_for_ever() {
    // Sent or not: whether the caller wants progress says nothing about the handler's health.
    for token in [r#""progressToken":1"#, ""] {
        let told = |step: u32| match token {
            "" => String::new(),
            _ => format!(
                r#"< {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{step}}}}}"#
            ),
        };
        let steps: Vec<String> = (1..=11)
            .map(|step| format!("wait 50s\nsay 1 progress {{\"progress\":{step}}}\n{}", told(step)))
            .collect();
        server().opened(V2025_11_25).check(&format!(
            r#"
            > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","_meta":{{{token}}}}}}}
            call 1 tools/call
            {}
            wait 49s
            # Ten minutes in all, whatever the progress.
            wait 1s
            abandon 1
            < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32603,"message":"The handler took too long.","data":{{"reason":"timeout"}}}}}}
            "#,
            steps.join("\n")
        ));
    }
}

#[test]
fn each_call_has_its_own_deadline() {
    server()
        .with(|config| config.bounds.call.idle = Duration::from_secs(10))
        .opened(V2025_11_25)
        .check(
            r#"
            > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}
            call 1 tools/call
            wait 6s
            > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add"}}
            call 2 tools/call
            wait 4s
            abandon 1
            < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The handler took too long.","data":{"reason":"timeout"}}}
            done 2 {"content":[]}
            < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
            wait 60s
            "#,
        );
}

#[test]
fn one_call_too_many_is_turned_away_at_once() {
    for revision in Revision::ALL {
        let (meta, done) = (meta(revision, ""), done(revision));
        let call = |id: u32| {
            format!(
                r#"> {{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add",{meta}}}}}"#
            )
        };
        server().with(|config| config.bounds.in_flight = 2).opened(revision).check(&format!(
            r#"
            {}
            call 1 tools/call
            {}
            call 2 tools/call
            {}
            < {{"jsonrpc":"2.0","id":3,"error":{{"code":-32603,"message":"Too many calls are open; try later.","data":{{"reason":"overloaded"}}}}}}
            done 1 {done}
            < {{"jsonrpc":"2.0","id":1,"result":{done}}}
            {}
            call 3 tools/call
            "#,
            call(1),
            call(2),
            call(3),
            call(3),
        ));
    }
}

#[test]
fn an_id_that_is_still_open_is_refused_and_the_first_call_lives_on() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        call 1 tools/call
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",$CALL_META}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The id 1 belongs to a request that is still open."}}
        > {"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"add",$CALL_META}}
        call 2 tools/call
        done 1 $DONE
        < {"jsonrpc":"2.0","id":1,"result":$DONE}
        done 2 $DONE
        < {"jsonrpc":"2.0","id":"1","result":$DONE}
        "#,
    );
}

#[test]
fn a_handlers_error_is_the_answer() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p",$CALL_META}}
        call 1 prompts/get {"name":"p"}
        fail 1 -32602 There is no prompt `p`.
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"There is no prompt `p`."}}
        "#,
    );
}
