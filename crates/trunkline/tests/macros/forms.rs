//! `#[derive(Form)]`: what it asks, and what it parses.

use serde_json::{Value, json};
use trunkline::form::FormField;
use trunkline::{Form, RawJson};

/// How to fly.
#[derive(Clone, Copy, Debug, PartialEq, Form)]
#[form(rename_all = "kebab-case")]
enum Class {
    /// Economy
    Economy,
    #[form(title = "More legroom", default)]
    PremiumEconomy,
    #[form(rename = "1st")]
    First,
}

#[derive(Clone, Copy, Debug, PartialEq, Form)]
enum Meal {
    Fish,
    Meat,
}

// The derives of serde may be added, and have their own names.
#[derive(Debug, PartialEq, Form, serde::Deserialize)]
#[form(rename_all = "camelCase")]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
struct Trip {
    /// Where to?
    #[form(title = "City", min_length = 2, max_length = 40)]
    city_name: String,
    #[form(min = 1, max = 30, default = 2)]
    nights: u8,
    #[form(min = -0.5)]
    budget: Option<f64>,
    #[form(format = "email", rename = "e-mail")]
    email: Option<String>,
    #[form(default = "none")]
    note: String,
    #[form(default = true)]
    window: bool,
    #[serde(skip)]
    class: Option<Class>,
    /// What to eat
    #[serde(skip)]
    #[form(min_items = 1, max_items = 2, default = [Meal::Fish])]
    meals: Vec<Meal>,
    #[serde(skip)]
    #[form(max_items = 1)]
    snacks: Vec<Meal>,
}

fn schema<F: Form>() -> Value {
    F::form().to_json().to().unwrap()
}

fn read<F: Form>(content: Value) -> Result<F, String> {
    <F as Form>::read(&RawJson::of(&content))
}

#[test]
fn a_struct_is_a_form_of_its_fields() {
    let class = json!([
        { "const": "economy", "title": "Economy" },
        { "const": "premium-economy", "title": "More legroom" },
        { "const": "1st", "title": "1st" },
    ]);
    let expected = json!({
        "type": "object",
        "properties": {
            "cityName": { "type": "string", "title": "City", "description": "Where to?", "minLength": 2, "maxLength": 40 },
            "nights": { "type": "integer", "minimum": 1, "maximum": 30, "default": 2 },
            "budget": { "type": "number", "minimum": -0.5 },
            "e-mail": { "type": "string", "format": "email" },
            "note": { "type": "string", "default": "none" },
            "window": { "type": "boolean", "default": true },
            "class": { "type": "string", "description": "How to fly.", "oneOf": class, "default": "premium-economy" },
            "meals": {
                "type": "array",
                "description": "What to eat",
                "minItems": 1,
                "maxItems": 2,
                "items": { "type": "string", "enum": ["Fish", "Meat"] },
                "default": ["Fish"],
            },
            "snacks": { "type": "array", "maxItems": 1, "items": { "type": "string", "enum": ["Fish", "Meat"] } },
        },
        "required": ["cityName"],
    });
    assert_eq!(schema::<Trip>(), expected);
}

#[test]
fn an_answer_is_read_and_what_was_left_out_stays_as_it_was() {
    let expected = Trip {
        city_name: "Oslo".to_owned(),
        nights: 2,
        budget: None,
        email: None,
        note: "none".to_owned(),
        window: true,
        class: None,
        meals: vec![Meal::Fish],
        snacks: Vec::new(),
    };
    assert_eq!(read(json!({ "cityName": "Oslo" })), Ok(expected));
    let expected = Trip {
        city_name: "Bergen".to_owned(),
        nights: 3,
        budget: Some(10.5),
        email: Some("ada@example.com".to_owned()),
        note: String::new(),
        window: false,
        class: Some(Class::First),
        meals: vec![Meal::Meat, Meal::Fish],
        snacks: vec![Meal::Meat],
    };
    let answer = json!({
        "cityName": "Bergen", "nights": 3, "budget": 10.5, "e-mail": "ada@example.com", "note": "",
        "window": false, "class": "1st", "meals": ["Meat", "Fish"], "snacks": ["Meat"],
    });
    assert_eq!(read(answer), Ok(expected));
}

#[test]
fn what_does_not_fit_is_told_all_at_once() {
    let answer = json!({ "cityName": "O", "nights": 31, "e-mail": "ada", "meals": ["Soup"] });
    let why = read::<Trip>(answer).unwrap_err();
    for place in ["/cityName", "/nights", "/e-mail", "/meals"] {
        assert!(why.contains(place), "{why}");
    }
}

#[test]
fn an_enum_is_a_form_of_one_choice() {
    assert_eq!(read(json!({ "value": "1st" })), Ok(Class::First));
    assert_eq!(read(json!({ "value": "Fish" })), Ok(Meal::Fish));
    assert!(read::<Meal>(json!({ "value": "Soup" })).unwrap_err().contains("/value"));
    assert_eq!(schema::<Meal>()["properties"]["value"]["enum"], json!(["Fish", "Meat"]));
    assert_eq!(read(json!({ "value": ["Meat"] })), Ok(vec![Meal::Meat]));
    const { assert!(<Class as FormField>::REQUIRED) };
}
