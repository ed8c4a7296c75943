//! The most that any schema or value can make us spend.

use serde_json::{Map, json};

use super::*;

const TOO_MUCH: &str = "The value is too much to be checked against its schema.";

#[test]
fn hostile_schemas_and_values_cost_little() {
    // It refers to itself without ever descending into the value.
    let circle = compile(&json!({ "allOf": [{ "$ref": "#" }] }));
    let circle = circle.check(&json!(1));
    assert_eq!(circle[0].message, "The value is too much to be checked against its schema.");
    // Each level doubles the work; a `not` must not turn giving up into a match.
    let mut doubling = json!({ "l0": { "type": "string" } });
    for level in 1..60 {
        let inner = json!({ "$ref": format!("#/$defs/l{}", level - 1) });
        doubling[format!("l{level}")] = json!({ "allOf": [inner, inner] });
    }
    let doubling = compile(&json!({ "$defs": doubling, "not": { "$ref": "#/$defs/l59" } }));
    assert_eq!(doubling.check(&json!("x")).len(), 1);
    // A long chain of references costs no stack.
    let mut chain = json!({ "l0": {} });
    for level in 1..9000 {
        chain[format!("l{level}")] = json!({ "$ref": format!("#/$defs/l{}", level - 1) });
    }
    let chain = compile(&json!({ "$defs": chain, "$ref": "#/$defs/l8999" }));
    assert_eq!(chain.check(&json!("x")).len(), 1);
    let many: Vec<_> =
        (0..20_000).map(|it| json!({ "type": "string", "title": it.to_string() })).collect();
    assert!(Schema::compile(&Json::of(&json!({ "anyOf": many }))).unwrap_err().contains("10000"));
    // Faults beyond the limit are only counted.
    let list = compile(&json!({ "items": { "type": "string" } }));
    let violations = list.check(&json!((0..5000).collect::<Vec<_>>()));
    assert_eq!(violations.len(), MOST_VIOLATIONS + 1);
    assert_eq!(violations[MOST_VIOLATIONS].message, "And 4980 faults more.");
    // Large lists of distinct items are compared in one pass.
    let unique = compile(&json!({ "uniqueItems": true }));
    assert!(unique.check(&json!((0..200_000).collect::<Vec<_>>())).is_empty());
}

/// A schema in which every level repeats the same work.
fn doubling(leaf: Value) -> Value {
    let mut levels = json!({ "l0": leaf });
    for level in 1..40 {
        let inner = json!({ "$ref": format!("#/$defs/l{}", level - 1) });
        levels[format!("l{level}")] = json!({ "allOf": [inner, inner] });
    }
    json!({ "$defs": levels, "$ref": "#/$defs/l39" })
}

fn names(count: usize, long: usize) -> Vec<String> {
    (0..count).map(|it| format!("{it:a>long$}")).collect()
}

fn object(names: &[String]) -> Value {
    names.iter().map(|it| (it.clone(), json!(1))).collect::<Map<_, _>>().into()
}

