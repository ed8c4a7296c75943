//! Rust types ⇄ forms that a person fills in: flat objects of texts, numbers, choices and booleans,
//! which is all that elicitation allows.
//!
//! ```
//! use trunkline::{Form, RawJson};
//!
//! #[derive(Form)]
//! struct Trip {
//!     city: String,
//!     nights: u8,
//! }
//!
//! let answer = RawJson::parse(r#"{"city":"Oslo","nights":2}"#).unwrap();
//! let trip = Trip::read(&answer).unwrap();
//! assert_eq!((&*trip.city, trip.nights), ("Oslo", 2));
//! ```

mod choice;
mod field;
mod read;

use trunkline_wire::json::Json;
use trunkline_wire::model::FormSchema;

pub use choice::{FormChoice, choice_field, choice_initial, choice_read};
pub use field::FormField;
pub(crate) use read::Check;
pub use read::{Fields, one_field, read_one};

/// A type that can be asked for in a form: see [`Context::ask`](crate::Context::ask).
///
/// `#[derive(Form)]` implements it for a flat struct, whose fields are [`FormField`]s, and for an
/// enum without data, which is a choice. A single text, number, choice or boolean is a form of one
/// field, which is called `value`.
///
/// ```
/// use trunkline::form::{Fields, Form, FormField, with};
/// use trunkline::{RawJson, model::FormSchema};
///
/// struct Trip {
///     city: String,
///     nights: u32,
/// }
///
/// // What `#[derive(Form)]` writes:
/// impl Form for Trip {
///     fn form() -> FormSchema {
///         let form = FormSchema::new();
///         let form = with::<String>(form, "city", String::field().title("City").min_length(1_u64));
///         with::<u32>(form, "nights", u32::field().maximum(30))
///     }
///
///     fn read(content: &RawJson) -> Result<Self, String> {
///         let fields = Fields::open(&Self::form(), content)?;
///         Ok(Self { city: fields.read("city")?, nights: fields.read("nights")? })
///     }
/// }
///
/// let answer = RawJson::parse(r#"{"city":"","nights":31}"#).unwrap();
/// let faults = Trip::read(&answer).err().unwrap();
/// assert!(faults.contains("`/city`") && faults.contains("`/nights`"));
/// assert!(<bool as Form>::read(&RawJson::parse(r#"{"value":true}"#).unwrap()).unwrap());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form that a person can fill in",
    label = "not a form",
    note = "put `#[derive(Form)]` on a flat struct, or on an enum without data",
    note = "a text, a number, a `bool` and a `Vec` of choices are forms of one field",
    note = "a `Secret` is never asked for in a form: send the user to a page with `Context::ask_url`"
)]
pub trait Form: Sized + Send + 'static {
    /// The form: its fields in order.
    ///
    /// ```
    /// use trunkline::Form;
    ///
    /// assert_eq!(bool::form().required, ["value"]);
    /// ```
    fn form() -> FormSchema;

    /// Parses an answer, or lists everything that is wrong with it, each with a JSON pointer.
    ///
    /// ```
    /// use trunkline::{Form, RawJson};
    ///
    /// assert_eq!(u8::read(&RawJson::parse(r#"{"value":2}"#).unwrap()), Ok(2));
    /// assert!(u8::read(&RawJson::parse(r#"{"value":"two"}"#).unwrap()).is_err());
    /// ```
    fn read(content: &Json) -> Result<Self, String>;
}

/// Adds a field of type `F` to a form. It is required unless `F` is optional: an [`Option`], a
/// [`Vec`] without a minimum, or a choice with a default (`#[form(default)]` on a variant).
///
/// ```
/// use trunkline::form::{FormField, with};
/// use trunkline::model::FormSchema;
///
/// let form = with::<String>(FormSchema::new(), "city", String::field().title("City"));
/// let form = with::<Option<u8>>(form, "nights", u8::field());
/// assert_eq!(form.required, ["city"]);
/// ```
pub fn with<F: FormField>(form: FormSchema, name: &str, schema: F::Schema) -> FormSchema {
    let schema = schema.into();
    match F::REQUIRED && !field::is_chosen::<F>() || field::wants_some(&schema) {
        true => form.required(name, schema),
        false => form.optional(name, schema),
    }
}

#[cfg(test)]
mod tests;
