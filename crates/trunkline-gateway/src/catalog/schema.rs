//! Turns the table of keys into a JSON Schema (draft 2020-12), for editors.

use serde_json::{Map, Value, json};

use super::keys::{Key, Kind, ROOT, SERVER};

/// The JSON Schema of the catalog.
pub fn schema() -> Value {
    let mut schema = object(ROOT, true);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "trunkline".into();
    schema["description"] = "MCP servers behind one gateway.".into();
    schema["anyOf"] = ["mcpServers", "servers", "context_servers"]
        .map(|name| json!({ "required": [name] }))
        .to_vec()
        .into();
    let mut server = object(SERVER, true);
    server["description"] = "A server: a program (`command`) or a URL (`url`).".into();
    schema["$defs"] = json!({
        "server": server,
        "text": {
            "description": "`${NAME}`, `${NAME:-default}` and `${file:PATH}` are filled in; `$$` is `$`.",
            "type": ["string", "number", "boolean"],
        },
        "expanded": {
            "description": "The value of `${NAME}`.",
            "type": "string",
            "pattern": "\\$\\{",
        },
        "secret": {
            "anyOf": [
                { "$ref": "#/$defs/text" },
                one("file", "The file that it is in; relative to the catalog."),
                one("env", "The variable that it is in."),
            ],
        },
    });
    schema
}

fn one(name: &str, about: &str) -> Value {
    json!({
        "type": "object",
        "properties": { name: { "type": "string", "description": about } },
        "required": [name],
        "additionalProperties": false,
    })
}

fn object(keys: &[Key], is_open: bool) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let mut value = value(key.kind);
        value["description"] = key.about.into();
        for alias in key.aliases {
            let mut value = value.clone();
            value["description"] = format!("The same as `{}`.", key.name).into();
            properties.insert((*alias).to_owned(), value);
        }
        properties.insert(key.name.to_owned(), value);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    let required = keys.iter().filter(|it| it.is_required);
    // If a key has aliases, any of them satisfies it.
    let (alone, several): (Vec<&Key>, Vec<&Key>) = required.partition(|it| it.aliases.is_empty());
    if !alone.is_empty() {
        schema["required"] = alone.iter().map(|it| it.name).collect();
    }
    for key in several {
        let names = [key.name].into_iter().chain(key.aliases.iter().copied());
        schema["anyOf"] = names.map(|name| json!({ "required": [name] })).collect();
    }
    if !is_open {
        schema["patternProperties"] = json!({ "^(x-|_)": true });
        schema["additionalProperties"] = false.into();
    }
    schema
}

fn value(kind: Kind) -> Value {
    let list = |item: &str| {
        let item = json!({ "$ref": format!("#/$defs/{item}") });
        json!({ "anyOf": [item, { "type": "array", "items": item }] })
    };
    let typed = |value: Value| json!({ "anyOf": [value, { "$ref": "#/$defs/expanded" }] });
    match kind {
        Kind::Text | Kind::Path => json!({ "$ref": "#/$defs/text" }),
        Kind::Secret => json!({ "$ref": "#/$defs/secret" }),
        Kind::Flag => typed(json!({ "type": "boolean" })),
        Kind::Count(least) => typed(json!({ "type": "integer", "minimum": least })),
        Kind::Seconds(true) => typed(json!({ "type": "number", "minimum": 0 })),
        Kind::Seconds(false) => typed(json!({ "type": "number", "exclusiveMinimum": 0 })),
        Kind::Choice(choices) => {
            let choice = |it: &&str| match *it {
                "true" => true.into(),
                "false" => false.into(),
                word => Value::from(word),
            };
            typed(json!({ "enum": choices.iter().map(choice).collect::<Vec<_>>() }))
        }
        Kind::Texts | Kind::Paths => list("text"),
        Kind::SecretList => {
            let secrets = json!({ "type": "array", "items": { "$ref": "#/$defs/secret" } });
            json!({ "anyOf": [{ "$ref": "#/$defs/text" }, secrets] })
        }
        Kind::Secrets => {
            json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/secret" } })
        }
        Kind::Map => {
            json!({ "type": "object", "additionalProperties": { "$ref": "#/$defs/text" } })
        }
        Kind::PathOr(keys) => json!({ "anyOf": [{ "$ref": "#/$defs/text" }, object(keys, false)] }),
        Kind::Object(keys) => object(keys, false),
        Kind::Objects(keys) => json!({ "type": "array", "items": object(keys, false) }),
        Kind::Servers => json!({
            "anyOf": [
                { "type": "object", "additionalProperties": { "$ref": "#/$defs/server" } },
                {
                    "type": "array",
                    "items": { "allOf": [{ "$ref": "#/$defs/server" }, { "required": ["name"] }] },
                },
            ],
        }),
        Kind::Any => json!({}),
    }
}

#[cfg(test)]
mod tests;
