//! Reports of the driver → medians and ratios.

use std::fmt::{self, Display};

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
        let of = |pick| median(self.all(case, label, pick));
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
    ) -> Option<Ratio> {
        Ratio::of(self.all(case, label, pick), self.all(case, to, pick))
    }

    /// A figure of every round.
    pub fn all(&self, case: &impl Display, label: &str, pick: fn(&Sample) -> f64) -> Vec<f64> {
        let case = case.to_string();
        let all = self.samples.iter().filter(|s| s.0 == case && s.1 == label);
        all.map(|s| pick(&s.2)).collect()
    }
}

/// A figure of one program by that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub of_medians: f64,
    /// The least and the most of the rounds' own ratios; `None` when there was one round.
    spread: Option<(f64, f64)>,
}

impl Ratio {
    /// Of figures that were measured in the same rounds.
    pub fn of(ours: Vec<f64>, theirs: Vec<f64>) -> Option<Ratio> {
        let rounds = || ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs);
        let spread =
            (rounds().fold(f64::INFINITY, f64::min), rounds().fold(f64::NEG_INFINITY, f64::max));
        let spread = (rounds().count() > 1).then_some(spread);
        Some(Ratio { of_medians: median(ours)? / median(theirs)?, spread })
    }
}

impl From<f64> for Ratio {
    /// What was not measured in rounds.
    fn from(of_medians: f64) -> Ratio {
        Ratio { of_medians, spread: None }
    }
}

impl Display for Ratio {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2}", self.of_medians)?;
        self.spread.map_or(Ok(()), |(least, most)| write!(out, " ({least:.2}–{most:.2})"))
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
        let ratio = |case: &str, to| figures.ratio(&case, OURS, to, |s| s.calls_per_s);
        assert_eq!(ratio("case", BARE).map(|it| it.of_medians), Some(0.5));
        assert_eq!((ratio("case", "rmcp"), ratio("other", BARE)), (None, None));
    }

    #[test]
    fn a_ratio_says_how_far_its_rounds_are_apart() {
        let ratio = |ours: &[f64]| Ratio::of(ours.into(), vec![10.0; ours.len()]);
        let shown = |ours| ratio(ours).map(|it| it.to_string());
        assert_eq!(shown(&[5.0, 6.0, 5.9]), Some("0.59 (0.50–0.60)".into()));
        assert_eq!(shown(&[5.0]), Some("0.50".into()));
        assert_eq!(shown(&[]), None);
    }

    #[test]
    fn a_failure_is_of_one_program_in_one_case() {
        let mut figures = Figures::new(3, "0".into());
        figures.fail(&"case", OURS, "it was silent.");
        assert!(figures.has_failed(&"case", OURS));
        assert!(!figures.has_failed(&"case", BARE) && !figures.has_failed(&"other", OURS));
    }
}
