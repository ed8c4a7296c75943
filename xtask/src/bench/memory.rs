//! Things that are there and do nothing → the memory that each of them takes, here and in a bare program.

use super::counted::Measurement;
use super::gateway::cases::{BARE, GATEWAYS, SESSION, STATELESS};
use super::growth::axes::{
    self, BARE_GATEWAY, GATEWAY, Line, Load, SERVER, gateway, hop, idle, idle_lines, line, told,
};
use super::programs::{self, Programs};
use super::{is_quick, number, thousands, verdict, write_result};

/// Runs the benchmark.
pub fn run(args: &[String]) -> Result<(), String> {
    let is_quick = is_quick(args, "memory", USAGE)?;
    crate::run::raise_files();
    let programs = Programs::build_quickly(axes::PROGRAMS)?;
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for thing in &THINGS {
        let count = if is_quick { thing.count / 10 } else { thing.count };
        for Line { label, measurement, .. } in thing.lines {
            eprintln!("{}, {label}", thing.what);
            match held(&programs, *measurement, count) {
                Ok(held) => rows.push(row(thing, count, label, &held)),
                Err(sentence) => failures.push(format!("`{label}`, {}: {sentence}", thing.what)),
            }
        }
    }
    let mut text = format!("{HEAD}{}{TEXTS_HEAD}", rows.concat());
    for Line { label, measurement, .. } in &TEXTS {
        eprintln!("a text of {LONG} bytes, {label}");
        match peaks(&programs, *measurement) {
            Ok(held) => text += &long_row(label, &held),
            Err(sentence) => {
                failures.push(format!("`{label}`, a text of {LONG} bytes: {sentence}"))
            }
        }
    }
    print!("{text}");
    if !is_quick && failures.is_empty() {
        write_result("memory.md", &text)?;
    }
    verdict(&failures)
}

/// What there may be many of, and the load that has so many of it.
struct Thing {
    what: &'static str,
    count: u64,
    lines: &'static [Line],
}

/// Resident memory with one and with many, in KiB.
struct Held {
    one: f64,
    many: f64,
}

/// A few calls beside what is held, so that all of it was taken in; then the memory.
fn held(programs: &Programs, load: Load, count: u64) -> Result<Held, String> {
    let resident = |count| memory(programs, &load(programs, count), "200", "resident_kib");
    Ok(Held { one: resident(1)?, many: resident(count)? })
}

/// The most memory while a short text is echoed, and while a long one is.
fn peaks(programs: &Programs, load: Load) -> Result<Held, String> {
    let peak = |length| memory(programs, &load(programs, length), "3", "peak_kib");
    Ok(Held { one: peak(1)?, many: peak(LONG)? })
}

fn memory(
    programs: &Programs,
    load: &Measurement,
    calls: &str,
    which: &str,
) -> Result<f64, String> {
    let report = programs.drive(&load.words(&["--calls", calls], &[]))?;
    let kib = number(&report, which);
    kib.ok_or_else(|| format!("the driver reported no memory: {report}"))
}

fn row(thing: &Thing, count: u64, label: &str, held: &Held) -> String {
    let each = (held.many - held.one).max(0.0) * 1024.0 / (count - 1) as f64;
    format!(
        "| {} | {} | {label} | {} KiB | {} KiB | {} bytes |\n",
        thing.what,
        thousands(count),
        thousands(held.one as u64),
        thousands(held.many as u64),
        thousands(each as u64)
    )
}

fn long_row(label: &str, held: &Held) -> String {
    let times = (held.many - held.one).max(0.0) * 1024.0 / LONG as f64;
    format!(
        "| {label} | {} KiB | {} KiB | {times:.1} |\n",
        thousands(held.one as u64),
        thousands(held.many as u64)
    )
}

/// A text of this many bytes is echoed.
static TEXTS: [Line; 2] = [
    line(BARE_GATEWAY, |programs, length| {
        told(hop(programs, STATELESS, &GATEWAYS[0]), "--payload", length)
    }),
    line(GATEWAY, |programs, length| told(gateway(programs, STATELESS), "--payload", length)),
];

const LONG: u64 = 16_000_000;

static THINGS: [Thing; 7] = [
    Thing {
        what: "a session, all on one connection",
        count: 9000,
        lines: &idle_lines!("--sessions"),
    },
    Thing {
        what: "a session on an idle connection of its own",
        count: 1000,
        lines: &idle_lines!("--idle"),
    },
    Thing { what: "the same with a GET stream", count: 1000, lines: &idle_lines!("--streams") },
    Thing { what: "the same with a call in flight", count: 1000, lines: &idle_lines!("--parked") },
    Thing {
        what: "the same with a call that waits for an answer of the user",
        count: 1000,
        lines: &[line(SERVER, |programs, count| {
            idle(programs, &programs::TRUNKLINE.http, "--questions", count)
        })],
    },
    Thing { what: "a tool", count: 9000, lines: &axes::TOOLS },
    Thing { what: "a server in the catalog", count: 1000, lines: &[line(GATEWAY, axes::servers)] },
];

const HEAD: &str = "# What things take in memory\n\n\
    Written by `cargo xtask bench memory`: resident memory of the program with one of a thing and with many, after a few calls\n\
    beside them, and the difference for each. The programs are built with little optimization, which moves code and not what\n\
    is held. `bare` is hyper with nothing around it, `trunkline` a server, `gateway` the\n\
    library of `trunkline serve`. A call in flight has a session and a connection of its own: what it takes itself is the\n\
    difference to the row of idle connections. [sessions.md](sessions.md) compares with rmcp.\n\n\
    | one of these | how many | | one | many | each |\n|---|---|---|---|---|---|\n";

const TEXTS_HEAD: &str = "\n## Long texts\n\n\
    The most memory that a gateway ever had resident while a text of 16 MB was echoed through it, beside a text of one byte:\n\
    how many times the text it holds at once.\n\n\
    | | short | long | times |\n|---|---|---|---|\n";

pub const USAGE: &str = "\
cargo xtask bench memory [--quick]
  --quick               a tenth of each; nothing is written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_the_difference_by_all_but_one() {
        let row = row(&THINGS[0], 1001, BARE, &Held { one: 1000.0, many: 11_000.0 });
        assert!(
            row.ends_with("| 1,001 | bare | 1,000 KiB | 11,000 KiB | 10,240 bytes |\n"),
            "{row}"
        );
    }
}
