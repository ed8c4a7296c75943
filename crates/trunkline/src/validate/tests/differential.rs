//! Random schemas and values, validated by us and by the `jsonschema` crate.

use serde_json::{Map, Value, json};

use super::compile;

#[test]
fn we_judge_as_jsonschema_does() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let schema = document(&mut dice);
        let oracle = match jsonschema::draft202012::new(&schema) {
            Ok(oracle) => oracle,
            Err(why) => panic!("seed {seed}: {why}\n{schema}"),
        };
        let ours = compile(&schema);
        for _ in 0..6 {
            let value = value(&mut dice, 3);
            let violations = ours.check(&value);
            let expected = oracle.is_valid(&value);
            *(if expected { &mut right } else { &mut wrong }) += 1;
            assert_eq!(
                violations.is_empty(),
                expected,
                "seed {seed}\nschema {schema}\nvalue {value}\nours {violations:?}"
            );
            for violation in violations {
                assert!(violation.message.ends_with(['.', '?']), "{violation:?}");
            }
        }
    }
    // Both outcomes must be common enough to count.
    assert!(right > 5000 && wrong > 5000, "{right} right, {wrong} wrong");
}

/// A small deterministic generator: an xorshift over a mixed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % count
    }

    fn one_of<T: Clone>(&mut self, things: &[T]) -> T {
        things[usize::try_from(self.below(things.len() as u64)).unwrap()].clone()
    }

    fn often(&mut self) -> bool {
        self.below(3) > 0
    }
}

const NAMES: [&str; 5] = ["a", "b", "ab", "c d", "e/f"];
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
const PATTERNS: [&str; 5] = ["^a", "b$", "[0-9]+", "^.$", "^(a|b)*$"];

fn document(dice: &mut Dice) -> Value {
    let mut root = schema(dice, 3);
    if let Value::Object(members) = &mut root {
        let one = json!({ "type": dice.one_of(&TYPES) });
        let two = schema(dice, 1);
        members.insert("$defs".into(), json!({ "one": one, "two": two, "e/f": {} }));
        if dice.below(4) == 0 {
            members.insert("$ref".into(), dice.one_of(&["#/$defs/one", "#/$defs/e~1f"]).into());
        }
    }
    root
}

fn schema(dice: &mut Dice, depth: u32) -> Value {
    match dice.below(14) {
        0 => return true.into(),
        1 => return false.into(),
        2 => return json!({ "$ref": dice.one_of(&["#/$defs/one", "#/$defs/e~1f"]) }),
        _ => {}
    }
    let mut members = Map::new();
    for _ in 0..=dice.below(3) {
        let (name, value) = keyword(dice, depth);
        members.insert(name.to_owned(), value);
    }
    // A dangling reference would make the schema invalid.
    if depth == 3 {
        members.entry("$defs").or_insert_with(|| json!({ "one": {}, "e/f": {} }));
    }
    members.into()
}

fn keyword(dice: &mut Dice, depth: u32) -> (&'static str, Value) {
    if depth > 0 && dice.often() { applicator(dice, depth - 1) } else { assertion(dice) }
}

fn assertion(dice: &mut Dice) -> (&'static str, Value) {
    let count = dice.below(4);
    match dice.below(20) {
        0..=3 => ("type", dice.one_of(&TYPES).into()),
        4 => ("type", json!([TYPES[dice.below(3) as usize], TYPES[3 + dice.below(4) as usize]])),
        5 => ("enum", json!([value(dice, 1), value(dice, 1), value(dice, 0)])),
        6 => ("const", value(dice, 1)),
        7 => ("minimum", number(dice)),
        8 => ("maximum", number(dice)),
        9 => ("exclusiveMinimum", number(dice)),
        10 => ("exclusiveMaximum", number(dice)),
        11 => {
            ("multipleOf", dice.one_of(&[json!(1), json!(2), json!(0.1), json!(0.25), json!(3.0)]))
        }
        12 => ("minLength", count.into()),
        13 => ("maxLength", count.into()),
        14 => ("pattern", dice.one_of(&PATTERNS).into()),
        15 => ("required", json!([dice.one_of(&NAMES[..2]), NAMES[2 + dice.below(3) as usize]])),
        16 => (dice.one_of(&["minProperties", "maxProperties"]), count.into()),
        17 => (dice.one_of(&["minItems", "maxItems"]), count.into()),
        18 => ("uniqueItems", dice.often().into()),
        _ => ("dependentRequired", json!({ dice.one_of(&NAMES): [dice.one_of(&NAMES)] })),
    }
}

fn applicator(dice: &mut Dice, depth: u32) -> (&'static str, Value) {
    let list = |dice: &mut Dice| {
        let count = 1 + dice.below(3);
        Value::from((0..count).map(|_| schema(dice, depth)).collect::<Vec<_>>())
    };
    let named = |dice: &mut Dice, names: &[&str]| {
        let count = 1 + dice.below(3);
        let member = |dice: &mut Dice| (dice.one_of(names).to_owned(), schema(dice, depth));
        Value::from((0..count).map(|_| member(dice)).collect::<Map<_, _>>())
    };
    match dice.below(20) {
        0..=3 => ("properties", named(dice, &NAMES)),
        4 => ("patternProperties", named(dice, &PATTERNS)),
        5 => ("additionalProperties", schema(dice, depth)),
        6 => ("propertyNames", schema(dice, depth)),
        7 => ("dependentSchemas", named(dice, &NAMES)),
        8 => ("items", schema(dice, depth)),
        9 => ("prefixItems", list(dice)),
        10 => ("contains", schema(dice, depth)),
        11 => ("minContains", dice.below(3).into()),
        12 => ("allOf", list(dice)),
        13 => ("anyOf", list(dice)),
        14 => ("oneOf", list(dice)),
        15 => ("not", schema(dice, depth)),
        16 => ("if", schema(dice, depth)),
        17 => (dice.one_of(&["then", "else"]), schema(dice, depth)),
        18 => ("unevaluatedItems", schema(dice, depth)),
        _ => ("unevaluatedProperties", schema(dice, depth)),
    }
}

fn number(dice: &mut Dice) -> Value {
    let near = [
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(1.0),
        json!(0.3),
        json!(2.5),
        json!(-0.5),
        json!(9_007_199_254_740_993_i64),
        json!(u64::MAX),
        json!(1e20),
    ];
    dice.one_of(&near)
}

fn value(dice: &mut Dice, depth: u32) -> Value {
    let count = dice.below(4);
    match dice.below(if depth == 0 { 6 } else { 10 }) {
        0 => Value::Null,
        1 => dice.often().into(),
        2 | 3 => number(dice),
        4 | 5 => dice.one_of(&["", "a", "b", "ab", "é1", "a b c"]).into(),
        6 | 7 => (0..count).map(|_| value(dice, depth - 1)).collect::<Vec<_>>().into(),
        _ => {
            let member = |dice: &mut Dice| (dice.one_of(&NAMES).to_owned(), value(dice, depth - 1));
            (0..count).map(|_| member(dice)).collect::<Map<_, _>>().into()
        }
    }
}
