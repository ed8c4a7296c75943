//! JSON Schemas reshaped for revisions that allow less.

use crate::json::Json;
use crate::jsonrpc::Object;
use crate::model::PrimitiveSchema;

/// Whether the schema requires an object.
pub(super) fn is_object_schema(schema: &Json) -> bool {
    Object::parse(schema.get())
        .is_ok_and(|schema| schema.get("type").is_some_and(|kind| kind.get() == r#""object""#))
}

/// `{"result": value}`
pub(super) fn wrap_value(value: &Json) -> Json {
    let mut object = Object::default();
    object.set("result", value.clone());
    object.to_json()
}

/// The schema of `{"result": …}` for a schema of `…`.
pub(super) fn wrap_schema(schema: &Json) -> Json {
    let mut inner = move_references(schema);
    let mut outer = Object::default();
    // A dialect may only be named at the root.
    if let Ok(mut object) = Object::parse(inner.get())
        && let Some(dialect) = object.take("$schema")
    {
        outer.set("$schema", dialect);
        inner = object.to_json();
    }
    outer.set("type", Json::string("object"));
    outer.set("properties", wrap_value(&inner));
    outer.set("required", Json::of(&["result"]));
    outer.to_json()
}

/// Rewrites `#/…` for the new position of the schema. A schema with an `$id` is its own root.
fn move_references(schema: &Json) -> Json {
    let has_id = || Object::parse(schema.get()).is_ok_and(|schema| schema.get("$id").is_some());
    if !schema.get().contains("Ref\"") && !schema.get().contains("ref\"") || has_id() {
        return schema.clone();
    }
    move_in_schema(schema)
}

fn move_in_schema(schema: &Json) -> Json {
    each_member(schema, |name, value| match name {
        "$ref" | "$dynamicRef" | "$recursiveRef" => move_reference(value),
        // These contain data, in which `$ref` is just a string.
        "const" | "enum" | "default" | "examples" => value.clone(),
        // These contain schemas under arbitrary names.
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            each_member(value, |_, value| move_in_schema(value))
        }
        _ if value.get().starts_with('[') => match value.to::<Vec<Json>>() {
            Ok(items) => Json::of(&items.iter().map(move_in_schema).collect::<Vec<_>>()),
            Err(_) => value.clone(),
        },
        _ => move_in_schema(value),
    })
}

fn each_member(object: &Json, change: impl Fn(&str, &Json) -> Json) -> Json {
    let Ok(object) = Object::parse(object.get()) else { return object.clone() };
    let mut changed = Object::default();
    for (name, value) in object.iter() {
        changed.set(name.to_owned(), change(name, value));
    }
    changed.to_json()
}

fn move_reference(reference: &Json) -> Json {
    const PLACE: &str = "#/properties/result";
    match reference.to::<String>() {
        Ok(text) if text == "#" => Json::string(PLACE),
        Ok(text) if text.starts_with("#/") => Json::string(&format!("{PLACE}{}", &text[1..])),
        _ => reference.clone(),
    }
}

/// A form as 2025-06-18 spells it: choices as `enum` with `enumNames`. It defines defaults for booleans
/// only, but clients show those of other fields too. Unsupported fields stay as they are; see
/// [`can_ask`](super::can_ask).
pub(super) fn simplify_form(schema: &Json) -> Json {
    each_member(schema, |name, value| match name {
        "properties" => each_member(value, |_, field| simplify_field(field)),
        _ => value.clone(),
    })
}

fn simplify_field(field: &Json) -> Json {
    match field.to() {
        Ok(PrimitiveSchema::Enum(choice)) if choice.many.is_none() => {
            let named = choice.to_named();
            let (all, members) = (Object::parse(field.get()), Object::parse(named.get()));
            match (all.ok().and_then(|mut it| it.take("default")), members) {
                (Some(default), Ok(mut members)) => {
                    members.set("default", default);
                    members.to_json()
                }
                _ => named,
            }
        }
        _ => field.clone(),
    }
}
