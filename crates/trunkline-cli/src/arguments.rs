//! `key=value` and `key:=json` → the arguments of a tool, typed by its input schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::failure::Failure;

/// Combines arguments: `base` first, then each of `pairs`.
pub(crate) fn build(
    base: Map<String, Value>,
    pairs: &[String],
    schema: &Value,
) -> Result<Map<String, Value>, Failure> {
    let mut arguments = base;
    let mut lists: Map<String, Value> = Map::new();
    let mut wholes = BTreeSet::new();
    for pair in pairs {
        let (key, value) = read_pair(pair, schema)?;
        // An array can be given item by item.
        match (lists.get_mut(&key), value) {
            (Some(Value::Array(list)), Given::Item(item)) => list.push(item),
            (_, Given::Item(item)) => drop(lists.insert(key, Value::Array(vec![item]))),
            (_, Given::Whole(value)) => {
                if !wholes.insert(key.clone()) {
                    return Err(Failure::given_twice(&key));
                }
                arguments.insert(key, value);
            }
        }
    }
    if let Some(key) = wholes.iter().find(|key| lists.contains_key(*key)) {
        return Err(Failure::given_twice(key));
    }
    arguments.append(&mut lists);
    Ok(arguments)
}

/// Parses one value by the schema of its field.
pub(crate) fn typed(key: &str, text: &str, schema: &Value, root: &Value) -> Result<Value, Failure> {
    let types = types_of(schema, root, 0);
    let has = |kind: &str| types.contains(&kind);
    if has("string") {
        return Ok(text.into());
    }
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    match parsed {
        None if types.is_empty() => Ok(text.into()),
        Some(value) if types.is_empty() || has(kind_of(&value)) => Ok(value),
        Some(value) if value.is_i64() && has("number") => Ok(value),
        Some(value) if has("integer") && value.as_f64().is_some_and(|it| it.fract() == 0.0) => {
            Ok(Value::from(value.as_f64().unwrap_or_default() as i64))
        }
        _ => {
            let wanted = types.join(" or ");
            Err(Failure::usage(format!("`{key}` takes {wanted}, and `{text}` is not one."))
                .advice(format!("Write raw JSON as `{key}:=JSON`.")))
        }
    }
}

enum Given {
    Whole(Value),
    Item(Value),
}

fn read_pair(pair: &str, schema: &Value) -> Result<(String, Given), Failure> {
    let Some((key, text)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        return Err(Failure::usage(format!("`{pair}` is not an argument."))
            .advice("Write `key=value`, or `key:=json` for raw JSON."));
    };
    if let Some(key) = key.strip_suffix(':') {
        let value = crate::json::parse(text)
            .map_err(|err| Failure::usage(format!("The value of `{key}` is not JSON: {err}.")))?;
        return Ok((key.to_owned(), Given::Whole(value)));
    }
    let field = &schema["properties"][key];
    let types = types_of(field, schema, 0);
    if types == ["array"] && !text.starts_with('[') {
        let item = typed(key, text, &field["items"], schema)?;
        return Ok((key.to_owned(), Given::Item(item)));
    }
    Ok((key.to_owned(), Given::Whole(typed(key, text, field, schema)?)))
}

/// The types that a schema allows, as far as that is obvious; empty if it is not.
fn types_of<'a>(schema: &'a Value, root: &'a Value, depth: usize) -> Vec<&'a str> {
    if depth > 8 {
        return Vec::new();
    }
    let mut types: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let target = schema["$ref"].as_str().and_then(|it| root.pointer(it.strip_prefix('#')?));
    let choices = ["anyOf", "oneOf", "allOf"].into_iter();
    let choices = choices.filter_map(|name| schema[name].as_array()).flatten();
    for inner in choices.chain(target) {
        types.extend(types_of(inner, root, depth + 1));
    }
    let constants = schema["enum"].as_array().into_iter().flatten();
    if types.is_empty() {
        types.extend(constants.map(|it| -> &str { kind_of(it) }));
    }
    types.sort_unstable();
    types.dedup();
    types
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, pairs: &[&str], expected: Result<Value, &str>) {
        let pairs: Vec<String> = pairs.iter().map(|it| (*it).to_owned()).collect();
        match (build(Map::new(), &pairs, &schema), expected) {
            (Ok(found), expected) => assert_eq!(Ok(Value::Object(found)), expected),
            (Err(found), Ok(expected)) => panic!("{found} instead of {expected}"),
            (Err(found), Err(part)) => assert!(found.to_string().contains(part), "{found}"),
        }
    }

    #[test]
    fn values_are_typed_by_the_schema() {
        let schema = json!({
            "properties": {
                "text": { "type": "string" },
                "count": { "type": "integer" },
                "ratio": { "type": "number" },
                "deep": { "type": "boolean" },
                "maybe": { "type": ["string", "null"] },
                "unit": { "$ref": "#/$defs/Unit" },
                "names": { "type": "array", "items": { "type": "string" } },
                "extra": { "type": "object" },
            },
            "$defs": { "Unit": { "enum": ["c", "f"] } },
        });
        let cases = [
            ("text=42", json!({ "text": "42" })),
            ("text=a=b", json!({ "text": "a=b" })),
            ("text=", json!({ "text": "" })),
            ("count=42", json!({ "count": 42 })),
            ("count=4e1", json!({ "count": 40 })),
            ("ratio=1.5", json!({ "ratio": 1.5 })),
            ("ratio=2", json!({ "ratio": 2 })),
            ("deep=true", json!({ "deep": true })),
            ("maybe=null", json!({ "maybe": "null" })),
            ("maybe:=null", json!({ "maybe": null })),
            ("unit=c", json!({ "unit": "c" })),
            ("extra={\"a\":1}", json!({ "extra": { "a": 1 } })),
            ("unknown=[1]", json!({ "unknown": [1] })),
            ("unknown=plain words", json!({ "unknown": "plain words" })),
        ];
        for (pair, expected) in cases {
            check(schema.clone(), &[pair], Ok(expected));
        }
        check(schema.clone(), &["names=a", "names=7"], Ok(json!({ "names": ["a", "7"] })));
        check(schema.clone(), &["names=[\"x\"]"], Ok(json!({ "names": ["x"] })));
        for twice in [["count=1", "count=2"], ["count=1", "count:=1"], ["names=a", "names=[]"]] {
            check(schema.clone(), &twice, Err("is given twice"));
        }
        check(schema.clone(), &["extra:={\"a\":1,\"a\":2}"], Err("`a` is given twice"));
        check(schema.clone(), &["count=many"], Err("`count` takes integer"));
        check(schema.clone(), &["count=1.5"], Err("`count` takes integer"));
        check(schema.clone(), &["deep=yes"], Err("`deep` takes boolean"));
        check(schema.clone(), &["deep:=maybe"], Err("is not JSON"));
        check(schema, &["nonsense"], Err("`nonsense` is not an argument"));
    }
}
