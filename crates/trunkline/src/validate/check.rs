//! Rules + a value → faults. Every rule runs, so that all faults are reported at once.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value};

use super::budget::{COST_OF_FAULT, COST_OF_NAME, COST_OF_NODE, COST_OF_RULE, Work};
use super::choice::weight;
use super::explain::{Fault, Hint, Kind};
use super::number::{canonical, is_multiple, same};
use super::render::counted;
use super::report::MOST_FAULTS;
use super::{Id, Members, Rule, Schema};

/// One check of one value.
pub(super) struct Checker<'a> {
    pub(super) schema: &'a Schema,
    /// The name of the whole value in messages.
    pub(super) subject: &'static str,
    /// Whether `null` stands for an optional member.
    forgives_null: bool,
    /// Whether messages may quote values.
    pub(super) shows_values: bool,
    pub(super) place: Vec<Step<'a>>,
    pub(super) faults: Vec<Fault<'a>>,
    /// The number of faults, recorded or not.
    pub(super) failed: usize,
    /// The places of secrets.
    pub(super) secrets: BTreeSet<String>,
    /// Places with a secret somewhere inside, where a misplaced one may be anywhere.
    pub(super) holders: BTreeSet<String>,
    depth: usize,
    /// References can make a small schema very expensive.
    pub(super) work: Work,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// What a schema and its parts have evaluated, for the `unevaluated…` keywords.
