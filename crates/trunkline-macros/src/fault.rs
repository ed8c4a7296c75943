//! Faults of an item → compile errors, all at once, each at its span.

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

/// The faults found so far.
#[derive(Default)]
pub(crate) struct Faults(Option<Error>);

impl Faults {
    /// Adds one, shown at `span`.
    pub(crate) fn add(&mut self, span: Span, sentence: impl std::fmt::Display) {
        self.push(Error::new(span, sentence));
    }

    /// Adds one, shown at all of `tokens`.
    pub(crate) fn at(&mut self, tokens: &impl ToTokens, sentence: impl std::fmt::Display) {
        self.push(Error::new_spanned(tokens, sentence));
    }

    /// Adds one that was found elsewhere.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value, or records the fault that prevented it.
    pub(crate) fn keep<T>(&mut self, made: syn::Result<T>) -> Option<T> {
        made.map_err(|error| self.push(error)).ok()
    }

    /// All faults, if there are any.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The location of `span` with the macro's hygiene: names keep the meaning they have in the macro.
pub(crate) fn place(span: Span) -> Span {
    Span::call_site().located_at(span)
}
