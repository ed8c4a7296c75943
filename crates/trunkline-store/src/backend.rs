//! What both backends do alike: an operation → one change of one key.

use std::sync::Arc;
use std::time::Duration;

use crate::bounds::check_ttl;
use crate::channels::Channels;
use crate::decide::{self, Change, Held, Space, Taken};
use crate::{
    Bounds, Bucket, Capabilities, Cursor, Entry, Expect, Lease, Listener, Page, Pending, Store,
    StoreError, Swap, Ttl, Version,
};

/// What a backend answers.
pub(crate) type Answer<T> = Result<T, StoreError>;

/// Where entries and leases lie. The operations of a [`Store`] are made of these.
pub(crate) trait Backend: Send + Sync + 'static {
    fn bounds(&self) -> &Bounds;

    fn channels(&self) -> &Channels;

    fn reach(&self) -> Capabilities;

    /// What is live under `key`.
    fn read(&self, key: &str) -> impl Future<Output = Answer<Option<Entry>>> + Send;

    /// Applies what `decide` returns for the key in its space, and returns its answer and the number written.
    ///
    /// `decide` may be asked twice, because room was made in between.
    fn change<T: Send + 'static>(
        &self,
        at: (Space, &str),
        decide: impl Fn(Option<&Held>, Duration) -> Result<Change<T>, StoreError> + Send + 'static,
    ) -> impl Future<Output = Answer<(T, u64)>> + Send;

    fn page(
        &self,
        prefix: &str,
        after: Cursor<'_>,
        limit: usize,
    ) -> impl Future<Output = Answer<Page>> + Send;
}

impl<B: Backend> Store for B {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        Box::pin(self.read(key))
    }

    fn put<'a>(&'a self, key: &'a str, value: &'a [u8], ttl: Ttl) -> Pending<'a, Version> {
        Box::pin(async move {
            let value = checked(self, value, ttl)?;
            let decide = move |_: Option<&_>, now| Ok(decide::put(value.clone(), ttl, now));
            let (_, number) = self.change((Space::Entries, key), decide).await?;
            Ok(Version::new(number))
        })
    }

    fn swap<'a>(&'a self, key: &'a str, old: Expect, new: &'a [u8], ttl: Ttl) -> Pending<'a, Swap> {
        Box::pin(async move {
            let new = checked(self, new, ttl)?;
            let decide =
                move |held: Option<&_>, now| Ok(decide::swap(held, old, new.clone(), ttl, now));
            let (conflict, number) = self.change((Space::Entries, key), decide).await?;
            Ok(conflict.map_or(Swap::Done(Version::new(number)), Swap::Conflict))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> Pending<'a, bool> {
        Box::pin(async move {
            Ok(self.change((Space::Entries, key), |held, _| Ok(decide::delete(held))).await?.0)
        })
    }

    fn count<'a>(&'a self, key: &'a str, by: i64, ttl: Ttl) -> Pending<'a, i64> {
        Box::pin(async move {
            check_ttl(ttl)?;
            let decide = move |held: Option<&_>, now| decide::count(held, by, ttl, now);
            Ok(self.change((Space::Entries, key), decide).await?.0)
        })
    }

    fn take<'a>(&'a self, key: &'a str, buckets: &'a [Bucket]) -> Pending<'a, Taken> {
        Box::pin(async move {
            let buckets = buckets.to_vec();
            let decide = move |held: Option<&_>, now| decide::take(held, &buckets, now);
            Ok(self.change((Space::Entries, key), decide).await?.0)
        })
    }

    fn lease<'a>(&'a self, name: &'a str, ttl: Duration) -> Pending<'a, Option<Lease>> {
        Box::pin(async move {
            check_ttl(Some(ttl))?;
            let decide = move |held: Option<&_>, now| Ok(decide::lease(held, ttl, now));
            let (is_taken, fence) = self.change((Space::Leases, name), decide).await?;
            Ok(is_taken.then(|| Lease::new(name, fence)))
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ttl: Duration) -> Pending<'a, bool> {
        Box::pin(async move {
            check_ttl(Some(ttl))?;
            let fence = lease.fence();
            let decide = move |held: Option<&_>, now| Ok(decide::renew(held, fence, ttl, now));
            Ok(self.change((Space::Leases, lease.name()), decide).await?.0)
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> Pending<'a, bool> {
        Box::pin(async move {
            let fence = lease.fence();
            let decide = move |held: Option<&_>, _| Ok(decide::release(held, fence));
            Ok(self.change((Space::Leases, lease.name()), decide).await?.0)
        })
    }

    fn scan<'a>(&'a self, prefix: &'a str, after: Cursor<'a>, limit: usize) -> Pending<'a, Page> {
        Box::pin(self.page(prefix, after, limit))
    }

    fn publish<'a>(&'a self, channel: &'a str, message: &'a [u8]) -> Pending<'a, ()> {
        Box::pin(async move { self.channels().publish(channel, message, self.bounds()) })
    }

    fn listen<'a>(&'a self, channel: &'a str) -> Pending<'a, Listener> {
        Box::pin(async move { self.channels().listen(channel, self.bounds()) })
    }

    fn capabilities(&self) -> Capabilities {
        self.reach()
    }
}

fn checked(backend: &impl Backend, value: &[u8], ttl: Ttl) -> Result<Arc<[u8]>, StoreError> {
    check_ttl(ttl)?;
    backend.bounds().check_value(value)?;
    Ok(value.into())
}
