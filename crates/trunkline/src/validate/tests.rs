use serde::Deserialize;
use serde_json::json;

use super::*;

mod cost;
mod differential;
mod secrets;
mod slips;

fn compile(schema: &Value) -> Schema {
    Schema::compile(&Json::of(schema)).unwrap_or_else(|why| panic!("{why}\n{schema}"))
}

/// Checks that these are the sentences about a value.
#[track_caller]
fn check(schema: Value, value: Value, sentences: &[&str]) {
    let violations = compile(&schema).check(&value);
    let found: Vec<_> = violations.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(found, sentences, "{schema} {value}");
    let oracle = jsonschema::draft202012::new(&schema).unwrap();
    assert_eq!(oracle.is_valid(&value), sentences.is_empty(), "{schema} {value}");
}

#[test]
fn everything_wrong_is_told_at_once() {
    check(
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string" },
                "nights": { "type": "integer", "minimum": 1 },
                "class": { "enum": ["economy", "business"] },
                "guests": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            },
            "required": ["city", "nights"],
            "additionalProperties": false,
        }),
        json!({ "nights": "two", "class": "first", "guests": [1, "Ada", null], "ngihts": 2 }),
        &[
            "`/city` is missing.",
            "`/class` must be one of `economy` or `business`, but is the text \"first\".",
            "`/guests/0` must be a text, but is the number 1.",
            "`/guests/2` must be a text, but is `null`.",
            "`/ngihts` is not known; there is `city`, `class`, `guests` and `nights`.",
            "`/nights` must be a whole number, but is the text \"two\".",
        ],
    );
}

#[test]
fn names_that_are_nearly_right_are_recognised() {
    let closed = json!({
        "properties": { "nights": {}, "checkIn": {} },
        "additionalProperties": false,
    });
    check(
        closed,
        json!({ "ngihts": 1, "check_in": 2 }),
        &[
            "`/check_in` is not known; did you mean `checkIn`?",
            "`/ngihts` is not known; did you mean `nights`?",
        ],
    );
    check(
        json!({ "required": ["nights"] }),
        json!({ "nigths": 2, "x": 1 }),
        &["`/nights` is missing; is `nigths` meant to be it?"],
    );
}

#[test]
fn a_choice_of_forms_tells_about_the_one_that_was_meant() {
    let shape = json!({ "oneOf": [
        { "type": "object", "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } },
          "required": ["kind", "radius"] },
        { "type": "object", "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
          "required": ["kind", "side"] },
    ] });
    check(
        shape.clone(),
        json!({ "kind": "square", "side": "x" }),
        &["`/side` must be a number, but is the text \"x\"."],
    );
    check(
        shape.clone(),
        json!({ "kind": "hexagon" }),
        &["`/kind` must be one of `circle` or `square`, but is the text \"hexagon\"."],
    );
    check(shape, json!({ "side": 2 }), &["`/kind` is missing."]);
    let tagged_outside = json!({ "oneOf": [
        { "type": "object", "properties": { "circle": { "type": "number" } },
          "required": ["circle"], "additionalProperties": false },
        { "type": "object", "properties": { "square": { "type": "number" } },
          "required": ["square"], "additionalProperties": false },
    ] });
    check(
        tagged_outside.clone(),
        json!({ "square": true }),
        &["`/square` must be a number, but is `true`."],
    );
    check(
        tagged_outside,
        json!({ "hexagon": 1 }),
        &["The value must have one of `circle` or `square`."],
    );
    check(
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }] }),
        json!(1.5),
        &["The value must be a text, a whole number or `null`, but is the number 1.5."],
    );
    check(
        json!({ "properties": { "a": { "anyOf": [
            { "type": "object", "properties": { "x": { "type": "integer" } }, "required": ["x"] },
            { "type": "null" },
        ] } } }),
        json!({ "a": { "x": "1" } }),
        &["`/a/x` must be a whole number, but is the text \"1\"."],
    );
    check(
        json!({ "oneOf": [
            { "const": "a", "title": "First" }, { "const": "b", "title": "Second" },
        ] }),
        json!("c"),
        &["The value must be one of `a` or `b`, but is the text \"c\"."],
    );
    check(
        json!({ "oneOf": [{ "minimum": 1 }, { "minimum": 2 }] }),
        json!(3),
        &["The value must fit one of its 2 forms, but fits 2."],
    );
    check(
        json!({ "anyOf": [{ "minimum": 5 }, { "multipleOf": 2 }] }),
        json!(3),
        &[
            "The value fits none of the 2 forms it may have (1: it must be at least 5; 2: it must be a multiple of 2).",
        ],
    );
}

