//! Streams that outlive the replica that began them.

use serde_json::Value;
use trunkline_testkit::http::Line;

use super::fleet::{Sent, fleet_with_alice, lock, said, until};

/// Reads events to the end of a stream: their ids, and what each says.
async fn rest(mut sent: Sent) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while let Some((event, message)) = sent.line.message().await {
        all.push((event.id.expect("it has an id"), shown(&message)));
    }
    all
}

fn shown(message: &Value) -> String {
    match message["params"]["progress"].as_f64() {
        Some(step) => format!("step {step}"),
        None => said(message),
    }
}

async fn next(line: &mut Line) -> (String, String) {
    let (event, message) = line.message().await.expect("there is more");
    (event.id.expect("it has an id"), shown(&message))
}

fn texts(events: &[(String, String)]) -> Vec<&str> {
    events.iter().map(|(_, text)| &**text).collect()
}

#[tokio::test]
async fn a_stream_is_resumed_at_any_replica_while_its_owner_lives() {
    let (_world, [a, b, c], alice) = fleet_with_alice().await;
    let mut slow = alice.call(&b, 1, "slow").await;
    let (first, text) = next(&mut slow.line).await;
    assert_eq!(text, "step 1");
    drop(slow);
    a.tools.go.add_permits(3);
    let resumed = alice.get(&c, Some(&first)).await;
    assert_eq!(texts(&rest(resumed).await), ["step 2", "step 3", "a for alice"]);
}

#[tokio::test]
async fn what_a_dead_owner_said_is_told_once_and_what_it_owes_is_unknown() {
    let (world, [mut a, mut b, c], alice) = fleet_with_alice().await;
    let mut slow = alice.call(&c, 1, "slow").await;
    let (first, _) = next(&mut slow.line).await;
    a.tools.go.add_permits(1);
    let (second, text) = next(&mut slow.line).await;
    assert_eq!(text, "step 2");
    a.tools.go.add_permits(1);
    let (third, _) = next(&mut slow.line).await;
    a.kill();
    assert_eq!(slow.line.message().await, None, "the stream is cut");
    let told = rest(alice.get(&b, Some(&first)).await).await;
    assert_eq!(texts(&told), ["step 2", "step 3", "outcome_unknown"]);
    assert_eq!((&told[0].0, &told[1].0), (&second, &third), "events keep their ids");
    let last = told[2].0.clone();
    assert_eq!(texts(&rest(alice.get(&c, Some(&third)).await).await), ["outcome_unknown"]);
    assert_eq!(alice.get(&c, Some(&last)).await.head.status, 204, "nothing follows it");
    // The second owner dies too: the third tells the same, and nothing twice.
    b.kill();
    assert_eq!(rest(alice.get(&c, Some(&second)).await).await, told[1..]);
    assert_eq!(alice.get(&c, Some(&last)).await.head.status, 204);
    let world = lock(&world);
    let unknown = world.events.values().filter(|it| it.text.ends_with(b"\"outcome_unknown\"}}}"));
    assert_eq!(unknown.count(), 1, "it was kept, once");
}

#[tokio::test]
async fn an_answer_that_a_dead_owner_kept_is_told_and_nothing_else() {
    let (_world, [mut a, b], alice) = fleet_with_alice().await;
    let mut slow = alice.call(&a, 1, "slow").await;
    let (first, _) = next(&mut slow.line).await;
    a.tools.go.add_permits(3);
    assert_eq!(rest(slow).await.len(), 3);
    a.kill();
    let told = rest(alice.get(&b, Some(&first)).await).await;
    assert_eq!(texts(&told), ["step 2", "step 3", "a for alice"]);
}

#[tokio::test]
async fn an_event_that_the_store_does_not_know_is_followed_by_what_its_id_owes() {
    let (world, [mut a, b], alice) = fleet_with_alice().await;
    let mut slow = alice.call(&a, 1, "slow").await;
    next(&mut slow.line).await;
    a.tools.go.add_permits(1);
    let (second, _) = next(&mut slow.line).await;
    a.kill();
    // The last write was lost with its owner.
    lock(&world).events.pop_last();
    let (id, owed) = second.rsplit_once('-').unwrap();
    assert_eq!(owed, "1", "the id of the call");
    let no_tag = format!("{}0000", &id[..id.len() - 4]);
    for forged in [format!("{id}-2"), format!("{id}-1,2"), id.to_owned(), format!("{no_tag}-1")] {
        assert_eq!(alice.get(&b, Some(&forged)).await.head.status, 204, "{forged}");
    }
    assert_eq!(texts(&rest(alice.get(&b, Some(&second)).await).await), ["outcome_unknown"]);
}

