//! The suite, on both backends and both kinds of runtime.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use trunkline_store::suite::{self, Subject};
use trunkline_store::{
    Bounds, Bucket, Capabilities, Cursor, Entry, Expect, Folder, Lease, Listener, Manual, Memory,
    Monotonic, Page, Pending, Store, Swap, Ttl, Version,
};

use crate::backend::Scratch;

fn bounds() -> Bounds {
    Bounds::default().value(1 << 16)
}

/// Two tests of one backend, one for each kind of runtime.
macro_rules! on_many_threads_and_on_one {
    ($backend:ident, $many:ident, $one:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $many() {
            suite::run($backend).await;
        }

        #[tokio::test]
        async fn $one() {
            suite::run($backend).await;
        }
    };
}

on_many_threads_and_on_one!(
    memory,
    memory_keeps_every_promise,
    memory_keeps_every_promise_on_one_thread
);

#[tokio::test(start_paused = true)]
async fn memory_keeps_every_promise_by_tokios_clock() {
    suite::run(|| async {
        let store = Memory::new(bounds(), Monotonic::default());
        Subject::new(store, bounds(), tokio::time::advance)
    })
    .await;
}

on_many_threads_and_on_one!(
    folder,
    folder_keeps_every_promise,
    folder_keeps_every_promise_on_one_thread
);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_openings_of_one_folder_keep_every_promise_together() {
    suite::run(|| async {
        let (clock, scratch) = (Manual::default(), Scratch::new());
        let open = || Folder::open_with(scratch.path(), bounds(), clock.clone());
        let pair = ByTurns {
            stores: [open().await.expect("it opens"), open().await.expect("it opens twice")],
            turn: AtomicUsize::default(),
        };
        Subject::new(pair, bounds(), move |by| {
            let _ = &scratch;
            clock.advance(by);
            ready(())
        })
    })
    .await;
}

#[tokio::test]
async fn a_store_that_breaks_a_promise_is_named() {
    let mut wrong = JoinSet::new();
    wrong.spawn(suite::run(|| async {
        // It claims a smaller bound than it enforces.
        let clock = Manual::default();
        let store = Memory::new(bounds(), clock.clone());
        Subject::new(store, bounds().value(100), move |by| {
            clock.advance(by);
            ready(())
        })
    }));
    let panic =
        wrong.join_next().await.expect("it was spawned").expect_err("the suite fails").into_panic();
    let text = panic.downcast_ref::<String>().expect("a panic with a text");
    assert!(text.starts_with("1 of 47 promises are not kept:\nvalues_up_to_the_bound"), "{text}");
}

async fn memory() -> Subject {
    let clock = Manual::default();
    let store = Memory::new(bounds(), clock.clone());
    Subject::new(store, bounds(), move |by| {
        clock.advance(by);
        ready(())
    })
}

async fn folder() -> Subject {
    let (clock, scratch) = (Manual::default(), Scratch::new());
    let store = Folder::open_with(scratch.path(), bounds(), clock.clone()).await;
    Subject::new(store.expect("the folder opens"), bounds(), move |by| {
        let _ = &scratch;
        clock.advance(by);
        ready(())
    })
}

/// Alternates every operation between two stores that should be one. Channels are local, so they stay
/// with the first.
struct ByTurns {
    stores: [Folder; 2],
    turn: AtomicUsize,
}

impl ByTurns {
    fn next(&self) -> &Folder {
        &self.stores[self.turn.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

impl Store for ByTurns {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        self.next().get(key)
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], ttl: Ttl) -> Pending<'a, Version> {
        self.next().put(key, value, ttl)
    }

    fn swap<'a>(&'a self, key: &'a str, old: Expect, new: &'a [u8], ttl: Ttl) -> Pending<'a, Swap> {
        self.next().swap(key, old, new, ttl)
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        self.next().delete(key)
    }

    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Ttl) -> Pending<'a, i64> {
        self.next().count(key, by, ttl)
    }

    fn take<'a>(
        &'a self,
        key: &'a str,
        buckets: &'a [Bucket],
    ) -> Pending<'a, Result<(), Duration>> {
        self.next().take(key, buckets)
    }

    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        self.next().lease(name, ttl)
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        self.next().renew(lease, ttl)
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        self.next().release(lease)
    }

    fn scan<'a>(&'a self, prefix: &'a str, after: Cursor<'a>, limit: usize) -> Pending<'a, Page> {
        self.next().scan(prefix, after, limit)
    }

    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        self.stores[0].publish(channel, message)
    }

    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        self.stores[0].listen(channel)
    }

    fn capabilities(&self) -> Capabilities {
        self.stores[0].capabilities()
    }
}
