//! One test body → a test for each revision and transport.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Ident, LitStr, Path, Result, Token};

use crate::fault::Faults;
use crate::function::Function;
use crate::options::Options;

/// The body unchanged, and a module of tests that run it.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = Options::parse("test", &["eras", "revisions", "transports", "server"], options)?;
    let root = options.root()?;
    let mut function: Function = syn::parse2(item)?;
    let mut faults = Faults::default();
    check(&function, &mut faults);
    let revisions = faults.keep(revisions(&options)).unwrap_or_default();
    let transports = faults.keep(transports(&options)).unwrap_or_default();
    let server = faults.keep(server(&options));
    faults.finish()?;

    // Attributes about the test go to each test; attributes about the code stay with it.
    let of_tests = |attr: &syn::Attribute| {
        ["ignore", "should_panic"].iter().any(|it| attr.path().is_ident(it))
    };
    let (attrs, code): (Vec<_>, Vec<_>) = function.attrs.into_iter().partition(of_tests);
    function.attrs = code;
    let name = function.name.clone();
    let tests = transports
        .iter()
        .flat_map(|transport| revisions.iter().map(move |revision| (transport, revision)));
    let tests = tests.map(|(transport, revision)| {
        let dated = revision.replace('-', "_");
        let test = Ident::new(&format!("{}_{dated}", transport.0), name.span());
        let revision = Ident::new(&format!("V{dated}"), Span::call_site());
        let transport = Ident::new(transport.1, Span::call_site());
        quote! {
            #(#attrs)*
            #[::core::prelude::v1::test]
            fn #test() {
                #root::testing::run(
                    #root::Revision::#revision,
                    #root::testing::Transport::#transport,
                    #server,
                    super::#name,
                );
            }
        }
    });
    Ok(quote! {
        #[cfg(test)]
        #function

        #[cfg(test)]
        mod #name {
            #[allow(unused_imports)]
            use super::*;
            #(#tests)*
        }
    })
}

fn check(function: &Function, faults: &mut Faults) {
    let name = &function.name;
    if !function.is_async {
        let sentence = format!("A test talks to a server: write `async fn {name}`.");
        faults.add(function.fn_token.span(), sentence);
    }
    if function.params.len() != 1 || function.receiver.is_some() {
        let sentence =
            format!("A test is given one thing, its peer: write `async fn {name}(peer: Peer)`.");
        faults.add(name.span(), sentence);
    }
}

fn revisions(options: &Options) -> Result<Vec<String>> {
    if let (Some(_), Some(span)) = (options.span("eras"), options.span("revisions")) {
        let sentence = "`eras` and `revisions` say the same thing: keep one of them.";
        return Err(Error::new(span, sentence));
    }
    if let Some(eras) = options.tokens("eras")? {
        let eras = list::<Ident>("eras", ERAS.map(|it| it.0), eras)?;
        return eras.iter().map(|era| one_of(era, &ERAS, "eras").map(str::to_owned)).collect();
    }
    let Some(revisions) = options.tokens("revisions")? else {
        return Ok(ERAS.map(|it| it.1.to_owned()).to_vec());
    };
    if syn::parse2::<LitStr>(revisions.clone()).is_ok_and(|it| it.value() == "all") {
        return Ok(REVISIONS.map(str::to_owned).to_vec());
    }
    let revisions = list::<LitStr>("revisions", REVISIONS.map(|it| it), revisions)?;
    let known = |revision: &LitStr| {
        let text = revision.value();
        let sentence =
            || format!("There is no revision `{text}`: there are {}.", REVISIONS.join(", "));
        let is_known = REVISIONS.contains(&&*text);
        is_known.then_some(text.clone()).ok_or_else(|| Error::new(revision.span(), sentence()))
    };
    revisions.iter().map(known).collect()
}

fn transports(options: &Options) -> Result<Vec<(&'static str, &'static str)>> {
    let Some(given) = options.tokens("transports")? else { return Ok(TRANSPORTS.to_vec()) };
    let given = list::<Ident>("transports", TRANSPORTS.map(|it| it.0), given)?;
    let pair = |it: &Ident| {
        let variant = one_of(it, &TRANSPORTS, "transports")?;
        Ok(*TRANSPORTS.iter().find(|it| it.1 == variant).unwrap_or(&TRANSPORTS[0]))
    };
    given.iter().map(pair).collect()
}

/// The path of the function that makes the server, as seen from inside the module.
fn server(options: &Options) -> Result<TokenStream> {
    let Some(path) = options.path("server")? else { return Ok(quote!(server)) };
    let Path { segments, .. } = &path;
    let first = segments.first().map(|it| it.ident.to_string());
    Ok(match first.as_deref() {
        Some("self") => {
            let rest = segments.iter().skip(1);
            quote!(super #(::#rest)*)
        }
        Some("super") => quote!(super::#path),
        _ => quote!(#path),
    })
}

fn one_of(given: &Ident, known: &[(&str, &'static str)], what: &str) -> Result<&'static str> {
    let found = known.iter().find(|it| given == it.0).map(|it| it.1);
    found.ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|it| format!("`{}`", it.0)).collect();
        Error::new(given.span(), format!("`{given}` is none of the {what}: {}.", known.join(", ")))
    })
}

fn list<T: syn::parse::Parse>(
    name: &str,
    known: impl IntoIterator<Item = &'static str>,
    tokens: TokenStream,
) -> Result<Vec<T>> {
    let span = tokens.span();
    let read = |input: ParseStream| {
        let inside;
        syn::bracketed!(inside in input);
        Punctuated::<T, Token![,]>::parse_terminated(&inside)
    };
    let list = read.parse2(tokens).ok().filter(|it| !it.is_empty());
    let list = list.map(|it| it.into_iter().collect());
    list.ok_or_else(|| {
        let known: Vec<_> = known.into_iter().collect();
        Error::new(span, format!("`{name}` is a list of one or more of {}.", known.join(", ")))
    })
}

/// The eras, each with its newest revision.
const ERAS: [(&str, &str); 2] = [("stateful", "2025-11-25"), ("stateless", "2026-07-28")];
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const TRANSPORTS: [(&str, &str); 3] = [("memory", "Memory"), ("stdio", "Stdio"), ("http", "Http")];
