//! The client of a recording, played against another server.

use serde_json::Value;
use trunkline_recording::as_client::{ClientPlayer, Next};
use trunkline_recording::compare::{Ignore, compare};
use trunkline_recording::recording::Recording;

use crate::{message, recording, value};

/// Plays the client. In the script `>` is what it says, `<` what the other server says, `later` a pause, `close`, `wait` and
/// `done` what it wants otherwise. Returns what was said.
#[track_caller]
fn check(recorded: &Recording, script: &str) -> Recording {
    play(ClientPlayer::new(&recorded.conversations[0], false), script)
}

/// The same over HTTP: `<2` is said in the response to the second request, `leave 2` closes it, `listen` waits for news and
/// `silence` is that there is none.
#[track_caller]
fn check_http(recorded: &Recording, script: &str) -> Recording {
    play(ClientPlayer::new(&recorded.conversations[0], true), script)
}

#[track_caller]
fn play(mut player: ClientPlayer, script: &str) -> Recording {
    let mut replies: Vec<Value> = Vec::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let text = |it: &str| serde_json::from_str::<Value>(it).expect("a message is JSON");
        match line.split_once(' ') {
            Some(("leave", stream)) => {
                let stream = stream.parse().expect("a stream is a number");
                assert_eq!(player.next(1), Next::Leave(stream), "{line}");
            }
            Some((mark, json)) if mark.starts_with('<') => {
                let reply = player.receive(message(json), mark[1..].parse().ok(), 1);
                replies.extend(reply.map(|it| text(&it.to_text())));
            }
            Some((">", json)) if !replies.is_empty() => {
                assert_eq!(replies.remove(0), value(json), "{line}");
            }
            Some((mark, json)) => {
                let said = match (mark, player.next(1)) {
                    (">", Next::Send(message, _)) => message,
                    ("later", Next::SendLater(message, _)) => message,
                    (_, other) => panic!("{line}: {other:?}"),
                };
                assert_eq!(text(&said.to_text()), value(json), "{line}");
            }
            None if line == "close" => assert_eq!(player.next(1), Next::Close, "{line}"),
            None if line == "silence" => player.misses_news(),
            None if line == "listen" => assert_eq!(player.next(1), Next::Listen, "{line}"),
            None if line == "wait" => assert_eq!(player.next(1), Next::Wait, "{line}"),
            None => assert_eq!(player.next(1), Next::Done, "{line}"),
        }
    }
    assert_eq!(replies, [] as [Value; 0], "these answers were not expected");
    player.into_live().into()
}

#[test]
fn a_request_waits_for_the_answers_that_stood_before_it() {
    let recorded = recording(
        r#"
        > {"id":1,"method":"initialize"}
        < {"id":1,"result":{}}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"tools/list"}
        > {"id":3,"method":"prompts/list"}
        < {"id":3,"result":{}}
        > {"id":4,"method":"ping"}
        < {"id":2,"result":{}}
        < {"id":4,"result":{}}
        "#,
    );
    let live = check(
        &recorded,
        r#"
        > {"id":1,"method":"initialize"}
        wait
        < {"id":1,"result":{}}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"tools/list"}
        > {"id":3,"method":"prompts/list"}
        wait
        < {"id":2,"result":{}}
        wait
        < {"id":3,"result":{}}
        > {"id":4,"method":"ping"}
        wait
        < {"id":4,"result":{}}
        done
        "#,
    );
    assert!(compare(&recorded, &live, &Ignore::default()).equal);
}

