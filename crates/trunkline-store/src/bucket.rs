//! Token buckets: so many at once, and one more each interval.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// A token bucket of [`Store::take`](crate::Store::take).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its name under the key, without spaces.
    pub name: String,
    /// The time in which one token returns.
    pub interval: Duration,
    /// How many tokens it holds; at least one.
    pub burst: u32,
}

impl Bucket {
    /// A bucket of `burst` tokens, of which one returns each `interval`.
    pub fn new(name: impl Into<String>, interval: Duration, burst: u32) -> Self {
        Self { name: name.into(), interval, burst }
    }

    /// The interval, and how far ahead the time of a full bucket may lie while it still holds a token; in
    /// microseconds.
    pub(crate) fn micros(&self) -> (u64, u64) {
        let interval = u64::try_from(self.interval.as_micros()).unwrap_or(u64::MAX).min(LONGEST);
        (interval, interval.saturating_mul(u64::from(self.burst.max(1) - 1)).min(LONGEST))
    }
}

/// When each bucket of a key will be full, in microseconds of the store's clock.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels(BTreeMap<String, u64>);

impl Levels {
    /// Reads what [`write`](Self::write) wrote; `None` if it is something else.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let line = |line: &str| {
            let (name, at) = line.split_once(' ')?;
            Some((name.to_owned(), at.parse().ok()?))
        };
        str::from_utf8(value).ok()?.lines().map(line).collect::<Option<_>>().map(Self)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = String::new();
        for (name, at) in &self.0 {
            let _ = writeln!(out, "{name} {at}");
        }
        out.into_bytes()
    }

    /// Takes one token of each bucket, or says how long to wait. Full buckets are forgotten.
    pub(crate) fn take(&mut self, buckets: &[Bucket], now: u64) -> Result<(), Duration> {
        self.0.retain(|_, at| *at > now);
        let full_at = |levels: &Self, bucket: &Bucket| {
            let (interval, slack) = bucket.micros();
            // After a clock was set back, no more than an empty bucket is owed.
            let at = levels.0.get(&bucket.name).copied().unwrap_or(now);
            at.clamp(now, now.saturating_add(slack).saturating_add(interval))
        };
        let wait = |bucket: &Bucket| {
            let ahead = full_at(self, bucket) - now;
            ahead.saturating_sub(bucket.micros().1)
        };
        match buckets.iter().map(wait).max() {
            None | Some(0) => {}
            Some(wait) => return Err(Duration::from_micros(wait)),
        }
        for bucket in buckets {
            let at = full_at(self, bucket).saturating_add(bucket.micros().0);
            self.0.insert(bucket.name.clone(), at);
        }
        Ok(())
    }

    /// When the last bucket is full.
    pub(crate) fn last(&self) -> u64 {
        self.0.values().copied().max().unwrap_or_default()
    }
}

/// Ten years: longer than any rate makes sense for, and exact in a double.
const LONGEST: u64 = 10 * 365 * 86_400 * 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_makes_nobody_wait_for_long() {
        let bucket = [Bucket::new("a", Duration::from_micros(10), 2)];
        let mut levels = Levels::default();
        assert_eq!(levels.take(&bucket, 1_000), Ok(()));
        assert_eq!(levels.take(&bucket, 1_000), Ok(()));
        assert_eq!(levels.take(&bucket, 1_000), Err(Duration::from_micros(10)));
        assert_eq!(levels.take(&bucket, 100), Err(Duration::from_micros(10)));
        assert_eq!(Levels::read(&levels.write()), Some(levels));
    }
}
