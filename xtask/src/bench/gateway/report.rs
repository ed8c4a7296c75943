//! Results → the page and the JSON of `bench/results`, with each promise about the gateway.

use super::super::counts::{self, Counts};
use super::super::figures::{Figures, Ratio, Sample};
use super::super::thousands;
use super::cases::{
    BARE, CASES, Case, GATEWAYS, Gateway, NPM, OURS, PYPI, RUST_PROXY, SESSION, Upstream,
};

/// The whole page, which is also what is printed.
pub fn text(
    results: &Figures,
    gateways: &[&Gateway],
    counts: &[(String, &'static str, Counts)],
) -> String {
    let mut out = format!(
        "# `tools/call` through a gateway\n\n\
         Written by `cargo xtask bench gateway`: medians of {} interleaved rounds, load average {} when they began.\n\
         The driver has one core; the gateway and the upstream share another. The upstream is `bare` over stdio and\n\
         `bare-http` over HTTP; it echoes 100 bytes. A case is the revision that the client speaks, the upstream, and the\n\
         number of connections, each with one call in flight; with 2025-11-25 each has a session of its own. Every answer was\n\
         checked. CPU is the gateway's for one call, without the upstream's, which is beside it. All log errors alone. Behind a\n\
         ratio is the least and the most of the rounds' own.\n\n\
         `trunkline` records its calls, as it does unless told otherwise. Its catalog has one server with `maxConcurrent: 1024`,\n\
         so that no call waits for another, and `maxInstances: 1`. There are no tokens, no rules and no TLS, and it\n\
         takes a runtime of one thread because it has one core. `mcp-proxy` has a file that says its address, its log level\n\
         and one backend, without tokens, rules and TLS as well; the others are told as much by their command lines. `bare` is\n\
         built with the profile that `trunkline` is released with.\n\n",
        results.rounds, results.load
    );
    for gateway in gateways {
        out += &format!("- `{}`: {}\n", gateway.label, gateway.what);
    }
    if results.load.parse::<f64>().is_ok_and(|load| load > BUSY) {
        out += "\nThe machine was busy with other things: trust the CPU of a call, not the calls a second and the latencies.\n";
    }
    out += "\n## Targets\n\n| | target | measured | |\n|---|---|---|---|\n";
    for target in targets(results) {
        let measured = target.measured.map_or("not measured".into(), |it| it.to_string());
        let mark = if target.is_met() { "✓" } else { "✗" };
        out += &format!("| {} | {} | {measured} | {mark} |\n", target.what, target.bound());
    }
    out += "\n## Figures\n\n\
        | case | | calls/s | ÷ bare | p50 | ÷ bare | p99 | CPU | ÷ bare | upstream |\n\
        |---|---|---|---|---|---|---|---|---|---|\n";
    for case in &CASES {
        for gateway in gateways {
            let Some(median) = results.median(case, gateway.label) else { continue };
            let ratio = |pick: fn(&Sample) -> f64| {
                let ratio = results.ratio(case, gateway.label, BARE, pick);
                ratio.map_or("–".into(), |ratio| format!("{:.2}", ratio.of_medians))
            };
            out += &format!(
                "| {} | {} | {} | {} | {:.0} µs | {} | {:.0} µs | {:.1} µs | {} | {:.1} µs |\n",
                case,
                gateway.label,
                thousands(median.calls_per_s as u64),
                ratio(|s| s.calls_per_s),
                median.p50_us,
                ratio(|s| s.p50_us),
                median.p99_us,
                median.cpu_us,
                ratio(|s| s.cpu_us),
                median.upstream_us,
            );
        }
    }
    if !counts.is_empty() {
        out += "\n## Counted\n\n\
            What one call takes the gateway, without the upstream: instructions by callgrind, system calls by strace. What\n\
            compiles while it runs is left out.\n\n";
        out += &counts::table(counts);
    }
    for failure in &results.failures {
        out += &format!("\nFailed: {failure}\n");
    }
    out
}

/// All medians and targets as one object.
pub fn json(results: &Figures) -> String {
    let mut measurements = Vec::new();
    for case in &CASES {
        for gateway in &GATEWAYS {
            let Some(median) = results.median(case, gateway.label) else { continue };
            measurements.push(format!(
                "    {{\"case\":\"{}\",\"gateway\":\"{}\",\"calls_per_s\":{:.1},\"p50_us\":{:.1},\"p99_us\":{:.1},\"gateway_cpu_us\":{:.2},\"upstream_cpu_us\":{:.2}}}",
                case,
                gateway.label,
                median.calls_per_s,
                median.p50_us,
                median.p99_us,
                median.cpu_us,
                median.upstream_us
            ));
        }
    }
    let targets: Vec<String> = targets(results)
        .iter()
        .map(|target| {
            let measured =
                target.measured.map_or("null".into(), |m| format!("{:.4}", m.of_medians));
            format!(
                "    {{\"what\":\"{}\",\"target\":\"{}\",\"measured\":{measured},\"met\":{}}}",
                target.what,
                target.bound(),
                target.is_met()
            )
        })
        .collect();
    format!(
        "{{\n  \"rounds\": {},\n  \"load_average\": {},\n  \"measurements\": [\n{}\n  ],\n  \"targets\": [\n{}\n  ]\n}}\n",
        results.rounds,
        results.load,
        measurements.join(",\n"),
        targets.join(",\n")
    )
}

/// One promise and what was measured.
struct Target {
    what: String,
    least: Option<f64>,
    most: Option<f64>,
    /// `None` when it was not measured.
    measured: Option<Ratio>,
}

impl Target {
    fn is_met(&self) -> bool {
        self.measured.is_some_and(|Ratio { of_medians, .. }| {
            self.least.is_none_or(|least| of_medians >= least)
                && self.most.is_none_or(|most| of_medians <= most)
        })
    }

    fn bound(&self) -> String {
        match (self.least, self.most) {
            (Some(least), _) => format!("≥ {least:.2}"),
            (_, Some(most)) => format!("≤ {most:.2}"),
            _ => "–".into(),
        }
    }
}

/// The promises are about every revision that both sides were measured in.
fn targets(results: &Figures) -> Vec<Target> {
    let mut targets = Vec::new();
    for case in CASES {
        let mut add = |figure: &str, of: &str, bounds: (Option<f64>, Option<f64>), pick: Pick| {
            let measured = results.ratio(&case, OURS, of, pick);
            let what = format!("{case}: {figure}÷ {of}");
            targets.push(Target { what, least: bounds.0, most: bounds.1, measured });
        };
        if case.connections == 1 {
            add("p50 ", BARE, (None, Some(1.25)), |s| s.p50_us);
            continue;
        }
        let (least, most) = match case.upstream {
            Upstream::Stdio => (0.75, 1.35),
            Upstream::Http => (0.80, 1.25),
        };
        add("", BARE, (Some(least), None), |s| s.calls_per_s);
        add("CPU ", BARE, (None, Some(most)), |s| s.cpu_us);
        for (of, times) in rivals(&case) {
            add("", of, (Some(times), None), |s| s.calls_per_s);
        }
    }
    targets
}

/// The figure that is compared.
type Pick = fn(&Sample) -> f64;

/// Whom we mean to be ahead of, and how many times.
fn rivals(case: &Case) -> Vec<(&'static str, f64)> {
    match (case.revision, case.upstream) {
        (SESSION, Upstream::Stdio) => vec![(RUST_PROXY, 3.5), (NPM, 20.0), (PYPI, 20.0)],
        (SESSION, Upstream::Http) => vec![(RUST_PROXY, 3.8)],
        _ => Vec::new(),
    }
}

/// From this load average on the programs measured had to share their cores.
const BUSY: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_on_the_right_side_of_its_bound() {
        let mut results = Figures::new(1, "0".into());
        let sample = |calls_per_s, p50_us, cpu_us| {
            let rest = Sample::default();
            Sample { calls_per_s, p50_us, cpu_us, ..rest }
        };
        for case in &CASES[..2] {
            results.add(case, BARE, sample(100.0, 10.0, 2.0));
            results.add(case, OURS, sample(75.0, 14.0, 3.0));
        }
        let measured = targets(&results).into_iter().filter(|target| target.measured.is_some());
        let met: Vec<_> = measured.map(|target| (target.what.clone(), target.is_met())).collect();
        let expected = [
            ("2025-11-25, stdio, 1: p50 ÷ bare", false),
            ("2025-11-25, stdio, 16: ÷ bare", true),
            ("2025-11-25, stdio, 16: CPU ÷ bare", false),
        ];
        assert_eq!(met, expected.map(|(what, met)| (what.to_owned(), met)));
        assert!(json(&results).contains(r#""met":true"#));
        assert!(
            text(&results, &[&GATEWAYS[0]], &[]).contains("| 2025-11-25, stdio, 1 | bare | 100 |")
        );
    }
}
