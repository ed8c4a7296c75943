//! An input schema → its annotations, or the first invalid one.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{ANNOTATION, InvalidAnnotation, PARAM_PREFIX, Param, Why};
use crate::json::Json;

pub(super) fn read(input_schema: &Json) -> Result<Vec<Param>, InvalidAnnotation> {
    let mut reader = Reader::default();
    // A text that is no schema has no annotations either.
    reader.schema(&input_schema.to().unwrap_or_default(), true)?;
    Ok(reader.found)
}

#[derive(Default)]
struct Reader {
    found: Vec<Param>,
    taken: HashSet<String>,
    /// The current position: for a reachable argument, the properties that lead to it.
    path: Vec<String>,
}

impl Reader {
    fn schema(&mut self, schema: &Value, reachable: bool) -> Result<(), InvalidAnnotation> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => {
                return items.iter().try_for_each(|it| self.schema(it, reachable));
            }
            _ => return Ok(()),
        };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotation(annotation, members, reachable)?;
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        self.path.push(name.clone());
                        self.schema(property, reachable)?;
                        self.path.pop();
                    }
                }
                // Names that lead to schemas which do not apply to every argument.
                (
                    "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                    Value::Object(named),
                ) => {
                    for (name, schema) in named {
                        self.unreachable(&format!("{keyword}.{name}"), schema)?;
                    }
                }
                // Example values, not schemas.
                ("default" | "const" | "enum" | "examples", _) => {}
                _ => self.unreachable(keyword, value)?,
            }
        }
        Ok(())
    }

    fn unreachable(&mut self, step: &str, schema: &Value) -> Result<(), InvalidAnnotation> {
        self.path.push(step.to_owned());
        self.schema(schema, false)?;
        self.path.pop();
        Ok(())
    }

    fn annotation(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        reachable: bool,
    ) -> Result<(), InvalidAnnotation> {
        let invalid = |why| Err(InvalidAnnotation { at: self.path.join("."), why });
        if !reachable || self.path.is_empty() {
            return invalid(Why::Place);
        }
        let Some(name) = annotation.as_str().filter(|name| is_token(name)) else {
            return invalid(Why::Name);
        };
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return invalid(Why::Type);
        }
        let header = format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase());
        if !self.taken.insert(header.clone()) {
            return invalid(Why::Taken);
        }
        self.found.push(Param { header, path: self.path.clone() });
        Ok(())
    }
}

/// Whether a text is a `token` (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}
