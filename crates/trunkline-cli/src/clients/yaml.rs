//! YAML → the tree that the gateway reads a catalog into, and that tree → values.

use serde_json::{Map, Value};
use trunkline_gateway::catalog::file::{self, Mark};

use super::jsonc::Unreadable;

pub(super) use trunkline_gateway::catalog::file::{Data, Name, Node, is_json};

/// Parses a text of one document; `None` if it is empty.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Unreadable> {
    file::tree(text).map_err(|fault| {
        let why = match &fault.suggestion {
            Some(suggestion) => format!("{} {suggestion}", fault.message),
            None => format!("This is no YAML: {}", fault.message),
        };
        fail(fault.at, why)
    })
}

pub(super) fn fail(at: Mark, message: impl Into<String>) -> Unreadable {
    Unreadable { line: at.line, column: at.column, message: message.into() }
}

/// How many lines stand before a place.
pub(super) fn row(at: Mark) -> usize {
    at.line - 1
}

/// How many characters stand before a place in its line.
pub(super) fn indent(at: Mark) -> usize {
    at.column - 1
}

/// A member of a map, with its name.
pub(super) fn get<'a>(node: &'a Node, key: &str) -> Option<&'a (Name, Node)> {
    let Data::Map(all) = &node.data else { return None };
    all.iter().find(|(name, _)| name.text == key)
}

pub(super) fn to_value(node: &Node) -> Value {
    match &node.data {
        Data::Scalar { text, is_plain: true } => plain(text),
        Data::Scalar { text, is_plain: false } => text.as_str().into(),
        Data::List(items) => items.iter().map(to_value).collect(),
        Data::Map(all) => {
            let all = all.iter().map(|(name, it)| (name.text.clone(), to_value(it)));
            Value::Object(all.collect::<Map<_, _>>())
        }
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ if text.starts_with(|it: char| it.is_ascii_digit() || it == '-') => {
            serde_json::from_str::<serde_json::Number>(text).map_or(text.into(), Value::Number)
        }
        _ => text.into(),
    }
}
