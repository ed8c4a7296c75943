//! The server of a recording, played for another client.

use serde_json::Value;
use trunkline_recording::as_server::ServerPlayer;

use crate::{message, recording, value};

/// Plays the server: `>` is what the client says, `<` what it must hear (`<aside` on the general stream), `#` what the
/// user is told.
#[track_caller]
fn check(recorded: &str, script: &str) {
    let mut player = ServerPlayer::new(&recording(recorded));
    let mut heard: Vec<(Value, bool)> = Vec::new();
    let mut remarks = Vec::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (mark, rest) = line.split_once(' ').expect("a mark and a message");
        match mark {
            ">" => {
                assert_eq!(heard, [], "before {line}");
                let outputs = match rest {
                    "ended" => player.ended(),
                    json => player.receive(&message(json)),
                };
                for output in outputs {
                    let text = output.message.to_text();
                    heard.push((serde_json::from_str(&text).unwrap(), output.request.is_none()));
                }
                remarks.extend(player.remarks());
            }
            "#" => assert_eq!(remarks.drain(..).next().as_deref(), Some(rest)),
            _ => {
                assert!(!heard.is_empty(), "nothing is said, but {line} was expected");
                assert_eq!(heard.remove(0), (value(rest), mark == "<aside"), "{line}");
            }
        }
    }
    assert_eq!(heard, []);
    assert_eq!(remarks, [] as [String; 0]);
}

#[test]
fn answers_come_as_recorded_with_the_clients_ids_and_tokens() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1},"_meta":{"progressToken":5}}}
        < {"method":"notifications/progress","params":{"progressToken":5,"progress":1}}
        < {"id":1,"result":{"v":1}}
        < {"method":"notifications/tools/list_changed"}
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}
        < {"id":2,"result":{"v":2}}
        "#,
        r#"
        > {"id":"k","method":"tools/call","params":{"name":"a","arguments":{"x":1},"_meta":{"progressToken":"t"}}}
        < {"method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        < {"id":"k","result":{"v":1}}
        <aside {"method":"notifications/tools/list_changed"}
        > {"id":7,"method":"tools/call","params":{"name":"a","arguments":{"x":1.0}}}
        < {"id":7,"result":{"v":2}}
        > {"id":8,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}
        < {"id":8,"result":{"v":2}}
        "#,
    );
}

#[test]
fn what_was_never_recorded_is_an_error_that_says_what_is_nearest() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}
        < {"id":1,"result":{}}
        "#,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":2}}}
        < {"id":1,"error":{"code":-32602,"message":"The recording has no `tools/call a` with these parameters: `/arguments/x` was 1 and is 2."}}
        # The recording has no `tools/call a` with these parameters: `/arguments/x` was 1 and is 2.
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        < {"id":2,"error":{"code":-32602,"message":"The recording has no `tools/call b` with these parameters."}}
        # The recording has no `tools/call b` with these parameters.
        > {"id":3,"method":"server/discover"}
        < {"id":3,"error":{"code":-32601,"message":"The recording has no `server/discover`."}}
        # The recording has no `server/discover`.
        > {"id":4,"method":"ping"}
        < {"id":4,"result":{}}
        "#,
    );
}

#[test]
fn questions_are_asked_and_the_answer_waits_for_theirs() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"book"}}
        < {"id":"a","method":"elicitation/create","params":{"message":"Sure?"}}
        < {"id":"b","method":"elicitation/create","params":{"message":"Name?"}}
        > {"id":"a","result":{"ok":true}}
        > {"id":"b","result":{"name":"Ada"}}
        < {"id":"c","method":"elicitation/create","params":{"message":"Really?"}}
        > {"id":"c","result":{"ok":true}}
        < {"id":1,"result":{"done":1}}
        "#,
        r#"
        > {"id":5,"method":"tools/call","params":{"name":"book"}}
        < {"id":"a","method":"elicitation/create","params":{"message":"Sure?"}}
        < {"id":"b","method":"elicitation/create","params":{"message":"Name?"}}
        > {"id":"b","result":{"name":"Alan"}}
        # The client answers `elicitation/create` otherwise: `/name` was "Ada" and is "Alan".
        > {"id":"a","result":{"ok":true}}
        < {"id":"c","method":"elicitation/create","params":{"message":"Really?"}}
        > {"id":"c","result":{"ok":true}}
        < {"id":5,"result":{"done":1}}
        "#,
    );
}

#[test]
fn rounds_and_pages_are_told_apart() {
    check(
        r#"
        > {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"tools":[],"nextCursor":"2"}}
        > {"id":2,"method":"tools/list","params":{"cursor":"2"}}
        < {"id":2,"result":{"tools":[{"name":"x"}]}}
        > {"id":3,"method":"tools/call","params":{"name":"x"}}
        < {"id":3,"result":{"requestState":"s"}}
        > {"id":4,"method":"tools/call","params":{"name":"x","requestState":"s","inputResponses":{"q":{}}}}
        < {"id":4,"result":{"content":[]}}
        "#,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"x"}}
        < {"id":1,"result":{"requestState":"s"}}
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[],"nextCursor":"2"}}
        > {"id":3,"method":"tools/call","params":{"name":"x","requestState":"s","inputResponses":{"q":{}}}}
        < {"id":3,"result":{"content":[]}}
        > {"id":4,"method":"tools/list"}
        < {"id":4,"result":{"tools":[],"nextCursor":"2"}}
        > {"id":5,"method":"tools/list","params":{"cursor":"2"}}
        < {"id":5,"result":{"tools":[{"name":"x"}]}}
        "#,
    );
}

