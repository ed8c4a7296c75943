//! The faults of several forms that a value might have had → the ones worth telling.

use serde_json::Value;

use super::check::Checker;
use super::words::{Types, described, listed};

/// What is wrong in one place.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) pointer: String,
    pub(super) kind: Kind,
    /// What follows the name of the place: "must be a text".
    pub(super) says: String,
    /// What was there instead.
    pub(super) found: Option<String>,
}

/// What sort of fault it is: some say that another form was meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Type(Types),
    Choice(Vec<String>),
    Missing,
    Unknown,
    Other,
}

impl Kind {
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Type(types) => format!("must be {}", types.in_words()),
            Self::Choice(values) => match &values[..] {
                [only] => format!("must be {only}"),
                _ => format!("must be one of {}", listed(values.iter().cloned(), "or")),
            },
            Self::Missing => "is missing".to_owned(),
            Self::Unknown => "is not known".to_owned(),
            Self::Other => "is wrong".to_owned(),
        }
    }
}

impl Fault {
    pub(super) fn in_words(&self, subject: &str, is_secret: bool) -> String {
        let place = match self.pointer.as_str() {
            "" => subject.to_owned(),
            pointer => format!("`{pointer}`"),
        };
        let end = if self.says.ends_with('?') { "" } else { "." };
        match self.found.as_ref().filter(|_| !is_secret) {
            Some(found) => format!("{place} {}, but is {found}{end}", self.says),
            None => format!("{place} {}{end}", self.says),
        }
    }
}

impl Checker<'_> {
    /// A value has none of the forms it may have. Tells what is wrong with the one that was
    /// probably meant, or what all of them want.
    pub(super) fn fits_none(&mut self, mut failures: Vec<Vec<Fault>>, value: &Value) {
        let here = self.pointer();
        let count = failures.len();
        let is_inside = |it: &Fault| parent(&it.pointer) == Some(&here);
        // A form of another type was not meant; then one with another name in its tag; then one
        // with other members.
        keep_if_any(&mut failures, |it| !matches!(it.kind, Kind::Type(_)) || it.pointer != here);
        keep_if_any(&mut failures, |it| {
            !matches!(it.kind, Kind::Choice(_)) || !(it.pointer == here || is_inside(it))
        });
        keep_if_any(&mut failures, |it| {
            !matches!(it.kind, Kind::Missing | Kind::Unknown) || !is_inside(it)
        });
        if let [only] = &mut failures[..] {
            let only = std::mem::take(only);
            return only.into_iter().for_each(|it| self.note(it));
        }
        let fault = common(&failures).unwrap_or_else(|| Fault {
            pointer: here.clone(),
            kind: Kind::Other,
            says: format!("fits none of the {count} forms it may have{}", reasons(&failures)),
            found: None,
        });
        let found = if fault.pointer == here { Some(described(value)) } else { fault.found };
        let found = found.filter(|_| matches!(fault.kind, Kind::Type(_) | Kind::Choice(_)));
        self.note(Fault { found, ..fault });
    }
}

/// Drops the forms with a fault that speaks against them, unless all have one.
fn keep_if_any(failures: &mut Vec<Vec<Fault>>, is_fine: impl Fn(&Fault) -> bool) {
    let is_kept = |faults: &Vec<Fault>| faults.iter().all(&is_fine);
    if failures.iter().any(is_kept) {
        failures.retain(is_kept);
    }
}

/// What every form wants in one and the same place, as one fault.
fn common(failures: &[Vec<Fault>]) -> Option<Fault> {
    let first = failures.first()?;
    // What a tag may be tells more than what is missing without it.
    let (missing, others): (Vec<_>, Vec<_>) = first.iter().partition(|it| it.kind == Kind::Missing);
    others.into_iter().chain(missing).find_map(|candidate| {
        let same = failures.iter().map(|faults| {
            faults.iter().find(|it| match (&it.kind, &candidate.kind) {
                (Kind::Type(_), Kind::Type(_)) | (Kind::Choice(_), Kind::Choice(_)) => {
                    it.pointer == candidate.pointer
                }
                (Kind::Missing, Kind::Missing) => parent(&it.pointer) == parent(&candidate.pointer),
                _ => false,
            })
        });
        let same: Vec<&Fault> = same.collect::<Option<_>>()?;
        joined(candidate, &same)
    })
}

fn joined(candidate: &Fault, same: &[&Fault]) -> Option<Fault> {
    let kind = match &candidate.kind {
        Kind::Type(_) => {
            Kind::Type(same.iter().fold(Types::default(), |types, it| match it.kind {
                Kind::Type(more) => types.with(more),
                _ => types,
            }))
        }
        Kind::Choice(_) => {
            let mut values: Vec<String> = Vec::new();
            for fault in same {
                let Kind::Choice(more) = &fault.kind else { continue };
                values.extend(
                    more.iter().filter(|it| !values.contains(it)).cloned().collect::<Vec<_>>(),
                );
            }
            Kind::Choice(values)
        }
        Kind::Missing => {
            let mut names: Vec<_> =
                same.iter().filter_map(|it| it.pointer.rsplit('/').next()).collect();
            names.dedup();
            if names.len() == 1 {
                return Some(candidate.clone());
            }
            let names = names.into_iter().map(|name| format!("`{name}`"));
            let says = format!("must have one of {}", listed(names, "or"));
            let pointer = parent(&candidate.pointer)?.to_owned();
            return Some(Fault { pointer, kind: Kind::Other, says, found: None });
        }
        _ => return None,
    };
    let says = kind.in_words();
    Some(Fault { kind, says, ..candidate.clone() })
}

/// The first fault of the first few forms.
fn reasons(failures: &[Vec<Fault>]) -> String {
    let first = failures.iter().take(MOST_REASONS).filter_map(|it| it.first());
    let reasons: Vec<_> = first
        .enumerate()
        .map(|(index, it)| match it.pointer.as_str() {
            "" => format!("{}: it {}", index + 1, it.says),
            pointer => format!("{}: `{pointer}` {}", index + 1, it.says),
        })
        .collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

const MOST_REASONS: usize = 3;
