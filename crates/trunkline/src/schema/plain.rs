//! A schema from `schemars` → the same without what some hosts refuse.

use serde_json::{Map, Value, json};

use crate::validate::is_natural_bound;

type Members = Map<String, Value>;

/// Rewrites a schema whose subschemas are already inline, as far as its types are not recursive.
///
/// Optional arguments may be left out, so `null` is dropped from them. In results, `null` is one of
/// two forms wherever it can occur.
pub(super) fn simplify(schema: &mut Value, is_input: bool) {
    let root = schema.clone();
    if let Value::Object(schema) = schema {
        schema.remove("$defs");
        schema.remove("title");
    }
    each_schema(schema, &mut |members| {
        write_out_anything(members);
        follow_no_reference(members, &root);
        split_types(members);
        collapse_constants(members);
        if members.get("format").and_then(Value::as_str).is_some_and(is_numeric_format) {
            members.remove("format");
        }
        if members.get("default") == Some(&Value::Null) {
            members.remove("default");
        }
        match is_input {
            true => drop(take_null(members)),
            false => null_where_it_can_be(members),
        }
    });
}

/// Writes bounds that equal those of a Rust type as floats if they were set by hand. This is how
/// the schema shows that deserializing the type does not check them.
pub(super) fn mark_bounds(schema: &mut Value) {
    each_schema(schema, &mut |members| {
        let format = members.get("format").and_then(Value::as_str).unwrap_or_default();
        let natural = match format {
            "uint8" => [Some(0), Some(255)],
            "uint16" => [Some(0), Some(65_535)],
            "int8" => [Some(-128), Some(127)],
            "int16" => [Some(-32_768), Some(32_767)],
            "uint" | "uint32" | "uint64" | "uint128" => [Some(0), None],
            _ => [None, None],
        };
        for (name, natural) in ["minimum", "maximum"].into_iter().zip(natural) {
            let Some(bound) = members.get_mut(name).filter(|it| is_natural_bound(it)) else {
                continue;
            };
            if bound.as_i64() != natural {
                *bound = bound.as_f64().into();
            }
        }
    });
}

/// Visits every schema, innermost first. It skips values that are not schemas, and the names of
/// members.
fn each_schema(schema: &mut Value, visit: &mut impl FnMut(&mut Members)) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "dependentSchemas", value) => {
                for inner in value.as_object_mut().into_iter().flat_map(Members::values_mut) {
                    each_schema(inner, visit);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|it| each_schema(it, visit));
            }
            (
                "items"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                value,
            ) => each_schema(value, visit),
            _ => {}
        }
    }
    visit(members);
}

/// Writes an unconstrained member as an empty schema: some hosts do not know `true`.
fn write_out_anything(members: &mut Members) {
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    let inner = properties.into_iter().flat_map(Members::values_mut);
    inner.filter(|it| **it == Value::Bool(true)).for_each(|it| *it = json!({}));
}

/// A recursive schema cannot be inlined. It becomes a schema of the same type, if it has a single
/// one, and a sentence.
fn follow_no_reference(members: &mut Members, root: &Value) {
    let Some(Value::String(reference)) = members.remove("$ref") else { return };
    let target = reference.strip_prefix('#').and_then(|it| root.pointer(it));
    let kind = target.and_then(|it| it.get("type")).filter(|it| it.is_string());
    if let Some(kind) = kind {
        members.entry("type").or_insert_with(|| kind.clone());
    }
    let sentence = match reference.rsplit_once('/') {
        Some((_, name)) => format!("Has the same form as the `{name}` it is in."),
        None => "Has the same form as the whole it is in.".to_owned(),
    };
    let description = match members.get("description").and_then(Value::as_str) {
        Some(own) => format!("{own} {sentence}"),
        None => sentence,
    };
    members.insert("description".to_owned(), description.into());
}

/// `["string", "integer"]` as two forms. `null` is handled later.
fn split_types(members: &mut Members) {
    let Some(Value::Array(types)) = members.get("type") else { return };
    let (nulls, mut types): (Vec<Value>, Vec<Value>) =
        types.iter().cloned().partition(|it| it == "null");
    if types.len() > 1 {
        types.extend(nulls);
        members.remove("type");
        let forms = types.into_iter().map(|it| json!({ "type": it }));
        add_forms(members, forms.collect());
    }
}

fn add_forms(members: &mut Members, forms: Vec<Value>) {
    match members.contains_key("anyOf") {
        false => drop(members.insert("anyOf".to_owned(), forms.into())),
        true => {
            let all = members.entry("allOf").or_insert_with(|| json!([]));
            all.as_array_mut().into_iter().for_each(|it| it.push(json!({ "anyOf": forms })));
        }
    }
}

