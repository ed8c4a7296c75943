//! JSON Schema 2020-12 + a value → everything that is wrong with it, in sentences that a model can
//! act on.
//!
//! Our own validator, because the `jsonschema` crate adds some sixty crates to every stdio server
//! and writes its errors for programmers; our tests compare the two. It supports all keywords that
//! constrain a value. `$ref` stays within the schema: nothing is ever fetched.

mod budget;
mod check;
mod choice;
mod compile;
mod explain;
mod format;
mod number;
mod render;
mod report;
mod slip;
mod strict;
mod suggest;

pub(crate) use compile::is_natural_bound;

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::Value;
use trunkline_wire::json::Json;

use budget::Pattern;
use check::Checker;
use choice::Choices;
use format::Format;
use render::Types;

/// A compiled schema.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    nodes: Vec<Node>,
    /// It has `unevaluated…` keywords, which depend on what their neighbours evaluated.
    tracks: bool,
    says_more: bool,
    /// Some of it is `writeOnly`.
    has_secrets: bool,
    /// Some of what may be left out could be misspelt without being missed.
    takes_slips: bool,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The JSON pointer to it.
    pub(crate) pointer: String,
    /// A sentence that names the place.
    pub(crate) message: String,
}

impl Schema {
    /// Reads a schema, or says what is wrong with it.
    pub(crate) fn compile(schema: &Json) -> Result<Self, String> {
        compile::compile(schema, false)
    }

    /// Compiles the schema of a form. Its formats are assertions, not annotations.
    pub(crate) fn compile_form(schema: &Json) -> Result<Self, String> {
        compile::compile(schema, true)
    }

    /// The same, for a hand-written schema: the Rust type may check nothing of it.
    pub(crate) fn by_hand(self) -> Self {
        Self { says_more: true, ..self }
    }

    /// Whether it has constraints that deserializing its Rust type does not check already.
    pub(crate) fn says_more_than_serde(&self) -> bool {
        self.says_more
    }

    #[cfg(test)]
    /// Everything that is wrong with `value`: up to [`MOST_VIOLATIONS`], and a last one that counts
    /// the rest.
    pub(crate) fn check(&self, value: &Value) -> Vec<Violation> {
        Checker::new(self, "The value", false).violations(value)
    }

    /// Everything that is wrong with an answer, in one text.
    pub(crate) fn check_all(&self, answer: &Value) -> Result<(), String> {
        let violations = Checker::new(self, "The answer", false).violations(answer);
        let sentences: Vec<_> = violations.into_iter().map(|it| it.message).collect();
        if sentences.is_empty() { Ok(()) } else { Err(sentences.join(" ")) }
    }
}

/// Parses arguments as a `T`, or lists everything that is wrong with them.
pub(crate) fn read<T: DeserializeOwned>(
    schema: Option<&Schema>,
    arguments: Option<&Json>,
) -> Result<T, String> {
    let text = arguments.map_or("{}", Json::get);
    let read = match serde_json::from_str(text) {
        Ok(read)
            if !schema
                .is_some_and(|it| it.says_more_than_serde() || it.may_hold_slips(arguments)) =>
        {
            return Ok(read);
        }
        read => read,
    };
    let guards = schema.is_none_or(|it| it.has_secrets);
    let value = strict::read(text).map_err(|why| match guards {
        // The complaint would quote the name, which may be part of a secret.
        true if why.contains("stands twice") => {
            "The arguments do not fit: a name stands twice in one object.".to_owned()
        }
        _ => format!("The arguments do not fit: {why}"),
    })?;
    if let Some(schema) = schema {
        // Models and programs send `null` for optional members.
        let mut violations = Checker::new(schema, "The value", true).violations(&value);
        violations.extend(slips::<T>(schema, &value));
        if !violations.is_empty() {
            return Err(told("The arguments do not fit", &violations));
        }
    }
    let error = match read {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // In JSON Schema `2.0` is an integer, and some models write all of theirs so.
    let again = number::with_whole_numbers(value).and_then(|it| serde_json::from_value(it).ok());
    again.ok_or_else(|| {
        let why = match guards {
            true => render::in_guarded_words(&error.to_string()),
            false => render::in_plain_words(&error.to_string()),
        };
        format!("The arguments do not fit: {why}.")
    })
}

/// The names that are typos of others, unless `T` accepts them as aliases.
fn slips<T: DeserializeOwned>(schema: &Schema, value: &Value) -> Vec<Violation> {
    let Some(arguments) = value.as_object() else { return Vec::new() };
    let is_taken = |slip: &slip::Slip<'_>| {
        let both = serde_json::from_value::<T>(slip.beside(arguments));
        both.is_err_and(|it| it.to_string().starts_with("duplicate field"))
    };
    let slips = schema.slips(arguments).into_iter();
    slips.filter(|it| !is_taken(it)).map(|it| it.violation()).collect()
}

