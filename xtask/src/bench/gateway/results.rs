//! Reports of the driver → medians and ratios.

use super::super::{median, number};
use super::cases::Case;

/// One measurement of one gateway.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Sample {
    pub calls_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Of the gateway alone, for one call; the upstream's is apart.
    pub cpu_us: f64,
    pub upstream_us: f64,
}

impl Sample {
    pub fn read(report: &str) -> Result<Sample, String> {
        let need = |key| {
            number(report, key).ok_or_else(|| format!("the driver reported no `{key}`: {report}"))
        };
        Ok(Sample {
            calls_per_s: need("calls_per_s")?,
            p50_us: need("p50_us")?,
            p99_us: need("p99_us")?,
            cpu_us: need("gateway_cpu_us")?,
            upstream_us: need("upstream_cpu_us")?,
        })
    }
}

pub struct Results {
    pub rounds: usize,
    pub load: String,
    pub failures: Vec<String>,
    samples: Vec<(Case, &'static str, Sample)>,
}

impl Results {
    pub fn new(rounds: usize, load: String) -> Results {
        Results { rounds, load, failures: Vec::new(), samples: Vec::new() }
    }

    pub fn add(&mut self, case: &Case, label: &'static str, sample: Sample) {
        self.samples.push((*case, label, sample));
    }

    pub fn fail(&mut self, case: &Case, label: &str, sentence: &str) {
        self.failures.push(format!("{}{sentence}", prefix(case, label)));
    }

    pub fn has_failed(&self, case: &Case, label: &str) -> bool {
        self.failures.iter().any(|failure| failure.starts_with(&prefix(case, label)))
    }

    /// The median of each figure over the rounds; `None` when it failed or was left out.
    pub fn median(&self, case: &Case, label: &str) -> Option<Sample> {
        let of = |pick: fn(&Sample) -> f64| {
            let all = self.samples.iter().filter(|s| s.0 == *case && s.1 == label);
            median(all.map(|s| pick(&s.2)).collect())
        };
        Some(Sample {
            calls_per_s: of(|s| s.calls_per_s)?,
            p50_us: of(|s| s.p50_us)?,
            p99_us: of(|s| s.p99_us)?,
            cpu_us: of(|s| s.cpu_us)?,
            upstream_us: of(|s| s.upstream_us)?,
        })
    }

    pub fn ratio(
        &self,
        case: &Case,
        label: &str,
        to: &str,
        pick: fn(&Sample) -> f64,
    ) -> Option<f64> {
        Some(pick(&self.median(case, label)?) / pick(&self.median(case, to)?))
    }
}

fn prefix(case: &Case, label: &str) -> String {
    format!("`{label}`, {}: ", case.name())
}

#[cfg(test)]
mod tests {
    use super::super::cases::{BARE, CASES, OURS};
    use super::*;

    #[test]
    fn a_report_becomes_a_sample_and_samples_a_ratio() {
        let report = r#"{"calls_per_s":90.5,"gateway_cpu_us":3.5,"p50_us":1,"p99_us":2,"upstream_cpu_us":9}"#;
        let sample = Sample::read(report).expect("all keys are there");
        assert_eq!((sample.calls_per_s, sample.cpu_us, sample.upstream_us), (90.5, 3.5, 9.0));
        let mut results = Results::new(3, "0".into());
        for calls_per_s in [100.0, 90.0, 3.0] {
            results.add(&CASES[1], BARE, Sample { calls_per_s, ..sample });
            results.add(&CASES[1], OURS, Sample { calls_per_s: calls_per_s / 2.0, ..sample });
        }
        assert_eq!(results.ratio(&CASES[1], OURS, BARE, |s| s.calls_per_s), Some(0.5));
        assert_eq!(results.ratio(&CASES[0], OURS, BARE, |s| s.calls_per_s), None);
        results.fail(&CASES[0], OURS, "it was silent.");
        assert!(results.has_failed(&CASES[0], OURS) && !results.has_failed(&CASES[0], BARE));
    }
}
