//! An impl block with marked methods → the block, and a `Toolbox` impl that registers them.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Generics, Ident, Path, Result, Token, Type};

use crate::entry::Entry;
use crate::fault::Faults;
use crate::function::{Function, ReceiverKind, is_attribute};
use crate::handler_options;
use crate::item::read_options;
use crate::kind::Kind;
use crate::options::Options;
use crate::params::{Params, mentions, shown};

/// The block without the marks, and the impl that registers its methods.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = match Options::parse("toolbox", &["scopes"], options) {
        Ok(options) => options,
        Err(error) => return error.into_compile_error(),
    };
    let root = match options.root() {
        Ok(root) => root,
        Err(error) => return error.into_compile_error(),
    };
    let block: Block = match syn::parse2(item) {
        Ok(block) => block,
        Err(error) => return error.into_compile_error(),
    };
    let private: Path = syn::parse_quote!(#root::__private);
    let (steps, error) = match block.steps(&options, &private) {
        Ok(steps) => (quote!(#(#steps)* __builder), None),
        Err(error) => (quote!(::core::unreachable!()), Some(error.into_compile_error())),
    };
    let Block { ty, generics, .. } = &block;
    let (params, _, conditions) = generics.split_for_impl();
    quote! {
        #error
        #block

        #[automatically_derived]
        #[allow(unused_braces)]
        impl #params #private::server::Toolbox for #ty #conditions {
            fn register(
                self: ::std::sync::Arc<Self>,
                __builder: #private::server::ServerBuilder,
            ) -> #private::server::ServerBuilder {
                #steps
            }
        }
    }
}

struct Block {
    attrs: Vec<Attribute>,
    generics: Generics,
    ty: Type,
    items: Vec<Item>,
}

enum Item {
    Method(Box<Method>),
    /// Any other token.
    Other(TokenTree),
}

/// A method that is registered.
struct Method {
    kind: Kind,
    mark: Attribute,
    function: Function,
}

impl Parse for Block {
    fn parse(input: ParseStream) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        if !input.peek(Token![impl]) {
            let sentence = "`#[toolbox]` goes on an impl block; for a function alone `#[tool]`, \
                            `#[prompt]` or `#[resource(\"…\")]` is enough.";
            return Err(Error::new(input.span(), sentence));
        }
        input.parse::<Token![impl]>()?;
        let mut generics: Generics = input.parse()?;
        let ty: Type = input.parse()?;
        if input.peek(Token![for]) {
            let sentence = format!(
                "This is the block of a trait: put `#[toolbox]` on a block of its own, `impl {} \
                 {{ … }}`.",
                shown(&input.parse::<Token![for]>().and_then(|_| input.parse::<Type>())?)
            );
            return Err(Error::new_spanned(&ty, sentence));
        }
        generics.where_clause = input.parse()?;
        let inside;
        syn::braced!(inside in input);
        let mut items = Vec::new();
        while !inside.is_empty() {
            read_item(&inside, &mut items)?;
        }
        Ok(Self { attrs, generics, ty, items })
    }
}

