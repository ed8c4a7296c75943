//! Promises about swaps.

use super::{Kept, Subject, Wrong, bytes, holds, same, value};
use crate::{Expect, Swap, Version};

pub(super) async fn a_creation_happens_only_where_nothing_is(on: Subject) -> Kept {
    let Swap::Done(version) = on.store.swap("a", Expect::Absent, b"1", None).await? else {
        return Err(Wrong("The first creation was refused.".to_owned()));
    };
    let Swap::Conflict(Some(there)) = on.store.swap("a", Expect::Absent, b"2", None).await? else {
        return Err(Wrong("The second creation was not refused with what is there.".to_owned()));
    };
    same("the version that is there", there.version, version)?;
    same("the value that is there", &*there.value, b"1")?;
    same("the value", value(&*on.store, "a").await?, bytes("1"))
}

pub(super) async fn a_swap_needs_the_version_it_expects(on: Subject) -> Kept {
    let first = on.store.put("a", b"1", None).await?;
    let second = on.store.swap("a", Expect::Version(first), b"2", None).await?;
    let second = second.version().ok_or_else(|| Wrong("A right swap was refused.".to_owned()))?;
    holds("a swap makes a new version", second != first)?;

    let late = on.store.swap("a", Expect::Version(first), b"3", None).await?;
    let there = on.store.get("a").await?;
    same("a late swap", late, Swap::Conflict(there.clone()))?;
    same("what is there", there.map(|entry| entry.version), Some(second))?;

    let absent = on.store.swap("b", Expect::Version(first), b"1", None).await?;
    same("a swap of nothing", absent, Swap::Conflict(None))?;
    same("what it wrote", value(&*on.store, "b").await?, None)?;

    let never = Version::new(u64::MAX);
    let swap = on.store.swap("a", Expect::Version(never), b"4", None).await?;
    same("a version that never was", swap.version(), None)
}

pub(super) async fn a_version_never_comes_back(on: Subject) -> Kept {
    let first = on.store.put("a", b"1", None).await?;
    on.store.delete("a").await?;
    on.store.put("a", b"1", None).await?;
    let swap = on.store.swap("a", Expect::Version(first), b"2", None).await?;
    same("after a delete", swap.version(), None)?;

    let second = on.store.put("b", b"1", Some(on.units(5))).await?;
    on.pass(6).await;
    on.store.put("b", b"1", None).await?;
    let swap = on.store.swap("b", Expect::Version(second), b"2", None).await?;
    same("after its time was over", swap.version(), None)
}

pub(super) async fn a_swap_sets_the_time(on: Subject) -> Kept {
    let short = on.store.put("short", b"1", None).await?;
    on.store.swap("short", Expect::Version(short), b"2", Some(on.units(5))).await?;
    let long = on.store.put("long", b"1", Some(on.units(5))).await?;
    on.store.swap("long", Expect::Version(long), b"2", None).await?;
    // A failed swap changes nothing, the expiry included.
    let kept = on.store.put("kept", b"1", Some(on.units(5))).await?;
    on.store.swap("kept", Expect::Absent, b"2", None).await?;
    holds("versions differ", kept != long)?;
    on.pass(6).await;
    same("with a time", value(&*on.store, "short").await?, None)?;
    same("without", value(&*on.store, "long").await?, bytes("2"))?;
    same("after a conflict", value(&*on.store, "kept").await?, None)
}

pub(super) async fn one_of_many_creators_wins(on: Subject) -> Kept {
    for round in 0..5 {
        let key = format!("round/{round}");
        let swaps = on.at_once(16, |store, task| {
            let key = key.clone();
            async move {
                let mine = task.to_string();
                let swap = store.swap(&key, Expect::Absent, mine.as_bytes(), None).await?;
                Ok((mine, swap))
            }
        });
        let swaps = swaps.await?;
        let winners: Vec<_> =
            swaps.iter().filter(|(_, swap)| matches!(swap, Swap::Done(_))).collect();
        same("winners", winners.len(), 1)?;
        let (winner, _) = winners[0];
        same("the value", value(&*on.store, &key).await?, bytes(winner))?;
        for (_, swap) in &swaps {
            if let Swap::Conflict(there) = swap {
                let there = there.as_ref().map(|entry| entry.value.to_vec());
                same("what the losers were told", there, bytes(winner))?;
            }
        }
    }
    Ok(())
}

pub(super) async fn racing_swaps_lose_nothing(on: Subject) -> Kept {
    on.store.put("sum", b"0", None).await?;
    let add = |store: std::sync::Arc<dyn crate::Store>, _| async move {
        for _ in 0..10 {
            let mut now = store.get("sum").await?;
            loop {
                let entry = now.ok_or_else(|| Wrong("The entry went away.".to_owned()))?;
                let sum: u64 = String::from_utf8_lossy(&entry.value).parse().unwrap_or(u64::MAX);
                let next = sum.wrapping_add(1).to_string();
                let expect = Expect::Version(entry.version);
                match store.swap("sum", expect, next.as_bytes(), None).await? {
                    Swap::Done(_) => break,
                    Swap::Conflict(there) => now = there,
                }
            }
        }
        Ok(())
    };
    on.at_once(8, add).await?;
    same("the sum", value(&*on.store, "sum").await?, bytes("80"))
}
