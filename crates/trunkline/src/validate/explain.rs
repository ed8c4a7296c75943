//! The faults of several alternative forms → the ones worth reporting.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Members;
use super::check::Checker;
use super::render::{Types, described, listed, literal, shortened};
use super::suggest::meant;

/// A fault at one place.
#[derive(Clone, Debug)]
pub(super) struct Fault<'a> {
    pub(super) pointer: String,
    pub(super) kind: Kind<'a>,
    /// The text after the name of the place: "must be a text". If it is empty, the kind supplies
    /// it.
    pub(super) says: String,
    /// The value at that place.
    pub(super) found: Option<&'a Value>,
    pub(super) hint: Option<Hint<'a>>,
}

/// The kind of a fault: some kinds show that another form was meant.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    Type(Types),
    /// The allowed values, in one list or several.
    Choice(Vec<&'a [Value]>),
    Missing,
    Unknown,
    Other,
}

/// A hint, computed only when the fault is reported: most never are.
#[derive(Clone, Debug)]
pub(super) enum Hint<'a> {
    Missing { name: &'a str, required: &'a [String], members: &'a Map<String, Value> },
    Unknown { name: &'a str, rules: &'a Members, members: &'a Map<String, Value> },
}

/// What a message must not reveal of a fault.
pub(super) enum Redaction<'s> {
    Nothing,
    /// The values, and names taken from them.
    Values,
    /// The same, and the place within the secret at this place.
    Within(&'s str),
}

impl Kind<'_> {
    fn in_words(&self) -> String {
        match self {
            Self::Type(types) => format!("must be {}", types.in_words()),
            Self::Choice(lists) => {
                let count = lists.iter().map(|it| it.len()).sum::<usize>();
                let words = lists.iter().copied().flatten().map(literal);
                match (&lists[..], count) {
                    (_, 1) => format!("must be {}", listed(words, "or")),
                    // Several forms may share some.
                    ([_, _, ..], ..=MOST_SORTED) => {
                        let mut known = BTreeSet::new();
                        let words = words.filter(|it| known.insert(it.clone()));
                        format!("must be one of {}", listed(words, "or"))
                    }
                    _ => format!("must be one of {}", shortened(count, words, "or")),
                }
            }
            Self::Missing => "is missing".to_owned(),
            Self::Unknown => "is not known".to_owned(),
            Self::Other => "is wrong".to_owned(),
        }
    }
}

impl Hint<'_> {
    fn in_words(&self, shows_names: bool) -> String {
        match self {
            Self::Missing { name, required, members } => {
                // An unknown name that is nearly the missing one was probably meant.
                let others = members.keys().map(String::as_str);
                let others =
                    others.take(MOST_SORTED).filter(|it| !required.iter().any(|n| n == it));
                match meant(name, others).filter(|_| shows_names) {
                    Some(near) => format!("; is `{near}` meant to be it?"),
                    None => String::new(),
                }
            }
            Self::Unknown { name, rules, members } => {
                let free = rules.named.keys().filter(|it| !members.contains_key(*it));
                match meant(name, free.map(String::as_str)) {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None if rules.named.is_empty() => String::new(),
                    None => {
                        let known = rules.named.keys().map(|it| format!("`{it}`"));
                        format!("; there is {}", shortened(rules.named.len(), known, "and"))
                    }
                }
            }
        }
    }
}

impl Fault<'_> {
    pub(super) fn says(&self) -> String {
        if self.says.is_empty() { self.kind.in_words() } else { self.says.clone() }
    }

    pub(super) fn in_words(&self, subject: &str, redaction: &Redaction<'_>) -> String {
        let place = match (redaction, self.pointer.as_str()) {
            (Redaction::Within(""), inside) if !inside.is_empty() => "Something in it".to_owned(),
            (Redaction::Within(secret), inside) if inside != *secret => {
                format!("Something in `{secret}`")
            }
            (_, "") => subject.to_owned(),
            (_, pointer) => format!("`{pointer}`"),
        };
        let mut says = self.says();
        let is_open = matches!(redaction, Redaction::Nothing);
        if let Some(hint) = &self.hint {
            says += &hint.in_words(is_open);
        }
        let end = if says.ends_with('?') { "" } else { "." };
        match self.found.filter(|_| is_open) {
            Some(found) => format!("{place} {says}, but is {}{end}", described(found)),
            None => format!("{place} {says}{end}"),
        }
    }
}

