//! Arguments that come as strings, those of prompts and templates, in the types their schema names.

use std::sync::Arc;

use super::function::{Input, Signature};
use crate::schema::{self, SchemaProfile};
use crate::validate;

#[derive(Clone, Default)]
pub(super) struct Texts {
    check: Option<Arc<validate::Schema>>,
    /// The arguments that are not strings.
    typed: Vec<String>,
}

impl Texts {
    pub(super) fn of(signature: &Signature) -> Self {
        let schema = signature.schema(SchemaProfile::Plain);
        let typed = schema.as_ref().map(schema::typed_members).unwrap_or_default();
        let check = schema.and_then(|it| validate::Schema::compile(&it).ok()).map(Arc::new);
        Self { check, typed }
    }

    /// Calls `run` with the arguments in their types, and the schema to check them against.
    pub(super) fn read<R>(&self, input: Input<'_>, run: impl FnOnce(&Input<'_>) -> R) -> R {
        let typed = input.arguments.filter(|_| !self.typed.is_empty());
        let typed = typed.and_then(|it| schema::out_of_texts(it, &self.typed));
        let arguments = typed.as_ref().or(input.arguments);
        run(&Input { schema: self.check.as_deref(), arguments, ..input })
    }
}
