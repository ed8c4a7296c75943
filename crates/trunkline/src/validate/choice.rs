//! The values of an `enum` → whether a value is among them, at a cost known in advance.

use std::collections::HashSet;

use serde_json::Value;

use super::number::same;

/// The values of an `enum` or of a `const`.
#[derive(Clone, Debug)]
pub(super) struct Choices {
    pub(super) all: Vec<Value>,
    /// The strings among them, which may be many.
    texts: HashSet<String>,
    /// The cost of a comparison with all others.
    others: usize,
}

impl Choices {
    pub(super) fn new(all: Vec<Value>) -> Self {
        let texts = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let others = all.iter().filter(|it| !it.is_string()).map(weight).sum();
        Self { all, texts, others }
    }

    pub(super) fn cost(&self, value: &Value) -> usize {
        match value {
            Value::String(text) => 20 + text.len(),
            _ => self.others,
        }
    }

    pub(super) fn has(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.texts.contains(text),
            _ => self.all.iter().any(|it| same(it, value)),
        }
    }
}

/// The cost of a comparison with a whole value.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 30 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| 50 + name.len() + weight(value);
            50 + members.iter().map(member).sum::<usize>()
        }
        Value::String(text) => 10 + text.len() / 4,
        _ => 10,
    }
}
