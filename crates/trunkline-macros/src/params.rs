//! A function's parameters → what its handler extracts from a call, and the struct of its arguments.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, GenericArgument, GenericParam, Generics, LitStr, Path, PathArguments, Type};

use crate::fault::{Faults, place};
use crate::function::{Function, Param};

/// The parameters of a handler.
pub(crate) struct Params {
    /// The extracted parameters, by their names in the closure.
    extractors: Vec<(Ident, Type)>,
    /// The types among them that are recognised only by name.
    by_name: Vec<Type>,
    /// The parameters that the caller supplies.
    pub(crate) arguments: Vec<Argument>,
    /// Whether one of them is `Args<…>`.
    pub(crate) has_args: bool,
    /// The arguments of the call of the function.
    call: Vec<TokenStream>,
}

/// A parameter that the caller supplies.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    ty: Type,
    attrs: Vec<Attribute>,
}

impl Params {
    /// Sorts the parameters of `function` into extracted ones and arguments.
    pub(crate) fn sort(function: &Function, faults: &mut Faults) -> Self {
        let mut params = Self {
            extractors: Vec::new(),
            by_name: Vec::new(),
            arguments: Vec::new(),
            has_args: false,
            call: Vec::new(),
        };
        for (at, param) in function.params.iter().enumerate() {
            check_type(param, faults);
            check_marks(param, faults);
            let is_argument = param.marked("arg").is_some();
            if param.marked("extract").is_some() || (!is_argument && is_extractor(&param.ty)) {
                let is_args = last_name(&param.ty).is_some_and(|it| it == "Args");
                if is_args && params.has_args {
                    let name = &function.name;
                    let sentence = format!("`{name}` takes `Args<…>` twice: make it one struct.");
                    faults.at(&param.ty, sentence);
                }
                params.has_args |= is_args;
                params.extract(at, param, faults);
            } else if let Some(name) = param.name() {
                params.argue(name, param);
            } else {
                let sentence = "The caller gives arguments by name: write `name: Type` and take it \
                                apart in the body, or put `#[extract]` before what is not an argument.";
                faults.at(&param.pattern, sentence);
            }
        }
        params.check(function, faults);
        params
    }

    fn extract(&mut self, at: usize, param: &Param, faults: &mut Faults) {
        let is_by_name = param.marked("extract").is_none();
        let marks = ["serde", "schemars", "complete"];
        if let Some(attr) = marks.iter().find_map(|it| param.marked(it)) {
            let ty = shown(&param.ty);
            let way_out = if is_by_name { ": if it is one, put `#[arg]` before it" } else { "" };
            let sentence =
                format!("`{ty}` is not an argument, so this attribute does nothing here{way_out}.");
            faults.at(attr, sentence);
        }
        let name = format_ident!("__extracted_{at}");
        self.call.push(name.to_token_stream());
        if is_by_name {
            self.by_name.push(param.ty.clone());
        }
        self.extractors.push((name, param.ty.clone()));
    }

