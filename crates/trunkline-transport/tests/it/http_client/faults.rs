//! Transport failures, and who learns of them.

use std::time::Duration;

use trunkline_proto::CallError;
use trunkline_transport::Limits;

use super::script::{Step, chunk, data, end, events, headed, json, status};
use super::*;

#[tokio::test]
async fn an_answer_may_come_as_json_or_as_events() {
    let script = stateless(|seen, n| match n {
        0 => json(seen.result(DONE)),
        1 => [events(data(seen.result(DONE))), vec![end()]].concat(),
        2 => {
            let mut steps = events(": first\n\n");
            let text = data(seen.result(DONE));
            let (left, right) = text.split_at(20);
            steps.extend([chunk(left), Step::Wait(Duration::from_millis(5)), chunk(right)]);
            steps.push(end());
            steps
        }
        // The stream stays open after the answer: nobody waits for its end.
        _ => [events(data(seen.result(DONE))), vec![Step::Hang]].concat(),
    })
    .await;
    let connection = open(&script).await.unwrap();
    for _ in 0..4 {
        assert_eq!(call_tool(&connection).await.unwrap().get(), DONE);
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_only_if_that_changes_nothing() {
    for steps in [
        vec![Step::Close],
        [events(": x\n\n"), vec![Step::Close]].concat(),
        [events(": x\n\n"), vec![end()]].concat(),
    ] {
        let script = stateless(move |seen, n| match (seen.what(), n) {
            ("tools/call", _) | ("tools/list", 0) => steps.clone(),
            _ => json(seen.result(r#"{"resultType":"complete","tools":[]}"#)),
        })
        .await;
        let connection = open(&script).await.unwrap();
        let outcome = call_tool(&connection).await;
        assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
        assert_eq!(script.all("tools/call").len(), 1, "a call is made once at most");
        call(&connection, "tools/list", "{}").await.unwrap();
        let ids: Vec<_> =
            script.all("tools/list").iter().map(|it| it.body["id"].as_i64().unwrap()).collect();
        assert_eq!(ids, [3, 4]);
    }
    let script = stateless(|_, _| vec![Step::Close]).await;
    let connection = open(&script).await.unwrap();
    let outcome = call(&connection, "tools/list", "{}").await;
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    assert_eq!(script.all("tools/list").len(), 2);
}

#[tokio::test]
async fn an_invalid_answer_fails_only_its_call() {
    let script = stateless(|seen, n| match n {
        0 => status(200, "text/html", "<h1>Login</h1>"),
        1 => json("{"),
        2 => json(r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
        3 => headed(200, "content-type: application/json\r\ncontent-encoding: gzip\r\n", "x"),
        4 => headed(202, "", ""),
        5 => json("[]"),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    for n in 0..6 {
        let outcome = call_tool(&connection).await;
        assert!(matches!(outcome, Err(CallError::Invalid(_))), "{n}: {outcome:?}");
    }
    call_tool(&connection).await.unwrap();
}

#[tokio::test]
async fn a_status_is_reported_as_it_is() {
    let script = stateless(|seen, n| match n {
        0 => status(503, "text/plain", "come\nback"),
        1 => headed(401, "www-authenticate: Bearer\r\n", ""),
        2 => status(404, "application/json", seen.error(r#"{"code":-32601,"message":"no"}"#)),
        3 => status(500, "application/json", seen.error(r#"{"code":-32603,"message":"oh"}"#)),
        _ => status(400, "text/plain", "what?"),
    })
    .await;
    let connection = open(&script).await.unwrap();
    for expected in
        ["HTTP status 503: come back", "HTTP status 401.", "no (code", "oh (code", "400: what?"]
    {
        let error = call_tool(&connection).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn an_overlong_answer_fails_only_its_call() {
    let script = stateless(|seen, n| {
        let long = format!(r#"{{"resultType":"complete","x":"{}"}}"#, "x".repeat(5000));
        match n {
            0 => json(seen.result(&long)),
            1 => [events(data(seen.result(&long))), vec![Step::Hang]].concat(),
            _ => json(seen.result(DONE)),
        }
    })
    .await;
    let limits = Limits::default().message_bytes(4000);
    let connection = open_at(target(&script), limits).await.unwrap();
    for _ in 0..2 {
        let error = call_tool(&connection).await.unwrap_err();
        assert!(error.to_string().contains("longer than"), "{error}");
    }
    call_tool(&connection).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_went_stale_costs_nothing() {
    // Every answer promises keep-alive, and then closes the connection.
    let script = stateless(|seen, _| {
        let mut steps = json(seen.result(DONE));
        steps.push(Step::Close);
        steps
    })
    .await;
    let connection = open(&script).await.unwrap();
    for _ in 0..50 {
        call_tool(&connection).await.unwrap();
        // Mostly the client notices the end before the next call.
        tokio::task::yield_now().await;
    }
    assert_eq!(script.all("tools/call").len(), 50);
}

#[tokio::test]
async fn hanging_up_cancels_in_the_new_era() {
    let script = stateless(|seen, n| match n {
        0 => vec![Step::Hang],
        1 => [events(": x\n\n"), vec![Step::Hang]].concat(),
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open(&script).await.unwrap();
    for n in 0..2 {
        let mut calling = Box::pin(call_tool(&connection));
        tokio::select! {
            _ = &mut calling => panic!("it is not answered"),
            _ = script.nth("tools/call", n) => {}
        }
        drop(calling);
        script.hung_up("tools/call").await;
    }
    call_tool(&connection).await.unwrap();
    assert!(script.all("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn redirects_within_the_server_are_followed() {
    let script = Script::start(move |seen, _| match (&*seen.path, seen.what()) {
        ("/mcp", _) => headed(307, "location: /moved\r\n", ""),
        (_, "server/discover") => json(seen.result(&discovered())),
        _ => json(seen.result(DONE)),
    })
    .await;
    let target = target(&script).header("authorization", "secret");
    let connection = open_at(target, Limits::default()).await.unwrap();
    call_tool(&connection).await.unwrap();
    let seen = script.seen();
    let paths: Vec<_> = seen.iter().map(|it| &*it.path).collect();
    assert_eq!(paths, ["/mcp", "/moved", "/mcp", "/moved"]);
    for it in seen {
        assert_eq!(it.header("authorization"), Some("secret"));
        assert_eq!(it.header("mcp-method"), Some(it.what()));
        assert_eq!(it.verb, "POST");
    }
}

#[tokio::test]
async fn no_message_goes_where_another_server_is() {
    let elsewhere = stateless(|seen, _| json(seen.result(DONE))).await;
    let to = elsewhere.url.clone();
    let script = Script::start(move |seen, _| match &*seen.path {
        "/mcp" => headed(307, "location: /moved\r\n", ""),
        _ => headed(308, &format!("location: {to}\r\n"), ""),
    })
    .await;
    let error = open(&script).await.unwrap_err().to_string();
    let origin = elsewhere.url.trim_end_matches("/mcp");
    let expected =
        format!("it redirects to `{origin}`, another server; use that address if you trust it.");
    assert!(error.contains(&expected), "{error}");
    assert_eq!(elsewhere.kinds(), Vec::<String>::new());
}

#[tokio::test]
async fn redirects_that_lead_nowhere_are_refused() {
    for (code, location, expected) in [
        (302, "location: /other\r\n", "has moved"),
        (303, "location: /other\r\n", "has moved"),
        (307, "location: /mcp\r\n", "more than 3 times"),
        (307, "location: ftp://x/\r\n", "begins with `http://`"),
        (308, "", "without saying where"),
    ] {
        let script = Script::start(move |_, _| headed(code, location, "")).await;
        let error = open(&script).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(script.seen().len() <= 4);
    }
}

#[tokio::test]
async fn a_subscription_is_opened_again_when_it_is_cut() {
    let script = stateless(|seen, n| {
        let id = &seen.body["id"];
        let told = |method: &str, params: &str| {
            data(format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
            ))
        };
        let ack = told(
            "notifications/subscriptions/acknowledged",
            r#""notifications":{"toolsListChanged":true},"#,
        );
        let changed = told("notifications/tools/list_changed", "");
        match n {
            0 => [events(ack + &changed), vec![Step::Close]].concat(),
            _ => [events(ack + &changed), vec![Step::Hang]].concat(),
        }
    })
    .await;
    let connection = open(&script).await.unwrap();
    let (heard, mut hears) = tokio::sync::mpsc::channel(10);
    let params = Object::parse(r#"{"notifications":{"toolsListChanged":true}}"#).unwrap();
    let mut request = Request::new("subscriptions/listen", params);
    request.heard = Some(heard);
    let mut listening = Box::pin(connection.call(request));
    let mut methods = Vec::new();
    while methods.len() < 4 {
        tokio::select! {
            outcome = &mut listening => panic!("it ended: {outcome:?}"),
            heard = hears.recv() => methods.push(heard.unwrap().method),
        }
    }
    let ids: Vec<_> =
        script.all("subscriptions/listen").iter().map(|it| it.body["id"].clone()).collect();
    assert_eq!(ids, [2, 3]);
}
