//! The HTTP servers → the memory of a session here, on bare hyper and in rmcp.

use super::chart::{Bar, Chart, Group};
use super::programs::{self, Program, Programs};
use super::{is_quick, number, thousands, write_result};

/// Runs the benchmark. A missed target is a figure, not an error; a server that fails is one.
pub fn run(args: &[String]) -> Result<(), String> {
    let is_quick = is_quick(args, "sessions", USAGE)?;
    let servers = SERVERS.iter().map(|(_, program)| *program);
    let programs = Programs::build(servers.chain([&programs::DRIVER]))?;
    let mut failures = Vec::new();
    let mut measured = Vec::new();
    for case in &CASES {
        let count = if is_quick { case.count / 10 } else { case.count };
        for (label, program) in SERVERS {
            eprintln!("{}, {label}", case.name);
            let (count, path) = (count.to_string(), programs.path(program));
            let words = ["sessions", "--count", &count, "--streams", case.streams, "--", &path];
            match programs.drive(&words).and_then(|report| Held::read(&report)) {
                Ok(held) => measured.push((case, label, held)),
                Err(sentence) => failures.push(format!("`{label}`, {}: {sentence}", case.name)),
            }
        }
    }
    let text = text(&measured);
    print!("{text}");
    if !is_quick {
        write_result("sessions.md", &text)?;
        write_result("sessions.svg", &chart(&measured))?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

struct Case {
    name: &'static str,
    count: u32,
    streams: &'static str,
    /// What a session of ours may take at most.
    most_kib: f64,
}

struct Held {
    base_kib: f64,
    full_kib: f64,
    kib_per_session: f64,
    /// The outcome of a request for one more session.
    next: String,
}

impl Held {
    fn read(report: &str) -> Result<Held, String> {
        let need = |key| {
            number(report, key).ok_or_else(|| format!("the driver reported no `{key}`: {report}"))
        };
        let next = report.split_once(r#""next":""#).and_then(|(_, rest)| rest.split('"').next());
        Ok(Held {
            base_kib: need("base_kib")?,
            full_kib: need("full_kib")?,
            kib_per_session: need("kib_per_session")?,
            next: next.unwrap_or_default().to_owned(),
        })
    }
}

fn text(measured: &[(&Case, &str, Held)]) -> String {
    let mut out = "# The memory of a session\n\n\
        Written by `cargo xtask bench sessions`: resident memory before and after that many sessions of 2025-11-25 were\n\
        opened, one of them and its end being no part of it. Sessions without a stream were all opened on one connection;\n\
        each with a stream has a connection of its own.\n\n\
        | case | | before | after | a session | target | one more |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (case, label, held) in measured {
        let target = match *label {
            OURS => format!(
                "≤ {} KiB {}",
                case.most_kib,
                if held.kib_per_session <= case.most_kib { "✓" } else { "✗" }
            ),
            _ => String::new(),
        };
        out += &format!(
            "| {} | {label} | {} KiB | {} KiB | {:.1} KiB | {target} | {} |\n",
            case.name,
            thousands(held.base_kib as u64),
            thousands(held.full_kib as u64),
            held.kib_per_session,
            held.next
        );
    }
    out
}

fn chart(measured: &[(&Case, &'static str, Held)]) -> String {
    let groups = CASES.iter().map(|case| {
        let of_case = measured.iter().filter(|(of, ..)| of.name == case.name);
        let bars = of_case.map(|(_, label, held)| Bar {
            label,
            value: held.kib_per_session,
            text: format!("{:.1} KiB", held.kib_per_session),
            target: (*label == OURS).then_some(case.most_kib),
        });
        Group { name: case.name.into(), bars: bars.collect() }
    });
    Chart {
        title: "Memory of a session".into(),
        note: "KiB; shorter is better".into(),
        groups: groups.collect(),
    }
    .svg()
}

pub const USAGE: &str = "\
cargo xtask bench sessions [--quick]
  --quick               a tenth of the sessions; nothing is written";

const OURS: &str = "trunkline";

static SERVERS: [(&str, &Program); 3] = [
    ("bare", &programs::BARE.http),
    (OURS, &programs::TRUNKLINE.http),
    ("rmcp", &programs::RMCP.http),
];

const CASES: [Case; 2] = [
    Case { name: "10,000 sessions", count: 10_000, streams: "no", most_kib: 8.0 },
    Case { name: "5,000 with a GET stream", count: 5000, streams: "yes", most_kib: 20.0 },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_report_becomes_a_row() {
        let report = r#"{"base_kib":100,"full_kib":900,"kib_per_session":8.5,"label":"x","next":"HTTP/1.1 503 Service Unavailable"}"#;
        let held = Held::read(report).expect("all keys are there");
        let text = text(&[(&CASES[0], OURS, held)]);
        let row = "| 10,000 sessions | trunkline | 100 KiB | 900 KiB | 8.5 KiB | ≤ 8 KiB ✗ | HTTP/1.1 503 Service Unavailable |";
        assert!(text.contains(row), "{text}");
    }
}