    fn argue(&mut self, name: Ident, param: &Param) {
        self.call.push(quote!(__arguments.#name));
        self.arguments.push(Argument { name, ty: param.ty.clone(), attrs: param.attrs.clone() });
    }

    fn check(&self, function: &Function, faults: &mut Faults) {
        if let (true, Some(first)) = (self.has_args, self.arguments.first()) {
            let sentence = format!(
                "`{}` takes `Args<…>` and also the argument `{}`: put it into the struct, or take \
                 every argument as a parameter.",
                function.name, first.name
            );
            faults.add(first.name.span(), sentence);
        }
        let taken = self.extractors.len() + usize::from(!self.arguments.is_empty());
        if taken > MAX_TAKEN {
            let sentence = format!(
                "`{}` takes more than {MAX_TAKEN} things from its call (all arguments count as \
                 one): put some of them behind one `FromCall` type of yours.",
                function.name
            );
            faults.add(function.name.span(), sentence);
        }
    }

    /// The struct of the arguments, if there are any. `generics` are those of the impl block.
    pub(crate) fn definition(&self, private: &Path, generics: &Generics) -> TokenStream {
        if self.arguments.is_empty() {
            return TokenStream::new();
        }
        let arguments = self.arguments.iter().map(|Argument { name, ty, attrs }| {
            let is_field_attribute =
                |it: &&Attribute| !["arg", "complete"].iter().any(|our| it.path().is_ident(our));
            let attrs = attrs.iter().filter(is_field_attribute);
            quote!(#(#attrs)* #name: #ty)
        });
        let used = self.used(generics);
        let serde = text(&quote!(#private::serde));
        let schemars = text(&quote!(#private::schemars));
        let checks = self.checks_of_types(private, generics);
        quote! {
            #(#checks)*
            #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            struct __Arguments #used { #(#arguments),* }
        }
    }

    /// Explains that a type is no argument, before the errors of the derives. Skips types with
    /// attributes, which may deserialise differently, and generic ones, which cannot be checked here.
    fn checks_of_types(&self, private: &Path, generics: &Generics) -> Vec<TokenStream> {
        let is_bare = |it: &&Argument| {
            let mut attrs = it.attrs.iter().map(Attribute::path);
            generics.params.is_empty()
                && !attrs.any(|it| it.is_ident("serde") || it.is_ident("schemars"))
        };
        let check = |Argument { ty, .. }: &Argument| quote_spanned!(place(ty.span())=> const _: fn() = #private::server::argument::<#ty>;);
        self.arguments.iter().filter(is_bare).map(check).collect()
    }

    /// The closure that extracts the parameters from a call and passes them to `call`.
    pub(crate) fn closure(
        &self,
        private: &Path,
        generics: &Generics,
        call: impl FnOnce(TokenStream) -> TokenStream,
    ) -> TokenStream {
        let extractors = self.extractors.iter().map(|(name, ty)| quote!(#name: #ty));
        let arguments = (!self.arguments.is_empty()).then(|| {
            let used = self.used(generics);
            let (_, used, _) = used.split_for_impl();
            quote!(#private::Args(__arguments): #private::Args<__Arguments #used>)
        });
        let params = extractors.chain(arguments);
        let given = &self.call;
        let call = call(quote!(#(#given),*));
        let checks = self.checks(private);
        quote!(#checks move |#(#params),*| #call)
    }

    /// A user's type may have the name of one of ours: then the compiler says so at the parameter, with
    /// advice.
    fn checks(&self, private: &Path) -> TokenStream {
        if self.by_name.is_empty() {
            return TokenStream::new();
        }
        let checks =
            self.by_name.iter().map(|ty| quote_spanned!(place(ty.span())=> __taken::<#ty>();));
        quote! {
            #[diagnostic::on_unimplemented(
                message = "`{Self}` has the name of something that is taken from the call, but is \
                           something else",
                label = "not an extractor",
                note = "if the caller gives it, put `#[arg]` before the parameter: \
                        `#[arg] name: {Self}`",
                note = "if it is taken from the call, implement `FromCall` for it"
            )]
            trait __Taken {}
            #[diagnostic::do_not_recommend]
            impl<__T: #private::server::FromCall> __Taken for __T {}
            fn __taken<__T: __Taken>() {}
            #(#checks)*
        }
    }

    /// What `Function` learns about the handler, so that errors name the faulty parameter and not the
    /// closure.
    pub(crate) fn marker(&self, private: &Path, generics: &Generics) -> TokenStream {
        let extractors = self.extractors.iter().map(|(_, ty)| quote!(#ty));
        let used = self.used(generics);
        let (_, used, _) = used.split_for_impl();
        let arguments =
            (!self.arguments.is_empty()).then(|| quote!(#private::Args<__Arguments #used>));
        let taken = extractors.chain(arguments);
        quote!((_, #(#taken,)*))
    }

    /// The generics of the impl block that the arguments' types mention.
    fn used(&self, generics: &Generics) -> Generics {
        let types: TokenStream = self.arguments.iter().map(|it| it.ty.to_token_stream()).collect();
        let params = generics.params.iter().filter(|param| match param {
            GenericParam::Type(it) => mentions(types.clone(), &it.ident),
            GenericParam::Const(it) => mentions(types.clone(), &it.ident),
            GenericParam::Lifetime(_) => false,
        });
        let params: syn::punctuated::Punctuated<_, _> = params.cloned().collect();
        let mut used = Generics { params, ..Generics::default() };
        if used.params.is_empty() {
            return used;
        }
        // A bound is kept if it mentions only kept generics.
        let is_used = |name: &Ident| mentions(types.clone(), name);
        let unused: Vec<_> =
            generics.type_params().map(|it| &it.ident).filter(|it| !is_used(it)).collect();
        let conditions = generics.where_clause.iter().flat_map(|it| &it.predicates);
        for condition in conditions {
            let tokens = condition.to_token_stream();
            if !unused.iter().any(|name| mentions(tokens.clone(), name)) {
                used.make_where_clause().predicates.push(condition.clone());
            }
        }
        used
    }
}

impl Argument {
    /// `#[complete(…)]`, if it has that.
    pub(crate) fn completion(&self) -> Option<&Attribute> {
        self.attrs.iter().find(|it| it.path().is_ident("complete"))
    }

    /// The name that the caller uses.
    pub(crate) fn given_as(&self) -> String {
        let renamed = self.attrs.iter().filter(|it| it.path().is_ident("serde")).find_map(|attr| {
            let mut renamed = None;
            let read = attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    renamed = Some(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.input.peek(syn::Token![=]) {
                    meta.value()?.parse::<syn::Expr>()?;
                }
                Ok(())
            });
            // Serde reports what cannot be parsed here.
            read.ok().and(renamed)
        });
        renamed.unwrap_or_else(|| self.name.to_string().trim_start_matches("r#").to_owned())
    }
}

/// A type as it is written in a sentence.
pub(crate) fn shown(tokens: &impl ToTokens) -> String {
    let mut shown = tokens.to_token_stream().to_string();
    for (spaced, tight) in [(" <", "<"), ("< ", "<"), (" >", ">"), (" ::", "::"), (":: ", "::")] {
        shown = shown.replace(spaced, tight);
    }
    shown.replace("& ", "&").replace(" ,", ",")
}

fn check_marks(param: &Param, faults: &mut Faults) {
    if let (Some(_), Some(extract)) = (param.marked("arg"), param.marked("extract")) {
        let sentence = "`#[arg]` and `#[extract]` say opposite things: keep one of them.";
        faults.at(extract, sentence);
    }
    // The macro cannot evaluate the condition, and a call cannot omit a parameter conditionally.
    if let Some(attr) = param.marked("cfg").or(param.marked("cfg_attr")) {
        let sentence = "A parameter is there always: put `#[cfg(…)]` on the whole function, and \
                        write it once for each case.";
        faults.at(attr, sentence);
    }
}

fn check_type(param: &Param, faults: &mut Faults) {
    let name = param.name().map_or_else(|| "This".to_owned(), |it| format!("`{it}`"));
    match bare(&param.ty) {
        Type::Reference(it) => {
            let owned = match &*it.elem {
                Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
                Type::Slice(slice) => format!("Vec<{}>", shown(&slice.elem)),
                other => shown(other),
            };
            let sentence =
                format!("{name} is borrowed, but a call owns what it takes: write `{owned}`.");
            faults.at(&param.ty, sentence);
        }
        Type::ImplTrait(_) => {
            let sentence =
                format!("{name} needs a type with a name: its schema is made from the type.");
            faults.at(&param.ty, sentence);
        }
        _ => {}
    }
}

/// Whether a parameter of this type is extracted from the call, and is no argument.
fn is_extractor(ty: &Type) -> bool {
    let ty = bare(ty);
    if let Type::Reference(it) = ty {
        return is_extractor(&it.elem);
    }
    match last_name(ty) {
        Some(name) if name == "Option" => first_parameter(ty).is_some_and(is_extractor),
        Some(name) => EXTRACTORS.iter().any(|it| name == it),
        None => false,
    }
}

fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(it) => bare(&it.elem),
        Type::Paren(it) => bare(&it.elem),
        _ => ty,
    }
}

fn last_name(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = bare(ty) else { return None };
    path.path.segments.last().map(|it| &it.ident)
}

fn first_parameter(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = bare(ty) else { return None };
    let PathArguments::AngleBracketed(given) = &path.path.segments.last()?.arguments else {
        return None;
    };
    given.args.iter().find_map(|it| match it {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// Whether `name` occurs anywhere in `tokens`.
pub(crate) fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|it| match it {
        TokenTree::Ident(it) => it == *name,
        TokenTree::Group(it) => mentions(it.stream(), name),
        _ => false,
    })
}

/// A path as text, for serde and schemars.
pub(crate) fn text(path: &TokenStream) -> LitStr {
    LitStr::new(&path.to_string().replace(' ', ""), Span::call_site())
}

/// Types with one of these last names are extracted, unless `#[arg]` says otherwise.
const EXTRACTORS: [&str; 12] = [
    "Args",
    "Cancelled",
    "Capabilities",
    "ClientInfo",
    "Context",
    "Extension",
    "Headers",
    "Meta",
    "Principal",
    "State",
    "TraceContext",
    "Uri",
];

/// The most parameters of a handler.
const MAX_TAKEN: usize = 8;
