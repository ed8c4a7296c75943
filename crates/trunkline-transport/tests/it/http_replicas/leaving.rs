//! A replica that leaves: what is in flight is answered, and what comes then finds the next owner.

use std::sync::atomic::Ordering::SeqCst;

use trunkline_testkit::http::{Line, request};

use super::fleet::{Replica, Visitor, call, fleet, fleet_with_alice, lock, said, until};

/// Hands a released session over once a request has come for it.
async fn hand_over_late(from: &Replica, session: &str, to: &Replica) {
    let before = from.fake.located.load(SeqCst);
    until(|| from.fake.located.load(SeqCst) > before).await;
    from.hand_over(session, to);
}

#[tokio::test]
async fn a_session_is_kept_until_a_forwarded_call_is_answered() {
    let (_world, [a, b], alice) = fleet_with_alice().await;
    let leaving = async {
        until(|| a.is_busy()).await;
        assert!(a.release().is_empty() && a.has_open_requests());
        a.tools.go.add_permits(1);
    };
    let (sent, ()) = tokio::join!(alice.call(&b, 1, "wait"), leaving);
    assert_eq!(sent.said().await, "a for alice");
    until(|| !a.has_open_requests()).await;
    assert_eq!(a.release(), [&*alice.session]);
    assert!(a.release().is_empty(), "it is released once");
    a.hand_over(&alice.session, &b);
    assert_eq!(alice.call(&b, 2, "echo").await.said().await, "b for alice");
}

#[tokio::test]
async fn a_session_is_kept_until_the_stream_of_a_call_has_carried_its_answer() {
    let (_world, [a], alice) = fleet_with_alice().await;
    let unread = a.answer(&alice, call(1, "slow")).await;
    a.tools.go.add_permits(3);
    until(|| a.tools.go.available_permits() == 0).await;
    assert!(a.release().is_empty(), "the call is done, but nobody has its answer");
    drop(unread);
    assert_eq!(a.release(), [&*alice.session]);
}

#[tokio::test]
async fn a_request_of_which_only_the_head_has_arrived_keeps_its_session() {
    let (_world, [a, _b], alice) = fleet_with_alice().await;
    let mut line = Line::to(a.public).await;
    let body = call(1, "echo");
    let mut text = request(a.public, "POST /mcp", &alice.headers(), &body);
    let rest = text.split_off(text.len() - body.len());
    line.send(text).await;
    until(|| a.has_open_requests()).await;
    assert!(a.release().is_empty());
    line.send(rest).await;
    assert_eq!(line.head().await.status, 200);
    assert_eq!(said(&line.json().await), "a for alice");
}

#[tokio::test]
async fn a_request_that_comes_during_a_hand_over_finds_the_next_owner() {
    let (_world, [a, b, c]) = fleet().await;
    for at in [&a, &b, &c] {
        let alice = Visitor::open(&a, "alice").await;
        assert_eq!(a.release(), [&*alice.session]);
        let handing_over = hand_over_late(&a, &alice.session, &b);
        let (sent, ()) = tokio::join!(alice.call(at, 1, "echo"), handing_over);
        assert_eq!((sent.head.status, &*sent.said().await), (200, "b for alice"), "{}", at.fake.me);
    }
}

#[tokio::test]
async fn a_session_that_could_not_be_handed_over_is_served_again() {
    let (_world, [a, b], alice) = fleet_with_alice().await;
    assert_eq!(a.release(), [&*alice.session]);
    let before = a.fake.located.load(SeqCst);
    let taking_back = async {
        until(|| a.fake.located.load(SeqCst) > before).await;
        a.take_back(&alice.session);
    };
    let (sent, ()) = tokio::join!(alice.call(&b, 1, "echo"), taking_back);
    assert_eq!(sent.said().await, "a for alice");
}

#[tokio::test]
async fn hanging_up_ends_general_streams_of_other_replicas_and_no_call() {
    let (_world, [a, b, c], alice) = fleet_with_alice().await;
    let mut changes = alice.get(&b, None).await;
    let mut slow = alice.call(&b, 1, "slow").await;
    let (first, _) = slow.line.message().await.expect("it tells its progress");
    let first = first.id.expect("it has an id");
    let mut resumed = alice.get(&b, Some(&first)).await;
    assert!(changes.head.is_events() && resumed.head.is_events());
    b.hang_up();
    assert_eq!(changes.line.message().await, None, "the client reads on elsewhere");
    a.tools.go.add_permits(3);
    let mut last = None;
    while let Some((_, message)) = resumed.line.message().await {
        last = Some(message);
    }
    assert_eq!(said(&last.expect("it goes on")), "a for alice");
    let mut changes = alice.get(&c, None).await;
    assert!(changes.head.is_events());
    a.hang_up();
    assert_eq!(changes.line.message().await, None, "nor does the owner's own listener keep it");
}

#[tokio::test]
async fn a_request_that_a_replica_left_unread_goes_to_the_next_owner() {
    use tokio::io::AsyncReadExt;
    let (world, [a, b], alice) = fleet_with_alice().await;
    // Stands for the listener of `a` at the moment at which it ends.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    lock(&world).set_url("a", &format!("http://{}", listener.local_addr().unwrap()));
    let leaving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        assert_eq!(a.release(), [&*alice.session]);
        a.hand_over(&alice.session, &b);
        lock(&world).farewells.insert("a".to_owned());
    };
    let (sent, ()) = tokio::join!(alice.call(&b, 1, "echo"), leaving);
    assert_eq!(sent.said().await, "b for alice");
}