#[test]
fn questions_are_answered_as_recorded_whatever_their_ids_and_order() {
    let recorded = recording(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"book"}}
        < {"id":"a","method":"elicitation/create","params":{"message":"Sure?"}}
        < {"id":"b","method":"elicitation/create","params":{"message":"Name?"}}
        > {"id":"b","result":{"content":{"name":"Ada"}}}
        > {"id":"a","result":{"content":{"ok":true}}}
        < {"id":1,"result":{}}
        "#,
    );
    check(
        &recorded,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"book"}}
        < {"id":7,"method":"elicitation/create","params":{"message":"Name?"}}
        > {"id":7,"result":{"content":{"name":"Ada"}}}
        < {"id":8,"method":"elicitation/create","params":{"message":"Sure?"}}
        > {"id":8,"result":{"content":{"ok":true}}}
        < {"id":9,"method":"ping"}
        > {"id":9,"result":{}}
        < {"id":10,"method":"roots/list"}
        > {"id":10,"error":{"code":-32603,"message":"The recording has no answer to this `roots/list`."}}
        < {"id":1,"result":{}}
        done
        "#,
    );
}

#[test]
fn rounds_carry_the_state_and_the_questions_of_the_other_server() {
    let recorded = recording(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"greet"}}
        < {"id":1,"result":{"resultType":"input_required","inputRequests":{"q1":{"method":"elicitation/create"}},"requestState":"s1"}}
        > {"id":2,"method":"tools/call","params":{"name":"greet","inputResponses":{"q1":{"action":"accept"}},"requestState":"s1"}}
        < {"id":2,"result":{"content":[]}}
        "#,
    );
    check(
        &recorded,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"greet"}}
        < {"id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}},"requestState":"other"}}
        > {"id":2,"method":"tools/call","params":{"name":"greet","inputResponses":{"k":{"action":"accept"}},"requestState":"other"}}
        < {"id":2,"result":{"content":[]}}
        done
        "#,
    );
}

#[test]
fn a_task_is_asked_for_until_it_is_done() {
    let recorded = recording(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"work","task":{}}}
        < {"id":1,"result":{"task":{"taskId":"t1","status":"working"}}}
        > {"id":2,"method":"tasks/get","params":{"taskId":"t1"}}
        < {"id":2,"result":{"taskId":"t1","status":"working"}}
        > {"id":3,"method":"tasks/get","params":{"taskId":"t1"}}
        < {"id":3,"result":{"taskId":"t1","status":"completed"}}
        > {"id":4,"method":"tasks/result","params":{"taskId":"t1"}}
        < {"id":4,"result":{"content":[]}}
        "#,
    );
    let live = check(
        &recorded,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"work","task":{}}}
        < {"id":1,"result":{"task":{"taskId":"T","status":"working"}}}
        > {"id":3,"method":"tasks/get","params":{"taskId":"T"}}
        < {"id":3,"result":{"taskId":"T","status":"working"}}
        later {"id":"replay-1","method":"tasks/get","params":{"taskId":"T"}}
        wait
        < {"id":"replay-1","result":{"taskId":"T","status":"completed"}}
        > {"id":4,"method":"tasks/result","params":{"taskId":"T"}}
        < {"id":4,"result":{"content":[]}}
        done
        "#,
    );
    let found = compare(&recorded, &live, &Ignore::default());
    assert!(found.equal, "{found:?}");
}

#[test]
fn what_was_answered_after_the_clients_end_is_awaited_after_its_end() {
    let recorded = recording(
        r#"
        > {"id":1,"method":"subscriptions/listen"}
        > {"id":2,"method":"ping"}
        < {"id":2,"result":{}}
        > ended
        < {"id":1,"result":{}}
        "#,
    );
    let live = check(
        &recorded,
        r#"
        > {"id":1,"method":"subscriptions/listen"}
        > {"id":2,"method":"ping"}
        wait
        < {"id":2,"result":{}}
        close
        wait
        < {"id":1,"result":{}}
        done
        "#,
    );
    assert!(compare(&recorded, &live, &Ignore::default()).equal);
}

#[test]
fn an_answer_that_never_came_is_not_waited_for() {
    let recorded = recording(
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"sleep"}}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        "#,
    );
    check(
        &recorded,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"sleep"}}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        done
        "#,
    );
}

