//! An enum without data → a choice.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Fields, Ident, Result, Variant};

use super::case::Case;
use super::{options, private};
use crate::docs;
use crate::fault::Faults;

pub(super) fn expand(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    let name = &input.ident;
    let all = options(&input.attrs, &["rename_all", "title"])?;
    let (private, case) = (private(&all)?, Case::read(&all)?);
    let mut faults = Faults::default();
    let read = |it| Choice::read(it, case, &mut faults);
    let choices: Vec<_> = data.variants.iter().filter_map(read).collect();
    check(name, &choices, &mut faults);
    let title = faults.keep(all.text("title")).flatten();
    faults.finish()?;

    let form = quote!(#private::form);
    let values: Vec<_> = choices.iter().map(|it| &it.value).collect();
    let variants: Vec<_> = choices.iter().map(|it| &it.variant).collect();
    let schema = if choices.iter().any(|it| it.title.is_some()) {
        let titles = choices.iter().map(|it| it.title.as_ref().unwrap_or(&it.value));
        quote!(#private::model::EnumSchema::titled([#((#values, #titles)),*]))
    } else {
        quote!(#private::model::EnumSchema::new([#(#values),*]))
    };
    let title = title.map(|it| quote!(.title(#it)));
    let description = docs::description(&input.attrs).map(|it| quote!(.description(#it)));
    let initial = choices.iter().find(|it| it.is_default).map(|it| &it.value);
    let initial = initial.map(|it| quote!(.initial([::std::string::String::from(#it)])));
    Ok(quote! {
        #[automatically_derived]
        impl #form::FormChoice for #name {
            fn choice() -> #private::model::EnumSchema {
                #schema #title #description #initial
            }

            fn value(&self) -> &'static ::core::primitive::str {
                match self {
                    #(Self::#variants => #values,)*
                }
            }

            fn from_value(
                __value: &::core::primitive::str,
            ) -> ::core::option::Option<Self> {
                match __value {
                    #(#values => ::core::option::Option::Some(Self::#variants),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        #[automatically_derived]
        impl #form::FormField for #name {
            const REQUIRED: ::core::primitive::bool = true;
            type Schema = #private::model::EnumSchema;
            type Initial = Self;

            fn field() -> Self::Schema {
                #form::choice_field::<Self>()
            }

            fn initial(__schema: Self::Schema, __value: Self) -> Self::Schema {
                #form::choice_initial(__schema, &__value)
            }

            fn read_field(
                __value: ::core::option::Option<&#private::serde_json::Value>,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                #form::choice_read(__value)
            }
        }

        #[automatically_derived]
        impl #form::Form for #name {
            fn form() -> #private::model::FormSchema {
                #form::one_field::<Self>()
            }

            fn read(
                __content: &#private::RawJson,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                #form::read_one(__content)
            }
        }
    })
}

/// One option.
struct Choice {
    variant: Ident,
    value: String,
    title: Option<String>,
    is_default: bool,
}

impl Choice {
    fn read(variant: &Variant, case: Option<Case>, faults: &mut Faults) -> Option<Self> {
        let name = &variant.ident;
        if !matches!(variant.fields, Fields::Unit) {
            let sentence = format!(
                "One can choose `{name}`, but not fill it in: a form is flat. Take its fields out, \
                 and ask for them in a second question."
            );
            faults.at(&variant.fields, sentence);
            return None;
        }
        let options = faults.keep(options(&variant.attrs, &["title", "rename", "default"]))?;
        let title = faults.keep(options.text("title"))?.map(|it| it.value());
        let renamed = faults.keep(options.text("rename"))?.map(|it| it.value());
        let is_default = faults.keep(options.flag("default"))?.unwrap_or(false);
        let own = name.to_string();
        let own = own.trim_start_matches("r#");
        let spelled = || case.map_or_else(|| own.to_owned(), |it| it.spell(own));
        Some(Self {
            variant: name.clone(),
            value: renamed.unwrap_or_else(spelled),
            title: title.or_else(|| docs::text(&variant.attrs)),
            is_default,
        })
    }
}

fn check(name: &Ident, choices: &[Choice], faults: &mut Faults) {
    if choices.is_empty() {
        faults.push(Error::new(name.span(), format!("`{name}` has nothing to choose from.")));
    }
    for (at, choice) in choices.iter().enumerate() {
        if choices[..at].iter().any(|it| it.value == choice.value) {
            let sentence = format!("Two choices are called `{}`: rename one.", choice.value);
            faults.add(choice.variant.span(), sentence);
        }
        if choice.is_default && choices[..at].iter().any(|it| it.is_default) {
            let sentence = "Only one choice can be the one that is made beforehand.";
            faults.add(choice.variant.span(), sentence);
        }
    }
}
