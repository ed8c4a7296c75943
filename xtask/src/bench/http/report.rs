//! Results → the page and the charts of `bench/results`.

use super::super::chart::{Bar, Chart, Group};
use super::super::counts;
use super::super::figures::Sample;
use super::super::thousands;
use super::cases::{self, Case, Kind, OURS};
use super::results::Results;
use super::targets::{self, Bound};

/// The whole page, which is also what is printed.
pub fn text(results: &Results) -> String {
    let mut out = format!(
        "# `tools/call` over Streamable HTTP\n\n\
         Written by `cargo xtask bench http`: medians of {} interleaved rounds, load average {} when they began.\n\
         Driver and server have a core each, every program has one thread, TCP_NODELAY is set everywhere, and every\n\
         answer was checked. `bare` is hyper and serde_json with nothing around them; `rmcp` is rmcp 3.8 in axum. All are\n\
         built with one profile. Behind a ratio is the least and the most of the rounds' own. A case is a revision, the kind of\n\
         reply, the length of the text and the number of connections, each with one call in flight.\n\
         `SSE` calls a tool that reports progress once before it answers. With 2025-11-25 rmcp answers every call with\n\
         a stream.\n",
        results.figures.rounds, results.figures.load
    );
    if results.figures.load.parse::<f64>().is_ok_and(|load| load > BUSY) {
        out += "\nThe machine was busy with other things: trust the CPU of a call and what was counted, not the calls a second\n\
            and the latencies.\n";
    }
    out += "\n## Targets\n\n| | target | measured | |\n|---|---|---|---|\n";
    for target in targets::all(results) {
        let bound = match target.bound {
            Bound::AtLeast(least) => format!("≥ {least:.2}"),
            Bound::AtMost(most) => format!("≤ {most:.2}"),
        };
        let measured = target.measured.map_or("not measured".into(), |it| it.to_string());
        let mark = if target.is_met() { "✓" } else { "✗" };
        out += &format!("| {} | {bound} | {measured} | {mark} |\n", target.what);
    }
    out += "\n## Servers\n\n";
    out += &table(results, |case| matches!(case.kind, Kind::Server { .. }));
    out += "\n## Two tools and 102\n\n";
    out += "2026-07-28, JSON, 100 B, 16 connections.\n\n";
    out += &table(results, |case| matches!(case.kind, Kind::Tools(_)));
    out += "\n## Clients\n\n";
    out += "Against the bare server, with this many tasks, each with a client of its own unless it says `one client`. CPU is the client's.\n\n";
    out += &table(results, |case| matches!(case.kind, Kind::Client { .. }));
    if !results.counts.is_empty() {
        out += "\n## Counted\n\n";
        out += "What one call takes the server: instructions by callgrind, system calls by strace.\n\n";
        out += &counts::table(&results.counts);
    }
    for failure in &results.figures.failures {
        out += &format!("\nFailed: {failure}\n");
    }
    out
}

/// The files of charts, by name.
pub fn charts(results: &Results) -> Vec<(&'static str, String)> {
    let servers = |case: &Case| match case.kind {
        Kind::Server { reply, payload, connections, .. } => {
            Some(targets::share_of_bare(reply, payload, connections))
        }
        _ => None,
    };
    let cpu_target = |case: &Case| match case.kind {
        Kind::Server { revision, reply, payload, connections } => {
            let is_promised = (revision, reply, payload) == (cases::MODERN, "json", cases::SHORT);
            Some((is_promised && connections > 1).then_some(1.35))
        }
        _ => None,
    };
    let clients = |case: &Case| match case.kind {
        Kind::Client { mode: "shared", .. } | Kind::Server { .. } | Kind::Tools(_) => None,
        Kind::Client { tasks, .. } => Some((tasks == 16).then_some(0.70)),
    };
    let to_bare = "bare hyper is 1; longer is better";
    let less = "bare hyper is 1; shorter is better";
    vec![
        (
            "http-throughput.svg",
            chart(results, "Calls a second", to_bare, |s| s.calls_per_s, servers),
        ),
        ("http-cpu.svg", chart(results, "Server CPU a call", less, |s| s.cpu_us, cpu_target)),
        (
            "http-client.svg",
            chart(results, "Calls a second of a client", to_bare, |s| s.calls_per_s, clients),
        ),
    ]
}

fn chart(
    results: &Results,
    title: &str,
    note: &str,
    pick: fn(&Sample) -> f64,
    target: impl Fn(&Case) -> Option<Option<f64>>,
) -> String {
    let mut groups = Vec::new();
    for case in cases::all() {
        let Some(target) = target(&case) else { continue };
        let bars = results.labels.iter().filter(|label| **label != "bare").filter_map(|label| {
            let value = results.figures.ratio(&case, label, "bare", pick)?.of_medians;
            let target = target.filter(|_| *label == OURS);
            Some(Bar { label, value, text: format!("{value:.2}"), target })
        });
        groups.push(Group { name: case.name.clone(), bars: bars.collect() });
    }
    Chart { title: title.into(), note: note.into(), groups }.svg()
}

fn table(results: &Results, wanted: impl Fn(&Case) -> bool) -> String {
    let mut out =
        "| case | | calls/s | ÷ bare | ÷ rmcp | CPU | ÷ bare | p50 | p99 |\n|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for case in cases::all().iter().filter(|case| wanted(case)) {
        for label in &results.labels {
            let Some(median) = results.figures.median(case, label) else { continue };
            let ratio = |to, pick| {
                results
                    .figures
                    .ratio(case, label, to, pick)
                    .map_or("–".into(), |ratio| format!("{:.2}", ratio.of_medians))
            };
            out += &format!(
                "| {} | {label} | {} | {} | {} | {:.2} µs | {} | {:.0} µs | {:.0} µs |\n",
                case.name,
                thousands(median.calls_per_s as u64),
                ratio("bare", |s| s.calls_per_s),
                ratio("rmcp", |s| s.calls_per_s),
                median.cpu_us,
                ratio("bare", |s| s.cpu_us),
                median.p50_us,
                median.p99_us
            );
        }
    }
    out
}

/// From this load average on the programs measured had to share their cores.
const BUSY: f64 = 1.5;
