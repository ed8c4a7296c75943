//! The store goes away.

use trunkline_transport::http::replicas::{Place, Replicas, Unavailable};

use crate::fleet::{Fleet, SECOND, at, pass, record, until};

#[tokio::test(start_paused = true)]
async fn owners_go_on_while_the_store_is_away_from_all() {
    let (fleet, [a, b, c], id) = Fleet::serving().await;
    fleet.set_store_away(true);
    for _ in 0..60 {
        pass(SECOND).await;
        assert!(a.may_answer(&id));
        assert_eq!(b.locate(&id).await, Ok(at(&a)));
    }
    assert_eq!(a.open(record("hello")).await, Err(Unavailable));
    assert!(a.status().is_store_away && a.status().is_leased);
    fleet.set_store_away(false);
    until(|| !a.status().is_store_away && b.peers().len() == 2 && c.peers().len() == 2).await;
    assert!(a.may_answer(&id));
    assert_eq!(c.locate(&id).await, Ok(at(&a)));
    a.open(record("hello")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_reaches_neither_the_store_nor_its_peers_stops_answering() {
    let (fleet, [a, b], id) = Fleet::serving().await;
    pass(SECOND).await;
    fleet.set_store_away(true);
    fleet.isolate(&a);
    pass(4 * SECOND).await;
    assert!(!a.may_answer(&id));
    assert_eq!(a.locate(&id).await, Err(Unavailable));
    // Nobody takes anything over without the store.
    assert_eq!(b.locate(&id).await, Ok(at(&a)));
    fleet.set_store_away(false);
    fleet.reconnect();
    until(|| a.status().is_leased).await;
    assert!(!a.may_answer(&id), "somebody may have taken it over");
    assert_eq!(a.locate(&id).await, Ok(Place::Here));
    assert!(a.may_answer(&id));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_empty_gets_the_records_again() {
    let (fleet, [a, b], id) = Fleet::serving().await;
    pass(SECOND).await;
    fleet.set_store_away(true);
    pass(10 * SECOND).await;
    fleet.wipe().await;
    fleet.set_store_away(false);
    until(|| b.peers().len() == 1 && a.peers().len() == 1).await;
    assert_eq!(b.locate(&id).await, Ok(at(&a)));
    pass(2 * SECOND).await;
    drop(a);
    until(|| b.peers().is_empty()).await;
    assert_eq!(b.locate(&id).await, Ok(Place::TakenOver(record("hello"))));
}

#[tokio::test(start_paused = true)]
async fn a_single_replica_is_fenced_without_the_store_and_recovers_with_it() {
    let (fleet, [a], id) = Fleet::serving().await;
    pass(SECOND).await;
    fleet.set_store_away(true);
    pass(5 * SECOND).await;
    assert!(!a.may_answer(&id));
    fleet.set_store_away(false);
    until(|| a.status().is_leased).await;
    assert_eq!(a.locate(&id).await, Ok(Place::Here));
}
