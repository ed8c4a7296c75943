//! The types of a form's fields.

use serde_json::Value;
use trunkline_wire::model::{
    BooleanSchema, EnumSchema, FormSchema, Many, NumberSchema, PrimitiveSchema, StringSchema,
};

use super::{Form, FormChoice, one_field, read_one};
use crate::RawJson;

/// A type of a form's field: a text, a number, a boolean, a choice (an enum with
/// `#[derive(Form)]`), a [`Vec`] of choices, or an [`Option`] of these, which may stay empty.
///
/// ```
/// use trunkline::form::FormField;
/// use trunkline::model::PrimitiveSchema;
///
/// let nights: PrimitiveSchema = u8::field().title("Nights").into();
/// let PrimitiveSchema::Number(nights) = nights else { panic!("a number") };
/// assert_eq!((nights.integer, nights.maximum), (true, Some(255.0)));
/// assert!(!<Option<u8> as FormField>::REQUIRED);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    label = "not a field of a form",
    note = "a field is a text, a number, a `bool`, an enum with `#[derive(Form)]`, a `Vec` of such an enum, or an `Option` of these",
    note = "a form is flat: put the fields of an inner struct into the form itself, or ask a second question",
    note = "a `Secret` is never asked for in a form: send the user to a page with `Context::ask_url`"
)]
pub trait FormField: Sized {
    /// Whether a form without this field is incomplete.
    const REQUIRED: bool;

    /// Its schema, with setters for its constraints.
    type Schema: Into<PrimitiveSchema>;

    /// The type of its default.
    type Initial;

    /// The schema without constraints.
    ///
    /// ```
    /// use trunkline::form::FormField;
    ///
    /// assert_eq!(u8::field().maximum, Some(255.0));
    /// ```
    fn field() -> Self::Schema;

    /// Sets the default.
    ///
    /// ```
    /// use trunkline::form::FormField;
    ///
    /// assert_eq!(u8::initial(u8::field(), 2).initial, Some(2.0));
    /// ```
    fn initial(schema: Self::Schema, value: Self::Initial) -> Self::Schema;

    /// Parses a value, if there is one. The error completes a sentence that begins with the field's
    /// name: "must be a whole number".
    ///
    /// ```
    /// use trunkline::form::FormField;
    ///
    /// assert_eq!(bool::read_field(None).unwrap_err(), "is missing");
    /// assert_eq!(Option::<bool>::read_field(None), Ok(None));
    /// ```
    fn read_field(value: Option<&Value>) -> Result<Self, String>;
}

/// Whether a field is incomplete as long as nothing is chosen.
pub(super) fn wants_some(schema: &PrimitiveSchema) -> bool {
    matches!(
        schema,
        PrimitiveSchema::Enum(EnumSchema { many: Some(Many { min_items: Some(1..), .. }), .. })
    )
}

/// Whether the type itself has a default.
pub(super) fn is_chosen<F: FormField>() -> bool {
    let is_chosen = match F::field().into() {
        PrimitiveSchema::Enum(choice) => choice.many.is_none() && !choice.initial.is_empty(),
        _ => false,
    };
    is_chosen && F::read_field(None).is_ok()
}

pub(super) const MISSING: &str = "is missing";

/// A required field that is its own default.
macro_rules! required {
    ($Schema:ident, $Initial:ty) => {
        const REQUIRED: bool = true;
        type Schema = $Schema;
        type Initial = $Initial;

        fn field() -> $Schema {
            $Schema::new()
        }

        fn initial(schema: $Schema, value: $Initial) -> $Schema {
            schema.initial(value)
        }
    };
}

impl FormField for bool {
    required! { BooleanSchema, bool }

    fn read_field(value: Option<&Value>) -> Result<Self, String> {
        value.ok_or(MISSING)?.as_bool().ok_or_else(|| "must be `true` or `false`".to_owned())
    }
}

impl FormField for String {
    required! { StringSchema, String }

    fn read_field(value: Option<&Value>) -> Result<Self, String> {
        let text = value.ok_or(MISSING)?.as_str();
        text.map(str::to_owned).ok_or_else(|| "must be a text".to_owned())
    }
}

