//! Results → the page of `bench/results`, with each promise about replicas.

use super::super::figures::Sample;
use super::super::thousands;
use super::{ALONE, CASES, Case, Commands, FORWARDED, OWNER, Results};

/// The whole page, which is also what is printed.
pub fn text(results: &Results) -> String {
    let mut out = format!(
        "# What it costs to be one of several\n\n\
         Written by `cargo xtask bench replicas`: medians of {} turns of each, interleaved, load average {} when they\n\
         began. The driver has one core; the gateways, their stdio servers (`bare`) and Redis share another. A case is the\n\
         revision and the number of connections, each with one call in flight.\n\n\
         - `{ALONE}`: `trunkline serve` without a store\n\
         - `{OWNER}`: with `gateway.store` and `gateway.replicas`, one other replica beside it; called where the sessions are\n\
         - `{FORWARDED}`: the same sessions, called at the other replica; its CPU is that of both\n\n\
         ## Targets\n\n| | target | measured | |\n|---|---|---|---|\n",
        results.figures.rounds, results.figures.load
    );
    for Target { what, is_least, bound, measured } in targets(results) {
        let sign = if is_least { '≥' } else { '≤' };
        let is_met = measured.is_some_and(|it| if is_least { it >= bound } else { it <= bound });
        let measured = measured.map_or("not measured".into(), |it| format!("{it:.4}"));
        let mark = if is_met { "✓" } else { "✗" };
        out += &format!("| {what} | {sign} {bound} | {measured} | {mark} |\n");
    }
    out += "\n## Figures\n\n| case | | calls/s | p50 | p99 | CPU |\n|---|---|---|---|---|---|\n";
    for case in &CASES {
        for label in case.labels {
            let Some(median) = results.figures.median(case, label) else { continue };
            out += &format!(
                "| {case} | {label} | {} | {:.0} µs | {:.0} µs | {:.1} µs |\n",
                thousands(median.calls_per_s as u64),
                median.p50_us,
                median.p99_us,
                median.cpu_us
            );
        }
    }
    out += "\n## What Redis was told\n\n| while | seconds | commands | a second | of which |\n|---|---|---|---|---|\n";
    out += &row("nobody called", &results.idle);
    for (case, commands) in &results.commands {
        out += &row(&format!("{case}: {} calls", thousands(calls(results, case))), commands);
    }
    out +=
        "\nWhat a script does counts as well. A case opens its sessions first; each is a record.\n";
    match &results.instructions {
        Ok([alone, owner]) => {
            let (alone, owner) = (thousands(*alone as u64), thousands(*owner as u64));
            out += &format!(
                "\nInstructions of a call of a session: {alone} `{ALONE}`, {owner} `{OWNER}`.\n"
            );
        }
        Err(sentence) => out += &format!("\nInstructions: {sentence}\n"),
    }
    for failure in &results.figures.failures {
        out += &format!("\nFailed: {failure}\n");
    }
    out
}

/// One promise and what was measured.
struct Target {
    what: String,
    is_least: bool,
    bound: f64,
    /// `None` when it was not measured.
    measured: Option<f64>,
}

fn targets(results: &Results) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |what: String, is_least, bound, measured| {
        targets.push(Target { what, is_least, bound, measured });
    };
    let ratio = |case: &Case, label, of, pick: fn(&Sample) -> f64| {
        results.figures.ratio(case, label, of, pick).map(|it| it.of_medians)
    };
    for case in &CASES[..2] {
        let throughput = ratio(case, OWNER, ALONE, |it| it.calls_per_s);
        add(format!("{case}: calls/s, `{OWNER}` ÷ `{ALONE}`"), true, 0.95, throughput);
        let commands = results.commands.iter().find(|(of, _)| *of == case);
        let more = commands.map(|(_, it)| (it.rate() - results.idle.rate()).max(0.0) * it.seconds);
        let per_call = more.map(|more| more / calls(results, case).max(1) as f64);
        add(format!("{case}: commands to Redis a call, beyond idle"), false, 0.01, per_call);
    }
    let p50 = ratio(&CASES[2], FORWARDED, OWNER, |it| it.p50_us);
    add(format!("{}: p50, `{FORWARDED}` ÷ `{OWNER}`", CASES[2]), false, 1.7, p50);
    let counted = results.instructions.as_ref().ok().map(|[alone, owner]| owner / alone);
    add(format!("instructions of a call, `{OWNER}` ÷ `{ALONE}`"), false, 1.05, counted);
    targets
}

/// How many calls were made of those who share the store.
fn calls(results: &Results, case: &Case) -> u64 {
    results.calls.iter().find(|(of, _)| *of == case).map_or(0, |(_, calls)| *calls)
}

fn row(what: &str, commands: &Commands) -> String {
    let by_name: Vec<String> =
        commands.by_name.iter().map(|(name, count)| format!("{name} {count}")).collect();
    format!(
        "| {what} | {:.1} | {} | {:.1} | {} |\n",
        commands.seconds,
        commands.all(),
        commands.rate(),
        by_name.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn a_target_is_met_on_the_right_side_of_its_bound() {
        let mut results = Results::new(&Options { rounds: 5, milliseconds: 1, is_quick: true });
        let sample = |calls_per_s, p50_us| Sample { calls_per_s, p50_us, ..Sample::default() };
        for (label, calls_per_s, p50_us) in
            [(ALONE, 100.0, 10.0), (OWNER, 96.0, 10.0), (FORWARDED, 40.0, 18.0)]
        {
            for case in &CASES {
                results.figures.add(case, label, sample(calls_per_s, p50_us));
            }
        }
        let by_name = vec![("get".to_owned(), 8)];
        results.commands.push((&CASES[0], Commands { seconds: 2.0, by_name: by_name.clone() }));
        results.idle = Commands { seconds: 8.0, by_name };
        results.calls.push((&CASES[0], 100));
        let text = text(&results);
        for row in [
            "| 2025-11-25, 16: calls/s, `owner` ÷ `alone` | ≥ 0.95 | 0.9600 | ✓ |",
            "| 2025-11-25, 16: commands to Redis a call, beyond idle | ≤ 0.01 | 0.0600 | ✗ |",
            "| 2025-11-25, 1: p50, `forwarded` ÷ `owner` | ≤ 1.7 | 1.8000 | ✗ |",
            "| instructions of a call, `owner` ÷ `alone` | ≤ 1.05 | not measured | ✗ |",
            "| 2025-11-25, 16: 100 calls | 2.0 | 8 | 4.0 | get 8 |",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }
}
