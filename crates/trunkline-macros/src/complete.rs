//! `#[complete(cities)]` before a parameter → `.complete_with("city", cities)` on its entry.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Ident, Path, Result, Token};

use crate::fault::{Faults, place};
use crate::kind::Kind;
use crate::params::Params;

/// The completer of an argument.
enum Completer {
    /// A function.
    Function(Path),
    /// A method of the toolbox.
    Method(Ident),
}

impl Parse for Completer {
    fn parse(input: ParseStream) -> Result<Self> {
        let completer = if input.peek(Token![self]) && input.peek2(Token![.]) {
            input.parse::<Token![self]>()?;
            input.parse::<Token![.]>()?;
            Self::Method(input.parse()?)
        } else {
            Self::Function(input.call(Path::parse_mod_style)?)
        };
        if input.is_empty() { Ok(completer) } else { Err(input.error("")) }
    }
}

/// The calls that add completers. `is_in_toolbox`: a `self` is available.
pub(crate) fn read(
    kind: Kind,
    is_template: bool,
    is_in_toolbox: bool,
    params: &Params,
    faults: &mut Faults,
) -> TokenStream {
    let mut said = TokenStream::new();
    for argument in &params.arguments {
        let Some(attr) = argument.completion() else { continue };
        if kind == Kind::Tool || (kind == Kind::Resource && !is_template) {
            let sentence = "People are offered completions for the arguments of prompts and the \
                            variables of templates, not here: remove `#[complete(…)]`.";
            faults.at(attr, sentence);
            continue;
        }
        let Some(completer) = faults.keep(completer(attr)) else { continue };
        let name = argument.given_as();
        let completer = match completer {
            // A fault of the function is shown where it is named.
            Completer::Function(path) => quote_spanned!(place(path.span())=> #path),
            Completer::Method(method) if is_in_toolbox => quote!({
                let __this = ::std::sync::Arc::clone(&self);
                move |__typed| {
                    let __this = ::std::sync::Arc::clone(&__this);
                    async move { __this.#method(__typed).await }
                }
            }),
            Completer::Method(method) => {
                let sentence = format!(
                    "Only a method of a `#[toolbox]` has a `self`: name a function, \
                     `#[complete({method})]`."
                );
                faults.at(attr, sentence);
                continue;
            }
        };
        said.extend(quote!(.complete_with(#name, #completer)));
    }
    said
}

fn completer(attr: &Attribute) -> Result<Completer> {
    attr.parse_args().map_err(|_| {
        let sentence = "`#[complete(…)]` names the async function that completes the argument: \
                        `#[complete(cities)]`, or `#[complete(self.cities)]` for a method of the \
                        toolbox.";
        Error::new_spanned(attr, sentence)
    })
}
