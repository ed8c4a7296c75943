//! Rules + a value → faults. Every rule is tried, so that all faults are told at once.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::explain::{Fault, Kind};
use super::number::{canonical, is_multiple, same};
use super::words::{counted, described, listed, literal, meant};
use super::{Id, MOST_VIOLATIONS, Members, Rule, Schema, Violation};

/// One check of one value.
pub(super) struct Checker<'a> {
    schema: &'a Schema,
    /// What the whole value is called.
    subject: &'static str,
    /// Whether `null` stands for a member that may be left out.
    forgives_null: bool,
    place: Vec<Step<'a>>,
    pub(super) faults: Vec<Fault>,
    /// How many faults there are, kept or not.
    pub(super) failed: usize,
    /// Where secrets are.
    secrets: BTreeSet<String>,
    depth: usize,
    /// How much work is left. References can make a small schema very much work.
    budget: usize,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// What a schema and its parts have looked at, for the `unevaluated…` keywords.
#[derive(Default)]
struct Seen<'a> {
    names: BTreeSet<&'a str>,
    items: BTreeSet<usize>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(schema: &'a Schema, subject: &'static str, forgives_null: bool) -> Self {
        Self {
            schema,
            subject,
            forgives_null,
            place: Vec::new(),
            faults: Vec::new(),
            failed: 0,
            secrets: BTreeSet::new(),
            depth: 0,
            budget: 0,
        }
    }

    pub(super) fn violations(mut self, value: &'a Value) -> Vec<Violation> {
        self.budget = (LEAST_WORK + WORK_PER_VALUE * size(value)).min(MOST_WORK);
        self.run(0, value);
        if self.budget == 0 {
            self.faults.clear();
            self.failed = 0;
            self.place.clear();
            self.fault(Kind::Other, "is too much to be checked against its schema");
        }
        let mut violations: Vec<Violation> = Vec::new();
        let mut more = self.failed - self.faults.len();
        for fault in std::mem::take(&mut self.faults) {
            let is_secret = self.secrets.iter().any(|it| is_within(&fault.pointer, it));
            let message = fault.in_words(self.subject, is_secret);
            if violations.iter().any(|it| it.message == message) {
                continue;
            }
            match violations.len() < MOST_VIOLATIONS {
                true => violations.push(Violation { pointer: fault.pointer, message }),
                false => more += 1,
            }
        }
        if more > 0 {
            let message = format!("And {} more.", counted(more as u64, "fault", "faults"));
            violations.push(Violation { pointer: String::new(), message });
        }
        violations
    }

    /// Checks a value against a node and notes its faults.
    fn run(&mut self, id: Id, value: &'a Value) -> Seen<'a> {
        let mut seen = Seen::default();
        if self.budget == 0 {
            return seen;
        }
        if self.depth >= MOST_DEPTH {
            // Nothing that is this deep is legitimate; and it must not pass inside a `not`.
            self.budget = 0;
            return seen;
        }
        self.depth += 1;
        let before = self.failed;
        let schema = self.schema;
        let node = &schema.nodes[id];
        if node.secret {
            let pointer = self.pointer();
            self.secrets.insert(pointer);
        }
        for rule in &node.rules {
            self.budget = self.budget.saturating_sub(1);
            let is_last =
                matches!(rule, Rule::UnevaluatedItems(_) | Rule::UnevaluatedProperties(_));
            // What failed has not been looked at, and would be reported twice.
            if !(is_last && self.failed > before) {
                self.rule(rule, value, &mut seen);
            }
        }
        self.depth -= 1;
        seen
    }

    fn rule(&mut self, rule: &'a Rule, value: &'a Value, seen: &mut Seen<'a>) {
        match rule {
            Rule::Never => self.fault(Kind::Other, "is not allowed"),
            Rule::Types(types) => {
                if !types.allows(value) {
                    self.fault_of(Kind::Type(*types), value, "");
                }
            }
            Rule::Enum(values) => {
                if !values.iter().any(|it| same(it, value)) {
                    self.fault_of(Kind::Choice(values.iter().map(literal).collect()), value, "");
                }
            }
            Rule::Const(constant) => {
                if !same(constant, value) {
                    self.fault_of(Kind::Choice(vec![literal(constant)]), value, "");
                }
            }
            Rule::Ref(id) => {
                let inner = self.run(*id, value);
                self.merge(seen, inner);
            }
            Rule::AllOf(ids) => {
                for id in ids {
                    let inner = self.run(*id, value);
                    self.merge(seen, inner);
                }
            }
            Rule::AnyOf(ids) => self.any_of(ids, value, seen),
            Rule::OneOf(ids) => self.one_of(ids, value, seen),
            Rule::Not(id) => {
                if self.attempt(*id, value).is_ok() {
                    self.fault(Kind::Other, "is what the schema says it must not be");
                }
            }
            Rule::If { condition, then, otherwise } => {
                let next = match self.attempt(*condition, value) {
                    Ok(inner) => {
                        self.merge(seen, inner);
                        then
                    }
                    Err(_) => otherwise,
                };
                if let Some(id) = next {
                    let inner = self.run(*id, value);
                    self.merge(seen, inner);
                }
            }
            _ => match value {
                Value::Number(number) => self.number(rule, number, value),
                Value::String(text) => self.text(rule, text, value),
                Value::Array(items) => self.array(rule, items, seen),
                Value::Object(members) => self.object(rule, members, value, seen),
                _ => {}
            },
        }
    }

    fn number(&mut self, rule: &Rule, number: &serde_json::Number, value: &Value) {
        match rule {
            Rule::Bound(bound, limit) if !bound.allows(number, limit) => {
                self.fault_of(Kind::Other, value, &format!("must be {} {limit}", bound.in_words()));
            }
            Rule::MultipleOf(of) if !is_multiple(number, of) => {
                self.fault_of(Kind::Other, value, &format!("must be a multiple of {of}"));
            }
            _ => {}
        }
    }

    fn text(&mut self, rule: &Rule, text: &str, value: &Value) {
        let length = || text.chars().count() as u64;
        let characters = |count| counted(count, "character", "characters");
        match rule {
            Rule::MinLength(least) if length() < *least => {
                let must = format!("must have at least {}", characters(*least));
                self.fault_of(Kind::Other, value, &must);
            }
            Rule::MaxLength(most) if length() > *most => {
                self.fault(Kind::Other, &format!("must have at most {}", characters(*most)));
            }
            Rule::Pattern(pattern) if !pattern.is_match(text) => {
                let must = format!("must match the pattern `{}`", pattern.as_str());
                self.fault_of(Kind::Other, value, &must);
            }
            Rule::Format(format) if !format.allows(text) => {
                self.fault_of(Kind::Other, value, &format!("must be {}", format.in_words()));
            }
            _ => {}
        }
    }

    fn array(&mut self, rule: &'a Rule, items: &'a [Value], seen: &mut Seen<'a>) {
        let things = |count| counted(count, "item", "items");
        match rule {
            Rule::Items { prefix, rest } => {
                for (index, item) in items.iter().enumerate() {
                    let Some(id) = prefix.get(index).or(rest.as_ref()) else { break };
                    if self.tracks() {
                        seen.items.insert(index);
                    }
                    self.inside(Step::Index(index), |it| it.run(*id, item));
                }
            }
            Rule::UnevaluatedItems(id) => {
                for (index, item) in items.iter().enumerate() {
                    if seen.items.insert(index) {
                        self.inside(Step::Index(index), |it| it.run(*id, item));
                    }
                }
            }
            Rule::Contains { item, least, most } => {
                let mut count = 0;
                for (index, it) in items.iter().enumerate() {
                    if self.inside(Step::Index(index), |checker| checker.attempt(*item, it)).is_ok()
                    {
                        count += 1;
                        seen.items.insert(index);
                    }
                }
                if count < *least {
                    let must =
                        format!("must contain at least {} of a certain kind", things(*least));
                    self.fault(Kind::Other, &format!("{must}, but has {count}"));
                }
                if let Some(most) = most.filter(|most| count > *most) {
                    let must = format!("must contain at most {} of a certain kind", things(most));
                    self.fault(Kind::Other, &format!("{must}, but has {count}"));
                }
            }
            Rule::MinItems(least) if (items.len() as u64) < *least => {
                let must =
                    format!("must have at least {}, but has {}", things(*least), items.len());
                self.fault(Kind::Other, &must);
            }
            Rule::MaxItems(most) if items.len() as u64 > *most => {
                let must = format!("must have at most {}, but has {}", things(*most), items.len());
                self.fault(Kind::Other, &must);
            }
            Rule::UniqueItems => {
                if let Some((first, second)) = twins(items) {
                    let must = format!(
                        "must not have the same item twice, but items {first} and {second} are the \
                         same"
                    );
                    self.fault(Kind::Other, &must);
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        rule: &'a Rule,
        members: &'a Map<String, Value>,
        value: &'a Value,
        seen: &mut Seen<'a>,
    ) {
        let things = |count| counted(count, "member", "members");
        match rule {
            Rule::Required(names) => self.required(names, members),
            Rule::Members(rules) => self.members(rules, members, seen),
            Rule::PropertyNames(id) => {
                for name in members.keys() {
                    self.name(*id, name);
                }
            }
            Rule::MinProperties(least) if (members.len() as u64) < *least => {
                let must =
                    format!("must have at least {}, but has {}", things(*least), members.len());
                self.fault(Kind::Other, &must);
            }
            Rule::MaxProperties(most) if members.len() as u64 > *most => {
                let must =
                    format!("must have at most {}, but has {}", things(*most), members.len());
                self.fault(Kind::Other, &must);
            }
            Rule::DependentRequired(needs) => {
                for (name, needed) in needs.iter().filter(|(name, _)| members.contains_key(*name)) {
                    for missing in needed.iter().filter(|it| !members.contains_key(*it)) {
                        let why = format!("is missing; `{name}` needs it");
                        self.inside(Step::Name(missing), |it| it.fault(Kind::Missing, &why));
                    }
                }
            }
            Rule::DependentSchemas(schemas) => {
                for (_, id) in schemas.iter().filter(|(name, _)| members.contains_key(*name)) {
                    let inner = self.run(*id, value);
                    self.merge(seen, inner);
                }
            }
            Rule::UnevaluatedProperties(id) => {
                for (name, value) in members {
                    if seen.names.insert(name) {
                        self.inside(Step::Name(name), |it| it.run(*id, value));
                    }
                }
            }
            _ => {}
        }
    }

    fn required(&mut self, names: &'a [String], members: &'a Map<String, Value>) {
        for name in names.iter().filter(|it| !members.contains_key(*it)) {
            // A name that is nearly right and that nobody asked for was probably meant.
            let others =
                members.keys().map(String::as_str).filter(|it| !names.iter().any(|n| n == it));
            let why = match meant(name, others) {
                Some(near) => format!("is missing; is `{near}` meant to be it?"),
                None => "is missing".to_owned(),
            };
            self.inside(Step::Name(name), |it| it.fault(Kind::Missing, &why));
        }
    }

    fn members(
        &mut self,
        rules: &'a Members,
        members: &'a Map<String, Value>,
        seen: &mut Seen<'a>,
    ) {
        for (name, value) in members {
            self.budget = self.budget.saturating_sub(rules.patterns.len());
            let named = rules.named.get(name);
            let matching = rules.patterns.iter().filter(|it| it.0.is_match(name)).map(|it| it.1);
            let mut ids: Vec<Id> = named.copied().into_iter().chain(matching).collect();
            let is_known = !ids.is_empty();
            if !is_known {
                ids.extend(rules.others);
            }
            if !ids.is_empty() && self.tracks() {
                seen.names.insert(name);
            }
            let may_be_left_out = self.forgives_null && value.is_null() && named.is_some();
            if may_be_left_out && !rules.required.contains(name) {
                continue;
            }
            self.inside(Step::Name(name), |it| {
                for id in ids {
                    match !is_known && it.is_never(id) {
                        true => it.unknown(name, rules, members),
                        false => drop(it.run(id, value)),
                    }
                }
            });
        }
    }

    /// A member that must not be there.
    fn unknown(&mut self, name: &str, rules: &'a Members, members: &Map<String, Value>) {
        let free = rules.named.keys().filter(|it| !members.contains_key(*it));
        let why = match meant(name, free.map(String::as_str)) {
            Some(near) => format!("is not known; did you mean `{near}`?"),
            None if rules.named.is_empty() => "is not known".to_owned(),
            None => {
                let known = rules.named.keys().map(|it| format!("`{it}`"));
                format!("is not known; there is {}", listed(known, "and"))
            }
        };
        self.fault(Kind::Unknown, &why);
    }

    /// Checks the name of a member.
    fn name(&mut self, id: Id, name: &'a str) {
        let value = Value::from(name);
        let mut inner = Checker::new(self.schema, self.subject, false);
        (inner.budget, inner.depth) = (self.budget, self.depth);
        inner.run(id, &value);
        self.budget = inner.budget;
        let why = inner.faults.first().map(|it| it.says.clone());
        let why = why.unwrap_or_else(|| "is not allowed".to_owned());
        if inner.failed > 0 {
            self.inside(Step::Name(name), |it| {
                it.fault(Kind::Unknown, &format!("has a name that {why}"));
            });
        }
    }

    fn any_of(&mut self, ids: &[Id], value: &'a Value, seen: &mut Seen<'a>) {
        let mut failures = Vec::new();
        for id in ids {
            match self.attempt(*id, value) {
                Ok(inner) => {
                    self.merge(seen, inner);
                    if !self.tracks() {
                        return;
                    }
                }
                Err(faults) => failures.push(faults),
            }
        }
        if failures.len() == ids.len() {
            self.fits_none(failures, value);
        }
    }

    fn one_of(&mut self, ids: &[Id], value: &'a Value, seen: &mut Seen<'a>) {
        let mut failures = Vec::new();
        for id in ids {
            match self.attempt(*id, value) {
                Ok(inner) => self.merge(seen, inner),
                Err(faults) => failures.push(faults),
            }
        }
        match ids.len() - failures.len() {
            0 => self.fits_none(failures, value),
            1 => {}
            several => {
                let why = format!("must fit one of its {} forms, but fits {several}", ids.len());
                self.fault(Kind::Other, &why);
            }
        }
    }

    /// Checks a value without noting its faults.
    fn attempt(&mut self, id: Id, value: &'a Value) -> Result<Seen<'a>, Vec<Fault>> {
        let (faults, failed) = (std::mem::take(&mut self.faults), std::mem::take(&mut self.failed));
        let seen = self.run(id, value);
        let has_failed = std::mem::replace(&mut self.failed, failed) > 0;
        let found = std::mem::replace(&mut self.faults, faults);
        if has_failed { Err(found) } else { Ok(seen) }
    }

    fn inside<T>(&mut self, step: Step<'a>, run: impl FnOnce(&mut Self) -> T) -> T {
        self.place.push(step);
        let result = run(self);
        self.place.pop();
        result
    }

    fn merge(&self, seen: &mut Seen<'a>, inner: Seen<'a>) {
        if self.tracks() {
            seen.names.extend(inner.names);
            seen.items.extend(inner.items);
        }
    }

    fn tracks(&self) -> bool {
        self.schema.tracks
    }

    fn is_never(&self, id: Id) -> bool {
        matches!(self.schema.nodes[id].rules[..], [Rule::Never])
    }

    fn fault(&mut self, kind: Kind, says: &str) {
        let pointer = self.pointer();
        self.note(Fault { pointer, kind, says: says.to_owned(), found: None });
    }

    /// A fault of the value itself. An empty text stands for what the kind says.
    fn fault_of(&mut self, kind: Kind, value: &Value, says: &str) {
        let says = if says.is_empty() { kind.in_words() } else { says.to_owned() };
        let pointer = self.pointer();
        self.note(Fault { pointer, kind, says, found: Some(described(value)) });
    }

    pub(super) fn note(&mut self, fault: Fault) {
        self.failed += 1;
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        }
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

/// Two items that are the same.
fn twins(items: &[Value]) -> Option<(usize, usize)> {
    let mut known = HashMap::with_capacity(items.len());
    items.iter().enumerate().find_map(|(index, item)| {
        let mut text = String::new();
        canonical(item, &mut text);
        known.insert(text, index).map(|first| (first, index))
    })
}

fn is_within(pointer: &str, of: &str) -> bool {
    pointer.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// How many faults are kept while looking for all.
const MOST_FAULTS: usize = 1000;
/// How many schemas may be entered from within each other.
const MOST_DEPTH: usize = 512;
const LEAST_WORK: usize = 100_000;
const WORK_PER_VALUE: usize = 500;
const MOST_WORK: usize = 20_000_000;