macro_rules! whole_numbers {
    ($($Type:ty: $field:expr;)*) => { $(
        impl FormField for $Type {
            const REQUIRED: bool = true;
            type Schema = NumberSchema;
            type Initial = $Type;

            fn field() -> NumberSchema {
                $field
            }

            fn initial(schema: NumberSchema, value: $Type) -> NumberSchema {
                schema.initial(value as f64)
            }

            fn read_field(value: Option<&Value>) -> Result<Self, String> {
                let value = value.ok_or(MISSING)?;
                let number = whole(value).and_then(|it| <$Type>::try_from(it).ok());
                number.ok_or_else(|| {
                    format!("must be a whole number from {} to {}", <$Type>::MIN, <$Type>::MAX)
                })
            }
        }
    )* };
}

// Only the bounds of small integers are shown: those of large ones help nobody.
whole_numbers! {
    u8: within(u8::MIN.into(), u8::MAX.into());
    u16: within(u16::MIN.into(), u16::MAX.into());
    u32: integer().minimum(0);
    u64: integer().minimum(0);
    u128: integer().minimum(0);
    usize: integer().minimum(0);
    i8: within(i8::MIN.into(), i8::MAX.into());
    i16: within(i16::MIN.into(), i16::MAX.into());
    i32: integer();
    i64: integer();
    i128: integer();
    isize: integer();
}

fn integer() -> NumberSchema {
    NumberSchema::new().integer(true)
}

fn within(least: f64, most: f64) -> NumberSchema {
    integer().minimum(least).maximum(most)
}

/// An integer in any spelling: `2`, `2.0`, `2e0`.
fn whole(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    let exact = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    // A float without a fraction casts exactly, and a larger one fits no type here.
    exact.or_else(|| number.as_f64().filter(|it| it.fract() == 0.0).map(|it| it as i128))
}

macro_rules! fractions {
    ($($Type:ty),*) => { $(
        impl FormField for $Type {
            const REQUIRED: bool = true;
            type Schema = NumberSchema;
            type Initial = $Type;

            fn field() -> NumberSchema {
                NumberSchema::new()
            }

            fn initial(schema: NumberSchema, value: $Type) -> NumberSchema {
                schema.initial(value)
            }

            fn read_field(value: Option<&Value>) -> Result<Self, String> {
                let number = value.ok_or(MISSING)?.as_f64();
                number.map(|it| it as $Type).ok_or_else(|| "must be a number".to_owned())
            }
        }
    )* };
}

fractions! { f32, f64 }

impl<F: FormField> FormField for Option<F> {
    const REQUIRED: bool = false;
    type Schema = F::Schema;
    type Initial = F::Initial;

    fn field() -> F::Schema {
        F::field()
    }

    fn initial(schema: F::Schema, value: F::Initial) -> F::Schema {
        F::initial(schema, value)
    }

    fn read_field(value: Option<&Value>) -> Result<Self, String> {
        // Some clients send `null` for an empty field.
        value.filter(|it| !it.is_null()).map(|it| F::read_field(Some(it))).transpose()
    }
}

impl<C: FormChoice> FormField for Vec<C> {
    const REQUIRED: bool = false;
    type Schema = EnumSchema;
    type Initial = Vec<C>;

    fn field() -> EnumSchema {
        C::choice().many(Many::default())
    }

    fn initial(schema: EnumSchema, value: Vec<C>) -> EnumSchema {
        schema.initial(value.iter().map(|it| it.value().to_owned()).collect::<Vec<_>>())
    }

    fn read_field(value: Option<&Value>) -> Result<Self, String> {
        let Some(value) = value.filter(|it| !it.is_null()) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or("must be a list of choices")?;
        items.iter().map(|it| super::choice_read(Some(it))).collect()
    }
}

macro_rules! forms_of_one_field {
    ($($Type:ty),*) => { $( impl Form for $Type {
        fn form() -> FormSchema {
            one_field::<Self>()
        }

        fn read(content: &RawJson) -> Result<Self, String> {
            read_one(content)
        }
    } )* };
}

forms_of_one_field! {
    bool, String, f32, f64,
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize
}

impl<C: FormChoice> Form for Vec<C> {
    fn form() -> FormSchema {
        one_field::<Self>()
    }

    fn read(content: &RawJson) -> Result<Self, String> {
        read_one(content)
    }
}
