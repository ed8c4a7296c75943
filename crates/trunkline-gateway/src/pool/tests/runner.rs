//! The pool with tasks and a paused clock.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::fake::{Fake, How, TAKES, call, patient};
use crate::pool::{Event, Why};

#[tokio::test(start_paused = true)]
async fn fifty_leases_make_one_start() {
    let (backend, pool) = Fake::with_pool("max_concurrent=50");
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let pool = pool.clone();
        tasks.spawn(async move { pool.lease(call()).await.expect("it starts") });
    }
    let leases = tasks.join_all().await;
    assert_eq!(backend.started(), 1);
    assert_eq!(pool.status().instances[0].in_flight, 50);
    drop(leases);
    assert_eq!(pool.status().instances[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_wakes_all() {
    let (backend, pool) = Fake::with_pool("max_concurrent=50");
    backend.next_starts(&[How::Badly]);
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let pool = pool.clone();
        tasks.spawn(async move { pool.lease(call()).await.expect_err("it does not start") });
    }
    for failure in tasks.join_all().await {
        assert_eq!(failure.reason, "spawn_failed");
        assert_eq!(failure.retry_after, Some(Duration::from_secs(1)));
    }
    assert_eq!((backend.started(), backend.alive()), (1, 0));
    let failure = pool.lease(call()).await.expect_err("it is too early");
    assert_eq!(failure.reason, "backoff");
    assert_eq!(failure.exit.as_deref(), Some("exited with code 1"));
    sleep(Duration::from_secs(1)).await; // the sleep is the subject: the clock is moved
    pool.lease(call()).await.expect("it starts now");
}

#[tokio::test(start_paused = true)]
async fn a_lease_on_a_ready_instance_is_there_at_once() {
    let (_, pool) = Fake::with_pool("");
    drop(pool.lease(call()).await.expect("it starts"));
    assert!(matches!(poll(pin!(pool.lease(call()))), Poll::Ready(Ok(_))));
    assert_eq!(pool.status().instances[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_leaves_nothing_behind() {
    let (_, pool) = Fake::with_pool("max_concurrent=1 max_instances=1");
    let first = pool.lease(call()).await.expect("it starts");

    // Dropped before the answer was sent.
    let mut second = Box::pin(pool.lease(call()));
    assert!(poll(second.as_mut()).is_pending());
    assert_eq!(pool.status().waiters, 1);
    drop(second);
    assert_eq!(pool.status().waiters, 0);

    // Dropped after the answer was sent, but not received.
    let mut third = Box::pin(pool.lease(call()));
    assert!(poll(third.as_mut()).is_pending());
    drop(first);
    assert_eq!(pool.status().instances[0].in_flight, 1);
    drop(third);
    assert_eq!(pool.status().instances[0].in_flight, 0);
    pool.lease(patient(Duration::ZERO)).await.expect("the place is free");
}

#[tokio::test(start_paused = true)]
async fn a_start_outlives_its_caller_and_stops_when_idle() {
    let (backend, pool) = Fake::with_pool("idle=60s");
    assert!(poll(pin!(pool.lease(call()))).is_pending());
    sleep(TAKES * 2).await; // the sleep is the subject: the clock is moved
    assert_eq!((pool.status().state, backend.alive()), ("ready", 1));
    sleep(Duration::from_secs(61)).await; // the sleep is the subject: the clock is moved
    assert_eq!((pool.status().state, backend.alive()), ("idle", 0));
    assert_eq!(pool.tasks(), (false, 0), "nobody is left to look after anything");
    pool.lease(call()).await.expect("it starts again");
    assert_eq!(backend.started(), 2);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_pool_stops_everything() {
    let backend = Arc::new(Fake::default());
    backend.next_starts(&[How::Well, How::Well, How::Never]);
    let pool = backend.pool("max_concurrent=1 probe=1s");
    let busy = pool.lease(call()).await.expect("it starts");
    drop(pool.lease(call()).await.expect("another starts"));
    let other = pool.lease(call()).await.expect("it is ready");
    assert!(poll(pin!(pool.lease(call()))).is_pending());
    sleep(TAKES * 2).await; // the sleep is the subject: the clock is moved
    assert_eq!(backend.alive(), 3);
    drop(pool);
    sleep(TAKES * 2).await; // the sleep is the subject: the clock is moved
    assert_eq!(backend.alive(), 0);
    drop((busy, other));
    assert_eq!(Arc::strong_count(&backend), 1, "no task holds on to it");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_keeps_a_dropped_pool_alive() {
    let (backend, pool) = Fake::with_pool("");
    let waits = tokio::spawn({
        let pool = pool.clone();
        async move { pool.lease(call()).await.map(|lease| lease.id()) }
    });
    drop(pool);
    waits.await.expect("it does not panic").expect("a waiting caller keeps the pool");
    sleep(TAKES * 2).await; // the sleep is the subject: the clock is moved
    assert_eq!((backend.alive(), Arc::strong_count(&backend)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_starting_is_a_failed_start() {
    for how in [How::PanicsAtOnce, How::PanicsLater] {
        let backend = Arc::new(Fake::default());
        backend.next_starts(&[how]);
        let pool = backend.pool("");
        let failure = pool.lease(call()).await.expect_err("it panicked");
        assert_eq!(failure.reason, "panicked");
        assert_eq!((pool.status().state, backend.alive()), ("backoff", 0));
        sleep(Duration::from_secs(1)).await; // the sleep is the subject: the clock is moved
        pool.lease(call()).await.expect("it starts now");
    }
}

#[tokio::test(start_paused = true)]
async fn panics_elsewhere_end_the_instance() {
    for how in [How::Badly, How::Never, How::PanicsLater] {
        let backend = Arc::new(Fake::default());
        let pool = backend.pool("probe=30s max_instances=1");
        drop(pool.lease(call()).await.expect("it starts"));
        *backend.probes.lock().unwrap() = how;
        *backend.stops.lock().unwrap() = how;
        // Thirty seconds until the probe, five for its answer, thirty for the stop.
        sleep(Duration::from_secs(66)).await; // the sleep is the subject: the clock is moved
        let status = pool.status();
        assert_eq!((status.state, status.instances.len(), backend.alive()), ("idle", 0, 0));
        assert_eq!(status.stops[&Why::Unwell], 1);
        pool.lease(call()).await.expect("another starts");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_seen_at_once() {
    let (backend, pool) = Fake::with_pool("min_ready=1");
    pool.client_joined();
    let lease = pool.lease(call()).await.expect("it starts");
    lease.instance().crash.notify_one();
    sleep(Duration::from_millis(1)).await; // the sleep is the subject: the clock is moved
    let next = pool.lease(call()).await.expect("there is a new one");
    assert_ne!(lease.id(), next.id());
    sleep(TAKES * 2).await; // the sleep is the subject: the clock is moved
    assert_eq!((backend.started(), backend.alive()), (2, 1), "it was refilled, once");
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_calls_but_not_for_ever() {
    let (backend, pool) = Fake::with_pool("max_concurrent=1");
    let short = pool.lease(call()).await.expect("it starts");
    let long = pool.lease(call()).await.expect("another starts");
    let closing = tokio::spawn({
        let pool = pool.clone();
        async move { pool.close(Duration::from_secs(20)).await }
    });
    sleep(Duration::from_secs(1)).await; // the sleep is the subject: the clock is moved
    assert_eq!(pool.lease(call()).await.expect_err("it is closed").reason, "draining");
    drop(short);
    sleep(Duration::from_secs(1)).await; // the sleep is the subject: the clock is moved
    assert_eq!(backend.alive(), 1);
    assert!(!closing.is_finished());
    let close = timeout(Duration::from_secs(19), closing).await;
    close.expect("it is forced").expect("it does not panic");
    assert_eq!(backend.alive(), 0);
    drop(long);
    pool.close(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn events_are_reported() {
    let (_, pool) = Fake::with_pool("idle=1s");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    assert!(pool.on_event(move |event| ear.lock().unwrap().push(event.clone())));
    assert!(!pool.on_event(|_| ()));
    let lease = pool.lease(call()).await.expect("it starts");
    let id = lease.id();
    drop(lease);
    sleep(Duration::from_secs(2)).await; // the sleep is the subject: the clock is moved
    let heard = heard.lock().unwrap();
    assert!(matches!(heard[0], Event::Starting { .. }));
    assert!(matches!(heard[1], Event::Started { took, .. } if took >= TAKES));
    assert!(matches!(heard[2], Event::Waited { served: true, .. }));
    assert!(matches!(heard[3], Event::Stopping { id: it, why: Why::Idle, .. } if it == id));
    assert!(matches!(heard[4], Event::Stopped { id: it, .. } if it == id));
    assert_eq!(heard.len(), 5);
    let told = serde_json::to_value(pool.status()).expect("it can be told");
    assert_eq!(told["starts"]["call"], 1);
    assert_eq!(told["stops"]["idle"], 1);
    assert_eq!(told["state"], "idle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_share_few_places() {
    let (backend, pool) = Fake::with_pool("max_concurrent=2 max_instances=3 idle=0s");
    let mut tasks = JoinSet::new();
    for n in 0..64 {
        let pool = pool.clone();
        tasks.spawn(async move {
            for turn in 0..200 {
                if (n + turn) % 7 == 0 {
                    // Asks, and may leave before the answer.
                    drop(poll(pin!(pool.lease(call()))));
                    continue;
                }
                let lease = pool.lease(call()).await.expect("there is a place in time");
                let others = lease.instance().users.fetch_add(1, Ordering::SeqCst);
                assert!(others < 2, "{others} others were there");
                tokio::task::yield_now().await;
                lease.instance().users.fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(pool.status().waiters, 0);
    pool.close(Duration::ZERO).await;
    assert_eq!(backend.alive(), 0);
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(start_paused = true)]
async fn work_that_holds_an_instance_is_waited_for_and_listeners_are_not() {
    let (backend, pool) = Fake::with_pool("max_instances=1");
    let at_work = pool.lease(call()).await.expect("it starts").hold();
    let listens = pool.lease(call()).await.expect("it is ready").stay();
    let mut closing = pin!(pool.close(Duration::from_secs(30)));
    assert!(poll(closing.as_mut()).is_pending());
    sleep(Duration::from_secs(20)).await; // the sleep is the subject: the clock is moved
    assert_eq!(backend.alive(), 1);
    drop(at_work);
    closing.await;
    assert_eq!(backend.alive(), 0);
    drop(listens);
}