#[tokio::test]
async fn a_call_ends_even_if_the_store_knows_nothing_of_its_stream() {
    let (world, [mut a, mut b, mut c, d], alice) = fleet_with_alice().await;
    let mut slow = alice.call(&c, 71, "slow").await;
    let (first, _) = next(&mut slow.line).await;
    a.kill();
    // Nothing of the stream was written before its owner died.
    lock(&world).events.clear();
    let mut resumed = alice.get(&b, Some(&first)).await;
    let (_, answer) = resumed.line.message().await.unwrap();
    assert_eq!((said(&answer), &answer["id"]), ("outcome_unknown".to_owned(), &71.into()));
    assert_eq!(resumed.line.message().await, None, "the stream ends with it");
    let told = rest(alice.get(&c, Some(&first)).await).await;
    assert_eq!(texts(&told), ["outcome_unknown"]);
    assert_eq!(alice.get(&c, Some(&told[0].0)).await.head.status, 204, "nothing follows it");
    assert_eq!(lock(&world).events.len(), 1, "it was kept, once");
    // The next owner tells the same, whether the store knows of it or not.
    b.kill();
    assert_eq!(rest(alice.get(&c, Some(&first)).await).await, told);
    c.kill();
    lock(&world).events.clear();
    assert_eq!(rest(alice.get(&d, Some(&first)).await).await, told);
    assert_eq!(alice.get(&d, Some(&told[0].0)).await.head.status, 204);
}

#[tokio::test]
async fn a_stream_that_owes_nothing_ends_where_its_client_is() {
    let (world, [mut a, b], alice) = fleet_with_alice().await;
    let slow = alice.call(&a, 1, "slow").await;
    a.tools.go.add_permits(3);
    let told = rest(slow).await;
    assert_eq!(told.last().unwrap().1, "a for alice");
    a.kill();
    lock(&world).events.clear();
    assert_eq!(alice.get(&b, Some(&told.last().unwrap().0)).await.head.status, 204);
    assert!(lock(&world).events.is_empty());
}

#[tokio::test]
async fn what_an_id_owes_does_not_count_while_the_call_is_alive() {
    let (world, [mut a, b, c], alice) = fleet_with_alice().await;
    // At the replica that opened the session, and at one that took it over.
    for is_taken_over in [false, true] {
        let at = if is_taken_over { &b } else { &a };
        let mut slow = alice.call(at, 1, "slow").await;
        let (first, _) = next(&mut slow.line).await;
        drop(slow);
        lock(&world).events.clear();
        let resumed = alice.get(&c, Some(&first)).await;
        at.tools.go.add_permits(3);
        let answer = if is_taken_over { "b for alice" } else { "a for alice" };
        assert_eq!(texts(&rest(resumed).await), ["step 2", "step 3", answer]);
        if !is_taken_over {
            a.kill();
        }
    }
}

#[tokio::test]
async fn what_a_replaced_owner_still_says_is_neither_sent_nor_kept() {
    let (world, [a, b], alice) = fleet_with_alice().await;
    let mut slow = alice.call(&a, 1, "slow").await;
    let (first, _) = next(&mut slow.line).await;
    // Others take it for dead, and it does not know: its call goes on.
    a.vanish();
    let told = rest(alice.get(&b, Some(&first)).await).await;
    assert_eq!(texts(&told), ["outcome_unknown"]);
    let kept = lock(&world).events.clone();
    a.tools.go.add_permits(3);
    assert_eq!(slow.line.message().await, None);
    assert_eq!(lock(&world).events, kept);
    assert_eq!(rest(alice.get(&b, Some(&first)).await).await, told);
}

#[tokio::test]
async fn the_general_stream_goes_on_at_the_next_owner() {
    let (world, [mut a, b, c], alice) = fleet_with_alice().await;
    alice.post(&a, super::READY).await;
    for uri in ["file:///1", "file:///2", "file:///3", "file:///4"] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        alice.request(&a, 1, "resources/subscribe", &params).await;
    }
    let uri = |message: &Value| message["params"]["uri"].as_str().unwrap().to_owned();
    let mut changes = alice.get(&c, None).await;
    a.tools.changed("file:///1").await;
    let (first, message) = changes.line.message().await.unwrap();
    assert_eq!(uri(&message), "file:///1");
    a.tools.changed("file:///2").await;
    a.tools.changed("file:///3").await;
    until(|| lock(&world).events.keys().filter(|(_, stream, _)| *stream == 0).count() == 3).await;
    a.kill();
    while changes.line.message().await.is_some() {}
    let first = first.id.unwrap();
    let mut resumed = alice.get(&b, Some(&first)).await;
    b.tools.changed("file:///4").await;
    let mut heard = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (event, message) = resumed.line.message().await.unwrap();
        heard.push(uri(&message));
        ids.push(event.id.unwrap());
    }
    assert_eq!(heard, ["file:///2", "file:///3", "file:///4"]);
    // From an event of the first owner, and from one of the second.
    let mut again = alice.get(&c, Some(&ids[1])).await;
    assert_eq!(uri(&again.line.message().await.unwrap().1), "file:///4");
    drop(again);
    let mut last = alice.get(&c, Some(&ids[2])).await;
    b.tools.changed("file:///1").await;
    assert_eq!(uri(&last.line.message().await.unwrap().1), "file:///1");
}
