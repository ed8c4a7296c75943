//! Reports of the driver → medians and ratios.

use std::fmt::Display;

use super::{median, number};

/// One measurement of one program.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Sample {
    pub calls_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Of the program measured, for one call.
    pub cpu_us: f64,
    /// Of what is behind a gateway.
    pub upstream_us: f64,
}

impl Sample {
    /// Reads a report; `cpu` and `upstream` are the keys of the times of the program and of what is behind it.
    pub fn read(report: &str, cpu: &str, upstream: Option<&str>) -> Result<Sample, String> {
        Ok(Sample {
            calls_per_s: needed(report, "calls_per_s")?,
            p50_us: needed(report, "p50_us")?,
            p99_us: needed(report, "p99_us")?,
            cpu_us: needed(report, cpu)?,
            upstream_us: upstream.map_or(Ok(0.0), |key| needed(report, key))?,
        })
    }
}

/// A number that a report must have.
pub fn needed(report: &str, key: &str) -> Result<f64, String> {
    number(report, key).ok_or_else(|| format!("the driver reported no `{key}`: {report}"))
}

/// The samples of all rounds, each of one case and the program with one label.
pub struct Figures {
    pub rounds: usize,
    pub load: String,
    pub failures: Vec<String>,
    samples: Vec<(String, &'static str, Sample)>,
}

impl Figures {
    pub fn new(rounds: usize, load: String) -> Figures {
        Figures { rounds, load, failures: Vec::new(), samples: Vec::new() }
    }

    pub fn add(&mut self, case: &impl Display, label: &'static str, sample: Sample) {
        self.samples.push((case.to_string(), label, sample));
    }

    pub fn fail(&mut self, case: &impl Display, label: &str, sentence: &str) {
        self.failures.push(format!("{}{sentence}", prefix(case, label)));
    }

    pub fn has_failed(&self, case: &impl Display, label: &str) -> bool {
        self.failures.iter().any(|failure| failure.starts_with(&prefix(case, label)))
    }

    /// The median of each figure over the rounds; `None` when it failed or was left out.
    pub fn median(&self, case: &impl Display, label: &str) -> Option<Sample> {
        let case = case.to_string();
        let of = |pick: fn(&Sample) -> f64| {
            let all = self.samples.iter().filter(|s| s.0 == case && s.1 == label);
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
        case: &impl Display,
        label: &str,
        to: &str,
        pick: fn(&Sample) -> f64,
    ) -> Option<f64> {
        Some(pick(&self.median(case, label)?) / pick(&self.median(case, to)?))
    }
}

fn prefix(case: &impl Display, label: &str) -> String {
    format!("`{label}`, {case}: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &str = "bare";
    const OURS: &str = "trunkline";

    #[test]
    fn a_report_becomes_a_sample() {
        let report = r#"{"calls_per_s":90.5,"gateway_cpu_us":3.5,"p50_us":1,"p99_us":2,"upstream_cpu_us":9}"#;
        let sample = Sample::read(report, "gateway_cpu_us", Some("upstream_cpu_us"))
            .expect("all keys are there");
        assert_eq!((sample.calls_per_s, sample.cpu_us, sample.upstream_us), (90.5, 3.5, 9.0));
        assert!(Sample::read(report, "server_cpu_us", None).is_err());
    }

    #[test]
    fn one_slow_round_does_not_move_the_ratio() {
        let mut figures = Figures::new(3, "0".into());
        for calls_per_s in [100.0, 90.0, 3.0] {
            figures.add(&"case", BARE, Sample { calls_per_s, ..Sample::default() });
            let half = Sample { calls_per_s: calls_per_s / 2.0, ..Sample::default() };
            figures.add(&"case", OURS, half);
        }
        assert_eq!(figures.ratio(&"case", OURS, BARE, |s| s.calls_per_s), Some(0.5));
        assert_eq!(figures.ratio(&"case", OURS, "rmcp", |s| s.calls_per_s), None);
        assert_eq!(figures.ratio(&"other", OURS, BARE, |s| s.calls_per_s), None);
    }

    #[test]
    fn a_failure_is_of_one_program_in_one_case() {
        let mut figures = Figures::new(3, "0".into());
        figures.fail(&"case", OURS, "it was silent.");
        assert!(figures.has_failed(&"case", OURS));
        assert!(!figures.has_failed(&"case", BARE) && !figures.has_failed(&"other", OURS));
    }
}