#[test]
fn each_keyword_has_its_sentence() {
    let rows = [
        (json!(false), json!(1), "The value is not allowed."),
        (
            json!({ "const": { "a": 1 } }),
            json!({ "a": 2 }),
            "The value must be `{\"a\":1}`, but is an object.",
        ),
        (
            json!({ "minimum": 3 }),
            json!(2.5),
            "The value must be at least 3, but is the number 2.5.",
        ),
        (json!({ "maximum": 3 }), json!(4), "The value must be at most 3, but is the number 4."),
        (
            json!({ "exclusiveMinimum": 3 }),
            json!(3),
            "The value must be more than 3, but is the number 3.",
        ),
        (
            json!({ "exclusiveMaximum": 3 }),
            json!(3.0),
            "The value must be less than 3, but is the number 3.0.",
        ),
        (
            json!({ "multipleOf": 0.1 }),
            json!(0.25),
            "The value must be a multiple of 0.1, but is the number 0.25.",
        ),
        (
            json!({ "minLength": 2 }),
            json!("é"),
            "The value must have at least 2 characters, but is the text \"é\".",
        ),
        (json!({ "maxLength": 1 }), json!("éé"), "The value must have at most 1 character."),
        (
            json!({ "pattern": "^a" }),
            json!("b"),
            "The value must match the pattern `^a`, but is the text \"b\".",
        ),
        (
            json!({ "minProperties": 1 }),
            json!({}),
            "The value must have at least 1 member, but has 0.",
        ),
        (
            json!({ "maxProperties": 0 }),
            json!({ "a": 1 }),
            "The value must have at most 0 members, but has 1.",
        ),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "ab": 1 }),
            "`/ab` has a name that must have at most 1 character.",
        ),
        (
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1 }),
            "`/b` is missing; `a` needs it.",
        ),
        (
            json!({ "dependentSchemas": { "a": { "required": ["b"] } } }),
            json!({ "a": 1 }),
            "`/b` is missing.",
        ),
        (
            json!({ "patternProperties": { "^x": { "type": "string" } } }),
            json!({ "xy": 1 }),
            "`/xy` must be a text, but is the number 1.",
        ),
        (json!({ "minItems": 2 }), json!([1]), "The value must have at least 2 items, but has 1."),
        (json!({ "maxItems": 1 }), json!([1, 2]), "The value must have at most 1 item, but has 2."),
        (
            json!({ "uniqueItems": true }),
            json!([1, { "a": 1 }, { "a": 1.0 }]),
            "The value must not have the same item twice, but items 1 and 2 are the same.",
        ),
        (
            json!({ "contains": { "type": "null" } }),
            json!([1]),
            "The value must contain at least 1 item of a certain kind, but has 0.",
        ),
        (
            json!({ "contains": {}, "maxContains": 1 }),
            json!([1, 2]),
            "The value must contain at most 1 item of a certain kind, but has 2.",
        ),
        (
            json!({ "prefixItems": [{ "type": "null" }], "items": false }),
            json!([null, 1]),
            "`/1` is not allowed.",
        ),
        (
            json!({ "not": { "type": "null" } }),
            json!(null),
            "The value is what the schema says it must not be.",
        ),
        (
            json!({ "if": { "type": "string" }, "then": { "minLength": 1 }, "else": { "const": 0 } }),
            json!(1),
            "The value must be `0`, but is the number 1.",
        ),
        (
            json!({ "properties": { "a": {} }, "unevaluatedProperties": false }),
            json!({ "a": 1, "b": 2 }),
            "`/b` is not allowed.",
        ),
        (
            json!({ "prefixItems": [{}], "unevaluatedItems": { "type": "null" } }),
            json!([1, 2]),
            "`/1` must be `null`, but is the number 2.",
        ),
        (
            json!({ "type": ["string", "null"] }),
            json!([]),
            "The value must be a text or `null`, but is a list.",
        ),
        (
            json!({ "properties": { "a/b~c": { "type": "null" } } }),
            json!({ "a/b~c": true }),
            "`/a~1b~0c` must be `null`, but is `true`.",
        ),
    ];
    for (schema, value, sentence) in rows {
        check(schema, value, &[sentence]);
    }
}

