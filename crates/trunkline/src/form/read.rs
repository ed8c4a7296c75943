//! An answer to a form → its fields, or everything that is wrong with it.

use serde_json::{Map, Value};
use trunkline_wire::json::Json;
use trunkline_wire::model::FormSchema;

use super::{FormField, with};
use crate::validate::Schema;

/// What was filled in, checked against the form.
#[derive(Clone, Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Reads an answer and checks it against its form. The error is a line for each thing that is
    /// wrong, with a JSON pointer to its place.
    pub fn open(form: &FormSchema, content: &Json) -> Result<Self, String> {
        let mut content: Value =
            content.to().map_err(|_| "The answer is not an object.".to_owned())?;
        if let Value::Object(members) = &mut content {
            // Programs that fill in forms send `null` for what stayed empty.
            members.retain(|name, value| !value.is_null() || form.required.contains(name));
        }
        check(&form.to_json(), &content)?;
        match content {
            Value::Object(members) => Ok(Self(members)),
            _ => Err("The answer is not an object.".to_owned()),
        }
    }

    /// Reads a field.
    pub fn read<F: FormField>(&self, name: &str) -> Result<F, String> {
        F::read_field(self.0.get(name)).map_err(|why| format!("`/{}` {why}.", escaped(name)))
    }

    /// Reads a field that has a value beforehand: what was left out stays as it was.
    pub fn read_or<F: FormField>(
        &self,
        name: &str,
        initial: impl FnOnce() -> F,
    ) -> Result<F, String> {
        match self.0.get(name) {
            Some(value) if !value.is_null() => self.read(name),
            _ => Ok(initial()),
        }
    }
}

/// The form of a single field, which is called `value`.
pub fn one_field<F: FormField>() -> FormSchema {
    with::<F>(FormSchema::new(), VALUE, F::field())
}

/// Reads the answer to the form of a single field.
pub fn read_one<F: FormField>(content: &Json) -> Result<F, String> {
    Fields::open(&one_field::<F>(), content)?.read(VALUE)
}

/// Says everything that is wrong with an answer to a form, formats included.
pub(crate) fn check(form: &Json, content: &Value) -> Result<(), String> {
    Schema::compile_form(form)?.check_all(content)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

const VALUE: &str = "value";
