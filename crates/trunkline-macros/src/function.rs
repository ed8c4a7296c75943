//! The tokens of a function → the parts of its signature; the body is kept as tokens.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Generics, Ident, LitStr, Path, Result, ReturnType, Token, Type, Visibility,
    token,
};

/// A function or a method.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) is_async: bool,
    /// `const`, `unsafe` or `extern`, which a handler must not have.
    pub(crate) odd: Option<(Span, &'static str)>,
    pub(crate) fn_token: Token![fn],
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) params: Vec<Param>,
    pub(crate) output: ReturnType,
    pub(crate) body: Group,
}

/// `self` in one of its forms.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) tokens: TokenStream,
    pub(crate) kind: ReceiverKind,
}

impl Receiver {
    /// Whether it is an `Arc`, not a reference to one.
    pub(crate) fn is_owned(&self) -> bool {
        let after = self.tokens.clone().into_iter().skip_while(|it| it.to_string() != ":").nth(1);
        self.kind == ReceiverKind::Typed && after.is_none_or(|it| it.to_string() != "&")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiverKind {
    /// `&self`.
    Shared,
    /// `&mut self`.
    Mutable,
    /// `self`.
    Owned,
    /// `self: Arc<Self>`, or any other type.
    Typed,
}

/// One parameter.
#[derive(Clone)]
pub(crate) struct Param {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) pattern: TokenStream,
    pub(crate) ty: Type,
}

impl Param {
    /// Its name, if it has one.
    pub(crate) fn name(&self) -> Option<Ident> {
        let mut tokens = self.pattern.clone().into_iter().peekable();
        if matches!(tokens.peek(), Some(TokenTree::Ident(it)) if it == "mut") {
            tokens.next();
        }
        match (tokens.next(), tokens.next()) {
            (Some(TokenTree::Ident(name)), None) if name != "_" => Some(name),
            _ => None,
        }
    }

    /// The attribute `name`, if it has it.
    pub(crate) fn marked(&self, name: &str) -> Option<&Attribute> {
        self.attrs.iter().find(|it| it.path().is_ident(name))
    }
}

impl Function {
    /// Its return type.
    pub(crate) fn returns(&self) -> Type {
        match &self.output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        }
    }

    /// Parses what follows the attributes.
    pub(crate) fn parse_after(attrs: Vec<Attribute>, input: ParseStream) -> Result<Self> {
        let vis = input.parse()?;
        let (mut is_async, mut odd) = (false, None);
        loop {
            let span = input.span();
            if input.peek(Token![async]) {
                input.parse::<Token![async]>()?;
                is_async = true;
            } else if input.peek(Token![const]) {
                input.parse::<Token![const]>()?;
                odd = Some((span, "const"));
            } else if input.peek(token::Unsafe) {
                input.parse::<token::Unsafe>()?;
                odd = Some((span, concat!("un", "safe")));
            } else if input.peek(Token![extern]) {
                input.parse::<Token![extern]>()?;
                input.parse::<Option<LitStr>>()?;
                odd = Some((span, "extern"));
            } else {
                break;
            }
        }
        if !input.peek(Token![fn]) {
            return Err(Error::new(input.span(), "This attribute goes on an async function."));
        }
        let fn_token = input.parse()?;
        let name = input.call(Ident::parse_any)?;
        let mut generics: Generics = input.parse()?;
        let inside;
        syn::parenthesized!(inside in input);
        let (receiver, params) = parameters(&inside)?;
        let output = input.parse()?;
        generics.where_clause = input.parse()?;
        let body = match input.parse()? {
            TokenTree::Group(body) => body,
            other => return Err(Error::new(other.span(), "This function needs a body.")),
        };
        Ok(Self {
            attrs,
            vis,
            is_async,
            odd,
            fn_token,
            name,
            generics,
            receiver,
            params,
            output,
            body,
        })
    }
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        Self::parse_after(attrs, input)
    }
}