/// Constants as lists of choices: `const` as a list of one, and several described constants as one
/// list whose description explains each.
fn collapse_constants(members: &mut Members) {
    if let Some(constant) = members.remove("const") {
        members.insert("enum".to_owned(), json!([constant]));
    }
    let Some(Value::Array(forms)) = members.get("oneOf") else { return };
    let texts: Option<Vec<_>> = forms.iter().map(choices).collect();
    let Some(texts) = texts else { return };
    let meanings: Vec<_> = texts
        .iter()
        .filter_map(|(values, meaning)| Some((values.first()?.as_str()?, meaning.as_ref()?)))
        .map(|(value, meaning)| format!("`{value}`: {meaning}"))
        .collect();
    let values: Vec<Value> = texts.into_iter().flat_map(|(values, _)| values).collect();
    members.remove("oneOf");
    members.insert("type".to_owned(), "string".into());
    members.insert("enum".to_owned(), values.into());
    if !meanings.is_empty() {
        let own = members.get("description").and_then(Value::as_str).map(str::to_owned);
        let lines: Vec<_> = own.into_iter().chain(meanings).collect();
        members.insert("description".to_owned(), lines.join("\n").into());
    }
}

/// The strings of a form that is only a choice of strings, and their description.
fn choices(form: &Value) -> Option<(Vec<Value>, Option<String>)> {
    let form = form.as_object()?;
    let is_plain = |name: &String| matches!(name.as_str(), "type" | "enum" | "description");
    let values = form.get("enum")?.as_array()?;
    let is_choice = form.keys().all(is_plain) && values.iter().all(Value::is_string);
    // One description for several strings would describe only the first.
    let description = form.get("description").and_then(Value::as_str).map(str::to_owned);
    (is_choice && (values.len() == 1 || description.is_none()))
        .then(|| (values.clone(), description))
}

/// Removes `null` from the allowed values. Returns whether it was allowed.
fn take_null(members: &mut Members) -> bool {
    let mut was_null = false;
    if let Some(Value::Array(types)) = members.get_mut("type") {
        was_null = types.iter().any(|it| it == "null");
        types.retain(|it| it != "null");
        if let [only] = &mut types[..] {
            let only = only.take();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && values.len() > 1
    {
        was_null |= values.contains(&Value::Null);
        values.retain(|it| !it.is_null());
    }
    for name in ["anyOf", "oneOf"] {
        let Some(Value::Array(forms)) = members.get_mut(name) else { continue };
        let is_null = |it: &Value| it == &json!({ "type": "null" });
        let has_null = forms.len() > 1 && forms.iter().any(is_null);
        if !has_null {
            continue;
        }
        was_null = true;
        forms.retain(|it| !is_null(it));
        if let [only] = &mut forms[..] {
            let only = only.take();
            members.remove(name);
            absorb(members, only);
        }
    }
    was_null
}

/// Merges the only remaining form. The outer description is about this place, and comes first.
fn absorb(members: &mut Members, form: Value) {
    let Value::Object(form) = form else { return };
    if form.iter().any(|(name, value)| {
        name != "description" && members.get(name).is_some_and(|own| own != value)
    }) {
        let all = members.entry("allOf").or_insert_with(|| json!([]));
        all.as_array_mut().into_iter().for_each(|it| it.push(form.clone().into()));
        return;
    }
    for (name, value) in form {
        match (members.get(&name), &value) {
            (Some(Value::String(own)), Value::String(more)) if own != more => {
                let both = format!("{own}\n{more}");
                members.insert(name, both.into());
            }
            _ => drop(members.insert(name, value)),
        }
    }
}

/// In a result, writes `null` as one of two forms where it can occur, and omits it for members that
/// are skipped instead.
fn null_where_it_can_be(members: &mut Members) {
    let is_null = |it: &Value| it == &json!({ "type": "null" });
    let says_null = |it: &Value| it.as_array().is_some_and(|it| it.iter().any(is_null));
    if !members.get("anyOf").is_some_and(says_null) && take_null(members) {
        allow_null(members);
    }
    let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(&json!(name)))
    {
        property.as_object_mut().map(take_null);
    }
}

/// Makes `null` one of two forms. The annotations stay outside.
fn allow_null(members: &mut Members) {
    let description = members.remove("description");
    let form = Value::Object(std::mem::take(members));
    members.insert("anyOf".to_owned(), json!([form, { "type": "null" }]));
    members.extend(description.map(|it| ("description".to_owned(), it)));
}

/// How `schemars` names the numbers of Rust.
fn is_numeric_format(format: &str) -> bool {
    let number = format.strip_prefix('u').unwrap_or(format).strip_prefix("int");
    let is_integer = number.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
    is_integer || matches!(format, "float" | "double")
}
