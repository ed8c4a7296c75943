//! A flat struct → a form with a field for each field.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    DeriveInput, Field, FieldsNamed, GenericArgument, LitStr, Path, PathArguments, Result, Type,
};

use super::case::Case;
use super::{options, private};
use crate::docs;
use crate::fault::{Faults, place};
use crate::options::Options;

pub(super) fn expand(input: &DeriveInput, fields: &FieldsNamed) -> Result<TokenStream> {
    let name = &input.ident;
    let all = options(&input.attrs, &["rename_all"])?;
    let (private, case) = (private(&all)?, Case::read(&all)?);
    let mut faults = Faults::default();
    let mut known: Vec<String> = Vec::new();
    let (mut adds, mut reads) = (Vec::new(), Vec::new());
    for field in &fields.named {
        let Some(read) = One::read(field, case, &mut faults) else { continue };
        if known.contains(&read.name) {
            let sentence = format!("Two fields are called `{}`: rename one.", read.name);
            faults.add(read.ident.span(), sentence);
        }
        known.push(read.name.clone());
        adds.push(read.add(&private, &mut faults));
        reads.push(read.take(&private));
    }
    faults.finish()?;
    let form = quote!(#private::form);
    Ok(quote! {
        #[automatically_derived]
        impl #form::Form for #name {
            fn form() -> #private::model::FormSchema {
                let __form = #private::model::FormSchema::new();
                #(#adds)*
                __form
            }

            fn read(
                __content: &#private::RawJson,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                let __fields = #form::Fields::open(&<Self as #form::Form>::form(), __content)?;
                ::core::result::Result::Ok(Self { #(#reads),* })
            }
        }
    })
}

/// One field.
struct One<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    /// Its name in the form.
    name: String,
    /// Its kind, as far as the name of its type tells.
    kind: Kind,
    description: Option<TokenStream>,
    options: Options,
    /// Its default, of the type that the user fills in.
    initial: Option<TokenStream>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Truth,
    Many,
    Unknown,
}

