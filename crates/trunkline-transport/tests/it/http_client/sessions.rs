//! Sessions, streams and their resumption, up to 2025-11-25.

use std::time::{Duration, Instant};

use trunkline_proto::CallError;

use super::script::{Step, accepted, chunk, data, end, events, headed, json, status};
use super::*;

#[tokio::test]
async fn a_session_is_named_in_every_request_and_given_back() {
    let script = stateful(|seen, _| match seen.what() {
        "GET" => vec![],
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    call_tool(&connection).await.unwrap();
    script.nth("GET", 0).await;
    connection.close().await;
    let kinds = script.kinds();
    assert_eq!(kinds[..3], ["server/discover", "initialize", "notifications/initialized"]);
    assert_eq!(kinds.last().unwrap(), "DELETE");
    for it in &script.seen()[2..] {
        assert_eq!(it.header("mcp-session-id"), Some("session-0"), "{}", it.what());
        assert_eq!(it.header("mcp-protocol-version"), Some("2025-11-25"), "{}", it.what());
        assert_eq!(it.header("mcp-method"), None);
    }
    let initialize = &script.all("initialize")[0];
    assert_eq!(initialize.header("mcp-protocol-version"), None);
}

#[tokio::test]
async fn the_stream_of_a_session_is_asked_for_before_the_first_call() {
    let script = stateful(|seen, _| match seen.what() {
        "GET" => events(""),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    call_tool(&connection).await.unwrap();
    assert_eq!(script.kinds()[3..], ["GET", "tools/call"]);
}

#[tokio::test]
async fn a_session_id_that_is_not_visible_ascii_is_not_one() {
    let script = Script::start(|seen, _| match seen.what() {
        "server/discover" => headed(400, "", ""),
        "initialize" => headed(
            200,
            "content-type: application/json\r\nmcp-session-id: a b\r\n",
            seen.result(&initialized("2025-11-25")),
        ),
        "notifications/initialized" => accepted(),
        _ => headed(405, "", ""),
    })
    .await;
    let connection = open(&script).await.unwrap();
    let seen = script.nth("notifications/initialized", 0).await;
    assert_eq!(seen.header("mcp-session-id"), None);
    connection.close().await;
    assert!(script.all("DELETE").is_empty());
}

#[tokio::test]
async fn nothing_overtakes_initialized() {
    let script = Script::start(|seen, _| match seen.what() {
        "server/discover" => headed(400, "", ""),
        "initialize" => json(seen.result(&initialized("2025-11-25"))),
        "notifications/initialized" => {
            let mut steps = vec![Step::Wait(Duration::from_millis(100))];
            steps.extend(accepted());
            steps
        }
        "GET" => headed(405, "", ""),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    call_tool(&connection).await.unwrap();
    let confirmed = script.all("notifications/initialized")[0].at;
    let called = script.all("tools/call")[0].at;
    assert!(called - confirmed >= Duration::from_millis(100));
}

#[tokio::test]
async fn a_lost_session_is_replaced_and_what_it_refused_is_sent_again() {
    // The first session is gone after its first call.
    let script = stateful(|seen, n| match (seen.what(), seen.header("mcp-session-id")) {
        ("GET", _) => vec![],
        ("tools/call", Some("session-0")) if n > 0 => headed(404, "", ""),
        ("ping", Some("session-0")) => headed(404, "", ""),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    for _ in 0..3 {
        call_tool(&connection).await.unwrap();
    }
    assert_eq!(script.all("initialize").len(), 2);
    assert_eq!(script.all("server/discover").len(), 1);
    let sessions: Vec<_> =
        script.all("tools/call").iter().map(|it| it.headers["mcp-session-id"].clone()).collect();
    assert_eq!(sessions, ["session-0", "session-0", "session-1", "session-1"]);
    assert_eq!(script.all("initialize")[1].header("mcp-session-id"), None);
}

#[tokio::test]
async fn calls_side_by_side_share_the_new_session() {
    let script = stateful(|seen, _| match (seen.what(), seen.header("mcp-session-id")) {
        ("GET", _) => vec![],
        (_, Some("session-0")) => headed(404, "", ""),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    let (a, b, c) =
        tokio::join!(call_tool(&connection), call_tool(&connection), call_tool(&connection));
    assert!(a.is_ok() && b.is_ok() && c.is_ok(), "{a:?} {b:?} {c:?}");
    assert_eq!(script.all("initialize").len(), 2);
}

#[tokio::test]
async fn a_server_that_knows_no_session_is_not_asked_for_ever() {
    let script = stateful(|seen, _| match seen.what() {
        "GET" => vec![],
        _ => headed(404, "", ""),
    })
    .await;
    let connection = open(&script).await.unwrap();
    let outcome = call_tool(&connection).await;
    let Err(error @ CallError::Lost(_)) = outcome else { panic!("{outcome:?}") };
    assert!(!error.may_go_again(false), "nobody knows what the second 404 means");
    assert_eq!(script.all("tools/call").len(), 2);
    assert_eq!(script.all("initialize").len(), 2);
}

#[tokio::test]
async fn a_404_that_answers_the_call_is_the_answer() {
    for (text, is_result) in [
        (r#""result":{"content":[]}"#, true),
        (r#""error":{"code":-32001,"message":"Session not found"}"#, false),
    ] {
        let script = stateful(move |seen, _| match seen.what() {
            "GET" => vec![],
            "tools/call" => {
                let id = &seen.body["id"];
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{text}}}"#);
                status(404, "application/json", body)
            }
            _ => json(seen.result(DONE)),
        })
        .await;
        let connection = open(&script).await.unwrap();
        let outcome = call_tool(&connection).await;
        match is_result {
            true => drop(outcome.unwrap()),
            false => assert!(matches!(outcome, Err(CallError::Peer(_))), "{outcome:?}"),
        }
        // The client checks for the session, so that the next call does not meet the same.
        script.nth("ping", 0).await;
        assert_eq!(script.all("tools/call").len(), 1);
        assert_eq!(script.all("initialize").len(), 1);
    }
}

#[tokio::test]
async fn a_404_in_a_session_that_is_still_there_leaves_the_outcome_unknown() {
    for body in [
        "",
        "<h1>Not Found</h1>",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#,
    ] {
        let script = stateful(move |seen, n| match (seen.what(), n) {
            ("GET", _) => vec![],
            ("tools/call", 0) => status(404, "application/json", body),
            _ => json(seen.result(DONE)),
        })
        .await;
        let connection = open(&script).await.unwrap();
        let outcome = call_tool(&connection).await;
        assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
        call_tool(&connection).await.unwrap();
        assert_eq!(script.all("tools/call").len(), 2, "it was not made again");
        assert_eq!(script.all("initialize").len(), 1, "the session is kept");
        assert_eq!(script.all("ping").len(), 1);
    }
}

#[tokio::test]
async fn a_stream_is_taken_up_where_it_ended_and_not_too_early() {
    let script = stateful(|seen, _| match (seen.what(), seen.header("last-event-id")) {
        ("GET", None) => vec![],
        ("tools/call", _) => {
            let mut steps = events("id: e1\nretry: 300\ndata: \n\n");
            steps.push(end());
            steps
        }
        ("GET", Some("e1")) => {
            let mut steps = events("id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n");
            steps.push(Step::Close);
            steps
        }
        _ => {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{DONE}}}"#);
            let mut steps = events(format!("id: e3\n{}", data(answer)));
            steps.push(end());
            steps
        }
    })
    .await;
    let connection = open(&script).await.unwrap();
    call_tool(&connection).await.unwrap();
    let called = script.all("tools/call");
    assert_eq!(called.len(), 1);
    let resumed: Vec<_> =
        script.all("GET").into_iter().filter(|it| it.header("last-event-id").is_some()).collect();
    let ids: Vec<_> = resumed.iter().map(|it| it.header("last-event-id").unwrap()).collect();
    assert_eq!(ids, ["e1", "e2"]);
    assert!(resumed.iter().all(|it| it.header("mcp-session-id") == Some("session-0")));
    let mut before = called[0].at;
    for it in &resumed {
        assert!(it.at - before >= Duration::from_millis(295), "{:?}", it.at - before);
        before = it.at;
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_leaves_the_outcome_unknown() {
    for ending in [vec![end()], vec![Step::Close]] {
        let script = stateful(move |seen, _| match seen.what() {
            "tools/call" => [events(": hello\n\n"), ending.clone()].concat(),
            _ => vec![],
        })
        .await;
        let connection = open(&script).await.unwrap();
        let outcome = call_tool(&connection).await;
        assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
        assert_eq!(script.all("tools/call").len(), 1);
    }
    let script = stateful(|seen, _| match seen.what() {
        "tools/call" => [events("id: 1\nretry: 10\ndata:\n\n"), vec![end()]].concat(),
        "GET" if seen.header("last-event-id").is_some() => headed(404, "", ""),
        _ => vec![],
    })
    .await;
    let connection = open(&script).await.unwrap();
    let outcome = call_tool(&connection).await;
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
}

#[tokio::test]
async fn the_servers_own_stream_is_opened_again() {
    let script = stateful(|seen, n| match (seen.what(), n) {
        ("GET", 0) => [events("id: a\nretry: 100\ndata:\n\n"), vec![end()]].concat(),
        ("GET", 1) => [events("id: b\ndata:\n\n"), vec![Step::Close]].concat(),
        ("GET", 2) => status(503, "text/plain", "later"),
        ("GET", 3) => [events(""), vec![Step::Hang]].concat(),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    let last = script.nth("GET", 3).await;
    assert_eq!(last.header("last-event-id"), Some("b"));
    let gets = script.all("GET");
    assert_eq!(gets[1].header("last-event-id"), Some("a"));
    assert!(gets[1].at - gets[0].at >= Duration::from_millis(95));
    assert!(gets[3].at - gets[2].at >= Duration::from_millis(900), "it failed, so it takes longer");
    connection.close().await;
    script.hung_up("GET").await;
}

#[tokio::test]
async fn a_question_is_answered_with_a_post_of_its_own() {
    let script = stateful(|seen, _| match seen.what() {
        "tools/call" => {
            let mut steps = events(data(r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#));
            steps.push(Step::Wait(Duration::from_millis(100)));
            steps.push(chunk(data(seen.result(DONE))));
            steps.push(end());
            steps
        }
        "POST" => accepted(),
        _ => vec![],
    })
    .await;
    let connection = open(&script).await.unwrap();
    call_tool(&connection).await.unwrap();
    let answer = script.nth("POST", 0).await;
    assert_eq!(answer.body["id"], "q");
    assert!(answer.body["result"].is_object());
    assert_eq!(answer.header("mcp-session-id"), Some("session-0"));
}

#[tokio::test]
async fn an_abandoned_call_is_cancelled_after_it_was_sent() {
    let script = stateful(|seen, _| match seen.what() {
        "tools/call" => vec![Step::Hang],
        "notifications/cancelled" => accepted(),
        _ => vec![],
    })
    .await;
    let connection = open(&script).await.unwrap();
    let calling = call_tool(&connection);
    let dropped = tokio::time::timeout(Duration::from_millis(20), calling).await;
    assert!(dropped.is_err());
    let before = Instant::now();
    let cancelled = script.nth("notifications/cancelled", 0).await;
    let call = script.nth("tools/call", 0).await;
    assert_eq!(cancelled.body["params"]["requestId"], call.body["id"]);
    assert!(cancelled.at > call.at);
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_session_that_is_gone_before_it_began_is_not_asked_for_again() {
    let script = Script::start(|seen, n| match seen.what() {
        "server/discover" => headed(400, "", ""),
        "initialize" => headed(
            200,
            &format!("content-type: application/json\r\nmcp-session-id: s{n}\r\n"),
            seen.result(&initialized("2025-11-25")),
        ),
        "GET" => headed(405, "", ""),
        _ => headed(404, "", ""),
    })
    .await;
    if let Ok(connection) = open(&script).await {
        let called = tokio::time::timeout(Duration::from_secs(10), call_tool(&connection)).await;
        called.expect("it is answered in time").expect_err("there is no session");
    }
    assert_eq!(script.all("initialize").len(), 1);
}
