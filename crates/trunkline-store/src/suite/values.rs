//! Promises about entries: put, get, delete and time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Kept, Subject, bytes, holds, same, value};
use crate::{Expect, StoreError, Swap};

pub(super) async fn an_absent_key_is_none(on: Subject) -> Kept {
    same("get", on.store.get("nothing").await?, None)?;
    same("scan", on.store.scan("", None, 10).await?.items.len(), 0)
}

pub(super) async fn what_was_put_comes_back(on: Subject) -> Kept {
    let all: Vec<u8> = (0..=255).collect();
    for (key, bytes) in [("text", b"red".as_slice()), ("empty", b""), ("all", &all)] {
        let version = on.store.put(key, bytes, None).await?;
        let Some(entry) = on.store.get(key).await? else {
            return same(key, None, Some(bytes));
        };
        same(key, &*entry.value, bytes)?;
        same("the version that was got", entry.version, version)?;
    }
    Ok(())
}

pub(super) async fn a_put_replaces_value_and_time(on: Subject) -> Kept {
    on.store.put("longer", b"1", Some(on.units(10))).await?;
    on.store.put("longer", b"2", None).await?;
    on.store.put("shorter", b"1", None).await?;
    on.store.put("shorter", b"2", Some(on.units(10))).await?;
    same("the second value", value(&*on.store, "longer").await?, bytes("2"))?;
    on.pass(11).await;
    same("without a time", value(&*on.store, "longer").await?, bytes("2"))?;
    same("with a time", value(&*on.store, "shorter").await?, None)
}

pub(super) async fn every_write_has_a_new_version(on: Subject) -> Kept {
    let mut versions = BTreeSet::new();
    for _ in 0..5 {
        versions.insert(on.store.put("a", b"same", None).await?);
        versions.insert(on.store.put("b", b"same", None).await?);
        let swap = on.store.swap("c", Expect::Absent, b"same", None).await?;
        versions.extend(swap.version());
        on.store.count("d", 1, None).await?;
        versions.extend(on.store.get("d").await?.map(|entry| entry.version));
        for key in ["a", "c"] {
            on.store.delete(key).await?;
        }
    }
    same("different versions of 20 writes", versions.len(), 20)
}

pub(super) async fn an_entry_lives_until_its_time_is_over(on: Subject) -> Kept {
    for key in ["a", "b", "c", "d"] {
        on.store.put(key, b"1", Some(on.units(10))).await?;
    }
    on.pass(8).await;
    same("shortly before", value(&*on.store, "a").await?, bytes("1"))?;
    on.pass(3).await;
    same("get", value(&*on.store, "a").await?, None)?;
    same("delete", on.store.delete("b").await?, false)?;
    let swap = on.store.swap("c", Expect::Absent, b"2", None).await?;
    holds("creation where something expired", matches!(swap, Swap::Done(_)))?;
    same("count", on.store.count("d", 7, None).await?, 7)
}

pub(super) async fn a_time_of_zero_is_refused(on: Subject) -> Kept {
    let (store, zero) = (&on.store, Some(Duration::ZERO));
    same("put", store.put("a", b"", zero).await, Err(StoreError::ZeroTtl))?;
    same("count", store.count("a", 1, zero).await, Err(StoreError::ZeroTtl))?;
    same("lease", store.lease("a", Duration::ZERO).await, Err(StoreError::ZeroTtl))?;
    let swap = store.swap("a", Expect::Absent, b"", zero).await;
    same("swap", swap, Err(StoreError::ZeroTtl))?;
    same("what was written", value(&**store, "a").await?, None)
}

pub(super) async fn a_time_beyond_reckoning_is_for_ever(on: Subject) -> Kept {
    on.store.put("a", b"1", Some(Duration::MAX)).await?;
    on.store.put("b", b"1", Some(Duration::from_secs(u64::MAX / 2))).await?;
    on.pass(50).await;
    same("the longest time", value(&*on.store, "a").await?, bytes("1"))?;
    same("a very long time", value(&*on.store, "b").await?, bytes("1"))
}

pub(super) async fn values_up_to_the_bound_are_kept_and_larger_refused(on: Subject) -> Kept {
    let most = on.bounds.value;
    let (fits, large) = (vec![7; most], vec![8; most + 1]);
    on.store.put("a", &fits, None).await?;
    let refusal = StoreError::TooLarge { size: most + 1, most };
    same("put", on.store.put("a", &large, None).await, Err(refusal.clone()))?;
    let swap = on.store.swap("b", Expect::Absent, &large, None).await;
    same("swap", swap, Err(refusal))?;
    holds("the value before is kept", value(&*on.store, "a").await? == Some(fits))?;
    same("the swap", value(&*on.store, "b").await?, None)
}

pub(super) async fn a_delete_is_true_once(on: Subject) -> Kept {
    same("of nothing", on.store.delete("a").await?, false)?;
    on.store.put("a", b"1", None).await?;
    on.store.put("ab", b"2", None).await?;
    same("of something", on.store.delete("a").await?, true)?;
    same("again", on.store.delete("a").await?, false)?;
    same("the entry", value(&*on.store, "a").await?, None)?;
    same("its neighbour", value(&*on.store, "ab").await?, bytes("2"))
}

pub(super) async fn one_of_many_deleters_wins(on: Subject) -> Kept {
    for round in 0..5 {
        on.store.put("ticket", b"", None).await?;
        let deleted =
            on.at_once(16, |store, _| async move { Ok(store.delete("ticket").await?) }).await?;
        let winners = deleted.into_iter().filter(|is_winner| *is_winner).count();
        same(&format!("winners in round {round}"), winners, 1)?;
    }
    Ok(())
}