#[test]
fn references_stay_within_the_schema() {
    let tree = json!({
        "$id": "https://example.com/tree",
        "$ref": "#/$defs/tr%65e",
        "$defs": { "tree": {
            "type": "object",
            "properties": {
                "left": { "$ref": "#/$defs/tree" },
                "right": { "$ref": "https://example.com/tree#/$defs/tree" },
                "leaf": { "$ref": "#leaf" },
            },
            "additionalProperties": false,
        }, "leaf": { "$anchor": "leaf", "type": "integer" } },
    });
    check(
        tree,
        json!({ "left": { "right": { "leaf": "x" } }, "right": { "top": 1 } }),
        &[
            "`/left/right/leaf` must be a whole number, but is the text \"x\".",
            "`/right/top` is not known; there is `leaf`, `left` and `right`.",
        ],
    );
    for reference in ["https://example.com/other", "other.json#/a", "#/$defs/none", "#none", "#/%"]
    {
        let why = Schema::compile(&Json::of(&json!({ "$ref": reference }))).unwrap_err();
        assert!(why.contains(reference) && why.contains("fetched"), "{why}");
    }
}

#[test]
fn a_wrong_schema_is_told_with_its_place() {
    let rows = [
        (json!({ "properties": { "a": { "type": "text" } } }), "#/properties/a"),
        (json!({ "items": { "minLength": -1 } }), "#/items"),
        (json!({ "anyOf": [{}, 1] }), "#/anyOf/1"),
        (json!({ "properties": { "a": { "pattern": "(" } } }), "#/properties/a"),
        (json!({ "properties": { "a": { "$id": "b" } } }), "#/properties/a"),
        (json!({ "multipleOf": 0 }), "multipleOf"),
        (json!({ "required": "a" }), "required"),
        (json!({ "enum": 1 }), "enum"),
        (json!([]), "neither an object"),
    ];
    for (schema, place) in rows {
        let why = Schema::compile(&Json::of(&schema)).unwrap_err();
        assert!(why.contains(place) && why.ends_with('.'), "{why}");
    }
    let twice = Json::parse(r#"{"type":"string","type":"null"}"#).unwrap();
    assert!(Schema::compile(&twice).unwrap_err().contains("`type` stands twice"));
}

#[test]
fn older_drafts_are_read_as_they_say() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "pair": { "items": [{ "type": "string" }, { "type": "null" }], "additionalItems": false },
            "same": { "$ref": "#/definitions/text", "maxLength": 1 },
        },
        "dependencies": { "a": ["b"], "c": { "required": ["d"] } },
        "definitions": { "text": { "type": "string" } },
    });
    let compiled = compile(&schema);
    let oracle = jsonschema::draft7::new(&schema).unwrap();
    for (value, count) in [
        (json!({ "pair": ["a", null], "same": "long" }), 0),
        (json!({ "pair": [1, null, 3], "same": 1, "a": 1, "c": 1 }), 5),
    ] {
        assert_eq!(compiled.check(&value).len(), count, "{value}");
        assert_eq!(oracle.is_valid(&value), count == 0);
    }
}

