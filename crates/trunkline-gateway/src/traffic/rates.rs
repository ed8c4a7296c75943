//! How many calls a server gets and how long they take, in steps of ten seconds over a quarter of an hour.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

/// The last steps of one server.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// The newest step is the last; steps without calls between others are there, too.
    steps: VecDeque<Step>,
    /// The number of the newest step.
    newest: u64,
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
    /// A call ended in the step of this number; they are counted from any fixed moment.
    #[inline]
    pub(crate) fn note(&mut self, took: Duration, has_failed: bool, step: u64) {
        self.advance(step);
        let Some(step) = self.steps.back_mut() else { return };
        step.count += 1;
        step.failed += u32::from(has_failed);
        step.buckets[bucket(took)] += 1;
    }

    /// The percentiles of all steps, and each step, oldest first.
    pub(crate) fn show(&mut self, step: u64) -> Value {
        self.advance(step);
        let mut all = Step::default();
        for step in &self.steps {
            all.count += step.count;
            all.failed += step.failed;
            all.buckets.iter_mut().zip(step.buckets).for_each(|(sum, it)| *sum += it);
        }
        let missing = STEPS - self.steps.len();
        let empty = Step::default();
        let steps = std::iter::repeat_n(&empty, missing).chain(&self.steps).map(Step::show);
        let mut told = all.show();
        told["count"] = json!(all.count);
        told["failed"] = json!(all.failed);
        told["steps"] = steps.collect();
        told
    }

    #[inline]
    fn advance(&mut self, number: u64) {
        if number != self.newest || self.steps.is_empty() {
            self.advance_to(number);
        }
    }

    fn advance_to(&mut self, number: u64) {
        let ahead = number.saturating_sub(self.newest).min(STEPS as u64);
        let more = if self.steps.is_empty() { 1 } else { ahead };
        self.newest = self.newest.max(number);
        for _ in 0..more {
            if self.steps.len() >= STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back(Step::default());
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

/// The bucket of a duration: the exponent of its microseconds, and their two next bits.
fn bucket(took: Duration) -> usize {
    let micros = took.as_secs().saturating_mul(1_000_000);
    let micros = micros.saturating_add(u64::from(took.subsec_micros())).max(4);
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

    fn at(seconds: u64) -> u64 {
        seconds / STEP
    }

    #[test]
    fn percentiles_are_within_an_eighth_of_the_truth() {
        let mut rates = Rates::default();
        for n in 1..=1000_u64 {
            rates.note(Duration::from_micros(n * 100), n % 10 == 0, at(1000));
        }
        let told = rates.show(at(1005));
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
        let mut rates = Rates::default();
        rates.note(Duration::from_millis(1), false, at(0));
        rates.note(Duration::from_millis(1), false, at(600));
        assert_eq!(rates.show(at(899))["count"], 2);
        assert_eq!(rates.show(at(900))["count"], 1);
        assert_eq!(rates.show(at(100_000))["count"], 0);
        assert_eq!(rates.show(at(100_000))["p99"], Value::Null);
    }

    #[test]
    fn every_duration_has_a_bucket() {
        let mut last = 0;
        for micros in (0..40).map(|it| 1_u64 << it) {
            let found = bucket(Duration::from_micros(micros));
            assert!(found >= last && found < BUCKETS);
            last = found;
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }
}