#[derive(Default)]
pub(super) struct Seen<'a> {
    names: BTreeSet<&'a str>,
    items: BTreeSet<usize>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(schema: &'a Schema, subject: &'static str, forgives_null: bool) -> Self {
        Self {
            schema,
            subject,
            forgives_null,
            shows_values: true,
            place: Vec::new(),
            faults: Vec::new(),
            failed: 0,
            secrets: BTreeSet::new(),
            holders: BTreeSet::new(),
            depth: 0,
            work: Work::new(),
        }
    }

    /// The same, without quoting values.
    pub(super) fn without_values(self) -> Self {
        Self { shows_values: false, ..self }
    }

    /// Checks a value against a node and records its faults.
    pub(super) fn run(&mut self, id: Id, value: &'a Value) -> Seen<'a> {
        let mut seen = Seen::default();
        if self.depth >= MOST_DEPTH {
            // No legitimate value is this deep.
            self.work.none();
        }
        let schema = self.schema;
        let node = &schema.nodes[id];
        self.work.spend(COST_OF_NODE + COST_OF_RULE * node.rules.len());
        if self.work.is_spent() {
            return seen;
        }
        self.depth += 1;
        let before = self.failed;
        if node.holds_secret {
            self.guard(node.secret);
        }
        for rule in &node.rules {
            let is_last =
                matches!(rule, Rule::UnevaluatedItems(_) | Rule::UnevaluatedProperties(_));
            // A part that failed is not evaluated, and would be reported twice.
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
            Rule::Enum(choices) => {
                self.work.spend(choices.cost(value));
                if !choices.has(value) {
                    self.fault_of(Kind::Choice(vec![&choices.all]), value, "");
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
                    if self.work.is_spent() {
                        return;
                    }
                }
            }
            Rule::AnyOf(ids) => self.any_of(ids, value, seen),
            Rule::OneOf(ids) => self.one_of(ids, value, seen),
            Rule::Not(id) => {
                if self.strictly(|it| it.attempt(*id, value)).is_ok() {
                    self.fault(Kind::Other, "is what the schema says it must not be");
                }
            }
            Rule::If { condition, then, otherwise } => {
                let next = match self.strictly(|it| it.attempt(*condition, value)) {
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

    fn number(&mut self, rule: &Rule, number: &serde_json::Number, value: &'a Value) {
        match rule {
            Rule::Bound(bound, limit) if !bound.allows(number, limit) => {
                self.fault_of(Kind::Other, value, &format!("must be {} {limit}", bound.in_words()));
            }
            Rule::MultipleOf(of) => {
                self.work.spend(COST_OF_DIVISION);
                if !is_multiple(number, of) {
                    self.fault_of(Kind::Other, value, &format!("must be a multiple of {of}"));
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, rule: &Rule, text: &str, value: &'a Value) {
        match rule {
            Rule::MinLength(_) | Rule::MaxLength(_) => self.work.spend(text.len() / 8),
            Rule::Format(_) => self.work.spend(4 * text.len()),
            _ => {}
        }
        if self.work.is_spent() {
            return;
        }
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
            Rule::Pattern(pattern) if !self.work.matches(pattern, text) => {
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
                        self.work.spend(COST_OF_SEEN);
                        seen.items.insert(index);
                    }
                    self.inside(Step::Index(index), |it| it.run(*id, item));
                    if self.work.is_spent() {
                        return;
                    }
                }
            }
            Rule::UnevaluatedItems(id) => {
                for (index, item) in items.iter().enumerate() {
                    self.work.spend(COST_OF_SEEN);
                    if self.work.is_spent() {
                        return;
                    }
                    if seen.items.insert(index) {
                        self.inside(Step::Index(index), |it| it.run(*id, item));
                    }
                }
            }
            Rule::Contains { item, least, most } => {
                let mut count = 0;
                for (index, it) in items.iter().enumerate() {
                    let attempt = |checker: &mut Self| checker.attempt(*item, it);
                    let attempt = |checker: &mut Self| checker.strictly(attempt);
                    if self.inside(Step::Index(index), attempt).is_ok() {
                        self.work.spend(COST_OF_SEEN);
                        count += 1;
                        seen.items.insert(index);
                    }
                    if self.work.is_spent() {
                        return;
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
                if let Some((first, second)) = self.find_duplicate(items) {
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
                    if self.work.is_spent() {
                        return;
                    }
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
                let all = needs.values().map(|it| 1 + it.len()).sum::<usize>();
                self.work.spend(COST_OF_NAME * all);
                for (name, needed) in needs.iter().filter(|(name, _)| members.contains_key(*name)) {
                    for missing in needed.iter().filter(|it| !members.contains_key(*it)) {
                        let why = format!("is missing; `{name}` needs it");
                        self.inside(Step::Name(missing), |it| it.fault(Kind::Missing, &why));
                    }
                }
            }
            Rule::DependentSchemas(schemas) => {
                self.work.spend(COST_OF_NAME * schemas.len());
                for (_, id) in schemas.iter().filter(|(name, _)| members.contains_key(*name)) {
                    let inner = self.run(*id, value);
                    self.merge(seen, inner);
                }
            }
            Rule::UnevaluatedProperties(id) => {
                for (name, value) in members {
                    self.work.spend(COST_OF_NAME + name.len() / 8);
                    if self.work.is_spent() {
                        return;
                    }
                    if seen.names.insert(name) {
                        self.inside(Step::Name(name), |it| it.run(*id, value));
                    }
                }
            }
            _ => {}
        }
    }

    fn required(&mut self, names: &'a [String], members: &'a Map<String, Value>) {
        self.work.spend(COST_OF_NAME * names.len());
        for name in names.iter().filter(|it| !members.contains_key(*it)) {
            let hint = Hint::Missing { name, required: names, members };
            self.inside(Step::Name(name), |it| it.fault_with(Kind::Missing, hint));
            if self.work.is_spent() {
                return;
            }
        }
    }

    fn members(
        &mut self,
        rules: &'a Members,
        members: &'a Map<String, Value>,
        seen: &mut Seen<'a>,
    ) {
        for (name, value) in members {
            self.work.spend(COST_OF_NAME + name.len() / 8);
            if self.work.is_spent() {
                return;
            }
            let named = rules.named.get(name);
            let work = &mut self.work;
            let matching = rules.patterns.iter().filter(|it| work.matches(&it.0, name));
            let matching = matching.map(|it| it.1);
            let mut ids: Vec<Id> = named.copied().into_iter().chain(matching).collect();
            let is_known = !ids.is_empty();
            if !is_known {
                ids.extend(rules.others);
            }
            if !ids.is_empty() && self.tracks() {
                self.work.spend(COST_OF_SEEN);
                seen.names.insert(name);
            }
            let may_be_left_out = self.forgives_null && value.is_null() && named.is_some();
            if may_be_left_out && !rules.required.contains(name) {
                continue;
            }
            self.inside(Step::Name(name), |it| {
                if named.is_none() && !ids.is_empty() && it.has_secrets() {
                    // It may be a secret with a misspelt name.
                    it.guard(false);
                }
                for id in ids {
                    match !is_known && it.is_never(id) {
                        true => {
                            it.fault_with(Kind::Unknown, Hint::Unknown { name, rules, members })
                        }
                        false => drop(it.run(id, value)),
                    }
                }
            });
        }
    }

    /// Checks the name of a member.
    fn name(&mut self, id: Id, name: &'a str) {
        self.work.spend(COST_OF_FAULT + name.len() / 8);
        let value = Value::from(name);
        let mut inner = Checker::new(self.schema, self.subject, false);
        inner.depth = self.depth;
        std::mem::swap(&mut inner.work, &mut self.work);
        inner.run(id, &value);
        std::mem::swap(&mut inner.work, &mut self.work);
        if inner.failed > 0 && self.faults.len() >= MOST_FAULTS {
            self.failed += 1;
        } else if inner.failed > 0 {
            let why = inner.faults.first().map_or_else(|| "is not allowed".to_owned(), Fault::says);
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
            if self.work.is_spent() {
                return;
            }
        }
        if failures.len() == ids.len() {
            self.fits_none(failures, value);
        }
    }

    fn one_of(&mut self, ids: &[Id], value: &'a Value, seen: &mut Seen<'a>) {
        // Forgiving `null` may make more than one form match.
        let strictly = self.strictly(|it| it.forms(ids, value, seen));
        let failures = match self.forgives_null && strictly.len() == ids.len() {
            true => self.forms(ids, value, seen),
            false => strictly,
        };
        if self.work.is_spent() {
            return;
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

    /// The faults of each form that does not match.
    fn forms(&mut self, ids: &[Id], value: &'a Value, seen: &mut Seen<'a>) -> Vec<Vec<Fault<'a>>> {
        let mut failures = Vec::new();
        for id in ids {
            match self.attempt(*id, value) {
                Ok(inner) => self.merge(seen, inner),
                Err(faults) => failures.push(faults),
            }
            if self.work.is_spent() {
                break;
            }
        }
        failures
    }

    /// Checks a value without recording its faults.
    fn attempt(&mut self, id: Id, value: &'a Value) -> Result<Seen<'a>, Vec<Fault<'a>>> {
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

    /// Runs without forgiving `null`: where a match makes the value invalid, forgiveness would too.
    fn strictly<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let forgives_null = std::mem::take(&mut self.forgives_null);
        let result = run(self);
        self.forgives_null = forgives_null;
        result
    }

    fn merge(&mut self, seen: &mut Seen<'a>, inner: Seen<'a>) {
        if !self.tracks() {
            return;
        }
        if seen.names.is_empty() && seen.items.is_empty() {
            *seen = inner;
            return;
        }
        self.work.spend(COST_OF_SEEN * (inner.names.len() + inner.items.len()));
        if !self.work.is_spent() {
            seen.names.extend(inner.names);
            seen.items.extend(inner.items);
        }
    }

    fn tracks(&self) -> bool {
        self.schema.tracks
    }

    pub(super) fn has_secrets(&self) -> bool {
        self.schema.has_secrets
    }

    fn is_never(&self, id: Id) -> bool {
        matches!(self.schema.nodes[id].rules[..], [Rule::Never])
    }

    /// Two equal items.
    fn find_duplicate(&mut self, items: &[Value]) -> Option<(usize, usize)> {
        let hasher = RandomState::new();
        let mut text = String::new();
        let mut hashes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.work.spend(COST_OF_TWIN + weight(item));
            if self.work.is_spent() {
                return None;
            }
            text.clear();
            canonical(item, &mut text);
            hashes.push((hasher.hash_one(&text), index));
        }
        hashes.sort_unstable();
        let pairs = hashes.windows(2).map(|it| (it[0], it[1]));
        let equal = pairs.filter(|(a, b)| a.0 == b.0 && same(&items[a.1], &items[b.1]));
        equal.map(|(a, b)| (a.1, b.1)).min_by_key(|it| it.1)
    }
}

/// The deepest nesting of schemas.
const MOST_DEPTH: usize = 512;
const COST_OF_DIVISION: usize = 200;
const COST_OF_TWIN: usize = 100;
/// Recording one evaluated name or item.
const COST_OF_SEEN: usize = 120;