impl<'a> Checker<'a> {
    /// A value matches none of its alternative forms. Reports the faults of the form that was
    /// probably meant, or what all of them require.
    pub(super) fn fits_none(&mut self, mut failures: Vec<Vec<Fault<'a>>>, value: &'a Value) {
        let here = self.pointer();
        let count = failures.len();
        let faults = failures.iter().map(Vec::len).sum::<usize>();
        self.work.spend(COST_OF_WEIGHING * (faults + count) + here.len() * faults / 8);
        if self.work.is_spent() {
            return;
        }
        let is_inside = |it: &Fault<'_>| parent(&it.pointer) == Some(&here);
        // Drops forms of another type, then those with another tag, then those with other members.
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
            // The reasons contain places, which may be in a secret.
            says: match self.has_secrets() {
                true => format!("fits none of the {count} forms it may have"),
                false => {
                    format!("fits none of the {count} forms it may have{}", reasons(&failures))
                }
            },
            found: None,
            hint: None,
        });
        let found = if fault.pointer == here { Some(value) } else { fault.found };
        let found = found.filter(|_| matches!(fault.kind, Kind::Type(_) | Kind::Choice(_)));
        self.note(Fault { found, ..fault });
    }
}

/// Drops the forms with a disqualifying fault, unless all have one.
fn keep_if_any(failures: &mut Vec<Vec<Fault<'_>>>, is_fine: impl Fn(&Fault<'_>) -> bool) {
    let is_kept = |faults: &Vec<Fault<'_>>| faults.iter().all(&is_fine);
    if failures.iter().any(is_kept) {
        failures.retain(is_kept);
    }
}

/// What every form requires at the same place, as one fault.
fn common<'a>(failures: &[Vec<Fault<'a>>]) -> Option<Fault<'a>> {
    let first = failures.first()?;
    // The allowed tags say more than what is missing without one.
    let (missing, others): (Vec<_>, Vec<_>) = first.iter().partition(|it| it.kind == Kind::Missing);
    others.into_iter().chain(missing).take(MOST_CANDIDATES).find_map(|candidate| {
        let same = failures.iter().map(|faults| {
            faults.iter().find(|it| match (&it.kind, &candidate.kind) {
                (Kind::Type(_), Kind::Type(_)) | (Kind::Choice(_), Kind::Choice(_)) => {
                    it.pointer == candidate.pointer
                }
                (Kind::Missing, Kind::Missing) => parent(&it.pointer) == parent(&candidate.pointer),
                _ => false,
            })
        });
        let same: Vec<&Fault<'a>> = same.collect::<Option<_>>()?;
        joined(candidate, &same)
    })
}

fn joined<'a>(candidate: &Fault<'a>, same: &[&Fault<'a>]) -> Option<Fault<'a>> {
    let kind = match &candidate.kind {
        Kind::Type(_) => {
            Kind::Type(same.iter().fold(Types::default(), |types, it| match it.kind {
                Kind::Type(more) => types.with(more),
                _ => types,
            }))
        }
        Kind::Choice(_) => {
            let lists = same.iter().filter_map(|it| match &it.kind {
                Kind::Choice(lists) => Some(lists),
                _ => None,
            });
            Kind::Choice(lists.flatten().copied().collect())
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
            return Some(Fault { pointer, kind: Kind::Other, says, found: None, hint: None });
        }
        _ => return None,
    };
    Some(Fault { kind, says: String::new(), ..candidate.clone() })
}

/// The first fault of the first few forms.
fn reasons(failures: &[Vec<Fault<'_>>]) -> String {
    let first = failures.iter().take(MOST_REASONS).filter_map(|it| it.first());
    let reasons: Vec<_> = first
        .enumerate()
        .map(|(index, it)| match it.pointer.as_str() {
            "" => format!("{}: it {}", index + 1, it.says()),
            pointer => format!("{}: `{pointer}` {}", index + 1, it.says()),
        })
        .collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

const MOST_REASONS: usize = 3;
/// How many faults of one form are searched for in the others.
const MOST_CANDIDATES: usize = 10;
/// How many names or values are compared for a hint.
const MOST_SORTED: usize = 200;
/// Comparing one fault of one form.
const COST_OF_WEIGHING: usize = 150;
