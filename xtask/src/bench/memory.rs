//! Things that are there and do nothing → the memory that each of them takes, here and in a bare program.

use super::counted::Measurement;
use super::figures::needed;
use super::gateway::cases::{BARE, SESSION, STATELESS};
use super::growth::axes::{
    self, GATEWAY, Line, Load, SERVER, gateway, idle, idle_lines, line, told,
};
use super::programs::{self, Programs};
use super::{is_quick, thousands, verdict, write_result};

/// Runs the benchmark.
pub fn run(args: &[String]) -> Result<(), String> {
    let is_quick = is_quick(args, "memory", USAGE)?;
    crate::run::raise_files();
    let programs = Programs::build_quickly(axes::PROGRAMS)?;
    let (mut rows, mut eaches, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    for thing in &THINGS {
        let count = if is_quick { thing.count / 10 } else { thing.count };
        for Line { label, measurement } in thing.lines {
            eprintln!("{}, {label}", thing.what);
            match held(&programs, *measurement, count) {
                Ok(held) => {
                    eaches.push((thing.what, *label, held.each()));
                    rows.push(row(thing, label, &held));
                }
                Err(sentence) => failures.push(format!("`{label}`, {}: {sentence}", thing.what)),
            }
        }
    }
    let text = format!("{HEAD}{}\n{}", rows.concat(), targets(&eaches));
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

/// Resident memory with one, with a tenth and with all, in KiB.
struct Held {
    count: u64,
    one: f64,
    some: f64,
    all: f64,
}

impl Held {
    /// What each takes in bytes, from one to all.
    fn each(&self) -> f64 {
        share(self.all - self.one, self.count - 1)
    }

    /// The same over the first tenth, and over the rest: without a cliff they are alike.
    fn halves(&self) -> [f64; 2] {
        let some = self.count / 10;
        [share(self.some - self.one, some - 1), share(self.all - self.some, self.count - some)]
    }
}

fn share(kib: f64, count: u64) -> f64 {
    kib.max(0.0) * 1024.0 / count as f64
}

/// A few calls beside what is held, so that all of it was taken in; then the memory.
fn held(programs: &Programs, load: Load, count: u64) -> Result<Held, String> {
    let resident = |count| memory(programs, &load(programs, count));
    Ok(Held { count, one: resident(1)?, some: resident(count / 10)?, all: resident(count)? })
}

fn memory(programs: &Programs, load: &Measurement) -> Result<f64, String> {
    let report = programs.drive(&load.words(&["--calls", "200", "--deadline", "300"], &[]))?;
    needed(&report, "resident_kib")
}

fn row(thing: &Thing, label: &str, held: &Held) -> String {
    let bytes = |number: f64| thousands(number as u64);
    let [first, rest] = held.halves();
    format!(
        "| {} | {} | {label} | {} KiB | {} KiB | {} bytes | {} and {} |\n",
        thing.what,
        thousands(held.count),
        bytes(held.one),
        bytes(held.all),
        bytes(held.each()),
        bytes(first),
        bytes(rest),
    )
}

/// What the figures are meant to be.
fn targets(eaches: &[(&str, &str, f64)]) -> String {
    let each = |what: &str, label: &str| {
        eaches.iter().find(|it| (it.0, it.1) == (what, label)).map(|it| it.2)
    };
    let mut out = "| target | measured | |\n|---|---|---|\n".to_owned();
    let mut target = |what: String, measured: Option<f64>, most: f64, unit: &str| {
        let Some(measured) = measured else { return };
        let mark = if measured <= most { "✓" } else { "✗" };
        out += &format!("| {what} | {measured:.2}{unit} | {mark} |\n");
    };
    for label in [SERVER, GATEWAY] {
        let call = each(IN_FLIGHT, label).zip(each(IDLE, label)).map(|(call, idle)| call - idle);
        let what = format!("{label}: a call in flight ≤ 16 KiB beside its session and connection");
        target(what, call.map(|bytes| bytes / 1024.0), 16.0, " KiB");
        let ratio = each(IDLE, label).zip(each(IDLE, BARE)).map(|(ours, bare)| ours / bare);
        let what = format!("{label}: an idle session with its connection ≤ 1.1 of bare hyper's");
        target(what, ratio, 1.1, "");
    }
    out
}

static THINGS: [Thing; 8] = [
    Thing {
        what: "a session, all on one connection",
        count: 9990,
        lines: &idle_lines!("--sessions"),
    },
    Thing { what: IDLE, count: 1000, lines: &idle_lines!("--idle") },
    Thing { what: "the same with a GET stream", count: 1000, lines: &idle_lines!("--streams") },
    Thing { what: IN_FLIGHT, count: 1000, lines: &idle_lines!("--parked") },
    Thing {
        what: "a call of 2026-07-28 in flight on a connection of its own",
        count: 1000,
        lines: &idle_lines!("--parked-stateless", STATELESS),
    },
    Thing {
        what: "the same with a call that waits for an answer of the user",
        count: 1000,
        lines: &[
            line(SERVER, |programs, count| {
                idle(programs, &programs::TRUNKLINE.http, "--questions", count)
            }),
            line(GATEWAY, axes::questions),
        ],
    },
    Thing { what: "a tool", count: 9990, lines: &axes::TOOLS },
    Thing { what: "a server in the catalog", count: 1000, lines: &[line(GATEWAY, axes::servers)] },
];

const IDLE: &str = "a session on an idle connection of its own";
const IN_FLIGHT: &str = "the same with a call in flight";

const HEAD: &str = "# What things take in memory\n\n\
    Written by `cargo xtask bench memory`: resident memory of the program with one of a thing and with many, after a few calls\n\
    beside them, and the difference for each. The last column is the same of the first tenth and of the rest: two figures\n\
    that are alike mean that there is no cliff. The programs are built with little optimization, which moves code and not\n\
    what is held. `bare` is hyper with nothing around it, `trunkline` a server, `gateway` the library of `trunkline serve`.\n\
    A call in flight has a session and a connection of its own: what it takes itself is the difference to the row of idle\n\
    connections, and one of 2026-07-28 has no session. [sessions.md](sessions.md) compares with rmcp, and [texts.md](texts.md) has long texts.\n\n\
    | one of these | how many | | one | many | each | of a tenth, of the rest |\n|---|---|---|---|---|---|---|\n";

pub const USAGE: &str = "\
cargo xtask bench memory [--quick]
  --quick               a tenth of each; nothing is written";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_the_difference_by_all_but_one() {
        let held = Held { count: 1001, one: 1000.0, some: 1099.0, all: 11_000.0 };
        let row = row(&THINGS[0], BARE, &held);
        let expected =
            "| 1,001 | bare | 1,000 KiB | 11,000 KiB | 10,240 bytes | 1,024 and 11,252 |\n";
        assert!(row.ends_with(expected), "{row}");
    }

    #[test]
    fn a_call_in_flight_is_measured_beside_its_connection() {
        let eaches =
            [(IDLE, BARE, 10_000.0), (IDLE, SERVER, 12_000.0), (IN_FLIGHT, SERVER, 32_480.0)];
        let targets = targets(&eaches);
        assert!(targets.contains("connection | 20.00 KiB | ✗ |"), "{targets}");
        assert!(targets.contains("hyper's | 1.20 | ✗ |"), "{targets}");
    }
}
