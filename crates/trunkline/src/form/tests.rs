use serde_json::{Value, json};
use trunkline_wire::model::{EnumSchema, Many};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Class {
    Economy,
    Business,
}

impl FormChoice for Class {
    fn choice() -> EnumSchema {
        EnumSchema::titled([("economy", "Economy"), ("business", "Business class")])
    }

    fn value(&self) -> &'static str {
        match self {
            Self::Economy => "economy",
            Self::Business => "business",
        }
    }

    fn from_value(value: &str) -> Option<Self> {
        [Self::Economy, Self::Business].into_iter().find(|it| it.value() == value)
    }
}

/// What `#[derive(Form)]` writes for an enum.
macro_rules! choice_field {
    ($Choice:ident) => {
        impl FormField for $Choice {
            const REQUIRED: bool = true;
            type Schema = EnumSchema;
            type Initial = Self;

            fn field() -> EnumSchema {
                choice_field::<Self>()
            }

            fn initial(schema: EnumSchema, value: Self) -> EnumSchema {
                choice_initial(schema, &value)
            }

            fn read_field(value: Option<&Value>) -> Result<Self, String> {
                choice_read(value)
            }
        }
    };
}

choice_field! { Class }

#[derive(Debug, PartialEq)]
struct Trip {
    city: String,
    mail: Option<String>,
    nights: u8,
    price: f64,
    class: Class,
    extras: Vec<Class>,
    sure: bool,
}

impl Form for Trip {
    fn form() -> FormSchema {
        let form = FormSchema::new();
        let form = with::<String>(form, "city", String::field().min_length(2_u64));
        let form = with::<Option<String>>(form, "mail", String::field().format("email"));
        let form = form.optional("nights", u8::initial(u8::field().maximum(30), 2));
        let form = with::<f64>(form, "price", f64::field());
        let form = with::<Class>(form, "class", Class::initial(Class::field(), Class::Economy));
        let many = Many { min_items: Some(1), max_items: None };
        let form = with::<Vec<Class>>(form, "extras", Vec::<Class>::field().many(many));
        with::<bool>(form, "sure", bool::field().title("Sure?"))
    }

    fn read(content: &Json) -> Result<Self, String> {
        let fields = Fields::open(&Self::form(), content)?;
        Ok(Self {
            city: fields.read("city")?,
            mail: fields.read("mail")?,
            nights: fields.read_or("nights", || 2)?,
            price: fields.read("price")?,
            class: fields.read("class")?,
            extras: fields.read("extras")?,
            sure: fields.read("sure")?,
        })
    }
}

fn read<T: Form>(content: Value) -> Result<T, String> {
    T::read(&Json::of(&content))
}

#[test]
fn a_form_says_what_its_types_say() {
    let titled = json!([
        { "const": "economy", "title": "Economy" },
        { "const": "business", "title": "Business class" },
    ]);
    assert_eq!(
        Trip::form().to_json().to::<Value>().unwrap(),
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "minLength": 2 },
                "mail": { "type": "string", "format": "email" },
                "nights": { "type": "integer", "minimum": 0, "maximum": 30, "default": 2 },
                "price": { "type": "number" },
                "class": { "type": "string", "oneOf": titled, "default": "economy" },
                "extras": { "type": "array", "items": { "anyOf": titled }, "minItems": 1 },
                "sure": { "type": "boolean", "title": "Sure?" },
            },
            "required": ["city", "price", "class", "extras", "sure"],
        })
    );
}

#[test]
fn an_answer_is_read_as_the_type() {
    let answer = json!({
        "city": "Oslo", "mail": null, "nights": null, "price": 12, "class": "business",
        "extras": ["economy"], "sure": true, "unasked": 1,
    });
    let trip = Trip {
        city: "Oslo".into(),
        mail: None,
        nights: 2,
        price: 12.0,
        class: Class::Business,
        extras: vec![Class::Economy],
        sure: true,
    };
    assert_eq!(read::<Trip>(answer), Ok(trip));
}

#[test]
fn everything_wrong_with_an_answer_is_told_at_once() {
    let answer = json!({
        "city": "O", "mail": "nobody", "nights": 31, "price": "much", "class": "first", "extras": [],
    });
    let why = read::<Trip>(answer).unwrap_err();
    for sentence in [
        "`/sure` is missing.",
        "`/city` must have at least 2 characters, but is the text \"O\".",
        "`/class` must be one of `economy` or `business`, but is the text \"first\".",
        "`/extras` must have at least 1 item, but has 0.",
        "`/mail` must be an e-mail address, but is the text \"nobody\".",
        "`/nights` must be at most 30, but is the number 31.",
        "`/price` must be a number, but is the text \"much\".",
    ] {
        assert!(why.contains(sentence), "{sentence}\n{why}");
    }
    assert_eq!(read::<Trip>(json!([])).unwrap_err(), "The answer must be an object.");
}

