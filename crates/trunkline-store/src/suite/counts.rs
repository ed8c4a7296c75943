//! Promises about counters.

use super::{Kept, Subject, bytes, same, value};
use crate::StoreError;

pub(super) async fn counting_starts_at_zero_and_is_an_entry(on: Subject) -> Kept {
    same("the first", on.store.count("n", 5, None).await?, 5)?;
    same("less", on.store.count("n", -7, None).await?, -2)?;
    same("none", on.store.count("n", 0, None).await?, -2)?;
    same("as an entry", value(&*on.store, "n").await?, bytes("-2"))?;
    on.store.put("n", b"40", None).await?;
    same("from an entry", on.store.count("n", 2, None).await?, 42)?;
    same("deleted", on.store.delete("n").await?, true)?;
    same("anew", on.store.count("n", 1, None).await?, 1)
}

pub(super) async fn many_counts_at_once_are_all_counted(on: Subject) -> Kept {
    let counts = on.at_once(8, |store, _| async move {
        let mut seen = Vec::new();
        for _ in 0..10 {
            seen.push(store.count("n", 1, None).await?);
        }
        Ok(seen)
    });
    let mut seen = counts.await?.concat();
    seen.sort_unstable();
    same("what was returned", seen, (1..=80).collect::<Vec<i64>>())
}

pub(super) async fn a_count_keeps_the_time_of_the_first(on: Subject) -> Kept {
    on.store.count("n", 1, Some(on.units(10))).await?;
    on.pass(6).await;
    same("within the window", on.store.count("n", 1, Some(on.units(10))).await?, 2)?;
    on.pass(6).await;
    same("after it", on.store.count("n", 1, Some(on.units(10))).await?, 1)?;

    on.store.put("lasting", b"1", None).await?;
    on.store.count("lasting", 1, Some(on.units(2))).await?;
    on.pass(3).await;
    same("what was for ever", value(&*on.store, "lasting").await?, bytes("2"))
}

pub(super) async fn what_is_no_number_is_not_counted(on: Subject) -> Kept {
    for text in ["", "red", "1.5", " 1", "1 ", "+1", "007", "-0", "9223372036854775808"] {
        on.store.put("n", text.as_bytes(), None).await?;
        let counted = on.store.count("n", 1, None).await;
        same(&format!("{text:?}"), counted, Err(StoreError::NotANumber))?;
        same("the value", value(&*on.store, "n").await?, bytes(text))?;
    }
    on.store.put("n", &[0xff], None).await?;
    same("no text", on.store.count("n", 1, None).await, Err(StoreError::NotANumber))
}

pub(super) async fn a_sum_that_does_not_fit_changes_nothing(on: Subject) -> Kept {
    on.store.count("n", i64::MAX, None).await?;
    same("more", on.store.count("n", 1, None).await, Err(StoreError::OutOfRange))?;
    same("the number", on.store.count("n", 0, None).await?, i64::MAX)?;
    on.store.count("m", i64::MIN, None).await?;
    same("less", on.store.count("m", -1, None).await, Err(StoreError::OutOfRange))?;
    same("the other number", on.store.count("m", 0, None).await?, i64::MIN)
}
