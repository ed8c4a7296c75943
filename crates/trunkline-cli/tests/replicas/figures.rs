//! What happened in a scene, counted by kind, and what each caller was told of its calls.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Counters by name. What begins with `error` is one; of what begins with `ms` the largest counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures(BTreeMap<String, u64>);

impl Figures {
    pub(crate) fn add(&mut self, what: impl Into<String>) {
        self.count(what, 1);
    }

    pub(crate) fn count(&mut self, what: impl Into<String>, times: u64) {
        let what = what.into();
        let is_time = what.starts_with("ms ");
        let counted = self.0.entry(what).or_default();
        *counted = if is_time { times.max(*counted) } else { *counted + times };
    }

    pub(crate) fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// All that is not as it should be wherever no replica is killed.
    pub(crate) fn errors(&self) -> u64 {
        self.0.iter().filter(|(name, _)| name.starts_with("error")).map(|(_, times)| times).sum()
    }

    /// Answers that tell a client that it did something wrong, which no failure of a replica is.
    pub(crate) fn blames(&self) -> u64 {
        let blames = ["error HTTP 4", "answers refused"];
        let counted =
            self.0.iter().filter(|(name, _)| blames.iter().any(|it| name.starts_with(it)));
        counted.map(|(_, times)| times).sum()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, times) in &other.0 {
            self.count(name, *times);
        }
    }

    /// Fails unless there is none of these.
    pub(crate) fn none(&self, of: &[&str]) {
        for what in of {
            assert_eq!(self.of(what), 0, "{what}: {self}");
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.0.iter().map(|(name, times)| format!("{name} {times}"));
        f.write_str(&each.collect::<Vec<_>>().join(", "))
    }
}

/// What a caller knows of a call after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has the result.
    Done,
    /// The gateway says that it did not run.
    NotDone,
    /// Nobody knows.
    Unknown,
}

/// The calls of a scene, by their arguments, which are unique.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Vec<(String, Told)>);

impl Ledger {
    pub(crate) fn note(&mut self, argument: String, told: Told) {
        self.0.push((argument, told));
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How often a session went on at another gateway. Calls are noted in their order; `-` ends the name of a
    /// caller.
    pub(crate) fn moves(&self, carried_out: &HashMap<String, u64>) -> u64 {
        let (mut moves, mut at) = (0, HashMap::new());
        for (argument, _) in &self.0 {
            let (Some((caller, _)), Some(gateway)) =
                (argument.rsplit_once('-'), carried_out.get(argument))
            else {
                continue;
            };
            let before = at.insert(caller, gateway);
            moves += u64::from(before.is_some_and(|before| before != gateway));
        }
        moves
    }

    /// Compares what callers were told with what servers did.
    pub(crate) fn compare(&self, executed: &HashMap<String, u64>, figures: &mut Figures) {
        for (argument, told) in &self.0 {
            let times = executed.get(argument).copied().unwrap_or_default();
            match (told, times) {
                (_, 2..) => figures.add("executed twice"),
                (Told::Done, 0) => figures.add("answered but not executed"),
                (Told::NotDone, 1) => figures.add("executed but said to be not done"),
                _ => {}
            }
        }
    }
}

/// What no scene may have.
pub(crate) const NEVER: &[&str] = &[
    "answered but not executed",
    "crossed answers",
    "doubled events",
    "error, a resumed stream ended without the answer",
    "executed but said to be not done",
    "executed twice",
    "lost sessions",
    "sessions not served at the end",
    "unanswered calls",
];
