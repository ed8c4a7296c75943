//! Rust types → JSON Schemas: in a form that real hosts accept, or in full.

mod plain;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;

/// How schemas are written.
///
/// ```
/// use trunkline::{SchemaProfile, Server};
///
/// let builder = Server::builder("echo", "1.0.0").schemas(SchemaProfile::Full);
/// # let _ = builder;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaProfile {
    /// The subset that real hosts accept: no `$ref`, no `["T","null"]`, no `uint32`.
    #[default]
    Plain,
    /// Full JSON Schema.
    Full,
}

/// The schema of a tool's arguments, whose root is always an object.
pub(crate) fn input_in<T: JsonSchema>(profile: SchemaProfile) -> Json {
    let mut schema = written::<T>(SchemaSettings::draft2020_12().for_deserialize(), profile, true);
    if let Value::Object(root) = &mut schema {
        root.insert("type".to_owned(), "object".into());
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    Json::of(&schema)
}

/// The schema of a tool that takes nothing.
pub(crate) fn no_input() -> Json {
    Json::of(&serde_json::json!({ "type": "object", "properties": {} }))
}

/// The schema of a structured result, as serde serializes it: with renamed and without skipped
/// fields.
pub(crate) fn output_in<T: JsonSchema>(profile: SchemaProfile) -> Json {
    Json::of(&written::<T>(SchemaSettings::draft2020_12().for_serialize(), profile, false))
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

/// The members of an object schema that are numbers or booleans.
pub(crate) fn typed_members(schema: &Json) -> Vec<String> {
    let schema: Value = schema.to().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let is_typed =
        |it: &Value| matches!(it["type"].as_str(), Some("integer" | "number" | "boolean"));
    properties.filter(|(_, it)| is_typed(it)).map(|(name, _)| name.clone()).collect()
}

/// The same arguments with the `typed` ones parsed from strings: the protocol has only strings for
/// prompts and templates. A string that does not parse stays, and validation reports it.
pub(crate) fn out_of_texts(arguments: &Json, typed: &[String]) -> Option<Json> {
    let mut object = Object::parse(arguments.get()).ok()?;
    for name in typed {
        let text: Option<String> = object.get(name).and_then(|it| it.to().ok());
        let value = text.and_then(|it| Json::parse(it.trim()).ok());
        if let Some(value) = value.filter(|it| it.to::<Value>().is_ok_and(|it| is_scalar(&it))) {
            object.set(name.clone(), value);
        }
    }
    Some(object.to_json())
}

fn is_scalar(value: &Value) -> bool {
    value.is_number() || value.is_boolean()
}

fn written<T: JsonSchema>(
    settings: SchemaSettings,
    profile: SchemaProfile,
    is_input: bool,
) -> Value {
    let settings = settings.with(|it| {
        it.inline_subschemas = profile == SchemaProfile::Plain;
        it.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain::mark_bounds(&mut schema);
    if profile == SchemaProfile::Plain {
        plain::simplify(&mut schema, is_input);
    }
    if let Value::Object(root) = &mut schema {
        root.remove("title");
    }
    schema
}

#[cfg(test)]
mod tests;