#[test]
fn formats_are_conditions_in_forms_alone() {
    let rows = [
        ("date", "2026-02-28", "2026-02-29"),
        ("date", "2024-02-29", "2024-2-29"),
        ("date-time", "2026-07-28T15:04:05.25+02:00", "2026-07-28 15:04:05Z"),
        ("date-time", "1998-12-31T23:59:60Z", "1998-12-31T23:58:60Z"),
        ("date-time", "1998-12-31T15:59:60.123-08:00", "1998-12-31T15:59:60.123"),
        ("time", "08:30:06Z", "24:00:00Z"),
        ("email", "ada.lovelace+x@example.com", "ada@@example.com"),
        ("email", "joe@[127.0.0.1]", ".ada@example.com"),
        ("uri", "https://user@[::1]:80/p?q#f", "https://[::1/p"),
        ("uri", "mailto:ada@example.com", "//no-scheme"),
        ("uri", "urn:a:b", "https://a b"),
        ("uuid", "2EB8AA08-AA98-11EA-B4AA-73B441D16380", "2eb8aa08aa9811eab4aa73b441d16380"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::ffff:192.168.0.1", "12345::"),
    ];
    for (format, right, wrong) in rows {
        let schema = json!({ "type": "string", "format": format });
        let form = Schema::compile_form(&Json::of(&schema)).unwrap();
        let oracle = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        for (text, is_right) in [(right, true), (wrong, false)] {
            assert_eq!(form.check(&json!(text)).is_empty(), is_right, "{format} {text}");
            assert_eq!(oracle.is_valid(&json!(text)), is_right, "{format} {text}, says the oracle");
        }
        assert!(compile(&schema).check(&json!(wrong)).is_empty(), "{format}");
    }
}

#[test]
fn only_what_serde_does_not_see_counts_as_more() {
    for schema in [
        json!({ "type": "object", "properties": {
            "a": { "type": "string", "description": "A.", "format": "date" },
            "b": { "type": "integer", "minimum": 0, "maximum": 255 },
            "c": { "type": "array", "items": { "enum": ["x", "y"] } },
            "d": { "type": "array", "prefixItems": [{}, {}], "minItems": 2, "maxItems": 2 },
            "e": { "type": "object", "additionalProperties": { "type": "integer" } },
            "f": { "oneOf": [{ "const": "x" }, { "type": "object", "properties": {} }] },
        }, "required": ["a"] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "null" } } }),
        json!(true),
    ] {
        assert!(!compile(&schema).says_more_than_serde(), "{schema}");
    }
    for schema in [
        json!({ "properties": { "a": { "type": "string", "minLength": 1 } } }),
        json!({ "properties": { "a": { "type": "integer", "minimum": 1 } } }),
        json!({ "properties": { "a": { "type": "integer", "minimum": 0.0 } } }),
        json!({ "properties": { "a": { "type": "number", "minimum": 0 } } }),
        json!({ "properties": { "a": { "type": "array", "minItems": 3, "maxItems": 3 } } }),
        json!({ "properties": {}, "additionalProperties": false }),
        json!({ "properties": { "a": {} }, "oneOf": [{ "required": ["a"] }, {}] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "pattern": "a" } } }),
    ] {
        assert!(compile(&schema).says_more_than_serde(), "{schema}");
    }
}

#[derive(Debug, Deserialize, PartialEq)]
struct Trip {
    city: String,
    nights: u32,
    note: Option<String>,
}

