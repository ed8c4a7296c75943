//! The limits of the client's pool and of its concurrent requests.

use super::*;

/// How many connections three sequential calls take, the handshake included.
async fn connections(limits: Limits) -> usize {
    let script = stateless(|seen, _| json(seen.result(DONE))).await;
    let connection = open_at(target(&script), limits).await.unwrap();
    for _ in 0..3 {
        call_tool(&connection).await.unwrap();
    }
    script.seen().iter().map(|it| it.connection).max().unwrap() + 1
}

#[tokio::test]
async fn connections_are_kept_as_far_as_the_limits_go() {
    assert_eq!(connections(Limits::default()).await, 1);
    assert_eq!(connections(Limits::default().idle_connections(1)).await, 1);
    assert_eq!(connections(Limits::default().idle_connections(0)).await, 4);
    assert_eq!(connections(Limits::default().idle_connection(Duration::ZERO)).await, 4);
}

#[tokio::test]
async fn requests_over_the_limit_wait() {
    let script = stateless(|seen, _| match seen.body["params"]["name"].as_str() {
        Some("hang") => vec![Step::Hang],
        _ => json(seen.result(DONE)),
    })
    .await;
    let connection = open_at(target(&script), Limits::default().requests(1)).await.unwrap();
    let params = Object::parse(r#"{"name":"hang","arguments":{}}"#).unwrap();
    let hanging = tokio::spawn(connection.call(Request::new("tools/call", params)));
    script.nth("tools/call", 0).await;
    let mut waiting = Box::pin(call_tool(&connection));
    let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(early.is_err(), "there is no room for it yet");
    assert_eq!(script.all("tools/call").len(), 1);
    hanging.abort();
    waiting.await.unwrap();
    assert_eq!(script.all("tools/call").len(), 2);
}

#[tokio::test]
async fn a_kept_connection_that_its_server_closes_is_closed_here_too() {
    // With the answer, or later.
    for pause in [None, Some(Step::Wait(Duration::from_millis(20)))] {
        let script = stateless(move |seen, _| {
            let answer = json(seen.result(DONE)).into_iter();
            answer.chain(pause.clone()).chain([Step::Leave]).collect()
        })
        .await;
        let connection = open(&script).await.unwrap();
        for n in 1..=2 {
            call_tool(&connection).await.unwrap();
            script.hung_up_times("tools/call", n).await;
        }
        let calls = script.all("tools/call");
        assert_ne!(calls[0].connection, calls[1].connection);
    }
}
