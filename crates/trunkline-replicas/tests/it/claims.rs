//! Things of which there is one over all replicas.

use std::sync::Arc;

use trunkline_replicas::Replica;
use trunkline_transport::http::replicas::{ClaimName, Place, Replicas, Unavailable};

use crate::fleet::{Fleet, SECOND, at, pass, until};

fn counter() -> ClaimName {
    ClaimName::new("instance/counter")
}

/// A fleet whose first replica holds the counter.
async fn held_by_the_first<const N: usize>() -> (Fleet, [Arc<Replica>; N], ClaimName) {
    let mut fleet = Fleet::new();
    let all = fleet.start_many().await;
    let name = counter();
    assert_eq!(all[0].claim(&name).await, Ok(Place::Here));
    (fleet, all, name)
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_first_holds_it_and_the_others_learn_where_it_is() {
    let mut fleet = Fleet::new();
    let [a, b, c] = fleet.start_many().await;
    let name = counter();
    assert_eq!(b.claim(&name).await, Ok(Place::Here));
    assert!(b.may_answer(name.as_str()) && !a.may_answer(name.as_str()));
    for other in [&a, &c] {
        assert_eq!(other.claim(&name).await, Ok(at(&b)));
    }
    assert_eq!(b.claim(&name).await, Ok(Place::Here), "it has it already");
    assert_eq!(b.status().me.sessions, 0, "it is no session");
}

#[tokio::test(start_paused = true)]
async fn two_who_ask_at_once_agree() {
    let mut fleet = Fleet::new();
    let [a, b] = fleet.start_many().await;
    let name = counter();
    let (one, other) = tokio::join!(a.claim(&name), b.claim(&name));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!((one == Place::Here) != (other == Place::Here), "{one:?} {other:?}");
    let holder = if one == Place::Here { &a } else { &b };
    assert!([one, other].contains(&at(holder)));
}

#[tokio::test(start_paused = true)]
async fn what_is_let_go_is_held_by_whoever_asks_next() {
    let (_fleet, [a, b, c], name) = held_by_the_first().await;
    assert_eq!(b.claim(&name).await, Ok(at(&a)));
    a.release(&name).await.unwrap();
    assert!(!a.may_answer(name.as_str()));
    // Whoever was there in vain asks the record.
    b.forget(name.as_str());
    assert_eq!(b.claim(&name).await, Ok(Place::Here));
    assert_eq!(c.claim(&name).await, Ok(at(&b)));
    assert_eq!(a.claim(&name).await, Ok(at(&b)));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_leaves_gives_it_to_nobody() {
    let (_fleet, [a, b, c], name) = held_by_the_first().await;
    a.leave().await;
    assert!(![&a, &b, &c].iter().any(|it| it.may_answer(name.as_str())));
    assert_eq!(c.claim(&name).await, Ok(Place::Here));
}

#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_followed_by_one_and_has_nothing_when_it_is_back() {
    let (fleet, [a, b, c], name) = held_by_the_first().await;
    pass(SECOND).await;
    fleet.stop(&a);
    until(|| b.peers().len() == 1).await;
    assert!(!a.may_answer(name.as_str()), "its lease ended before its heartbeat did");
    assert_eq!(b.claim(&name).await, Ok(Place::Here));
    assert_eq!(c.claim(&name).await, Ok(at(&b)));
    fleet.reconnect();
    until(|| b.peers().len() == 2 && a.peers().len() == 2).await;
    assert!(!a.may_answer(name.as_str()));
    assert_eq!(a.claim(&name).await, Ok(at(&b)));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_the_holder_goes_on_and_nobody_else_begins() {
    let (fleet, [a, b], name) = held_by_the_first().await;
    let other = ClaimName::new("instance/other");
    pass(3 * SECOND).await;
    fleet.set_store_away(true);
    pass(20 * SECOND).await;
    assert!(a.may_answer(name.as_str()), "its peer vouches for it");
    assert_eq!(a.claim(&name).await, Ok(Place::Here));
    assert_eq!(b.claim(&name).await, Err(Unavailable), "it has not heard of it");
    assert_eq!(b.claim(&other).await, Err(Unavailable), "nobody has it");
    fleet.set_store_away(false);
    pass(3 * SECOND).await;
    assert_eq!(b.claim(&name).await, Ok(at(&a)));
    assert_eq!(b.claim(&other).await, Ok(Place::Here));
}

#[tokio::test(start_paused = true)]
async fn it_is_held_for_as_long_as_nobody_lets_go() {
    let (_fleet, [a, b], name) = held_by_the_first().await;
    pass(35 * 60 * SECOND).await;
    assert_eq!(b.claim(&name).await, Ok(at(&a)), "longer than a session that nobody uses");
}