#[test]
fn arguments_are_read_or_everything_wrong_with_them_is_told() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "nights": { "type": "integer", "minimum": 0 },
            "note": { "type": "string" },
        },
        "required": ["city", "nights"],
    });
    let plain = compile(&schema);
    let strict = {
        let mut schema = schema;
        schema["properties"]["nights"]["maximum"] = json!(30);
        compile(&schema)
    };
    let read = |schema: Option<&Schema>, text: &str| {
        read::<Trip>(schema, Some(&Json::parse(text).unwrap()))
    };
    let trip = |nights| Trip { city: "Oslo".into(), nights, note: None };
    for schema in [None, Some(&plain), Some(&strict)] {
        let fine = r#"{"city":"Oslo","nights":2,"note":null}"#;
        assert_eq!(read(schema, fine), Ok(trip(2)), "`null` stands for what is left out");
        assert_eq!(read(schema, r#"{"city":"Oslo","nights":2.0}"#), Ok(trip(2)), "2.0 is whole");
    }
    let wrong = r#"{"nights":"two","note":5}"#;
    assert_eq!(
        read(Some(&plain), wrong).unwrap_err(),
        "The arguments do not fit:\n- `/city` is missing.\n- `/nights` must be a whole number, but \
         is the text \"two\".\n- `/note` must be a text, but is the number 5."
    );
    let nobody = super::read::<Trip>(Some(&plain), None).unwrap_err();
    assert!(nobody.contains("`/city`") && nobody.contains("`/nights`"), "{nobody}");
    let many = read(Some(&strict), r#"{"city":"Oslo","nights":31}"#).unwrap_err();
    assert_eq!(
        many,
        "The arguments do not fit: `/nights` must be at most 30, but is the number 31."
    );
    let twice = read(Some(&strict), r#"{"city":"Oslo","nights":1,"x":{"a":1,"a":2}}"#).unwrap_err();
    assert_eq!(twice, "The arguments do not fit: `a` stands twice in one object.");
    let huge = read(Some(&plain), r#"{"city":"Oslo","nights":99999999999}"#).unwrap_err();
    assert!(huge.contains("99999999999"), "{huge}");
    let none = read(None, wrong).unwrap_err();
    assert!(none.contains("a whole number that is not negative"), "{none}");
}

#[test]
fn results_are_held_against_their_schema() {
    let schema = compile(&json!({ "type": "object", "required": ["total"] }));
    assert_eq!(result(&schema, &Json::of(&json!({ "total": 1 }))), Ok(()));
    assert_eq!(
        result(&schema, &Json::of(&json!({}))).unwrap_err(),
        "The result does not fit: `/total` is missing."
    );
    // The text goes into logs, so it contains no values.
    let schema = compile(&json!({
        "properties": {
            "total": { "minimum": 1 }, "name": { "enum": ["a"] }, "mail": { "pattern": "@" },
        },
        "required": ["names"],
    }));
    let wrong = json!({ "total": -5, "name": "hunter2", "mail": "hunter3" });
    assert_eq!(
        result(&schema, &Json::of(&wrong)).unwrap_err(),
        "The result does not fit:\n- `/names` is missing.\n- `/mail` must match the pattern \
         `@`.\n- `/name` must be `a`.\n- `/total` must be at least 1."
    );
}

#[test]
fn null_is_forgiven_where_that_makes_nothing_wrong() {
    let reads = |schema: Value, value: Value| {
        super::read::<Value>(Some(&compile(&schema).by_hand()), Some(&Json::of(&value))).is_ok()
    };
    let text = json!({ "properties": { "a": { "type": "string" } } });
    let nothing = json!({ "properties": { "a": { "type": "null" } } });
    let value = json!({ "a": null });
    assert!(reads(text.clone(), value.clone()));
    assert!(reads(json!({ "oneOf": [text, nothing] }), value.clone()), "only one fits as it is");
    assert!(reads(json!({ "oneOf": [text, { "type": "string" }] }), value.clone()));
    assert!(!reads(json!({ "oneOf": [text, text] }), value.clone()), "both fit with forgiveness");
    assert!(reads(json!({ "not": text }), value.clone()));
    assert!(reads(json!({ "if": text, "then": false }), value.clone()));
    assert!(reads(json!({ "contains": text, "maxContains": 0, "minContains": 0 }), json!([value])));
}
