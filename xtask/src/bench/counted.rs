//! Measurements → what a call of each takes, counted by callgrind, one at a time on every core.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Mutex, PoisonError};

use super::callgrind::PerCall;
use super::programs::Programs;

/// One load of one program.
pub struct Measurement {
    /// What is said while it runs, and the name of its file.
    pub name: String,
    /// The driver's words, without an amount.
    pub load: Vec<String>,
    /// The program that is measured, with its arguments.
    pub command: Vec<String>,
    /// How many calls the shorter run makes, and how many more the longer one does.
    pub calls: (u64, u64),
    /// Whether it is counted from the first call on. The two runs differ in their starts as well, and where there is much to
    /// start that is more than all calls take.
    pub is_late: bool,
}

impl Measurement {
    pub fn new(name: &str, load: &[&str], command: Vec<String>) -> Measurement {
        let load = load.iter().map(|word| (*word).to_owned()).collect();
        Measurement {
            name: name.to_owned(),
            load,
            command,
            calls: (Self::CALLS, Self::CALLS),
            is_late: false,
        }
    }

    /// The driver's words for an amount, the program perhaps started `under` another.
    pub fn words(&self, amount: &[&str], under: &[String]) -> Vec<String> {
        let mut words = self.load.clone();
        words.extend(amount.iter().map(|word| (*word).to_owned()));
        words.push("--".to_owned());
        words.extend(under.iter().chain(&self.command).cloned());
        words
    }

    /// Its name as that of a file.
    pub fn file(&self) -> String {
        self.name.replace(|it: char| !it.is_ascii_alphanumeric(), "-")
    }

    fn count(&self, programs: &Programs, core: u32) -> Result<PerCall, String> {
        let run = |calls: u64| {
            let callgrind = programs.callgrind(&self.file());
            let mut under = callgrind.command.clone();
            let calls = calls.to_string();
            let mut amount = vec!["--calls", &calls];
            if self.is_late {
                under.push("--instr-atstart=no".to_owned());
                amount.extend(["--ready", "vgdb --pid={pid} instrumentation on"]);
            }
            let mut words = self.words(&amount, &under);
            words.splice(1..1, ["--deadline".to_owned(), Self::DEADLINE.to_string()]);
            programs.drive_on(core, &words)?;
            callgrind.profile()
        };
        let (few, more) = self.calls;
        Ok(run(few + more)?.per_call(&run(few)?, more))
    }

    /// Enough for what happens once in a hundred calls to be seen, few enough for seconds under callgrind.
    const CALLS: u64 = 1000;
    /// A program under callgrind on a busy machine takes its time.
    const DEADLINE: u32 = 600;
}

/// What a call of each measurement takes, in their order.
pub fn count(programs: &Programs, all: &[&Measurement]) -> Vec<Result<PerCall, String>> {
    let next = Mutex::new((0..all.len()).collect::<VecDeque<usize>>());
    let counted = Mutex::new(all.iter().map(|_| None).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for core in cores() {
            let (next, counted) = (&next, &counted);
            scope.spawn(move || {
                while let Some(index) = lock(next).pop_front() {
                    eprintln!("counting: {}", all[index].name);
                    let outcome = all[index].count(programs, core);
                    lock(counted)[index] = Some(outcome);
                }
            });
        }
    });
    let counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    let missing = || Err("nobody counted it.".to_owned());
    counted.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cores that this process may use.
pub fn cores() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    listed(list.unwrap_or("0").trim())
}

/// `0-2,5` → its numbers.
fn listed(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_is_read() {
        assert_eq!(listed("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(listed("3"), [3]);
    }

    #[test]
    fn a_measurement_becomes_words_for_the_driver() {
        let measurement =
            Measurement::new("http", &["http", "--reply", "sse"], vec!["bare-http".into()]);
        let words = measurement.words(&["--calls", "5"], &["valgrind".to_owned()]);
        assert_eq!(words.join(" "), "http --reply sse --calls 5 -- valgrind bare-http");
    }
}