fn read_item(input: ParseStream, items: &mut Vec<Item>) -> Result<()> {
    // At this level `#[…]` can only be an attribute of an item.
    if !input.peek(Token![#]) || input.peek2(Token![!]) {
        items.push(Item::Other(input.parse()?));
        return Ok(());
    }
    let mut attrs = input.call(Attribute::parse_outer)?;
    let mark =
        |attr: &Attribute| Kind::ALL.into_iter().find(|it| is_attribute(attr.path(), it.word()));
    let Some((at, kind)) = attrs.iter().enumerate().find_map(|(at, it)| Some((at, mark(it)?)))
    else {
        let attrs = quote!(#(#attrs)*);
        items.extend(attrs.into_iter().map(Item::Other));
        return Ok(());
    };
    let marked = attrs.remove(at);
    if let Some(other) = attrs.iter().find(|it| mark(it).is_some()) {
        let sentence = "A method is registered once: keep one of these attributes.";
        return Err(Error::new_spanned(other, sentence));
    }
    let function = Function::parse_after(attrs, input)?;
    items.push(Item::Method(Box::new(Method { kind, mark: marked, function })));
    Ok(())
}

impl Block {
    fn methods(&self) -> impl Iterator<Item = &Method> {
        self.items.iter().filter_map(|it| match it {
            Item::Method(method) => Some(&**method),
            Item::Other(_) => None,
        })
    }

    /// One statement per method, which adds it to `__builder`.
    fn steps(&self, options: &Options, private: &Path) -> Result<Vec<TokenStream>> {
        let mut faults = Faults::default();
        let of_all = handler_options::scopes(options, &mut faults);
        let mut steps = Vec::new();
        let mut known: Vec<(Kind, String)> = Vec::new();
        for method in self.methods() {
            let Some((entry, step)) = method.step(self, private, &of_all, &mut faults) else {
                continue;
            };
            let key = (entry.kind, entry.key());
            // Of two that exclude each other by `#[cfg]`, only one exists.
            if known.contains(&key) && method.conditions().next().is_none() {
                faults.add(entry.key_span(), entry.twice());
            }
            known.push(key);
            steps.push(step);
        }
        if self.methods().next().is_none() {
            let sentence = format!(
                "`{}` offers nothing yet: put `#[tool]`, `#[prompt]` or `#[resource(\"…\")]` on a \
                 method of this block, or remove `#[toolbox]`.",
                shown(&self.ty)
            );
            faults.at(&self.ty, sentence);
        }
        faults.finish()?;
        Ok(steps)
    }
}

impl Method {
    fn step(
        &self,
        block: &Block,
        private: &Path,
        of_all: &TokenStream,
        faults: &mut Faults,
    ) -> Option<(Entry, TokenStream)> {
        let Self { kind, mark, function } = self;
        let options = match &mark.meta {
            syn::Meta::Path(_) => TokenStream::new(),
            syn::Meta::List(list) => list.tokens.clone(),
            syn::Meta::NameValue(it) => it.value.to_token_stream(),
        };
        let (options, _) = faults.keep(read_options(*kind, options))?;
        self.check(faults);
        let params = Params::sort(function, faults);
        let entry = Entry::read(*kind, &options, private, function, &params, true, faults);

        let definition = params.definition(private, &block.generics);
        let name = &function.name;
        let handler = params.closure(private, &block.generics, |given| match &function.receiver {
            None => quote!(Self::#name(#given)),
            Some(receiver) => {
                let this = if receiver.is_owned() { quote!(__this) } else { quote!(&__this) };
                quote!({
                    let __this = ::std::sync::Arc::clone(&__this);
                    async move { Self::#name(#this, #given).await }
                })
            }
        });
        let clone = function
            .receiver
            .as_ref()
            .map(|_| quote!(let __this = ::std::sync::Arc::clone(&self);));
        let made =
            entry.make(private, function, &params.marker(private, &block.generics), &handler);
        let add = Ident::new(kind.word(), name.span());
        let conditions = self.conditions();
        let step = quote! {
            #(#conditions)*
            let __builder = {
                #definition
                #clone
                #private::server::ServerBuilder::#add(__builder, #made #of_all)
            };
        };
        Some((entry, step))
    }

    fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.function.attrs.iter().filter(|it| it.path().is_ident("cfg"))
    }

    fn check(&self, faults: &mut Faults) {
        let name = &self.function.name;
        if let Some(receiver) = &self.function.receiver {
            let at = &receiver.tokens;
            match receiver.kind {
                ReceiverKind::Mutable => faults.at(
                    at,
                    format!(
                        "Calls of `{name}` run at the same time: take `&self`, and keep what \
                         changes behind a lock."
                    ),
                ),
                ReceiverKind::Owned => {
                    faults.at(at, format!("`{name}` is called more than once: take `&self`."))
                }
                ReceiverKind::Shared | ReceiverKind::Typed => {}
            }
        }
        let this = Ident::new("Self", name.span());
        for param in &self.function.params {
            if mentions(param.ty.to_token_stream(), &this) {
                let sentence = "`Self` means something else in the struct of the arguments: write \
                                the name of the type.";
                faults.at(&param.ty, sentence);
            }
        }
    }
}

impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, generics, ty, items } = self;
        let conditions = &generics.where_clause;
        tokens.append_all(quote!(#(#attrs)* impl #generics #ty #conditions { #(#items)* }));
    }
}

impl ToTokens for Item {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Method(method) => method.function.to_tokens(tokens),
            Self::Other(other) => other.to_tokens(tokens),
        }
    }
}
