//! `#[derive(Form)]`: a flat struct or an enum without data → the form that a person fills in.

mod case;
mod choice;
mod fields;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Meta, Path, Result};

use crate::options::Options;

/// The implementations that the type gets.
pub(crate) fn expand(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let name = &input.ident;
    if let Some(generic) = input.generics.params.first() {
        let sentence =
            format!("`{name}` is generic, but a form has the fields it has: write them out.");
        return Err(Error::new_spanned(generic, sentence));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => fields::expand(&input, fields),
            Fields::Unnamed(_) | Fields::Unit => {
                let sentence = format!(
                    "The fields of a form have names: write `struct {name} {{ field: Type }}`."
                );
                Err(Error::new(name.span(), sentence))
            }
        },
        Data::Enum(data) => choice::expand(&input, data),
        Data::Union(_) => {
            let sentence = "A form is a struct with fields, or an enum to choose from.";
            Err(Error::new(name.span(), sentence))
        }
    }
}

/// The options in one or several `#[form(…)]` attributes.
fn options(attrs: &[Attribute], known: &[&str]) -> Result<Options> {
    let mut all = TokenStream::new();
    for attr in attrs.iter().filter(|it| it.path().is_ident("form")) {
        let Meta::List(list) = &attr.meta else {
            let sentence = "Options come in parentheses: write `#[form(…)]`.";
            return Err(Error::new(attr.path().segments[0].ident.span(), sentence));
        };
        let tokens = &list.tokens;
        if !tokens.is_empty() {
            all.extend(quote!(#tokens,));
        }
    }
    // An attribute's trailing comma and ours would be one too many.
    let mut tidy: Vec<_> = all.into_iter().collect();
    tidy.dedup_by(|a, b| is_comma(a) && is_comma(b));
    Options::parse("form", known, tidy.into_iter().collect())
}

fn is_comma(token: &proc_macro2::TokenTree) -> bool {
    matches!(token, proc_macro2::TokenTree::Punct(it) if it.as_char() == ',')
}

fn private(options: &Options) -> Result<Path> {
    let root = options.root()?;
    Ok(syn::parse_quote!(#root::__private))
}
