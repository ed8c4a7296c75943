//! Unknown names that an open schema allows → the names that were probably meant.
//!
//! An open schema accepts unknown names: hosts send extra members that a tool can ignore. An
//! unknown name that is nearly the name of a missing member is a typo, and the caller must learn of
//! it: otherwise the tool would run without that member.

use serde_json::{Map, Value};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

use super::suggest::meant;
use super::{Members, Rule, Schema, Violation};

impl Schema {
    /// Whether valid arguments may contain a typo: only the name of an optional member can be
    /// misspelt without being missed.
    pub(super) fn may_hold_slips(&self, arguments: Option<&Json>) -> bool {
        if !self.takes_slips {
            return false;
        }
        let (Some(members), Some(arguments)) = (self.open_members(), arguments) else {
            return false;
        };
        let object = Object::parse(arguments.get());
        object.is_ok_and(|it| it.iter().any(|(name, _)| !members.named.contains_key(name)))
    }

    /// The names in `arguments` that are probably typos, with the names that were meant.
    pub(super) fn slips<'a>(&'a self, arguments: &'a Map<String, Value>) -> Vec<Slip<'a>> {
        let Some(members) = self.open_members() else { return Vec::new() };
        let unknown = arguments
            .iter()
            .filter(|(name, value)| !members.named.contains_key(*name) && !value.is_null());
        let slips = unknown.take(MOST_SLIPS).filter_map(|(name, _)| {
            let free = members.named.keys().filter(|it| !arguments.contains_key(*it));
            let free = free.filter(|it| !members.required.contains(*it));
            Some(Slip { name, meant: meant(name, free.map(String::as_str))? })
        });
        slips.collect()
    }

    /// The members of the root schema, if one of them is optional and nothing else restricts them.
    pub(super) fn open_members(&self) -> Option<&Members> {
        let root = self.nodes.first()?;
        let is_plain = !root.rules.iter().any(|it| {
            use Rule::{AllOf, AnyOf, DependentSchemas, If, OneOf, PropertyNames, Ref};
            use Rule::{Never, Not, UnevaluatedProperties};
            matches!(
                it,
                AllOf(_)
                    | AnyOf(_)
                    | DependentSchemas(_)
                    | If { .. }
                    | Never
                    | Not(_)
                    | OneOf(_)
                    | PropertyNames(_)
                    | Ref(_)
                    | UnevaluatedProperties(_)
            )
        });
        let members = root.rules.iter().find_map(|it| match it {
            Rule::Members(members) => Some(&**members),
            _ => None,
        })?;
        let is_open = members.others.is_none() && members.patterns.is_empty();
        let has_optional = members.named.keys().any(|it| !members.required.contains(it));
        Some(members).filter(|_| is_plain && is_open && has_optional)
    }
}

/// A misspelt name, and the one that was meant.
pub(super) struct Slip<'a> {
    name: &'a str,
    meant: &'a str,
}

impl Slip<'_> {
    /// The arguments with the meant name added. A type that reads both names as the same field
    /// reports a duplicate: then it is an alias, not a typo.
    pub(super) fn beside(&self, arguments: &Map<String, Value>) -> Value {
        let mut both = arguments.clone();
        if let Some(value) = arguments.get(self.name) {
            both.insert(self.meant.to_owned(), value.clone());
        }
        Value::Object(both)
    }

    pub(super) fn violation(&self) -> Violation {
        let pointer = format!("/{}", self.name.replace('~', "~0").replace('/', "~1"));
        let message = format!("`{pointer}` is not known; did you mean `{}`?", self.meant);
        Violation { pointer, message }
    }
}

/// How many unknown names are compared, so that a guessing caller costs little.
const MOST_SLIPS: usize = 20;
