//! The arguments of an attribute → options by name, each known and given once.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Ident, LitBool, LitStr, Path, Result, Token};

/// The options of one attribute.
pub(crate) struct Options {
    attribute: &'static str,
    /// The unnamed text, which comes first.
    pub(crate) text: Option<LitStr>,
    given: Vec<Given>,
}

struct Given {
    name: Ident,
    value: Option<TokenStream>,
}

impl Options {
    /// Parses the options of `#[attribute]`. `crate` is allowed everywhere.
    pub(crate) fn parse(
        attribute: &'static str,
        known: &[&str],
        tokens: TokenStream,
    ) -> Result<Self> {
        let read = |input: ParseStream| Self::read(attribute, known, input);
        read.parse2(tokens)
    }

    fn read(attribute: &'static str, known: &[&str], input: ParseStream) -> Result<Self> {
        let mut options = Self { attribute, text: None, given: Vec::new() };
        if input.peek(LitStr) && known.contains(&TEXT) {
            options.text = Some(input.parse()?);
            comma(input)?;
        }
        while !input.is_empty() {
            let name = input.call(Ident::parse_any).map_err(|error| {
                Error::new(
                    error.span(),
                    format!("An option is a name. {}", names(attribute, known)),
                )
            })?;
            let mut value = None;
            if input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                value = Some(value_of(&name, input)?);
            }
            options.check(&name, known)?;
            options.given.push(Given { name, value });
            comma(input)?;
        }
        Ok(options)
    }

    fn check(&self, name: &Ident, known: &[&str]) -> Result<()> {
        let attribute = self.attribute;
        if name != "crate" && !known.iter().any(|it| *it != TEXT && name == it) {
            let known = names(attribute, known);
            let sentence = format!("`#[{attribute}]` has no option `{name}`. {known}");
            return Err(Error::new(name.span(), sentence));
        }
        if self.given.iter().any(|it| it.name == *name) {
            let sentence = format!("`{name}` is given twice: keep one of them.");
            return Err(Error::new(name.span(), sentence));
        }
        Ok(())
    }

    /// `name = "…"`.
    pub(crate) fn text(&self, name: &str) -> Result<Option<LitStr>> {
        self.value(name, &format!("takes a text: write `{name} = \"…\"`."))
    }

    /// `name = "…"`, or `name = ["…", "…"]`, with any texts.
    pub(crate) fn any_texts(&self, name: &str) -> Result<Vec<LitStr>> {
        let wanted = format!("takes texts: write `{name} = \"…\"`, or `{name} = [\"…\", \"…\"]`.");
        Ok(self.value::<Texts>(name, &wanted)?.map(|it| it.0).unwrap_or_default())
    }

    /// `name = "…"`, or `name = ["…", "…"]`, with texts from `known`.
    pub(crate) fn texts(&self, name: &str, known: &[&str]) -> Result<Vec<LitStr>> {
        let known: Vec<_> = known.iter().map(|it| format!("`\"{it}\"`")).collect();
        let known = known.join(", ");
        let wanted = format!("takes one of {known}, or a list: write `{name} = [\"…\", \"…\"]`.");
        Ok(self.value::<Texts>(name, &wanted)?.map(|it| it.0).unwrap_or_default())
    }

    /// `name`, or `name = false`.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        let Some(given) = self.find(name) else { return Ok(None) };
        if given.value.is_none() {
            return Ok(Some(true));
        }
        let sentence = format!("is yes or no: write `{name}` or `{name} = false`.");
        Ok(self.value::<LitBool>(name, &sentence)?.map(|it| it.value))
    }

    /// `name = some::path`.
    pub(crate) fn path(&self, name: &str) -> Result<Option<Path>> {
        self.value(name, &format!("takes a path: write `{name} = some::path`."))
    }

    /// `name = …`, as tokens.
    pub(crate) fn tokens(&self, name: &str) -> Result<Option<TokenStream>> {
        self.value(name, &format!("takes a value: write `{name} = …`."))
    }

    /// The span of the option.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.find(name).map(|it| it.name.span())
    }

    /// Whether it is given without a value.
    pub(crate) fn is_bare(&self, name: &str) -> bool {
        self.find(name).is_some_and(|it| it.value.is_none())
    }

    /// The crate path for the expansion: `crate = "…"`, or `::trunkline`.
    pub(crate) fn root(&self) -> Result<Path> {
        match self.text("crate")? {
            Some(path) => path.parse(),
            None => Ok(syn::parse_quote!(::trunkline)),
        }
    }

    fn value<T: Parse>(&self, name: &str, wanted: &str) -> Result<Option<T>> {
        let Some(given) = self.find(name) else { return Ok(None) };
        let span = given.value.as_ref().map_or(given.name.span(), Spanned::span);
        let value = given.value.clone().unwrap_or_default();
        let is_empty = value.is_empty();
        match syn::parse2(value) {
            Ok(value) if !is_empty => Ok(Some(value)),
            _ => Err(Error::new(span, format!("`{name}` {wanted}"))),
        }
    }

    fn find(&self, name: &str) -> Option<&Given> {
        self.given.iter().find(|it| it.name == name)
    }
}

/// One text, or a list of them in brackets.
struct Texts(Vec<LitStr>);

impl Parse for Texts {
    fn parse(input: ParseStream) -> Result<Self> {
        if input.peek(LitStr) {
            return Ok(Self(vec![input.parse()?]));
        }
        let inside;
        syn::bracketed!(inside in input);
        let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&inside)?;
        if texts.is_empty() {
            return Err(inside.error("This list is empty."));
        }
        Ok(Self(texts.into_iter().collect()))
    }
}

/// A marker among the known options: the attribute takes an unnamed text.
pub(crate) const TEXT: &str = "\"…\"";

fn comma(input: ParseStream) -> Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}

/// Everything up to the next comma.
fn value_of(name: &Ident, input: ParseStream) -> Result<TokenStream> {
    let mut value = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        value.extend([input.parse::<TokenTree>()?]);
    }
    if value.is_empty() {
        let sentence = format!("`{name} =` lacks its value.");
        return Err(Error::new(name.span(), sentence));
    }
    Ok(value)
}

fn names(attribute: &str, known: &[&str]) -> String {
    let mut names: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
    let last = names.pop();
    match (names.is_empty(), last) {
        (_, None) => format!("`#[{attribute}]` takes none."),
        (true, Some(only)) => format!("It has {only}."),
        (false, Some(last)) => format!("It has {} and {last}.", names.join(", ")),
    }
}