impl<'a> One<'a> {
    fn read(field: &'a Field, case: Option<Case>, faults: &mut Faults) -> Option<Self> {
        let ident = field.ident.as_ref()?;
        let options = faults.keep(options(&field.attrs, &OPTIONS.map(|it| it.0)))?;
        let renamed = faults.keep(options.text("rename"))?.map(|it| it.value());
        let own = ident.to_string();
        let own = own.trim_start_matches("r#");
        let spelled = || case.map_or_else(|| own.to_owned(), |it| it.spell(own));
        let kind = kind(&field.ty);
        let initial = faults.keep(options.tokens("default"))?;
        let initial = initial.map(|it| match (kind, syn::parse2::<LitStr>(it.clone())) {
            (Kind::Many, _) => quote_spanned!(place(it.span())=> ::std::vec::Vec::from(#it)),
            (_, Ok(text)) => {
                quote_spanned!(place(text.span())=> ::std::string::String::from(#text))
            }
            _ => it,
        });
        Some(Self {
            ident,
            ty: &field.ty,
            name: renamed.unwrap_or_else(spelled),
            kind,
            description: docs::description(&field.attrs),
            options,
            initial,
        })
    }

    /// Adds the field to `__form`.
    fn add(&self, private: &Path, faults: &mut Faults) -> TokenStream {
        let Self { ident, ty, name, description, .. } = self;
        let mut said =
            description.iter().map(|it| quote!(.description(#it))).collect::<TokenStream>();
        if let Some(title) = faults.keep(self.options.text("title")).flatten() {
            said.extend(quote!(.title(#title)));
        }
        for (option, fits, setter) in OPTIONS {
            let Some(span) = self.options.span(option).filter(|_| !setter.is_empty()) else {
                continue;
            };
            if self.kind != Kind::Unknown && self.kind != fits {
                let (is, fits) = (self.kind.word(), fits.plural());
                faults.add(span, format!("`{ident}` is {is}, and `{option}` is for {fits}."));
            }
            let Some(value) = faults.keep(self.options.tokens(option)).flatten() else { continue };
            let setter = Ident::new(setter, place(span));
            said.extend(match option {
                "format" => {
                    check_format(&self.options, faults);
                    quote_spanned!(place(span)=> .#setter(#value))
                }
                "min" | "max" => quote_spanned!(place(span)=> .#setter((#value) as ::core::primitive::f64)),
                _ => quote_spanned!(place(span)=> .#setter({ let __it: ::core::primitive::u64 = #value; __it })),
            });
        }
        let many = self.many(private, faults);
        let form = quote!(#private::form);
        let field = quote!(<#ty as #form::FormField>::field() #said #many);
        match &self.initial {
            None => quote!(let __form = #form::with::<#ty>(__form, #name, #field);),
            // A field with a default is optional.
            Some(initial) => quote! {
                let __field = <#ty as #form::FormField>::initial(#field, #initial);
                let __form = __form.optional(#name, __field);
            },
        }
    }

    /// How many may be chosen.
    fn many(&self, private: &Path, faults: &mut Faults) -> TokenStream {
        let mut bound = |option: &str| {
            let Some(span) = self.options.span(option) else {
                return quote!(::core::option::Option::None);
            };
            if self.kind != Kind::Many {
                let sentence =
                    format!("`{}` is not a `Vec`, and `{option}` is for those.", self.ident);
                faults.add(span, sentence);
            }
            let value = faults.keep(self.options.tokens(option)).flatten();
            let none = || quote!(::core::option::Option::None);
            value.map_or_else(none, |it| quote!(::core::option::Option::Some(#it)))
        };
        let (least, most) = (bound("min_items"), bound("max_items"));
        if self.options.span("min_items").or(self.options.span("max_items")).is_none() {
            return TokenStream::new();
        }
        quote!(.many(#private::model::Many { min_items: #least, max_items: #most }))
    }

    /// Extracts the field from `__fields`.
    fn take(&self, private: &Path) -> TokenStream {
        let Self { ident, ty, name, initial, .. } = self;
        let fields = quote!(#private::form::Fields);
        let read = match initial {
            // An absent `Option` is `None`, whatever its default.
            Some(initial) if !is_option(ty) => {
                quote!(#fields::read_or::<#ty>(&__fields, #name, || #initial)?)
            }
            _ => quote!(#fields::read::<#ty>(&__fields, #name)?),
        };
        quote!(#ident: #read)
    }
}

fn check_format(options: &Options, faults: &mut Faults) {
    let Some(format) = faults.keep(options.text("format")).flatten() else { return };
    if !FORMATS.contains(&&*format.value()) {
        let formats = FORMATS.map(|it| format!("`{it}`")).join(", ");
        let sentence = format!("`{}` is no format of a form: there are {formats}.", format.value());
        faults.add(format.span(), sentence);
    }
}

fn kind(ty: &Type) -> Kind {
    let Type::Path(path) = ty else { return Kind::Unknown };
    let Some(last) = path.path.segments.last() else { return Kind::Unknown };
    match &*last.ident.to_string() {
        "String" => Kind::Text,
        "bool" => Kind::Truth,
        "Vec" => Kind::Many,
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
        | "isize" | "f32" | "f64" => Kind::Number,
        "Option" => match &last.arguments {
            PathArguments::AngleBracketed(given) => match given.args.first() {
                Some(GenericArgument::Type(ty)) => kind(ty),
                _ => Kind::Unknown,
            },
            _ => Kind::Unknown,
        },
        _ => Kind::Unknown,
    }
}

fn is_option(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|it| it.ident == "Option")
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Truth => "a yes or no",
            Self::Many => "a list of choices",
            Self::Unknown => "something else",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Text => "texts",
            Self::Number => "numbers",
            Self::Many => "lists of choices",
            Self::Truth | Self::Unknown => "others",
        }
    }
}

/// The options of a field, the kinds they apply to, and the setters of those that are forwarded.
const OPTIONS: [(&str, Kind, &str); 10] = [
    ("title", Kind::Unknown, ""),
    ("rename", Kind::Unknown, ""),
    ("default", Kind::Unknown, ""),
    ("format", Kind::Text, "format"),
    ("min_length", Kind::Text, "min_length"),
    ("max_length", Kind::Text, "max_length"),
    ("min", Kind::Number, "minimum"),
    ("max", Kind::Number, "maximum"),
    ("min_items", Kind::Many, ""),
    ("max_items", Kind::Many, ""),
];

const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
