//! Doc comments → descriptions, formatted as in the schemas of fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment as an expression of type `&str`, unless it is empty.
pub(crate) fn description(attrs: &[Attribute]) -> Option<TokenStream> {
    let lines: Vec<_> = attrs.iter().filter_map(line).collect();
    let texts: Option<Vec<_>> = lines.iter().map(Line::text).collect();
    let Some(texts) = texts else {
        // Only the compiler can expand `#[doc = include_str!("…")]`.
        return Some(quote!(::core::concat!(#(#lines, "\n"),*)));
    };
    let text = texts.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_token_stream())
}

/// The doc comment as a text, if it is a literal.
pub(crate) fn text(attrs: &[Attribute]) -> Option<String> {
    let lines: Option<Vec<_>> = attrs.iter().filter_map(line).map(|it| it.text()).collect();
    lines.map(|lines| lines.join("\n").trim().to_owned()).filter(|text| !text.is_empty())
}

/// Whether it is a doc comment.
pub(crate) fn is_doc(attr: &Attribute) -> bool {
    attr.path().is_ident("doc")
}

enum Line {
    Text(String),
    Other(Expr),
}

fn line(attr: &Attribute) -> Option<Line> {
    let Meta::NameValue(doc) = &attr.meta else { return None };
    if !doc.path.is_ident("doc") {
        return None;
    }
    Some(match &doc.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            let text = text.value();
            Line::Text(text.strip_prefix(' ').unwrap_or(&text).to_owned())
        }
        other => Line::Other(other.clone()),
    })
}

impl Line {
    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Other(_) => None,
        }
    }
}

impl ToTokens for Line {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Text(text) => text.to_tokens(tokens),
            Self::Other(expr) => expr.to_tokens(tokens),
        }
    }
}
