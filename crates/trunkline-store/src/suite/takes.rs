//! Promises about token buckets.

use std::time::Duration;

use super::{Kept, Subject, holds, same};
use crate::{Bucket, StoreError};

pub(super) async fn a_bucket_gives_its_burst_and_then_its_rate(on: Subject) -> Kept {
    let buckets = [Bucket::new("a", on.units(10), 3)];
    for _ in 0..3 {
        same("of the burst", on.store.take("k", &buckets).await?, Ok(()))?;
    }
    let wait = on.store.take("k", &buckets).await?.err().unwrap_or_default();
    holds("a wait of at most one interval", wait > Duration::ZERO && wait <= on.units(10))?;
    same("another key", on.store.take("other", &buckets).await?, Ok(()))?;
    on.pass(11).await;
    same("an interval later", on.store.take("k", &buckets).await?, Ok(()))?;
    holds("and one only", on.store.take("k", &buckets).await?.is_err())?;
    on.pass(60).await;
    for _ in 0..3 {
        same("full again, and not fuller", on.store.take("k", &buckets).await?, Ok(()))?;
    }
    holds("not fuller", on.store.take("k", &buckets).await?.is_err())
}

pub(super) async fn of_several_buckets_all_or_none_give(on: Subject) -> Kept {
    let (wide, narrow) = (Bucket::new("w", on.units(50), 2), Bucket::new("n", on.units(90), 1));
    let both = [wide.clone(), narrow];
    same("both", on.store.take("k", &both).await?, Ok(()))?;
    let wait = on.store.take("k", &both).await?.err().unwrap_or_default();
    holds("the slower one says when", wait > on.units(50))?;
    let wide = [wide];
    same("the refusal cost the other nothing", on.store.take("k", &wide).await?, Ok(()))?;
    holds("which is empty now", on.store.take("k", &wide).await?.is_err())
}

pub(super) async fn many_takers_get_what_one_would_get(on: Subject) -> Kept {
    let interval = on.units(100_000);
    let taken = on.at_once(8, |store, _| async move {
        let buckets = [Bucket::new("a", interval, 20)];
        let mut taken = 0;
        for _ in 0..5 {
            taken += usize::from(store.take("k", &buckets).await?.is_ok());
        }
        Ok(taken)
    });
    same("all together", taken.await?.into_iter().sum::<usize>(), 20)
}

pub(super) async fn what_is_no_bucket_gives_nothing(on: Subject) -> Kept {
    on.store.put("k", b"red", None).await?;
    let taken = on.store.take("k", &[Bucket::new("a", on.units(1), 1)]).await;
    same("another value", taken, Err(StoreError::NotANumber))
}
