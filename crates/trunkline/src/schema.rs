//! Rust types → JSON Schemas: in a form that real hosts accept, or in full.

mod plain;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use trunkline_wire::json::Json;

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
    /// What real hosts accept: no `$ref`, no `["T","null"]`, no `uint32`.
    #[default]
    Plain,
    /// All that JSON Schema has.
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

/// The schema of a structured result, as it is written: what is left out of it or renamed in it is
/// here as well.
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
