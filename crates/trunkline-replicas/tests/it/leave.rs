//! Leaving in order.

use trunkline_transport::http::replicas::{Place, Replicas, Unavailable};

use crate::fleet::{Fleet, SECOND, at, pass, record, until};

#[tokio::test(start_paused = true)]
async fn sessions_are_handed_over_when_a_replica_leaves() {
    let mut fleet = Fleet::new();
    let [a, b, c] = fleet.start_many().await;
    let mut ids = Vec::new();
    for number in 0..200 {
        ids.push(a.open(record(&number.to_string())).await.unwrap());
    }
    a.drain().await;
    assert_eq!(a.open(record("hello")).await, Err(Unavailable));
    assert!(a.may_answer(&ids[0]), "those it has are served");
    pass(SECOND).await;
    a.leave().await;
    assert_eq!(a.status().me.sessions, 0);
    until(|| b.peers().len() == 1 && c.peers().len() == 1).await;
    for (number, id) in ids.iter().enumerate() {
        assert!(!a.may_answer(id));
        let place = b.locate(id).await.unwrap();
        let place = if place == at(&c) { c.locate(id).await.unwrap() } else { place };
        assert_eq!(place, Place::TakenOver(record(&number.to_string())));
    }
    assert!(b.status().me.sessions > 50 && c.status().me.sessions > 50, "both got some");
}

#[tokio::test(start_paused = true)]
async fn the_last_replica_leaves_its_sessions_to_whoever_comes() {
    let (mut fleet, [a], id) = Fleet::serving().await;
    pass(SECOND).await;
    a.leave().await;
    drop(a);
    let b = fleet.start().await;
    assert_eq!(b.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
}

#[tokio::test(start_paused = true)]
async fn leaving_without_the_store_takes_no_longer_for_many_sessions() {
    let mut fleet = Fleet::new();
    let [a, b] = fleet.start_many().await;
    let mut ids = Vec::new();
    for number in 0..300 {
        ids.push(a.open(record(&number.to_string())).await.unwrap());
    }
    pass(SECOND).await;
    fleet.set_store_away(true);
    tokio::time::timeout(3 * SECOND, a.leave()).await.expect("it does not try them all");
    assert!(ids.iter().all(|id| !a.may_answer(id)));
    drop(a);
    fleet.set_store_away(false);
    until(|| b.peers().is_empty() && b.status().is_leased).await;
    assert_eq!(b.locate(&ids[7]).await, Ok(Place::TakenOver(record("7"))));
}

#[tokio::test(start_paused = true)]
async fn one_session_can_be_handed_over() {
    let (_fleet, [a, b], id) = Fleet::serving().await;
    pass(SECOND).await;
    assert!(a.hand_over(&id).await);
    assert!(!a.may_answer(&id) && a.is_lost(&id));
    assert_eq!(a.locate(&id).await, Ok(at(&b)));
    assert_eq!(b.locate(&id).await, Ok(at(&a)), "it does not know yet");
    b.forget(&id);
    pass(SECOND).await;
    assert_eq!(b.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
    assert!(b.may_answer(&id));
}

#[tokio::test(start_paused = true)]
async fn what_a_replica_did_not_answer_before_its_farewell_never_arrived() {
    let mut fleet = Fleet::new();
    let [a, b] = fleet.start_many().await;
    assert!(!b.has_answered_all(a.me()).await, "it is there");
    a.leave().await;
    let (asked, ()) = tokio::join!(b.has_answered_all(a.me()), async {
        pass(SECOND).await;
        a.say_farewell().await;
    });
    assert!(asked, "it is waited for");
    assert!(b.has_answered_all(a.me()).await, "and can be heard again");
}

#[tokio::test(start_paused = true)]
async fn who_died_or_did_not_say_farewell_may_have_done_what_it_was_asked_for() {
    let mut fleet = Fleet::new();
    let [a, b, c] = fleet.start_many().await;
    let dead = a.me().to_owned();
    drop(a);
    assert!(!b.has_answered_all(&dead).await, "it had no time for a word");
    c.leave().await;
    let asked = tokio::time::timeout(4 * SECOND, b.has_answered_all(c.me())).await;
    assert_eq!(asked, Ok(false), "it says none");
    fleet.set_store_away(true);
    c.say_farewell().await;
    assert!(!b.has_answered_all(c.me()).await, "nobody can tell");
}
