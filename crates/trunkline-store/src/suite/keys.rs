//! Promises about keys.

use super::{Kept, Subject, Wrong, bytes, holds, same, value};
use crate::{Expect, Lease, StoreError};

pub(super) async fn empty_and_too_long_keys_are_refused_everywhere(on: Subject) -> Kept {
    let (store, most) = (&on.store, on.bounds.key);
    let (second, long) = (on.units(1), "k".repeat(most + 1));
    for key in ["", &long] {
        let refused = |what: &str, error: Option<StoreError>| {
            let expected = StoreError::BadKey { length: key.len(), most };
            same(&format!("{what} of {} bytes", key.len()), error, Some(expected))
        };
        refused("get", store.get(key).await.err())?;
        refused("put", store.put(key, b"", None).await.err())?;
        refused("swap", store.swap(key, Expect::Absent, b"", None).await.err())?;
        refused("delete", store.delete(key).await.err())?;
        refused("count", store.count(key, 1, None).await.err())?;
        refused("lease", store.lease(key, second).await.err())?;
        refused("renew", store.renew(&Lease::new(key, 1), second).await.err())?;
        refused("release", store.release(&Lease::new(key, 1)).await.err())?;
        refused("publish", store.publish(key, b"").await.err())?;
        refused("listen", store.listen(key).await.err())?;
    }
    same("entries", store.scan("", None, 10).await?.items.len(), 0)
}

pub(super) async fn the_longest_key_works(on: Subject) -> Kept {
    // The same but for the last byte, and once with characters of more bytes.
    let base = "k".repeat(on.bounds.key - 1);
    let wide = "é".repeat(on.bounds.key / 2);
    let keys = [format!("{base}1"), format!("{base}2"), format!("{base}/"), wide];
    for key in &keys {
        on.store.put(key, key.as_bytes(), None).await?;
    }
    for key in &keys {
        same("get", value(&*on.store, key).await?, bytes(key))?;
    }
    let page = on.store.scan(&base, None, 10).await?;
    let found: Vec<_> = page.items.iter().map(|item| &item.key).collect();
    same("scan", found, vec![&keys[2], &keys[0], &keys[1]])?;
    same("delete", on.store.delete(&keys[0]).await?, true)?;
    same("its neighbour", value(&*on.store, &keys[1]).await?, bytes(&keys[1]))?;
    let lease = on.store.lease(&keys[0], on.units(5)).await?;
    holds("a lease with a long name", lease.is_some())
}

pub(super) async fn keys_that_look_alike_are_apart(on: Subject) -> Kept {
    for key in ALIKE {
        on.store.put(key, key.as_bytes(), None).await?;
    }
    for key in ALIKE {
        same(&format!("get {key:?}"), value(&*on.store, key).await?, bytes(key))?;
    }
    let page = on.store.scan("", None, ALIKE.len() + 1).await?;
    let mut expected = ALIKE.to_vec();
    expected.sort_unstable();
    let found: Vec<_> = page.items.iter().map(|item| item.key.as_str()).collect();
    same("scan", found, expected)?;
    for (done, key) in ALIKE.iter().enumerate() {
        same(&format!("delete {key:?}"), on.store.delete(key).await?, true)?;
        let left = on.store.scan("", None, ALIKE.len()).await?.items.len();
        same(&format!("left after {key:?}"), left, ALIKE.len() - done - 1)?;
    }
    Ok(())
}

pub(super) async fn entries_and_leases_are_apart(on: Subject) -> Kept {
    on.store.put("a", b"1", None).await?;
    let lease = on.store.lease("a", on.units(5)).await?;
    let lease = lease.ok_or_else(|| Wrong("An entry stands in the way of a lease.".to_owned()))?;
    let mut listener = on.store.listen("a").await?;
    same("the entry", value(&*on.store, "a").await?, bytes("1"))?;
    same("entries", on.store.scan("", None, 10).await?.items.len(), 1)?;
    same("delete", on.store.delete("a").await?, true)?;
    same("renew after the delete", on.store.renew(&lease, on.units(5)).await?, true)?;
    same("what was heard", listener.ready(), None)?;
    on.store.lease("b", on.units(5)).await?;
    same("an entry from a lease", value(&*on.store, "b").await?, None)
}

const ALIKE: &[&str] = &[
    "a",
    "A",
    "aa",
    "a ",
    " a",
    "a/",
    "/a",
    "a/b",
    "a//b",
    "a\\b",
    "a.b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a%2fb",
    "%61",
    "a\0",
    "a\n",
    "a\r\n",
    "ä",
    "a\u{308}",
    "Ä",
    "ß",
    "ss",
    "日本",
    "日本語",
    "𝒳",
    "con",
    "CON",
    "nul",
    "*",
    "?",
    "~",
    "-",
    "--",
    "k-a",
    "h-a",
    "a:b",
    "a\tb",
    "\u{feff}a",
    "\u{10ffff}",
];
