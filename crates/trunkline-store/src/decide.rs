//! The state of a key and an operation → the new state and the answer. Both backends decide here and
//! only act themselves.

use std::sync::Arc;
use std::time::Duration;

use crate::bucket::Levels;
use crate::{Bucket, Entry, Expect, StoreError, Ttl, Version};

/// The two key spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    Entries,
    Leases,
}

/// The state of a key. The number is an entry's version or a lease's fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) value: Arc<[u8]>,
    pub(crate) number: u64,
    /// When it expires, by the store's clock.
    pub(crate) expires: Option<Duration>,
}

impl Held {
    pub(crate) fn is_live(&self, now: Duration) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    pub(crate) fn entry(&self) -> Entry {
        Entry { value: self.value.clone(), version: Version::new(self.number) }
    }
}

/// The change of a key, and the answer.
pub(crate) struct Change<T> {
    pub(crate) act: Act,
    pub(crate) answer: T,
}

/// The live state of a key, and the time → the change.
pub(crate) type Decide<'a, T> =
    dyn Fn(Option<&Held>, Duration) -> Result<Change<T>, StoreError> + 'a;

pub(crate) enum Act {
    Keep,
    Remove,
    /// Write this; without a number it gets a new one, greater than all before.
    Write {
        value: Arc<[u8]>,
        number: Option<u64>,
        expires: Option<Duration>,
    },
}

// Each of these takes the live state of the key, and the time.

pub(crate) fn put(value: Arc<[u8]>, ttl: Ttl, now: Duration) -> Change<()> {
    write(value, until(now, ttl), ())
}

/// Answers `None` if the value is to be written, else the current entry.
pub(crate) fn swap(
    held: Option<&Held>,
    old: Expect,
    new: Arc<[u8]>,
    ttl: Ttl,
    now: Duration,
) -> Change<Option<Option<Entry>>> {
    let is_expected = match (old, held) {
        (Expect::Absent, None) => true,
        (Expect::Version(version), Some(held)) => held.number == version.number(),
        _ => false,
    };
    if is_expected {
        write(new, until(now, ttl), None)
    } else {
        Change { act: Act::Keep, answer: Some(held.map(Held::entry)) }
    }
}

pub(crate) fn delete(held: Option<&Held>) -> Change<bool> {
    let act = if held.is_some() { Act::Remove } else { Act::Keep };
    Change { act, answer: held.is_some() }
}

pub(crate) fn count(
    held: Option<&Held>,
    by: i64,
    ttl: Ttl,
    now: Duration,
) -> Result<Change<i64>, StoreError> {
    let (number, expires) = match held {
        None => (0, until(now, ttl)),
        Some(held) => (parse(&held.value).ok_or(StoreError::NotANumber)?, held.expires),
    };
    let sum = number.checked_add(by).ok_or(StoreError::OutOfRange)?;
    Ok(write(sum.to_string().into_bytes().into(), expires, sum))
}

/// Whether a token was taken of each bucket, or how long to wait.
pub(crate) type Taken = Result<(), Duration>;

/// Answers how long to wait if a bucket is empty.
pub(crate) fn take(
    held: Option<&Held>,
    buckets: &[Bucket],
    now: Duration,
) -> Result<Change<Taken>, StoreError> {
    let levels = held.map(|held| Levels::read(&held.value).ok_or(StoreError::NotANumber));
    let mut levels = levels.transpose()?.unwrap_or_default();
    let micros = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    Ok(match levels.take(buckets, micros) {
        Err(wait) => Change { act: Act::Keep, answer: Err(wait) },
        Ok(()) => {
            let expires = Duration::from_micros(levels.last().max(micros + 1));
            write(levels.write().into(), Some(expires), Ok(()))
        }
    })
}

/// Answers whether the lease was taken.
pub(crate) fn lease(held: Option<&Held>, ttl: Duration, now: Duration) -> Change<bool> {
    match held {
        None => write(Arc::default(), until(now, Some(ttl)), true),
        Some(_) => Change { act: Act::Keep, answer: false },
    }
}

pub(crate) fn renew(held: Option<&Held>, fence: u64, ttl: Duration, now: Duration) -> Change<bool> {
    if held.is_some_and(|held| held.number == fence) {
        let expires = until(now, Some(ttl));
        let act = Act::Write { value: Arc::default(), number: Some(fence), expires };
        Change { act, answer: true }
    } else {
        Change { act: Act::Keep, answer: false }
    }
}

pub(crate) fn release(held: Option<&Held>, fence: u64) -> Change<bool> {
    delete(held.filter(|held| held.number == fence))
}

fn write<T>(value: Arc<[u8]>, expires: Option<Duration>, answer: T) -> Change<T> {
    Change { act: Act::Write { value, number: None, expires }, answer }
}

/// A time too far away to represent means never.
fn until(now: Duration, ttl: Ttl) -> Option<Duration> {
    now.checked_add(ttl?)
}

/// Accepts only what `count` writes: no sign for zero, no leading zeros, no spaces.
fn parse(value: &[u8]) -> Option<i64> {
    let text = str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