#[test]
fn a_single_thing_is_a_form_of_one_field() {
    assert_eq!(
        bool::form().to_json().to::<Value>().unwrap(),
        json!({
            "type": "object",
            "properties": { "value": { "type": "boolean" } },
            "required": ["value"],
        })
    );
    assert_eq!(read::<bool>(json!({ "value": true })), Ok(true));
    assert_eq!(read::<String>(json!({ "value": "x" })), Ok("x".to_owned()));
    assert_eq!(read::<f32>(json!({ "value": 1.5 })), Ok(1.5));
    assert_eq!(read::<Vec<Class>>(json!({})), Ok(vec![]));
    assert_eq!(read::<Vec<Class>>(json!({ "value": ["economy"] })), Ok(vec![Class::Economy]));
    assert_eq!(read::<bool>(json!({})), Err("`/value` is missing.".to_owned()));
    assert_eq!(
        read::<Vec<Class>>(json!({ "value": ["economy", "first"] })).unwrap_err(),
        "`/value/1` must be one of `economy` or `business`, but is the text \"first\"."
    );
}

#[test]
fn whole_numbers_keep_to_their_type_however_they_are_spelled() {
    assert_eq!(read::<u8>(json!({ "value": 255.0 })), Ok(255));
    assert_eq!(read::<i64>(json!({ "value": i64::MIN })), Ok(i64::MIN));
    assert_eq!(read::<u64>(json!({ "value": u64::MAX })), Ok(u64::MAX));
    assert_eq!(
        read::<i8>(json!({ "value": 128 })).unwrap_err(),
        "`/value` must be at most 127, but is the number 128."
    );
    assert_eq!(
        read::<u32>(json!({ "value": 4_294_967_296_u64 })).unwrap_err(),
        "`/value` must be a whole number from 0 to 4294967295."
    );
    assert_eq!(
        read::<i32>(json!({ "value": 1.5 })).unwrap_err(),
        "`/value` must be a whole number, but is the number 1.5."
    );
    assert!(read::<u64>(json!({ "value": 1e300 })).is_err());
}

#[test]
fn a_form_by_hand_is_checked_before_it_is_asked() {
    let nested = json!({ "type": "object", "properties": { "a": { "type": "object" } } });
    assert!(Check::new(&Json::of(&nested)).err().unwrap().contains("flat"));
    // The fifth spelling of a choice, which only hand-written forms have.
    let legacy = json!({
        "type": "object",
        "properties": { "a": { "type": "string", "enum": ["x"], "enumNames": ["X"] } },
    });
    let check = Check::new(&Json::of(&legacy)).unwrap();
    assert!(check.filled_in(&Json::of(&json!({ "a": "x" }))).is_ok());
    assert!(check.filled_in(&Json::of(&json!({ "a": "X" }))).unwrap_err().contains("`/a`"));
}

#[test]
fn a_choice_that_is_made_beforehand_need_not_be_made() {
    #[derive(Debug, PartialEq)]
    enum Seat {
        Aisle,
        Window,
    }

    impl FormChoice for Seat {
        fn choice() -> EnumSchema {
            EnumSchema::new(["aisle", "window"]).initial(["window".to_owned()])
        }

        fn value(&self) -> &'static str {
            if *self == Self::Aisle { "aisle" } else { "window" }
        }

        fn from_value(value: &str) -> Option<Self> {
            [Self::Aisle, Self::Window].into_iter().find(|it| it.value() == value)
        }
    }

    choice_field! { Seat }

    assert!(one_field::<Seat>().required.is_empty());
    let read = |content: Value| read_one::<Seat>(&Json::of(&content));
    assert_eq!(read(json!({})), Ok(Seat::Window));
    assert_eq!(read(json!({ "value": null })), Ok(Seat::Window));
    assert_eq!(read(json!({ "value": "aisle" })), Ok(Seat::Aisle));
    assert!(read(json!({ "value": "roof" })).is_err());
    assert_eq!(read_one::<Option<Seat>>(&Json::of(&json!({}))), Ok(None));
    // There is no default here.
    assert_eq!(one_field::<Class>().required, ["value"]);
    assert_eq!(choice_read::<Class>(None), Err("is missing".to_owned()));
}
