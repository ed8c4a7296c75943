//! Promises about scans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Kept, Subject, Wrong, holds, same};
use crate::Store;

pub(super) async fn a_scan_is_in_the_order_of_bytes(on: Subject) -> Kept {
    let mut keys = vec!["b", "a", "a/2", "a/10", "a0", "B", "é", "z", "a/", "~", "日", "\u{1}"];
    for key in &keys {
        on.store.put(key, key.as_bytes(), None).await?;
    }
    keys.sort_unstable();
    same("all", all(&*on.store, "", 100).await?, keys)?;
    same("those with a/", all(&*on.store, "a/", 100).await?, vec!["a/", "a/10", "a/2"])?;
    same("those with x", all(&*on.store, "x", 100).await?.len(), 0)?;
    for item in on.store.scan("", None, 100).await?.items {
        same("a value", &*item.value, item.key.as_bytes())?;
        let entry = on.store.get(&item.key).await?;
        same("a version", entry.map(|entry| entry.version), Some(item.version))?;
    }
    Ok(())
}

pub(super) async fn pages_of_every_size_are_complete(on: Subject) -> Kept {
    let keys: Vec<_> = (0..12).map(|number| format!("item/{number:02}")).collect();
    for key in keys.iter().rev() {
        on.store.put(key, b"1", None).await?;
    }
    for beside in ["item", "item0", "itel/99", "iten"] {
        on.store.put(beside, b"1", None).await?;
    }
    // A page of zero would never end, so zero counts as one.
    for limit in 0..=14 {
        let page = on.store.scan("item/", None, limit).await?;
        holds("a page within its limit", page.items.len() <= limit.max(1))?;
        let found = all(&*on.store, "item/", limit).await?;
        same(&format!("in pages of {limit}"), found, keys.clone())?;
    }
    let most = on.store.scan("item/", None, usize::MAX).await?;
    same("as many as there are", most.items.len(), keys.len())?;
    same("after the last page", most.next, None)
}

pub(super) async fn a_prefix_has_no_special_characters(on: Subject) -> Kept {
    let prefixes =
        ["*", "?", "%", "_", "[a]", "a*", "a?", "\\", "a\\*", "^", "$", "{a,b}", "/", "..", "\n"];
    for prefix in prefixes {
        on.store.put(&format!("{prefix}:1"), b"", None).await?;
    }
    on.store.put("ab:1", b"", None).await?;
    for prefix in prefixes {
        let prefix = format!("{prefix}:");
        let found = all(&*on.store, &prefix, 100).await?;
        same(&format!("with {prefix:?}"), found, vec![format!("{prefix}1")])?;
    }
    Ok(())
}

pub(super) async fn a_scan_begins_after_any_text(on: Subject) -> Kept {
    for key in ["a/1", "a/3", "a/5", "b"] {
        on.store.put(key, b"", None).await?;
    }
    let cases: [(&str, &[&str]); 7] = [
        ("", &["a/1", "a/3", "a/5"]),
        ("a/1", &["a/3", "a/5"]),
        ("a/2", &["a/3", "a/5"]),
        ("a/11", &["a/3", "a/5"]),
        ("a/5", &[]),
        ("b", &[]),
        ("A", &["a/1", "a/3", "a/5"]),
    ];
    for (after, expected) in cases {
        let page = on.store.scan("a/", Some(after), 100).await?;
        let keys: Vec<_> = page.items.iter().map(|item| item.key.as_str()).collect();
        same(&format!("after {after:?}"), keys, expected.to_vec())?;
    }
    Ok(())
}

pub(super) async fn a_scan_leaves_out_what_expired(on: Subject) -> Kept {
    for number in 0..12 {
        let ttl = (number % 3 != 0).then(|| on.units(5));
        on.store.put(&format!("{number:02}"), b"", ttl).await?;
    }
    on.pass(6).await;
    for limit in [1, 2, 5, 100] {
        let found = all(&*on.store, "", limit).await?;
        same(&format!("in pages of {limit}"), found, vec!["00", "03", "06", "09"])?;
    }
    Ok(())
}

pub(super) async fn a_scan_sees_what_stays_exactly_once(on: Subject) -> Kept {
    let stay: Vec<_> = (0..20).map(|number| format!("s/{number:02}")).collect();
    for key in &stay {
        on.store.put(key, b"0", None).await?;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let work = |store: Arc<dyn Store>, task: usize| {
        let (stay, is_over) = (stay.clone(), is_over.clone());
        async move {
            if task == 0 {
                for _ in 0..5 {
                    let mut found = all(&*store, "s/", 3).await?;
                    found.retain(|key| !key.contains('-'));
                    same("what stays", found, stay.clone())?;
                }
                is_over.store(true, Ordering::Relaxed);
            }
            // Concurrent tasks create, remove and replace keys, between the stable ones and on them.
            for round in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let key = format!("s/{:02}-{task}", round % 20);
                store.put(&key, b"1", None).await?;
                store.put(&stay[round % 20], b"2", None).await?;
                store.delete(&key).await?;
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    };
    let done = on.at_once(3, work).await;
    is_over.store(true, Ordering::Relaxed);
    done.map(drop)
}

/// Every key with `prefix`, page by page.
async fn all(store: &dyn Store, prefix: &str, limit: usize) -> Result<Vec<String>, Wrong> {
    let (mut keys, mut after) = (Vec::new(), None);
    for _ in 0..10_000 {
        let page = store.scan(prefix, after.as_deref(), limit).await?;
        keys.extend(page.items.into_iter().map(|item| item.key));
        if page.next.is_none() {
            return Ok(keys);
        }
        holds("a page goes on where it says", page.next > after)?;
        after = page.next;
    }
    Err(Wrong("The scan never ended.".to_owned()))
}