/// The function unchanged, except for the macros' own attributes on its parameters.
impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, vis, fn_token, name, generics, output, body, .. } = self;
        let is_async = self.is_async.then(|| quote!(async));
        let where_clause = &generics.where_clause;
        let receiver = self.receiver.iter().map(|it| it.tokens.clone());
        let params = self.params.iter().map(|it| {
            let Param { attrs, pattern, ty } = it;
            let attrs = attrs.iter().filter(|attr| !is_ours(attr));
            quote!(#(#attrs)* #pattern: #ty)
        });
        let params = receiver.chain(params);
        tokens.append_all(quote! {
            #(#attrs)* #vis #is_async #fn_token #name #generics (#(#params),*) #output #where_clause #body
        });
    }
}

/// Whether an attribute of a parameter is for the macros, or for the struct they generate.
pub(crate) fn is_ours(attr: &Attribute) -> bool {
    ["arg", "complete", "doc", "extract", "serde", "schemars"]
        .iter()
        .any(|it| attr.path().is_ident(it))
}

/// Whether `path` is trunkline's `name`, alone or fully qualified.
pub(crate) fn is_attribute(path: &Path, name: &str) -> bool {
    let mut segments = path.segments.iter().rev();
    let is_named = segments.next().is_some_and(|it| it.ident == name);
    is_named
        && match (segments.next(), segments.next()) {
            (None, _) => path.leading_colon.is_none(),
            (Some(root), None) => root.ident == "trunkline",
            _ => false,
        }
}

fn parameters(input: ParseStream) -> Result<(Option<Receiver>, Vec<Param>)> {
    let (mut receiver, mut params) = (None, Vec::new());
    while !input.is_empty() {
        let attrs = input.call(Attribute::parse_outer)?;
        if params.is_empty() && receiver.is_none() && is_receiver(input) {
            receiver = Some(read_receiver(input)?);
        } else {
            params.push(read_param(attrs, input)?);
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok((receiver, params))
}

fn is_receiver(input: ParseStream) -> bool {
    let ahead = input.fork();
    if ahead.parse::<Option<Token![&]>>().is_err()
        || ahead.parse::<Option<syn::Lifetime>>().is_err()
    {
        return false;
    }
    ahead.parse::<Option<Token![mut]>>().is_ok() && ahead.peek(Token![self])
}

fn read_receiver(input: ParseStream) -> Result<Receiver> {
    let reference: Option<Token![&]> = input.parse()?;
    let lifetime: Option<syn::Lifetime> = input.parse()?;
    let mutability: Option<Token![mut]> = input.parse()?;
    let this: Token![self] = input.parse()?;
    let mut tokens = quote!(#reference #lifetime #mutability #this);
    let kind = if input.peek(Token![:]) {
        let colon: Token![:] = input.parse()?;
        let ty: Type = input.parse()?;
        tokens.append_all(quote!(#colon #ty));
        ReceiverKind::Typed
    } else {
        match (reference, mutability) {
            (Some(_), Some(_)) => ReceiverKind::Mutable,
            (Some(_), None) => ReceiverKind::Shared,
            (None, _) => ReceiverKind::Owned,
        }
    };
    Ok(Receiver { tokens, kind })
}

fn read_param(attrs: Vec<Attribute>, input: ParseStream) -> Result<Param> {
    let mut pattern = TokenStream::new();
    while !input.peek(Token![:]) || input.peek(Token![::]) {
        if input.is_empty() {
            let span = pattern.span();
            return Err(Error::new(span, "This parameter needs a type: write `name: Type`."));
        }
        // A path in a pattern, such as `trunkline::Args(it)`.
        if input.peek(Token![::]) {
            input.parse::<Token![::]>()?.to_tokens(&mut pattern);
        } else {
            pattern.append(input.parse::<TokenTree>()?);
        }
    }
    input.parse::<Token![:]>()?;
    Ok(Param { attrs, pattern, ty: input.parse()? })
}
