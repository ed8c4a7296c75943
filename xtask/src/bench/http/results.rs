//! Reports of the driver → the figures and counts of every case.

use super::super::counts::Counts;
use super::super::figures::{Figures, Sample};
use super::cases::{Case, Kind};

/// What a report says of a case.
pub fn sample(case: &Case, report: &str) -> Result<Sample, String> {
    let cpu = match case.kind {
        Kind::Client { .. } => "client_cpu_us",
        _ => "server_cpu_us",
    };
    Sample::read(report, cpu, None)
}

pub struct Results {
    pub labels: Vec<&'static str>,
    pub figures: Figures,
    pub counts: Vec<(String, &'static str, Counts)>,
}

impl Results {
    pub fn new(labels: Vec<&'static str>, rounds: usize, load: String) -> Results {
        Results { labels, figures: Figures::new(rounds, load), counts: Vec::new() }
    }

    pub fn counts(&self, case: &Case, label: &str) -> Option<&Counts> {
        self.counts.iter().find(|(name, of, _)| *name == case.name && *of == label).map(|c| &c.2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    #[test]
    fn a_clients_report_gives_the_clients_time() {
        let report = r#"{"calls":9,"calls_per_s":5.5,"client_cpu_us":2.5,"p50_us":1,"p99_us":2,"server_cpu_us":9}"#;
        let sample = sample(&cases::client("stateless", 1), report);
        let expected =
            Sample { calls_per_s: 5.5, p50_us: 1.0, p99_us: 2.0, cpu_us: 2.5, upstream_us: 0.0 };
        assert_eq!(sample, Ok(expected));
    }
}