#[test]
fn the_handshake_fits_any_client_and_what_follows_it_comes() {
    check(
        r#"
        > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"a","version":"1"}}}
        < {"id":0,"result":{"protocolVersion":"2025-11-25"}}
        > {"method":"notifications/initialized"}
        < {"id":1,"method":"roots/list"}
        > {"id":1,"result":{"roots":[]}}
        "#,
        r#"
        > {"id":9,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"b","version":"2"}}}
        < {"id":9,"result":{"protocolVersion":"2025-11-25"}}
        > {"method":"notifications/initialized"}
        <aside {"id":1,"method":"roots/list"}
        > {"id":1,"result":{"roots":[]}}
        > {"id":10,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}
        < {"id":10,"result":{"protocolVersion":"2025-11-25"}}
        "#,
    );
}

#[test]
fn a_masked_secret_fits_what_the_client_sends() {
    check(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"***"}}}
        < {"id":1,"result":{}}
        "#,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"hunter2"}}}
        < {"id":1,"result":{}}
        "#,
    );
}

#[test]
fn streams_say_which_call_a_message_belongs_to() {
    check(
        r#"
        >1 {"id":1,"method":"tools/call","params":{"name":"a"}}
        >2 {"id":2,"method":"tools/call","params":{"name":"b"}}
        <1 {"method":"notifications/message","params":{"data":"of a"}}
        <3 {"method":"notifications/resources/updated","params":{"uri":"x"}}
        <2 {"id":2,"result":{}}
        <1 {"id":1,"result":{}}
        "#,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        < {"method":"notifications/message","params":{"data":"of a"}}
        < {"id":1,"result":{}}
        > {"id":2,"method":"tools/call","params":{"name":"b"}}
        <aside {"method":"notifications/resources/updated","params":{"uri":"x"}}
        < {"id":2,"result":{}}
        "#,
    );
}

#[test]
fn a_subscription_tells_what_it_told_once_the_client_has_done_what_it_did() {
    check(
        r#"
        > {"id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x"]}}}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
        > {"id":2,"method":"tools/call","params":{"name":"touch"}}
        < {"method":"notifications/resources/updated","params":{"uri":"x","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
        < {"id":2,"result":{}}
        "#,
        r#"
        > {"id":7,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x"]}}}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
        > {"id":8,"method":"tools/call","params":{"name":"touch"}}
        < {"id":8,"result":{}}
        < {"method":"notifications/resources/updated","params":{"uri":"x","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
        "#,
    );
}

#[test]
fn a_subscription_ends_as_it_did_when_the_client_closes_its_side() {
    check(
        r#"
        > {"id":1,"method":"subscriptions/listen","params":{}}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
        > {"id":3,"method":"tools/list"}
        > ended
        < {"id":3,"result":{}}
        < {"method":"notifications/cancelled","params":{"requestId":1}}
        < {"id":1,"result":{}}
        "#,
        r#"
        > {"id":7,"method":"subscriptions/listen","params":{}}
        < {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}
        > {"id":8,"method":"ping"}
        < {"id":8,"result":{}}
        > {"id":9,"method":"tools/list"}
        < {"id":9,"result":{}}
        > ended
        < {"method":"notifications/cancelled","params":{"requestId":7}}
        < {"id":7,"result":{}}
        "#,
    );
}

#[test]
fn a_client_stays_in_the_conversation_that_its_handshake_opened() {
    let one = |capabilities: &str, said: &str| {
        format!(
            r#"{{"v":1,"t":1,"recording":{{}}}}
            {{"v":1,"t":1,"side":"client","dir":"in","message":{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"capabilities":{capabilities}}}}}}}
            {{"v":1,"t":1,"side":"client","dir":"out","message":{{"jsonrpc":"2.0","id":0,"result":{{}}}}}}
            {{"v":1,"t":1,"side":"client","dir":"in","message":{{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}}
            {{"v":1,"t":1,"side":"client","dir":"out","message":{{"jsonrpc":"2.0","id":1,"result":{{"said":"{said}"}}}}}}
            "#
        )
    };
    let text = [one("{}", "first"), one(r#"{"roots":{}}"#, "second")].concat();
    let recording = trunkline_recording::recording::Recording::read(&text).unwrap();
    for (capabilities, said) in [(r#"{"roots":{}}"#, "second"), ("{}", "first")] {
        let mut player = ServerPlayer::new(&recording);
        let open = format!(
            r#"{{"id":0,"method":"initialize","params":{{"capabilities":{capabilities}}}}}"#
        );
        player.receive(&message(&open));
        for id in 1..3 {
            let list = format!(r#"{{"id":{id},"method":"tools/list"}}"#);
            let heard = player.receive(&message(&list));
            assert_eq!(heard.len(), 1);
            assert!(heard[0].message.to_text().contains(said), "{capabilities} {id}");
        }
    }
}
