//! Nothing grows without bound, and a full store says so.

use std::sync::Arc;
use std::time::Duration;

use trunkline_store::{Bounds, Heard, Manual, Memory, Store, StoreError};

use crate::backend::{Made, each, folder, reopen};

const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

#[tokio::test]
async fn a_store_full_of_entries_refuses_one_more_until_some_expire() {
    let bounds = Bounds::default().entries(10);
    let full = StoreError::Full { what: "entries", most: 10 };
    for Made { store, clock, .. } in each(&bounds).await {
        for key in 0..9 {
            store.put(&key.to_string(), b"1", MINUTE).await.expect("there is room");
        }
        let lease = store.lease("a", Duration::from_secs(600)).await.expect("there is room");
        assert!(lease.is_some());
        // Leases count, replacing does not.
        assert_eq!(store.put("x", b"", None).await, Err(full.clone()));
        assert_eq!(store.count("x", 1, None).await, Err(full.clone()));
        assert_eq!(store.lease("x", Duration::from_secs(1)).await, Err(full.clone()));
        store.put("0", b"2", MINUTE).await.expect("it replaces one");
        assert_eq!(store.get("x").await, Ok(None));

        assert_eq!(store.delete("1").await, Ok(true));
        store.put("x", b"", None).await.expect("one was deleted");
        assert_eq!(store.put("y", b"", None).await, Err(full.clone()));

        clock.advance(Duration::from_secs(60));
        for key in ["y", "z"] {
            store.put(key, b"", None).await.expect("the others have expired");
        }
    }
}

#[tokio::test]
async fn a_store_full_of_bytes_refuses_more_until_some_go() {
    let bounds = Bounds::default().bytes(10_000);
    let full = StoreError::Full { what: "bytes", most: 10_000 };
    for Made { store, clock, .. } in each(&bounds).await {
        for key in ["a", "b", "c"] {
            store.put(key, &[7; 3_000], MINUTE).await.expect("there is room");
        }
        assert_eq!(store.put("d", &[7; 3_000], None).await, Err(full.clone()));
        assert_eq!(store.put("a", &[7; 9_000], None).await, Err(full.clone()));
        assert_eq!(store.get("a").await.unwrap().expect("it stays").value.len(), 3_000);
        store.put("a", &[7; 10], MINUTE).await.expect("it is smaller than before");
        store.put("d", &[7; 3_000], MINUTE).await.expect("there is room again");
        assert_eq!(store.put("e", &[7; 3_000], None).await, Err(full.clone()));
        clock.advance(Duration::from_secs(60));
        store.put("e", &[7; 9_000], None).await.expect("all have expired");
    }
}

#[tokio::test]
async fn churn_leaves_nothing_behind_in_memory() {
    let clock = Manual::default();
    let store = Memory::new(Bounds::default(), clock.clone());
    let mut most = 0;
    for round in 0..20_000_u64 {
        // A second's entries live for ten seconds, so about a hundred are live at a time.
        store.put(&format!("{round}"), b"1", Some(Duration::from_secs(10))).await.unwrap();
        // Writing the same key again leaves no trace of its earlier expiries.
        store.put("same", b"1", Some(Duration::from_secs(1 + round % 500))).await.unwrap();
        clock.advance(Duration::from_millis(100));
        most = most.max(store.len());
    }
    assert!(most < 120, "{most} entries at once");
    clock.advance(Duration::from_secs(1_000));
    while store.len() > 1 {
        let before = store.len();
        store.put("last", b"", None).await.unwrap();
        assert!(store.len() < before, "each write removes some of {before}");
    }
}

