//! An answer to a form → its fields, or everything that is wrong with it.

use serde_json::{Map, Value};
use trunkline_wire::json::Json;
use trunkline_wire::model::FormSchema;

use super::{FormField, with};
use crate::validate::Schema;

/// An answer, validated against its form.
///
/// ```
/// use trunkline::RawJson;
/// use trunkline::form::Fields;
/// use trunkline::model::{FormSchema, StringSchema};
///
/// let form = FormSchema::new().optional("born", StringSchema::new().format("date"));
/// let open = |text| Fields::open(&form, &RawJson::parse(text).unwrap());
/// let fields = open(r#"{"born":"1815-12-10"}"#).unwrap();
/// assert_eq!(fields.read::<String>("born").unwrap(), "1815-12-10");
/// let why = open(r#"{"born":"long ago"}"#).unwrap_err();
/// assert_eq!(why, "`/born` must be a date like `2026-07-28`, but is the text \"long ago\".");
/// ```
#[derive(Clone, Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Parses an answer and validates it against its form. The error lists everything that is
    /// wrong, with JSON pointers.
    ///
    /// ```
    /// use trunkline::{Form, RawJson, form::Fields};
    ///
    /// let answer = RawJson::parse(r#"{"value":true}"#).unwrap();
    /// assert!(Fields::open(&bool::form(), &answer).is_ok());
    /// assert!(Fields::open(&u8::form(), &answer).is_err());
    /// ```
    pub fn open(form: &FormSchema, content: &Json) -> Result<Self, String> {
        Check::new(&form.to_json())?.filled_in(content).map(Self)
    }

    /// Parses a field.
    ///
    /// ```
    /// use trunkline::{Form, RawJson, form::Fields};
    ///
    /// let answer = RawJson::parse(r#"{"value":true}"#).unwrap();
    /// let fields = Fields::open(&bool::form(), &answer).unwrap();
    /// assert_eq!(fields.read::<bool>("value"), Ok(true));
    /// assert_eq!(fields.read::<bool>("other").unwrap_err(), "`/other` is missing.");
    /// ```
    pub fn read<F: FormField>(&self, name: &str) -> Result<F, String> {
        F::read_field(self.0.get(name)).map_err(|why| format!("`/{}` {why}.", escaped(name)))
    }

    /// Parses a field that has a default, which a missing value means.
    ///
    /// ```
    /// use trunkline::{RawJson, form::Fields, model::FormSchema};
    ///
    /// let fields = Fields::open(&FormSchema::new(), &RawJson::empty_object()).unwrap();
    /// assert_eq!(fields.read_or("nights", || 2_u8), Ok(2));
    /// ```
    pub fn read_or<F: FormField>(
        &self,
        name: &str,
        initial: impl FnOnce() -> F,
    ) -> Result<F, String> {
        if self.0.contains_key(name) { self.read(name) } else { Ok(initial()) }
    }
}

/// Validates answers to a form: required fields, choices, bounds and formats.
pub(crate) struct Check {
    schema: Schema,
    form: FormSchema,
}

impl Check {
    /// Parses a form, or says why it is not one.
    pub(crate) fn new(form: &Json) -> Result<Self, String> {
        let schema = Schema::compile_form(form)?;
        let form = form.to().map_err(|_| {
            "a form is flat: its fields are texts, numbers, choices, and yes or no.".to_owned()
        })?;
        Ok(Self { schema, form })
    }

    /// The part of the form that is understood.
    pub(crate) fn form(&self) -> &FormSchema {
        &self.form
    }

    /// The validated answer, or everything that is wrong with it.
    pub(crate) fn filled_in(&self, content: &Json) -> Result<Map<String, Value>, String> {
        let not_an_object = || "The answer must be an object.".to_owned();
        let mut members: Map<String, Value> = content.to().map_err(|_| not_an_object())?;
        // Some clients send `null` for an empty field.
        members.retain(|name, value| !value.is_null() || self.form.required.contains(name));
        let content = Value::Object(members);
        self.schema.check_all(&content)?;
        match content {
            Value::Object(members) => Ok(members),
            _ => Err(not_an_object()),
        }
    }
}

/// The form of a single field, which is called `value`.
///
/// ```
/// assert_eq!(trunkline::form::one_field::<bool>().required, ["value"]);
/// ```
pub fn one_field<F: FormField>() -> FormSchema {
    with::<F>(FormSchema::new(), VALUE, F::field())
}

/// Parses the answer to a form of a single field.
///
/// ```
/// let answer = trunkline::RawJson::parse(r#"{"value":2}"#).unwrap();
/// assert_eq!(trunkline::form::read_one::<u8>(&answer), Ok(2));
/// ```
pub fn read_one<F: FormField>(content: &Json) -> Result<F, String> {
    Fields::open(&one_field::<F>(), content)?.read(VALUE)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

const VALUE: &str = "value";
