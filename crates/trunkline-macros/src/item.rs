//! `#[tool]`, `#[prompt]` and `#[resource]` on a function → a value that can be registered and
//! called.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Generics, Path, Result};

use crate::docs::is_doc;
use crate::entry::{Entry, Kind};
use crate::fault::Faults;
use crate::function::Function;
use crate::options::Options;
use crate::params::Params;

/// The item, or everything that is wrong with it, beside something that keeps others from
/// stumbling over the absence of the item.
pub(crate) fn expand(kind: Kind, options: TokenStream, item: TokenStream) -> TokenStream {
    let function: Function = match syn::parse2(item) {
        Ok(function) => function,
        Err(error) => return error.into_compile_error(),
    };
    let (options, root) = match read_options(kind, options) {
        Ok(read) => read,
        Err(error) => {
            let stub = stub(kind, false, &syn::parse_quote!(::trunkline::__private), &function);
            let error = error.into_compile_error();
            return quote!(#error #stub);
        }
    };
    let private: Path = syn::parse_quote!(#root::__private);
    try_expand(kind, &options, &private, &function).unwrap_or_else(|error| {
        let is_template = options.text.as_ref().is_some_and(|it| it.value().contains('{'));
        let stub = stub(kind, is_template, &private, &function);
        let error = error.into_compile_error();
        quote!(#error #stub)
    })
}

/// The options of an attribute, and the crate they name.
pub(crate) fn read_options(kind: Kind, tokens: TokenStream) -> Result<(Options, Path)> {
    let options = Options::parse(kind.word(), kind.options(), tokens)?;
    let root = options.root()?;
    Ok((options, root))
}

fn try_expand(
    kind: Kind,
    options: &Options,
    private: &Path,
    function: &Function,
) -> Result<TokenStream> {
    let mut faults = Faults::default();
    if let Some(receiver) = &function.receiver {
        let sentence = format!(
            "`{}` is a method: put `#[trunkline::toolbox]` on the impl block, and register the \
             whole with `.toolbox(…)`.",
            function.name
        );
        faults.at(&receiver.tokens, sentence);
    }
    let params = Params::sort(function, &mut faults);
    let entry = Entry::read(kind, options, private, function, &params, &mut faults);
    faults.finish()?;

    let Function { attrs, vis, name, .. } = function;
    let docs = attrs.iter().filter(|it| is_doc(it));
    let inner = inner(function);
    let none = Generics::default();
    let definition = params.definition(private, &none);
    let handler = params.closure(private, &none, |given| quote!(#name(#given)));
    let made = entry.make(private, function, &params.marker(private, &none), &handler);
    let into = into(kind, entry.is_template, private, function, &made);
    let deref = deref(function);
    let conditions: Vec<_> = attrs.iter().filter(|it| it.path().is_ident("cfg")).collect();
    Ok(quote! {
        #(#docs)*
        #(#conditions)*
        #[allow(non_camel_case_types)]
        #[derive(::core::clone::Clone, ::core::marker::Copy)]
        #vis struct #name;

        #(#conditions)*
        const _: () = {
            #inner
            #definition
            #into
            #deref
        };
    })
}

/// The function itself, out of sight.
fn inner(function: &Function) -> TokenStream {
    let mut inner = function.clone();
    inner.attrs.retain(|it| !is_doc(it));
    inner.vis = syn::Visibility::Inherited;
    quote!(#inner)
}

/// The entry itself, and the trait by which a builder takes it.
fn into(
    kind: Kind,
    is_template: bool,
    private: &Path,
    function: &Function,
    made: &TokenStream,
) -> TokenStream {
    let Function { vis, name, .. } = function;
    let (entry, into) = match (kind, is_template) {
        (Kind::Tool, _) => (
            quote!(ToolEntry),
            quote! {
                impl #private::server::IntoTool for #name {
                    fn into_tool(self) -> #private::server::ToolEntry {
                        Self::entry(self)
                    }
                }
            },
        ),
        (Kind::Prompt, _) => (
            quote!(PromptEntry),
            quote! {
                impl #private::server::IntoPromptEntry for #name {
                    fn into_prompt_entry(self) -> #private::server::PromptEntry {
                        Self::entry(self)
                    }
                }
            },
        ),
        (Kind::Resource, _) => (
            if is_template { quote!(TemplateEntry) } else { quote!(ResourceEntry) },
            quote! {
                impl #private::server::IntoResource for #name {
                    fn into_resource(self) -> #private::server::ResourceOrTemplate {
                        #private::server::IntoResource::into_resource(Self::entry(self))
                    }
                }
            },
        ),
    };
    let word = if is_template { "template" } else { kind.word() };
    let about = format!("The {word}, to say more about it before it is registered.");
    quote! {
        #[automatically_derived]
        #[allow(unused_braces)]
        impl #name {
            #[doc = #about]
            #[must_use]
            #vis fn entry(self) -> #private::server::#entry {
                #made
            }
        }

        #[automatically_derived]
        #into
    }
}

/// Lets it be called like the function it was.
fn deref(function: &Function) -> TokenStream {
    let name = &function.name;
    let types: Vec<_> = function.params.iter().map(|it| &it.ty).collect();
    let names: Vec<_> = (0..types.len()).map(|at| format_ident!("__{at}")).collect();
    let output = function.returns();
    quote! {
        #[automatically_derived]
        #[allow(clippy::type_complexity)]
        impl ::core::ops::Deref for #name {
            type Target = fn(#(#types),*) -> ::core::pin::Pin<::std::boxed::Box<
                dyn ::core::future::Future<Output = #output> + ::core::marker::Send,
            >>;

            fn deref(&self) -> &Self::Target {
                const __CALL: <#name as ::core::ops::Deref>::Target =
                    |#(#names),*| ::std::boxed::Box::pin(#name(#(#names),*));
                &__CALL
            }
        }
    }
}

/// What stands in for an item with faults. A method's place has no room for it.
fn stub(kind: Kind, is_template: bool, private: &Path, function: &Function) -> TokenStream {
    if function.receiver.is_some() {
        return TokenStream::new();
    }
    let Function { vis, name, .. } = function;
    let into = into(kind, is_template, private, function, &quote!(::core::unreachable!()));
    quote! {
        #[allow(non_camel_case_types, missing_docs)]
        #vis struct #name;
        #into
    }
}
