//! `#[tool]`, `#[prompt]` and `#[resource]` on a function → a function that can be registered and
//! called, and a type of the same name for its return value. It is a function, not a constant of its
//! own type, because a variable may shadow a function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Generics, Ident, Path, Result, Type};

use crate::docs::is_doc;
use crate::entry::Entry;
use crate::fault::Faults;
use crate::function::{Function, Param};
use crate::kind::Kind;
use crate::options::Options;
use crate::params::Params;

/// The item; or all its faults, and a stub that prevents follow-up errors about a missing item.
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

/// The options of an attribute, and its crate path.
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
    if function.params.len() > MAX_PARAMS {
        let sentence = format!(
            "`{}` has more than {MAX_PARAMS} parameters: put its arguments into a struct, and take \
             it as `Args<…>`.",
            function.name
        );
        faults.add(function.name.span(), sentence);
    }
    let params = Params::sort(function, &mut faults);
    let entry = Entry::read(kind, options, private, function, &params, false, &mut faults);
    faults.finish()?;

    let Function { attrs, name, .. } = function;
    let docs: Vec<_> = attrs.iter().filter(|it| is_doc(it)).collect();
    let inner = inner(function);
    let none = Generics::default();
    let definition = params.definition(private, &none);
    let handler = params.closure(private, &none, |given| quote!(#name(#given)));
    let made = entry.make(private, function, &params.marker(private, &none), &handler);
    let entry = entry_of(kind, entry.is_template, private, function, &made);
    let (work, call) = work(function);
    let conditions: Vec<_> = attrs.iter().filter(|it| it.path().is_ident("cfg")).collect();
    let outer = outer(function);
    Ok(quote! {
        #(#docs)*
        #(#conditions)*
        #outer

        #(#conditions)*
        #work

        #(#conditions)*
        const _: () = {
            #inner
            #definition
            #entry
            #call
        };
    })
}

/// The original function, hidden.
fn inner(function: &Function) -> TokenStream {
    let mut inner = function.clone();
    inner.attrs.retain(|it| !is_doc(it));
    inner.vis = syn::Visibility::Inherited;
    quote!(#inner)
}

/// The entry, for further setters and for the builder.
fn entry_of(
    kind: Kind,
    is_template: bool,
    private: &Path,
    function: &Function,
    made: &TokenStream,
) -> TokenStream {
    let Function { vis, name, .. } = function;
    let entry = match (kind, is_template) {
        (Kind::Tool, _) => quote!(ToolEntry),
        (Kind::Prompt, _) => quote!(PromptEntry),
        (Kind::Resource, true) => quote!(TemplateEntry),
        (Kind::Resource, false) => quote!(ResourceEntry),
    };
    let word = if is_template { "template" } else { kind.word() };
    let about = format!("The {word}, to say more about it before it is registered.");
    quote! {
        #[automatically_derived]
        #[allow(unused_braces)]
        impl #name {
            #[doc = #about]
            #[must_use]
            #vis fn entry() -> #private::server::#entry {
                #made
            }
        }

        #[automatically_derived]
        impl #private::server::Made for #name {
            type Entry = #private::server::#entry;

            fn entry() -> Self::Entry {
                <#name>::entry()
            }
        }
    }
}

/// The visible function: it calls the original one.
fn outer(function: &Function) -> TokenStream {
    let Function { vis, fn_token, name, .. } = function;
    let (names, types) = parameters(function);
    quote! {
        #[allow(clippy::too_many_arguments)]
        #vis #fn_token #name(#(#names: #types),*) -> #name {
            <#name>::__call(#(#names),*)
        }
    }
}

/// Its return type: the future of one call. The braces keep its name out of the value namespace.
fn work(function: &Function) -> (TokenStream, TokenStream) {
    let Function { vis, name, .. } = function;
    let (names, types) = parameters(function);
    let output = function.returns();
    let about = format!("The work of one call of `{name}`.");
    let work = quote! {
        #[doc = #about]
        #[must_use = "nothing happens until it is awaited"]
        #[allow(non_camel_case_types, missing_debug_implementations, clippy::type_complexity)]
        #vis struct #name {
            __work: ::core::pin::Pin<::std::boxed::Box<
                dyn ::core::future::Future<Output = #output> + ::core::marker::Send,
            >>,
        }
    };
    let call = quote! {
        #[automatically_derived]
        impl #name {
            #[allow(clippy::too_many_arguments)]
            fn __call(#(#names: #types),*) -> Self {
                Self { __work: ::std::boxed::Box::pin(#name(#(#names),*)) }
            }
        }

        #[automatically_derived]
        impl ::core::future::Future for #name {
            type Output = #output;

            fn poll(
                mut self: ::core::pin::Pin<&mut Self>,
                __cx: &mut ::core::task::Context<'_>,
            ) -> ::core::task::Poll<Self::Output> {
                self.__work.as_mut().poll(__cx)
            }
        }
    };
    (work, call)
}

/// The parameters under names that can be forwarded, and their types.
fn parameters(function: &Function) -> (Vec<Ident>, Vec<&Type>) {
    let of = |(at, param): (usize, &'_ Param)| {
        // The original function destructures patterns itself.
        param.name().unwrap_or_else(|| format_ident!("__{at}"))
    };
    let names = function.params.iter().enumerate().map(of).collect();
    (names, function.params.iter().map(|it| &it.ty).collect())
}

/// A stub in place of an item with faults. There is no room for one beside a method.
fn stub(kind: Kind, is_template: bool, private: &Path, function: &Function) -> TokenStream {
    if function.receiver.is_some() {
        return TokenStream::new();
    }
    let Function { vis, fn_token, name, .. } = function;
    let entry = entry_of(kind, is_template, private, function, &quote!(::core::unreachable!()));
    quote! {
        #[allow(missing_docs)]
        #vis #fn_token #name() -> #name {
            ::core::unreachable!()
        }
        #[allow(non_camel_case_types, missing_docs, dead_code)]
        #vis struct #name {}
        #entry
    }
}

/// The most parameters that `trunkline` supports for a function.
const MAX_PARAMS: usize = 32;
