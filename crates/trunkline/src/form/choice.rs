//! Enums as choices.

use serde_json::Value;
use trunkline_wire::model::EnumSchema;

use super::field::MISSING;

/// An enum that a person chooses from. `#[derive(Form)]` on an enum without data implements it,
/// along with [`FormField`](super::FormField) and [`Form`](super::Form).
///
/// ```
/// use trunkline::form::{self, Form, FormChoice, FormField};
/// use trunkline::model::{EnumSchema, FormSchema};
/// use trunkline::{RawJson, serde_json::Value};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Class {
///     Economy,
///     Business,
/// }
///
/// // What `#[derive(Form)]` writes:
/// impl FormChoice for Class {
///     fn choice() -> EnumSchema {
///         EnumSchema::titled([("economy", "Economy"), ("business", "Business class")])
///     }
///
///     fn value(&self) -> &'static str {
///         match self {
///             Self::Economy => "economy",
///             Self::Business => "business",
///         }
///     }
///
///     fn from_value(value: &str) -> Option<Self> {
///         match value {
///             "economy" => Some(Self::Economy),
///             "business" => Some(Self::Business),
///             _ => None,
///         }
///     }
/// }
///
/// impl FormField for Class {
///     const REQUIRED: bool = true;
///     type Schema = EnumSchema;
///     type Initial = Self;
///
///     fn field() -> EnumSchema {
///         form::choice_field::<Self>()
///     }
///
///     fn initial(schema: EnumSchema, value: Self) -> EnumSchema {
///         form::choice_initial(schema, &value)
///     }
///
///     fn read_field(value: Option<&Value>) -> Result<Self, String> {
///         form::choice_read(value)
///     }
/// }
///
/// impl Form for Class {
///     fn form() -> FormSchema {
///         form::one_field::<Self>()
///     }
///
///     fn read(content: &RawJson) -> Result<Self, String> {
///         form::read_one(content)
///     }
/// }
///
/// let answer = RawJson::parse(r#"{"value":"business"}"#).unwrap();
/// assert_eq!(<Class as Form>::read(&answer), Ok(Class::Business));
/// let several = RawJson::parse(r#"{"value":["business","economy"]}"#).unwrap();
/// assert_eq!(<Vec<Class> as Form>::read(&several), Ok(vec![Class::Business, Class::Economy]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a choice",
    label = "not a choice",
    note = "several things can be chosen in a form, but only from a list of choices: put `#[derive(Form)]` on an enum without data and use a `Vec` of it"
)]
pub trait FormChoice: Sized + Send + 'static {
    /// The options.
    ///
    /// ```
    /// use trunkline::form::FormChoice;
    ///
    /// #[derive(trunkline::Form)]
    /// enum Class { Economy, Business }
    ///
    /// assert_eq!(Class::choice().options.len(), 2);
    /// ```
    fn choice() -> EnumSchema;

    /// The value of this option in an answer.
    ///
    /// ```
    /// use trunkline::form::FormChoice;
    ///
    /// #[derive(Debug, PartialEq, trunkline::Form)]
    /// enum Class { Economy, Business }
    ///
    /// assert_eq!(Class::from_value(Class::Business.value()), Some(Class::Business));
    /// ```
    fn value(&self) -> &'static str;

    /// The option with this value.
    ///
    /// ```
    /// use trunkline::form::FormChoice;
    ///
    /// #[derive(Debug, PartialEq, trunkline::Form)]
    /// enum Class { Economy, Business }
    ///
    /// assert_eq!(Class::from_value("a horse"), None);
    /// ```
    fn from_value(value: &str) -> Option<Self>;
}

/// The field of a choice; see [`FormChoice`] for an example.
///
/// ```
/// #[derive(trunkline::Form)]
/// enum Class { Economy, Business }
///
/// assert_eq!(trunkline::form::choice_field::<Class>().options.len(), 2);
/// ```
pub fn choice_field<C: FormChoice>() -> EnumSchema {
    C::choice()
}

/// Sets the default option; see [`FormChoice`] for an example.
///
/// ```
/// use trunkline::form::{choice_field, choice_initial};
///
/// #[derive(trunkline::Form)]
/// enum Class { Economy, Business }
///
/// let field = choice_initial(choice_field::<Class>(), &Class::Business);
/// assert_eq!(field.initial.len(), 1);
/// ```
pub fn choice_initial<C: FormChoice>(schema: EnumSchema, value: &C) -> EnumSchema {
    schema.initial([value.value().to_owned()])
}

/// Parses a choice; see [`FormChoice`] for an example. A missing value means the default, if there
/// is one.
///
/// ```
/// use trunkline::form::choice_read;
///
/// #[derive(Debug, trunkline::Form)]
/// enum Class { Economy, Business }
///
/// assert_eq!(choice_read::<Class>(None).unwrap_err(), "is missing");
/// ```
pub fn choice_read<C: FormChoice>(value: Option<&Value>) -> Result<C, String> {
    let Some(value) = value else {
        let initial = C::choice().initial;
        return initial.first().and_then(|it| C::from_value(it)).ok_or_else(|| MISSING.to_owned());
    };
    let chosen = value.as_str().and_then(C::from_value);
    chosen.ok_or_else(|| {
        let options = C::choice().options;
        let options: Vec<_> = options.iter().map(|it| format!("`{}`", it.value)).collect();
        format!("must be one of {}", options.join(", "))
    })
}