#[test]
fn requests_that_share_an_id_are_told_apart_by_their_streams() {
    let recorded = recording(
        r#"
        >1 {"id":1,"method":"tools/call","params":{"name":"a"}}
        >2 {"id":1,"method":"tools/call","params":{"name":"b"}}
        <1 {"id":1,"result":{"of":"a"}}
        <2 {"id":1,"result":{"of":"b"}}
        "#,
    );
    let live = check(
        &recorded,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"a"}}
        > {"id":"replay-1","method":"tools/call","params":{"name":"b"}}
        < {"id":"replay-1","result":{"of":"b"}}
        < {"id":1,"result":{"of":"a"}}
        done
        "#,
    );
    let found = compare(&recorded, &live, &Ignore::default());
    assert!(found.equal, "{found:?}");
}

/// A client of 2026-07-28 that listens, hears of a change, and leaves before the next.
fn a_listener() -> Recording {
    recording(
        r#"
        >1 {"id":1,"method":"subscriptions/listen"}
        <1 {"method":"notifications/subscriptions/acknowledged"}
        >2 {"id":2,"method":"tools/call","params":{"name":"announce"}}
        <2 {"id":2,"result":{}}
        <1 {"method":"notifications/tools/list_changed"}
        >1 ended
        >3 {"id":3,"method":"tools/call","params":{"name":"announce"}}
        <3 {"id":3,"result":{}}
        "#,
    )
}

#[test]
fn over_http_a_client_hears_what_it_heard_before_it_goes_on_and_leaves_a_stream_when_it_did() {
    let recorded = a_listener();
    let live = check_http(
        &recorded,
        r#"
        > {"id":1,"method":"subscriptions/listen"}
        listen
        <1 {"method":"notifications/subscriptions/acknowledged"}
        > {"id":2,"method":"tools/call","params":{"name":"announce"}}
        wait
        <2 {"id":2,"result":{}}
        listen
        <1 {"method":"notifications/tools/list_changed"}
        leave 1
        > {"id":3,"method":"tools/call","params":{"name":"announce"}}
        wait
        <3 {"id":3,"result":{}}
        done
        "#,
    );
    assert_eq!(live.conversations[0].left, recorded.conversations[0].left);
    assert!(compare(&recorded, &live, &Ignore::default()).equal);
}

#[test]
fn a_server_that_tells_less_is_waited_for_once() {
    check_http(
        &a_listener(),
        r#"
        > {"id":1,"method":"subscriptions/listen"}
        listen
        silence
        > {"id":2,"method":"tools/call","params":{"name":"announce"}}
        wait
        <2 {"id":2,"result":{}}
        leave 1
        > {"id":3,"method":"tools/call","params":{"name":"announce"}}
        "#,
    );
}

#[test]
fn progress_of_a_call_that_was_cancelled_stands_for_no_other_news() {
    let recorded = recording(
        r#"
        >1 {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}
        <1 {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        >2 {"method":"notifications/cancelled","params":{"requestId":1}}
        >3 {"id":2,"method":"tools/call","params":{"name":"announce"}}
        <3 {"id":2,"result":{}}
        <4 {"method":"notifications/tools/list_changed"}
        "#,
    );
    let mut player = ClientPlayer::new(&recorded.conversations[0], true);
    let progress =
        r#"{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    for _ in 0..3 {
        player.receive(message(progress), Some(1), 1);
    }
    assert!(player.is_missing_news());
    player.receive(message(r#"{"method":"notifications/tools/list_changed"}"#), None, 1);
    assert!(!player.is_missing_news());
}

#[test]
fn a_stream_whose_answer_came_on_another_is_not_left_nor_one_that_no_request_opened() {
    let recorded = recording(
        r#"
        >1 {"id":1,"method":"tools/call","params":{"name":"slow"}}
        >1 ended
        <2 {"id":1,"result":{}}
        >2 ended
        >3 {"id":2,"method":"tools/list"}
        "#,
    );
    check_http(
        &recorded,
        r#"
        > {"id":1,"method":"tools/call","params":{"name":"slow"}}
        wait
        <1 {"id":1,"result":{}}
        > {"id":2,"method":"tools/list"}
        done
        "#,
    );
}