#[tokio::test]
async fn churn_leaves_nothing_behind_in_a_folder() {
    let Made { store, clock, scratch } = folder(&Bounds::default()).await;
    let files = |space: &str| std::fs::read_dir(scratch.path().join(space)).unwrap().count();
    let mut most = 0;
    for round in 0..300_u64 {
        store.put(&format!("{round}"), b"1", Some(Duration::from_secs(10))).await.unwrap();
        store.lease(&format!("{round}"), Duration::from_secs(10)).await.unwrap();
        clock.advance(Duration::from_secs(1));
        most = most.max(files("entries") + files("leases"));
    }
    assert!(most < 30, "{most} files at once");
    assert!(files("temp") <= 16 && files("locks") == 16);

    // The next process removes leftovers when it opens the folder.
    clock.advance(Duration::from_secs(60));
    drop(store);
    let store = reopen(&scratch, &Bounds::default(), &clock).await;
    assert_eq!(files("entries") + files("leases"), 0);
    assert!(store.damaged().is_empty());
}

#[tokio::test]
async fn expired_files_of_another_process_are_removed_when_the_folder_is_full() {
    let bounds = Bounds::default().entries(5);
    let Made { store, clock, scratch } = folder(&bounds).await;
    let other = reopen(&scratch, &bounds, &clock).await;
    for key in 0..5 {
        other.put(&key.to_string(), b"", Some(Duration::from_secs(10))).await.unwrap();
    }
    drop(other);
    assert!(matches!(store.put("a", b"", None).await, Err(StoreError::Full { .. })));
    clock.advance(Duration::from_secs(10));
    store.put("a", b"", None).await.expect("the others have expired");
}

#[tokio::test]
async fn large_values_make_short_pages() {
    let bounds = Bounds::default().page_bytes(1_000).page(10);
    for Made { store, .. } in each(&bounds).await {
        for key in 0..25 {
            let size = if key < 5 { 600 } else { 1 };
            store.put(&format!("{key:02}"), &vec![7; size], None).await.unwrap();
        }
        let (mut sizes, mut after) = (Vec::new(), None);
        loop {
            let page = store.scan("", after.as_deref(), usize::MAX).await.unwrap();
            sizes.push(page.items.len());
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // Two reach 1,000 bytes; the fifth adds nine more; then the limit of ten applies.
        assert_eq!(sizes, [2, 2, 10, 10, 1]);
    }
}

#[tokio::test]
async fn only_open_listeners_are_counted() {
    let bounds = Bounds::default().listeners(3);
    for Made { store, .. } in each(&bounds).await {
        let mut listeners = Vec::new();
        for channel in ["a", "a", "b"] {
            listeners.push(store.listen(channel).await.unwrap());
        }
        let full = StoreError::Full { what: "listeners", most: 3 };
        assert_eq!(store.listen("c").await.err(), Some(full));
        listeners.pop();
        store.listen("c").await.expect("one has left");
    }
}

#[tokio::test]
async fn a_listener_keeps_the_newest_and_counts_the_rest() {
    let bounds = Bounds::default().queue(4);
    for Made { store, .. } in each(&bounds).await {
        let mut listener = store.listen("news").await.unwrap();
        for message in 0..10_u8 {
            store.publish("news", &[message]).await.unwrap();
        }
        assert_eq!(listener.next().await, Some(Heard::Lost(6)));
        for message in 6..10_u8 {
            assert_eq!(listener.next().await, Some(Heard::Message([message].into())));
        }
        assert_eq!(listener.ready(), None);
    }
}

#[tokio::test]
async fn a_listener_that_waits_is_woken_by_a_message_and_by_the_end() {
    let store = Arc::new(Memory::default());
    let mut listener = store.listen("news").await.unwrap();
    let (told, mut heard) = tokio::sync::mpsc::channel(4);
    let mut listening = tokio::task::JoinSet::new();
    listening.spawn(async move {
        while let Some(Heard::Message(bytes)) = listener.next().await {
            told.send(bytes).await.unwrap();
        }
    });
    for message in [b"one".as_slice(), b"two"] {
        tokio::task::yield_now().await;
        store.publish("news", message).await.unwrap();
        assert_eq!(heard.recv().await.as_deref(), Some(message));
    }
    drop(store);
    listening.join_next().await.expect("it was spawned").expect("it ends with the store");
}
