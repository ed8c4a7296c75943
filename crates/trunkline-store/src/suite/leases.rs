//! Promises about leases.

use super::{Kept, Subject, Wrong, holds, same};
use crate::Lease;

pub(super) async fn a_lease_is_held_by_one(on: Subject) -> Kept {
    let lease = take(&on, "a").await?;
    same("its name", lease.name(), "a")?;
    same("a second holder", on.store.lease("a", on.units(10)).await?, None)?;
    take(&on, "b").await?;
    same("release", on.store.release(&lease).await?, true)?;
    same("a second release", on.store.release(&lease).await?, false)?;
    take(&on, "a").await?;
    Ok(())
}

pub(super) async fn a_lease_ends_by_itself(on: Subject) -> Kept {
    let lease = take(&on, "a").await?;
    on.pass(8).await;
    same("shortly before", on.store.lease("a", on.units(10)).await?, None)?;
    on.pass(3).await;
    same("renew", on.store.renew(&lease, on.units(10)).await?, false)?;
    same("release", on.store.release(&lease).await?, false)?;
    take(&on, "a").await?;
    Ok(())
}

pub(super) async fn a_renewed_lease_lives_on(on: Subject) -> Kept {
    let lease = take(&on, "a").await?;
    for round in 0..3 {
        on.pass(7).await;
        let renewed = on.store.renew(&lease, on.units(10)).await?;
        same(&format!("renewal {round}"), renewed, true)?;
        same("another holder", on.store.lease("a", on.units(10)).await?, None)?;
    }
    // A renewal may also shorten it.
    same("to a shorter time", on.store.renew(&lease, on.units(2)).await?, true)?;
    on.pass(3).await;
    take(&on, "a").await?;
    Ok(())
}

pub(super) async fn an_old_holder_can_neither_renew_nor_release(on: Subject) -> Kept {
    let old = take(&on, "a").await?;
    on.pass(11).await;
    let new = take(&on, "a").await?;
    same("renew by the old", on.store.renew(&old, on.units(10)).await?, false)?;
    same("release by the old", on.store.release(&old).await?, false)?;
    same("renew by the new", on.store.renew(&new, on.units(10)).await?, true)?;
    let stranger = Lease::new("a", new.fence() + 1);
    same("release by a stranger", on.store.release(&stranger).await?, false)?;
    same("release by the new", on.store.release(&new).await?, true)
}

pub(super) async fn fences_grow(on: Subject) -> Kept {
    let mut last = 0;
    for round in 0..10 {
        let lease = take(&on, "a").await?;
        holds("a later fence is greater", round == 0 || lease.fence() > last)?;
        last = lease.fence();
        // Alternately it is released or expires, while other names are in use too.
        if round % 2 == 0 {
            on.store.release(&lease).await?;
        } else {
            on.pass(11).await;
        }
        on.store.put("a", b"", None).await?;
        take(&on, &format!("other/{round}")).await?;
    }
    Ok(())
}

pub(super) async fn one_of_many_takers_wins(on: Subject) -> Kept {
    let long = on.units(10);
    let mut fences = Vec::new();
    for _ in 0..5 {
        let taken =
            on.at_once(16, |store, _| async move { Ok(store.lease("a", long).await?) }).await?;
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        same("holders", taken.len(), 1)?;
        fences.push(taken[0].fence());
        on.store.release(&taken[0]).await?;
    }
    holds("fences grow", fences.is_sorted_by(|one, next| one < next))
}

/// Takes a lease that must be free, for ten units.
async fn take(on: &Subject, name: &str) -> Result<Lease, Wrong> {
    let lease = on.store.lease(name, on.units(10)).await?;
    lease.ok_or_else(|| Wrong(format!("The lease `{name}` is free and was not given.")))
}
