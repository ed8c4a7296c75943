use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::{Secret, validate};

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Booking {
    /// City to visit
    city: String,
    nights: u32,
    note: Option<String>,
}

/// How to travel.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Class {
    /// Cheap.
    Economy,
    /// Wide.
    Business,
    First,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Only {
    One,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Bare {
    A,
    B,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    Circle { radius: f64 },
    Square { side: Option<f32> },
    Nothing,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Outside {
    Unit,
    New(u8),
    Tuple(i8, Option<bool>),
    Named { inner: Booking },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(Option<String>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    left: Option<Box<Tree>>,
    /// What grows here.
    branches: Vec<Tree>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Forest {
    tree: Tree,
    other: Option<Box<Forest>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Optional {
    booking: Option<Booking>,
    /// How, if anyhow.
    class: Option<Class>,
    bare: Option<Bare>,
    only: Option<Only>,
    shape: Option<Shape>,
    list: Option<Vec<Option<u8>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<Booking>,
    #[serde(default)]
    filled: Option<u16>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Collections {
    map: BTreeMap<String, Booking>,
    counts: HashMap<String, Option<u64>>,
    set: BTreeSet<u8>,
    pair: (String, Option<u8>),
    three: [f32; 3],
    any: Value,
    letter: char,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Numbers {
    a: u8,
    b: i16,
    c: u64,
    d: f64,
    e: usize,
    f: Option<i128>,
    g: std::num::NonZeroU32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Flattened {
    #[serde(flatten)]
    booking: Booking,
    #[serde(flatten)]
    shape: Shape,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Strict {
    #[schemars(length(min = 1), regex(pattern = "^[a-z]+$"))]
    name: String,
    /// When, as `type` or `format` would say.
    #[schemars(extend("format" = "date-time"))]
    r#type: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Login {
    user: String,
    password: Secret<String>,
    pin: Option<Secret<u16>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Generic_{T}")]
struct Generic<T> {
    value: T,
}

/// What some host or other refuses.
fn forbidden(schema: &Value, at: &str, found: &mut Vec<String>) {
    let Value::Object(members) = schema else { return };
    for word in ["$ref", "$defs", "definitions", "const", "$schema"] {
        if members.contains_key(word) {
            found.push(format!("{at}: {word}"));
        }
    }
    if members.get("type").is_some_and(Value::is_array) {
        found.push(format!("{at}: several types"));
    }
    let format = members.get("format").and_then(Value::as_str).unwrap_or_default();
    if format.contains("int") || matches!(format, "float" | "double") {
        found.push(format!("{at}: {format}"));
    }
    for (name, value) in members {
        match name.as_str() {
            "properties" => value.as_object().into_iter().flatten().for_each(|(name, it)| {
                assert!(it.is_object(), "{name}: {it}");
                forbidden(it, &format!("{at}/{name}"), found);
            }),
            "enum" | "default" | "examples" => {}
            _ => match value {
                Value::Array(items) => items.iter().for_each(|it| forbidden(it, at, found)),
                value => forbidden(value, &format!("{at}/{name}"), found),
            },
        }
    }
}

#[track_caller]
fn is_plain<T: JsonSchema>() {
    for (what, schema) in [
        ("input", input_in::<T>(SchemaProfile::Plain)),
        ("output", output_in::<T>(SchemaProfile::Plain)),
    ] {
        let value: Value = schema.to().unwrap();
        let mut found = Vec::new();
        forbidden(&value, "", &mut found);
        let name = std::any::type_name::<T>();
        assert!(found.is_empty(), "{what} of {name}: {found:?}\n{schema}");
        assert!(what == "output" || !schema.get().contains(r#""null""#), "{name}\n{schema}");
        validate::Schema::compile(&schema).unwrap_or_else(|why| panic!("{name}: {why}\n{schema}"));
        assert!(jsonschema::draft202012::meta::is_valid(&value), "{schema}");
        // The full profile is a valid schema as well.
        let full = input_in::<T>(SchemaProfile::Full);
        validate::Schema::compile(&full).unwrap_or_else(|why| panic!("{name}: {why}\n{full}"));
    }
}

#[test]
fn plain_schemas_have_nothing_that_hosts_refuse() {
    is_plain::<Booking>();
    is_plain::<Class>();
    is_plain::<Only>();
    is_plain::<Bare>();
    is_plain::<Shape>();
    is_plain::<Outside>();
    is_plain::<Untagged>();
    is_plain::<Tree>();
    is_plain::<Forest>();
    is_plain::<Optional>();
    is_plain::<Collections>();
    is_plain::<Numbers>();
    is_plain::<Flattened>();
    is_plain::<Strict>();
    is_plain::<Login>();
    is_plain::<Generic<Option<Generic<u8>>>>();
    is_plain::<Vec<Option<Booking>>>();
    is_plain::<Option<Tree>>();
}

fn input<T: JsonSchema>() -> Value {
    input_in::<T>(SchemaProfile::Plain).to().unwrap()
}

fn output<T: JsonSchema>() -> Value {
    output_in::<T>(SchemaProfile::Plain).to().unwrap()
}

#[test]
fn arguments_need_no_null() {
    assert_eq!(
        input::<Booking>(),
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "City to visit" },
                "nights": { "type": "integer", "minimum": 0 },
                "note": { "type": "string" }
            },
            "required": ["city", "nights"]
        })
    );
    let optional = input::<Optional>();
    let of = |name: &str| optional["properties"][name].clone();
    assert_eq!(of("booking")["properties"]["nights"], json!({ "type": "integer", "minimum": 0 }));
    assert_eq!(
        of("class"),
        json!({
            "type": "string", "enum": ["first", "economy", "business"],
            "description": "How, if anyhow.\nHow to travel.\n`economy`: Cheap.\n`business`: Wide.",
        })
    );
    assert_eq!(of("bare"), json!({ "type": "string", "enum": ["A", "B"] }));
    assert_eq!(of("only"), json!({ "type": "string", "enum": ["One"] }));
    assert_eq!(of("shape")["oneOf"].as_array().unwrap().len(), 3);
    assert_eq!(of("filled"), json!({ "type": "integer", "minimum": 0, "maximum": 65535 }));
    assert_eq!(optional.get("required"), None);
}

#[test]
fn the_names_of_a_choice_keep_what_they_mean() {
    let class = output::<Class>();
    assert_eq!(class["enum"], json!(["first", "economy", "business"]));
    let description = class["description"].as_str().unwrap();
    assert_eq!(description, "How to travel.\n`economy`: Cheap.\n`business`: Wide.");
    let shape = output::<Shape>();
    assert_eq!(shape["oneOf"][0]["properties"]["kind"]["enum"], json!(["circle"]));
}

#[test]
fn results_say_null_where_it_can_be() {
    let booking = Booking { city: "Oslo".into(), ..Booking::default() };
    let schema = output::<Booking>();
    assert_eq!(schema["required"], json!(["city", "nights", "note"]));
    assert_eq!(
        schema["properties"]["note"],
        json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] })
    );
    let fits = |schema: &Value, value: &Value| {
        let schema = validate::Schema::compile(&Json::of(schema)).unwrap();
        validate::result(&schema, &Json::of(value))
    };
    assert_eq!(fits(&schema, &json!(booking)), Ok(()));

    let nothing = Optional {
        booking: None,
        class: None,
        bare: None,
        only: None,
        shape: None,
        list: Some(vec![None, Some(1)]),
        left_out: None,
        filled: None,
    };
    let schema = output::<Optional>();
    assert_eq!(fits(&schema, &json!(nothing)), Ok(()), "{schema}");
    assert_eq!(schema["properties"]["left_out"]["type"], "object", "{schema}");
    let list: Vec<Option<Booking>> = vec![None, Some(booking)];
    assert_eq!(fits(&output::<Vec<Option<Booking>>>(), &json!(list)), Ok(()));
}

#[test]
fn what_contains_itself_ends_in_a_sentence() {
    let tree = input::<Tree>();
    let branch = &tree["properties"]["branches"]["items"];
    assert_eq!(branch["type"], "object");
    assert!(branch["description"].as_str().unwrap().contains("same form"), "{tree}");
    // Validation is unaffected.
    let schema = validate::Schema::compile(&Json::of(&tree)).unwrap();
    let deep = json!({ "name": "a", "branches": [{ "name": "b", "branches": [] }] });
    let read: Tree = validate::read(Some(&schema), Some(&Json::of(&deep))).unwrap();
    assert_eq!((read.branches[0].name.as_str(), read.left.is_none()), ("b", true));
}

#[test]
fn what_contains_itself_in_several_forms_may_be_any_of_them() {
    #[derive(serde::Serialize, serde::Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Term {
        Number(i32),
        Sum(Vec<Term>),
        Named { name: String, term: Option<Box<Term>> },
    }

    #[derive(serde::Serialize, serde::Deserialize, JsonSchema)]
    struct Line {
        term: Term,
    }

    let term = Term::Named { name: "a".into(), term: Some(Box::new(Term::Number(1))) };
    let line = Json::of(&Line { term: Term::Sum(vec![Term::Number(2), Term::Sum(vec![term])]) });
    for profile in [SchemaProfile::Plain, SchemaProfile::Full] {
        let output = output_in::<Line>(profile);
        let schema = validate::Schema::compile(&output).unwrap();
        assert_eq!(validate::result(&schema, &line), Ok(()), "{output}");
        let input = input_in::<Line>(profile);
        let schema = validate::Schema::compile(&input).unwrap().by_hand();
        assert!(validate::read::<Line>(Some(&schema), Some(&line)).is_ok(), "{input}");
    }
    let text = output_in::<Line>(SchemaProfile::Plain).get().to_owned();
    assert!(text.contains("the same form as the `Term`") && !text.contains("$ref"), "{text}");
}

#[test]
fn full_schemas_have_all_that_schemars_says() {
    let full: Value = input_in::<Optional>(SchemaProfile::Full).to().unwrap();
    let text = full.to_string();
    assert!(
        text.contains("$ref") && text.contains(r#""null""#) && text.contains("uint16"),
        "{text}"
    );
    assert_eq!(full["type"], "object");
}

#[test]
fn secrets_are_write_only() {
    let login = input::<Login>();
    assert_eq!(
        login["properties"]["password"],
        json!({ "type": "string", "writeOnly": true, "format": "password" })
    );
    assert_eq!(login["properties"]["pin"]["writeOnly"], true, "{login}");
    let schema = validate::Schema::compile(&Json::of(&login)).unwrap();
    for wrong in [
        json!({ "user": 1, "password": ["hunter2"], "pin": "hunter2" }),
        json!({ "user": "a", "password": 123_456_789 }),
    ] {
        let why = validate::read::<Login>(Some(&schema), Some(&Json::of(&wrong))).err().unwrap();
        assert!(!why.contains("hunter2") && !why.contains("123456789"), "{why}");
        assert!(why.contains("`/password`"), "{why}");
        let why = validate::read::<Login>(None, Some(&Json::of(&wrong))).err().unwrap();
        assert!(!why.contains("hunter2") && !why.contains("123456789"), "{why}");
    }
}

#[test]
fn what_serde_checks_is_known() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Bounded {
        #[schemars(range(min = 0))]
        signed: i32,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Below {
        #[schemars(range(max = 255))]
        wide: u32,
    }

    fn says_more<T: JsonSchema>(profile: SchemaProfile) -> bool {
        validate::Schema::compile(&input_in::<T>(profile)).unwrap().says_more_than_serde()
    }
    for profile in [SchemaProfile::Plain, SchemaProfile::Full] {
        assert!(!says_more::<Booking>(profile));
        assert!(!says_more::<Shape>(profile));
        assert!(!says_more::<Tree>(profile));
        assert!(!says_more::<Optional>(profile));
        assert!(says_more::<Bounded>(profile), "a bound that the type does not have");
        assert!(says_more::<Below>(profile), "a bound that the type does not have");
        assert!(says_more::<Strict>(profile));
    }
}

#[test]
fn members_know_what_is_required() {
    let members = members(&input_in::<Booking>(SchemaProfile::Plain));
    let required: Vec<_> = members.iter().filter(|it| it.2).map(|it| it.0.as_str()).collect();
    assert_eq!(required, ["city", "nights"]);
}