/// Lists everything that is wrong with a structured result, without any of its values: this goes
/// into logs.
pub(crate) fn result(schema: &Schema, result: &Json) -> Result<(), String> {
    let value = strict::read(result.get()).map_err(|why| format!("The result is wrong: {why}"))?;
    let violations = Checker::new(schema, "The value", false).without_values().violations(&value);
    if violations.is_empty() {
        return Ok(());
    }
    Err(told("The result does not fit", &violations))
}

/// A single sentence follows the heading; several form a list.
fn told(heading: &str, violations: &[Violation]) -> String {
    match violations {
        [only] => format!("{heading}: {}", only.message),
        many => many.iter().fold(format!("{heading}:"), |text, it| text + "\n- " + &it.message),
    }
}

/// The index of a node.
type Id = usize;

/// One subschema.
#[derive(Clone, Debug, Default)]
struct Node {
    rules: Vec<Rule>,
    /// It is `writeOnly`: its values are never quoted.
    secret: bool,
    /// It, or something in it, is `writeOnly`.
    holds_secret: bool,
}

/// One constraint. Those that depend on what others evaluated come last.
#[derive(Clone, Debug)]
enum Rule {
    Never,
    Types(Types),
    Enum(Choices),
    Bound(number::Bound, serde_json::Number),
    MultipleOf(serde_json::Number),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    Format(Format),
    Required(Vec<String>),
    Members(Box<Members>),
    PropertyNames(Id),
    MinProperties(u64),
    MaxProperties(u64),
    DependentRequired(BTreeMap<String, Vec<String>>),
    DependentSchemas(BTreeMap<String, Id>),
    Items { prefix: Vec<Id>, rest: Option<Id> },
    Contains { item: Id, least: u64, most: Option<u64> },
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Ref(Id),
    AllOf(Vec<Id>),
    AnyOf(Vec<Id>),
    OneOf(Vec<Id>),
    Not(Id),
    If { condition: Id, then: Option<Id>, otherwise: Option<Id> },
    UnevaluatedItems(Id),
    UnevaluatedProperties(Id),
}

impl Rule {
    /// Its subschemas.
    fn parts(&self) -> Vec<Id> {
        match self {
            Self::Members(it) => {
                let named = it.named.values().copied();
                named.chain(it.patterns.iter().map(|it| it.1)).chain(it.others).collect()
            }
            Self::DependentSchemas(schemas) => schemas.values().copied().collect(),
            Self::Items { prefix, rest } => prefix.iter().copied().chain(*rest).collect(),
            Self::AllOf(ids) | Self::AnyOf(ids) | Self::OneOf(ids) => ids.clone(),
            Self::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            Self::PropertyNames(id)
            | Self::Contains { item: id, .. }
            | Self::Ref(id)
            | Self::Not(id)
            | Self::UnevaluatedItems(id)
            | Self::UnevaluatedProperties(id) => vec![*id],
            _ => Vec::new(),
        }
    }
}

/// The members of an object.
#[derive(Clone, Debug, Default)]
struct Members {
    named: BTreeMap<String, Id>,
    patterns: Vec<(Pattern, Id)>,
    others: Option<Id>,
    /// The names in `required` beside it.
    required: BTreeSet<String>,
}

/// How many violations are listed one by one.
const MOST_VIOLATIONS: usize = 20;

#[cfg(test)]
mod tests;
