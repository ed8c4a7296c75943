//! Reports of the driver → medians and ratios.

use std::collections::BTreeMap;

use super::super::{median, number};
use super::cases::{Case, Kind};

/// One measurement of one program.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Sample {
    pub calls_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Of the program measured, for one call.
    pub cpu_us: f64,
}

impl Sample {
    pub fn read(case: &Case, report: &str) -> Result<Sample, String> {
        let need = |key| {
            number(report, key).ok_or_else(|| format!("the driver reported no `{key}`: {report}"))
        };
        let cpu = match case.kind {
            Kind::Client { .. } => "client_cpu_us",
            _ => "server_cpu_us",
        };
        Ok(Sample {
            calls_per_s: need("calls_per_s")?,
            p50_us: need("p50_us")?,
            p99_us: need("p99_us")?,
            cpu_us: need(cpu)?,
        })
    }
}

/// What one call takes when nothing else is measured.
pub struct Counts {
    pub instructions: f64,
    pub system_calls: BTreeMap<String, f64>,
}

impl Counts {
    /// Those that move the bytes of calls; waiting is shared by many.
    pub fn reads_and_writes(&self) -> f64 {
        let moves =
            |name: &str| ["read", "write", "recv", "send"].iter().any(|kind| name.contains(kind));
        self.system_calls.iter().filter(|(name, _)| moves(name)).map(|(_, count)| count).sum()
    }
}

pub struct Results {
    pub labels: Vec<&'static str>,
    pub rounds: usize,
    pub load: String,
    pub counts: Vec<(String, &'static str, Counts)>,
    pub failures: Vec<String>,
    samples: Vec<(String, &'static str, Sample)>,
}

impl Results {
    pub fn new(labels: Vec<&'static str>, rounds: usize, load: String) -> Results {
        let (counts, failures, samples) = Default::default();
        Results { labels, rounds, load, counts, failures, samples }
    }

    pub fn add(&mut self, case: &Case, label: &'static str, sample: Sample) {
        self.samples.push((case.name.clone(), label, sample));
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
            let all = self.samples.iter().filter(|s| s.0 == case.name && s.1 == label);
            median(all.map(|s| pick(&s.2)).collect())
        };
        Some(Sample {
            calls_per_s: of(|s| s.calls_per_s)?,
            p50_us: of(|s| s.p50_us)?,
            p99_us: of(|s| s.p99_us)?,
            cpu_us: of(|s| s.cpu_us)?,
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

    pub fn counts(&self, case: &Case, label: &str) -> Option<&Counts> {
        self.counts.iter().find(|(name, of, _)| *name == case.name && *of == label).map(|c| &c.2)
    }
}

fn prefix(case: &Case, label: &str) -> String {
    format!("`{label}`, {}: ", case.name)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{self, OURS};
    use super::*;

    #[test]
    fn one_slow_round_does_not_move_the_ratio() {
        let case = cases::server("2026-07-28", "json", 100, 16);
        let mut results = Results::new(vec!["bare", OURS], 3, "0".into());
        for calls_per_s in [100.0, 90.0, 3.0] {
            results.add(&case, "bare", Sample { calls_per_s, ..Sample::default() });
            let half = Sample { calls_per_s: calls_per_s / 2.0, ..Sample::default() };
            results.add(&case, OURS, half);
        }
        assert_eq!(results.ratio(&case, OURS, "bare", |s| s.calls_per_s), Some(0.5));
        assert_eq!(results.ratio(&case, OURS, "rmcp", |s| s.calls_per_s), None);
    }

    #[test]
    fn a_failure_is_of_one_program_in_one_case() {
        let case = cases::tools(100);
        let mut results = Results::new(vec![OURS], 3, "0".into());
        results.fail(&case, OURS, "it was silent.");
        assert!(results.has_failed(&case, OURS));
        assert!(!results.has_failed(&case, "rmcp") && !results.has_failed(&cases::tools(0), OURS));
    }

    #[test]
    fn a_clients_report_gives_the_clients_time() {
        let report = r#"{"calls":9,"calls_per_s":5.5,"client_cpu_us":2.5,"p50_us":1,"p99_us":2,"server_cpu_us":9}"#;
        let sample = Sample::read(&cases::client("stateless", 1), report);
        let expected = Sample { calls_per_s: 5.5, p50_us: 1.0, p99_us: 2.0, cpu_us: 2.5 };
        assert_eq!(sample, Ok(expected));
    }
}
