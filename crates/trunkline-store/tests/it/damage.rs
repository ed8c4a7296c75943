//! Damaged files, and how the store handles them.

use std::fs;
use std::time::Duration;

use trunkline_store::{Bounds, Expect, Folder, Manual, Store, StoreError, Swap};

use crate::backend::{Scratch, reopen};

#[tokio::test]
async fn a_damaged_file_is_reported_and_harms_no_other() {
    let (scratch, clock) = (Scratch::new(), Manual::default());
    let bounds = Bounds::default();
    let store = reopen(&scratch, &bounds, &clock).await;
    let long = "x".repeat(500);
    for key in ["good", "torn", "flipped", "empty", &long] {
        store.put(key, b"some bytes", None).await.unwrap();
    }
    drop(store);
    let entries = scratch.path().join("entries");
    let of = |key: &str| entries.join(format!("k-{key}"));
    let bytes = fs::read(of("torn")).unwrap();
    fs::write(of("torn"), &bytes[..bytes.len() - 3]).unwrap();
    let mut bytes = fs::read(of("flipped")).unwrap();
    bytes[40] ^= 1;
    fs::write(of("flipped"), bytes).unwrap();
    fs::write(of("empty"), "").unwrap();
    // A complete record, but of another key.
    fs::copy(of("good"), of("moved")).unwrap();
    for file in fs::read_dir(&entries).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("h-") {
            fs::write(file.path(), "scribble").unwrap();
        }
    }
    // Foreign files are left alone.
    fs::write(entries.join("README"), "hello").unwrap();

    let store = reopen(&scratch, &bounds, &clock).await;
    let mut names: Vec<_> = store
        .damaged()
        .iter()
        .map(|damage| damage.path.file_name().unwrap().to_string_lossy()[..4].to_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "{:?}", store.damaged());
    assert!(names[0].starts_with("h-"));
    assert_eq!(names[1..], ["k-em", "k-fl", "k-to"]);

    for key in ["torn", "flipped", "empty", "moved", &long] {
        assert_eq!(store.get(key).await, Ok(None), "{key}");
    }
    assert_eq!(store.damaged().len(), 5, "the moved one was noticed when it was read");
    let page = store.scan("", None, 100).await.unwrap();
    assert_eq!(page.items.iter().map(|item| &item.key).collect::<Vec<_>>(), ["good"]);
    assert_eq!(fs::read(entries.join("README")).unwrap(), b"hello");

    // A damaged key counts as absent: it can be created, and then it is intact.
    let swap = store.swap("torn", Expect::Absent, b"new", None).await.unwrap();
    assert!(matches!(swap, Swap::Done(_)));
    store.put(&long, b"new", None).await.unwrap();
    drop(store);
    let store = reopen(&scratch, &bounds, &clock).await;
    assert_eq!(&*store.get("torn").await.unwrap().unwrap().value, b"new");
    assert_eq!(&*store.get(&long).await.unwrap().unwrap().value, b"new");
}

#[tokio::test]
async fn versions_go_on_when_the_ledger_is_lost() {
    let (scratch, clock) = (Scratch::new(), Manual::default());
    let store = reopen(&scratch, &Bounds::default(), &clock).await;
    let mut last = store.put("a", b"1", None).await.unwrap();
    for round in 0..3 {
        last = last.max(store.put("b", b"1", None).await.unwrap());
        let ledger = scratch.path().join("ledger");
        match round {
            0 => fs::remove_file(ledger).unwrap(),
            1 => fs::write(ledger, "scribble").unwrap(),
            _ => fs::write(ledger, "").unwrap(),
        }
        let store = reopen(&scratch, &Bounds::default(), &clock).await;
        let next = store.put("c", b"1", None).await.unwrap();
        assert!(next > last, "{next:?} after {last:?}");
        last = next;
    }
}

