//! Counters, gauges and histograms made of atomics.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// A value that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that goes up and down.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicUsize);

impl Gauge {
    pub(super) fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations in buckets.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// The count of each bucket, not cumulative; the last one is unbounded.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Histogram {
    pub(super) fn note(&self, took: Duration) {
        self.note_micros(took);
    }

    /// The same. Returns how many microseconds that is.
    #[inline]
    pub(super) fn note_micros(&self, took: Duration) -> u64 {
        let nanos = took.as_secs().saturating_mul(1_000_000_000);
        let nanos = nanos.saturating_add(u64::from(took.subsec_nanos()));
        let micros = nanos / 1_000;
        let place = BOUNDS.partition_point(|it| *it < micros);
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        micros
    }

    /// The cumulative counts of the buckets, and the total.
    pub(crate) fn counts(&self) -> ([u64; BOUNDS.len()], u64) {
        let mut sum = 0;
        let mut all = [0; BOUNDS.len()];
        for (count, bucket) in all.iter_mut().zip(&self.buckets) {
            sum += bucket.load(Ordering::Relaxed);
            *count = sum;
        }
        (all, sum + self.buckets[BOUNDS.len()].load(Ordering::Relaxed))
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.nanos.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A counter for each of a few static words.
#[derive(Debug, Default)]
pub(super) struct Words(RwLock<Vec<(&'static str, Arc<Counter>)>>);

impl Words {
    pub(super) fn of(&self, word: &'static str) -> Arc<Counter> {
        let find = |all: &[(&'static str, Arc<Counter>)], word: &str| {
            all.iter().find(|it| it.0 == word).map(|it| Arc::clone(&it.1))
        };
        if let Some(found) = find(&self.0.read().unwrap_or_else(PoisonError::into_inner), word) {
            return found;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let word = if all.len() < WORDS { word } else { OTHER };
        find(&all, word).unwrap_or_else(|| {
            let counter = Arc::new(Counter::default());
            all.push((word, Arc::clone(&counter)));
            counter
        })
    }

    pub(super) fn each(&self, mut tell: impl FnMut(&'static str, u64)) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|(word, counter)| tell(word, counter.get()));
    }
}

/// The label for everything beyond the bound.
pub(super) const OTHER: &str = "other";
/// The upper bounds of the buckets, in microseconds.
pub(crate) const BOUNDS: [u64; 16] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000, 30_000_000, 60_000_000,
];
const WORDS: usize = 48;
