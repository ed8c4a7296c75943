//! Rust types → JSON Schemas that real hosts accept: no `$ref`, no `["T","null"]`, no `uint32`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use trunkline_wire::json::Json;

/// How schemas are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaProfile {
    /// What real hosts accept: no `$ref`, no `["T","null"]`, no `uint32`.
    #[default]
    Plain,
    /// All that JSON Schema has.
    Full,
}

pub(crate) fn input_in<T: JsonSchema>(_: SchemaProfile) -> Json {
    input::<T>()
}

pub(crate) fn output_in<T: JsonSchema>(_: SchemaProfile) -> Json {
    output::<T>()
}

/// The schema of a tool's arguments, whose root is always an object.
pub(crate) fn input<T: JsonSchema>() -> Json {
    let mut schema = plain::<T>();
    if let Value::Object(root) = &mut schema {
        root.insert("type".to_owned(), "object".into());
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        root.remove("title");
    }
    Json::of(&schema)
}

/// The schema of a tool that takes nothing.
pub(crate) fn no_input() -> Json {
    Json::of(&serde_json::json!({ "type": "object", "properties": {} }))
}

/// The schema of a structured result.
pub(crate) fn output<T: JsonSchema>() -> Json {
    let mut schema = plain::<T>();
    if let Value::Object(root) = &mut schema {
        root.remove("title");
    }
    Json::of(&schema)
}

/// The fields of a form, or why the type is no form: a form is flat.
pub(crate) fn form<T: JsonSchema>() -> Result<Json, String> {
    let mut schema = plain::<T>();
    let Some(root) = schema.as_object_mut() else { return Err("it is not an object".to_owned()) };
    root.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "required"));
    if root.get("type") != Some(&"object".into()) {
        return Err("it is not an object".to_owned());
    }
    let fields = root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    for (name, field) in fields.as_object_mut().into_iter().flatten() {
        if !is_primitive(field) {
            return Err(format!(
                "its field `{name}` is neither a text, a number, a choice nor a yes or no"
            ));
        }
    }
    Ok(Json::of(&schema))
}

/// The members of an object schema: name, description, whether required.
pub(crate) fn members(schema: &Json) -> Vec<(String, Option<String>, bool)> {
    let schema: Value = schema.to().unwrap_or_default();
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|it| it.iter().any(|it| it == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, it)| {
            (name.clone(), it["description"].as_str().map(str::to_owned), required(name))
        })
        .collect()
}

fn plain<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    schema
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|it| it != "null");
                if types.len() == 1 {
                    let only = types.remove(0);
                    members.insert("type".to_owned(), only);
                }
            }
            if members.get("default") == Some(&Value::Null) {
                members.remove("default");
            }
            let numeric =
                matches!(members.get("type").and_then(Value::as_str), Some("integer" | "number"));
            if numeric {
                members.remove("format");
            }
            members.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn is_primitive(field: &Value) -> bool {
    let choice = |field: &Value| field.get("enum").is_some() || field.get("oneOf").is_some();
    match field["type"].as_str() {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => choice(&field["items"]) || field["items"].get("anyOf").is_some(),
        _ => choice(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Booking {
        /// City to visit
        city: String,
        nights: u32,
        note: Option<String>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Nested {
        inner: Booking,
    }

    #[test]
    fn schemas_are_plain() {
        let schema: Value = input::<Booking>().to().unwrap();
        assert_eq!(
            schema,
            serde_json::json!({
                "type": "object",
                "properties": {
                    "city": { "type": "string", "description": "City to visit" },
                    "nights": { "type": "integer", "minimum": 0 },
                    "note": { "type": "string" }
                },
                "required": ["city", "nights"]
            })
        );
        assert!(!input::<Nested>().get().contains("$ref"));
    }

    #[test]
    fn a_form_is_flat() {
        assert!(form::<Booking>().is_ok());
        assert!(form::<Nested>().unwrap_err().contains("`inner`"));
        assert!(form::<String>().is_err());
    }

    #[test]
    fn members_know_what_is_required() {
        let members = members(&input::<Booking>());
        let required: Vec<_> = members.iter().filter(|it| it.2).map(|it| it.0.as_str()).collect();
        assert_eq!(required, ["city", "nights"]);
    }
}
