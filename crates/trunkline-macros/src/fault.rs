//! What is wrong with an item → compile errors, all of them at once, each in its place.

use proc_macro2::Span;
use quote::ToTokens;
use syn::Error;

/// The faults found so far.
#[derive(Default)]
pub(crate) struct Faults(Option<Error>);

impl Faults {
    /// One more, shown at `span`.
    pub(crate) fn add(&mut self, span: Span, sentence: impl std::fmt::Display) {
        self.push(Error::new(span, sentence));
    }

    /// One more, shown at all of `tokens`.
    pub(crate) fn at(&mut self, tokens: &impl ToTokens, sentence: impl std::fmt::Display) {
        self.push(Error::new_spanned(tokens, sentence));
    }

    /// One that was found elsewhere.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// What was made, or the fault that prevented it.
    pub(crate) fn keep<T>(&mut self, made: syn::Result<T>) -> Option<T> {
        made.map_err(|error| self.push(error)).ok()
    }

    /// All faults, if there are any.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The place of `span` for what the macros write: names keep the meaning they have in the macro.
pub(crate) fn place(span: Span) -> Span {
    Span::call_site().located_at(span)
}
