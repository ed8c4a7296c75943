//! Messages never reveal a secret.

use serde::Deserialize;
use serde_json::json;

use super::*;

#[test]
fn secrets_and_long_values_are_not_repeated() {
    let schema = compile(&json!({
        "properties": {
            "password": { "type": "string", "writeOnly": true, "minLength": 8 },
            "keys": { "writeOnly": true, "items": { "type": "string", "pattern": "^k" } },
            "text": { "type": "integer" },
        },
        // A second rule for the same member does not know of its secret.
        "allOf": [{ "properties": { "password": { "pattern": "^x" } } }],
    }));
    let long = "a".repeat(500);
    let value = json!({ "password": "hunter2", "keys": ["hunter3"], "text": long });
    let told = schema.check(&value).into_iter().map(|it| it.message).collect::<Vec<_>>().join("\n");
    assert_eq!(told.matches("/password").count(), 2, "{told}");
    assert!(!told.contains("hunter"), "{told}");
    assert!(told.contains("aaa…") && told.len() < 500, "{told}");
    // Nor where the schema is about the object that contains it.
    let whole = compile(&json!({ "enum": [1], "properties": { "p": { "writeOnly": true } } }));
    assert_eq!(whole.check(&json!({ "p": "hunter2" }))[0].message, "The value must be `1`.");
}

fn told(schema: &Schema, value: Value) -> String {
    let violations = Checker::new(schema, "The value", true).violations(&value);
    violations.into_iter().map(|it| format!("{} {}\n", it.pointer, it.message)).collect()
}

#[test]
fn what_has_a_secret_in_it_may_be_one_by_mistake() {
    let auth = json!({
        "type": "object",
        "properties": {
            "user": { "type": "string" },
            "password": { "type": "string", "writeOnly": true },
        },
    });
    let plain = compile(&json!({
        "properties": { "auth": auth, "nights": { "type": "integer" } },
        "additionalProperties": { "type": "integer" },
    }));
    assert_eq!(
        told(&plain, json!({ "auth": "hunter2", "nights": "two" })),
        "/auth `/auth` must be an object.\n\
         /nights `/nights` must be a whole number, but is the text \"two\".\n",
        "what has no secret is told as ever"
    );
    assert_eq!(
        told(&plain, json!({ "auth": { "user": 5 }, "auht": "hunter2" })),
        "/auht `/auht` must be a whole number.\n/auth/user `/auth/user` must be a text.\n"
    );
    let root = compile(&auth);
    assert_eq!(told(&root, json!("hunter2")), " The value must be an object.\n");
    // However deep it is, behind any reference and alternative.
    let deep = compile(&json!({
        "properties": { "a": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/list" }] } },
        "$defs": { "list": { "type": "array", "items": { "$ref": "#/$defs/auth" } }, "auth": auth },
    }));
    assert!(told(&deep, json!({ "a": "hunter2" })).starts_with("/a `/a` must be"));
    for wrong in [json!("hunter2"), json!(["hunter2"]), json!([{ "user": ["hunter2"] }])] {
        let sentences = told(&deep, json!({ "a": wrong }));
        assert!(!sentences.is_empty() && !sentences.contains("hunter2"), "{sentences}");
    }
}

#[test]
fn names_in_a_secret_are_secret() {
    for map in [
        json!({ "additionalProperties": { "type": "string" } }),
        json!({ "additionalProperties": { "type": "object", "required": ["x"] } }),
        json!({ "propertyNames": { "maxLength": 2 } }),
        json!({ "properties": { "hunter": {} }, "additionalProperties": false }),
        json!({ "required": ["hunter1"] }),
        json!({ "additionalProperties": { "anyOf": [{ "minimum": 9 }, { "multipleOf": 2 }] } }),
    ] {
        let mut map = map;
        map["writeOnly"] = json!(true);
        let schema = compile(&json!({ "properties": { "keys": map } }));
        let sentences = told(&schema, json!({ "keys": { "hunter2": 5 } }));
        assert!(sentences.starts_with("/keys Something in `/keys` "), "{sentences}");
        assert!(!sentences.contains("hunter2"), "{sentences}");
        let sentences = told(&compile(&map), json!({ "hunter2": 5 }));
        assert!(
            sentences.starts_with(" Something in it ") && !sentences.contains("hunter2"),
            "{sentences}"
        );
        let text = r#"{"keys":{"hunter2":5,"hunter2":5}}"#;
        let twice = Json::parse(text).unwrap();
        let why = read::<Value>(Some(&schema.by_hand()), Some(&twice)).unwrap_err();
        assert_eq!(why, "The arguments do not fit: a name stands twice in one object.");
    }
}

#[test]
fn what_only_the_type_complains_of_is_not_repeated_either() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Auth {
        password: String,
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Login {
        auth: Auth,
    }
    let open = compile(&json!({ "properties": { "auth": {}, "pin": { "writeOnly": true } } }));
    for schema in [None, Some(&open)] {
        for (wrong, says) in [
            (json!({ "auth": "hunter2" }), "expected an object"),
            (json!({ "auth": "hunter2, expected hunter2 at line 1" }), "expected an object"),
            (json!({ "auth": {} }), "missing field `password`"),
        ] {
            let why = read::<Login>(schema, Some(&Json::of(&wrong))).unwrap_err();
            assert_eq!(why, format!("The arguments do not fit: {says}."), "{wrong}");
        }
    }
}