#[tokio::test]
async fn a_crash_that_counted_too_much_is_forgiven_at_the_next_opening() {
    let (scratch, clock) = (Scratch::new(), Manual::default());
    let bounds = Bounds::default().entries(2);
    let store = reopen(&scratch, &bounds, &clock).await;
    store.put("a", b"1", None).await.unwrap();
    store.put("b", b"1", None).await.unwrap();
    drop(store);
    // As if a process had counted an entry and died before writing it.
    fs::remove_file(scratch.path().join("entries/k-b")).unwrap();
    let store = reopen(&scratch, &bounds, &clock).await;
    store.put("c", b"1", None).await.expect("one entry is gone");

    // A store that stays open recounts as well before it refuses.
    fs::remove_file(scratch.path().join("entries/k-c")).unwrap();
    clock.advance(Duration::from_secs(1));
    store.put("d", b"1", None).await.expect("one entry is gone");
    assert!(matches!(store.put("e", b"1", None).await, Err(StoreError::Full { .. })));
}

#[tokio::test]
async fn a_folder_of_a_later_version_is_not_touched() {
    let (scratch, clock) = (Scratch::new(), Manual::default());
    drop(reopen(&scratch, &Bounds::default(), &clock).await);
    fs::write(scratch.path().join("format"), "trunkline-store 2\n").unwrap();
    let error = Folder::open(scratch.path()).await.expect_err("it is not ours");
    let text = error.to_string();
    assert!(text.contains("names a format that this version does not know"), "{text}");

    // A partial file left by a crash is replaced.
    fs::write(scratch.path().join("format"), "trunk").unwrap();
    Folder::open(scratch.path()).await.expect("it opens");
    assert_eq!(fs::read(scratch.path().join("format")).unwrap(), b"trunkline-store 1\n");
}

#[tokio::test]
async fn a_folder_that_went_away_is_an_error_and_not_an_answer() {
    let (scratch, clock) = (Scratch::new(), Manual::default());
    let store = reopen(&scratch, &Bounds::default(), &clock).await;
    store.put("a", b"1", None).await.unwrap();
    fs::remove_dir_all(scratch.path()).unwrap();
    assert!(matches!(store.put("a", b"2", None).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.get("a").await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.scan("", None, 1).await, Err(StoreError::Unavailable(_))));
}

#[test]
fn without_a_runtime_a_folder_says_so() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (scratch, clock) = (Scratch::new(), Manual::default());
    let store = runtime.block_on(reopen(&scratch, &Bounds::default(), &clock));
    let mut get = store.get("a");
    let waker = std::task::Waker::noop();
    let polled = get.as_mut().poll(&mut std::task::Context::from_waker(waker));
    let std::task::Poll::Ready(Err(StoreError::Unavailable(text))) = polled else {
        panic!("expected an error, got {polled:?}");
    };
    assert_eq!(text, "A folder store needs a tokio runtime; call it from within one.");
}

#[cfg(unix)]
#[tokio::test]
async fn other_users_may_not_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let (scratch, clock) = (Scratch::new(), Manual::default());
    let inside = scratch.path().join("a/b");
    // A part of it existed with looser permissions.
    fs::create_dir_all(inside.join("entries")).unwrap();
    fs::set_permissions(inside.join("entries"), fs::Permissions::from_mode(0o755)).unwrap();
    let store = Folder::open_with(&inside, Bounds::default(), clock).await.unwrap();
    store.put("a", b"1", None).await.unwrap();
    store.lease("a", Duration::from_secs(9)).await.unwrap();

    let mut seen = 0;
    for folder in ["entries", "leases", "temp", "locks"] {
        let folder = inside.join(folder);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        for file in fs::read_dir(&folder).unwrap().flatten() {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", file.path().display());
            seen += 1;
        }
    }
    assert_eq!(seen, 2 + 16, "an entry, a lease and the locks");
    for file in ["ledger", "format"] {
        let mode = fs::metadata(inside.join(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file}");
    }
}