/// Each case is expensive in its own way; in a release build none takes 50 milliseconds.
#[test]
fn the_worst_that_can_be_asked_comes_to_an_end() {
    let numbers = json!((0..100_000).collect::<Vec<_>>());
    let texts = json!(vec!["a".repeat(2000); 1000]);
    let (few, many, long) = (names(1000, 60), names(10_000, 8), names(100, 10_000));
    let objects = json!(vec![json!({ "a": [1, 2.5], "b": "x" }); 10_000]);
    let pattern = json!({ "pattern": "[ab]{0,900}c" });
    let forms: Vec<_> = (0..900).map(|it| json!({ "minimum": 200_000 + it })).collect();
    let choices: Vec<_> = (0..9000).map(|it| json!({ "a": it })).collect();
    let each = |schema: Value| json!({ "items": schema, "$defs": schema["$defs"] });
    let secret = json!({ "type": "string", "writeOnly": true });
    let globs: Map<_, _> = (0..300).map(|it| (format!("[ab]{{0,20}}{it}"), json!({}))).collect();
    let closed = json!({
        "allOf": [{ "additionalProperties": {} }, { "additionalProperties": {} }],
        "unevaluatedProperties": false,
    });
    let rows = [
        ("a pattern on a text", pattern.clone(), json!("a".repeat(100_000))),
        ("a pattern on a long text", pattern.clone(), json!("a".repeat(300_000))),
        ("a pattern on many texts", json!({ "items": pattern }), texts.clone()),
        (
            "a dense pattern",
            json!({ "items": { "pattern": "(?:(?:a*)*(?:a*)*)*b" } }),
            texts.clone(),
        ),
        ("a pattern twice over", doubling(json!({ "pattern": "a+b" })), json!("a".repeat(500))),
        ("patterns of names", json!({ "patternProperties": globs }), object(&few)),
        ("references", doubling(json!({ "type": "string" })), json!("x")),
        ("references that fail", doubling(json!({ "type": "null" })), json!("x")),
        ("references on items", each(doubling(json!({}))), numbers.clone()),
        ("items twice over", doubling(json!({ "items": { "type": "integer" } })), numbers.clone()),
        ("faults of items", doubling(json!({ "items": { "type": "null" } })), numbers.clone()),
        ("divisions", doubling(json!({ "items": { "multipleOf": 0.1 } })), numbers.clone()),
        ("lengths", doubling(json!({ "minLength": 1 })), json!("é".repeat(500_000))),
        ("formats", doubling(json!({ "format": "email" })), json!("a.".repeat(500_000) + "@a")),
        ("twins", doubling(json!({ "uniqueItems": true })), numbers.clone()),
        ("twin objects", doubling(json!({ "uniqueItems": true })), objects.clone()),
        ("names that are missing", doubling(json!({ "required": many })), object(&few)),
        (
            "names that are unknown",
            doubling(json!({ "additionalProperties": false })),
            object(&many),
        ),
        (
            "long names",
            doubling(json!({ "additionalProperties": { "type": "null" } })),
            object(&long),
        ),
        ("rules of names", doubling(json!({ "propertyNames": { "maxLength": 1 } })), object(&many)),
        ("choices", json!({ "items": { "enum": choices } }), numbers.clone()),
        ("choices of objects", json!({ "items": { "enum": choices } }), objects.clone()),
        ("texts of choices", json!({ "items": { "enum": many } }), texts),
        ("forms", json!({ "items": { "anyOf": forms } }), numbers.clone()),
        ("one form", json!({ "items": { "oneOf": forms } }), numbers.clone()),
        (
            "forms of forms",
            each(doubling(json!({ "anyOf": [{ "minimum": 1e9 }, { "not": {} }] }))),
            numbers.clone(),
        ),
        ("secrets", json!({ "items": secret }), numbers.clone()),
        ("what is seen", doubling(closed), object(&many)),
        (
            "items that are seen",
            doubling(json!({ "contains": {}, "unevaluatedItems": false })),
            numbers,
        ),
    ];
    for (name, schema, value) in rows {
        let schema =
            Schema::compile_form(&Json::of(&schema)).unwrap_or_else(|why| panic!("{name}: {why}"));
        // It ends, and its report is bounded.
        let violations = schema.check(&value);
        assert!(violations.len() <= MOST_VIOLATIONS + 1, "{name}: {}", violations.len());
        let told: usize = violations.iter().map(|it| it.message.len()).sum();
        assert!(told < 100_000, "{name}: {told} bytes");
    }
}

#[test]
fn what_is_ordinary_passes_however_large() {
    let row = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" },
            "name": { "type": "string", "minLength": 1, "maxLength": 200 },
            "kind": { "enum": ["a", "b", "c"] },
            "size": { "type": "integer", "minimum": 0 },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        },
        "required": ["id", "name", "kind"],
        "additionalProperties": false,
    });
    let one = json!({ "id": "01234567-89ab-cdef-0123-456789abcdef", "name": "Ada", "kind": "c", "size": 5, "note": null });
    let mut plain = row.clone();
    plain["properties"]["id"] = json!({ "type": "string" });
    let text =
        json!({ "type": "object", "properties": { "text": { "type": "string", "minLength": 1 } } });
    for (name, schema, value) in [
        ("a text", text, json!({ "text": "x".repeat(1 << 20) })),
        ("plain rows", json!({ "items": plain }), json!(vec![one.clone(); 10_000])),
        ("rows with a pattern", json!({ "items": row }), json!(vec![one; 3000])),
        ("numbers", json!({ "items": { "type": "number" } }), json!(vec![1.5; 500_000])),
    ] {
        assert_eq!(compile(&schema).check(&value), [], "{name}");
    }
}

#[test]
fn a_pattern_is_neither_too_large_nor_tried_on_too_much() {
    let why = Schema::compile(&Json::of(&json!({ "items": { "pattern": "(?:[a-z]{100}){100}" } })));
    let why = why.unwrap_err();
    assert!(why.contains("`(?:[a-z]{100}){100}` at `#/items` is too large"), "{why}");
    let many: Vec<_> = (0..100).map(|it| json!({ "pattern": format!("a{{1,400}}{it}") })).collect();
    let why = Schema::compile(&Json::of(&json!({ "allOf": many }))).unwrap_err();
    assert!(why.contains("The patterns of the schema are too large"), "{why}");
    // Not even a `not` turns giving up into a match.
    let long = json!("b".repeat((1 << 17) + 1));
    for schema in [json!({ "pattern": "^a" }), json!({ "not": { "pattern": "^a" } })] {
        let told = compile(&schema).check(&long);
        let says = "The value has a text that is too long for the pattern `^a`: 131072 bytes are \
                    tried at most.";
        assert_eq!((told.len(), told[0].message.as_str()), (1, says), "{schema}");
    }
    let much = compile(&json!({ "not": { "pattern": "[ab]{0,900}c" } }));
    assert_eq!(much.check(&json!("a".repeat(100_000)))[0].message, TOO_MUCH);
}
