//! `#[data]` → the derives of a wire value, with the paths of their crates.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::{Error, Result};

use crate::options::Options;
use crate::params::text;

/// The item with `Serialize`, `Deserialize` and `JsonSchema` derived.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let root = Options::parse("data", &[], options)?.root()?;
    let kind = item
        .clone()
        .into_iter()
        .find(|it| matches!(it, TokenTree::Ident(it) if KINDS.iter().any(|kind| it == kind)));
    let is_type = kind.as_ref().is_some_and(|it| ["struct", "enum"].contains(&&*it.to_string()));
    if !is_type {
        let span = kind.map_or_else(Span::call_site, |it| it.span());
        let sentence = "`#[data]` goes on a struct or an enum: it derives `Serialize`, \
                        `Deserialize` and `JsonSchema`.";
        return Err(Error::new(span, sentence));
    }
    let private = quote!(#root::__private);
    let serde = text(&quote!(#private::serde));
    let schemars = text(&quote!(#private::schemars));
    Ok(quote! {
        #[derive(
            #private::serde::Serialize, #private::serde::Deserialize, #private::schemars::JsonSchema,
        )]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        #item
    })
}

/// The keywords that distinguish items.
const KINDS: [&str; 10] =
    ["struct", "enum", "union", "fn", "impl", "mod", "trait", "type", "const", "static"];
