//! Results → each promise about HTTP, and whether it is kept.

use super::super::figures::Ratio;
use super::cases::{self, LONG, MODERN, OURS, REVISIONS, SESSION, SHORT};
use super::results::Results;

/// One promise and what was measured.
pub struct Target {
    pub what: String,
    pub bound: Bound,
    /// `None` when it was not measured.
    pub measured: Option<Ratio>,
}

#[derive(Clone, Copy)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub fn is_met(&self) -> bool {
        self.measured.is_some_and(|Ratio { of_medians, .. }| match self.bound {
            Bound::AtLeast(least) => of_medians >= least,
            Bound::AtMost(most) => of_medians <= most,
        })
    }
}

/// The share of the bare server's throughput that is promised for a case.
pub fn share_of_bare(reply: &str, payload: u32, connections: u32) -> Option<f64> {
    match (reply, payload, connections) {
        ("json", SHORT, 16 | 64) => Some(0.85),
        ("sse", SHORT, 16 | 64) => Some(0.80),
        ("json", LONG, 16) => Some(0.75),
        _ => None,
    }
}

pub fn all(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |what: String, bound, measured| targets.push(Target { what, bound, measured });
    for (revision, reply, payload, connections) in promised() {
        let case = cases::server(revision, reply, payload, connections);
        let throughput = |of| results.figures.ratio(&case, OURS, of, |s| s.calls_per_s);
        let share = share_of_bare(reply, payload, connections).unwrap_or(1.0);
        add(format!("{}: ÷ bare", case.name), Bound::AtLeast(share), throughput("bare"));
        let times = match (reply, payload) {
            ("sse", _) => 2.5,
            (_, LONG) => 1.3,
            _ => 3.0,
        };
        add(format!("{}: ÷ rmcp", case.name), Bound::AtLeast(times), throughput("rmcp"));
        if (reply, payload) == ("json", SHORT) {
            let cpu = results.figures.ratio(&case, "rmcp", OURS, |s| s.cpu_us);
            add(format!("{}: CPU of rmcp ÷ ours", case.name), Bound::AtLeast(4.0), cpu);
        }
        if (revision, reply, payload) == (MODERN, "json", SHORT) {
            let cpu = results.figures.ratio(&case, OURS, "bare", |s| s.cpu_us);
            add(format!("{}: CPU ÷ bare", case.name), Bound::AtMost(1.35), cpu);
        }
    }
    for revision in REVISIONS {
        let case = cases::server(revision, "json", SHORT, 1);
        let p50 = results.figures.ratio(&case, OURS, "bare", |s| s.p50_us);
        add(format!("{}: p50 ÷ bare", case.name), Bound::AtMost(1.20), p50);
    }
    for case in ["stateless", "session"].map(|mode| cases::client(mode, 16)) {
        for (of, times) in [("bare", 0.70), ("rmcp", 5.0)] {
            let throughput = results.figures.ratio(&case, OURS, of, |s| s.calls_per_s);
            add(format!("{}: ÷ {of}", case.name), Bound::AtLeast(times), throughput);
        }
    }
    let cpu = |extra| results.figures.all(&cases::tools(extra), OURS, |s| s.cpu_us);
    add("102 tools: CPU ÷ with 2".into(), Bound::AtMost(1.05), Ratio::of(cpu(100), cpu(0)));
    for revision in REVISIONS {
        let case = cases::server(revision, "json", SHORT, 16);
        let moved = results.counts(&case, OURS).map(|counts| counts.reads_and_writes().into());
        // Two a call; a rare read that finds nothing is no third.
        add(format!("{}: reads and writes a call", case.name), Bound::AtMost(2.05), moved);
    }
    targets
}

fn promised() -> Vec<(&'static str, &'static str, u32, u32)> {
    let mut all = Vec::new();
    for revision in [MODERN, SESSION] {
        all.extend([16, 64].map(|connections| (revision, "json", SHORT, connections)));
        all.extend([16, 64].map(|connections| (revision, "sse", SHORT, connections)));
        all.push((revision, "json", LONG, 16));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::super::figures::Sample;
    use super::*;

    #[test]
    fn a_target_that_was_not_measured_is_not_met() {
        let results = Results::new(vec![OURS], 3, "0".into());
        assert!(all(&results).iter().all(|target| !target.is_met()));
    }

    #[test]
    fn a_target_is_met_on_the_right_side_of_its_bound() {
        let mut results = Results::new(vec!["bare", OURS], 3, "0".into());
        let case = cases::server(MODERN, "json", SHORT, 16);
        let sample = |calls_per_s, cpu_us| Sample { calls_per_s, cpu_us, ..Sample::default() };
        results.figures.add(&case, "bare", sample(100.0, 10.0));
        results.figures.add(&case, OURS, sample(90.0, 14.0));
        let met: Vec<_> = all(&results)
            .into_iter()
            .filter(|target| target.measured.is_some())
            .map(|target| (target.what.clone(), target.is_met()))
            .collect();
        let name = "2026-07-28, JSON, 100 B, 16";
        let expected = [(format!("{name}: ÷ bare"), true), (format!("{name}: CPU ÷ bare"), false)];
        assert_eq!(met, expected);
    }
}
