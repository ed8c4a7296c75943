//! A function and its attribute → the expression that builds a tool, prompt or resource from a handler.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{LitStr, Path, ReturnType, Type};

use crate::fault::{Faults, place};
use crate::function::Function;
use crate::kind::Kind;
use crate::options::Options;
use crate::params::{Params, shown};
use crate::{complete, docs};
use crate::{handler_options, uri};

/// The parts of an entry besides its handler.
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) name: LitStr,
    /// The URI of a resource.
    uri: Option<LitStr>,
    pub(crate) is_template: bool,
    /// The calls that follow the constructor: `.about("…")` and so on.
    setters: TokenStream,
}

impl Entry {
    /// Reads the options, and checks the function and its parameters against them.
    pub(crate) fn read(
        kind: Kind,
        options: &Options,
        private: &Path,
        function: &Function,
        params: &Params,
        is_in_toolbox: bool,
        faults: &mut Faults,
    ) -> Self {
        check_function(kind, function, faults);
        let mut setters = TokenStream::new();
        match docs::description(&function.attrs) {
            Some(description) => setters.extend(quote!(.about(#description))),
            None => {
                let (reader, name) = (kind.reader(), &function.name);
                let sentence =
                    format!("{reader} the description: write a doc comment above `fn {name}`.");
                faults.add(name.span(), sentence);
            }
        }
        if let Some(title) = faults.keep(options.text("title")).flatten() {
            setters.extend(quote!(.title(#title)));
        }
        setters.extend(handler_options::read(options, private, faults));
        let mut entry = Self {
            kind,
            name: name(kind, options, function, faults),
            uri: None,
            is_template: false,
            setters,
        };
        match kind {
            Kind::Tool => entry.read_tool(options, private, faults),
            Kind::Prompt => {}
            Kind::Resource => entry.read_resource(options, function, params, faults),
        }
        let setters = complete::read(kind, entry.is_template, is_in_toolbox, params, faults);
        entry.setters.extend(setters);
        entry
    }

    fn read_tool(&mut self, options: &Options, private: &Path, faults: &mut Faults) {
        let mut hints = TokenStream::new();
        let mut set = [None; HINTS.len()];
        for (at, (option, hint)) in HINTS.iter().enumerate() {
            let Some(value) = faults.keep(options.flag(option)).flatten() else { continue };
            let hint = syn::Ident::new(hint, Span::call_site());
            hints.extend(quote!(.#hint(#value)));
            set[at] = Some(value);
        }
        if let ([Some(true), Some(true), ..], Some(span)) = (set, options.span("destructive")) {
            let sentence = "What is `read_only` destroys nothing: remove one of `read_only` and \
                            `destructive`.";
            faults.add(span, sentence);
        }
        if !hints.is_empty() {
            let setters = quote!(.annotations(#private::model::ToolAnnotations::new() #hints));
            self.setters.extend(setters);
        }
        if options.span("task").is_some() {
            self.read_task(options, private, faults);
        }
        if faults.keep(options.flag("resume")).flatten() == Some(true) {
            self.setters.extend(quote!(.resume()));
        }
    }

    fn read_task(&mut self, options: &Options, private: &Path, faults: &mut Faults) {
        let support = if options.is_bare("task") {
            Some(quote!(Optional))
        } else {
            let text = options.text("task").ok().flatten().map(|it| it.value());
            match text.as_deref() {
                Some("optional") => Some(quote!(Optional)),
                Some("required") => Some(quote!(Required)),
                _ => None,
            }
        };
        match (support, options.span("task")) {
            (Some(support), _) => {
                self.setters.extend(quote!(.task(#private::model::TaskSupport::#support)));
            }
            (None, span) => {
                let sentence = "`task` says that the tool can run as a task; write `task`, or \
                                `task = \"required\"` if it always must.";
                faults.add(span.unwrap_or_else(Span::call_site), sentence);
            }
        }
    }

    fn read_resource(
        &mut self,
        options: &Options,
        function: &Function,
        params: &Params,
        faults: &mut Faults,
    ) {
        if let Some(mime_type) = faults.keep(options.text("mime_type")).flatten() {
            self.setters.extend(quote!(.mime_type(#mime_type)));
        }
        let Some(uri) = &options.text else {
            let sentence = "A resource has a URI: write `#[resource(\"hotel://rooms\")]`, or \
                            `#[resource(\"hotel://{city}/rooms\")]` for a template.";
            faults.add(function.name.span(), sentence);
            return;
        };
        self.uri = Some(uri.clone());
        let variables = match uri::variables(&uri.value()) {
            Ok(variables) => variables,
            Err(sentence) => return faults.add(uri.span(), sentence),
        };
        self.is_template = !variables.is_empty();
        check_variables(&variables, uri, function, params, faults);
    }

    /// The key that must be unique among entries of its kind.
    pub(crate) fn key(&self) -> String {
        self.uri.as_ref().unwrap_or(&self.name).value()
    }

    /// The span of the key.
    pub(crate) fn key_span(&self) -> Span {
        self.uri.as_ref().unwrap_or(&self.name).span()
    }

    /// The error for a duplicate key.
    pub(crate) fn twice(&self) -> String {
        let key = self.key();
        match self.kind {
            Kind::Tool | Kind::Prompt => format!(
                "Two {}s are called `{key}`: give one of them another name with `name = \"…\"`.",
                self.kind.word()
            ),
            Kind::Resource => format!("Two resources are at `{key}`: give one another URI."),
        }
    }

    /// The expression that builds the entry from a handler. Faults of the handler are shown at its
    /// result type.
    pub(crate) fn make(
        &self,
        private: &Path,
        function: &Function,
        marker: &TokenStream,
        handler: &TokenStream,
    ) -> TokenStream {
        let Self { kind, name, uri, is_template, setters } = self;
        let span = match &function.output {
            ReturnType::Default => function.name.span(),
            ReturnType::Type(_, ty) => ty.span(),
        };
        let handler = quote_spanned!(place(span)=> { #handler });
        match (kind, is_template) {
            (Kind::Tool, _) => quote!(#private::tool::<#marker, _>(#name, #handler) #setters),
            (Kind::Prompt, _) => quote!(#private::prompt::<#marker, _>(#name, #handler) #setters),
            (Kind::Resource, false) => {
                quote!(#private::resource::<#marker, _>(#uri, #name, #handler) #setters)
            }
            (Kind::Resource, true) => {
                quote!(#private::template::<#marker, _>(#uri, #name, #handler) #setters)
            }
        }
    }
}

fn check_function(kind: Kind, function: &Function, faults: &mut Faults) {
    let (word, name) = (kind.word(), &function.name);
    if let Some((span, odd)) = function.odd {
        faults.add(span, format!("A {word} cannot be `{odd}`: remove the word."));
    }
    if !function.is_async {
        faults.add(
            function.fn_token.span(),
            format!("A {word} is an async function: write `async fn {name}`."),
        );
    }
    if let Some(generic) = function.generics.params.first() {
        let sentence = format!(
            "`{name}` is generic, but a {word} is registered once, with the types it has: use \
             concrete ones."
        );
        faults.at(generic, sentence);
    }
    if let Type::ImplTrait(it) = function.returns() {
        let sentence =
            format!("`{name}` returns `{}`: write the name of the type it returns.", shown(&it));
        faults.at(&it, sentence);
    }
}

fn name(kind: Kind, options: &Options, function: &Function, faults: &mut Faults) -> LitStr {
    let own = function.name.to_string();
    let own = LitStr::new(own.trim_start_matches("r#"), function.name.span());
    let name = faults.keep(options.text("name")).flatten().unwrap_or(own);
    let text = name.value();
    if kind == Kind::Tool && !is_tool_name(&text) {
        let sentence = format!(
            "`{text}` is not the name of a tool: use 1 to 128 letters, digits, `_`, `.` or `-`."
        );
        faults.add(name.span(), sentence);
    } else if text.is_empty() {
        faults.add(name.span(), "This name is empty: write one, or leave `name` out.");
    }
    name
}

/// As the builder checks it, so that what compiles can be registered.
fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn check_variables(
    variables: &[String],
    uri: &LitStr,
    function: &Function,
    params: &Params,
    faults: &mut Faults,
) {
    // The fields of a struct are not visible here.
    if params.has_args {
        return;
    }
    let (text, name) = (uri.value(), &function.name);
    let arguments: Vec<_> = params.arguments.iter().map(|it| (it.given_as(), &it.name)).collect();
    for variable in variables {
        if !arguments.iter().any(|(argument, _)| argument == variable) {
            let sentence = format!(
                "`{text}` has the variable `{variable}`, but `{name}` has no such parameter: add \
                 `{variable}: String`."
            );
            faults.add(uri.span(), sentence);
        }
    }
    for (argument, param) in arguments {
        if !variables.contains(&argument) {
            let sentence = format!(
                "`{text}` has no variable `{argument}`: write `{{{argument}}}` into it, or remove \
                 the parameter."
            );
            faults.add(param.span(), sentence);
        }
    }
}

/// The options for a tool's behaviour, and the setters of `ToolAnnotations`.
const HINTS: [(&str, &str); 4] = [
    ("read_only", "read_only_hint"),
    ("destructive", "destructive_hint"),
    ("idempotent", "idempotent_hint"),
    ("open_world", "open_world_hint"),
];
