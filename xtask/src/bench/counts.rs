//! A measurement → the instructions and the system calls that one call of it takes, and a table of several.

use std::collections::BTreeMap;

use super::counted::Measurement;
use super::programs::{self, Programs};
use super::thousands;

/// What one call takes when nothing else is measured.
pub struct Counts {
    pub instructions: f64,
    pub system_calls: BTreeMap<String, f64>,
}

impl Counts {
    /// Of 2 N calls less those of N: start and end cancel out.
    pub fn of(programs: &Programs, it: &Measurement) -> Result<Counts, String> {
        let drive = |calls: u64, under: &[String]| {
            let amount = ["--deadline", "300", "--calls", &calls.to_string()];
            programs.drive(&it.words(&amount, under)).map(drop)
        };
        let callgrind = programs.callgrind(&it.file());
        let instructions = |calls| {
            drive(calls, &callgrind.command)?;
            Ok::<_, String>(callgrind.profile()?.instructions)
        };
        let (once, twice) = (instructions(CALLS)?, instructions(2 * CALLS)?);
        let strace = programs.strace(&it.file());
        let system_calls = |calls| {
            drive(calls, &strace.command)?;
            strace.system_calls()
        };
        let (few, many) = (system_calls(CALLS)?, system_calls(2 * CALLS)?);
        let per_call = |count: u64, of: u64| of.saturating_sub(count) as f64 / CALLS as f64;
        let share = |(name, count): (&String, &u64)| {
            (name.clone(), per_call(few.get(name).copied().unwrap_or(0), *count))
        };
        Ok(Counts {
            instructions: per_call(once, twice),
            system_calls: many.iter().map(share).filter(|(_, count)| *count >= 0.005).collect(),
        })
    }

    /// Those that move the bytes of calls; waiting is shared by many.
    pub fn reads_and_writes(&self) -> f64 {
        let moves =
            |name: &str| ["read", "write", "recv", "send"].iter().any(|kind| name.contains(kind));
        self.system_calls.iter().filter(|(name, _)| moves(name)).map(|(_, count)| count).sum()
    }
}

/// Installs what counting needs.
pub fn prepare() -> Result<(), String> {
    ["valgrind", "strace"].into_iter().try_for_each(programs::ensure)
}

/// A row for what was counted of each case and program.
pub fn table(counted: &[(String, &'static str, Counts)]) -> String {
    let mut out =
        "| case | | instructions | reads and writes | system calls |\n|---|---|---|---|---|\n"
            .to_owned();
    for (case, label, counts) in counted {
        let mut calls: Vec<_> = counts.system_calls.iter().collect();
        calls.sort_by(|a, b| b.1.total_cmp(a.1));
        let calls: Vec<String> =
            calls.iter().map(|(name, count)| format!("{name} {count:.2}")).collect();
        out += &format!(
            "| {case} | {label} | {} | {:.2} | {} |\n",
            thousands(counts.instructions as u64),
            counts.reads_and_writes(),
            calls.join(", ")
        );
    }
    out
}

const CALLS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_no_read_or_write() {
        let calls = [("recvfrom", 1.0), ("writev", 1.5), ("epoll_wait", 0.5)];
        let system_calls = calls.map(|(name, count)| (name.to_owned(), count)).into();
        let counts = Counts { instructions: 1234.5, system_calls };
        assert_eq!(counts.reads_and_writes(), 2.5);
        let row = "| case | bare | 1,234 | 2.50 | writev 1.50, recvfrom 1.00, epoll_wait 0.50 |\n";
        assert!(table(&[("case".into(), "bare", counts)]).ends_with(row));
    }
}
