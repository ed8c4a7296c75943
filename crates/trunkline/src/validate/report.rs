//! Faults and their places → sentences without secrets.

use serde_json::Value;

use super::budget::COST_OF_FAULT;
use super::check::{Checker, Step};
use super::explain::{Fault, Hint, Kind, Redaction};
use super::render::counted;
use super::{MOST_VIOLATIONS, Violation};

impl<'a> Checker<'a> {
    pub(super) fn violations(mut self, value: &'a Value) -> Vec<Violation> {
        self.run(0, value);
        if self.work.is_spent() {
            let why = self.work.why.take();
            let why = why.unwrap_or_else(|| "is too much to be checked against its schema".into());
            self.faults.clear();
            self.failed = 0;
            self.place.clear();
            self.fault(Kind::Other, &why);
        }
        let mut violations: Vec<Violation> = Vec::new();
        let mut more = self.failed - self.faults.len();
        for fault in std::mem::take(&mut self.faults) {
            let redaction = self.redaction(&fault.pointer);
            let message = fault.in_words(self.subject, &redaction);
            let pointer = match redaction {
                Redaction::Within(secret) => secret.to_owned(),
                _ => fault.pointer,
            };
            if violations.iter().any(|it| it.message == message) {
                continue;
            }
            match violations.len() < MOST_VIOLATIONS {
                true => violations.push(Violation { pointer, message }),
                false => more += 1,
            }
        }
        if more > 0 {
            let message = format!("And {} more.", counted(more as u64, "fault", "faults"));
            violations.push(Violation { pointer: String::new(), message });
        }
        violations
    }

    /// What must not be revealed about a place.
    fn redaction(&self, pointer: &str) -> Redaction<'_> {
        let ends = pointer.match_indices('/').map(|it| it.0).chain([pointer.len()]);
        let mut redaction = if self.shows_values { Redaction::Nothing } else { Redaction::Values };
        for end in ends {
            let place = &pointer[..end];
            if let Some(secret) = self.secrets.get(place) {
                return Redaction::Within(secret);
            }
            // The root may have members that have nothing to do with its secrets.
            if self.holders.contains(place) && (end > 0 || pointer.is_empty()) {
                redaction = Redaction::Values;
            }
        }
        redaction
    }

    pub(super) fn fault(&mut self, kind: Kind<'a>, says: &str) {
        self.add(kind, says, None, None);
    }

    pub(super) fn fault_with(&mut self, kind: Kind<'a>, hint: Hint<'a>) {
        self.add(kind, "", None, Some(hint));
    }

    /// A fault of the value itself. For an empty text, the kind supplies it.
    pub(super) fn fault_of(&mut self, kind: Kind<'a>, value: &'a Value, says: &str) {
        self.add(kind, says, Some(value), None);
    }

    fn add(
        &mut self,
        kind: Kind<'a>,
        says: &str,
        found: Option<&'a Value>,
        hint: Option<Hint<'a>>,
    ) {
        match self.faults.len() < MOST_FAULTS {
            true => {
                let pointer = self.pointer();
                self.note(Fault { pointer, kind, says: says.to_owned(), found, hint });
            }
            false => self.failed += 1,
        }
    }

    pub(super) fn note(&mut self, fault: Fault<'a>) {
        self.work.spend(COST_OF_FAULT + fault.pointer.len() + fault.says.len());
        self.failed += 1;
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        }
    }

    /// Records that a secret is at this place, or somewhere inside.
    pub(super) fn guard(&mut self, is_secret: bool) {
        let pointer = self.pointer();
        self.work.spend(COST_OF_FAULT + pointer.len());
        match is_secret {
            true => self.secrets.insert(pointer),
            false => self.holders.insert(pointer),
        };
    }

    pub(super) fn pointer(&self) -> String {
        use std::fmt::Write;
        self.place.iter().fold(String::new(), |mut text, step| {
            let written = match step {
                Step::Name(name) => {
                    write!(text, "/{}", name.replace('~', "~0").replace('/', "~1"))
                }
                Step::Index(index) => write!(text, "/{index}"),
            };
            written.expect("a `String` takes all that is written to it");
            text
        })
    }
}

/// How many faults are recorded.
pub(super) const MOST_FAULTS: usize = 100;
