//! Finding owners, and becoming one.

use trunkline_store::Store;
use trunkline_transport::http::replicas::{KeptEvent, Place, Replicas};

use crate::fleet::{Fleet, SECOND, at, pass, record, until};

#[tokio::test(start_paused = true)]
async fn every_replica_finds_the_owner_and_nobody_else_may_answer() {
    let (_fleet, [a, b, c], id) = Fleet::serving().await;
    assert!(id.len() < 300 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
    assert!(a.may_answer(&id) && !b.may_answer(&id) && !c.may_answer(&id));
    assert_eq!(a.locate(&id).await, Ok(Place::Here));
    assert_eq!(b.locate(&id).await, Ok(at(&a)));
    assert_eq!(c.locate(&id).await, Ok(at(&a)));
    assert_eq!(b.locate_replica(a.me()).await, Ok(at(&a)));
    assert_eq!(b.locate_replica(b.me()).await, Ok(Place::Here));
    assert_eq!(b.locate_replica("another").await, Ok(Place::Gone));
    assert_eq!(b.locate("not an id of ours").await, Ok(Place::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_session_survives_the_end_of_its_owner() {
    let (_fleet, [a, b, c], id) = Fleet::serving().await;
    a.update(&id, record("changed"));
    pass(SECOND).await;
    drop(a);
    until(|| b.peers().len() == 1 && c.peers().len() == 1).await;
    let (first, second) = tokio::join!(b.locate(&id), b.locate(&id));
    assert_eq!(first, Ok(Place::TakenOver(record("changed"))));
    assert_eq!(second, Ok(Place::Here), "one alone restores it");
    assert!(b.may_answer(&id) && !c.may_answer(&id));
    assert_eq!(c.locate(&id).await, Ok(at(&b)));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_found_nobody_there_waits_for_the_takeover() {
    let (_fleet, [a, b, c], id) = Fleet::serving().await;
    pass(SECOND).await;
    let there = at(&a);
    drop(a);
    assert_eq!(b.locate(&id).await, Ok(there.clone()), "its heartbeat lasts");
    b.forget(&id);
    assert_eq!(b.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
    c.forget(&id);
    assert_eq!(c.locate(&id).await, Ok(at(&b)));
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_found_is_known_at_once_until_it_moves_or_dies() {
    let (_fleet, [a, b, c], id) = Fleet::serving().await;
    pass(SECOND).await;
    let known = |it: &dyn Replicas| it.found_lately(&id).map(Place::At);
    assert_eq!(known(&*b), None, "nobody has looked for it");
    assert_eq!(b.locate(&id).await, Ok(at(&a)));
    assert_eq!((known(&*b), known(&*a)), (Some(at(&a)), None));
    b.forget(&id);
    assert_eq!(known(&*b), None, "somebody was there in vain");
    assert_eq!(b.locate(&id).await, Ok(at(&a)));
    assert_eq!(known(&*b), Some(at(&a)));
    drop(a);
    until(|| b.peers().len() == 1 && c.peers().len() == 1).await;
    assert_eq!(known(&*b), None, "it is dead");
    assert_eq!(b.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
    assert_eq!(known(&*b), None, "it is here");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_answers_pings_keeps_its_sessions_although_its_heartbeat_is_gone() {
    let (fleet, [a, b], id) = Fleet::serving().await;
    let key = format!("replica/{}", a.me());
    fleet.memory.delete(&key).await.unwrap();
    assert_eq!(b.locate(&id).await, Ok(at(&a)));
    assert!(a.may_answer(&id));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_taken_over_is_lost_to_the_owner_before() {
    let (fleet, [a, b, c], id) = Fleet::serving().await;
    pass(SECOND).await;
    fleet.stop(&a);
    until(|| b.peers().len() == 1).await;
    assert!(!a.may_answer(&id), "its lease is over before its heartbeat is");
    assert_eq!(b.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
    fleet.reconnect();
    until(|| b.peers().len() == 2 && a.peers().len() == 2).await;
    assert!(!a.may_answer(&id));
    assert_eq!(a.locate(&id).await, Ok(at(&b)));
    assert!(a.is_lost(&id) && !b.is_lost(&id));
    c.forget(&id);
    assert_eq!(c.locate(&id).await, Ok(at(&b)));
}

#[tokio::test(start_paused = true)]
async fn a_restart_at_the_same_address_takes_over_without_anybody_who_knew_the_owner() {
    let (mut fleet, [a, b], id) = Fleet::serving().await;
    pass(SECOND).await;
    let url = a.url().to_owned();
    drop((a, b));
    let again = fleet.start_at(&url).await;
    pass(6 * SECOND).await;
    assert_eq!(again.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_is_nowhere() {
    let (_fleet, [a, b], id) = Fleet::serving().await;
    pass(SECOND).await;
    a.close(&id).await.unwrap();
    assert!(!a.may_answer(&id));
    assert_eq!(a.locate(&id).await, Ok(Place::Gone));
    b.forget(&id);
    pass(SECOND).await;
    assert_eq!(b.locate(&id).await, Ok(Place::Gone));
}

#[tokio::test(start_paused = true)]
async fn kept_events_are_read_by_another_replica_in_order_and_within_bounds() {
    let (_fleet, [a, b], id) = Fleet::serving().await;
    let event = |stream, place| KeptEvent {
        stream,
        place,
        text: format!("{{\"n\":{place}}}\n").into_bytes(),
        owes: vec!["1".to_owned()],
    };
    for place in 1..=300 {
        a.keep(&id, event(2, place));
    }
    a.keep(&id, event(11, 1));
    pass(SECOND).await;
    let kept = b.kept(&id, 2, 290).await.unwrap();
    assert_eq!(kept, (291..=300).map(|place| event(2, place)).collect::<Vec<_>>());
    assert_eq!(b.kept(&id, 2, 0).await.unwrap().len(), 255, "256 of the session are kept");
    assert_eq!(b.kept(&id, 11, 0).await, Ok(vec![event(11, 1)]));
    assert_eq!(b.kept(&id, 11, 1).await, Ok(vec![]));
}
