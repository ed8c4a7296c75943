//! How many calls a server gets and how long they take, in steps of ten seconds over a quarter of an hour.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The last steps of one server.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// The newest step, and when it ends; `None` before the first call.
    newest: Step,
    end: Option<Instant>,
    /// Those before it, the oldest first; steps without calls between others are there, too.
    older: VecDeque<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    count: u32,
    failed: u32,
    /// Calls by duration: four buckets for each doubling.
    buckets: [u32; BUCKETS],
}

impl Default for Step {
    fn default() -> Self {
        Self { count: 0, failed: 0, buckets: [0; BUCKETS] }
    }
}

impl Rates {
    /// A call ended at this moment, after so many microseconds.
    #[inline]
    pub(crate) fn note(&mut self, at: Instant, micros: u64, has_failed: bool) {
        if self.end.is_none_or(|end| at >= end) {
            self.advance(at);
        }
        let step = &mut self.newest;
        step.count += 1;
        step.failed += u32::from(has_failed);
        step.buckets[bucket(micros)] += 1;
    }

    /// The percentiles of all steps up to now, and each step, oldest first.
    pub(crate) fn show(&mut self, now: Instant) -> Value {
        if self.end.is_some_and(|end| now >= end) {
            self.advance(now);
        }
        let (mut all, empty) = (Step::default(), Step::default());
        let known = self.older.iter().chain([&self.newest]);
        for step in known.clone() {
            all.count += step.count;
            all.failed += step.failed;
            all.buckets.iter_mut().zip(step.buckets).for_each(|(sum, it)| *sum += it);
        }
        let missing = STEPS - self.older.len() - 1;
        let steps = std::iter::repeat_n(&empty, missing).chain(known).map(Step::show);
        let mut told = all.show();
        told["count"] = json!(all.count);
        told["failed"] = json!(all.failed);
        told["steps"] = steps.collect();
        told
    }

    /// Begins the step of this moment, which is not before the end of the newest.
    #[cold]
    fn advance(&mut self, at: Instant) {
        let Some(end) = self.end else {
            self.end = Some(at + Duration::from_secs(STEP));
            return;
        };
        let more = at.saturating_duration_since(end).as_secs() / STEP + 1;
        self.end = Some(end + Duration::from_secs(more * STEP));
        for _ in 0..more.min(STEPS as u64) {
            self.older.push_back(std::mem::take(&mut self.newest));
            if self.older.len() >= STEPS {
                self.older.pop_front();
            }
        }
    }
}

impl Step {
    fn show(&self) -> Value {
        let rate = |count: u32| (f64::from(count) / STEP as f64 * 100.0).round() / 100.0;
        json!({
            "rate": rate(self.count),
            "failedRate": rate(self.failed),
            "p50": self.percentile(50),
            "p95": self.percentile(95),
            "p99": self.percentile(99),
        })
    }

    /// So many percent of calls took no longer than this, in milliseconds.
    fn percentile(&self, percent: u32) -> Option<f64> {
        let wanted = (u64::from(self.count) * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().position(|it| {
            seen += u64::from(*it);
            seen >= wanted
        });
        found.filter(|_| self.count > 0).map(middle)
    }
}

/// The bucket of so many microseconds: their exponent, and their two next bits.
fn bucket(micros: u64) -> usize {
    let micros = micros.max(4);
    let exponent = micros.ilog2();
    let bits = (micros >> (exponent - 2)) & 3;
    ((exponent as usize - 2) * 4 + bits as usize).min(BUCKETS - 1)
}

/// The middle of a bucket, in milliseconds.
fn middle(bucket: usize) -> f64 {
    let (exponent, bits) = (bucket / 4 + 2, bucket % 4);
    let low = 2f64.powi(exponent as i32) * (1.0 + bits as f64 / 4.0);
    let high = low + 2f64.powi(exponent as i32) / 4.0;
    ((low + high) / 2.0).round() / 1e3
}

/// The length of a step in seconds, and how many are kept.
pub(crate) const STEP: u64 = 10;
const STEPS: usize = 90;
/// Up to about two minutes.
const BUCKETS: usize = 104;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_an_eighth_of_the_truth() {
        let (mut rates, began) = (Rates::default(), Instant::now());
        for n in 1..=1000_u64 {
            rates.note(began, n * 100, n % 10 == 0);
        }
        let told = rates.show(began + Duration::from_secs(5));
        for (name, expected) in [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)] {
            let found = told[name].as_f64().unwrap();
            assert!((found / expected - 1.0).abs() < 0.125, "{name}: {found}");
        }
        assert_eq!((&told["count"], &told["failed"]), (&json!(1000), &json!(100)));
        let steps = told["steps"].as_array().unwrap();
        assert_eq!((steps.len(), &steps[89]["rate"]), (90, &json!(100.0)));
        assert_eq!((&steps[88]["rate"], &steps[88]["p50"]), (&json!(0.0), &Value::Null));
    }

    #[test]
    fn a_quarter_of_an_hour_is_remembered() {
        let (mut rates, began) = (Rates::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(rates.show(at(0))["count"], 0);
        rates.note(at(0), 1_000, false);
        rates.note(at(600), 1_000, false);
        // One that ended before, and is counted later.
        rates.note(at(599), 1_000, false);
        let steps = rates.show(at(600))["steps"].take();
        assert_eq!([&steps[29]["rate"], &steps[89]["rate"]], [&json!(0.1), &json!(0.2)]);
        assert_eq!(rates.show(at(899))["count"], 3);
        assert_eq!(rates.show(at(900))["count"], 2);
        assert_eq!(rates.show(at(100_000))["count"], 0);
        assert_eq!(rates.show(at(100_000))["p99"], Value::Null);
    }

    #[test]
    fn every_duration_has_a_bucket() {
        let mut last = 0;
        for micros in (0..40).map(|it| 1_u64 << it) {
            let found = bucket(micros);
            assert!(found >= last && found < BUCKETS);
            last = found;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
