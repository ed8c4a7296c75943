//! Attributes on functions and types → what one would have written by hand for trunkline.
//!
//! They only save typing, and say in a sentence what is missing. Use them through `trunkline`,
//! which exports them all.

#![forbid(unsafe_code)]

mod data;
mod docs;
mod entry;
mod fault;
mod form;
mod function;
mod item;
mod matrix;
mod options;
mod params;
mod toolbox;
mod uri;

use entry::Kind;
use proc_macro::TokenStream;

/// tool
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(Kind::Tool, options.into(), item.into()).into()
}

/// prompt
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(Kind::Prompt, options.into(), item.into()).into()
}

/// resource
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(Kind::Resource, options.into(), item.into()).into()
}

/// toolbox
#[proc_macro_attribute]
pub fn toolbox(options: TokenStream, item: TokenStream) -> TokenStream {
    toolbox::expand(options.into(), item.into()).into()
}

/// Form
#[proc_macro_derive(Form, attributes(form))]
pub fn form(item: TokenStream) -> TokenStream {
    or_error(form::expand(item.into()), None)
}

/// data
#[proc_macro_attribute]
pub fn data(options: TokenStream, item: TokenStream) -> TokenStream {
    or_error(data::expand(options.into(), item.clone().into()), Some(item))
}

/// test
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    or_error(matrix::expand(options.into(), item.into()), None)
}

/// What was made, or the errors beside what was there.
fn or_error(made: syn::Result<proc_macro2::TokenStream>, item: Option<TokenStream>) -> TokenStream {
    made.map_or_else(
        |error| {
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(item);
            tokens
        },
        Into::into,
    )
}
